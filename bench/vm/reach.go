package vm

import "github.com/kgen-dev/kgen/codegen/ptx"

// reach collects the functions that a kernel may run: those that are named by
// its instructions, and by the initialisers of variables that it names.
type reach struct {
	m    *module
	list []*ptx.Function
	seen map[any]bool // functions and variables
}

// reachable lists a function and all that it may run, itself first.
func (m *module) reachable(f *ptx.Function) []*ptx.Function {
	r := reach{m: m, list: []*ptx.Function{f}, seen: map[any]bool{f: true}}
	for done := 0; done < len(r.list); done++ { //nolint:intrange // the list grows meanwhile
		for _, in := range r.list[done].Code {
			for j := range in.Operands {
				r.operand(&in.Operands[j])
			}
		}
	}
	return r.list
}

func (r *reach) operand(o *ptx.Operand) {
	switch d := o.Decl().(type) {
	case *ptx.Function:
		if g := r.m.definition(d); g.Body != nil && !r.seen[g] {
			r.seen[g] = true
			r.list = append(r.list, g)
		}
	case *ptx.TargetList:
		for i := range d.Names {
			r.operand(&d.Names[i])
		}
	case *ptx.Variable:
		if v := r.m.variable(d); v.Init != nil && !r.seen[v] {
			r.seen[v] = true
			r.initialiser(v.Init)
		}
	}
	for i := range o.Elems() {
		r.operand(&o.Elems()[i])
	}
}

func (r *reach) initialiser(in *ptx.Init) {
	r.operand(&in.Value)
	for i := range in.List {
		r.initialiser(&in.List[i])
	}
}

// variable is a variable's declaration that has its place, if there is one.
func (m *module) variable(v *ptx.Variable) *ptx.Variable {
	if d := m.byName[v.Name]; d != nil && v.Space != ptx.SpaceReg && m.globals[v] == nil {
		return d
	}
	return v
}

// definition is a function's declaration that has a body, if there is one.
func (m *module) definition(f *ptx.Function) *ptx.Function {
	if d, ok := m.funcs[f.Name]; ok {
		return d
	}
	return f
}
