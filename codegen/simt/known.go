package simt

import "math/bits"

// known finds bits of integers that are zero in every thread: what lane
// numbers, masks, shifts and alignments imply. It lets exclusive-or turn into
// addition, and additions of constants move out to where they become the
// offset of a memory access.
type known struct {
	k    *Kernel
	memo []uint64 // known zeros plus one, by ID; 0 is not computed
}

// width is the mask of a type's bits.
func width(t Type) uint64 {
	if n := t.Bits(); n < 64 {
		return 1<<n - 1
	}
	return ^uint64(0)
}

// zeros is the mask of v's bits that are known to be zero; bits beyond v's
// width count as zero.
func (z *known) zeros(v *Value) uint64 {
	if v.IsConst() {
		return ^zext(v.Type, v.Def.Imm)
	}
	if !v.Type.IsInt() && v.Type != Pred {
		return ^width(v.Type)
	}
	if int(v.ID) >= len(z.memo) {
		memo := make([]uint64, max(z.k.NumValues()+512, 2*len(z.memo)))
		copy(memo, z.memo)
		z.memo = memo
	}
	if m := z.memo[v.ID]; m != 0 {
		return m - 1
	}
	m := ^width(v.Type)
	if v.Block == nil && v.Def != nil {
		m |= z.of(v.Def)
	}
	if m != ^uint64(0) { // the sum would overflow; all zero is a constant anyway
		z.memo[v.ID] = m + 1
	}
	return m
}

// above is the mask of bits that are zero in all numbers up to most.
func above(most uint64) uint64 { return ^(1<<bits.Len64(most) - 1) }

func (z *known) of(in *Instr) uint64 {
	switch in.Op {
	case OpSpecial:
		switch in.Special {
		case TidX:
			return above(uint64(max(z.k.Threads, 1) - 1))
		case LaneID:
			return above(31)
		case CtaX, NCtaX, CtaY, CtaZ, NCtaY, NCtaZ:
			return above(1<<31 - 1)
		}
	case OpParam:
		if p := z.k.Params[in.Imm]; p.Type == Ptr && p.Align > 0 && p.Align&(p.Align-1) == 0 {
			return uint64(p.Align - 1)
		}
	case OpSharedBase:
		return above(1<<24) | uint64(max(z.k.SharedAlign, 16)-1)
	case OpAnd:
		return z.zeros(in.Args[0]) | z.zeros(in.Args[1])
	case OpOr, OpXor:
		return z.zeros(in.Args[0]) & z.zeros(in.Args[1])
	case OpAdd:
		return z.sum(in.Type, in.Args[0], in.Args[1])
	case OpMul:
		return z.product(in.Type, in.Args[0], in.Args[1])
	case OpMulWideU:
		return z.product(I64, in.Args[0], in.Args[1])
	case OpMad:
		p := z.product(in.Type, in.Args[0], in.Args[1])
		return sumZeros(in.Type, p, z.zeros(in.Args[2]))
	case OpShl, OpShr, OpShrU:
		return z.shifted(in)
	case OpZext, OpTrunc:
		return z.zeros(in.Args[0])
	case OpSext:
		x := z.zeros(in.Args[0])
		if top := uint64(1) << (in.Args[0].Type.Bits() - 1); x&top != 0 {
			return x
		}
		return x & (width(in.Args[0].Type) >> 1)
	case OpSelect:
		return z.zeros(in.Args[1]) & z.zeros(in.Args[2])
	case OpMinU:
		return above(min(z.most(in.Args[0]), z.most(in.Args[1])))
	case OpRemU:
		if c := in.Args[1]; c.IsConst() && c.Int() > 0 {
			return above(uint64(c.Int() - 1))
		}
	case OpDivU:
		if c := in.Args[1]; c.IsConst() && c.Int() > 0 {
			return above(z.most(in.Args[0]) / uint64(c.Int()))
		}
	case OpLd:
		if in.Mem == U8 && len(in.Args) == 1 {
			return above(255)
		}
	}
	return 0
}

// most is the largest number v can be, by its known zeros.
func (z *known) most(v *Value) uint64 { return ^z.zeros(v) & width(v.Type) }

func (z *known) sum(t Type, x, y *Value) uint64 {
	return sumZeros(t, z.zeros(x), z.zeros(y))
}

// sumZeros are the known zeros of a sum.
func sumZeros(t Type, x, y uint64) uint64 {
	low := min(bits.TrailingZeros64(^x), bits.TrailingZeros64(^y))
	m := uint64(1)<<low - 1
	if low == 64 {
		m = ^uint64(0)
	}
	w := width(t)
	a, b := ^x&w, ^y&w
	if s, carry := bits.Add64(a, b, 0); carry == 0 && s <= w {
		m |= above(s)
	}
	return m
}

func (z *known) product(t Type, x, y *Value) uint64 {
	zx, zy := z.zeros(x), z.zeros(y)
	low := bits.TrailingZeros64(^zx) + bits.TrailingZeros64(^zy)
	var m uint64
	if low >= 64 {
		m = ^uint64(0)
	} else {
		m = 1<<low - 1
	}
	if hi, lo := bits.Mul64(z.most(x), z.most(y)); hi == 0 && lo <= width(t) {
		m |= above(lo)
	}
	return m
}

func (z *known) shifted(in *Instr) uint64 {
	if !in.Args[1].IsConst() {
		return 0
	}
	n := uint64(uint32(in.Args[1].Int()))
	if n >= uint64(in.Type.Bits()) {
		return 0
	}
	x := z.zeros(in.Args[0])
	w := width(in.Type)
	switch in.Op {
	case OpShl:
		return x<<n | (1<<n - 1)
	case OpShr:
		if x>>(in.Type.Bits()-1)&1 == 0 {
			return 0
		}
	}
	return x&w>>n | ^(w >> n)
}

// nowrap tells whether x + c stays within [0, limit] for every x.
func (z *known) nowrap(x *Value, c int64, limit uint64) bool {
	if c < 0 {
		return false
	}
	s, carry := bits.Add64(z.most(x), uint64(c), 0)
	return carry == 0 && s <= limit
}
