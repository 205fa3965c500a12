package ptx

import (
	"slices"
	"strconv"
)

// call compares a call's arguments and results with what it calls: a function,
// or a register with a prototype or a list of functions that are alike.
func (c *checker) call(in *Instruction) {
	if in.Name != "call" {
		return
	}
	ops := in.Operands
	var returns, args []Operand
	if ops[0].Kind == OpList {
		returns, ops = ops[0].Elems(), ops[1:]
	}
	callee, ops := &ops[0], ops[1:]
	if len(ops) > 0 && ops[0].Kind == OpList {
		args, ops = ops[0].Elems(), ops[1:]
	}
	var like any
	if len(ops) > 0 {
		like = ops[0].Decl()
	}
	name, params, results, ok := c.callee(callee, like)
	if !ok {
		return
	}
	if len(returns) != len(results) || len(args) != len(params) {
		c.errorf(in.Pos, "call of %s with %d results and %d arguments: want %d and %d", clip(name), len(returns), len(args), len(results), len(params))
		return
	}
	for i := range args {
		c.argument(&args[i], params[i])
	}
	for i := range returns {
		if returns[i].Kind != OpSink {
			c.argument(&returns[i], results[i])
		}
	}
}

// callee is what a call calls, by its name, parameters and results.
func (c *checker) callee(o *Operand, like any) (name string, params, results []*Variable, ok bool) {
	name = o.Name()
	if f, direct := o.Decl().(*Function); direct {
		switch {
		case f.Kernel:
			c.errorf(o.Pos, "call of %s: want a function, not a kernel", clip(name))
		case like != nil:
			c.errorf(o.Pos, "call of %s: a function needs no prototype", clip(name))
		default:
			return name, f.Params, f.Returns, true
		}
		return name, nil, nil, false
	}
	if o.registerType() == Pred {
		c.errorf(o.Pos, "call of %s: want an address, not a predicate", clip(name))
		return name, nil, nil, false
	}
	switch like := like.(type) {
	case *Prototype:
		return name, like.Params, like.Returns, true
	case *TargetList:
		for i := range like.Names {
			if f, is := like.Names[i].Decl().(*Function); is {
				return name, f.Params, f.Returns, true
			}
		}
		return name, nil, nil, false
	}
	c.errorf(o.Pos, "call of register %s: want a .callprototype or .calltargets after the arguments", clip(name))
	return name, nil, nil, false
}

// argument compares what is passed with the parameter: a register or a number of
// its type, or a .param variable of the function's body. A parameter without an
// extent takes any array.
func (c *checker) argument(o *Operand, p *Variable) {
	v, _ := o.Decl().(*Variable)
	array := len(p.Dims) > 0
	switch {
	case o.Kind == OpReg && o.Value == 0 && !array && passes(p.Type, o.registerType()):
	case o.Kind == OpImm && !array && p.Type != Pred && (isBits(p.Type) || immediateAgrees(p.Type, o)):
	case o.Kind == OpReg, o.Kind == OpImm:
		c.errorf(o.Pos, "argument %s: parameter %s is %s", o, clip(p.Name), passedAs(p))
	case o.Kind != OpSymbol || v == nil:
		c.errorf(o.Pos, "argument %s: want a .param variable, a register or a number", o)
	case v.Space != SpaceParam || slices.Contains(c.f.Params, v) || slices.Contains(c.f.Returns, v):
		c.errorf(o.Pos, "argument %s: want a .param variable of the body", clip(v.Name))
	case array && p.Size() == 0:
	case v.Size() != p.Size():
		c.errorf(o.Pos, "argument %s of %d bytes: parameter %s has %d", clip(v.Name), v.Size(), clip(p.Name), p.Size())
	case array != (len(v.Dims) > 0) || !array && !passes(p.Type, v.Type) || array && v.Alignment() != p.Alignment():
		c.errorf(o.Pos, "argument %s is %s: parameter %s is %s", clip(v.Name), passedAs(v), clip(p.Name), passedAs(p))
	}
}

// passes says whether a value of a type may be passed as another.
func passes(p, arg Type) bool {
	switch {
	case p == Pred || arg == Pred || p.Bits() != arg.Bits():
		return false
	case isBits(p), isBits(arg), arg == F16x2, p == arg:
		return true
	}
	return !p.Float() && !arg.Float()
}

// passedAs describes how a variable is passed.
func passedAs(v *Variable) string {
	s := "." + v.Type.String()
	if len(v.Dims) > 0 {
		s = "an array of " + s + " at multiples of " + strconv.FormatInt(v.Alignment(), 10)
	}
	return s
}
