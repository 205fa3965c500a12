package model

import "github.com/kgen-dev/kgen/codegen/simt"

// vector computes an integer operation in all lanes at once, for the operations that
// addresses and masks are made of; false for others, which go through the
// instruction's own evaluator lane by lane. A test holds the two to each other.
func vector(in *simt.Instr, out []int64, x *[3]lanes) bool {
	a, b := x[0].over(out), x[1].over(out)
	switch in.Op {
	case simt.OpAdd:
		for i := range out {
			out[i] = a.at(i) + b.at(i)
		}
	case simt.OpSub:
		for i := range out {
			out[i] = a.at(i) - b.at(i)
		}
	case simt.OpMul, simt.OpMulWide:
		for i := range out {
			out[i] = a.at(i) * b.at(i)
		}
	case simt.OpMad, simt.OpMadWide:
		c := x[2].over(out)
		for i := range out {
			out[i] = a.at(i)*b.at(i) + c.at(i)
		}
	case simt.OpAnd:
		for i := range out {
			out[i] = a.at(i) & b.at(i)
		}
	case simt.OpOr:
		for i := range out {
			out[i] = a.at(i) | b.at(i)
		}
	case simt.OpXor:
		for i := range out {
			out[i] = a.at(i) ^ b.at(i)
		}
	case simt.OpShl:
		if !constantShift(in) {
			return false
		}
		n := b.n
		for i := range out {
			out[i] = a.at(i) << n
		}
	case simt.OpShrU:
		if !constantShift(in) {
			return false
		}
		n := b.n
		for i := range out {
			v := uint64(a.at(i))
			if in.Type == simt.I32 {
				v = uint64(uint32(v))
			}
			out[i] = int64(v >> n)
		}
	case simt.OpSelect:
		c := x[2].over(out)
		for i := range out {
			if a.at(i) != 0 {
				out[i] = b.at(i)
			} else {
				out[i] = c.at(i)
			}
		}
		return true
	case simt.OpCmp:
		return compare(in, out, a, b)
	default:
		return false
	}
	if in.Results[0].Type == simt.I32 {
		for i, v := range out {
			out[i] = int64(int32(v))
		}
	}
	return in.Results[0].Type.Bits() >= 32 || in.Results[0].Type == simt.Pred && in.Op != simt.OpAdd
}

// constantShift tells whether a shift is by a constant below the width.
func constantShift(in *simt.Instr) bool {
	n := in.Args[1]
	return n.IsConst() && n.Int() >= 0 && n.Int() < int64(in.Type.Bits())
}

func compare(in *simt.Instr, out []int64, a, b operand) bool {
	if !in.Type.IsInt() {
		return false
	}
	var f func(x, y int64) bool
	switch in.Cmp {
	case simt.LT:
		f = func(x, y int64) bool { return x < y }
	case simt.LE:
		f = func(x, y int64) bool { return x <= y }
	case simt.GT:
		f = func(x, y int64) bool { return x > y }
	case simt.GE:
		f = func(x, y int64) bool { return x >= y }
	case simt.EQ:
		f = func(x, y int64) bool { return x == y }
	case simt.NE:
		f = func(x, y int64) bool { return x != y }
	default:
		return false
	}
	for i := range out {
		out[i] = 0
		if f(a.at(i), b.at(i)) {
			out[i] = 1
		}
	}
	return true
}

// operand is a value under an index that costs no branch: one that is the same in all
// lanes has a mask of zero.
type operand struct {
	v    []int64
	mask int
	n    int64
}

func (o *operand) at(i int) int64 { return o.v[i&o.mask] }

// over makes an operand for as many lanes as out has.
func (x *lanes) over(out []int64) operand {
	if x.v == nil {
		return operand{v: []int64{x.n}, n: x.n}
	}
	return operand{v: x.v[:len(out)], mask: -1}
}

// shuffle gives each lane another's value. A walk of one lane takes its own for it.
func (w *walk) shuffle(in *simt.Instr) {
	r, x, by := in.Results[0], w.get(in.Args[0]), w.get(in.Args[1])
	if !x.known || !by.known || x.v == nil || w.size < warpSize {
		w.set(r, x.at(0), x.known && by.known)
		return
	}
	out := make([]int64, w.size)
	for i := range out {
		lane := i % warpSize
		out[i] = x.at(min(i-lane+shuffled(in, lane, int(by.at(i))&31), w.size-1))
	}
	copy(w.vector(r), out)
}

// elect sets a predicate in the first lane of each warp.
func (w *walk) elect(r *simt.Value) {
	x := w.vector(r)
	for i := range x {
		x[i] = 0
		if (w.first0+int64(i))%warpSize == 0 {
			x[i] = 1
		}
	}
}

// shuffled is the lane whose value a lane gets (PTX ISA, shfl.sync): its own where the
// one asked for lies outside its segment.
func shuffled(in *simt.Instr, lane, by int) int {
	segment := int(in.Imm>>8) & 31
	last := lane&segment | int(in.Imm)&31&^segment
	from := lane
	switch in.Shfl {
	case simt.Idx:
		from = lane&segment | by&^segment
	case simt.Bfly:
		from = lane ^ by
	case simt.Down:
		from = lane + by
	case simt.Up:
		if from = lane - by; from < last {
			return lane
		}
		return from
	}
	if from > last {
		return lane
	}
	return from
}
