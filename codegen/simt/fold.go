package simt

import (
	"math"
	"math/bits"
)

// fold returns a simpler value equal to the operation, or nil.
func (b *Builder) fold(op Op, t, rt Type, a attrs, args []*Value) *Value {
	all := true
	for _, x := range args {
		all = all && x.IsConst()
	}
	if all && len(args) > 0 {
		var c [3]int64
		for i, x := range args[:min(3, len(args))] {
			c[i] = x.Def.Imm
		}
		if v, ok := evaluate(op, t, args[0].Type, a, c); ok {
			return b.Const(rt, v)
		}
	}
	switch {
	case op == OpBitcast && args[0].Type == rt:
		return args[0]
	case op == OpBitcast && args[0].Block == nil && args[0].Def.Op == OpBitcast:
		return b.Bitcast(args[0].Def.Args[0], rt)
	case op == OpSelect:
		return foldSelect(args)
	case op == OpCmp && args[0] == args[1] && !t.IsFloat():
		c := Cmp(a.sub)
		return b.ConstPred(c == EQ || c == LE || c == GE || c == LEU || c == GEU)
	case op == OpSext || op == OpZext:
		return b.foldExtend(op, t, args[0])
	case t == Pred || t.IsInt():
		return b.foldInt(op, t, args)
	}
	return nil
}

func foldSelect(args []*Value) *Value {
	if args[1] == args[2] {
		return args[1]
	}
	if args[0].IsConst() {
		if args[0].Int() != 0 {
			return args[1]
		}
		return args[2]
	}
	return nil
}

// foldInt knows the identities of integers and predicates.
func (b *Builder) foldInt(op Op, t Type, args []*Value) *Value {
	if len(args) == 2 && args[0].IsConst() && !args[1].IsConst() && commutes(op) && args[0].Type == args[1].Type {
		args[0], args[1] = args[1], args[0]
	}
	if len(args) == 3 && (op == OpMad || op == OpMadWide || op == OpMadWideU) {
		return b.foldMad(op, args)
	}
	if len(args) == 1 {
		return b.foldUnary(op, args[0])
	}
	if len(args) != 2 {
		return nil
	}
	x, y := args[0], args[1]
	if x == y {
		switch op {
		case OpSub, OpXor:
			return b.Const(t, 0)
		case OpAnd, OpOr, OpMin, OpMax, OpMinU, OpMaxU:
			return x
		}
	}
	if !y.IsConst() {
		switch {
		case x.IsInt(0) && (op == OpShl || op == OpShr || op == OpShrU):
			return x
		case op == OpAdd:
			return b.foldAdd(x, y)
		}
		return nil
	}
	if v := b.foldRight(op, t, x, y.Int()); v != nil {
		return v
	}
	return b.foldKnown(op, t, x, y.Int())
}

func (b *Builder) foldUnary(op Op, x *Value) *Value {
	if x.Def == nil || x.Block != nil {
		return nil
	}
	switch {
	case op == OpNot && x.Def.Op == OpNot:
		return x.Def.Args[0]
	case op == OpNot && x.Def.Op == OpCmp && !x.Def.Type.IsFloat():
		return b.Cmp(x.Def.Cmp.Negated(), x.Def.Args[0], x.Def.Args[1])
	case op == OpNeg && x.Def.Op == OpNeg && x.Type.IsInt():
		return x.Def.Args[0]
	}
	return nil
}

