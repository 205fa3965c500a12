package ir

// define checks a value's own data and brings it into scope.
func (v *verifier) define(x *Value, def *Op, index int, pos Pos) {
	switch {
	case x == nil:
		v.fail(pos, "a value is nil")
	case x.ID < 0 || x.ID >= len(v.seen):
		v.fail(pos, "value %%%s has ID %d: want 0 to %d", x.Name, x.ID, len(v.seen)-1)
	case v.seen[x.ID] != nil:
		v.fail(pos, "values %%%s and %%%s have the same ID %d", v.seen[x.ID].Name, x.Name, x.ID)
	case x.Def != def || x.Index != index:
		v.fail(pos, "value %%%s (ID %d) does not know what defines it", x.Name, x.ID)
	default:
		v.seen[x.ID], v.scope[x.ID] = x, true
	}
}

// inScope reports whether x may be used here.
func (v *verifier) inScope(x *Value) bool {
	return x != nil && x.ID >= 0 && x.ID < len(v.seen) && v.seen[x.ID] == x && v.scope[x.ID]
}

// region checks the operations of a region of op (nil: the kernel's body); what
// they define goes out of scope at its end.
func (v *verifier) region(r *Region, op *Op) {
	if r == nil {
		v.fail(posOf(op), "a region is nil")
		return
	}
	if v.depth == MaxNesting+1 {
		v.fail(posOf(op), "nested more than %d deep", MaxNesting)
		return
	}
	v.depth++
	for _, p := range r.Params {
		v.define(p, nil, 0, posOf(op))
	}
	for i, o := range r.Ops {
		if o.Code == OpYield && (op == nil || i < len(r.Ops)-1) {
			v.fail(o.Pos, "yield: want it at the end of a region")
		}
		v.op(o)
	}
	if op != nil && r.Yield() == nil {
		v.fail(op.Pos, "%s: a region does not end in yield", op.Code)
	}
	v.leave(r)
	v.depth--
}

func (v *verifier) leave(r *Region) {
	end := func(x *Value) {
		if v.inScope(x) {
			v.scope[x.ID] = false
		}
	}
	for _, p := range r.Params {
		end(p)
	}
	for _, o := range r.Ops {
		for _, x := range o.Results {
			end(x)
		}
	}
}

func posOf(op *Op) Pos {
	if op == nil {
		return Pos{}
	}
	return op.Pos
}

func (v *verifier) op(o *Op) {
	usable := true
	for i, x := range o.Args {
		if !v.inScope(x) {
			v.fail(o.Pos, "%s: operand %d is not defined before it, or in a region that has ended", o.Code, i)
			usable = false
		}
	}
	for i, r := range o.Regions {
		v.regionParams(o, r, i)
		v.region(r, o)
	}
	if usable {
		v.types(o)
	}
	for i, x := range o.Results {
		v.define(x, o, i, o.Pos)
	}
}

// types checks an operation against the table.
func (v *verifier) types(o *Op) {
	info := o.Code.Info()
	have := make([]Type, len(o.Results))
	for i, x := range o.Results {
		have[i] = x.Type
	}
	got, err := o.infer(have)
	switch {
	case err != nil:
		v.fail(o.Pos, "%s: %w", o.Code, err)
		return
	case !equalTypes(got, have):
		v.fail(o.Pos, "%s: results of types %s: want %s", o.Code, typesText(have), typesText(got))
	case info.Regions >= 0 && len(o.Regions) != info.Regions:
		v.fail(o.Pos, "%s: %d regions: want %d", o.Code, len(o.Regions), info.Regions)
	case o.Sched.Set && (o.Sched.Stage < 0 || o.Sched.Stage > 64):
		v.fail(o.Pos, "%s: stage %d: want 0 to 64", o.Code, o.Sched.Stage)
	}
	if o.Given&^info.optional() != 0 {
		v.fail(o.Pos, "%s: an optional operand it does not have", o.Code)
	}
	for _, r := range o.Regions {
		v.yields(o, r, got)
	}
}

// regionParams checks the parameters of a region before it is entered.
func (v *verifier) regionParams(o *Op, r *Region, i int) {
	if r == nil {
		return
	}
	want := 0
	if o.Code == OpFor {
		want = len(o.Args) - 2
	}
	if len(r.Params) != want {
		v.fail(o.Pos, "%s: region %d has %d parameters: want %d", o.Code, i, len(r.Params), want)
		return
	}
	for j, p := range r.Params {
		t := ScalarOf(I32)
		if j > 0 && o.Args[2+j] != nil {
			t = o.Args[2+j].Type
		}
		if p != nil && !p.Type.Equal(t) {
			v.fail(o.Pos, "%s: carried value %d of type %s: want %s, as it starts", o.Code, j-1, p.Type, t)
		}
	}
}

// yields checks that a region yields the results of its operation.
func (v *verifier) yields(o *Op, r *Region, want []Type) {
	if r == nil || r.Yield() == nil {
		return
	}
	y := r.Yield()
	have := make([]Type, len(y.Args))
	for i, x := range y.Args {
		if x != nil {
			have[i] = x.Type
		}
	}
	if !equalTypes(have, want) {
		v.fail(y.Pos, "yield of %s: want %s, the results of %s", typesText(have), typesText(want), o.Code)
	}
}
