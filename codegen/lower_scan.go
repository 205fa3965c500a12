package codegen

import (
	"slices"

	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/layout"
)

// scanStep is a bit of the coordinate along a scan's axis: which bit of the hardware
// makes it.
type scanStep struct {
	register int // mask of the register's number, or 0
	lane     int // mask of the lane's number, or 0
	warp     int // mask of the warp's number, or 0
}

// scanSteps are the bits of the coordinate along axis, lowest first; ok is false if one
// is made by two bits of the hardware, or by one that moves another axis too, or by parts of
// the warps.
func scanSteps(l *layout.Layout, axis int) (steps []scanStep, ok bool) {
	at := map[int]scanStep{}
	ok = true
	note := func(b []int, s scanStep) {
		for d, n := range b {
			ok = ok && (d == axis || n == 0 || b[axis] == 0)
		}
		n := b[axis]
		if n == 0 {
			return
		}
		_, twice := at[n]
		ok = ok && n&(n-1) == 0 && !twice
		at[n] = s
	}
	for i, b := range l.RegBases() {
		note(b, scanStep{register: 1 << i})
	}
	for i, b := range l.LaneBases() {
		note(b, scanStep{lane: 1 << i})
	}
	for i, b := range l.WarpBases() {
		note(b, scanStep{warp: 1 << i})
	}
	if parts := l.ThreadBases(axis)[layout.LaneBits+len(l.WarpBases()):]; slices.ContainsFunc(parts, func(n int) bool { return n != 0 }) {
		return nil, false
	}
	for n := 1; n < l.Sub(axis); n *= 2 {
		s, found := at[n]
		ok = ok && found
		steps = append(steps, s)
	}
	return steps, ok
}

// scan combines blocks of 1, 2, 4.. elements along the axis: where two neighbours join,
// the total of the first goes in front of every element of the second. Then come the
// repeats of an odd length, one after the other.
func (l *lowering) scan(o *ir.Op) {
	src := l.tile(o.Args[0])
	steps, ok := scanSteps(src.l, o.Axis)
	if !ok {
		panic(unsupported(o, "layout %v does not scan along axis %d", src.l, o.Axis))
	}
	s := &scanner{lowering: l, o: o, l: src.l, sums: slices.Clone(l.operands(src))}
	s.totals = slices.Clone(s.sums)
	for _, step := range steps {
		switch {
		case step.register != 0:
			s.joinRegisters(step.register)
		case step.lane != 0:
			s.joinLanes(step.lane)
		default:
			s.joinWarps(step.warp, l.plan.buffers[o])
		}
	}
	s.joinRepeats()
	t := o.Result().Type
	for i, v := range s.sums {
		s.sums[i] = l.wrapped(v, t.Elem)
	}
	l.set(o.Result(), l.rounded(t, s.sums))
}

// scanTotals is how many blocks a thread has parts of when warps first exchange their
// totals; 0 if they never do.
func scanTotals(l *layout.Layout, steps []scanStep) int {
	n := l.Registers()
	for _, step := range steps {
		switch {
		case step.register != 0:
			n /= 2
		case step.warp != 0:
			return n
		}
	}
	return 0
}

// scanner is the state of a scan: for each register the combination of its block up to
// its element, and of its whole block.
type scanner struct {
	*lowering
	o            *ir.Op
	l            *layout.Layout
	sums, totals []*simt.Value
}

// join combines what comes first with what comes second along the axis; in a reversed
// scan the higher index comes first.
func (s *scanner) join(low, high *simt.Value) *simt.Value { return s.combine(s.o, low, high) }

// joinRegisters joins blocks that differ in a bit of the register's number.
func (s *scanner) joinRegisters(mask int) {
	n := 1 << s.l.RegisterBits()
	totals := slices.Clone(s.totals)
	for r := range s.sums {
		if r%n&mask != 0 {
			continue
		}
		first, second := r, r|mask
		if s.o.Reverse {
			first, second = second, first
		}
		s.sums[second] = s.join(totals[first], s.sums[second])
		s.totals[r] = s.join(totals[first], totals[second])
		s.totals[r|mask] = s.totals[r]
	}
}

// across joins blocks of different threads: others are the neighbours' totals, and
// second says which threads have the second block.
func (s *scanner) across(second *simt.Value, others func(r int) *simt.Value) {
	done := map[*simt.Value][2]*simt.Value{} // by total: the neighbour's, the joined
	for r, total := range s.totals {
		pair, ok := done[total]
		if !ok {
			other := others(r)
			first, last := s.choose(second, other, total), s.choose(second, total, other)
			pair = [2]*simt.Value{other, s.join(first, last)}
			done[total] = pair
		}
		s.sums[r] = s.choose(second, s.join(pair[0], s.sums[r]), s.sums[r])
		s.totals[r] = pair[1]
	}
}

// isSecond tells which threads, by a bit of their number, have the second block.
func (s *scanner) isSecond(mask int) *simt.Value {
	b := s.b
	p := b.Cmp(simt.NE, b.And(s.tid(), b.Const32(mask)), b.Const32(0))
	if s.o.Reverse {
		return b.Not(p)
	}
	return p
}

func (s *scanner) joinLanes(mask int) {
	s.across(s.isSecond(mask), func(r int) *simt.Value { return s.shuffle(s.totals[r], mask) })
}

// joinWarps exchanges totals through shared memory, where each thread has a slot for each
// of its blocks.
func (s *scanner) joinWarps(mask int, buf *buffer) {
	b := s.b
	threads := 32 * s.warps
	slots := map[*simt.Value]int{}
	var order []*simt.Value
	for _, t := range s.totals {
		if _, ok := slots[t]; !ok {
			slots[t] = len(order)
			order = append(order, t)
		}
	}
	size := max(4, s.totals[0].Type.Bits()/8)
	base := b.Add(b.SharedBase(), b.Const32(buf.offset))
	mine := b.Add(base, b.Mul(s.tid(), b.Const32(size)))
	theirs := b.Add(base, b.Mul(b.Xor(s.tid(), b.Const32(mask<<layout.LaneBits)), b.Const32(size)))
	s.meet()
	for i, t := range order {
		b.StShared(mine, []*simt.Value{s.asWord(t)}, simt.Access{Offset: i * threads * size})
	}
	s.barrier()
	s.across(s.isSecond(mask<<layout.LaneBits), func(r int) *simt.Value {
		return s.loadWord(theirs, slots[s.totals[r]]*threads*size, s.totals[r].Type)
	})
	s.pending.shared = true
}

// joinRepeats carries totals from one copy of an odd length to the next.
func (s *scanner) joinRepeats() {
	count := s.l.Repeat()[s.o.Axis]
	if count == 1 {
		return
	}
	sub := s.l.Sub(s.o.Axis)
	byCoord := map[layout.Coord]int{}
	for r := range s.sums {
		byCoord[s.l.Register(r)] = r
	}
	for r := range s.sums {
		c := s.l.Register(r).Unpack(s.l.Rank())
		if c[s.o.Axis] >= sub {
			continue
		}
		var carry *simt.Value
		for i := range count {
			k := i
			if s.o.Reverse {
				k = count - 1 - i
			}
			at := slices.Clone(c)
			at[s.o.Axis] += k * sub
			q := byCoord[layout.Pack(at)]
			if carry == nil {
				carry = s.totals[q]
				continue
			}
			s.sums[q] = s.join(carry, s.sums[q])
			carry = s.join(carry, s.totals[q])
		}
	}
}
