package ptx

import (
	"fmt"
	"slices"
	"strings"
)

// Check compares a module that Resolve has been through with the table of
// instructions and sets every Instruction.Spec. It refuses what PTX does not
// have, and what needs a newer version or another target than the module says.
// The error is Errors.
func Check(m *Module) error {
	c := &checker{m: m, known: map[string]*reading{}, functions: map[string]bool{}, locations: map[location]bool{}}
	if !c.header() {
		return c.errs.orNil()
	}
	for _, d := range m.Decls {
		c.declaration(d)
		f, ok := d.(*Function)
		if !ok {
			continue
		}
		c.f = f
		if f.Kernel {
			c.parameters(f)
		}
		for _, in := range f.Code {
			c.instruction(in)
			if len(c.errs) >= maxErrors {
				return c.errs
			}
		}
		c.blocksOfTensors(f)
	}
	c.undefined()
	c.constants()
	return c.errs.orNil()
}

type checker struct {
	m      *Module
	f      *Function
	target Target
	errs   Errors
	known  map[string]*reading // by name and modifiers

	functions map[string]bool   // declared so far; true where defined
	locations map[location]bool // of .loc directives so far
	scratch   []byte
}

// reading is what a name with its modifiers can be, for one module.
type reading struct {
	forms           []formReading
	types           [4]Type // the types among the modifiers, in order
	vec             int     // of .v2, .v4, .v8, else 1
	acc             int     // registers that shape and type make
	coords, offsets int     // of a tensor copy
	lanes           int     // registers that leave lanes of tensor memory out
	overrides       []operandSpec
	sparse          sparseCounts
	wrong           string // why no form fits the modifiers
	video, simd     bool   // operands may have selectors and signs
}

type formReading struct {
	spec  *Spec
	unmet string // what the module's version or target lacks
}

func (c *checker) errorf(pos Pos, format string, args ...any) {
	c.errs = append(c.errs, &Error{c.m.File, pos, fmt.Sprintf(format, args...)})
}

// newest is the newest version that is accepted: later minor versions of PTX 9
// may add to the table, a later major one may change it.
const newestMajor = 9

// header checks version and target.
func (c *checker) header() bool {
	v := c.m.Version
	if v.Major > newestMajor || v.Major < 1 {
		c.errorf(Pos{}, "PTX version %s: want 1.0 to %d.x", v, newestMajor)
		return false
	}
	for _, name := range c.m.Targets {
		if !strings.HasPrefix(name, "sm_") {
			continue
		}
		t, err := ParseTarget(name)
		if err != nil {
			c.errorf(Pos{}, "%v", err)
			return false
		}
		least, ok := leastVersion(t)
		if !ok {
			c.errorf(Pos{}, "target %s: no such target", t)
			return false
		}
		if v.Less(least) {
			c.errorf(Pos{}, "target %s needs PTX %s: the module says %s", t, least, v)
			return false
		}
		c.target = t
	}
	if c.target.SM == 0 {
		c.errorf(Pos{}, "targets %s: want one such as sm_90a", strings.Join(c.m.Targets, ", "))
		return false
	}
	return true
}

// targetVersions is the PTX version that brought each target, and those with
// the suffixes a and f: PTX ISA 11.1.2.
var targetVersions = map[int][3]Version{
	10: {{1, 0}}, 11: {{1, 0}}, 12: {{1, 2}}, 13: {{1, 2}}, 20: {{2, 0}}, 21: {{2, 0}},
	30: {{3, 0}}, 32: {{4, 0}}, 35: {{3, 1}}, 37: {{4, 1}}, 50: {{4, 0}}, 52: {{4, 1}}, 53: {{4, 2}},
	60: {{5, 0}}, 61: {{5, 0}}, 62: {{5, 0}}, 70: {{6, 0}}, 72: {{6, 1}}, 75: {{6, 3}},
	80: {{7, 0}}, 86: {{7, 1}}, 87: {{7, 4}}, 88: {{9, 0}}, 89: {{7, 8}}, 90: {{7, 8}, {8, 0}},
	100: {{8, 6}, {8, 6}, {8, 8}}, 101: {{8, 6}, {8, 6}, {8, 8}}, 103: {{8, 8}, {8, 8}, {8, 8}},
	107: {{9, 4}, {9, 4}, {9, 4}},
	110: {{9, 0}, {9, 0}, {9, 0}}, 120: {{8, 7}, {8, 7}, {8, 8}}, 121: {{8, 8}, {8, 8}, {8, 8}},
}

