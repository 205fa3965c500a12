package vm

import (
	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// bulkOp is what a bulk copy or reduction does.
type bulkOp struct {
	told   bool   // it writes shared memory and tells an mbarrier; otherwise it writes global memory, in a group
	pair   bool   // the mbarrier may be in the other block of a pair
	plain  bool   // of whole bytes alone, with a swizzle of pieces of 16 bytes if any
	all    bool   // every block of the cluster gets it and is told
	tensor int    // dimensions of a tensor's box; 0: plain bytes
	global *memOp // the address in global memory, or of the tensor map; nil where it has no part
	shared *memOp // the address in shared memory; where both are, the one that is written
	from   *memOp // what is read of the block's own shared memory, by a copy within the cluster
	mbar   *memOp // that is told
	size   int32  // slot of the bytes, of a plain copy
	base   int32  // slot of the tensor's address in place of the map's; -1 is none
	coords []int32
	rows   int // row coordinates at the end of coords: tile::gather4, tile::scatter4
	im2col im2colMode
	offs   []int32   // slots of the offsets of an im2col load
	mask   int32     // slot of the multicast mask; -1 is none
	bytes  int32     // slot of the mask of bytes of each 16 to write; -1 is none
	ends   [2]int32  // slots of the bytes at either end that are not read, .ignore_oob; -1 is none
	data   []operand // st.async and red.async: what is written
	each   int       // bytes of those
	reduce laneFn
	typ    ptx.Type // of a reduction's elements
}

// bulkCopy is a bulk copy that was issued.
type bulkCopy struct {
	op       *bulkOp
	in       *inst
	fr       *frame
	from     *ptx.Instruction
	w        *warp
	lane     int
	rows     []rowCopy
	shared   uint64 // offset of the box
	source   uint64 // offset of what is read, within a cluster
	to       *cta   // whose shared memory it is
	bytes    int64  // of shared memory
	padding  int64  // of those, between elements, which no mbarrier counts
	swizzle  swizzle
	squeezed bool   // of each byte of shared memory six bits are stored
	fill     []byte // an element outside the tensor; nil is zeros
	ragged   bool   // what lies outside the row is left undefined
	mask     uint16 // bytes of each 16 to write
	mbar     uint32 // offset of the mbarrier to tell
	mark     uint32
	marked   bool
	event    uint32  // of a reduction in shared memory
	read     uint32  // event of a load's reads of global memory; 0 is none
	reading  *flight // of shared memory
	data     []byte  // what was read
	landed   bool
	nothing  bool          // an answer that nothing was cancelled
	arrival  bool          // no copy: cp.async.mbarrier.arrive
	order    uint64        // of an arrival: the last of the warp's copies before it
	commit   *tensorCommit // no copy: tcgen05.commit
}

// bulkLane is one thread's bulk groups.
type bulkLane struct {
	open    []*bulkCopy
	groups  [][]*bulkCopy
	pending int // in both
}

// bulk is cp.async.bulk in all its forms, and cp.reduce.
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
		in.imm = d.pendingGroups(&ops[0])
		in.fn[modeFull] = func(w *warp, in *inst) { w.bulkWait(int(in.imm), read) }
		if !read {
			in.kind, in.ctl = kindControl, bulkLands
		}
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
	op := &bulkOp{mask: -1, bytes: -1, ends: [2]int32{-1, -1}}
	if d.has("tensor") {
		op.tensor = int(d.take("1d", "2d", "3d", "4d", "5d")[0] - '0')
		switch mode := d.take("tile", "tile::gather4", "tile::scatter4", "im2col", "im2col_no_offs", "im2col::w", "im2col::w::128"); mode {
		case "", "tile":
		case "tile::gather4", "tile::scatter4":
			op.rows = 4
		default:
			op.im2col = im2colModes[mode]
		}
	}
	first := d.take("global", "shared::cta", "shared::cluster")
	second := d.take("global", "shared::cta", "shared::cluster")
	op.told = first != "global"
	op.plain = op.tensor > 0 && first == "shared::cluster" && d.mod.gpu.CC.SM() == 120
	within := op.told && second == "shared::cta"
	if !op.told && second != "shared::cta" || within && first != "shared::cluster" {
		d.refuse("the virtual machine copies between global and shared memory, and from .shared::cta to .shared::cluster")
	}
	complete := d.has("mbarrier::complete_tx::bytes")
	if d.has("bulk_group") == op.told || complete != op.told {
		d.refuse("want a copy to shared memory with .mbarrier::complete_tx::bytes, or one to global memory with .bulk_group")
	}
	multicast := d.take("multicast::cluster", "multicast::cluster::16b", "multicast::cluster::32b")
	d.has("mbarrier::report::disabled")
	if d.take("weak", "relaxed") != "" { // none of its accesses is ordered by itself
		d.scopeOf(scopeCTA)
	}
	policy := d.cacheHints()
	op.pair = d.take("cta_group::1", "cta_group::2") == "cta_group::2"
	masked := d.has("cp_mask")
	if d.has("reduce") {
		d.reduction(op)
	} else {
		d.has("b128")
	}
	d.bulkOperands(op, within, multicast, policy, masked)
}

