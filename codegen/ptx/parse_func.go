package ptx

import (
	"slices"
	"strings"
)

// function reads `.entry` or `.func` with all that belongs to it.
func (p *parser) function(pos Pos, linkage Linkage) *Function {
	f := &Function{Pos: pos, Linkage: linkage, Kernel: p.text == "entry"}
	p.next()
	if p.tok == tokDot && p.text == "attribute" {
		f.Attributes = p.attributes()
	}
	if p.tok == '(' {
		if f.Kernel {
			p.expected("the kernel's name: a kernel returns nothing")
		}
		f.Returns = p.parameters()
	}
	f.Name = p.ident("the function's name")
	if p.tok == '(' {
		f.Params = p.parameters()
	}
	p.directives(f)
	if p.accept(';') {
		return f
	}
	if p.tok != '{' {
		p.expected("'{' and the body, ';', or a directive such as .maxntid")
	}
	p.loc = nil
	f.Body = p.block()
	return f
}

// directiveValues is how many numbers each performance directive takes.
var directiveValues = map[string][2]int{
	"maxntid": {1, 3}, "reqntid": {1, 3}, "reqnctapercluster": {1, 3},
	"minnctapersm": {1, 1}, "maxnctapersm": {1, 1}, "maxnreg": {1, 1}, "maxclusterrank": {1, 1},
	"explicitcluster": {0, 0}, "blocksareclusters": {0, 0}, "noreturn": {0, 0},
	"abi_preserve": {1, 1}, "abi_preserve_control": {1, 1},
	"local_maxnreg": {1, 1}, "language": {1, 1},
}

// directives reads what stands between a function's head and its body.
func (p *parser) directives(f *Function) {
	for p.tok == tokDot {
		d := p.directive()
		if d.Name == "noreturn" {
			if f.NoReturn || len(f.Directives) > 0 {
				p.fail(d.Pos, ".noreturn: want it once, before other directives")
			}
			f.NoReturn = true
			continue
		}
		f.Directives = append(f.Directives, d)
	}
}

func (p *parser) directive() Directive {
	d := Directive{Pos: p.pos, Name: p.intern(p.text).Name}
	if d.Name == "pragma" {
		p.next()
		d.Text = p.strings()
		p.expect(';', "after a pragma")
		return d
	}
	count, ok := directiveValues[d.Name]
	if !ok {
		p.expected("a directive such as .maxntid, or the body")
	}
	p.next()
	for len(d.Values) < count[1] {
		d.Values = append(d.Values, p.integer("value of ."+d.Name, 0, 1<<32-1))
		if len(d.Values) == count[1] || !p.accept(',') {
			break
		}
	}
	return d
}

// block reads `{ ... }`.
func (p *parser) block() *Block {
	p.enter()
	defer p.leave()
	b := &Block{Pos: p.pos}
	p.next()
	base := len(p.stmts)
	for p.tok != '}' {
		if p.tok == tokEOF {
			p.fail(b.Pos, "block without its end: want '}'")
		}
		p.statement()
	}
	b.Stmts = slices.Clone(p.stmts[base:])
	p.stmts = p.stmts[:base]
	b.End = p.pos
	p.next()
	return b
}

func (p *parser) statement() {
	switch p.tok {
	case tokIdent, '@':
		p.labelOrInstruction()
	case '{':
		p.countDeclaration()
		p.stmts = append(p.stmts, p.block())
	case tokDot:
		p.bodyDirective()
	case tokDwarf:
		p.countDeclaration()
		p.stmts = append(p.stmts, p.dwarfLine())
	default:
		p.expected("an instruction, a label, a declaration or '}'")
	}
}

func (p *parser) bodyDirective() {
	p.countDeclaration()
	switch p.text {
	case "loc":
		p.loc = p.location()
		p.stmts = append(p.stmts, p.loc)
	case "file":
		p.stmts = append(p.stmts, p.sourceFile())
	case "section":
		p.stmts = append(p.stmts, p.section())
	case "pragma":
		p.stmts = append(p.stmts, p.pragma())
	default:
		pos := p.pos
		for _, v := range p.variables(pos, p.linkage()) {
			p.stmts = append(p.stmts, v)
		}
	}
}

// location reads `.loc file line col {, function_name f {+ n}, inlined_at file line col}`.
func (p *parser) location() *Loc {
	l := &Loc{Pos: p.pos}
	p.next()
	l.File, l.Line, l.Col = p.position()
	for p.accept(',') {
		switch what := p.ident("function_name or inlined_at"); what {
		case "function_name":
			l.Function = p.ident("a label")
			if p.accept('+') {
				l.FunctionOffset = p.integer("offset", 0, 1<<40)
			}
		case "inlined_at":
			l.Inlined = true
			l.AtFile, l.AtLine, l.AtCol = p.position()
		default:
			p.fail(l.Pos, "%q in .loc: want function_name or inlined_at", clip(what))
		}
	}
	return l
}

