package vm

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// Tensor memory (PTX ISA 9.7.16.1) is 128 lanes of 512 columns of 32 bits that
// each block has beside its shared memory, and that tcgen05 alone reaches. Its
// columns are allocated while a kernel runs.

const (
	tensorLanes   = 128
	tensorColumns = 512
	tensorUnit    = 32 // columns that are allocated together
	tensorGroup   = 16 // lanes that the race detector tells apart
)

// tensorAddress is a lane, in the upper half, and a column.
type tensorAddress uint32

func (a tensorAddress) lane() int   { return int(a>>16) & 0x3fff }
func (a tensorAddress) column() int { return int(a & 0xffff) }

func (a tensorAddress) String() string {
	return fmt.Sprintf("%#x (lane %d, column %d)", uint32(a), a.lane(), a.column())
}

// tensorMemory is a block's.
type tensorMemory struct {
	words   [tensorLanes][tensorColumns]uint32
	undef   [tensorLanes][tensorColumns]uint8 // the bytes of a word that are undefined, a bit each
	origins map[tensorAddress]uint32          // of undefined words that something undefined was written to

	owner        [tensorColumns / tensorUnit]*tensorAllocation
	freed        [tensorColumns / tensorUnit]*tensorWork // what gave columns back that are nobody's
	last         int                                     // columns of the latest allocation, which later ones must not exceed; 0: none yet
	relinquished bool
	asked        *tensorRequest // by the warp that waits for the other block of a pair
	answer       *tensorAnswer  // to it
	uses         []*tensorUse   // that later ones are compared with
}

// tensorAllocation is columns that are in use.
type tensorAllocation struct {
	from, n int
	by      *ptx.Instruction
	warp    int
}

// tensorRequest is an allocation, or its end, that two blocks make together.
type tensorRequest struct {
	free bool
	from int
	n    int
}

// tensorAnswer is what a pair's request came to.
type tensorAnswer struct{ from int }

// tensorMemory is the block's tensor memory, which is made when first used.
func (c *cta) tensorMemory() *tensorMemory {
	if c.tensor == nil {
		c.tensor = new(tensorMemory)
		c.tensor.reset()
	}
	return c.tensor
}

func (t *tensorMemory) reset() {
	for lane := range t.words {
		clear(t.words[lane][:])
		for i := range t.undef[lane] {
			t.undef[lane][i] = 0xf
		}
	}
	clear(t.origins)
	clear(t.owner[:])
	clear(t.freed[:])
	t.last, t.relinquished, t.asked, t.answer, t.uses = 0, false, nil, nil, t.uses[:0]
}

// free says whether columns are nobody's.
func (t *tensorMemory) free(from, n int) bool {
	for u := from / tensorUnit; u < (from+n)/tensorUnit; u++ {
		if t.owner[u] != nil {
			return false
		}
	}
	return true
}

// allocated says whether all of some columns are in use.
func (t *tensorMemory) allocated(from, n int) bool {
	if from < 0 || n < 1 || from+n > tensorColumns {
		return false
	}
	for u := from / tensorUnit; u <= (from+n-1)/tensorUnit; u++ {
		if t.owner[u] == nil {
			return false
		}
	}
	return true
}

// room finds columns that are free in all of some blocks; -1 is nowhere.
func room(n int, all ...*tensorMemory) int {
	for from := 0; from+n <= tensorColumns; from += tensorUnit {
		ok := true
		for _, t := range all {
			ok = ok && t.free(from, n)
		}
		if ok {
			return from
		}
	}
	return -1
}

// take allocates columns; their contents are undefined.
func (t *tensorMemory) take(a *tensorAllocation) {
	for u := a.from / tensorUnit; u < (a.from+a.n)/tensorUnit; u++ {
		t.owner[u], t.freed[u] = a, nil
	}
	for lane := range t.undef {
		for i := range t.undef[lane][a.from : a.from+a.n] {
			t.undef[lane][a.from+i] = 0xf
		}
	}
	for at := range t.origins {
		if c := at.column(); c >= a.from && c < a.from+a.n {
			delete(t.origins, at)
		}
	}
}

// give frees an allocation; false if there is none such.
func (t *tensorMemory) give(from, n int) bool {
	if from%tensorUnit != 0 || from >= tensorColumns {
		return false
	}
	a := t.owner[from/tensorUnit]
	if a == nil || a.from != from || a.n != n {
		return false
	}
	for u := from / tensorUnit; u < (from+n)/tensorUnit; u++ {
		t.owner[u] = nil
	}
	return true
}

// set writes bytes of a word, a bit of which each; bits says which of the
// written ones are undefined.
func (t *tensorMemory) set(lane, column int, v uint32, which, undef uint8, from uint32) {
	mask := byteMask(which)
	w := &t.words[lane][column]
	*w = *w&^mask | v&mask
	u := &t.undef[lane][column]
	*u = *u&^which | undef&which
	if undef&which != 0 {
		if t.origins == nil {
			t.origins = map[tensorAddress]uint32{}
		}
		t.origins[tensorAddress(lane<<16|column)] = from
	}
}

// byteMask is the bits of the bytes that a mask names.
func byteMask(which uint8) (m uint32) {
	for i := range 4 {
		if which>>i&1 != 0 {
			m |= 0xff << (8 * i)
		}
	}
	return m
}

// undefinedWord is where an undefined word came from: what was written to it, or
// that nothing was.
func (w *warp) undefinedWord(t *tensorMemory, lane, column int, src *ptx.Instruction) uint32 {
	if from, ok := t.origins[tensorAddress(lane<<16|column)]; ok {
		return from
	}
	name := fmt.Sprintf("tensor memory in lane %d, column %d", lane, column)
	if src != nil {
		name += fmt.Sprintf(", which %s at line %d reads,", opcode(src), src.Pos.Line)
	}
	return w.b.addOrigin(origin{class: bench.UninitialisedRegister, name: name, taken: src, warp: w.index})
}