// foldRight folds x op n.
func (b *Builder) foldRight(op Op, t Type, x *Value, n int64) *Value {
	ones := normalize(t, -1)
	switch op {
	case OpAdd:
		if n == 0 {
			return x
		}
		if c, ok := constOperand(x, OpAdd); ok {
			return b.Add(x.Def.Args[0], b.Const(c.Type, c.Int()+n))
		}
	case OpSub:
		if n == 0 {
			return x
		}
		if t != Ptr {
			return b.Add(x, b.Const(t, -n))
		}
	case OpMul:
		switch {
		case n == 0:
			return b.Const(t, 0)
		case n == 1:
			return x
		case n > 0 && n&(n-1) == 0:
			return b.Shl(x, b.Const32(bits.TrailingZeros64(uint64(n))))
		}
	case OpMulWide, OpMulWideU:
		if n == 0 {
			return b.Const(t, 0)
		}
	case OpShl, OpShr, OpShrU:
		if n == 0 {
			return x
		}
		if c, ok := constOperand(x, op); ok && op == OpShl && c.Int()+n < int64(t.Bits()) {
			return b.Shl(x.Def.Args[0], b.Const32(int(c.Int()+n)))
		}
	case OpDiv, OpDivU:
		if n == 1 {
			return x
		}
		if op == OpDivU && n > 0 && n&(n-1) == 0 {
			return b.ShrU(x, b.Const32(bits.TrailingZeros64(uint64(n))))
		}
	case OpRem, OpRemU:
		if n == 1 {
			return b.Const(t, 0)
		}
		if op == OpRemU && n > 0 && n&(n-1) == 0 {
			return b.And(x, b.Const(t, n-1))
		}
	case OpAnd:
		switch n {
		case 0:
			return b.Const(t, 0)
		case ones:
			return x
		}
		if c, ok := constOperand(x, OpAnd); ok {
			return b.And(x.Def.Args[0], b.Const(t, c.Int()&n))
		}
	case OpOr:
		switch n {
		case 0:
			return x
		case ones:
			return b.Const(t, n)
		}
	case OpXor:
		switch {
		case n == 0:
			return x
		case t == Pred:
			return b.Not(x)
		}
		if c, ok := constOperand(x, OpXor); ok {
			return b.Xor(x.Def.Args[0], b.Const(t, c.Int()^n))
		}
	}
	return nil
}

// foldMad simplifies x*y + z.
func (b *Builder) foldMad(op Op, args []*Value) *Value {
	x, y, z := args[0], args[1], args[2]
	if x.IsConst() {
		x, y = y, x
	}
	mul := func() *Value {
		switch op {
		case OpMad:
			return b.Mul(x, y)
		case OpMadWide:
			return b.MulWide(x, y)
		}
		return b.MulWideU(x, y)
	}
	switch {
	case y.IsConst() && (x.IsConst() || y.Int() == 0 || y.Int() == 1 && op == OpMad):
		return b.Add(z, mul())
	case z.IsInt(0) && z.Type != Ptr:
		return mul()
	}
	return b.foldMadConst(op, x, y, z)
}

// constOperand tells whether x is (something op constant).
func constOperand(x *Value, op Op) (*Value, bool) {
	if x.Def == nil || x.Block != nil || x.Def.Op != op || len(x.Def.Args) != 2 {
		return nil, false
	}
	c := x.Def.Args[1]
	return c, c.IsConst()
}

// evaluate computes an operation on constants, the first of type from; ok is
// false for what it does not know or what has no defined result. The result
// is yet to be normalized.
func evaluate(op Op, t, from Type, a attrs, c [3]int64) (v int64, ok bool) {
	switch {
	case op == OpSelect:
		if c[0] != 0 {
			return c[1], true
		}
		return c[2], true
	case op == OpBitcast:
		return c[0], true
	case op == OpCmp:
		return evalCmp(t, Cmp(a.sub), c[0], c[1])
	case op == OpSext:
		return c[0], true
	case op == OpZext:
		return int64(zext(from, c[0])), true
	case op == OpTrunc:
		return c[0], true
	case op == OpPack:
		half := t.Bits() / 2
		return c[0]&(1<<half-1) | c[1]<<half, true
	case op == OpLop3:
		return lop3(c, uint8(a.imm)), true
	case t == F32:
		return evalF32(op, a, c)
	case t == Pred || t.IsInt():
		return evalInt(op, t, c)
	}
	return 0, false
}

// zext is the constant's bits without sign.
func zext(t Type, v int64) uint64 {
	switch t.Bits() {
	case 1:
		return uint64(v & 1)
	case 16:
		return uint64(uint16(v))
	case 32:
		return uint64(uint32(v))
	}
	return uint64(v)
}

