package ir

import (
	"fmt"
	"math"
	"strings"
)

// body reads lines up to the closing brace.
func (p *parser) body(line func()) {
	for p.lines() {
		if p.accept("}") {
			return
		}
		line()
		p.endLine()
	}
	p.want("}")
}

// block reads { ops } as a region; an empty yield at its end is understood.
func (p *parser) block(params []*Value) *Region {
	r := &Region{Params: params}
	p.expect("{")
	if !p.nested(MaxNesting) {
		return r
	}
	outer, mark := p.region, len(p.named)
	p.region = r
	p.body(p.op)
	if p.err == nil && r.Yield() == nil {
		r.Ops = append(r.Ops, &Op{Code: OpYield, Pos: p.here()})
	}
	p.region = outer
	p.endScope(mark)
	p.unnest()
	return r
}

// UnknownOperationError is a word that stands where an operation should.
type UnknownOperationError struct{ Name string }

func (e *UnknownOperationError) Error() string { return fmt.Sprintf("%q: want an operation", e.Name) }

// op reads one operation.
func (p *parser) op() {
	results := p.resultNames()
	p.blank()
	start := p.pos
	o := &Op{Pos: p.here()}
	word := p.word()
	code, ok := OpcodeByName(word)
	switch {
	case !ok && word == "":
		p.want("an operation")
		return
	case !ok:
		p.fail(start, "%w", &UnknownOperationError{word})
		return
	}
	o.Code = code
	p.bareWords(o)
	switch code {
	case OpConst:
		p.constant(o, results, start)
		return
	case OpFor:
		p.loop(o, results, start)
		return
	}
	p.slots(o)
	p.attrs(o)
	want := p.resultTypes()
	p.opRegions(o)
	p.finishOp(o, results, want, start)
}

// resultName is a name on the left of =, and where it stands.
type resultName struct {
	name string
	pos  int
}

func (p *parser) resultNames() []resultName {
	var names []resultName
	if !p.peek('%') {
		return nil
	}
	p.list(func() {
		p.blank()
		start := p.pos
		p.expect("%")
		name := p.word()
		if name == "" {
			p.want("a name")
		}
		names = append(names, resultName{name, start})
	})
	p.expect("=")
	return names
}

// resultTypes reads : type, type.
func (p *parser) resultTypes() []Type {
	var types []Type
	if p.accept(":") {
		p.list(func() { types = append(types, p.typ()) })
	}
	return types
}

// finishOp checks an operation, binds its results and appends it.
func (p *parser) finishOp(o *Op, names []resultName, want []Type, start int) {
	if p.err != nil {
		return
	}
	if o.Dims == nil {
		o.setDefaultDims(want)
	}
	types, err := o.infer(want)
	switch {
	case err != nil:
		p.fail(start, "%s: %w", o.Code, err)
	case want != nil && !equalTypes(types, want):
		p.fail(start, "%s gives %s: want that as its type", o.Code, typesText(types))
	case len(names) != len(types) && (len(names) > 0 || o.Code.IsPure()):
		p.fail(start, "%s gives %d results, not %d", o.Code, len(types), len(names))
	}
	for i, t := range types {
		if p.err != nil {
			return
		}
		v := p.result(names, i, t)
		v.Def, v.Index = o, i
		o.Results = append(o.Results, v)
	}
	p.region.Ops = append(p.region.Ops, o)
}

// result binds result i; results may be left without names as a whole.
func (p *parser) result(names []resultName, i int, t Type) *Value {
	if i >= len(names) {
		return p.kernel.NewValue("", t)
	}
	return p.bind(names[i].name, t, names[i].pos)
}

func equalTypes(x, y []Type) bool {
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if !x[i].Equal(y[i]) {
			return false
		}
	}
	return true
}

