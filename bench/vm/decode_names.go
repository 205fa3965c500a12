package vm

import (
	"cmp"
	"slices"

	"github.com/kgen-dev/kgen/codegen/ptx"
)

// variables places the function's parameters and local variables.
func (d *decoder) variables() {
	p := d.p
	if d.fn.Kernel {
		p.params, p.paramBytes = places(d.fn.Params, 0)
	} else {
		p.returns, p.localBytes = places(d.fn.Returns, 0)
		p.params, p.localBytes = places(d.fn.Params, p.localBytes)
		for _, pl := range p.returns {
			p.locals[pl.v] = pl.offset
		}
		for _, pl := range p.params {
			p.locals[pl.v] = pl.offset
		}
	}
	var own []*ptx.Variable
	for _, v := range d.fn.Variables {
		if v.Space == ptx.SpaceLocal || v.Space == ptx.SpaceParam {
			own = append(own, v)
		}
	}
	var list []place
	list, p.localBytes = places(own, p.localBytes)
	for _, pl := range list {
		p.locals[pl.v] = pl.offset
	}
	p.localBytes = (p.localBytes + 15) &^ 15
	if p.localBytes > maxLocal {
		d.src = &ptx.Instruction{Opcode: &ptx.Opcode{Name: d.fn.Name}, Pos: d.fn.Pos}
		d.refuse("%d bytes of local memory: want at most %d", p.localBytes, maxLocal)
	}
}

// maxLocal is the most local memory of a thread: CUDA C++ Programming Guide,
// technical specifications.
const maxLocal = 512 << 10

// findSpots lists where a frame's variables lie.
func (p *program) findSpots() {
	for v, at := range p.locals {
		p.spots = append(p.spots, span{uint64(at), uint64(at + v.Size())})
	}
	slices.SortFunc(p.spots, func(a, b span) int { return cmp.Compare(a.off, b.off) })
}

// holds says whether some bytes of a frame are one variable's, or not among the
// variables at all.
func (p *program) holds(at uint64, n int) bool {
	if at >= uint64(p.localBytes) {
		return true
	}
	i, found := slices.BinarySearchFunc(p.spots, at, func(s span, at uint64) int { return cmp.Compare(s.off, at) })
	if !found {
		i--
	}
	return i >= 0 && at+uint64(n) <= p.spots[i].end
}

// places lays variables out one after the other from an offset.
func places(vars []*ptx.Variable, at int64) ([]place, int64) {
	var list []place
	for _, v := range vars {
		a := v.Alignment()
		at = (at + a - 1) &^ (a - 1)
		list = append(list, place{v, at})
		at += v.Size()
		if at > 1<<40 {
			return list, 1 << 40
		}
	}
	return list, at
}

// symbol is the value that the name of a variable or function stands for: its
// address.
func (d *decoder) symbol(o *ptx.Operand, k class) int32 {
	if f, ok := o.Decl().(*ptx.Function); ok {
		f = d.mod.definition(f)
		n, ok := d.mod.numbers[f]
		if !ok {
			d.refuse("function %s is not defined", f.Name)
		}
		return d.constant(k, functionAddress(n))
	}
	v, ok := o.Decl().(*ptx.Variable)
	if !ok {
		d.refuse("operand %s: want a variable or function", o.Name())
	}
	if offset, ok := d.p.locals[v]; ok {
		return d.localAddress(uint64(offset)+o.Value, k)
	}
	return d.addressOf(v, k, o.Value)
}

// functionAddress is the number that stands for a function's address.
func functionAddress(n int) uint64 { return uint64(n+1) << 4 }

// addressOf is a variable's address plus an offset. One of shared memory
// differs by the block's rank in its cluster.
func (d *decoder) addressOf(v *ptx.Variable, k class, offset uint64) int32 {
	c := constant{k: k, bits: d.address(v) + offset, shared: v.Space == ptx.SpaceShared}
	return d.fixed(c)
}

