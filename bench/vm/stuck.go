package vm

// A block whose warps all poll is stuck if the whole of its state comes back
// to what it was: nothing it does by itself can change it any more. Comparing
// with a state kept from some time before, kept anew ever more rarely, finds
// any cycle (Brent's algorithm).

// stuckState is what a block compares with.
type stuckState struct {
	hash  uint64
	time  int64 // of the block then
	steps int   // comparisons since it was kept
	limit int
}

// stuck says whether the block's state has come back to an earlier one.
func (b *block) stuck() bool {
	h := b.hash()
	s := &b.was
	if s.limit > 0 && h == s.hash && (!b.timed() || b.time()-s.time > patience) {
		*s = stuckState{}
		return true
	}
	if s.steps++; s.steps > s.limit {
		*s = stuckState{hash: h, time: b.time(), limit: max(2*s.limit, 1)}
	}
	return false
}

// mix adds a word to a hash.
func mix(h, v uint64) uint64 {
	h ^= v
	h *= 0x9fb21c651e98df25
	return h ^ h>>28
}

// hash is of all that decides what the block does next, but for the memory
// that it shares with others.
func (b *block) hash() uint64 {
	h := uint64(len(b.warps))
	for _, w := range b.warps {
		h = mix(h, uint64(w.mask)<<32|uint64(w.live))
		if w.mask != 0 {
			h = w.fr.hash(mix(h, uint64(w.pc)))
		}
		for i := range w.paths {
			p := &w.paths[i]
			h = mix(h, uint64(p.mask)<<32|uint64(uint32(p.pc)))
			h = p.fr.hash(mix(h, uint64(p.wait.kind)))
		}
		for i := 0; i+8 <= len(w.local); i += 8 {
			h = mix(h, *at[uint64](w.local[i:]))
		}
	}
	var bars uint64 // whatever their order
	for off, m := range b.mbarriers {
		bars += mix(mix(mix(uint64(off), m.phase), uint64(m.pending)), uint64(m.bytes))
	}
	h = mix(h, bars)
	for i := 0; i+8 <= len(b.shared); i += 8 {
		h = mix(h, *at[uint64](b.shared[i:]))
	}
	for i := len(b.shared) &^ 7; i < len(b.shared); i++ {
		h = mix(h, uint64(b.shared[i]))
	}
	return h
}

func (f *frame) hash(h uint64) uint64 {
	p := f.prog
	for i := range f.r {
		if p.follows(p.unified(class32, int32(i))) {
			continue
		}
		r := &f.r[i]
		for j := 0; j < warpSize; j += 2 {
			h = mix(h, uint64(r[j])|uint64(r[j+1])<<32)
		}
	}
	for i := range f.q {
		if p.follows(p.unified(class64, int32(i))) {
			continue
		}
		for _, v := range f.q[i] {
			h = mix(h, v)
		}
	}
	for i, v := range f.p {
		if p.follows(p.unified(classPred, int32(i))) {
			continue
		}
		h = mix(h, uint64(v))
	}
	return h
}
