package simt

import (
	"errors"
	"fmt"
)

// checkOperands checks the operands of op against its row of the table.
func checkOperands(op Op, t Type, args []*Value) error {
	info := op.Info()
	if !info.Types.Has(t) && info.Types != setOf(Void) {
		return fmt.Errorf("%s of %s: no such type", op, t)
	}
	sig := info.Args
	for i, x := range args {
		if x == nil {
			return fmt.Errorf("%s of %s: operand %d is missing", op, t, i)
		}
		if i >= len(sig) {
			return fmt.Errorf("%s of %s: %d operands, want %d", op, t, len(args), len(sig))
		}
		if sig[i] == '*' {
			return nil
		}
		if !accepts(sig[i], t, x.Type) {
			return fmt.Errorf("%s of %s: operand %d is %s", op, t, i, x.Type)
		}
	}
	if n := len(args); n < len(sig) && sig[n] != '*' {
		return fmt.Errorf("%s of %s: %d operands, want %d", op, t, n, len(sig))
	}
	return nil
}

// accepts tells whether an operand of type got fits the letter of a signature
// where the instruction's type is t:
// T as the instruction, o an offset to T, i I32, p Pred, s shared address, g
// Ptr, a either address, n any integer, f any float, h I16, u half of T's
// width, b of T's width.
func accepts(letter byte, t, got Type) bool {
	switch letter {
	case 'T':
		return got == t
	case 'o':
		return got == t && t != Ptr || t == Ptr && got == I64
	case 'i', 's':
		return got == I32
	case 'p':
		return got == Pred
	case 'g':
		return got == Ptr
	case 'a':
		return got == I32 || got == Ptr
	case 'n':
		return got.IsInt()
	case 'f':
		return got.IsFloat()
	case 'h':
		return got == I16
	case 'u':
		return got.Bits()*2 == t.Bits()
	case 'b':
		return got.Bits() == t.Bits()
	}
	return false
}

// Verify checks a kernel: operand types, one definition before every use, the
// shape of loops and branches, limits of the launch.
func Verify(k *Kernel) error {
	v := verifier{k: k, defined: make([]bool, k.NumValues())}
	v.block(k.Body)
	if k.SharedAlign&(k.SharedAlign-1) != 0 || k.SharedAlign > 1024 {
		v.errorf("kernel %s: shared memory aligned to %d, want a power of two up to 1024", k.Name, k.SharedAlign)
	}
	if k.Threads <= 0 || k.Threads > 1024 {
		v.errorf("kernel %s: %d threads, want 1 to 1024", k.Name, k.Threads)
	}
	return errors.Join(v.errs...)
}

type verifier struct {
	k       *Kernel
	defined []bool
	errs    []error
}

func (v *verifier) errorf(format string, args ...any) {
	if len(v.errs) < 10 {
		v.errs = append(v.errs, fmt.Errorf(format, args...))
	}
}

func (v *verifier) define(x *Value, what *Instr) {
	if v.defined[x.ID] {
		v.errorf("%s: %s is defined twice", what, x)
	}
	v.defined[x.ID] = true
}

func (v *verifier) use(x *Value, by *Instr) {
	if x == nil {
		v.errorf("%s: an operand is missing", by)
		return
	}
	if x.ID < 0 || int(x.ID) >= len(v.defined) || v.k.Value(x.ID) != x {
		v.errorf("%s: %s is of another kernel", by, x)
		return
	}
	if !x.Floating() && !v.defined[x.ID] {
		v.errorf("%s: %s is not defined here", by, x)
	}
}

// block checks a block; what it defines is out of scope afterwards.
func (v *verifier) block(b *Block) {
	var scope []*Value
	for _, p := range b.Params {
		v.define(p, p.Def)
		scope = append(scope, p)
	}
	for _, in := range b.Instrs {
		v.instr(in)
		scope = append(scope, in.Results...)
	}
	for _, y := range b.Yield {
		v.use(y, nil)
	}
	for _, x := range scope {
		v.defined[x.ID] = false
	}
}

func (v *verifier) instr(in *Instr) {
	if err := checkOperands(in.Op, in.Type, in.Args); err != nil {
		v.errorf("%s: %w", in, err)
	}
	for _, x := range in.Args {
		v.use(x, in)
	}
	if in.Guard != nil {
		v.use(in.Guard, in)
		if in.Guard.Type != Pred {
			v.errorf("%s: guard is %s", in, in.Guard.Type)
		}
	}
	v.attributes(in)
	switch in.Op {
	case OpFor, OpLoop:
		v.loop(in)
	case OpIf:
		v.branch(in)
	case OpLd, OpSt:
		v.memory(in)
	case OpMma:
		v.mma(in)
	case OpWgmma:
		v.wgmma(in)
	}
	if first, ok := in.Tied(); ok {
		for i, r := range in.Results {
			if first+i >= len(in.Args) || r.Type != in.Args[first+i].Type {
				v.errorf("%s: result %d is not of its operand's type", in, i)
			}
		}
	}
	for i, r := range in.Results {
		if r.Def != in || int(r.Index) != i || r.Block != nil {
			v.errorf("%s: result %d does not point back", in, i)
		}
		v.define(r, in)
	}
}

