package cudac

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/kgen-dev/kgen/codegen/simt"
)

// Expressions.

// The precedences of C that matter here, lowest first.
const (
	precLowest = iota
	precCond
	precOrOr
	precAndAnd
	precOr
	precXor
	precAnd
	precEqual
	precLess
	precShift
	precAdd
	precMul
	precUnary
	precPrimary
)

type expression struct {
	text string
	prec int
}

// at is the expression where precedence prec is wanted.
func (e expression) at(prec int) string {
	if e.prec < prec {
		return "(" + e.text + ")"
	}
	return e.text
}

var binaryPrec = map[simt.Op]int{
	simt.OpAdd: precAdd, simt.OpSub: precAdd, simt.OpMul: precMul, simt.OpDiv: precMul, simt.OpDivU: precMul, simt.OpRem: precMul,
	simt.OpRemU: precMul, simt.OpAnd: precAnd, simt.OpOr: precOr, simt.OpXor: precXor, simt.OpShl: precShift, simt.OpShr: precShift,
	simt.OpShrU: precShift,
}

// expr is a value where precedence prec is wanted.
func (p *printer) expr(v *simt.Value, prec int) string { return p.value(v).at(prec) }

func (p *printer) value(v *simt.Value) expression {
	if v.IsConst() {
		return literal(v.Type, v.Def.Imm)
	}
	if p.inline[v.ID] {
		if e, ok := p.operation(v.Def); ok {
			return e
		}
		return expression{p.call(v.Def), precPrimary}
	}
	return expression{p.names[p.regs.Reg(v)], precPrimary}
}

// isInt tells whether a value is printed as something of a signed type.
func (p *printer) isInt(v *simt.Value) bool {
	switch {
	case v.IsConst():
		return false
	case !p.inline[v.ID]:
		return p.signed[p.regs.Reg(v)]
	}
	switch v.Def.Op {
	case simt.OpSext, simt.OpMulWide, simt.OpMulHi:
		return true
	case simt.OpDiv, simt.OpRem, simt.OpShr, simt.OpMin, simt.OpMax:
		return v.Type.IsInt()
	}
	return false
}

// unsigned is the value as an unsigned number.
func (p *printer) unsigned(v *simt.Value, prec int) string {
	if p.isInt(v) {
		return expression{"(" + ctype(v.Type) + ")" + p.expr(v, precUnary), precUnary}.at(prec)
	}
	return p.expr(v, prec)
}

// integer is the value as a signed number.
func (p *printer) integer(v *simt.Value, prec int) string {
	if v.IsConst() {
		n := v.Int()
		text := strconv.FormatInt(n, 10)
		if v.Type.Bits() == 64 {
			text += "ll"
		}
		if n < 0 {
			return expression{text, precUnary}.at(prec)
		}
		return text
	}
	if p.isInt(v) {
		return p.expr(v, prec)
	}
	cast := "(int)"
	switch v.Type {
	case simt.I64, simt.Ptr:
		cast = "(i64)"
	case simt.I16:
		cast = "(short)"
	}
	return expression{cast + p.expr(v, precUnary), precUnary}.at(prec)
}

// asInt is the value as an int, for the head of a loop.
func (p *printer) asInt(v *simt.Value) string { return p.integer(v, precLess+1) }

// literal is a constant.
func literal(t simt.Type, bits int64) expression {
	switch t {
	case simt.Pred:
		return expression{strconv.FormatBool(bits != 0), precPrimary}
	case simt.I32:
		return expression{natural(uint64(uint32(bits))) + "u", precPrimary}
	case simt.I64, simt.Ptr:
		return expression{natural(uint64(bits)) + "ull", precPrimary}
	case simt.F32:
		return float32Literal(math.Float32frombits(uint32(bits)))
	case simt.F64:
		return float64Literal(math.Float64frombits(uint64(bits)))
	case simt.F16x2, simt.BF16x2:
		return expression{fmt.Sprintf("0x%08xu", uint32(bits)), precPrimary}
	}
	return expression{fmt.Sprintf("(u16)0x%04x", uint16(bits)), precUnary}
}

// natural prints large numbers, which are mostly masks, in hexadecimal.
func natural(n uint64) string {
	if n >= 1<<20 {
		return "0x" + strconv.FormatUint(n, 16)
	}
	return strconv.FormatUint(n, 10)
}

