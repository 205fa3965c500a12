package vm

import (
	"fmt"
	"math/bits"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

func init() {
	decoders["wgmma"] = (*decoder).wgmma
	decoders["griddepcontrol"] = func(d *decoder) {
		mode := d.take("wait", "launch_dependents")
		d.operands(0, 0)
		if mode != "wait" {
			d.nothing()
			return
		}
		in := d.new(kindMasked)
		in.fn[modeFull] = gridWait
		d.emit(in)
	}
}

// warpgroup is how many warps issue a wgmma.
const warpgroup = 4

// wgmmaOp is an asynchronous matrix instruction of a warpgroup. Each of its
// four warps computes 16 of the 64 rows.
type wgmmaOp struct {
	mmaOp
	aRegs          bool
	negate         bool
	transA, transB bool
	scaled         bool  // scaleD says whether D is added to, otherwise keep does
	scaleD         int32 // slot of the predicate
	keep           bool
	descA, descB   int32
	id             int32   // among the memory instructions
	sums, parts    []int32 // the fragments that the accumulators and A are
}

// wgmmaFlight is an instruction that was issued and has not landed.
type wgmmaFlight struct {
	in     *inst
	fr     *frame
	a, b   uint64 // descriptors
	regs   [4]lanes32
	sparse sparseFlight
	keep   bool
	landed bool
	waited bool              // its wait has begun: what it computes may be looked at
	bad    *undefinedProduct // what of it is undefined, where it landed before its wait
	was    undefinedSums     // of the accumulators that it adds to
	read   *flight
}

// wgmmaGroups are a warp's instructions in flight.
type wgmmaGroups struct {
	open    []*wgmmaFlight
	groups  [][]*wgmmaFlight
	pending int    // in both
	fences  uint32 // so far
}

func (d *decoder) wgmma() {
	switch {
	case d.has("fence"):
		d.aligned()
		d.operands(0, 0)
		in := d.new(kindMasked)
		in.fn[modeFull] = func(w *warp, in *inst) {
			if w.together(in) {
				w.wg.fences++
			}
		}
		d.emit(in)
		d.p.counter[d.src.PC] = countFence
	case d.has("commit_group"):
		d.aligned()
		d.operands(0, 0)
		in := d.new(kindMasked)
		in.fn[modeFull] = func(w *warp, in *inst) {
			if w.together(in) {
				w.crowd(len(w.wg.groups), 0)
				w.wg.groups = append(w.wg.groups, w.wg.open)
				w.wg.open = nil
			}
		}
		d.emit(in)
	case d.has("wait_group"):
		d.aligned()
		ops := d.operands(1, 1)
		in := d.new(kindMasked)
		in.imm = d.pendingGroups(&ops[0])
		in.fn[modeFull] = func(w *warp, in *inst) { w.wgmmaWait(in) }
		d.wgmmaWaits = append(d.wgmmaWaits, in)
		d.emit(in)
	case d.has("mma_async"):
		d.wgmmaIssue()
	default:
		d.refuse("the virtual machine does not execute it")
	}
}

func (d *decoder) aligned() {
	if !d.has("sync") || !d.has("aligned") {
		d.refuse("want .sync.aligned")
	}
}

func (d *decoder) wgmmaIssue() {
	d.aligned()
	op := &wgmmaOp{keep: true, id: d.newMem(ptx.SpaceShared).id}
	sparse := d.has("sp")
	shape := ""
	for i, w := range d.words {
		var m, n, k int
		if c, _ := fmt.Sscanf(w, "m%dn%dk%d", &m, &n, &k); c == 3 && !d.used[i] {
			d.used[i] = true
			op.m, op.n, op.k, shape = m, n, k, w
		}
	}
	op.sat = d.has("satfinite")
	op.dt, op.at, op.bt = d.typ(), d.typ(), d.typ()
	op.ct = op.dt
	if op.at == ptx.B1 {
		op.and = d.has("and") && d.has("popc")
	}
	ops := d.src.Operands
	in := d.new(kindMasked)
	in.wg = op
	in.rule = ruleWgmma
	if sparse {
		ops = d.metadata(in, &op.mmaOp, ops, 3)
	}
	op.checkWgmma(d)
	op.fused = d.mod.fusedSum("wgmma", &op.mmaOp)
	if len(ops) < 4 {
		d.refuse("%d operands: want at least 4", len(ops))
	}
	per := 4
	if op.dt == ptx.F16 {
		per = 2
	}
	acc := elements(&ops[0])
	if want := op.n / 8 * per; len(acc) != want {
		d.refuse("%d accumulators: want %d", len(acc), want)
	}
	op.d = make([]int32, len(acc))
	for i := range acc {
		d.destination(in, &op.d[i], &acc[i], ptx.B32, exact)
		v := in.defs[len(in.defs)-1]
		d.wgmmaRegs = append(d.wgmmaRegs, v)
		op.sums = append(op.sums, d.fragment(v))
	}
	if ops[1].Kind == ptx.OpVector {
		op.aRegs = true
		e := elements(&ops[1])
		if len(e) != 4 {
			d.refuse("%d registers of A: want 4", len(e))
		}
		op.a = make([]int32, 4)
		for i := range e {
			d.source(in, &op.a[i], &e[i], ptx.B32, exact)
			if v := in.uses[len(in.uses)-1]; !d.values[v].constant {
				op.parts = append(op.parts, d.fragment(v))
			}
		}
	} else {
		d.source(in, &op.descA, &ops[1], ptx.B64, exact)
	}
	d.source(in, &op.descB, &ops[2], ptx.B64, exact)
	if ops[3].Kind == ptx.OpImm {
		op.keep = ops[3].Value != 0
	} else {
		in.neg = d.predicate(in, &op.scaleD, &ops[3])
		op.scaled = true
	}
	d.wgmmaScales(op, ops[4:])
	if op.scaled || op.keep { // D is read as well
		for i := range acc {
			in.uses = append(in.uses, d.register(&acc[i]))
		}
	}
	in.fn[modeFull] = issueWgmma
	d.emit(in)
	d.countTensor("wgmma", shape, &op.mmaOp)
	if op.and { // eight elements to a byte, that lie as bytes do
		op.at, op.bt, op.k, op.per = ptx.U8, ptx.U8, op.k/8, perRegister(ptx.U8)
	}
}

// wgmmaScales reads the constants that negate and transpose operands.
func (d *decoder) wgmmaScales(op *wgmmaOp, ops []ptx.Operand) {
	if op.dt == ptx.S32 {
		if len(ops) != 0 {
			d.refuse("%d operands too many", len(ops))
		}
		return
	}
	half := op.at == ptx.F16 || op.at == ptx.BF16
	want := 2
	if half {
		want = 4
		if op.aRegs {
			want = 3
		}
	}
	if len(ops) != want {
		d.refuse("%d constants after scale-d: want %d", len(ops), want)
	}
	v := make([]int64, len(ops))
	for i := range ops {
		v[i] = d.integer(&ops[i])
		if i < 2 && v[i] != 1 && v[i] != -1 || i >= 2 && v[i] != 0 && v[i] != 1 {
			d.refuse("constant %d: want a scale of 1 or -1, then 0 or 1 to transpose", v[i])
		}
	}
	op.negate = v[0]*v[1] < 0
	if half {
		op.transB = v[len(v)-1] == 1
		op.transA = !op.aRegs && v[2] == 1
	}
}

func (op *wgmmaOp) checkWgmma(d *decoder) {
	floatAcc := op.dt == ptx.F32 || op.dt == ptx.F16
	k, ok := 0, false
	switch op.at {
	case ptx.F16:
		k, ok = 16, op.bt == ptx.F16 && floatAcc
	case ptx.BF16:
		k, ok = 16, op.bt == ptx.BF16 && op.dt == ptx.F32
	case ptx.TF32:
		k, ok = 8, op.bt == ptx.TF32 && op.dt == ptx.F32
	case ptx.E4M3, ptx.E5M2:
		k, ok = 32, (op.bt == ptx.E4M3 || op.bt == ptx.E5M2) && floatAcc
	case ptx.S8, ptx.U8:
		k, ok = 32, (op.bt == ptx.S8 || op.bt == ptx.U8) && op.dt == ptx.S32
	case ptx.B1:
		k, ok = 256, op.bt == ptx.B1 && op.dt == ptx.S32 && op.and
	}
	if !ok || op.m != 64 || op.keptK() != k || op.n < 8 || op.n > 256 || op.n%8 != 0 {
		d.refuse("the virtual machine does not have m%dn%dk%d of .%s and .%s into .%s", op.m, op.n, op.k, op.at, op.bt, op.dt)
	}
	op.per = perRegister(op.at)
}

// issueWgmma puts an instruction in flight.
func issueWgmma(w *warp, in *inst) {
	if !w.together(in) {
		return
	}
	op := in.wg
	f := &wgmmaFlight{in: in, fr: w.fr, keep: op.keep}
	if op.scaled {
		f.keep = (w.p[op.scaleD]^in.neg)&1 != 0
	}
	if op.aRegs {
		for i, s := range op.a {
			f.regs[i] = w.r[s]
		}
	} else {
		f.a = w.q[op.descA][0]
	}
	f.b = w.q[op.descB][0]
	if op.sparse != nil {
		f.sparse.meta, f.sparse.selector = w.r[op.sparse.slot], w.r[op.sparse.selector][0]
	}
	w.alike(f)
	w.useFragments(f)
	w.watchWgmma(f)
	w.crowd(w.wg.pending, 0)
	w.wg.open = append(w.wg.open, f)
	w.wg.pending++
	if w.b.landsEarly() {
		for _, g := range w.wg.groups {
			w.landWgmma(g)
		}
		w.landWgmma(w.wg.open)
	}
}

// wgmmaWait lets all but the latest groups land.
func (w *warp) wgmmaWait(in *inst) {
	if !w.together(in) {
		return
	}
	g := &w.wg
	n := max(len(g.groups)-int(in.imm), 0)
	for _, list := range g.groups[:n] {
		for _, f := range list {
			f.waited = true
		}
		w.landWgmma(list)
		g.pending -= len(list)
		for _, f := range list {
			w.wgmmaDone(f)
		}
	}
	g.groups = g.groups[n:]
}

// landWgmma computes instructions, in order.
func (w *warp) landWgmma(list []*wgmmaFlight) {
	for _, f := range list {
		if !f.landed {
			f.landed = true
			w.computeWgmma(f)
		}
	}
}

// descriptor is a matrix in shared memory. PTX ISA 9.7.15.5.1.
type descriptor struct {
	start, leading, stride uint64 // bytes
	swizzle                int    // bytes: 0, 32, 64, 128
	base                   uint64 // bytes by which the swizzle's pattern starts off its alignment
}

func decodeDescriptor(v uint64) descriptor {
	return descriptor{
		start: v & 0x3fff << 4, leading: v >> 16 & 0x3fff << 4, stride: v >> 32 & 0x3fff << 4,
		swizzle: []int{0, 128, 64, 32}[v>>62], base: v >> 49 & 7 << 7,
	}
}

// chunk is the address of 16 bytes of the matrix: chunk number c along the
// contiguous dimension, at index i of the other. contiguous K is the plain
// order, otherwise the operand is transposed.
func (d *descriptor) chunk(c, i int, transposed bool) uint64 {
	s := uint64(1)
	if d.swizzle > 0 {
		s = uint64(d.swizzle / 16)
	}
	row, block := uint64(i%8)*16*s, uint64(i/8)
	a := d.start + row
	switch {
	case !transposed && d.swizzle == 0:
		a += block*d.stride + uint64(c)*d.leading
	case !transposed:
		a += block*d.stride + uint64(c)*16
	case d.swizzle == 0:
		a += uint64(c)*d.stride + block*d.leading
	default:
		a += block*d.stride + uint64(c)%s*16 + uint64(c)/s*d.leading
	}
	return swizzled(a-d.base, d.swizzle) + d.base
}

// chunks calls f for the chunks of an operand's part: rows [first, first+n) of
// A, or of B transposed, times width elements along k. row and k are of the chunk's first
// element; its others follow along k, or along rows where transposed.
func (op *wgmmaOp) chunks(d *descriptor, first, n, width int, transposed bool, f func(addr uint64, row, k int)) {
	per := 16 * 8 / heldBits(op.at) // elements of a chunk
	if !transposed {
		for row := first; row < first+n; row++ {
			for k := 0; k < width; k += per {
				f(d.chunk(k/per, row, false), row, k)
			}
		}
		return
	}
	for row := first; row < first+n; row += per {
		for k := range width {
			f(d.chunk(row/per, k, true), row, k)
		}
	}
}

// undefinedProduct is what of a product is undefined.
type undefinedProduct struct {
	any  bool
	rows [tileM]uint32 // origins of undefined values, 0 is none
	cols [256]uint32
}

// wideTiles is a warp's room for the operands of wgmma.
type wideTiles struct {
	a   [tileM * maxTileK]float32
	b   [256 * maxTileK]float32 // where a wideTile can't be
	bad undefinedProduct
}

// computeWgmma multiplies for the warp's rows.
func (w *warp) computeWgmma(f *wgmmaFlight) {
	op := f.in.wg
	if w.wide == nil {
		w.wide = new(wideTiles)
	}
	t := w.wide
	t.bad.any = false
	current := w.fr
	if current != f.fr {
		w.enter(f.fr)
		defer w.enter(current)
	}
	w.wgmmaA(f, t)
	panels := w.wgmmaB(f, t)
	per := len(op.d) / (op.n / tileN)
	c, fused := &w.scratch().acc, &w.scratch().fused
	if op.fused != nil {
		fused.prepareRows(op.fused, t.a[:], tileM, op.k)
	}
	for p := range op.n / tileN {
		regs := op.d[p*per : (p+1)*per]
		switch {
		case !f.keep || op.dt == ptx.S32:
			*c = fragments{}
		default:
			w.readAccumulator(c, regs, op.dt)
		}
		b := panels[p*tileN*op.k:][:tileN*op.k]
		switch {
		case op.and:
			countCommon(c, t.a[:], b, op.k)
		case op.fused == nil:
			multiply(c, t.a[:], b, tileM, op.k)
		default:
			op.fused.multiply(fused, c, b, tileM, op.k)
		}
		if op.dt == ptx.S32 {
			w.addInteger(c, regs, f.keep, op.sat)
		} else {
			w.writeAccumulator(c, regs, op.dt)
		}
	}
	t.bad.any = t.bad.any && !w.reachesOutside(f)
	if f.waited {
		w.wgmmaDefined(f, &t.bad, per)
		return
	}
	bad := t.bad
	f.bad = &bad
}

// countCommon counts the bits that rows of A and columns of B, side by side, have in
// common; eight bits are a number.
func countCommon(f *fragments, a, b []float32, k int) {
	for i := range f {
		for lane := range f[i] {
			row, col := lane>>2+8*(i>>1), evenFirst[2*(lane&3)+i&1]
			n := 0
			for j, v := range a[row*k:][:k] {
				n += bits.OnesCount8(uint8(v) & uint8(b[eightColumns*j+col]))
			}
			f[i][lane] = float32(n)
		}
	}
}

// addInteger adds sums to s32 accumulators.
func (w *warp) addInteger(f *fragments, regs []int32, keep, sat bool) {
	for i, s := range regs {
		d := &w.r[s]
		for lane := range d {
			sum := int64(f[i&3][lane])
			if keep {
				sum += int64(int32(d[lane]))
			}
			if sat {
				sum = int64(int32(uint32(clamp32(sum))))
			}
			d[lane] = uint32(sum)
		}
	}
}

// wgmmaA decodes the warp's 16 rows of A.
func (w *warp) wgmmaA(f *wgmmaFlight, t *wideTiles) {
	op := f.in.wg
	k := op.keptK()
	if op.aRegs {
		decodeA(t.a[:], &f.regs, len(f.regs), op.at, k)
	} else {
		first := 16 * (w.number & 3)
		desc := decodeDescriptor(f.a)
		var e [32]float32
		op.chunks(&desc, first, tileM, k, op.transA, func(addr uint64, row, at int) {
			n := w.chunkAt(f, addr, &e, op.at)
			if op.transA {
				for i := range n {
					t.a[(row-first+i)*k+at] = e[i]
				}
			} else {
				copy(t.a[(row-first)*k+at:], e[:n])
			}
			w.chunkUndefined(f, t, addr, row-first, n, op.transA, t.bad.rows[:])
		})
	}
	if op.sparse != nil {
		w.expandWgmma(f, t)
	}
	if op.negate {
		for i := range t.a[:tileM*op.k] {
			t.a[i] = -t.a[i]
		}
	}
}

// matrixChunk is the offset of 16 bytes of a matrix in shared memory: of the
// warp's own block, whatever it is in the cluster.
func (w *warp) matrixChunk(addr uint64) (off uint64, ok bool) {
	off = addr - uint64(w.b.sharedBase) // wraps for an address below the block's memory
	n := uint64(w.b.l.sharedSize)
	return off + w.cta.low, off <= n && n-off >= 16
}

// chunkAt decodes 16 bytes of shared memory.
func (w *warp) chunkAt(f *wgmmaFlight, addr uint64, e *[32]float32, t ptx.Type) int {
	off, ok := w.matrixChunk(addr)
	n := 128 / heldBits(t)
	if !ok {
		w.faultAt(bench.BadDescriptor, f.in, 0, &addr, "shared", "the matrix reaches shared address %#x: the block has %d bytes from %#x", addr, w.b.l.sharedSize, w.b.sharedBase)
		*e = [32]float32{}
		return n
	}
	return decodeWords(e, (*[16]byte)(w.b.shared[off:]), t)
}

// chunkUndefined notes rows or columns that were read from bytes never written.
func (w *warp) chunkUndefined(f *wgmmaFlight, t *wideTiles, addr uint64, index, n int, along bool, out []uint32) {
	u := w.b.undef
	off, ok := w.matrixChunk(addr)
	if u == nil || !ok || !u.any(off, 16) {
		return
	}
	if !t.bad.any {
		t.bad.any = true
		clear(t.bad.rows[:])
		clear(t.bad.cols[:])
	}
	from := w.b.addOrigin(origin{class: bench.UninitialisedSharedRead, src: w.sourceIn(f.fr, f.in), space: ptx.SpaceShared, addr: addr, size: 16, warp: w.index})
	if !along {
		out[index] = from
		return
	}
	size := 16 / n
	for i := range n {
		if u.bits(off+uint64(i*size), size) != 0 {
			out[index+i] = from
		}
	}
}