// reduction takes the operation of cp.reduce.async.bulk.
func (d *decoder) reduction(op *bulkOp) {
	name := d.take("add", "min", "max", "inc", "dec", "and", "or", "xor")
	noftz := d.has("noftz")
	if op.tensor > 0 {
		op.reduce = func(a, _, _ uint64) uint64 { return a } // by the map's type, at run time
		op.typ = ptx.NoType
		d.tensorReduction = name
		return
	}
	op.typ = d.typ()
	op.reduce = d.atomicFunction(name, op.typ, ptx.SpaceGlobal, noftz)
}

func (d *decoder) bulkOperands(op *bulkOp, within bool, multicast string, policy, masked bool) {
	ops := d.src.Operands
	in := d.new(kindMasked)
	in.bulk = op
	take := d.taking(&ops)
	dst, src := take(), take()
	globalSide, sharedSide := dst, src
	if op.told {
		globalSide, sharedSide = src, dst
	}
	op.shared = d.newMem(ptx.SpaceShared)
	d.memory(in, op.shared, sharedSide)
	switch {
	case within:
		op.from = d.newMem(ptx.SpaceShared)
		op.from.cluster = false
		d.memory(in, op.from, src)
		d.source(in, &op.size, take(), ptx.U32, exact)
	case op.tensor > 0:
		op.global = d.newMem(ptx.SpaceGeneric)
		d.tensorOperand(in, op, globalSide)
	default:
		op.global = d.newMem(ptx.SpaceGlobal)
		d.memory(in, op.global, globalSide)
		d.source(in, &op.size, take(), ptx.U32, exact)
		if d.has("ignore_oob") {
			d.source(in, &op.ends[0], take(), ptx.U32, exact)
			d.source(in, &op.ends[1], take(), ptx.U32, exact)
		}
	}
	if op.told {
		op.mbar = d.newMem(ptx.SpaceShared)
		d.memory(in, op.mbar, take())
	}
	if op.im2col != tileMode && op.im2col != im2colStore {
		d.offsets(in, op, take())
	}
	switch multicast {
	case "":
	case "multicast::cluster::32b":
		d.source(in, &op.mask, take(), ptx.U32, exact)
	default:
		d.source(in, &op.mask, take(), ptx.U16, exact)
	}
	if policy {
		var slot int32
		d.source(in, &slot, take(), ptx.B64, exact)
	}
	if masked {
		d.source(in, &op.bytes, take(), ptx.U16, exact)
	}
	if len(ops) > 0 {
		d.refuse("%d operands too many", len(ops))
	}
	in.mem = op.shared
	d.kern.fetches = d.kern.fetches || op.told && op.global != nil
	if d.tensorReduction != "" {
		in.imm = uint64(len(d.p.reductions))
		d.p.reductions = append(d.p.reductions, d.tensorReduction)
		d.tensorReduction = ""
	}
	in.fn[modeFull] = issueBulk
	if op.reduce != nil && !op.told {
		in.kind, in.ctl = kindControl, issueReduction
		op.global.scope = scopeGPU
	}
	in.rule = ruleAsyncCopy
	d.emit(in)
}

// tensorOperand binds [tensor map, {coordinates}].
func (d *decoder) tensorOperand(in *inst, op *bulkOp, o *ptx.Operand) {
	parts := 2
	if op.base = -1; d.has("override::global_address") {
		parts = 3
	}
	if o.Kind != ptx.OpAddr || len(o.Elems()) != parts {
		d.refuse("operand %s: want [tensor map, {coordinates}]", describe(o))
	}
	d.addressValue(in, op.global, &o.Elems()[0])
	if parts == 3 {
		d.source(in, &op.base, &o.Elems()[1], ptx.U64, exact)
	}
	c := elements(&o.Elems()[parts-1])
	want := op.tensor
	if op.rows > 0 {
		want = 1 + op.rows
	}
	if len(c) != want {
		d.refuse("%d coordinates: want %d", len(c), want)
	}
	op.coords = make([]int32, want)
	for i := range c {
		d.source(in, &op.coords[i], &c[i], ptx.S32, exact)
	}
}

