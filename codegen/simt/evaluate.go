package simt

// Evaluator returns a function that computes the instruction's result from its
// operands' bits, integers sign-extended as in a constant; the function reports false
// where the result is not defined. Nil is returned for an instruction that does more
// than compute, or that computes other than on integers and predicates.
func (in *Instr) Evaluator() func(x, y, z int64) (int64, bool) {
	if in.Op.Info().Effect != 0 || len(in.Results) != 1 || len(in.Args) > 3 || len(in.Args) == 0 {
		return nil
	}
	r := in.Results[0].Type
	from := in.Args[0].Type
	if r.IsFloat() || from.IsFloat() {
		return nil
	}
	op, t, a := in.Op, in.Type, in.attrs()
	return func(x, y, z int64) (int64, bool) {
		v, ok := evaluate(op, t, from, a, [3]int64{x, y, z})
		return normalize(r, v), ok
	}
}