func leastVersion(t Target) (Version, bool) {
	all, ok := targetVersions[t.SM]
	v := all[strings.IndexByte("\x00af", t.Suffix)]
	return v, ok && v != (Version{})
}

// Target is the module's sm_ target, zero if it names none.
func (m *Module) Target() Target {
	for _, name := range m.Targets {
		if t, err := ParseTarget(name); err == nil {
			return t
		}
	}
	return Target{}
}

// instruction finds the form that an instruction is of.
func (c *checker) instruction(in *Instruction) {
	r := c.read(in)
	if r.wrong != "" {
		c.errorf(in.Pos, "%s", r.wrong)
		return
	}
	if in.Guard != nil && !c.isPredicate(in.Guard) {
		c.errorf(in.Guard.Pos, "guard %s: want a predicate register", in.Guard)
		return
	}
	m := operandMatch{c: c, r: r, in: in, at: -1}
	var lacking string
	for i := range r.forms {
		f := &r.forms[i]
		if !m.all(f.spec.operands, in.Operands) {
			continue
		}
		if f.unmet == "" {
			in.Spec = f.spec
			c.addresses(in, r)
			c.variableSpaces(in)
			c.sourceSize(in)
			c.call(in)
			c.specials(in.Operands)
			return
		}
		lacking = f.unmet
	}
	if lacking == "" {
		c.errorf(m.pos(), "%s: %s", title(in), m.reason)
		return
	}
	c.errorf(in.Pos, "%s needs %s: the module is PTX %s for %s", title(in), lacking, c.m.Version, c.target)
}

// blocksOfTensors wants all tcgen05 instructions of a function to be of one block,
// or all of a pair: PTX ISA 9.7.16.7.
func (c *checker) blocksOfTensors(f *Function) {
	first := ""
	for _, in := range f.Code {
		if !strings.HasPrefix(in.Name, "tcgen05.") {
			continue
		}
		i := slices.IndexFunc(in.Mods, func(m string) bool { return strings.HasPrefix(m, "cta_group::") })
		switch {
		case i < 0:
		case first == "":
			first = in.Mods[i]
		case in.Mods[i] != first:
			c.errorf(in.Pos, "%s: others in %s have .%s: want one of them throughout", title(in), f.Name, first)
			return
		}
	}
}

// title is an instruction's name with its modifiers.
func title(in *Instruction) string {
	return clip(strings.Join(append([]string{in.Name}, in.Mods...), "."))
}

// read finds the forms that a name and modifiers fit.
func (c *checker) read(in *Instruction) *reading {
	c.scratch = append(c.scratch[:0], in.Name...)
	for _, m := range in.Mods {
		c.scratch = append(append(c.scratch, '.'), m...)
	}
	if r, ok := c.known[string(c.scratch)]; ok {
		return r
	}
	r := newReading(in, c.m.Version, c.target)
	c.known[string(c.scratch)] = r
	return r
}

func newReading(in *Instruction, v Version, t Target) *reading {
	r := &reading{vec: 1}
	n := 0
	for _, m := range in.Mods {
		if typ, ok := ParseType(m); ok && n < len(r.types) {
			r.types[n] = typ
			n++
		}
		if len(m) == 2 && m[0] == 'v' && (m[1] == '2' || m[1] == '4' || m[1] == '8') {
			r.vec = int(m[1] - '0')
		}
	}
	r.video = in.Name[0] == 'v' && in.Name != "vote"
	last := in.Name[len(in.Name)-1]
	r.simd = r.video && (last == '2' || last == '4') // a mask may stand at the result
	r.acc = accumulators(in.Mods, r.types[0])
	r.coords, r.offsets = coordinates(in.Mods)
	r.lanes = 4
	if slices.Contains(in.Mods, "cta_group::2") {
		r.lanes = 8
	}
	r.overrides = overrides(in.Mods, r.coords)
	r.sparse = countSparse(in.Name, in.Mods)
	all, ok := specs()[in.Name]
	if !ok {
		r.wrong = unknownName(in.Name)
		return r
	}
	for _, s := range all {
		if words, ok := s.match(in.Mods); ok {
			r.forms = append(r.forms, formReading{s, unmet(s, words, v, t)})
		}
	}
	if r.forms == nil {
		r.wrong = wrongModifiers(in, all)
	}
	return r
}

// unmet says what a form with some words needs that version and target lack.
func unmet(s *Spec, words []word, v Version, t Target) string {
	if !s.need.met(v, t) {
		return s.need.String()
	}
	for _, w := range words {
		if !w.need.met(v, t) {
			return w.need.String() + " for ." + w.text
		}
	}
	return ""
}

