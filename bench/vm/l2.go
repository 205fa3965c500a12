package vm

import (
	"maps"
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/kgen-dev/kgen/bench"
)

// Which bytes of global memory a launch touches, and what a cache makes of it.

// touched are the bytes of an allocation that a launch read, or wrote: a bit
// each.
type touched struct {
	words atomic.Pointer[[]atomic.Uint64]
}

// note adds a range.
func (t *touched) note(size, off, n int64) {
	words := t.words.Load()
	if words == nil {
		made := make([]atomic.Uint64, (size+63)/64)
		if t.words.CompareAndSwap(nil, &made) {
			words = &made
		} else {
			words = t.words.Load()
		}
	}
	for n > 0 {
		bit := off & 63
		k := min(64-bit, n)
		mask := ^uint64(0) >> (64 - k) << bit
		if w := &(*words)[off>>6]; w.Load()&mask != mask {
			w.Or(mask)
		}
		off += k
		n -= k
	}
}

// take is which bytes were touched and how many, and forgets them.
func (t *touched) take() (list []uint64, n int64) {
	words := t.words.Swap(nil)
	if words == nil {
		return nil, 0
	}
	list = make([]uint64, len(*words))
	for i := range *words {
		list[i] = (*words)[i].Load()
		n += int64(bits.OnesCount64(list[i]))
	}
	return list, n
}

// reads and writes say what traffic does to global memory.
func (k trafficKind) reads() bool  { return k != globalStores && k != globalWrites }
func (k trafficKind) writes() bool { return k != globalLoads && k != globalCopies }

// reach notes that a request touches a range of global memory. A request's
// ranges come in order of their addresses, after newRequest.
func (w *warp) reach(m *memOp, addr, n uint64, kind trafficKind) {
	b := w.b
	a := b.l.dev.mem.find(addr)
	if a == nil || addr < a.addr {
		return
	}
	off := int64(addr - a.addr)
	k := min(int64(n), a.size-off)
	if k <= 0 {
		return
	}
	if b.l.early && !b.waited {
		w.hasty(m, a, off, k, kind)
	}
	if kind.reads() {
		a.read.note(a.size, off, k)
	}
	if kind.writes() {
		a.written.note(a.size, off, k)
	}
	b.trace.add(addr, uint64(k), kind)
}

// The lines of L2, in 32-byte sectors.
const (
	lineBits    = 7
	lineBytes   = 1 << lineBits
	lineSectors = lineBytes / bench.SectorBytes
	l2Ways      = 16

	maxTrace = 1 << 23 // lines kept of the blocks that are resident together
)

// lineUse is a line that a request uses: its number, sectors, and how.
type lineUse uint64

const (
	useRead lineUse = 1 << (lineSectors + iota)
	useWrite
	useShift = lineSectors + 2
)

func (u lineUse) sectors() uint32 { return uint32(u) & (1<<lineSectors - 1) }

// lineTrace is the lines of L2 that a block uses, in order.
type lineTrace struct {
	uses  []lineUse
	limit int
	from  int      // the first of the request's
	more  [2]int64 // sectors read and written that were too many to keep
}

// newRequest begins a request: a sector counts once in each.
func (t *lineTrace) newRequest() { t.from = len(t.uses) }

func (t *lineTrace) add(addr, n uint64, kind trafficKind) {
	how := lineUse(0)
	if kind.reads() {
		how |= useRead
	}
	if kind.writes() {
		how |= useWrite
	}
	addr -= globalBase
	for end := addr + n; addr < end; addr = addr&^(lineBytes-1) + lineBytes {
		first := addr & (lineBytes - 1) >> 5
		last := (min(end, addr&^(lineBytes-1)+lineBytes) - 1) & (lineBytes - 1) >> 5
		sectors := lineUse(1<<(last+1) - 1<<first)
		use := lineUse(addr>>lineBits)<<useShift | how
		if k := len(t.uses); k > 0 && t.uses[k-1]&^(1<<lineSectors-1) == use && (k > t.from || t.uses[k-1]&sectors == 0) {
			t.uses[k-1] |= sectors
			continue
		}
		if len(t.uses) >= t.limit {
			k := int64(last - first + 1)
			if kind.reads() {
				t.more[0] += k
			}
			if kind.writes() {
				t.more[1] += k
			}
			continue
		}
		t.uses = append(t.uses, use|sectors)
	}
}

// l2Line is a line in the cache.
type l2Line struct {
	line  uint32 // its number
	valid uint8  // sectors
	dirty uint8
	age   uint64 // when it was used last; before the launch's start it is empty
}

// l2Cache is a model of a GPU's L2.
type l2Cache struct {
	parts [][]l2Line // of partSets sets each, a set after the other; made when needed
	sets  uint64
	now   uint64
	start uint64
	dirty int64 // sectors to be written back
}

