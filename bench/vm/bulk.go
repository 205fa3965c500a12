package vm

import (
	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// bulkOp is what a bulk copy or reduction does.
type bulkOp struct {
	load   bool   // from global to shared memory
	global *memOp // the address in global memory, or of the tensor map
	shared *memOp
	mbar   *memOp // of a load
	size   int32  // slot of the bytes, of a plain copy
	coords []int32
	mask   int32 // slot of the multicast mask; -1 is none
	reduce laneFn
	typ    ptx.Type // of a reduction's elements
}

// bulkCopy is a bulk copy that was issued.
type bulkCopy struct {
	op      *bulkOp
	in      *inst
	from    *ptx.Instruction
	w       *warp
	lane    int
	rows    []rowCopy
	shared  uint64 // offset of the box
	bytes   int64
	swizzle int
	fill    []byte // an element outside the tensor; nil is zeros
	mbar    uint32 // offset of the mbarrier to tell
	mark    uint32
	marked  bool
	reading *flight // of shared memory, by a store
	data    []byte  // what a store has read
	landed  bool
	arrival bool // no copy: cp.async.mbarrier.arrive
}

// bulkLane is one thread's bulk groups.
type bulkLane struct {
	open   []*bulkCopy
	groups [][]*bulkCopy
}

// bulk is cp.async.bulk in all its forms but clusters', and cp.reduce.
func (d *decoder) bulk() {
	switch {
	case d.has("commit_group"):
		d.operands(0, 0)
		in := d.new(kindMasked)
		in.fn[modeFull] = bulkCommit
		d.emit(in)
		return
	case d.has("wait_group"):
		read := d.has("read")
		ops := d.operands(1, 1)
		in := d.new(kindMasked)
		in.imm = uint64(d.integer(&ops[0]))
		in.fn[modeFull] = func(w *warp, in *inst) { w.bulkWait(int(in.imm), read) }
		d.emit(in)
		return
	case d.has("prefetch"):
		for i := range d.used {
			d.used[i] = true
		}
		d.nothing()
		return
	}
	d.bulkCopy()
}

// bulkCopy decodes a copy or reduction, plain or of a tensor.
func (d *decoder) bulkCopy() {
	op := &bulkOp{mask: -1}
	tensor := 0
	if d.has("tensor") {
		switch d.take("1d", "2d", "3d", "4d", "5d") {
		case "1d":
			tensor = 1
		case "2d":
			tensor = 2
		case "3d":
			tensor = 3
		case "4d":
			tensor = 4
		case "5d":
			tensor = 5
		}
		d.has("tile")
	}
	first := d.take("global", "shared::cta", "shared::cluster")
	second := d.take("global", "shared::cta", "shared::cluster")
	op.load = first != "global"
	if op.load && second != "global" || !op.load && second != "shared::cta" {
		d.refuse("the virtual machine copies between global and shared memory alone")
	}
	complete := d.has("mbarrier::complete_tx::bytes")
	if d.has("bulk_group") == op.load || complete != op.load {
		d.refuse("want a load with .mbarrier::complete_tx::bytes, or a store with .bulk_group")
	}
	multicast := d.has("multicast::cluster")
	policy := d.cacheHints()
	d.take("cta_group::1")
	reduction := d.words[1] == "reduce"
	if reduction {
		d.reduction(op, tensor > 0)
	}
	d.bulkOperands(op, tensor, multicast, policy)
}

// reduction takes the operation of cp.reduce.async.bulk.
func (d *decoder) reduction(op *bulkOp, tensor bool) {
	name := d.take("add", "min", "max", "inc", "dec", "and", "or", "xor")
	d.has("noftz")
	if tensor {
		op.reduce = func(a, _, _ uint64) uint64 { return a } // by the map's type, at run time
		op.typ = ptx.NoType
		if name == "inc" || name == "dec" {
			d.refuse("the virtual machine does not execute it")
		}
		op.coords = nil
		d.tensorReduction = name
		return
	}
	op.typ = d.typ()
	op.reduce = d.atomicFunction(name, op.typ, ptx.SpaceGlobal, true)
}

func (d *decoder) bulkOperands(op *bulkOp, tensor int, multicast, policy bool) {
	ops := d.src.Operands
	in := d.new(kindMasked)
	in.bulk = op
	take := func() *ptx.Operand {
		if len(ops) == 0 {
			d.refuse("want more operands")
		}
		o := &ops[0]
		ops = ops[1:]
		return o
	}
	dst, src := take(), take()
	globalSide, sharedSide := dst, src
	if op.load {
		globalSide, sharedSide = src, dst
	}
	op.shared = d.newMem(ptx.SpaceShared)
	d.memory(in, op.shared, sharedSide)
	op.global = d.newMem(ptx.SpaceGlobal)
	if tensor > 0 {
		if globalSide.Kind != ptx.OpAddr || len(globalSide.Elems()) != 2 {
			d.refuse("operand %s: want [tensor map, {coordinates}]", describe(globalSide))
		}
		op.global.space = ptx.SpaceGeneric
		d.addressValue(in, op.global, &globalSide.Elems()[0])
		c := elements(&globalSide.Elems()[1])
		if len(c) != tensor {
			d.refuse("%d coordinates: want %d", len(c), tensor)
		}
		op.coords = make([]int32, tensor)
		for i := range c {
			d.source(in, &op.coords[i], &c[i], ptx.S32, exact)
		}
	} else {
		d.memory(in, op.global, globalSide)
		d.source(in, &op.size, take(), ptx.U32, exact)
	}
	if op.load {
		op.mbar = d.newMem(ptx.SpaceShared)
		d.memory(in, op.mbar, take())
	}
	if multicast {
		d.source(in, &op.mask, take(), ptx.U16, exact)
	}
	if policy {
		var slot int32
		d.source(in, &slot, take(), ptx.B64, exact)
	}
	if len(ops) > 0 {
		d.refuse("%d operands too many", len(ops))
	}
	in.mem = op.shared
	if d.tensorReduction != "" {
		in.imm = uint64(len(d.p.reductions))
		d.p.reductions = append(d.p.reductions, d.tensorReduction)
		d.tensorReduction = ""
	}
	in.fn[modeFull] = issueBulk
	in.rule = ruleAsyncCopy
	d.emit(in)
}

// issueBulk issues the copies of the active lanes.
func issueBulk(w *warp, in *inst) {
	op := in.bulk
	var global, shared, mbar lanes64
	w.addresses(op.global, &global)
	w.addresses(op.shared, &shared)
	if op.load {
		w.addresses(op.mbar, &mbar)
	}
	for l := w.mask; l != 0; l &= l - 1 {
		lane := firstLane(l)
		c := &bulkCopy{op: op, in: in, from: w.source(in), w: w, lane: lane}
		ok := false
		if op.coords != nil {
			ok = w.tensorRows(c, global[lane])
		} else {
			ok = w.plainRows(c, global[lane])
		}
		if !ok || !w.bulkShared(c, shared[lane]) {
			continue
		}
		if op.load {
			off, ok := w.locate(in, lane, mbar[lane], 8, op.mbar.reaches())
			if !ok {
				continue
			}
			if w.b.mbarriers[uint32(off)] == nil {
				w.misuse(in, lane, uint32(off), "a copy is to tell it, and it is not initialised")
				continue
			}
			c.mbar = uint32(off)
		}
		w.b.issue(c)
	}
}

// plainRows is a plain copy's one row.
func (w *warp) plainRows(c *bulkCopy, global uint64) bool {
	n := w.r[c.op.size][c.lane]
	if n%16 != 0 || n == 0 {
		w.fault(bench.MisalignedAddress, c.in, c.lane, "bulk copy of %d bytes: want a multiple of 16", n)
		return false
	}
	if global%16 != 0 {
		w.faultAt(bench.MisalignedAddress, c.in, c.lane, &global, "global", "global address %#x: want a multiple of 16", global)
		return false
	}
	if al := w.b.l.dev.mem.find(global); al == nil || global-al.addr+uint64(n) > uint64(al.size) {
		w.outOfGlobal(c.in, c.lane, global, int(n))
		return false
	}
	c.rows = []rowCopy{{global: global, n: n, size: n}}
	c.bytes = int64(n)
	return true
}

// tensorRows reads the tensor map and lists the rows of the box.
func (w *warp) tensorRows(c *bulkCopy, addr uint64) bool {
	bad := func(format string, args ...any) bool {
		w.faultAt(bench.BadDescriptor, c.in, c.lane, &addr, "global", format, args...)
		return false
	}
	if addr%64 != 0 {
		return bad("tensor map at %#x: want a multiple of 64", addr)
	}
	al := w.b.l.dev.mem.find(addr)
	if al == nil || addr-al.addr+TensorMapSize > uint64(al.size) {
		w.outOfGlobal(c.in, c.lane, addr, TensorMapSize)
		return false
	}
	var b [TensorMapSize]byte
	if !w.readRange(c.in, c.op.global, c.lane, addr, b[:], 0) {
		return false
	}
	t, err := decodeTensorMap(b[:])
	if err != nil {
		return bad("%v", err)
	}
	if len(t.Dims) != len(c.op.coords) {
		return bad("tensor map of %d dimensions: the copy gives %d coordinates", len(t.Dims), len(c.op.coords))
	}
	at := make([]int32, len(c.op.coords))
	for i, s := range c.op.coords {
		at[i] = int32(w.r[s][c.lane])
		if at[i] < 0 && !c.op.load {
			return bad("a store at coordinate %d of dimension %d: want 0 or more", at[i], i)
		}
	}
	c.rows, c.bytes, c.swizzle = t.rows(at), t.bytes(), t.Swizzle
	if t.FillNaN {
		c.fill = nanOf(t.Type)
	}
	if c.op.reduce != nil && c.op.typ == ptx.NoType {
		op := *c.op
		op.typ = t.Type
		op.reduce = w.mapReduction(w.fr.prog.reductions[c.in.imm], t.Type)
		c.op = &op
	}
	for _, r := range c.rows {
		if r.n == 0 {
			continue
		}
		if al := w.b.l.dev.mem.find(r.global); al == nil || r.global-al.addr+uint64(r.n) > uint64(al.size) {
			w.outOfGlobal(c.in, c.lane, r.global, int(r.n))
			return false
		}
	}
	return true
}

// mapReduction is a tensor reduction's function, once the type is known.
func (w *warp) mapReduction(op string, t ptx.Type) laneFn {
	if ft, ok := floatOf(t); ok {
		if op == "add" {
			return arithmetic("add", ft, floatMode{})
		}
		return extreme(op == "max", ft, floatMode{})
	}
	return reducing(op, t)
}

// nanOf is a NaN of a type, as bytes.
func nanOf(t ptx.Type) []byte {
	switch t {
	case ptx.F16, ptx.BF16:
		return []byte{0xff, 0x7f}
	case ptx.F64:
		b := make([]byte, 8)
		writeElement(b, 8, nan64)
		return b
	}
	return []byte{0xff, 0xff, 0xff, 0x7f}
}

// bulkShared checks the shared memory of a copy.
func (w *warp) bulkShared(c *bulkCopy, addr uint64) bool {
	off, ok := w.locate(c.in, c.lane, addr, int(c.bytes), c.op.shared.reaches())
	if !ok {
		return false
	}
	align := uint64(16)
	if c.op.coords != nil {
		align = 128
	}
	if addr%align != 0 {
		w.faultAt(bench.MisalignedAddress, c.in, c.lane, &addr, "shared", "shared address %#x of a bulk copy: want a multiple of %d", addr, align)
		return false
	}
	c.shared = off
	return true
}
