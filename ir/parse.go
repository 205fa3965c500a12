package ir

import (
	"fmt"
	"math"
)

// MaxNesting is how deep regions, and parentheses of sizes, may nest.
const MaxNesting = 32

// parser builds a program from its textual form.
type parser struct {
	scanner
	layouts map[string]placement
	depth   int

	kernel *Kernel
	region *Region
	values map[string]*Value // those defined so far that are in scope
	named  []string          // their names, in order
	ended  map[string]bool   // names of values no longer in scope
}

// Parse reads the textual form of a program, or of a single kernel, which is
// wrapped by Single. file names the text in errors, which have the form
// file:line:column: message. The result is verified.
func Parse(file string, src []byte) (*Program, error) {
	p := &parser{scanner: scanner{file: file, src: string(src)}, layouts: map[string]placement{}}
	prog := p.program()
	if p.err != nil {
		return nil, p.err
	}
	if err := Verify(prog); err != nil {
		return nil, err
	}
	return prog, nil
}

func (p *parser) program() *Program {
	prog := &Program{}
	for p.lines() {
		switch {
		case p.accept("layout"):
			p.define()
		case p.accept("program"):
			if prog.Name != "" {
				p.fail(p.pos, "a second program: want one in a file")
			}
			p.programBody(prog)
		case p.accept("kernel"):
			prog.Kernels = append(prog.Kernels, p.kernelBody())
		default:
			p.want("program, kernel or layout")
		}
		p.endLine()
	}
	switch {
	case p.err != nil:
	case prog.Name == "" && len(prog.Kernels) == 1:
		return Single(prog.Kernels[0])
	case prog.Name == "":
		p.fail(p.pos, "no program and %d kernels: want a program, or one kernel alone", len(prog.Kernels))
	}
	return prog
}

// define reads #0 = layout<..>.
func (p *parser) define() {
	p.expect("#")
	start := p.pos
	name := p.word()
	p.expect("=")
	if _, ok := p.layouts[name]; ok || name == "" {
		p.fail(start, "layout #%s: want a name not yet used", name)
	}
	p.layouts[name] = p.layout("")
}

// nested enters a level of nesting; it fails if there are too many.
func (p *parser) nested(most int) bool {
	if p.depth == most {
		p.fail(p.pos, "nested more than %d deep", most)
		return false
	}
	p.depth++
	return true
}

func (p *parser) unnest() { p.depth-- }

// params reads (%a: type, ..).
func (p *parser) params(add func(name string, t Type, pos int)) {
	p.expect("(")
	for n := 0; p.err == nil && !p.accept(")"); n++ {
		if n > 0 {
			p.expect(",")
		}
		p.blank()
		start := p.pos
		name := p.sigil("%", "a parameter such as %a: view<f32>[N]")
		p.expect(":")
		add(name, p.typ(), start)
		if n == MaxParams {
			p.fail(start, "more than %d parameters", MaxParams)
		}
	}
}

func (p *parser) programBody(prog *Program) {
	prog.Pos = p.here()
	prog.Name = p.sigil("@", "the program's name, @name")
	p.params(func(name string, t Type, _ int) {
		prog.Params = append(prog.Params, &Value{ID: len(prog.Params), Name: name, Type: t})
	})
	p.expect("{")
	p.body(func() {
		pos := p.here()
		switch {
		case p.accept("workspace"):
			prog.Workspace = append(prog.Workspace, p.buffer(pos))
		case p.accept("step"):
			prog.Steps = append(prog.Steps, p.step(pos))
		default:
			p.want("workspace, step or }")
		}
	})
}

func (p *parser) buffer(pos Pos) Buffer {
	b := Buffer{Name: p.sigil("%", "a buffer such as %part: f32[4, M]"), Pos: pos}
	p.expect(":")
	b.Elem = p.elem()
	p.expect("[")
	for p.err == nil && !p.accept("]") {
		if len(b.Dims) > 0 {
			p.expect(",")
		}
		b.Dims = append(b.Dims, p.expr())
	}
	b.Zero = p.accept("zero")
	return b
}

func (p *parser) step(pos Pos) Step {
	s := Step{Kernel: p.sigil("@", "a kernel's name, @name"), Pos: pos}
	p.expect("(")
	for p.err == nil && !p.accept(")") {
		if len(s.Args) > 0 {
			p.expect(",")
		}
		s.Args = append(s.Args, p.sigil("%", "a parameter or a buffer, %name"))
	}
	return s
}

func (p *parser) kernelBody() *Kernel {
	k := &Kernel{Body: &Region{}, Pos: p.here()}
	p.kernel, p.region = k, k.Body
	p.values, p.named, p.ended = map[string]*Value{}, nil, map[string]bool{}
	k.Name = p.sigil("@", "the kernel's name, @name")
	p.params(func(name string, t Type, pos int) {
		k.Params = append(k.Params, p.bind(name, t, pos))
	})
	p.expect("{")
	p.headerLines()
	p.body(p.op)
	return k
}