// address is a variable's address in its own space.
func (d *decoder) address(v *ptx.Variable) uint64 {
	switch v.Space {
	case ptx.SpaceShared:
		if off, ok := d.kern.shared[v]; ok {
			return uint64(d.mod.sharedBase() + off)
		}
	case ptx.SpaceGlobal, ptx.SpaceConst:
		if a := d.mod.allocation(v); a != nil {
			return a.addr
		}
		if v.Linkage == ptx.Extern {
			d.refuse("variable %s is defined in no module", v.Name)
		}
	case ptx.SpaceParam:
		for _, p := range d.p.params {
			if p.v == v {
				return uint64(p.offset)
			}
		}
	}
	d.refuse("variable %s in .%s space: its address is not known", v.Name, v.Space)
	return 0
}

// localAddress is the address of something in the current frame.
func (d *decoder) localAddress(offset uint64, k class) int32 {
	in := d.helper(k)
	in.fn[modeFull] = localAddress
	in.imm = offset
	return in.defs[0]
}

// helper emits a pure instruction with a destination of its own and no guard.
func (d *decoder) helper(k class) *inst {
	in := d.new(kindPure)
	in.pc, in.kd = -1, k
	bits := 32
	if k == class64 {
		bits = 64
	}
	v := d.newValue(value{k: k, bits: bits, reg: -1})
	d.bind(&in.d, v)
	in.defs = append(in.defs, v)
	if k == classPred {
		in.kind = kindMasked
	}
	d.insts = append(d.insts, in)
	return in
}

func localAddress(w *warp, in *inst) {
	v := in.imm + uint64(w.fr.local)
	if in.kd == class64 {
		d := &w.q[in.d]
		for i := range d {
			d[i] = v
		}
		return
	}
	d := &w.r[in.d]
	for i := range d {
		d[i] = uint32(v)
	}
}

// special is a special register's value.
func (d *decoder) special(s ptx.Special, k class) int32 {
	in := d.helper(k)
	d.readSpecial(in, s)
	return in.defs[0]
}

// readSpecial makes an instruction read a special register.
func (d *decoder) readSpecial(in *inst, s ptx.Special) {
	if s == ptx.IsExplicitCluster != (in.kd == classPred) {
		d.refuse("special register %s is of type .%s", s, s.Type())
	}
	in.imm = uint64(s)
	if s >= ptx.Clock && s <= ptx.GlobaltimerHi {
		d.clocks = append(d.clocks, in)
	}
	switch s {
	case ptx.TidX, ptx.TidY, ptx.TidZ:
		if in.kd == class32 {
			in.imm = uint64(s - ptx.TidX)
			in.fn[modeFull] = readTid
			return
		}
	case ptx.TidW, ptx.NtidW, ptx.CtaidW, ptx.NctaidW, ptx.ClusteridW, ptx.NclusteridW, ptx.ClusterCtaidW, ptx.ClusterNctaidW,
		ptx.NtidX, ptx.NtidY, ptx.NtidZ, ptx.CtaidX, ptx.CtaidY, ptx.CtaidZ, ptx.NctaidX, ptx.NctaidY, ptx.NctaidZ,
		ptx.ClusteridX, ptx.ClusteridY, ptx.ClusteridZ, ptx.NclusteridX, ptx.NclusteridY, ptx.NclusteridZ,
		ptx.ClusterCtaidX, ptx.ClusterCtaidY, ptx.ClusterCtaidZ, ptx.ClusterNctaidX, ptx.ClusterNctaidY, ptx.ClusterNctaidZ,
		ptx.ClusterCtarank, ptx.ClusterNctarank, ptx.IsExplicitCluster,
		ptx.Laneid, ptx.Warpid, ptx.Nwarpid, ptx.Smid, ptx.Nsmid, ptx.Gridid,
		ptx.LanemaskEq, ptx.LanemaskLe, ptx.LanemaskLt, ptx.LanemaskGe, ptx.LanemaskGt,
		ptx.Clock, ptx.ClockHi, ptx.Clock64, ptx.Globaltimer, ptx.GlobaltimerLo, ptx.GlobaltimerHi,
		ptx.TotalSmemSize, ptx.AggrSmemSize, ptx.DynamicSmemSize,
		ptx.ReservedSmemOffset0, ptx.ReservedSmemOffset1, ptx.ReservedSmemOffsetEnd, ptx.ReservedSmemOffsetCap,
		// The driver's and the profiler's, which say nothing here: zero.
		ptx.ReservedSmemOffsetBegin, ptx.CurrentGraphExec:
	default:
		if s < ptx.Pm0 { // the performance counters and %envreg follow
			d.refuse("the virtual machine has no special register %s", s)
		}
	}
	in.fn[modeFull] = readSpecial
}