func float32Literal(x float32) expression {
	bits := math.Float32bits(x)
	if x != x || math.IsInf(float64(x), 0) {
		return expression{fmt.Sprintf("__uint_as_float(0x%08xu)", bits), precPrimary}
	}
	return signedLiteral(strconv.FormatFloat(float64(x), 'g', -1, 32), "f", bits>>31 != 0)
}

func float64Literal(x float64) expression {
	bits := math.Float64bits(x)
	if x != x || math.IsInf(x, 0) {
		return expression{fmt.Sprintf("__longlong_as_double(0x%016xll)", bits), precPrimary}
	}
	return signedLiteral(strconv.FormatFloat(x, 'g', -1, 64), "", bits>>63 != 0)
}

func signedLiteral(text, suffix string, negative bool) expression {
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	if negative {
		return expression{text + suffix, precUnary}
	}
	return expression{text + suffix, precPrimary}
}

// operation is an instruction with one result as an expression; ok is false
// where it takes a helper.
func (p *printer) operation(in *simt.Instr) (e expression, ok bool) {
	a := in.Args
	switch in.Op {
	case simt.OpAdd:
		return p.add(in)
	case simt.OpSub, simt.OpMul, simt.OpAnd, simt.OpOr, simt.OpXor:
		return p.binary(in)
	case simt.OpShl, simt.OpShrU, simt.OpDivU, simt.OpRemU:
		return p.unsignedBinary(in)
	case simt.OpDiv, simt.OpRem, simt.OpShr:
		return p.signedBinary(in)
	case simt.OpMad:
		return expression{p.unsigned(a[0], precMul) + " * " + p.unsigned(a[1], precMul+1) + " + " + p.unsigned(a[2], precAdd+1), precAdd}, true
	case simt.OpMulWide, simt.OpMulWideU, simt.OpMadWideU:
		return p.wide(in), true
	case simt.OpMadWide:
		// NVRTC moves the widening of what a loop doesn't change out of the loop, and
		// then multiplies 64 bits by 64.
		return p.wide(in), p.loops == 0 || a[0].IsConst() || a[1].IsConst()
	case simt.OpNeg:
		return expression{"-" + p.unsigned(a[0], precUnary+1), precUnary}, a[0].Type != simt.I16 && (a[0].Type.IsInt() || isF(in.Type))
	case simt.OpNot:
		if in.Type == simt.Pred {
			return expression{"!" + p.expr(a[0], precUnary), precUnary}, true
		}
		return expression{"~" + p.unsigned(a[0], precUnary), precUnary}, in.Type != simt.I16
	case simt.OpCmp:
		return p.compare(in)
	case simt.OpSelect:
		return expression{p.expr(a[0], precCond+1) + " ? " + p.unsigned(a[1], precCond+1) + " : " + p.unsigned(a[2], precCond), precCond}, true
	case simt.OpMin, simt.OpMax, simt.OpMinU, simt.OpMaxU, simt.OpFma, simt.OpAbs, simt.OpMulHi, simt.OpMulHiU:
		return p.function(in)
	case simt.OpSext, simt.OpZext, simt.OpTrunc, simt.OpBitcast, simt.OpFloatCvt, simt.OpIntToFloat:
		return p.convert(in)
	case simt.OpShfl, simt.OpVote, simt.OpBallot:
		return p.shuffle(in), true
	}
	return expression{}, false
}

func isF(t simt.Type) bool { return t == simt.F32 || t == simt.F64 }

func symbol(op simt.Op) string { return op.Info().C }

// unsignedBinary prints shifts and unsigned divisions.
func (p *printer) unsignedBinary(in *simt.Instr) (expression, bool) {
	x, y, prec := in.Args[0], in.Args[1], binaryPrec[in.Op]
	left, right := p.unsigned(x, prec), p.unsigned(y, prec+1)
	if in.Op == simt.OpShl || in.Op == simt.OpShrU {
		left, right = p.parenthesized(x, left), p.shiftBy(y)
	}
	return expression{left + " " + symbol(in.Op) + " " + right, prec}, in.Type != simt.I16
}

// shiftBy is the right side of a shift.
func (p *printer) shiftBy(n *simt.Value) string {
	if n.IsConst() && n.Int() >= 0 {
		return strconv.FormatInt(n.Int(), 10)
	}
	return p.unsigned(n, precShift+1)
}

