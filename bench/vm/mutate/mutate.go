// Package mutate changes PTX programs in one place at a time, as a slip of the one who
// wrote them would, and sees what the virtual machine says of it: a measure of what
// its checks miss.
package mutate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kgen-dev/kgen/codegen/ptx"
)

// Kind is what a mutant does to one instruction.
type Kind string

// The kinds of mutants.
const (
	Drop      Kind = "dropped"
	Later     Kind = "moved past the next access"
	Earlier   Kind = "moved before the last access"
	Ignored   Kind = "answer ignored"
	Number    Kind = "another number"
	Unguarded Kind = "guard dropped"
	Negated   Kind = "guard negated"
	Offset    Kind = "another offset"
	Unmixed   Kind = "swizzle dropped"
)

// Mutant is a program with one slip.
type Mutant struct {
	Kind Kind
	What string // barrier, wait, commit, fence, arrive, expect, init, access, branch or swizzle
	Line int32  // in the original
	Text string // the instruction as it was
	PTX  string
}

// Orders says whether it is about what orders accesses, not the accesses themselves.
func (m *Mutant) Orders() bool {
	return m.What != "access" && m.What != "branch" && m.What != "swizzle"
}

func (m *Mutant) String() string {
	return fmt.Sprintf("line %d, %s: %s %s", m.Line, m.Text, m.What, m.Kind)
}

// Mutants lists a program's, in the order of its text.
func Mutants(file string, text []byte) ([]Mutant, error) {
	tree, err := ptx.Parse(file, text)
	if err != nil {
		return nil, err
	}
	w := &walker{tree: tree, seen: map[string]bool{tree.String(): true}}
	for _, d := range tree.Decls {
		if f, ok := d.(*ptx.Function); ok && f.Body != nil {
			w.labels = map[string]bool{}
			w.block(f.Body)
		}
	}
	return w.list, nil
}

// walker goes through a module and takes down its mutants.
type walker struct {
	tree   *ptx.Module
	labels map[string]bool // met so far
	seen   map[string]bool // texts
	list   []Mutant
}

func (w *walker) block(b *ptx.Block) {
	for i := 0; i < len(b.Stmts); i++ {
		switch s := b.Stmts[i].(type) {
		case *ptx.Block:
			w.block(s)
		case *ptx.Label:
			w.labels[s.Name] = true
		case *ptx.Instruction:
			w.instruction(b, i, s)
		}
	}
}

// note prints the module as it is now, if it was not the same before.
func (w *walker) note(k Kind, what string, in *ptx.Instruction, text string) {
	if t := w.tree.String(); !w.seen[t] {
		w.seen[t] = true
		w.list = append(w.list, Mutant{Kind: k, What: what, Line: in.Pos.Line, Text: text, PTX: t})
	}
}

func (w *walker) instruction(b *ptx.Block, i int, in *ptx.Instruction) {
	text := in.String()
	words := opcode(in)
	what := synchronises(words)
	replace := func(k Kind, what string, with *ptx.Instruction) {
		b.Stmts[i] = with
		w.note(k, what, in, text)
		b.Stmts[i] = in
	}
	if what != "" {
		if what != "wait" || words[0] != "mbarrier" {
			w.without(b, i, func() { w.note(Drop, what, in, text) })
		}
		w.move(b, i, what, text)
		w.numbers(in, what, replace)
	}
	if what == "wait" && words[0] == "mbarrier" {
		w.ignore(b, i, in, text)
	}
	if what == "" && accesses(words) {
		what = "access"
		w.offsets(in, words, replace)
	}
	if in.Guard != nil && (what != "" || words[0] == "bra") {
		w.guards(in, what, replace)
	}
	if words[0] == "xor" && len(in.Operands) == 3 && len(words) == 2 && words[1] != "pred" {
		c := copyOf(in)
		c.Opcode = &ptx.Opcode{Name: "mov", Mods: in.Mods}
		c.Operands = c.Operands[:2]
		replace(Unmixed, "swizzle", c)
	}
}

// without takes a statement out while f runs.
func (w *walker) without(b *ptx.Block, i int, f func()) {
	old := b.Stmts
	b.Stmts = slices.Delete(slices.Clone(old), i, i+1)
	f()
	b.Stmts = old
}