func readTid(w *warp, in *inst) { w.r[in.d] = w.tid[in.imm] }

// readSpecial reads a special register that may differ by lane.
func readSpecial(w *warp, in *inst) {
	s := ptx.Special(in.imm)
	if in.kd == classPred {
		w.p[in.d] &^= w.mask
		if w.b.l.explicit {
			w.p[in.d] |= w.mask
		}
		return
	}
	v := w.uniformSpecial(s)
	for i := range warpSize {
		x := v
		switch s {
		case ptx.TidX, ptx.TidY, ptx.TidZ:
			x = uint64(w.tid[s-ptx.TidX][i])
		case ptx.Laneid:
			x = uint64(i)
		case ptx.LanemaskEq:
			x = 1 << i
		case ptx.LanemaskLe:
			x = 2<<i - 1
		case ptx.LanemaskLt:
			x = 1<<i - 1
		case ptx.LanemaskGe:
			x = uint64(allLanes << i)
		case ptx.LanemaskGt:
			x = uint64(allLanes << i << 1)
		}
		if in.kd == class64 {
			w.q[in.d][i] = x
		} else {
			w.r[in.d][i] = uint32(x)
		}
	}
}

// uniformSpecial is a special register that is the same in all lanes.
func (w *warp) uniformSpecial(s ptx.Special) uint64 {
	b := w.b
	l := b.l
	switch s {
	case ptx.NtidX, ptx.NtidY, ptx.NtidZ:
		return uint64(l.block[s-ptx.NtidX])
	case ptx.CtaidX, ptx.CtaidY, ptx.CtaidZ:
		return uint64(w.cta.id[s-ptx.CtaidX])
	case ptx.NctaidX, ptx.NctaidY, ptx.NctaidZ:
		return uint64(l.grid[s-ptx.NctaidX])
	case ptx.ClusteridX, ptx.ClusteridY, ptx.ClusteridZ:
		return uint64(w.cta.id[s-ptx.ClusteridX] / l.cluster[s-ptx.ClusteridX])
	case ptx.NclusteridX, ptx.NclusteridY, ptx.NclusteridZ:
		return uint64(l.grid[s-ptx.NclusteridX] / l.cluster[s-ptx.NclusteridX])
	case ptx.ClusterCtaidX, ptx.ClusterCtaidY, ptx.ClusterCtaidZ:
		return uint64(l.within(w.cta.rank)[s-ptx.ClusterCtaidX])
	case ptx.ClusterNctaidX, ptx.ClusterNctaidY, ptx.ClusterNctaidZ:
		return uint64(l.cluster[s-ptx.ClusterNctaidX])
	case ptx.ClusterCtarank:
		return uint64(w.cta.rank)
	case ptx.ClusterNctarank:
		return uint64(l.ctas)
	case ptx.Warpid:
		return uint64(w.number)
	case ptx.Nwarpid:
		return uint64(len(w.cta.warps))
	case ptx.Smid:
		return (uint64(b.order)*uint64(l.ctas) + uint64(w.cta.rank)) % uint64(max(l.mod.gpu.SMs, 1))
	case ptx.Nsmid:
		return uint64(l.mod.gpu.SMs)
	case ptx.Clock, ptx.Clock64, ptx.Globaltimer, ptx.GlobaltimerLo:
		return uint64(w.time())
	case ptx.ClockHi, ptx.GlobaltimerHi:
		return uint64(w.time()) >> 32
	case ptx.ReservedSmemOffset0, ptx.ReservedSmemOffset1, ptx.ReservedSmemOffsetEnd, ptx.ReservedSmemOffsetCap:
		return uint64(l.mod.sharedBase())
	case ptx.TotalSmemSize, ptx.AggrSmemSize:
		return uint64(l.sharedSize)
	case ptx.DynamicSmemSize:
		return uint64(l.dynamicSize)
	}
	return 0
}