// arithmetic tells whether C's operator does what the instruction does.
func arithmetic(in *simt.Instr) bool {
	return in.Flags == 0 && (in.Type == simt.I32 || in.Type == simt.I64 || in.Type == simt.Ptr || isF(in.Type))
}

func (p *printer) add(in *simt.Instr) (expression, bool) {
	x, y := in.Args[0], in.Args[1]
	if in.Type.IsInt() && y.IsConst() && y.Int() < 0 {
		minus := literal(y.Type, -y.Int())
		return expression{p.unsigned(x, precAdd) + " - " + minus.text, precAdd}, true
	}
	return p.binary(in)
}

// binary prints an operator whose operands are both unsigned, both floats or
// both predicates; one int is converted by the other's being unsigned.
func (p *printer) binary(in *simt.Instr) (expression, bool) {
	x, y := in.Args[0], in.Args[1]
	op, prec := symbol(in.Op), binaryPrec[in.Op]
	if in.Type == simt.Pred {
		switch in.Op {
		case simt.OpAnd:
			op, prec = "&&", precAndAnd
		case simt.OpOr:
			op, prec = "||", precOrOr
		case simt.OpXor:
			op, prec = "!=", precEqual
		}
		right := prec
		if in.Op == simt.OpXor {
			right++
		}
		return expression{p.expr(x, prec) + " " + op + " " + p.expr(y, right), prec}, true
	}
	if !arithmetic(in) {
		return expression{}, false
	}
	left := p.expr(x, prec)
	if p.isInt(x) && p.isInt(y) {
		left = p.unsigned(x, prec)
	}
	if warnsBeside(in.Op) { // say what binds how, as compilers ask to
		left = p.parenthesized(x, left)
		return expression{left + " " + op + " " + p.parenthesized(y, p.expr(y, prec+1)), prec}, true
	}
	return expression{left + " " + op + " " + p.expr(y, prec+1), prec}, true
}

func warnsBeside(op simt.Op) bool { return op == simt.OpAnd || op == simt.OpOr || op == simt.OpXor }

// parenthesized puts an inner operator in parentheses.
func (p *printer) parenthesized(v *simt.Value, text string) string {
	if v.IsConst() || !p.inline[v.ID] || p.value(v).prec >= precUnary {
		return text
	}
	return p.unsigned(v, precPrimary)
}

func (p *printer) signedBinary(in *simt.Instr) (expression, bool) {
	prec := binaryPrec[in.Op]
	x, y := in.Args[0], in.Args[1]
	switch {
	case isF(in.Type):
		return expression{p.expr(x, prec) + " / " + p.expr(y, prec+1), prec}, in.Flags == 0
	case in.Type == simt.I16:
		return expression{}, false
	}
	right := p.integer(y, prec+1)
	if in.Op == simt.OpShr {
		right = p.shiftBy(y)
	}
	return expression{p.integer(x, precMul) + " " + symbol(in.Op) + " " + right, prec}, true
}

func (p *printer) wide(in *simt.Instr) expression {
	x, y := in.Args[0], in.Args[1]
	var product string
	if in.Op == simt.OpMulWide || in.Op == simt.OpMadWide {
		product = "(i64)" + p.integer(x, precUnary) + " * " + p.integer(y, precUnary)
	} else {
		product = "(u64)" + p.unsigned(x, precUnary) + " * " + p.unsigned(y, precUnary)
	}
	if len(in.Args) < 3 {
		return expression{product, precMul}
	}
	return expression{p.unsigned(in.Args[2], precAdd) + " + " + product, precAdd}
}