const partSets = 64

// resize makes the cache as large as a GPU's, and empty.
func (c *l2Cache) resize(bytes int64) {
	sets := uint64(max(bytes/(lineBytes*l2Ways), 1))
	if c.sets != sets {
		c.sets, c.parts = sets, make([][]l2Line, (sets+partSets-1)/partSets)
	}
	c.now++
	c.start, c.dirty = c.now, 0
}

// set is the ways in which a line may be. Regular strides spread over the sets,
// as the hashes of GPUs have it.
func (c *l2Cache) set(line uint32) []l2Line {
	set := uint64(line) * 0x9e3779b97f4a7c15 >> 32 * c.sets >> 32
	part := &c.parts[set/partSets]
	if *part == nil {
		*part = make([]l2Line, partSets*l2Ways)
	}
	return (*part)[set%partSets*l2Ways:][:l2Ways]
}

// use looks a line up, and makes room for it if it is not there.
func (c *l2Cache) use(u lineUse, n *bench.L2Traffic) {
	line := uint32(u >> useShift)
	want := uint8(u.sectors())
	ways := c.set(line)
	c.now++
	at := -1
	oldest := 0
	for i := range ways {
		if ways[i].line == line && ways[i].age > c.start {
			at = i
			break
		}
		if ways[i].age < ways[oldest].age {
			oldest = i
		}
	}
	if at < 0 {
		at = oldest
		if ways[at].age > c.start {
			k := int64(bits.OnesCount8(ways[at].dirty))
			n.MemoryWrites += k
			c.dirty -= k
		}
		ways[at] = l2Line{line: line}
	}
	w := &ways[at]
	w.age = c.now
	total, hits := int64(bits.OnesCount8(want)), int64(bits.OnesCount8(want&w.valid))
	if u&useRead != 0 {
		n.Reads += total
		n.ReadHits += hits
		n.MemoryReads += total - hits
	}
	if u&useWrite != 0 {
		n.Writes += total
		n.WriteHits += hits
		c.dirty += int64(bits.OnesCount8(want &^ w.dirty))
		w.dirty |= want
	}
	w.valid |= want
}

// l2Run plays a launch's blocks through L2. Blocks that may be resident
// together make a wave; in a wave they take turns, a line each.
type l2Run struct {
	cache *l2Cache
	size  int64 // blocks in a wave
	total int64
	waves map[int64]*wave
	sum   bench.L2Traffic
}

// wave is the blocks of one wave that are done.
type wave struct {
	traces [][]lineUse // by place in the wave
	done   int64
	more   [2]int64
}

func newL2Run(cache *l2Cache, bytes, size, total int64) *l2Run {
	cache.resize(bytes)
	return &l2Run{cache: cache, size: min(size, total), total: total, waves: map[int64]*wave{}}
}

// traffic is all that came of it, when every block that is to end has ended.
func (r *l2Run) traffic() bench.L2Traffic {
	for _, k := range slices.Sorted(maps.Keys(r.waves)) {
		r.play(r.waves[k])
	}
	clear(r.waves)
	r.sum.MemoryWrites += r.cache.dirty
	r.cache.dirty = 0
	return r.sum
}

// done adds a block's trace. A wave that is complete is played.
func (r *l2Run) done(order int64, t *lineTrace) {
	k := order / r.size
	w := r.waves[k]
	if w == nil {
		w = &wave{traces: make([][]lineUse, min(r.size, r.total-k*r.size))}
		r.waves[k] = w
	}
	w.traces[order%r.size] = t.uses
	w.more[0] += t.more[0]
	w.more[1] += t.more[1]
	if w.done++; w.done == int64(len(w.traces)) {
		r.play(w)
		delete(r.waves, k)
	}
}

// play runs a wave through the cache. What was too much to keep hits as often
// as what was kept.
func (r *l2Run) play(w *wave) {
	before := r.sum
	live := w.traces
	for i := 0; len(live) > 0; i++ {
		rest := live[:0]
		for _, t := range live {
			if i < len(t) {
				r.cache.use(t[i], &r.sum)
				rest = append(rest, t)
			}
		}
		live = rest
	}
	reads, hits := r.sum.Reads-before.Reads, r.sum.ReadHits-before.ReadHits
	if more := w.more[0]; more > 0 && reads > 0 {
		k := more * hits / reads
		r.sum.Reads += more
		r.sum.ReadHits += k
		r.sum.MemoryReads += more - k
	}
	writes, hits := r.sum.Writes-before.Writes, r.sum.WriteHits-before.WriteHits
	if more := w.more[1]; more > 0 && writes > 0 {
		k := more * hits / writes
		r.sum.Writes += more
		r.sum.WriteHits += k
		r.sum.MemoryWrites += more - k
	}
}