func evalCmp(t Type, c Cmp, x, y int64) (int64, bool) {
	var less, equal bool
	switch {
	case t == F32:
		a, b := math.Float32frombits(uint32(x)), math.Float32frombits(uint32(y))
		if a != a || b != b {
			return 0, false
		}
		less, equal = a < b, a == b
	case t.IsFloat():
		return 0, false
	case c >= LTU || t == Ptr:
		less, equal = zext(t, x) < zext(t, y), x == y
	default:
		less, equal = x < y, x == y
	}
	var r bool
	switch c {
	case EQ:
		r = equal
	case NE:
		r = !equal
	case LT, LTU:
		r = less
	case LE, LEU:
		r = less || equal
	case GT, GTU:
		r = !less && !equal
	case GE, GEU:
		r = !less
	}
	if r {
		return 1, true
	}
	return 0, true
}

func evalF32(op Op, a attrs, c [3]int64) (int64, bool) {
	if a.flags != 0 {
		return 0, false
	}
	x, y := math.Float32frombits(uint32(c[0])), math.Float32frombits(uint32(c[1]))
	var r float32
	switch op {
	case OpAdd:
		r = x + y
	case OpSub:
		r = x - y
	case OpMul:
		r = x * y
	case OpNeg:
		return c[0] ^ 1<<31, true
	default:
		return 0, false
	}
	if r != r {
		return 0, false
	}
	return int64(math.Float32bits(r)), true
}

// lop3 is the function with the given truth table, bit by bit.
func lop3(c [3]int64, table uint8) int64 {
	var r int64
	for row := range 8 {
		if table>>row&1 == 0 {
			continue
		}
		m := int64(-1)
		for i, x := range c {
			if row>>(2-i)&1 == 0 {
				x = ^x
			}
			m &= x
		}
		r |= m
	}
	return r
}

// evalInt computes integer operations.
func evalInt(op Op, t Type, c [3]int64) (int64, bool) {
	x, y, z := c[0], c[1], c[2]
	ux, uy := zext(t, x), zext(t, y)
	width := uint64(t.Bits())
	switch op {
	case OpAdd:
		return x + y, true
	case OpSub:
		return x - y, true
	case OpMul, OpMulWide:
		return x * y, true
	case OpMulWideU:
		return int64(uint64(uint32(x)) * uint64(uint32(y))), true
	case OpMulHi:
		if t == I32 {
			return x * y >> 32, true
		}
		hi, _ := bits.Mul64(ux, uy)
		return int64(hi) - x>>63&y - y>>63&x, true
	case OpMulHiU:
		if t == I32 {
			return int64(ux * uy >> 32), true
		}
		hi, _ := bits.Mul64(ux, uy)
		return int64(hi), true
	case OpMad, OpMadWide:
		return x*y + z, true
	case OpMadWideU:
		return int64(uint64(uint32(x))*uint64(uint32(y))) + z, true
	case OpDiv:
		if y != 0 && !(y == -1 && x == math.MinInt64) {
			return x / y, true
		}
	case OpRem:
		if y != 0 {
			return x % y, true
		}
	case OpDivU:
		if uy != 0 {
			return int64(ux / uy), true
		}
	case OpRemU:
		if uy != 0 {
			return int64(ux % uy), true
		}
	case OpMin:
		return min(x, y), true
	case OpMax:
		return max(x, y), true
	case OpMinU:
		return int64(min(ux, uy)), true
	case OpMaxU:
		return int64(max(ux, uy)), true
	case OpNeg:
		return -x, true
	case OpAbs:
		return max(x, -x), true
	case OpAnd:
		return x & y, true
	case OpOr:
		return x | y, true
	case OpXor:
		return x ^ y, true
	case OpNot:
		return ^x, true
	case OpShl:
		if s := uint64(uint32(y)); s < width {
			return x << s, true
		}
		return 0, true
	case OpShr:
		return x >> min(uint64(uint32(y)), width-1), true
	case OpShrU:
		if s := uint64(uint32(y)); s < width {
			return int64(ux >> s), true
		}
		return 0, true
	}
	return 0, false
}