func (p *printer) compare(in *simt.Instr) (expression, bool) {
	x, y := in.Args[0], in.Args[1]
	switch {
	case in.Flags != 0, in.Type == simt.I16, in.Type.IsFloat() && (!isF(in.Type) || in.Cmp >= simt.LTU):
		return expression{}, false
	case in.Cmp == simt.NE && in.Type.IsFloat():
		return expression{}, false // C's is true on NaN
	}
	op := [...]string{"==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">="}[in.Cmp]
	prec := precLess
	if in.Cmp <= simt.NE {
		prec = precEqual
	}
	as := p.unsigned
	switch {
	case in.Type.IsFloat():
		as = p.expr
	case in.Type != simt.Ptr && in.Cmp < simt.LTU && (in.Cmp > simt.NE || p.isInt(x)):
		as = p.integer
	}
	return expression{as(x, prec+1) + " " + op + " " + as(y, prec+1), prec}, true
}

// function prints what CUDA C has a function for.
func (p *printer) function(in *simt.Instr) (expression, bool) {
	if in.Flags != 0 {
		return expression{}, false
	}
	name, as := in.Op.Info().C, p.unsigned
	switch in.Op {
	case simt.OpMin, simt.OpMax:
		if isF(in.Type) {
			name = "f" + name
		}
		as = p.integer
	case simt.OpMulHi:
		as = p.integer
		fallthrough
	case simt.OpMulHiU:
		if in.Type == simt.I64 {
			name = strings.Replace(name, "mul", "mul64", 1)
		}
	case simt.OpAbs:
		if in.Type.IsInt() {
			return expression{}, false
		}
	}
	switch {
	case in.Type == simt.F32:
		name += "f"
	case in.Type.IsFloat() && in.Type != simt.F64:
		return expression{}, false
	}
	var args []string
	for _, x := range in.Args {
		if in.Type.IsFloat() {
			args = append(args, p.expr(x, precCond))
		} else {
			args = append(args, as(x, precCond))
		}
	}
	return expression{name + "(" + strings.Join(args, ", ") + ")", precPrimary}, true
}

func (p *printer) convert(in *simt.Instr) (expression, bool) {
	x := in.Args[0]
	cast := func(text string) (expression, bool) { return expression{text, precUnary}, true }
	switch in.Op {
	case simt.OpSext:
		to := map[simt.Type]string{simt.I64: "(i64)", simt.I32: "(int)", simt.Ptr: "(i64)"}[in.Type]
		return cast(to + p.integer(x, precUnary))
	case simt.OpZext, simt.OpTrunc:
		return cast("(" + ctype(in.Type) + ")" + p.unsigned(x, precUnary))
	case simt.OpBitcast:
		return expression{p.as(x, in.Type), precPrimary}, true
	case simt.OpFloatCvt:
		if in.Flags == 0 && in.Imm == 0 && in.Round == simt.RN && isF(in.Type) && isF(x.Type) {
			return cast("(" + ctype(in.Type) + ")" + p.expr(x, precUnary))
		}
	case simt.OpIntToFloat:
		if isF(in.Type) && in.Round == simt.RN && x.Type != simt.I16 {
			if in.Has(simt.Unsigned) {
				return cast("(" + ctype(in.Type) + ")" + p.unsigned(x, precUnary))
			}
			return cast("(" + ctype(in.Type) + ")" + p.integer(x, precUnary))
		}
	}
	return expression{}, false
}

// as is a value's bits as a variable of the C type of t, as an operand of a call.
func (p *printer) as(v *simt.Value, t simt.Type) string {
	from, to := ctype(v.Type), ctype(t)
	if from == to {
		return p.unsigned(v, precCond)
	}
	x := p.unsigned(v, precCond)
	switch {
	case to == "float":
		return "__uint_as_float(" + x + ")"
	case from == "float":
		return "__float_as_uint(" + x + ")"
	case to == "double":
		return "__longlong_as_double((i64)(" + x + "))"
	case from == "double":
		return "(u64)__double_as_longlong(" + x + ")"
	}
	return x
}

func (p *printer) shuffle(in *simt.Instr) expression {
	x := p.unsigned(in.Args[0], precCond)
	switch in.Op {
	case simt.OpBallot:
		return expression{"__ballot_sync(0xffffffffu, " + x + ")", precPrimary}
	case simt.OpVote:
		name := "__any_sync"
		if in.Atom == simt.AtomAnd {
			name = "__all_sync"
		}
		return expression{name + "(0xffffffffu, " + x + ") != 0", precEqual}
	}
	name := [...]string{simt.Bfly: "__shfl_xor_sync", simt.Idx: "__shfl_sync", simt.Up: "__shfl_up_sync", simt.Down: "__shfl_down_sync"}[in.Shfl]
	n := p.unsigned(in.Args[1], precCond)
	if in.Args[1].IsConst() {
		n = p.integer(in.Args[1], precCond)
	}
	text := name + "(0xffffffffu, " + x + ", " + n
	if width := 32 - int(in.Imm>>8); width != 32 {
		text += ", " + strconv.Itoa(width)
	}
	return expression{text + ")", precPrimary}
}
