package ptx

import (
	"io"
	"math"
	"strconv"
	"strings"
)

// Print writes a module as String has it.
func Print(w io.Writer, m *Module) error {
	_, err := io.WriteString(w, m.String())
	return err
}

// String is the module as text that parses to the same tree, positions apart.
// Comments are not kept. A tree that Resolve has been through prints the same,
// but for vector registers, which print component by component.
func (m *Module) String() string {
	var p printer
	p.b.Grow(m.textSize())
	p.module(m)
	return p.b.String()
}

// textSize is about how many bytes the module's text has, rather more.
func (m *Module) textSize() int {
	n := 1024
	for _, d := range m.Decls {
		f, ok := d.(*Function)
		if !ok || f.Body == nil {
			continue
		}
		for _, s := range f.Body.Stmts {
			if in, ok := s.(*Instruction); ok {
				n += in.textSize()
			}
		}
	}
	return n
}

func (in *Instruction) textSize() int {
	n := 4 + len(in.Name)
	if in.Guard != nil {
		n += 8
	}
	for _, m := range in.Mods {
		n += 1 + len(m)
	}
	for i := range in.Operands {
		n += 8 * max(1, len(in.Operands[i].Elems()))
	}
	return n
}

// String is the instruction as text, without its end.
func (in *Instruction) String() string {
	var p printer
	p.instruction(in)
	return p.b.String()
}

// String is the operand as text.
func (o *Operand) String() string {
	var p printer
	p.operand(o)
	return p.b.String()
}

type printer struct {
	b      strings.Builder
	indent int
	buf    [24]byte
}

func (p *printer) s(parts ...string) {
	for _, s := range parts {
		p.b.WriteString(s)
	}
}

func (p *printer) n(v int64)  { p.b.Write(strconv.AppendInt(p.buf[:0], v, 10)) }
func (p *printer) u(v uint64) { p.b.Write(strconv.AppendUint(p.buf[:0], v, 10)) }

func (p *printer) tabs() {
	for range p.indent {
		p.b.WriteByte('\t')
	}
}

func (p *printer) module(m *Module) {
	p.s(".version ", m.Version.String(), "\n.target ", strings.Join(m.Targets, ", "), "\n")
	if !m.Version.Less(sizedAddresses) {
		p.s(".address_size ")
		p.n(int64(m.AddressSize))
		p.s("\n")
	}
	for i, d := range m.Decls {
		f, isFunc := d.(*Function)
		if i == 0 || isFunc {
			p.s("\n")
		}
		switch d := d.(type) {
		case *Variable:
			p.variable(d)
			p.s(";\n")
		case *Function:
			p.function(f)
		case *Alias:
			p.s(".alias ", d.Name, ", ", d.Target, ";\n")
		case *SourceFile:
			p.sourceFile(d)
		case *Section:
			p.section(d)
		case *Pragma:
			p.pragma(d.Text)
			p.s("\n")
		}
	}
}

func (p *printer) linkage(l Linkage) {
	if l != Private {
		p.s(".", l.String(), " ")
	}
}

func (p *printer) attributes(all []Attribute) {
	if len(all) == 0 {
		return
	}
	p.s(".attribute(")
	for i, a := range all {
		if i > 0 {
			p.s(", ")
		}
		p.s(".", a.Name)
		if len(a.Values) == 0 {
			continue
		}
		p.s("(")
		for j, v := range a.Values {
			if j > 0 {
				p.s(", ")
			}
			p.n(v)
		}
		p.s(")")
	}
	p.s(") ")
}

// variable prints a declaration without its end.
func (p *printer) variable(v *Variable) {
	p.linkage(v.Linkage)
	p.s(".", v.Space.String())
	if v.Bank >= 0 {
		p.s("[")
		p.n(int64(v.Bank))
		p.s("]")
	}
	p.s(" ")
	p.attributes(v.Attributes)
	if v.Align > 0 {
		p.s(".align ")
		p.n(int64(v.Align))
		p.s(" ")
	}
	if v.Vector > 0 {
		p.s(".v")
		p.n(int64(v.Vector))
		p.s(" ")
	}
	p.s(".", v.Type.String(), " ")
	if v.Ptr {
		p.pointer(v)
	}
	p.s(v.Name)
	if v.Range > 0 {
		p.s("<")
		p.n(int64(v.Range))
		p.s(">")
	}
	for _, d := range v.Dims {
		p.s("[")
		if d >= 0 {
			p.n(d)
		}
		p.s("]")
	}
	if v.Init != nil {
		p.s(" = ")
		p.init(v.Init)
	}
}