// attributes checks what the table says of results and guards.
func (v *verifier) attributes(in *Instr) {
	if in.Guard != nil && !guardable(in.Op) {
		v.errorf("%s: %s takes no guard", in, in.Op)
	}
	sig := in.Op.Info().Result
	if sig == "*" {
		return
	}
	if len(in.Results) != len(sig) {
		v.errorf("%s: %d results, want %d", in, len(in.Results), len(sig))
		return
	}
	for i, r := range in.Results {
		if !accepts(sig[i], in.Type, r.Type) {
			v.errorf("%s: result %d is %s", in, i, r.Type)
		}
	}
}

// guardable tells whether instructions of op may have a guard.
func guardable(op Op) bool {
	switch op {
	case OpLd, OpSt, OpAtom, OpRed, OpCpAsync, OpPrefetch, OpMbarInit, OpMbarArrive, OpMbarExpect, OpMbarArriveAt, OpStAt, OpTensorLoad, OpTensorStore:
		return true
	}
	return false
}

func (v *verifier) mma(in *Instr) {
	i := in.Mma.Info()
	if len(in.Args) != i.A+i.B+i.C || len(in.Results) != i.C {
		v.errorf("%s: %d operands and %d results, want %d and %d", in, len(in.Args), len(in.Results), i.A+i.B+i.C, i.C)
		return
	}
	for j, x := range in.Args {
		want := i.AB
		if j >= i.A+i.B {
			want = i.Acc
		}
		if x.Type.Bits() != want.Bits() || j >= i.A+i.B && x.Type != want {
			v.errorf("%s: operand %d is %s, want %s", in, j, x.Type, want)
		}
	}
}

func (v *verifier) wgmma(in *Instr) {
	if n := len(in.Args); n < 2 || in.Args[0].Type != I64 && n < 5 {
		v.errorf("%s: %d operands, want those of A and B", in, n)
		return
	}
	s := in.Wgmma()
	a, b, c := in.WgmmaOperands()
	n := s.N / 2 / s.Form.Info().Pack
	if len(in.Results) != n || len(c) != 0 && len(c) != n {
		v.errorf("%s: %d accumulators and %d results, want %d", in, len(c), len(in.Results), n)
	}
	if b.Type != I64 {
		v.errorf("%s: B is %s, want a descriptor", in, b.Type)
	}
	if len(a) > 1 {
		for _, x := range a {
			if x.Type.Bits() != 32 {
				v.errorf("%s: a register of A is %s, want 32 bits", in, x.Type)
			}
		}
	}
}

func (v *verifier) loop(in *Instr) {
	first, yields := 0, 1
	if in.Op == OpFor {
		first, yields = 3, 0
		if in.Args[2].IsConst() && in.Args[2].Int() <= 0 {
			v.errorf("%s: step %d, want a positive one", in, in.Args[2].Int())
		}
	}
	n := len(in.Args) - first
	lead := 1 - yields // the counter
	if in.Body == nil || len(in.Body.Params) != n+lead || len(in.Body.Yield) != n+yields || len(in.Results) != n {
		v.errorf("%s: carried values, parameters, yields and results do not match", in)
		return
	}
	if in.Op == OpLoop && in.Body.Yield[0].Type != Pred {
		v.errorf("%s: condition is %s", in, in.Body.Yield[0].Type)
	}
	for i := range n {
		t := in.Args[first+i].Type
		p := in.Body.Params[lead+i]
		if p.Type != t || in.Body.Yield[yields+i].Type != t || in.Results[i].Type != t || p.Block != in.Body || p.Def != in {
			v.errorf("%s: carried value %d changes its type", in, i)
		}
	}
	v.block(in.Body)
}

func (v *verifier) branch(in *Instr) {
	n := 0
	if in.Else != nil {
		n = len(in.Else.Yield)
	}
	if in.Body == nil || len(in.Body.Yield) != n || len(in.Results) != n {
		v.errorf("%s: yields and results do not match", in)
		return
	}
	for i, r := range in.Results {
		if in.Body.Yield[i].Type != r.Type || in.Else.Yield[i].Type != r.Type {
			v.errorf("%s: result %d changes its type", in, i)
		}
	}
	v.block(in.Body)
	if in.Else != nil {
		v.block(in.Else)
	}
}

func (v *verifier) memory(in *Instr) {
	want := Ptr
	if in.Space == Shared {
		want = I32
	}
	if in.Args[0].Type != want {
		v.errorf("%s: address is %s, want %s", in, in.Args[0].Type, want)
	}
	if n := in.Vec; n != 1 && n != 2 && n != 4 {
		v.errorf("%s: %d elements, want 1, 2 or 4", in, n)
	}
	if int(in.Vec)*in.Mem.Bytes() > 16 {
		v.errorf("%s: %d bytes, want at most 16", in, int(in.Vec)*in.Mem.Bytes())
	}
}
