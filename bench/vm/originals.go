package vm

import "sync"

// originals let blocks that run beside one another see global memory as it was at
// the start until they have their turn, so that what they see does not depend on how
// far others are. Turns come first in the order of index. Once blocks have written
// much, those from some index on start from what memory holds when all before it
// have had their turn; until then they do not begin.
type originals struct {
	memory sync.RWMutex
	pages  map[uint64]*[shadowSize]byte // what was written to: as it was
	free   []*[shadowSize]byte
	most   int // pages to keep before blocks start from later memory

	// Under the launch's lock.
	turns int64 // blocks that have had their turn: all before this
	from  int64 // the first block that starts from later memory; 0 is not decided
}

// ahead is how many blocks may begin before one of them has its turn: as many as
// there can be that see an older start than they need to. It depends on nothing, as
// what blocks see does not.
const ahead = 32

// read gives a page what its block may see.
func (o *originals) read(p *page, hadTurn bool) {
	o.memory.RLock()
	defer o.memory.RUnlock()
	if old := o.pages[p.key]; old != nil && !hadTurn {
		copy(p.data[:p.n], old[:])
	} else {
		copy(p.data[:p.n], p.al.data[p.off:])
	}
	if p.al.undef != nil {
		copy(p.undef[:], p.al.undef[p.off>>6:])
		for _, u := range p.undef {
			p.someUndefined = p.someUndefined || u != 0
		}
	}
}

// write writes a page back.
func (o *originals) write(p *page) {
	o.memory.Lock()
	defer o.memory.Unlock()
	if o.pages != nil && o.pages[p.key] == nil {
		old := o.spare()
		copy(old[:p.n], p.al.data[p.off:])
		o.pages[p.key] = old
	}
	p.writeBack()
}

func (o *originals) spare() *[shadowSize]byte {
	n := len(o.free) - 1
	if n < 0 {
		return new([shadowSize]byte)
	}
	p := o.free[n]
	o.free = o.free[:n]
	return p
}

// drop forgets how memory was.
func (o *originals) drop() {
	o.memory.Lock()
	defer o.memory.Unlock()
	for _, p := range o.pages { // any serves as well as another
		if len(o.free) >= o.most {
			break
		}
		o.free = append(o.free, p)
	}
	clear(o.pages)
}

// size is how many bytes are kept.
func (o *originals) size() int64 { return int64(len(o.pages)+len(o.free)) * shadowSize }

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
		o.drop() // and nothing is kept from now on
		o.pages = nil
	case o.from > 0 && o.turns >= o.from:
		o.drop()
		o.from = 0
	case o.from == 0 && len(o.pages) >= o.most:
		o.from = b.order + ahead
	}
	l.changed.Broadcast()
}