// bind makes a value and gives it a name; numbers are no names.
func (p *parser) bind(name string, t Type, pos int) *Value {
	v := p.kernel.NewValue("", t)
	if isName(name) {
		v.Name = name
	}
	switch {
	case p.err != nil:
	case p.values[name] != nil:
		p.fail(pos, "%%%s is defined twice", name)
	default:
		p.values[name] = v
		p.named = append(p.named, name)
	}
	return v
}

// endScope ends the life of the names bound since named had length mark.
func (p *parser) endScope(mark int) {
	for _, name := range p.named[mark:] {
		delete(p.values, name)
		p.ended[name] = true
	}
	p.named = p.named[:mark]
}

func (p *parser) headerLines() {
	k := p.kernel
	for p.lines() {
		switch {
		case p.accept("assume"):
			k.Assume = append(k.Assume, p.assumption())
		case p.accept("over"):
			p.list(func() { k.Space = append(k.Space, p.axis()) })
		case p.accept("order"):
			p.list(p.order)
		case p.accept("hints"):
			p.list(p.hint)
		default:
			return
		}
		p.endLine()
	}
}

// list reads what read reads, again after each comma.
func (p *parser) list(read func()) {
	read()
	for p.err == nil && p.accept(",") {
		read()
	}
}

func (p *parser) axis() Axis {
	p.blank()
	start := p.pos
	if !p.accept("%") {
		p.want("a tile-space variable such as %i: ceildiv(M, 128)")
	}
	name := p.word()
	p.expect(":")
	count := p.expr()
	return Axis{Var: p.bind(name, ScalarOf(I32), start), Count: count}
}

func (p *parser) order() {
	o := &p.kernel.Order
	switch {
	case p.accept("grouped"):
		o.Group = p.int()
	case p.accept("hilbert"):
		o.Hilbert = p.int()
	case p.accept("reversed"):
		o.Reversed = append(o.Reversed, p.int())
	default:
		p.want("grouped N, hilbert N or reversed AXIS")
	}
}

func (p *parser) hint() {
	p.blank()
	start := p.pos
	h := p.kernel.Hints.Hint(p.word())
	if h == nil {
		p.pos = start
		p.want(fmt.Sprintf("one of the hints %v", HintNames))
		return
	}
	p.expect("=")
	*h = p.int()
}

// assumption reads what printer.assumption writes.
func (p *parser) assumption() Assumption {
	a := Assumption{}
	multiple, interval := AssumeMultiple, AssumeRange
	switch {
	case p.accept("stride"):
		a.Param, a.Dim = p.paramDim(true)
		if p.accept("=") {
			a.Kind, a.Lo = AssumeStride, p.int64(0, math.MaxInt64)
			return a
		}
		multiple, interval = AssumeStrideMultiple, AssumeStride
	case p.accept("pointer"):
		a.Param, _ = p.paramDim(false)
		multiple, interval = AssumePointer, AssumePointer
	case p.accept("dim"):
		a.Param, a.Dim = p.paramDim(true)
		multiple, interval = AssumeDimMultiple, AssumeDimRange
	default:
		a.Param = p.operand()
	}
	switch {
	case p.accept("%"):
		a.Kind, a.Lo = multiple, p.int64(1, math.MaxInt64)
		p.expect("=")
		p.int64(0, 0)
	case (interval == AssumeDimRange || interval == AssumeRange) && p.accept("in"):
		a.Kind, a.Lo = interval, p.int64(math.MinInt64, math.MaxInt64)
		p.expect("..")
		a.Hi = p.int64(math.MinInt64, math.MaxInt64)
	default:
		p.want("an assumption such as stride(%a, 0) % 8 = 0 or %n in 1 .. 5")
	}
	return a
}

// paramDim reads (%a, 1), or (%a) if there is no dimension.
func (p *parser) paramDim(withDim bool) (*Value, int) {
	p.expect("(")
	v, dim := p.operand(), 0
	if withDim {
		p.expect(",")
		dim = p.int()
	}
	p.expect(")")
	return v, dim
}

// operand reads %name of a value in scope.
func (p *parser) operand() *Value {
	p.blank()
	start := p.pos
	if !p.accept("%") {
		p.want("a value, %name")
		return nil
	}
	name := p.word()
	v := p.values[name]
	if v == nil && p.err == nil {
		if p.ended[name] {
			p.fail(start, "%%%s is defined in a region that has ended", name)
		}
		p.fail(start, "%%%s is not defined", name)
	}
	return v
}
