package vm

import (
	"math"

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
		if globalSide.Kind != ptx.OpAddr || len(globalSide.Elems) != 2 {
			d.refuse("operand %s: want [tensor map, {coordinates}]", describe(globalSide))
		}
		op.global.space = ptx.SpaceGeneric
		d.addressValue(in, op.global, &globalSide.Elems[0])
		c := elements(&globalSide.Elems[1])
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
			off := mbar[lane] - uint64(w.b.sharedBase)
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
	off := addr - uint64(w.b.sharedBase)
	n := uint64(len(w.b.shared))
	if off > n || n-off < uint64(c.bytes) {
		var all lanes64
		all[c.lane] = addr
		w.outOfShared(c.in, &all, int(c.bytes), 1<<c.lane)
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

// issue puts a copy in flight.
func (b *block) issue(c *bulkCopy) {
	r := b.race
	if r != nil && r.off {
		r = nil
	}
	if c.op.load {
		if r != nil {
			r.bulkWriting(c)
		}
	} else {
		if r != nil {
			r.bulkReading(c)
		}
		s := c.w.bulkOf(c.lane)
		s.open = append(s.open, c)
	}
	b.countBulk(c)
	b.flight = append(b.flight, c)
	if b.landsEarly() {
		b.land(c)
	}
}

// bulkOf is a thread's bulk groups.
func (w *warp) bulkOf(lane int) *bulkLane {
	if w.bulk[lane] == nil {
		w.bulk[lane] = new(bulkLane)
	}
	return w.bulk[lane]
}

// bulkCommit closes the open copies of the active lanes into groups.
func bulkCommit(w *warp, in *inst) {
	for l := w.mask; l != 0; l &= l - 1 {
		if s := w.bulk[firstLane(l)]; s != nil {
			s.groups = append(s.groups, s.open)
			s.open = nil
		}
	}
}

// bulkWait lets all but the n latest groups of the active lanes land, or read
// their sources.
func (w *warp) bulkWait(n int, read bool) {
	for l := w.mask; l != 0; l &= l - 1 {
		s := w.bulk[firstLane(l)]
		if s == nil {
			continue
		}
		done := max(len(s.groups)-n, 0)
		for _, g := range s.groups[:done] {
			for _, c := range g {
				if read {
					w.b.readSource(c)
				} else {
					w.b.land(c)
				}
			}
		}
		if !read {
			s.groups = s.groups[done:]
		}
	}
}

// land completes a copy: its data are where they belong, and who waits for
// them is told.
func (b *block) land(c *bulkCopy) {
	if c.landed {
		return
	}
	c.landed = true
	for i, x := range b.flight {
		if x == c {
			b.flight = append(b.flight[:i], b.flight[i+1:]...)
			break
		}
	}
	if !c.op.load {
		b.readSource(c)
		b.writeRows(c)
		return
	}
	b.loadRows(c)
	m := b.mbarriers[c.mbar]
	if r := b.race; r != nil && !r.off {
		r.bulkWritten(c, m)
	}
	if m == nil {
		c.w.misuse(c.in, c.lane, c.mbar, "it is gone when a copy completes that was to tell it")
		return
	}
	m.bytes -= c.bytes
	b.settle(m, c.mbar)
}

// loadRows brings the data of a load to shared memory.
func (b *block) loadRows(c *bulkCopy) {
	var row []byte
	for _, r := range c.rows {
		if cap(row) < int(r.size) {
			row = make([]byte, r.size)
		}
		row = row[:r.size]
		if c.fill == nil {
			clear(row)
		} else {
			for i := range row {
				row[i] = c.fill[i%len(c.fill)]
			}
		}
		if r.n > 0 {
			c.w.readRange(c.in, c.op.global, c.lane, r.global, row[r.skip:r.skip+r.n], eventAsync)
		}
		b.spread(c, r, func(at uint64, i, n int) {
			copy(b.shared[at:at+uint64(n)], row[i:i+n])
			if b.undef != nil {
				clear(b.undef.bytes[at : at+uint64(n)])
			}
		})
	}
}

// spread calls f for each piece of a row that is contiguous in shared memory:
// where it lies, where in the row it begins, how long it is.
func (b *block) spread(c *bulkCopy, r rowCopy, f func(at uint64, i, n int)) {
	if c.swizzle == 0 {
		f(c.shared+uint64(r.shared), 0, int(r.size))
		return
	}
	base := uint64(b.sharedBase)
	for i := 0; i < int(r.size); {
		a := base + c.shared + uint64(r.shared) + uint64(i)
		n := min(16-int(a&15), int(r.size)-i)
		f(swizzled(a, c.swizzle)-base, i, n)
		i += n
	}
}

// readSource takes a store's data out of shared memory.
func (b *block) readSource(c *bulkCopy) {
	if c.data != nil {
		return
	}
	c.data = make([]byte, c.bytes)
	for _, r := range c.rows {
		b.spread(c, r, func(at uint64, i, n int) {
			copy(c.data[int(r.shared)+i:], b.shared[at:at+uint64(n)])
		})
	}
	if r := b.race; r != nil && !r.off {
		r.bulkRead(c)
	}
}

// writeRows writes a store's data to global memory.
func (b *block) writeRows(c *bulkCopy) {
	for _, r := range c.rows {
		if r.n == 0 {
			continue
		}
		src := c.data[r.shared+r.skip:][:r.n]
		c.w.globalPieces(c.in, c.op.global, c.lane, r.global, int(r.n), true, eventAsync, func(dst []byte, at int) {
			if c.op.reduce == nil {
				copy(dst, src[at:])
				return
			}
			size := c.op.typ.Size()
			for i := 0; i+size <= len(dst); i += size {
				writeElement(dst[i:], size, c.op.reduce(readElement(dst[i:], size), readElement(src[at+i:], size), 0))
			}
		})
	}
}

// landLate completes the oldest copy that somebody may wait for, when nobody
// can go on; false if none is in flight.
func (b *block) landLate() bool {
	for _, c := range b.flight {
		if c.op.load {
			b.land(c)
			return true
		}
	}
	if len(b.flight) > 0 {
		b.land(b.flight[0])
		return true
	}
	return false
}

// landSome completes copies at moments left to chance; it says whether it did.
func (b *block) landSome() bool {
	some := false
	for len(b.flight) > 0 && b.pick.below(4) == 0 {
		b.land(b.flight[b.pick.below(len(b.flight))])
		some = true
	}
	return some
}

// landAll completes everything at the block's end. What still has to be read
// from shared memory then may find it gone.
func (b *block) landAll() {
	for len(b.flight) > 0 {
		c := b.flight[0]
		if !c.op.load && c.data == nil && b.race != nil {
			addr := c.shared + uint64(b.sharedBase)
			c.w.enter(c.w.base)
			c.w.faultAt(bench.AsyncCopyRace, c.in, c.lane, &addr, "shared", "the block ends while the copy still reads its shared memory")
		}
		b.land(c)
	}
}

// countBulk counts a copy's traffic.
func (b *block) countBulk(c *bulkCopy) {
	n := &b.counts.global.Writes
	if c.op.load {
		n = &b.counts.global.Copies
	}
	n.Requests++
	for _, r := range c.rows {
		if r.n > 0 {
			n.Bytes += int64(r.n)
			n.Sectors += int64((r.global+uint64(r.n)-1)>>5 - r.global>>5 + 1)
		}
	}
	s := &b.counts.shared.Operands
	s.Requests++
	s.Bytes += c.bytes
	waves := int64(math.Ceil(float64(c.bytes) / 128))
	s.Wavefronts += waves
	s.Ideal += waves
}

// globalPieces calls f for the pieces of a range of global memory, as the block
// sees it, to read or to write: where watched, for the part in each page. It
// stops, false, after a report.
func (w *warp) globalPieces(in *inst, m *memOp, lane int, addr uint64, n int, write bool, flags eventFlags, f func(b []byte, at int)) bool {
	r := w.b.race
	if r == nil {
		al, off := w.globalBytes(in, lane, addr, n, write)
		if al == nil {
			return false
		}
		if write && al.undef != nil {
			al.defineShared(off, int64(n))
		}
		f(al.data[off:][:n], 0)
		return true
	}
	at := side{w: w, in: in, lane: lane, space: ptx.SpaceGlobal, write: write}
	if !r.off {
		at.id = r.eventFor(w, in, m, flags)
	}
	for i := 0; i < n; {
		k := min(n-i, shadowSize-int((addr+uint64(i))&shadowMask))
		at.addr = addr + uint64(i)
		b := r.access(w, r.page(w, at.addr), &at, k)
		if b == nil {
			return false
		}
		f(b[:k], i)
		i += k
	}
	return true
}

// readRange reads a range of global memory as the block sees it.
func (w *warp) readRange(in *inst, m *memOp, lane int, addr uint64, dst []byte, flags eventFlags) bool {
	return w.globalPieces(in, m, lane, addr, len(dst), false, flags, func(b []byte, at int) { copy(dst[at:], b) })
}
