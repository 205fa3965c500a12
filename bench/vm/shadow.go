package vm

import "unsafe"

// shadow is what a launch remembers of the blocks' accesses to a line of global memory,
// word by word: the last write, and a read.
type shadow struct {
	w, r packedLine
	more uint32 // the number of a moreTraces; 0 is none
}

// moreTraces are what few lines have.
type moreTraces struct {
	rivals packedLine                // strong writes that others' strong writes came after
	older  [wordBytes - 1]packedLine // of words that blocks wrote in parts: the writes before w
}

// wordBytes is how many blocks may have written the bytes of a word last.
const wordBytes = 4

// shadows are those of all lines. Where there is no more room, what is no row is dropped
// of reads, and of words that several blocks wrote, and where the originals leave none, of
// writes too: a race may be missed then, and none is made up.
type shadows struct {
	of      []*allocation // that have some, in the order of their first accesses
	rows    int64         // bytes of lines
	most    int64         // bytes of all, but for writes
	pressed int64         // bytes of those that the originals have taken
	odd     arena[lineTraces]
	loose   int // odd lines that are not of last writes
	more    arena[moreTraces]
	hand    struct{ al, line int } // where to look for loose ones
}

// openLine is the line that is being compared: its traces, unpacked.
type openLine struct {
	s      *shadow
	w, r   lineTraces
	rivals lineTraces
	rival  bool // there are some
	older  [wordBytes - 1]lineTraces
	parts  int // of older that are in use
}

// each calls f for what is in use.
func (o *openLine) each(f func(line *lineTraces)) {
	f(&o.w)
	f(&o.r)
	if o.rival {
		f(&o.rivals)
	}
	for i := range o.parts {
		f(&o.older[i])
	}
}

// load opens the shadow of a line of a block's page.
func (x *across) load(p *page, line int) {
	x.sweep()
	x.shadows.open(&x.line, x.shadows.shadow(p, line))
}

// store packs the line that is open.
func (x *across) store() { x.shadows.store(&x.line) }

// shadow is the shadow of a line of a block's page.
func (t *shadows) shadow(p *page, line int) *shadow {
	if p.al.shadows == nil {
		p.al.shadows = make([]shadow, lines(p.al.size))
		t.of = append(t.of, p.al)
		t.rows += int64(len(p.al.shadows)) * int64(unsafe.Sizeof(shadow{}))
	}
	return &p.al.shadows[p.off>>pageLineBits+int64(line)]
}

// size is how many bytes are kept.
func (t *shadows) size() int64 { return t.rows + t.odd.size() + t.more.size() }

// open unpacks a shadow's traces.
func (t *shadows) open(o *openLine, s *shadow) {
	o.s, o.parts, o.rival = s, 0, false
	t.unpack(s.w, &o.w, nil)
	t.unpack(s.r, &o.r, &o.w)
	if s.more == 0 {
		return
	}
	more := t.more.at(s.more - 1)
	if o.rival = more.rivals != (packedLine{}); o.rival {
		t.unpack(more.rivals, &o.rivals, nil)
	}
	for o.parts < len(more.older) && more.older[o.parts] != (packedLine{}) {
		t.unpack(more.older[o.parts], &o.older[o.parts], nil)
		o.parts++
	}
}

func (t *shadows) unpack(l packedLine, to, writes *lineTraces) {
	switch {
	case l == (packedLine{}):
		*to = lineTraces{}
	case l.kind() == oddLine:
		*to = *t.odd.at(uint32(l.first))
	case l.kind() == besideWrites:
		l.unpackBeside(to, writes)
	default:
		l.unpack(to)
	}
}

// store packs a line that was open.
func (t *shadows) store(o *openLine) {
	s := o.s
	t.pack(&s.w, &o.w, false)
	if l, ok := o.r.beside(&o.w); ok {
		t.release(s.r, true)
		s.r = l
	} else {
		t.pack(&s.r, &o.r, true)
	}
	if o.rival || o.parts > 0 || s.more != 0 {
		t.storeMore(o)
	}
}

// storeMore packs what few lines have.
func (t *shadows) storeMore(o *openLine) {
	s := o.s
	if s.more == 0 {
		if len(t.more.free) == 0 && !t.room() {
			return
		}
		s.more = t.more.take() + 1
	}
	more := t.more.at(s.more - 1)
	if o.rival {
		t.pack(&more.rivals, &o.rivals, true)
	}
	kept := 0
	for i := range o.parts {
		l := &more.older[kept]
		if t.pack(l, &o.older[i], true); *l != (packedLine{}) {
			kept++
		}
	}
	for ; kept < len(more.older); kept++ {
		t.release(more.older[kept], true)
		more.older[kept] = packedLine{}
	}
	if *more == (moreTraces{}) {
		t.more.give(s.more - 1)
		s.more = 0
	}
}

// pack keeps traces in place of those of a line. Where there is no room for such as are
// no row, they are dropped if they are loose, or else others.
func (t *shadows) pack(l *packedLine, from *lineTraces, loose bool) {
	row, ok := from.row()
	if !ok {
		if l.kind() == oddLine {
			*t.odd.at(uint32(l.first)) = *from
			return
		}
		if t.roomForOdd(loose) {
			n := t.odd.take()
			*t.odd.at(n) = *from
			*l = packedLine{trace(n), oddLine}
			if loose {
				t.loose++
			}
			return
		}
	}
	t.release(*l, loose)
	*l = row
}

