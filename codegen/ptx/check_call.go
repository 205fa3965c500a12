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
		return
	}
	for i := range args {
		c.argument(&args[i], f.Params[i])
	}
	for i := range returns {
		c.argument(&returns[i], f.Returns[i])
	}
}

// argument compares the size of a variable that is passed with that of the
// parameter; a parameter without an extent takes any.
func (c *checker) argument(o *Operand, p *Variable) {
	v, ok := o.Decl().(*Variable)
	if !ok || o.Kind != OpSymbol || p.Size() == 0 || v.Size() == p.Size() {
		return
	}
	c.errorf(o.Pos, "argument %s of %d bytes: parameter %s has %d", clip(v.Name), v.Size(), clip(p.Name), p.Size())
}
