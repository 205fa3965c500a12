package vm

import "sync"

// originals let blocks that run beside one another see global memory as it was at
// the start until they have their turn, so that what they see does not depend on how
// far others are. Turns come first in the order of index. Once blocks have written
// much, those from some index on start from what memory holds when all before it
// have had their turn; until then they do not begin.
type originals struct {
	memory sync.RWMutex
	keeps  bool
	list   []*original
	free   []*original
	most   int // pages to keep before blocks start from later memory

	// Under the launch's lock.
	turns int64 // blocks that have had their turn: all before this
	from  int64 // the first block that starts from later memory; 0 is not decided
}

// original is a page as it was: the lines that were written to.
type original struct {
	al    *allocation
	page  int64 // of the allocation
	lines lineSet
	data  [shadowSize]byte
}

// ahead is how many blocks may begin before one of them has its turn: as many as
// there can be that see an older start than they need to. It depends on nothing, as
// what blocks see does not.
const ahead = 32

// read gives lines of a page what its block may see.
func (o *originals) read(p *page, lines lineSet, hadTurn bool) {
	o.memory.RLock()
	defer o.memory.RUnlock()
	var old *original
	if p.al.originals != nil && !hadTurn {
		old = p.al.originals[p.off>>shadowBits]
	}
	for s := lines; s != 0; s &= s - 1 {
		i := s.first()
		first, end := i<<pageLineBits, min((i+1)<<pageLineBits, p.n)
		if old != nil && old.lines>>i&1 != 0 {
			copy(p.data[first:end], old.data[first:])
		} else {
			copy(p.data[first:end], p.al.data[p.off+int64(first):])
		}
		if p.al.undef != nil {
			p.undef[i] = p.al.undef[p.off>>pageLineBits+int64(i)]
			p.someUndefined = p.someUndefined || p.undef[i] != 0
		}
	}
}

// write writes a page back.
func (o *originals) write(p *page) {
	o.memory.Lock()
	defer o.memory.Unlock()
	if o.keeps {
		old := o.of(p)
		for s := p.lines &^ old.lines; s != 0; s &= s - 1 {
			if i := s.first(); p.written[i] != 0 {
				first, end := i<<pageLineBits, min((i+1)<<pageLineBits, p.n)
				copy(old.data[first:end], p.al.data[p.off+int64(first):])
				old.lines |= 1 << i
			}
		}
	}
	p.writeBack()
}

// of is what is kept of a page.
func (o *originals) of(p *page) *original {
	al, page := p.al, p.off>>shadowBits
	if al.originals == nil {
		al.originals = make([]*original, (al.size+shadowSize-1)>>shadowBits)
	}
	old := al.originals[page]
	if old == nil {
		if n := len(o.free) - 1; n >= 0 {
			old, o.free = o.free[n], o.free[:n]
		} else {
			old = new(original)
		}
		old.al, old.page, old.lines = al, page, 0
		al.originals[page] = old
		o.list = append(o.list, old)
	}
	return old
}

// drop forgets how memory was.
func (o *originals) drop() {
	o.memory.Lock()
	defer o.memory.Unlock()
	for _, old := range o.list {
		old.al.originals[old.page] = nil
	}
	o.free = append(o.free, o.list[:min(max(o.most-len(o.free), 0), len(o.list))]...)
	clear(o.list)
	o.list = o.list[:0]
}

// end is for when nobody reads what memory was any more.
func (o *originals) end() {
	o.drop()
	o.keeps = false
}

// size is how many bytes are kept.
func (o *originals) size() int64 { return int64(len(o.list)+len(o.free)) * shadowSize }

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
