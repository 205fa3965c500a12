package ptx

// variables reads one declaration, from its space to the semicolon: a Variable
// for each name.
func (p *parser) variables(pos Pos, linkage Linkage) []*Variable {
	proto := Variable{Pos: pos, Linkage: linkage, Bank: -1}
	p.variableType(&proto)
	var all []*Variable
	for {
		p.countDeclaration()
		v := proto
		v.Pos = p.pos
		p.declarator(&v)
		if p.accept('=') {
			v.Init = p.initialiser()
		}
		all = append(all, &v)
		if !p.accept(',') {
			break
		}
	}
	p.expect(';', "after a declaration")
	return all
}

// parameter reads one parameter of a function.
func (p *parser) parameter() *Variable {
	p.countDeclaration()
	v := &Variable{Pos: p.pos, Bank: -1}
	p.variableType(v)
	p.declarator(v)
	return v
}

// parameters reads `( ... )`; the '(' is the current token.
func (p *parser) parameters() []*Variable {
	p.next()
	all := []*Variable{}
	if p.accept(')') {
		return all
	}
	for {
		all = append(all, p.parameter())
		if p.accept(')') {
			return all
		}
		p.expect(',', "or ')' after a parameter")
	}
}

// variableType reads the dotted words before a name: space, alignment,
// attributes, vector, type, pointer notes.
func (p *parser) variableType(v *Variable) {
	if p.tok != tokDot || !p.space(v) {
		p.expected("a state space such as .reg or .global, or .entry or .func")
	}
	for p.tok == tokDot {
		switch p.text {
		case "align":
			p.alignment(v)
		case "attribute":
			v.Attributes = append(v.Attributes, p.attributes()...)
		case "ptr":
			p.next()
			v.Ptr = true
		case "v2", "v4", "v8":
			v.Vector = int(p.text[1] - '0')
			p.next()
		case "global", "const", "shared", "local":
			if !v.Ptr {
				p.expected("a type such as .b32")
			}
			v.PtrSpace = spaceByName[p.text]
			p.next()
		default:
			t, ok := ParseType(p.text)
			if !ok || v.Type != NoType {
				p.expected("one type such as .b32, then a name")
			}
			v.Type = t
			p.next()
		}
	}
	if v.Type == NoType {
		p.expected("a type such as .b32")
	}
}

var spaceByName = func() map[string]Space {
	m := make(map[string]Space, numSpaces)
	for s := SpaceReg; s < numSpaces; s++ {
		m[spaceNames[s]] = s
	}
	return m
}()

func (p *parser) space(v *Variable) bool {
	s, ok := spaceByName[p.text]
	if !ok {
		return false
	}
	v.Space = s
	p.next()
	if s == SpaceConst && p.accept('[') {
		v.Bank = int(p.integer("constant bank", 0, 10))
		p.expect(']', "after the bank's number")
	}
	return true
}

func (p *parser) alignment(v *Variable) {
	p.next()
	pos := p.pos
	n := int(p.integer("alignment", 1, 1<<20))
	if n&(n-1) != 0 {
		p.fail(pos, "alignment %d: want a power of two", n)
	}
	if v.Ptr {
		v.PtrAlign = n
		return
	}
	v.Align = n
}

// attributes reads `.attribute(.name, .name(1, 2))`.
func (p *parser) attributes() []Attribute {
	p.next()
	p.expect('(', "after .attribute")
	var all []Attribute
	for {
		if p.tok != tokDot {
			p.expected("an attribute such as .managed")
		}
		a := Attribute{Name: p.intern(p.text).Name}
		p.next()
		if p.accept('(') {
			for {
				a.Values = append(a.Values, int64(p.constant().bits))
				if !p.accept(',') {
					break
				}
			}
			p.expect(')', "after the attribute's values")
		}
		all = append(all, a)
		if !p.accept(',') {
			break
		}
	}
	p.expect(')', "after the attributes")
	return all
}

// maxExtent bounds array extents and register ranges: 2^40 is beyond any
// memory, and products of a few do not overflow before Variable.Size is asked.
const maxExtent = 1 << 40

// declarator reads a name with its range or extents.
func (p *parser) declarator(v *Variable) {
	v.Name = p.ident("a name")
	if p.accept('<') {
		v.Range = p.registers()
		p.expect('>', "after the number of registers")
		return
	}
	total := v.ElementSize()
	for p.tok == '[' {
		p.next()
		if p.accept(']') {
			v.Dims = append(v.Dims, -1)
			continue
		}
		pos := p.pos
		n := p.integer("extent", 0, maxExtent)
		if n > 0 {
			if total > maxExtent/n {
				p.fail(pos, "variable %s has more than 2^40 bytes", clip(v.Name))
			}
			total *= n
		}
		v.Dims = append(v.Dims, n)
		if len(v.Dims) > MaxNest {
			p.fail(pos, "more than %d dimensions", MaxNest)
		}
		p.expect(']', "after an extent")
	}
}

// initialiser reads a value, or values in braces.
func (p *parser) initialiser() *Init {
	in := p.initValue()
	return &in
}

func (p *parser) initValue() Init {
	if p.tok != '{' {
		return p.initScalar()
	}
	p.enter()
	defer p.leave()
	p.next()
	in := Init{IsList: true}
	for p.tok != '}' {
		in.List = append(in.List, p.initValue())
		if p.tok != '}' {
			p.expect(',', "or '}' in a list of values")
		}
	}
	p.next()
	return in
}

// initScalar reads a number, a name with an offset, `generic(name)+4`,
// `0xFF(name)` or, for samplers, `field = value`.
func (p *parser) initScalar() Init {
	if p.values++; p.values > MaxValues {
		p.fail(p.pos, "initialisers of more than %d values", MaxValues)
	}
	if p.tok == tokIdent && p.text == "generic" {
		in := Init{Generic: true}
		p.next()
		p.expect('(', "after generic")
		in.Value = p.name()
		p.expect(')', "after the name")
		p.offset(&in.Value)
		return in
	}
	if p.tok == tokIdent && p.text != warpSize {
		in := Init{Value: p.name()}
		if p.accept('=') {
			in.Field = in.Value.Name()
			in.Value = p.operand()
			return in
		}
		p.offset(&in.Value)
		return in
	}
	in := Init{Value: p.immediate()}
	if p.tok == '(' && in.Value.Imm != ImmF32 && in.Value.Imm != ImmF64 {
		if in.Mask = in.Value.Value; in.Mask == 0 {
			p.fail(in.Value.Pos, "mask 0: want the bytes to keep, such as 0xFF")
		}
		p.next()
		if p.tok == tokIdent && p.text == "generic" {
			in.Generic = true
			p.next()
			p.expect('(', "after generic")
			in.Value = p.name()
			p.expect(')', "after the name")
		} else {
			in.Value = p.name()
		}
		p.offset(&in.Value)
		p.expect(')', "after the masked name")
	}
	return in
}