// move puts an instruction past the next that touches memory or synchronises, and
// before the last, where no label or branch is between.
func (w *walker) move(b *ptx.Block, i int, what, text string) {
	in := b.Stmts[i].(*ptx.Instruction)
	for _, to := range []struct {
		kind Kind
		step int
	}{{Later, 1}, {Earlier, -1}} {
		for j := i + to.step; j >= 0 && j < len(b.Stmts); j += to.step {
			x, ok := b.Stmts[j].(*ptx.Instruction)
			if !ok {
				if _, loc := b.Stmts[j].(*ptx.Loc); loc {
					continue
				}
				break
			}
			words := opcode(x)
			if words[0] == "bra" || words[0] == "ret" || words[0] == "exit" || words[0] == "call" {
				break
			}
			if in.Guard != nil && writes(x, in.Guard.Name()) {
				break
			}
			if synchronises(words) == "" && !accesses(words) && words[0] != "mma" {
				continue
			}
			old := b.Stmts
			b.Stmts = slices.Insert(slices.Delete(slices.Clone(old), i, i+1), j, old[i])
			w.note(to.kind, what, in, text)
			b.Stmts = old
			break
		}
	}
}

// numbers changes how many groups stay in flight, bytes or arrivals are expected,
// which phase is waited for.
func (w *walker) numbers(in *ptx.Instruction, what string, replace func(Kind, string, *ptx.Instruction)) {
	words := opcode(in)
	change := func(what string, at int, value uint64) {
		c := copyOf(in)
		c.Operands[at].Value = value
		replace(Number, what, c)
	}
	last := len(in.Operands) - 1
	if last < 0 || in.Operands[last].Kind != ptx.OpImm {
		return
	}
	n := in.Operands[last].Value
	switch {
	case what == "wait" && words[0] == "mbarrier":
		if slices.Contains(words, "parity") {
			change(what, last, n^1)
		}
	case what == "wait":
		change(what, last, n+1)
	case what == "init":
		change(what, last, n+1)
		if n > 1 {
			change(what, last, n-1)
		}
	case slices.Contains(words, "expect_tx"):
		change("expect", last, n+16)
		if n >= 16 {
			change("expect", last, n-16)
		}
	}
}

// ignore goes on whatever the answer of a test is: the branch that depends on it
// leads on.
func (w *walker) ignore(b *ptx.Block, i int, in *ptx.Instruction, text string) {
	if len(in.Operands) == 0 {
		return
	}
	p := in.Operands[0].Name()
	for j := i + 1; j < len(b.Stmts) && j <= i+4; j++ {
		x, ok := b.Stmts[j].(*ptx.Instruction)
		if !ok || x.Guard == nil || x.Guard.Name() != p || opcode(x)[0] != "bra" {
			continue
		}
		if w.labels[x.Operands[0].Name()] { // back to the test
			w.without(b, j, func() { w.note(Ignored, "wait", in, text) })
			w.without(b, j, func() { w.without(b, i, func() { w.note(Drop, "wait", in, text) }) })
			return
		}
		c := copyOf(x)
		c.Guard = nil
		b.Stmts[j] = c
		w.note(Ignored, "wait", in, text)
		b.Stmts[j] = x
		return
	}
}

// guards changes for whom an instruction is.
func (w *walker) guards(in *ptx.Instruction, what string, replace func(Kind, string, *ptx.Instruction)) {
	if what == "" {
		what = "branch"
	} else {
		c := copyOf(in)
		c.Guard = nil
		replace(Unguarded, what, c)
	}
	c := copyOf(in)
	g := *in.Guard
	g.Neg = !g.Neg
	c.Guard = &g
	replace(Negated, what, c)
}

// offsets moves what an instruction reads or writes by 16 bytes.
func (w *walker) offsets(in *ptx.Instruction, words []string, replace func(Kind, string, *ptx.Instruction)) {
	if slices.Contains(words, "param") || slices.Contains(words, "const") {
		return
	}
	for at := range in.Operands {
		if o := &in.Operands[at]; o.Kind != ptx.OpAddr || len(o.Elems()) != 1 {
			continue
		}
		c := copyOf(in)
		parts := slices.Clone(c.Operands[at].Elems())
		parts[0].Value += 16
		c.Operands[at].Parts = &parts
		replace(Offset, "access", c)
	}
}