// offsets binds the offsets of an im2col load.
func (d *decoder) offsets(in *inst, op *bulkOp, o *ptx.Operand) {
	list, want := elements(o), op.tensor-2
	if op.im2col.wide() {
		want = 2
	}
	if len(list) != want {
		d.refuse("%d im2col offsets: want %d", len(list), want)
	}
	op.offs = make([]int32, want)
	for i := range list {
		d.source(in, &op.offs[i], &list[i], ptx.U16, exact)
	}
}

// issueReduction issues reductions in global memory, which may land at once.
func issueReduction(w *warp, in *inst) {
	m := w.condition(in)
	if m == 0 {
		w.pc++
		return
	}
	if !w.b.mayShare() {
		w.retry(stopTurn)
		return
	}
	w.runMasked(in, m)
	w.pc++
}

// bulkLands waits for groups to land. What reductions in global memory find
// there depends on other blocks.
func bulkLands(w *warp, in *inst) {
	m := w.condition(in)
	if m == 0 {
		w.pc++
		return
	}
	if !w.b.mayReduce() {
		w.retry(stopTurn)
		return
	}
	w.runMasked(in, m)
	w.pc++
}

// issueBulk issues the copies of the active lanes.
func issueBulk(w *warp, in *inst) {
	op := in.bulk
	var global, shared, from, mbar lanes64
	w.addresses(op.shared, &shared)
	if op.global != nil {
		w.addresses(op.global, &global)
	}
	if op.from != nil {
		w.addresses(op.from, &from)
	}
	if op.told {
		w.addresses(op.mbar, &mbar)
	}
	for l := w.mask; l != 0; l &= l - 1 {
		lane := firstLane(l)
		c := &bulkCopy{op: op, in: in, fr: w.fr, from: w.source(in), w: w, lane: lane, mask: 0xffff}
		if op.bytes >= 0 {
			c.mask = uint16(w.r[op.bytes][lane])
		}
		if !w.bulkRows(c, global[lane], from[lane]) || !w.bulkShared(c, shared[lane]) || op.told && !w.bulkTold(c, mbar[lane]) {
			w.b.refused = w.b.refused || op.told
			continue
		}
		w.b.countGlobal(c)
		if op.mask < 0 {
			w.b.countShared(c)
			w.b.issue(c)
			continue
		}
		w.multicast(c, w.r[op.mask][lane])
	}
}

// bulkRows finds what a copy brings.
func (w *warp) bulkRows(c *bulkCopy, global, from uint64) bool {
	op := c.op
	switch {
	case op.coords != nil:
		return w.tensorRows(c, global)
	case op.data != nil:
		c.bytes = int64(op.each * len(op.data))
		c.data = make([]byte, c.bytes)
		for i := range op.data {
			writeElement(c.data[i*op.each:], op.each, w.element(&op.data[i], c.lane))
		}
		return true
	case op.from == nil:
		return w.plainRows(c, global)
	}
	if !w.plainSize(c) {
		return false
	}
	if from%16 != 0 {
		w.faultAt(bench.MisalignedAddress, c.in, c.lane, &from, "shared", "shared address %#x of a bulk copy: want a multiple of 16", from)
		return false
	}
	var ok bool
	c.source, ok = w.locate(c.in, c.lane, from, int(c.bytes), false)
	return ok
}

// multicast issues a copy to the same place in several blocks of the cluster,
// each of which is told by its own mbarrier.
func (w *warp) multicast(c *bulkCopy, ranks uint32) {
	b := w.b
	ranks &= 0xffff
	if over := ranks >> len(b.ctas); over != 0 {
		addr := b.address(c.shared)
		w.faultAt(bench.SharedOutOfBounds, c.in, c.lane, &addr, "shared", "multicast to blocks %#x: the cluster has %d blocks", ranks, len(b.ctas))
	}
	told := w.b.mbarrierBlock(c)
	shared, mbar := c.shared-c.to.low, uint64(c.mbar)-told.low
	for _, to := range b.ctas {
		if ranks>>to.rank&1 == 0 {
			continue
		}
		one := *c
		one.to, one.shared, one.mbar = to, to.low+shared, uint32(to.low+mbar)
		if peer := to.rank&^1 | told.rank&1; c.op.pair && peer < len(b.ctas) {
			one.mbar = uint32(b.ctas[peer].low + mbar)
		}
		if !w.alive(&one) || !w.tellable(&one) {
			b.refused = true
			continue
		}
		b.countShared(&one)
		b.issue(&one)
	}
}

