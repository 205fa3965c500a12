package vm

import "unsafe"

// shadow is what a launch remembers of the blocks' accesses to a page of
// global memory, word by word: the last write, and a read.
type shadow struct {
	w, r   *traces
	rivals *traces                 // strong writes that others' strong writes came after
	older  *[wordBytes - 1]*traces // of words that blocks wrote in parts: the writes before w
}

// wordBytes is how many blocks may have written the bytes of a word last.
const wordBytes = 4

// openPage is the page that is being compared: its traces, unpacked.
type openPage struct {
	s      *shadow
	w, r   pageTraces
	rivals pageTraces
	rival  bool // there are some
	older  [wordBytes - 1]pageTraces
	parts  int // of older that are in use
}

// load opens the shadow of a block's page.
func (x *across) load(p *page) {
	x.sweep()
	x.page.open(x.shadow(p))
}

// room says whether there is room for more.
func (x *across) room() bool { return x.kept < x.most }

// shadow is the shadow of a block's page.
func (x *across) shadow(p *page) *shadow {
	list := x.shadows[p.al]
	if list == nil {
		list = make([]shadow, (p.al.size+shadowSize-1)>>shadowBits)
		x.shadows[p.al] = list
		x.kept += int64(len(list)) * int64(unsafe.Sizeof(shadow{}))
	}
	return &list[p.off>>shadowBits]
}

// size is how many bytes a shadow's traces take.
func (s *shadow) size() int64 {
	n := s.w.size() + s.r.size() + s.rivals.size()
	if s.older != nil {
		n += int64(unsafe.Sizeof(*s.older))
		for _, t := range s.older {
			n += t.size()
		}
	}
	return n
}

// open unpacks a shadow's traces.
func (o *openPage) open(s *shadow) {
	o.s, o.parts = s, 0
	if o.rival = s.rivals != nil; o.rival {
		s.rivals.unpack(&o.rivals)
	}
	s.w.unpack(&o.w)
	s.r.unpack(&o.r)
	if s.older != nil {
		for o.parts < len(s.older) && s.older[o.parts] != nil {
			s.older[o.parts].unpack(&o.older[o.parts])
			o.parts++
		}
	}
}

// store packs the page that is open. Where there is no more room, what is no row is
// dropped of reads, and of words that several blocks wrote: a race may be missed
// then, and none is made up.
func (x *across) store(room bool) {
	o := &x.page
	x.kept -= o.s.size()
	o.s.w, o.s.r = o.s.w.pack(&o.w, true), o.s.r.pack(&o.r, room)
	if o.rival {
		o.s.rivals = o.s.rivals.pack(&o.rivals, room)
	}
	if o.parts > 0 && o.s.older == nil {
		o.s.older = new([wordBytes - 1]*traces)
	}
	kept := 0
	for i := range o.parts {
		if t := o.s.older[kept].pack(&o.older[i], room); t != nil {
			o.s.older[kept] = t
			kept++
		}
	}
	if kept == 0 {
		o.s.older = nil
	} else {
		clear(o.s.older[kept:])
	}
	x.kept += o.s.size()
}

// keepWrite makes a write the last of a word.
func (x *across) keepWrite(word int, t trace) {
	o := &x.page
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
	a, b, o := x.access(old), x.access(t), &x.page
	plain := a.flags&(eventStrong|eventAsync) == 0
	if old.bytes()&t.bytes() == 0 || !plain && (a.block == b.block || a.flags&eventStrong == 0) {
		return
	}
	if !o.rival {
		o.rivals, o.rival = pageTraces{}, true
	}
	if was := o.rivals[word]; plain || was == 0 || x.access(was).flags&eventStrong != 0 {
		o.rivals[word] = old
	}
}

// keepRest keeps a write of some bytes of a word beside the one that came after, and of
// those before it what neither is of.
func (o *openPage) keepRest(word int, rest, last trace) {
	for i := 0; i < o.parts; i++ {
		e := &o.older[i][word]
		*e = e.without(last)
		if *e == 0 {
			*e, rest = rest, 0
		}
	}
	if rest != 0 && o.parts < len(o.older) {
		o.older[o.parts] = pageTraces{}
		o.older[o.parts][word] = rest
		o.parts++
	}
}

// keepRead notes that a block read a word.
func (x *across) keepRead(word int, t trace) {
	old := x.page.r[word]
	switch {
	case old == 0:
		x.page.r[word] = t
	case x.access(old).block != x.access(t).block:
		x.page.r[word] = t | trace(old.bytes())
	default:
		x.page.r[word] = old | trace(t.bytes())
	}
}

// limits are of what a launch keeps for the comparison of blocks.
type limits struct {
	originals int    // pages as they were at the start
	records   uint32 // of accesses
	shadows   int64  // bytes
}

// limitsFor are those of a launch over buffers of so many bytes: all together, and what
// Go's collector leaves unused of it, stay below twice those and 64 MiB.
func limitsFor(buffers int64) limits {
	return limits{originals: 8 << 20 / shadowSize, records: mostRecords, shadows: buffers*7/5 + 16<<20}
}