// release gives the room of a line back.
func (t *shadows) release(l packedLine, loose bool) {
	if l.kind() != oddLine {
		return
	}
	t.odd.give(uint32(l.first))
	if loose {
		t.loose--
	}
}

// room says whether there is room for more.
func (t *shadows) room() bool { return t.size()+t.pressed < t.most }

// roomForOdd is room for an odd line. For one that is not loose it is made, if need be.
func (t *shadows) roomForOdd(loose bool) bool {
	if len(t.odd.free) > 0 || t.room() {
		return true
	}
	if !loose && t.loose > 0 {
		t.drop()
	}
	return !loose && (t.pressed == 0 || len(t.odd.free) > 0)
}

// press says how many bytes others have taken. Where far too many are in use then, what
// is no row is dropped.
func (t *shadows) press(n int64) {
	t.pressed = n
	if t.odd.size() == 0 || t.size()+n < t.most+t.most/8 {
		return
	}
	for _, al := range t.of {
		for i := range al.shadows {
			s := &al.shadows[i]
			if s.w.kind() == oddLine {
				s.w = packedLine{}
			}
			if k := s.r.kind(); k == oddLine || k == besideWrites {
				s.r = packedLine{}
			}
			s.more = 0
		}
	}
	t.odd, t.more, t.loose = arena[lineTraces]{}, arena[moreTraces]{}, 0
}

// drop makes room for an odd line of writes: the next line that has anything loose
// loses that.
func (t *shadows) drop() {
	for range t.rows / int64(unsafe.Sizeof(shadow{})) {
		h := &t.hand
		if h.line >= len(t.of[h.al].shadows) {
			h.al, h.line = (h.al+1)%len(t.of), 0
		}
		s := &t.of[h.al].shadows[h.line]
		h.line++
		if t.dropFrom(s) {
			return
		}
	}
}

// dropFrom drops what is odd of a line, but for its last writes; false if that is nothing.
func (t *shadows) dropFrom(s *shadow) bool {
	before := len(t.odd.free)
	if s.r.kind() == oddLine {
		t.release(s.r, true)
		s.r = packedLine{}
	}
	if s.more != 0 {
		more := t.more.at(s.more - 1)
		t.release(more.rivals, true)
		for _, l := range more.older {
			t.release(l, true)
		}
		*more = moreTraces{}
		t.more.give(s.more - 1)
		s.more = 0
	}
	return len(t.odd.free) > before
}

// keepWrite makes a write the last of a word.
func (x *across) keepWrite(word int, t trace) {
	o := &x.line
	old := o.w[word]
	o.w[word] = t
	if x.access(t).flags&eventStrong == 0 { // who races with what was before races with it
		o.r[word] = o.r[word].without(t)
		if o.rival {
			o.rivals[word] = o.rivals[word].without(t)
		}
	} else if old != 0 {
		x.keepRival(word, old, t)
	}
	if old == 0 && o.parts == 0 {
		return
	}
	if rest := old.without(t); rest == 0 || x.access(old).block != x.access(t).block {
		o.keepRest(word, rest, t)
	} else { // the block's bytes together
		o.w[word] = t | trace(old.bytes())
		o.keepRest(word, 0, t)
	}
}

// keepRival keeps a write that a strong one is about to replace: another block's strong
// one, which plain reads by the block are held against, or a plain one, which strong
// accesses by others are.
func (x *across) keepRival(word int, old, t trace) {
	a, b, o := x.access(old), x.access(t), &x.line
	plain := a.flags&(eventStrong|eventAsync) == 0
	if old.bytes()&t.bytes() == 0 || !plain && (a.block == b.block || a.flags&eventStrong == 0) {
		return
	}
	if !o.rival {
		o.rivals, o.rival = lineTraces{}, true
	}
	if was := o.rivals[word]; plain || was == 0 || x.access(was).flags&eventStrong != 0 {
		o.rivals[word] = old
	}
}

// keepRest keeps a write of some bytes of a word beside the one that came after, and of
// those before it what neither is of.
func (o *openLine) keepRest(word int, rest, last trace) {
	for i := 0; i < o.parts; i++ {
		e := &o.older[i][word]
		*e = e.without(last)
		if *e == 0 {
			*e, rest = rest, 0
		}
	}
	if rest != 0 && o.parts < len(o.older) {
		o.older[o.parts] = lineTraces{}
		o.older[o.parts][word] = rest
		o.parts++
	}
}

// keepRead notes that a block read a word.
func (x *across) keepRead(word int, t trace) {
	old := x.line.r[word]
	switch {
	case old == 0:
		x.line.r[word] = t
	case x.access(old).block != x.access(t).block:
		x.line.r[word] = t | trace(old.bytes())
	default:
		x.line.r[word] = old | trace(t.bytes())
	}
}

// limits are of what a launch keeps for the comparison of blocks.
type limits struct {
	originals int    // lines as they were at the start
	records   uint32 // of accesses
	shadows   int64  // bytes
	located   int64  // bytes of what releases pass on
}

// limitsFor are those of a launch over buffers of so many bytes: all together, and what
// Go's collector leaves unused of it, stay below twice those and 64 MiB.
func limitsFor(buffers int64) limits {
	return limits{originals: 8 << 20 / pageLineSize, records: mostRecords, shadows: buffers*7/5 + 16<<20, located: buffers/8 + 16<<20}
}