// match gives each modifier a group of its own. Modifiers may stand in any
// order, as ptxas takes them, but types keep theirs.
func (s *Spec) match(mods []string) ([]word, bool) {
	if len(mods) > len(s.groups) {
		return nil, false
	}
	var used uint64
	words := make([]word, 0, len(mods))
	afterType := 0 // the group after the last type's
next:
	for _, m := range mods {
		first := 0
		_, isType := ParseType(m)
		if isType {
			first = afterType
		}
		for g := first; g < len(s.groups); g++ {
			if used&(1<<g) != 0 {
				continue
			}
			for _, w := range s.groups[g].words {
				if w.text == m {
					used |= 1 << g
					if isType {
						afterType = g + 1
					}
					words = append(words, w)
					continue next
				}
			}
		}
		return nil, false
	}
	for g := range s.groups {
		if used&(1<<g) == 0 && !s.groups[g].optional {
			return nil, false
		}
	}
	return words, true
}

// unknownName says that there is no such instruction, and which is near.
func unknownName(name string) string {
	best, distance := "", 3
	for _, n := range Names() {
		if d := editDistance(name, n, distance); d < distance {
			best, distance = n, d
		}
	}
	if best != "" {
		return fmt.Sprintf("instruction %s: PTX has none of this name; %s is near", clip(name), best)
	}
	return fmt.Sprintf("instruction %s: PTX has none of this name", clip(name))
}

// editDistance is how many letters must change, at most limit.
func editDistance(a, b string, limit int) int {
	if d := len(a) - len(b); d >= limit || -d >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost = 1 + min(diagonal, row[j], row[j-1])
			}
			diagonal, row[j] = row[j], cost
		}
	}
	return min(row[len(b)], limit)
}

// wrongModifiers says what is wrong with the modifiers: one that no form has,
// with one near it, or that they do not go together.
func wrongModifiers(in *Instruction, all []*Spec) string {
	for i, m := range in.Mods {
		if slices.ContainsFunc(all, func(s *Spec) bool { return s.hasWord(m) }) {
			continue
		}
		near := nearWord(m, all)
		if near == "" {
			return fmt.Sprintf("%s: no modifier .%s; want %s", title(in), clip(m), forms(in.Name, in.Mods, all))
		}
		mods := slices.Clone(in.Mods)
		mods[i] = near
		return fmt.Sprintf("%s: no modifier .%s (.%s is near); want %s", title(in), clip(m), near, forms(in.Name, mods, all))
	}
	return fmt.Sprintf("%s: these modifiers do not go together; want %s", title(in), forms(in.Name, in.Mods, all))
}

// nearWord is the modifier of some form that one letter, or two of a long one, make
// of text; "" if there is none.
func nearWord(text string, all []*Spec) string {
	best, distance := "", 2
	if len(text) > 4 {
		distance = 3
	}
	for _, s := range all {
		for _, g := range s.groups {
			for _, w := range g.words {
				if d := editDistance(text, w.text, distance); d < distance {
					best, distance = w.text, d
				}
			}
		}
	}
	return best
}

func (s *Spec) hasWord(text string) bool {
	for _, g := range s.groups {
		for _, w := range g.words {
			if w.text == text {
				return true
			}
		}
	}
	return false
}

// forms shows those forms of a name that share the most modifiers with mods, each
// text once.
func forms(name string, mods []string, all []*Spec) string {
	const most = 2
	shared := func(s *Spec) int {
		n := 0
		for _, m := range mods {
			if s.hasWord(m) {
				n++
			}
		}
		return n
	}
	nearest := slices.Clone(all)
	slices.SortStableFunc(nearest, func(a, b *Spec) int { return shared(b) - shared(a) })
	var texts []string
	for _, s := range nearest {
		text := name
		for _, g := range s.groups {
			text += g.String()
		}
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	if more := len(texts) - most; more > 0 {
		return fmt.Sprintf("%s, or %d more forms", strings.Join(texts[:most], " or "), more)
	}
	return strings.Join(texts, " or ")
}

// String shows a group as PTX's manual does: .a, {.a,.b} or {.a}.
func (g group) String() string {
	var b strings.Builder
	for i, w := range g.words {
		if i == 12 {
			b.WriteString(",...")
			break
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('.')
		b.WriteString(w.text)
	}
	if !g.optional && len(g.words) == 1 {
		return b.String()
	}
	if g.optional {
		return "[" + b.String() + "]"
	}
	return "{" + b.String() + "}"
}