// plainSize is the bytes of a plain copy.
func (w *warp) plainSize(c *bulkCopy) bool {
	n := w.r[c.op.size][c.lane]
	if n%16 != 0 || n == 0 {
		w.fault(bench.MisalignedAddress, c.in, c.lane, "bulk copy of %d bytes: want a multiple of 16", n)
		return false
	}
	c.bytes = int64(n)
	return true
}

// plainRows is a plain copy's one row.
func (w *warp) plainRows(c *bulkCopy, global uint64) bool {
	if !w.plainSize(c) {
		return false
	}
	if global%16 != 0 {
		w.faultAt(bench.MisalignedAddress, c.in, c.lane, &global, "global", "global address %#x: want a multiple of 16%s", global, w.b.lies(ptx.SpaceGlobal, global))
		return false
	}
	r := rowCopy{n: uint32(c.bytes), size: uint32(c.bytes)}
	if c.op.ends[0] >= 0 {
		left, right := w.r[c.op.ends[0]][c.lane], w.r[c.op.ends[1]][c.lane]
		if left > 15 || right > 15 {
			w.fault(bench.BadDescriptor, c.in, c.lane, "bulk copy that ignores %d and %d bytes at its ends: want 0 to 15", left, right)
			return false
		}
		r.skip, r.n, c.ragged = left, r.n-min(left+right, r.n), true
	}
	r.global = global + uint64(r.skip)
	if al := w.b.l.dev.mem.find(r.global); r.n > 0 && (al == nil || r.global-al.addr+uint64(r.n) > uint64(al.size)) {
		w.outOfGlobal(c.in, c.lane, r.global, int(r.n))
		return false
	}
	c.rows = []rowCopy{r}
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
	if r := w.b.race; r != nil && !r.off {
		r.unacquired(c, addr)
	}
	t, err := decodeTensorMap(b[:])
	if err != nil {
		return bad("%v", err)
	}
	if c.op.base >= 0 {
		if t.Address = w.q[c.op.base][c.lane]; t.Address%16 != 0 {
			return bad("tensor at %#x: want a multiple of 16", t.Address)
		}
	}
	if len(t.Dims) != c.op.tensor {
		return bad("tensor map of %d dimensions: the copy is of %d", len(t.Dims), c.op.tensor)
	}
	at := make([]int32, len(c.op.coords))
	for i, s := range c.op.coords {
		at[i] = int32(w.r[s][c.lane])
		if at[i] < 0 && !c.op.told && c.op.im2col == tileMode {
			return bad("a store at coordinate %d of dimension %d: want 0 or more", at[i], i)
		}
	}
	if (t.Im2col != nil) != (c.op.im2col != tileMode) || t.Im2col != nil && t.Im2col.Wide != c.op.im2col.wide() {
		return bad("a copy in mode .%s by a tensor map of another mode", c.op.im2col)
	}
	if err := c.packed(t, at[0]); err != nil {
		return bad("%v", err)
	}
	c.swizzle = t.swizzle()
	switch {
	case t.Im2col != nil:
		offsets := make([]int32, len(c.op.offs))
		for i, s := range c.op.offs {
			offsets[i] = int32(uint16(w.r[s][c.lane]))
		}
		if c.rows, err = t.pixels(c.op.im2col, at, offsets); err != nil {
			return bad("%v", err)
		}
	case c.op.rows == 0:
		c.rows = t.rows(at)
	case t.Box[1] != 1:
		return bad("tensor map with a box of %d rows: gather4 and scatter4 want 1", t.Box[1])
	default:
		for _, row := range at[1:] {
			n, _ := t.bytes(c.rows)
			for _, r := range t.rows([]int32{at[0], row}) {
				r.shared += uint32(n)
				c.rows = append(c.rows, r)
			}
		}
	}
	c.bytes, c.padding = t.bytes(c.rows)
	c.squeezed = !c.op.told && t.Type == ptx.B6x16P32
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
	if op == "inc" || op == "dec" {
		return wrapping(op)
	}
	return reducing(op, t)
}

// bulkShared checks the shared memory of a copy.
func (w *warp) bulkShared(c *bulkCopy, addr uint64) bool {
	off, to := w.find(addr, int(c.bytes), c.op.shared.reaches())
	if to == nil {
		w.locate(c.in, c.lane, addr, int(c.bytes), c.op.shared.reaches())
		return false
	}
	align := uint64(16)
	switch {
	case c.op.coords != nil:
		align = 128
	case c.op.data != nil:
		align = uint64(c.bytes)
	}
	if addr%align != 0 {
		w.faultAt(bench.MisalignedAddress, c.in, c.lane, &addr, "shared", "shared address %#x of a bulk copy: want a multiple of %d", addr, align)
		return false
	}
	c.shared, c.to = off, to
	return c.op.mask >= 0 || w.alive(c)
}
