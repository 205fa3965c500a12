package ptx

import (
	"fmt"
	"strconv"
	"strings"
)

// Limits of Parse. Text beyond them is refused, so that a small file cannot
// ask for much memory or a deep stack.
const (
	MaxSource       = 1 << 25 // bytes of text
	MaxInstructions = 1 << 20
	MaxDeclarations = 1 << 20 // labels, blocks and directives among them
	MaxNest         = 100     // braces, brackets and parentheses inside one another
	MaxValues       = 1 << 20 // values of all initialisers together
)

// Parse reads a module. It wants the grammar alone: names are not looked up
// (Resolve) and instructions are not compared with the table (Check). The
// error is an *Error.
func Parse(file string, src []byte) (m *Module, err error) {
	if len(src) > MaxSource {
		return nil, &Error{File: file, Msg: fmt.Sprintf("%d bytes of PTX: want at most %d", len(src), MaxSource)}
	}
	p := &parser{
		lexer:   lexer{file: file, src: string(src), line: 1},
		symbols: map[string]*Symbol{}, opcodes: map[string]*Opcode{},
	}
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*Error)
			if !ok {
				panic(r)
			}
			m, err = nil, e
		}
	}()
	p.next()
	return p.module(), nil
}

type parser struct {
	lexer
	nest         int
	values       int // of initialisers
	instructions int
	declarations int

	loc *Loc // in force

	debugLabels map[string]bool // of sections

	// Names and opcodes, each once: the tree refers to none of the text, which
	// may go.
	symbols map[string]*Symbol
	opcodes map[string]*Opcode

	// Scratch: what is not complete yet.
	operands []Operand
	stmts    []Stmt
	opcode   []byte // an instruction's words

	// Chunks that small slices and nodes are cut from.
	operandChunk []Operand
	partsChunk   [][]Operand
	instChunk    []Instruction
	symbolChunk  []Symbol
}

// fail ends the parse; Parse recovers it.
func (l *lexer) fail(pos Pos, format string, args ...any) {
	panic(&Error{File: l.file, Pos: pos, Msg: fmt.Sprintf(format, args...)})
}

// found describes the current token for a message.
func (p *parser) found() string {
	switch p.tok {
	case tokEOF:
		return "the end of the file"
	case tokString:
		return strconv.Quote(clip(p.text))
	case tokDot:
		return "." + clip(p.text)
	}
	return "'" + clip(p.text) + "'"
}

// clip shortens text for a message.
func clip(s string) string {
	if len(s) > 60 {
		return s[:60] + "..."
	}
	return s
}

// expected fails with what would have been right.
func (p *parser) expected(what string) {
	p.fail(p.pos, "found %s: want %s", p.found(), what)
}

func (p *parser) accept(t token) bool {
	if p.tok != t {
		return false
	}
	p.next()
	return true
}

func (p *parser) expect(t token, after string) {
	if !p.accept(t) {
		p.expected(fmt.Sprintf("'%c' %s", rune(t), after))
	}
}

// acceptDot takes a dotted word if it is the one named.
func (p *parser) acceptDot(name string) bool {
	if p.tok != tokDot || p.text != name {
		return false
	}
	p.next()
	return true
}

// ident reads a name.
func (p *parser) ident(what string) string { return p.symbol(what).Name }

// symbol reads a name.
func (p *parser) symbol(what string) *Symbol {
	if p.tok != tokIdent {
		p.expected(what)
	}
	s := p.intern(p.text)
	p.next()
	return s
}

// intern gives equal text one symbol.
func (p *parser) intern(text string) *Symbol {
	if s, ok := p.symbols[text]; ok {
		return s
	}
	s := cut(&p.symbolChunk, 256)
	s.Name = strings.Clone(text)
	p.symbols[s.Name] = s
	return s
}

// cut takes one element from a chunk, which is made anew with n when used up.
func cut[T any](chunk *[]T, n int) *T {
	if len(*chunk) == 0 {
		*chunk = make([]T, n)
	}
	t := &(*chunk)[0]
	*chunk = (*chunk)[1:]
	return t
}

// cutSlice takes n elements from a chunk, with no room to grow into the rest.
func cutSlice[T any](chunk *[]T, n, least int) []T {
	if len(*chunk) < n {
		*chunk = make([]T, max(n, least))
	}
	s := (*chunk)[:n:n]
	*chunk = (*chunk)[n:]
	return s
}

func (p *parser) enter() {
	if p.nest++; p.nest > MaxNest {
		p.fail(p.pos, "nested deeper than %d", MaxNest)
	}
}

func (p *parser) leave() { p.nest-- }

// count counts one more of what a file may have so many of.
func (p *parser) count(n *int, most int, what string) {
	if *n++; *n > most {
		p.fail(p.pos, "more than %d %s: want at most %d in a file", most, what, most)
	}
}

func (p *parser) countDeclaration() {
	p.count(&p.declarations, MaxDeclarations, "declarations, labels and blocks")
}

// integer reads a constant expression that must be a whole number of a range.
func (p *parser) integer(what string, lo, hi int64) int64 {
	pos := p.pos
	v := p.constant()
	n := int64(v.bits)
	if v.kind != ImmInt && !(v.kind == ImmUint && n >= 0) || n < lo || n > hi {
		p.fail(pos, "%s %s: want a whole number from %d to %d", what, v, lo, hi)
	}
	return n
}

