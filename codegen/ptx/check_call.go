package ptx

// call compares a direct call's arguments with the function's parameters.
func (c *checker) call(in *Instruction) {
	if in.Name != "call" {
		return
	}
	ops := in.Operands
	var returns, args []Operand
	if ops[0].Kind == OpList {
		returns, ops = ops[0].Elems(), ops[1:]
	}
	if len(ops) > 1 && ops[1].Kind == OpList {
		args = ops[1].Elems()
	}
	f, ok := ops[0].Decl().(*Function)
	if !ok {
		return
	}
	if f.Kernel {
		c.errorf(ops[0].Pos, "call of %s: want a function, not a kernel", clip(f.Name))
		return
	}
	if len(returns) != len(f.Returns) || len(args) != len(f.Params) {
		c.errorf(in.Pos, "call of %s with %d results and %d arguments: want %d and %d", clip(f.Name), len(returns), len(args), len(f.Returns), len(f.Params))
	}
}