func copyOf(in *ptx.Instruction) *ptx.Instruction {
	c := *in
	c.Operands = slices.Clone(in.Operands)
	return &c
}

// writes says whether an instruction's first operand is a register of a name, or has
// it among its elements.
func writes(in *ptx.Instruction, name string) bool {
	if len(in.Operands) == 0 {
		return false
	}
	o := &in.Operands[0]
	return o.Name() == name || slices.ContainsFunc(o.Elems(), func(e ptx.Operand) bool { return e.Name() == name })
}

// opcode is an instruction's name and modifiers as words.
func opcode(in *ptx.Instruction) []string {
	return append(strings.Split(in.Name, "."), in.Mods...)
}

// synchronises says how an instruction orders things; "" if it does not.
func synchronises(words []string) string {
	has := func(w string) bool { return slices.Contains(words, w) }
	switch words[0] {
	case "bar", "barrier":
		if has("arrive") {
			return "arrive"
		}
		return "barrier"
	case "cp":
		switch {
		case has("wait_group"), has("wait_all"):
			return "wait"
		case has("commit_group"):
			return "commit"
		case has("arrive"), has("arrive::noinc"):
			return "arrive"
		}
	case "wgmma":
		switch {
		case has("fence"):
			return "fence"
		case has("commit_group"):
			return "commit"
		case has("wait_group"):
			return "wait"
		}
	case "mbarrier":
		switch {
		case has("init"):
			return "init"
		case has("test_wait"), has("try_wait"):
			return "wait"
		case has("arrive"), has("arrive_drop"):
			return "arrive"
		case has("expect_tx"):
			return "expect"
		}
	case "fence", "membar":
		return "fence"
	case "tcgen05":
		switch {
		case has("commit"):
			return "commit"
		case has("wait::ld"), has("wait::st"):
			return "wait"
		case has("fence::before_thread_sync"), has("fence::after_thread_sync"):
			return "fence"
		}
	}
	return ""
}

// accesses says whether an instruction reads or writes memory.
func accesses(words []string) bool {
	switch words[0] {
	case "ld", "st", "atom", "red", "ldmatrix", "stmatrix", "cp":
		return !slices.Contains(words, "prefetch")
	case "tcgen05":
		return len(words) > 1 && (words[1] == "ld" || words[1] == "st" || words[1] == "mma" || words[1] == "cp")
	case "wgmma":
		return slices.Contains(words, "mma_async")
	}
	return false
}

// withoutSource prints a module without its .loc directives.
func withoutSource(m *ptx.Module) []byte {
	var strip func(b *ptx.Block) *ptx.Block
	strip = func(b *ptx.Block) *ptx.Block {
		c := *b
		c.Stmts = nil
		for _, s := range b.Stmts {
			switch s := s.(type) {
			case *ptx.Loc:
			case *ptx.Block:
				c.Stmts = append(c.Stmts, strip(s))
			default:
				c.Stmts = append(c.Stmts, s)
			}
		}
		return &c
	}
	bare := *m
	bare.Decls = slices.Clone(m.Decls)
	for i, d := range bare.Decls {
		if f, ok := d.(*ptx.Function); ok && f.Body != nil {
			g := *f
			g.Body = strip(f.Body)
			bare.Decls[i] = &g
		}
	}
	return []byte(bare.String())
}

// instructions lists a module's, in the order of the text.
func instructions(m *ptx.Module) []*ptx.Instruction {
	var list []*ptx.Instruction
	var walk func(b *ptx.Block)
	walk = func(b *ptx.Block) {
		for _, s := range b.Stmts {
			switch s := s.(type) {
			case *ptx.Block:
				walk(s)
			case *ptx.Instruction:
				list = append(list, s)
			}
		}
	}
	for _, d := range m.Decls {
		if f, ok := d.(*ptx.Function); ok && f.Body != nil {
			walk(f.Body)
		}
	}
	return list
}