// registers reads how many registers a `%r<n>` declares. It has no operators:
// what follows is a '>'.
func (p *parser) registers() int {
	const most = 1 << 30
	pos := p.pos
	v := p.unary()
	n := int64(v.bits)
	if v.kind != ImmInt || n < 1 || n > most {
		p.fail(pos, "number of registers %s: want a whole number from 1 to %d", v, most)
	}
	return int(n)
}

func (p *parser) module() *Module {
	m := &Module{File: p.file, AddressSize: 32}
	p.header(m)
	for p.tok != tokEOF {
		p.topLevel(m)
	}
	return m
}

// sizedAddresses is the first PTX with .address_size; before, addresses have 32 bits.
var sizedAddresses = Version{2, 3}

// header reads `.version`, which must come first, `.target` and
// `.address_size`. PTX wants .target second; a .file may stand between.
func (p *parser) header(m *Module) {
	if !p.acceptDot("version") {
		p.expected("`.version` as the first directive")
	}
	m.Version = p.version()
	for p.tok == tokDot && p.text == "file" {
		m.Decls = append(m.Decls, p.sourceFile())
	}
	if !p.acceptDot("target") {
		p.expected("`.target` after `.version`")
	}
	m.Targets = p.targets()
	if pos := p.pos; p.acceptDot("address_size") {
		if m.Version.Less(sizedAddresses) {
			p.fail(pos, ".address_size needs PTX %s: the module is PTX %s", sizedAddresses, m.Version)
		}
		pos = p.pos
		if m.AddressSize = int(p.integer("address size", 0, 64)); m.AddressSize != 32 && m.AddressSize != 64 {
			p.fail(pos, "address size %d: want 32 or 64", m.AddressSize)
		}
	}
}

func (p *parser) version() Version {
	major, minor, ok := strings.Cut(p.text, ".")
	a, errA := strconv.ParseUint(major, 10, 8)
	b, errB := strconv.ParseUint(minor, 10, 8)
	if p.tok != tokNumber || !ok || errA != nil || errB != nil {
		p.expected("a version such as 9.0")
	}
	p.next()
	return Version{int(a), int(b)}
}

func (p *parser) targets() []string {
	var all []string
	for {
		all = append(all, p.ident("a target such as sm_90"))
		if !p.accept(',') {
			return all
		}
	}
}

// topLevel reads one declaration of the module.
func (p *parser) topLevel(m *Module) {
	p.countDeclaration()
	switch {
	case p.tok == tokDwarf:
		m.Decls = append(m.Decls, p.dwarfLine())
	case p.tok != tokDot:
		p.expected("a directive such as `.visible .entry`")
	case p.text == "file":
		m.Decls = append(m.Decls, p.sourceFile())
	case p.text == "section":
		m.Decls = append(m.Decls, p.section())
	case p.text == "pragma":
		m.Decls = append(m.Decls, p.pragma())
	case p.text == "alias":
		m.Decls = append(m.Decls, p.alias())
	case p.text == "loc":
		p.loc = p.location()
	case p.text == "version" || p.text == "target" || p.text == "address_size":
		p.fail(p.pos, "second .%s: want one, at the top", p.text)
	default:
		p.declaration(m)
	}
}

// declaration reads a function, or variables, with their linkage.
func (p *parser) declaration(m *Module) {
	pos := p.pos
	linkage := p.linkage()
	if p.tok == tokDot && (p.text == "entry" || p.text == "func") {
		m.Decls = append(m.Decls, p.function(pos, linkage))
		return
	}
	for _, v := range p.variables(pos, linkage) {
		m.Decls = append(m.Decls, v)
	}
}

func (p *parser) linkage() Linkage {
	if p.tok != tokDot {
		return Private
	}
	for l := Visible; l <= Common; l++ {
		if p.acceptDot(linkageNames[l]) {
			return l
		}
	}
	return Private
}

var linkageNames = [...]string{Private: "", Visible: "visible", Extern: "extern", Weak: "weak", Common: "common"}

func (l Linkage) String() string { return linkageNames[l] }

func (p *parser) sourceFile() *SourceFile {
	f := &SourceFile{Pos: p.pos, Timestamp: -1, Size: -1}
	p.next()
	f.Index = int32(p.integer("file number", 0, 1<<31-1))
	if p.tok != tokString {
		p.expected("the file's name in quotes")
	}
	f.Name = strings.Clone(p.text)
	p.next()
	if p.accept(',') {
		f.Timestamp = p.integer("timestamp", 0, 1<<62)
		p.expect(',', "and the file's size")
		f.Size = p.integer("file size", 0, 1<<62)
	}
	return f
}

func (p *parser) dwarfLine() *Section {
	s := &Section{Pos: p.pos, Name: "@@", Text: strings.Clone(p.text)}
	p.next()
	return s
}

func (p *parser) pragma() *Pragma {
	g := &Pragma{Pos: p.pos}
	p.next()
	g.Text = p.strings()
	p.expect(';', "after a pragma")
	return g
}

func (p *parser) strings() []string {
	var all []string
	for {
		if p.tok != tokString {
			p.expected("text in quotes")
		}
		all = append(all, strings.Clone(p.text))
		p.next()
		if !p.accept(',') {
			return all
		}
	}
}

func (p *parser) alias() *Alias {
	a := &Alias{Pos: p.pos}
	p.next()
	a.Name = p.ident("the alias's name")
	p.expect(',', "and the function it stands for")
	a.Target = p.ident("the function it stands for")
	p.expect(';', "after an alias")
	return a
}