func typesText(ts []Type) string {
	parts := make([]string, len(ts))
	for i, t := range ts {
		parts[i] = t.String()
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

func (p *parser) bareWords(o *Op) {
	for _, id := range o.Code.Info().Attrs {
		if a := &attrTable[id]; a.bare {
			p.wordAttr(a.field(&o.Attrs).(word))
		}
	}
}

func (p *parser) wordAttr(w word) {
	p.blank()
	start := p.pos
	text := p.word()
	for i, name := range w.names {
		if name == text && p.err == nil {
			*w.p = uint8(i)
			return
		}
	}
	p.pos = start
	p.want("one of " + strings.Join(w.names, ", "))
}

// slots reads the operands.
func (p *parser) slots(o *Op) {
	for i, s := range o.Code.Info().Slots {
		if p.err != nil {
			return
		}
		lead := strings.TrimSpace(s.lead(i))
		switch {
		case s.Kind == SlotAny:
			p.anyOperands(o)
			continue
		case s.Optional && !p.accept(lead):
			continue
		case s.Optional:
			o.Given |= 1 << i
		case lead != "":
			p.expect(lead)
		}
		p.slot(o, s)
		if s.Tail != "" {
			p.expect(s.Tail)
		}
	}
}

func (p *parser) anyOperands(o *Op) {
	if p.peek('%') {
		p.list(func() { o.Args = append(o.Args, p.operand()) })
	}
}

func (p *parser) slot(o *Op, s Slot) {
	switch s.Kind {
	case SlotRings:
		p.list(func() { o.Args = append(o.Args, p.operand()) })
	case SlotIndices, SlotExtents:
		if p.peek(']') {
			return
		}
		start, n := p.pos, len(o.Args)
		p.list(func() { o.Args = append(o.Args, p.index()) })
		if view := o.Args[0]; s.Kind == SlotIndices && p.err == nil && len(o.Args)-n != len(view.Type.Dims) {
			p.fail(start, "%d indices: want one for each dimension of %s", len(o.Args)-n, view.Type)
		}
		if s.Kind == SlotExtents {
			o.Dims = make([]int, len(o.Args)-n)
			for i := range o.Dims {
				o.Dims[i] = i
			}
		}
	case SlotIndex:
		o.Args = append(o.Args, p.index())
	default:
		o.Args = append(o.Args, p.operand())
	}
}

// index reads a value, or a number, which becomes a constant before the
// operation unless the number was used in this scope already.
func (p *parser) index() *Value {
	p.blank()
	if p.err != nil || p.peek('%') {
		return p.operand()
	}
	o := &Op{Code: OpConst, Pos: p.here()}
	o.Int = p.int64(math.MinInt32, math.MaxInt32)
	key := "=" + intText(o.Int) // no name
	if v := p.values[key]; v != nil || p.err != nil {
		return v
	}
	v := p.bind(key, ScalarOf(I32), p.pos)
	v.Def = o
	o.Results = []*Value{v}
	p.region.Ops = append(p.region.Ops, o)
	return v
}

// attrs reads name=value and flags in any order, each once.
func (p *parser) attrs(o *Op) {
	seen := map[string]bool{}
	for p.err == nil {
		p.blank()
		start := p.pos
		name := p.word()
		id, ok := o.attrNamed(name)
		switch {
		case name == "":
			return
		case !ok:
			p.pos = start
			p.want("an attribute of " + o.Code.String() + ", or the end of the line")
		case seen[name]:
			p.fail(start, "attribute %s is given twice", name)
		default:
			seen[name] = true
			p.attr(o, id)
		}
	}
}

func (o *Op) attrNamed(name string) (attrID, bool) {
	if name == attrTable[attrSched].name {
		return attrSched, true
	}
	for _, id := range o.Code.Info().Attrs {
		if a := &attrTable[id]; a.name == name && !a.bare && a.field != nil {
			return id, true
		}
	}
	return 0, false
}

func (p *parser) attr(o *Op, id attrID) {
	if id == attrSched {
		p.sched(o)
		return
	}
	field := attrTable[id].field(&o.Attrs)
	if f, ok := field.(*bool); ok {
		*f = true
		return
	}
	p.expect("=")
	switch f := field.(type) {
	case *int:
		*f = p.int()
	case *[]int:
		*f = p.intList()
	case word:
		p.wordAttr(f)
	}
}

func (p *parser) sched(o *Op) {
	p.expect("=")
	start := p.pos
	v := p.intList()
	if len(v) != 2 {
		p.fail(start, "sched with %d numbers: want [stage, order]", len(v))
		return
	}
	o.Sched = Sched{Set: true, Stage: v[0], Order: v[1]}
}

// constant reads VALUE attrs : type; the value is read when its type is known.
func (p *parser) constant(o *Op, names []resultName, start int) {
	p.blank()
	value := p.pos
	for p.err == nil && p.pos < len(p.src) && !strings.ContainsRune(" \t\r\n:", rune(p.src[p.pos])) {
		p.pos++
	}
	p.attrs(o)
	want := p.resultTypes()
	if p.err != nil || len(want) != 1 {
		p.want("a value, then : and a type")
		return
	}
	after := p.pos
	p.pos = value
	p.constantValue(o, want[0].Elem)
	if p.err == nil && p.pos < len(p.src) && !strings.ContainsRune(" \t\r\n:", rune(p.src[p.pos])) {
		p.want("a value of " + want[0].Elem.String())
	}
	p.pos = max(after, p.pos)
	if p.err == nil {
		p.finishOp(o, names, want, start)
	}
}

func (p *parser) constantValue(o *Op, e Elem) {
	switch {
	case e.IsFloat():
		o.Float = p.float(e)
	case e == I1 && p.accept("true"):
		o.Int = 1
	case e == I1 && p.accept("false"):
	default:
		o.Int = p.int64(math.MinInt64, math.MaxInt64)
	}
}

// loop reads %k = lo to hi step s carry (%x = %init, ..) attrs : types { .. }.
func (p *parser) loop(o *Op, names []resultName, start int) {
	p.blank()
	index := resultName{pos: p.pos}
	p.expect("%")
	index.name = p.word()
	p.expect("=")
	o.Args = append(o.Args, p.index())
	p.expect("to")
	o.Args = append(o.Args, p.index())
	p.expect("step")
	o.Args = append(o.Args, p.index())
	var carried []resultName
	if p.accept("carry") {
		p.expect("(")
		p.list(func() {
			p.blank()
			c := resultName{pos: p.pos}
			p.expect("%")
			c.name = p.word()
			p.expect("=")
			carried = append(carried, c)
			o.Args = append(o.Args, p.operand())
		})
		p.expect(")")
	}
	p.attrs(o)
	want := p.resultTypes()
	if p.err != nil {
		return
	}
	mark := len(p.named)
	params := []*Value{p.bind(index.name, ScalarOf(I32), index.pos)}
	for i, c := range carried {
		params = append(params, p.bind(c.name, o.Args[3+i].Type, c.pos))
	}
	o.Regions = []*Region{p.block(params)}
	p.endScope(mark)
	p.finishOp(o, names, want, start)
}

// opRegions reads the regions of if and roles.
func (p *parser) opRegions(o *Op) {
	switch o.Code {
	case OpIf:
		o.Regions = append(o.Regions, p.block(nil))
		if p.accept("else") {
			o.Regions = append(o.Regions, p.block(nil))
		} else {
			o.Regions = append(o.Regions, &Region{Ops: []*Op{{Code: OpYield, Pos: p.here()}}})
		}
	case OpRoles:
		p.expect("{")
		p.body(func() {
			o.Roles = append(o.Roles, p.role())
			o.Regions = append(o.Regions, p.block(nil))
		})
	}
}

// role reads name(warps=1, regs=24).
func (p *parser) role() Role {
	r := Role{Name: p.name("a role such as load(warps=1)")}
	p.expect("(")
	p.list(func() {
		switch {
		case p.accept("warps"):
			p.expect("=")
			r.Warps = p.int()
		case p.accept("regs"):
			p.expect("=")
			r.Registers = p.int()
		default:
			p.want("warps=N or regs=N")
		}
	})
	p.expect(")")
	return r
}