func (p *parser) position() (file, line, col int32) {
	file = int32(p.integer("file number", 0, 1<<31-1))
	line = int32(p.integer("line", 0, 1<<31-1))
	col = int32(p.integer("column", 0, 1<<31-1))
	return file, line, col
}

// labelOrInstruction reads what begins with a name or a guard.
func (p *parser) labelOrInstruction() {
	pos := p.pos
	if p.tok == '@' {
		p.next()
		guard := p.guard()
		p.stmts = append(p.stmts, p.instruction(pos, guard, p.word("an instruction")))
		return
	}
	name := p.word("an instruction")
	if p.tok != ':' {
		p.stmts = append(p.stmts, p.instruction(pos, nil, name))
		return
	}
	p.countDeclaration()
	name = p.intern(name).Name
	p.next()
	switch {
	case p.tok == tokDot && p.text == "callprototype":
		p.stmts = append(p.stmts, p.prototype(pos, name))
	case p.tok == tokDot && (p.text == "branchtargets" || p.text == "calltargets"):
		p.stmts = append(p.stmts, p.targetList(pos, name))
	default:
		p.stmts = append(p.stmts, &Label{Pos: pos, Name: name})
	}
}

// word reads a name that the tree does not keep.
func (p *parser) word(what string) string {
	if p.tok != tokIdent {
		p.expected(what)
	}
	s := p.text
	p.next()
	return s
}

func (p *parser) guard() *Operand {
	neg := p.accept('!')
	g := &cutSlice(&p.operandChunk, 1, 256)[0]
	*g = p.name()
	g.Neg = neg
	return g
}

// prototype reads `.callprototype (returns) _ (params) .noreturn;`.
func (p *parser) prototype(pos Pos, name string) *Prototype {
	t := &Prototype{Pos: pos, Name: name}
	p.next()
	if p.tok == '(' {
		t.Returns = p.parameters()
	}
	if s := p.ident("_ in place of the function's name"); s != "_" {
		p.fail(p.pos, "prototype of %q: want _ in place of a name", clip(s))
	}
	if p.tok == '(' {
		t.Params = p.parameters()
	}
	for p.tok == tokDot {
		if d := p.directive(); d.Name == "noreturn" {
			t.NoReturn = true
		} else {
			t.Directives = append(t.Directives, d)
		}
	}
	p.expect(';', "after a prototype")
	return t
}

func (p *parser) targetList(pos Pos, name string) *TargetList {
	t := &TargetList{Pos: pos, Name: name, Call: p.text == "calltargets"}
	p.next()
	for {
		t.Names = append(t.Names, p.name())
		if !p.accept(',') {
			break
		}
	}
	p.expect(';', "after a list of targets")
	return t
}

// instruction reads an instruction after its first word.
func (p *parser) instruction(pos Pos, guard *Operand, first string) *Instruction {
	p.count(&p.instructions, MaxInstructions, "instructions")
	in := cut(&p.instChunk, 128)
	in.Pos, in.Guard, in.Loc = pos, guard, p.loc

	in.Opcode = p.readOpcode(first)
	base := len(p.operands)
	if p.tok == '}' || p.tok == tokEOF {
		p.expected("an operand, or ';' to end " + clip(first))
	}
	if p.tok != ';' {
		call := in.Name == "call"
		for {
			p.operands = append(p.operands, p.instOperand(call))
			if !p.accept(',') {
				break
			}
		}
	}
	in.Operands = p.keep(base)
	if p.tok != ';' {
		p.expected("',' and an operand, or ';' to end " + clip(first))
	}
	p.next()
	return in
}

// readOpcode reads an instruction's dotted words.
func (p *parser) readOpcode(first string) *Opcode {
	p.opcode = append(p.opcode[:0], first...)
	for p.tok == tokDot {
		p.opcode = append(append(p.opcode, '.'), p.text...)
		p.next()
	}
	if o, ok := p.opcodes[string(p.opcode)]; ok {
		return o
	}
	key := string(p.opcode)
	o := newOpcode(key)
	p.opcodes[key] = o
	return o
}

// newOpcode splits an opcode as the table of instructions has it.
func newOpcode(text string) *Opcode {
	words := strings.Split(text, ".")
	name, used := splitName(words[0], words[1:])
	o := &Opcode{Name: name}
	if mods := words[1+used:]; len(mods) > 0 {
		o.Mods = mods
	}
	return o
}

// keep moves the scratch operands from base on into a slice of their own.
func (p *parser) keep(base int) []Operand {
	n := len(p.operands) - base
	if n == 0 {
		return nil
	}
	s := cutSlice(&p.operandChunk, n, 256)
	copy(s, p.operands[base:])
	p.operands = p.operands[:base]
	return s
}

// keepParts is keep for the parts of an operand.
func (p *parser) keepParts(base int) *[]Operand {
	parts := cut(&p.partsChunk, 128)
	*parts = p.keep(base)
	return parts
}