// tensorOperand is an address in tensor memory, [register + offset].
type tensorOperand struct {
	slot   int32
	offset uint32
}

func (o *tensorOperand) of(w *warp, lane int) tensorAddress {
	return tensorAddress(w.r[o.slot][lane] + o.offset)
}

// tensorAddress binds an address in tensor memory, with brackets or without.
func (d *decoder) tensorAddress(in *inst, to *tensorOperand, o *ptx.Operand) {
	if o.Kind == ptx.OpAddr && len(o.Elems()) == 1 {
		o = &o.Elems()[0]
	}
	if o.Kind == ptx.OpReg {
		to.offset = uint32(o.Value)
	}
	d.source(in, &to.slot, o, ptx.B32, exact)
}

// tensorArea is columns [from, to) of some groups of 16 lanes, of a block's
// tensor memory.
type tensorArea struct {
	c        *cta
	groups   uint8
	from, to int
}

// lanesArea is n columns of lanes [first, first+count).
func lanesArea(c *cta, first, count, from, n int) tensorArea {
	a := tensorArea{c: c, from: from, to: from + n}
	for g := first / tensorGroup; g <= (first+count-1)/tensorGroup && g < 8; g++ {
		a.groups |= 1 << g
	}
	return a
}

func (a *tensorArea) overlaps(b *tensorArea) bool {
	return a.c == b.c && a.groups&b.groups != 0 && a.from < b.to && b.from < a.to
}

func (a *tensorArea) covers(b *tensorArea) bool {
	return a.c == b.c && b.groups&^a.groups == 0 && a.from <= b.from && b.to <= a.to
}

func (a *tensorArea) lane() int { return bits.TrailingZeros8(a.groups) * tensorGroup }

// inside reports an area that is not all allocated.
func (w *warp) inside(in *inst, lane int, what string, a *tensorArea) bool {
	if a.c.tensor != nil && a.groups != 0 && a.c.tensor.allocated(a.from, a.to-a.from) {
		return true
	}
	if x := w.freedMeanwhile(lane, a); x != nil {
		now := &tensorUse{tensorArea: *a, work: w.newTensorWork(tensorLoad, in, lane)}
		w.reportTensorAs(bench.AsyncCopyRace, now, &tensorUse{tensorArea: *a, work: x}, "uses", "gave it back and nothing orders the two")
		return false
	}
	addr := uint64(a.lane()<<16 | a.from&0xffff)
	who := ""
	if a.c != w.cta {
		who = fmt.Sprintf(" of block %v", a.c.id)
	}
	w.badTensor(in, lane, addr, "%s: columns %d to %d of tensor memory%s are not all allocated", what, a.from, a.to-1, who)
	return false
}

// badTensor reports an address of tensor memory that is none. It came from shared
// memory, where an allocation put it: so it is held back, and where a race is about
// that, it is the cause.
func (w *warp) badTensor(in *inst, lane int, addr uint64, format string, args ...any) {
	w.faultIn(w.b.astray(), bench.BadDescriptor, in, lane, &addr, "tensor", format, args...)
}

// astray is the list for faults of addresses of tensor memory.
func (b *block) astray() *faultList {
	if b.race == nil || b.race.off {
		return &b.faults
	}
	return &b.race.astray
}

// settleAstray decides at the block's end about addresses of tensor memory.
func (r *raceState) settleAstray() {
	if !slices.ContainsFunc(r.b.faults.keys, faultKey.ofAllocation) {
		r.b.faults.merge(&r.astray)
	}
	r.astray = faultList{most: r.b.faults.most}
}

// ofAllocation says whether a fault is a race for the address that tcgen05.alloc wrote.
func (k faultKey) ofAllocation() bool {
	const alloc = "tcgen05.alloc"
	return checkRaces.has(mustBit(string(k.class))) && (k.in != nil && k.in.Name == alloc || k.other != nil && k.other.Name == alloc)
}

// freedMeanwhile is what gave some of an area's columns back with nothing to order
// that and a use by a thread that comes now; nil is nothing.
func (w *warp) freedMeanwhile(lane int, a *tensorArea) *tensorWork {
	r, t := w.b.race, a.c.tensor
	if r == nil || r.off || t == nil || a.from < 0 || !w.b.l.reports(bench.AsyncCopyRace) {
		return nil
	}
	for u := a.from / tensorUnit; u < min((a.to+tensorUnit-1)/tensorUnit, len(t.freed)); u++ {
		if x := t.freed[u]; x != nil && !r.tensorKnown(x, w, lane) {
			return x
		}
	}
	return nil
}

// checkTensorLeft reports tensor memory that a block has not given back when it
// ends.
func (c *cta) checkTensorLeft() {
	if c.tensor == nil || !c.b.l.reports(bench.BadDescriptor) {
		return
	}
	for u, a := range c.tensor.owner {
		if a == nil || a.from != u*tensorUnit {
			continue
		}
		if f := c.b.astray().add(faultKey{class: bench.BadDescriptor, in: a.by}, 1); f != nil {
			addr := uint64(a.from)
			f.Kernel, f.Site = c.b.l.prog.name, c.b.site(a.warp, 0, a.by)
			f.Address, f.Space = &addr, "tensor"
			f.Message = fmt.Sprintf("the block ends and has not given back %d columns of tensor memory from column %d", a.n, a.from)
		}
	}
}