func (p *printer) pointer(v *Variable) {
	p.s(".ptr ")
	if v.PtrSpace != SpaceGeneric {
		p.s(".", v.PtrSpace.String(), " ")
	}
	if v.PtrAlign > 0 {
		p.s(".align ")
		p.n(int64(v.PtrAlign))
		p.s(" ")
	}
}

func (p *printer) init(in *Init) {
	if in.IsList {
		p.s("{")
		for i := range in.List {
			if i > 0 {
				p.s(", ")
			}
			p.init(&in.List[i])
		}
		p.s("}")
		return
	}
	if in.Field != "" {
		p.s(in.Field, " = ")
	}
	if in.Mask != 0 {
		p.s("0x", strconv.FormatUint(in.Mask, 16), "(")
	}
	if in.Generic {
		bare := in.Value
		bare.Value = 0
		p.s("generic(")
		p.operand(&bare)
		p.s(")")
		p.offset(in.Value.Offset())
	} else {
		p.operand(&in.Value)
	}
	if in.Mask != 0 {
		p.s(")")
	}
}

func (p *printer) sourceFile(f *SourceFile) {
	p.s(".file ")
	p.n(int64(f.Index))
	p.s(" \"", f.Name, "\"")
	if f.Timestamp >= 0 {
		p.s(", ")
		p.n(f.Timestamp)
		p.s(", ")
		p.n(f.Size)
	}
	p.s("\n")
}

func (p *printer) section(s *Section) {
	if s.Name == "@@" {
		p.s(s.Text, "\n")
		return
	}
	p.s(".section ", s.Name, "\n{\n", s.Text, "\n}\n")
}

func (p *printer) pragma(text []string) {
	p.s(".pragma ")
	for i, t := range text {
		if i > 0 {
			p.s(", ")
		}
		p.s("\"", t, "\"")
	}
	p.s(";")
}

func (p *printer) function(f *Function) {
	p.linkage(f.Linkage)
	if f.Kernel {
		p.s(".entry ")
	} else {
		p.s(".func ")
	}
	p.attributes(f.Attributes)
	if f.Returns != nil {
		p.parameters(f.Returns, false)
		p.s(" ")
	}
	p.s(f.Name)
	if f.Params != nil {
		p.parameters(f.Params, true)
	}
	if f.NoReturn {
		p.s("\n.noreturn")
	}
	p.directives(f.Directives)
	if f.Body == nil {
		p.s(";\n")
		return
	}
	p.s("\n")
	p.block(f.Body)
}

func (p *printer) directives(all []Directive) {
	for _, d := range all {
		p.s("\n")
		if d.Name == "pragma" {
			p.pragma(d.Text)
			continue
		}
		p.s(".", d.Name)
		for i, v := range d.Values {
			if i > 0 {
				p.s(",")
			}
			p.s(" ")
			p.n(v)
		}
	}
}

func (p *printer) parameters(all []*Variable, wide bool) {
	wide = wide && len(all) > 1
	p.s("(")
	for i, v := range all {
		if i > 0 {
			p.s(",")
		}
		switch {
		case wide:
			p.s("\n\t")
		case i > 0:
			p.s(" ")
		}
		p.variable(v)
	}
	if wide {
		p.s("\n")
	}
	p.s(")")
}

func (p *printer) block(b *Block) {
	p.tabs()
	p.s("{\n")
	p.indent++
	for _, s := range b.Stmts {
		p.statement(s)
	}
	p.indent--
	p.tabs()
	p.s("}\n")
}

func (p *printer) statement(s Stmt) {
	switch s := s.(type) {
	case *Block:
		p.block(s)
		return
	case *Label:
		p.s(s.Name, ":\n")
		return
	case *SourceFile:
		p.tabs()
		p.sourceFile(s)
		return
	case *Section:
		p.section(s)
		return
	}
	p.tabs()
	switch s := s.(type) {
	case *Instruction:
		p.instruction(s)
		p.s(";")
	case *Variable:
		p.variable(s)
		p.s(";")
	case *Loc:
		p.location(s)
	case *Pragma:
		p.pragma(s.Text)
	case *Prototype:
		p.prototype(s)
	case *TargetList:
		p.targetList(s)
	}
	p.s("\n")
}

