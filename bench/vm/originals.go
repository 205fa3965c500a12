package vm

import (
	"sync"
	"unsafe"
)

// originals let blocks that run beside one another see global memory as it was at
// the start until they have their turn, so that what they see does not depend on how
// far others are. Turns come first in the order of index. Once blocks have written
// much, those from some index on start from what memory holds when all before it
// have had their turn; until then they do not begin.
type originals struct {
	memory sync.RWMutex
	keeps  bool
	lines  arena[original]
	list   []uint32 // of lines that are in use
	rows   int64    // bytes of what finds them
	most   int      // to keep before blocks start from later memory

	// Under the launch's lock.
	turns int64 // blocks that have had their turn: all before this
	from  int64 // the first block that starts from later memory; 0 is not decided
}

// original is a line that was written to, as it was.
type original struct {
	al   *allocation
	line int64 // of the allocation
	data [pageLineSize]byte
}

// ahead is how many blocks may begin before one of them has its turn: as many as
// there can be that see an older start than they need to. It depends on nothing, as
// what blocks see does not.
const ahead = 32

// read gives lines of a page what its block may see.
func (o *originals) read(p *page, lines lineSet, hadTurn bool) {
	o.memory.RLock()
	defer o.memory.RUnlock()
	for s := lines; s != 0; s &= s - 1 {
		i := s.first()
		line, to := p.off>>pageLineBits+int64(i), p.data[i<<pageLineBits:min((i+1)<<pageLineBits, p.n)]
		if p.al.originals != nil && !hadTurn && p.al.originals[line] != 0 {
			copy(to, o.lines.at(p.al.originals[line] - 1).data[:])
		} else {
			copy(to, p.al.data[line<<pageLineBits:])
		}
		if p.al.undef != nil {
			p.undef[i] = p.al.undef[line]
			p.someUndefined = p.someUndefined || p.undef[i] != 0
		}
	}
}

// write writes a page back.
func (o *originals) write(p *page) {
	o.memory.Lock()
	defer o.memory.Unlock()
	for s := p.lines; o.keeps && s != 0; s &= s - 1 {
		if i := s.first(); p.written[i] != 0 {
			o.keep(p.al, p.off>>pageLineBits+int64(i))
		}
	}
	p.writeBack()
}

// keep keeps a line of an allocation as it is, if it is kept no earlier one.
func (o *originals) keep(al *allocation, line int64) {
	if al.originals == nil {
		al.originals = make([]uint32, lines(al.size))
		o.rows += 4 * lines(al.size)
	}
	if al.originals[line] != 0 {
		return
	}
	n := o.lines.take()
	al.originals[line] = n + 1
	old := o.lines.at(n)
	old.al, old.line = al, line
	copy(old.data[:], al.data[line<<pageLineBits:])
	o.list = append(o.list, n)
}

// lines is how many lines so many bytes are.
func lines(bytes int64) int64 { return (bytes + pageLineSize - 1) >> pageLineBits }

// drop forgets how memory was.
func (o *originals) drop() {
	o.memory.Lock()
	defer o.memory.Unlock()
	for _, n := range o.list {
		old := o.lines.at(n)
		old.al.originals[old.line] = 0
		o.lines.give(n)
	}
	o.list = o.list[:0]
	if o.excess() > 0 {
		o.lines = arena[original]{}
	}
}

// end is for when nobody reads what memory was any more.
func (o *originals) end() {
	o.drop()
	o.keeps = false
}

// size is how many bytes are kept.
func (o *originals) size() int64 { return o.rows + o.lines.size() + 4*int64(cap(o.list)) }

// excess is how many bytes are kept beyond what there are to be.
func (o *originals) excess() int64 {
	return max(o.lines.size()-int64(o.most)*int64(unsafe.Sizeof(original{})), 0)
}

// mayBegin says whether a block may begin.
func (o *originals) mayBegin(order int64) bool {
	return order < o.turns+ahead && (o.from == 0 || order < o.from)
}

// hadTurn notes that a block has its turn for the first time, and has written back.
func (l *launch) hadTurn(b *block) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := &l.before
	o.turns = b.order + 1
	switch {
	case o.turns == l.total:
		o.end()
	case o.from > 0 && o.turns >= o.from:
		o.drop()
		o.from = 0
	case o.from == 0 && len(o.list) >= o.most:
		o.from = b.order + ahead
	}
	l.changed.Broadcast()
}