func (p *printer) location(l *Loc) {
	p.s(".loc")
	p.position(l.File, l.Line, l.Col)
	if l.Function != "" {
		p.s(", function_name ", l.Function)
		if l.FunctionOffset != 0 {
			p.s("+")
			p.n(l.FunctionOffset)
		}
	}
	if l.Inlined {
		p.s(", inlined_at")
		p.position(l.AtFile, l.AtLine, l.AtCol)
	}
}

func (p *printer) position(all ...int32) {
	for _, v := range all {
		p.s(" ")
		p.n(int64(v))
	}
}

func (p *printer) prototype(t *Prototype) {
	p.s(t.Name, ": .callprototype ")
	if t.Returns != nil {
		p.parameters(t.Returns, false)
		p.s(" ")
	}
	p.s("_")
	if t.Params != nil {
		p.s(" ")
		p.parameters(t.Params, false)
	}
	if t.NoReturn {
		p.s(" .noreturn")
	}
	p.directives(t.Directives)
	p.s(";")
}

func (p *printer) targetList(t *TargetList) {
	p.s(t.Name, ": ")
	if t.Call {
		p.s(".calltargets ")
	} else {
		p.s(".branchtargets ")
	}
	p.list(t.Names)
	p.s(";")
}

func (p *printer) instruction(in *Instruction) {
	if in.Guard != nil {
		p.s("@")
		p.operand(in.Guard)
		p.s(" ")
	}
	p.s(in.Name)
	for _, m := range in.Mods {
		p.s(".", m)
	}
	if len(in.Operands) > 0 {
		p.s(" ")
		p.list(in.Operands)
	}
}

func (p *printer) list(all []Operand) {
	for i := range all {
		if i > 0 {
			p.s(", ")
		}
		p.operand(&all[i])
	}
}

func (p *printer) operand(o *Operand) {
	switch o.Kind {
	case OpImm:
		p.immediate(o)
	case OpAddr:
		p.s("[")
		p.list(o.Elems())
		p.s("]")
		p.member(o.Member)
	case OpVector:
		p.s("{")
		p.list(o.Elems())
		p.s("}")
	case OpList:
		p.s("(")
		p.list(o.Elems())
		p.s(")")
	case OpPair:
		p.operand(&o.Elems()[0])
		p.s("|")
		p.operand(&o.Elems()[1])
	case OpIndex:
		p.s(o.Name(), "[")
		p.list(o.Elems())
		p.s("]")
	case OpSink:
		if o.Neg {
			p.s("!")
		}
		p.s("_")
	case OpNone:
	default:
		p.named(o)
	}
}

// named prints a name, resolved or not.
func (p *printer) named(o *Operand) {
	if o.Neg {
		p.s("!")
	}
	if o.Minus {
		p.s("-")
	}
	p.s(o.Name())
	p.member(o.Member)
	p.offset(o.Offset())
}

func (p *printer) member(m Member) {
	if m != 0 {
		p.s(".", m.String())
	}
}

func (p *printer) offset(n int64) {
	if n == 0 {
		return
	}
	p.s("+") // also before a minus sign: ptxas takes [%r1+-16] but not [%r1-16]
	p.n(n)
}

// immediate prints a number so that it reads back with the same kind and bits.
func (p *printer) immediate(o *Operand) {
	switch o.Imm {
	case ImmF32:
		p.hex("0f", o.Value, 8)
	case ImmF64:
		p.hex("0d", o.Value, 16)
	case ImmUint:
		p.magnitude(o.Radix, o.Value)
		if o.Value <= math.MaxInt64 {
			p.s("U")
		}
	default:
		v := o.Value
		if int64(v) < 0 {
			p.s("-")
			v = -v
		}
		p.magnitude(o.Radix, v)
	}
}

func (p *printer) hex(prefix string, v uint64, digits int) {
	p.s(prefix)
	for i := digits - 1; i >= 0; i-- {
		p.b.WriteByte("0123456789ABCDEF"[v>>(4*i)&15])
	}
}

func (p *printer) magnitude(radix uint8, v uint64) {
	switch radix {
	case 16:
		p.s("0x", strconv.FormatUint(v, 16))
	case 8:
		p.s("0", strconv.FormatUint(v, 8))
	case 2:
		p.s("0b", strconv.FormatUint(v, 2))
	default:
		p.u(v)
	}
}
