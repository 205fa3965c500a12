package ptx

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
)

// The module that sampled instructions stand in: registers of every type, and
// a variable of every space.
const sampleHead = `.version %s
.target %s
.address_size 64
.global .align 128 .b8 gv[4096];
.const .align 128 .b8 cv[4096];
.global .texref tr;
.global .surfref sf;
.func none() { ret; }
.func takes(.reg .u32 a) { ret; }
.func (.reg .u32 r) gives() { ret; }
.func (.reg .u32 r) both(.reg .u32 a) { ret; }
.visible .entry k(.param .u64 p0, .param .u32 p1)
{
.reg .pred p<8>; .reg .b8 b8_<8>; .reg .u8 u8_<8>; .reg .s8 s8_<8>;
.reg .b16 b16_<8>; .reg .u16 u16_<8>; .reg .s16 s16_<8>; .reg .f16 f16_<8>;
.reg .b32 b32_<520>; .reg .u32 u32_<520>; .reg .s32 s32_<520>; .reg .f32 f32_<520>; .reg .f16x2 f16x2_<520>;
.reg .b64 b64_<16>; .reg .u64 u64_<16>; .reg .s64 s64_<16>; .reg .f64 f64_<16>;
%s
.shared .align 128 .b8 sv[4096];
.local .align 16 .b8 lv[64];
L0:
T0: .branchtargets L0, L1;
`

// sampleModule is the start of a module for a version and target.
func sampleModule(v Version, t Target) string {
	wide := ""
	if has128(v, t) {
		wide = ".reg .b128 b128_<8>;"
	}
	return fmt.Sprintf(sampleHead, v, t, wide)
}

// has128 says whether there are registers of 128 bits.
func has128(v Version, t Target) bool { return !v.Less(Version{8, 3}) && t.SM >= 70 }

const sampleTail = "L1:\nret;\n}\n"

// wideOnly are the instructions on addresses, which have 64 bits here.
var wideOnly = map[string]bool{"cvta": true, "stacksave": true, "stackrestore": true, "alloca": true}

// sampler makes instructions that a form allows.
type sampler struct {
	rng *rand.Rand
	r   *reading
	typ [4]Type

	callee string
	plain  bool
	has128 bool
}

// instruction is a random instruction of a form, for a version and target.
// It is "" if the target has none.
func (s *sampler) instruction(f *Spec, v Version, t Target) string {
	var mods []string
	for _, g := range f.groups {
		if g.optional && s.rng.Intn(2) == 0 {
			continue
		}
		var can []string
		for _, w := range g.words {
			if w.need.met(v, t) && w.sampled(f) {
				can = append(can, w.text)
			}
		}
		if can == nil {
			if g.optional {
				continue
			}
			return ""
		}
		mods = append(mods, can[s.rng.Intn(len(can))])
	}
	return s.with(f, mods, v, t)
}

// sampled says whether the word can stand in the module of the samples, whose
// addresses have 64 bits.
func (w *word) sampled(f *Spec) bool {
	return !(w.text == "u32" && wideOnly[f.Name]) && w.text != "cta_group::2"
}

// with is an instruction of a form with some modifiers and random operands; "" if
// no operands go with the modifiers.
func (s *sampler) with(f *Spec, mods []string, v Version, t Target) string {
	s.has128 = has128(v, t)
	in := &Instruction{Opcode: &Opcode{f.Name, mods}}
	r := newReading(in, v, t)
	s.callee = map[string]string{"callee tail?": "none", "callee list tail?": "takes", "list callee tail?": "gives", "list callee list tail?": "both"}[f.Operands]
	s.r, s.typ = r, r.types
	if !r.countable(f) {
		return ""
	}
	var ops []string
	for i := range f.operands {
		o := &f.operands[i]
		if o.optional && (s.rng.Intn(2) == 0 || o.kind == kindCallTail) {
			continue
		}
		ops = append(ops, s.operand(o))
	}
	text := strings.Join(append([]string{f.Name}, mods...), ".")
	if ops != nil {
		text += " " + strings.Join(ops, ", ")
	}
	return text + ";"
}

// Sample is an instruction that the table has.
type Sample struct {
	Form   *Spec
	Target Target // the first of those asked for that has it
	Text   string
}

// Samples gives an instruction, operands at random but the same each time, for
// every choice of modifiers of every form that one of the targets has: what
// tests of the instructions' consumers walk. Of a form with more than most
// choices it takes as many of them, spread evenly. Those that one of the targets
// has in version old already are left out; {} is none.
func Samples(old, v Version, targets []Target, most int) []Sample {
	s := sampler{rng: rand.New(rand.NewSource(1))}
	var all []Sample
	for _, name := range Names() {
		for _, f := range specs()[name] {
			groups := f.groupsOf(v, targets)
			n := 1
			for i := range groups {
				n *= groups[i].choices()
			}
			step := max(1, n/most|1) // odd: it meets the words of groups of 2 and 4 alike
			for i := 0; i < n; i += step {
				words, ok := f.choose(groups, i)
				if !ok {
					continue
				}
				mods := make([]string, len(words))
				for j, w := range words {
					mods[j] = w.text
				}
				had := func(t Target) bool { return old != Version{} && unmet(f, words, old, t) == "" }
				if slices.ContainsFunc(targets, had) {
					continue
				}
				for _, t := range targets {
					if unmet(f, words, v, t) != "" {
						continue
					}
					if text := s.with(f, mods, v, t); text != "" {
						all = append(all, Sample{f, t, text})
					}
					break
				}
			}
		}
	}
	return all
}

// choices is how many a group has.
func (g *group) choices() int {
	if g.optional {
		return len(g.words) + 1
	}
	return len(g.words)
}

// groupsOf are a form's groups with the modifiers that one of the targets has.
func (s *Spec) groupsOf(v Version, targets []Target) []group {
	groups := slices.Clone(s.groups)
	for i := range groups {
		g := &groups[i]
		g.words = slices.DeleteFunc(slices.Clone(g.words), func(w word) bool {
			return !slices.ContainsFunc(targets, func(t Target) bool { return w.need.met(v, t) })
		})
	}
	return slices.DeleteFunc(groups, func(g group) bool { return g.optional && len(g.words) == 0 })
}

// choose is a form's nth choice of modifiers of some groups.
func (s *Spec) choose(groups []group, n int) ([]word, bool) {
	var words []word
	for i := range groups {
		g := &groups[i]
		k := n % g.choices()
		n /= g.choices()
		if k == len(g.words) {
			continue
		}
		if !g.words[k].sampled(s) {
			return nil, false
		}
		words = append(words, g.words[k])
	}
	return words, true
}

// SampleModule is a module with the instructions of samples for a target, one a
// line, in its kernel k.
func SampleModule(v Version, t Target, lines []string) string {
	return sampleModule(v, t) + strings.Join(lines, "\n") + "\n" + sampleTail
}

func (s *sampler) operand(o *operandSpec) string {
	m := operandMatch{r: s.r}
	t := m.typeOf(o.typ)
	s.plain = o.typ.plain
	switch o.kind {
	case kindDest, kindDestSink, kindReg, kindDestPair, kindAny:
		return s.register(t, o.typ.wider)
	case kindSource, kindAddress:
		if s.rng.Intn(4) == 0 && t != NoType && immediateAgrees(t, &Operand{Kind: OpImm}) {
			if o.values != nil {
				return fmt.Sprint(o.values[s.rng.Intn(len(o.values))])
			}
			return fmt.Sprint(1 + s.rng.Intn(4))
		}
		return s.register(t, o.typ.wider)
	case kindSink:
		return "_"
	case kindDestSelect:
		return s.register(t, false) + ".b1"
	case kindDestBoth, kindDestBothSink:
		return s.register(t, false) + "|p1"
	case kindPred:
		return "p1"
	case kindPredPair:
		return []string{"p1", "p1|p2"}[s.rng.Intn(2)]
	case kindPredBoth:
		return "p1|p2"
	case kindCond:
		return []string{"p3", "!p3"}[s.rng.Intn(2)]
	case kindSize:
		return []string{s.register(t, false), "64"}[s.rng.Intn(2)]
	case kindImm:
		if o.values != nil {
			return fmt.Sprint(o.values[s.rng.Intn(len(o.values))])
		}
		return "0"
	}
	return s.compound(o, t)
}

func (s *sampler) compound(o *operandSpec, t Type) string {
	switch o.kind {
	case kindMem:
		return []string{"[b64_1]", "[u64_2+16]"}[s.rng.Intn(2)]
	case kindMemMore:
		return "[b64_1, {b32_1, b32_2}]"
	case kindMemTensor:
		return "[b64_1, " + s.overrides() + s.vector(U32, s.r.coords, false, true) + "]"
	case kindFabric:
		return "[b32_1, b64_2]"
	case kindFabricCounter:
		return "[u32_1, b64_2, u64_3]"
	case kindTensorMemory:
		return "[" + s.register(t, false) + "]"
	case kindOffsets:
		return s.vector(U16, max(s.r.offsets, 1), false, true)
	case kindLanes:
		return s.vector(U32, s.r.lanes, false, true)
	case kindVectorD, kindVectorS:
		return s.vector(t, s.r.vec, o.typ.wider, s.r.vec > 1)
	case kindVector:
		return s.vector(t, s.r.registers(o), false, true)
	case kindAccumulator:
		return s.vector(t, s.r.acc, false, true)
	case kindVectorAny:
		return "{b16_1, b16_2}"
	case kindPackD, kindPackS:
		half := map[Type]string{B16: "u8_", B32: "b16_", B64: "b32_", B128: "b64_"}[s.typ[0]]
		return "{" + half + "1, " + half + "2}"
	case kindDescriptor:
		return []string{"[b32_1]", "s64_3"}[s.rng.Intn(2)]
	case kindLabel:
		return "L1"
	case kindTargets:
		return "T0"
	case kindCallee:
		return s.callee
	case kindList:
		return "(u32_1)"
	}
	return "?"
}

// overrides are the parts of a tensor's address before its coordinates.
func (s *sampler) overrides() string {
	text := ""
	for i := range s.r.overrides {
		o := &s.r.overrides[i]
		if o.count == 0 {
			text += s.register(o.typ.typ, false) + ", "
		} else {
			text += s.vector(o.typ.typ, o.count, false, true) + ", "
		}
	}
	return text
}

func (s *sampler) vector(t Type, n int, wider, braces bool) string {
	if !braces {
		return s.register(t, wider)
	}
	first := s.register(t, wider)
	prefix, _ := splitNumber(first)
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint(prefix, i)
	}
	return "{" + strings.Join(all, ", ") + "}"
}

// register is a register whose type agrees with t.
func (s *sampler) register(t Type, wider bool) string {
	if t == NoType {
		t = U64 // an address
	}
	var can []string
	for _, r := range []Type{B8, U8, S8, B16, U16, S16, F16, B32, U32, S32, F32, F16x2, B64, U64, S64, F64, B128} {
		if r == B128 && !s.has128 {
			continue
		}
		if agrees(t, r, wider) && (!s.plain || isBits(r)) {
			can = append(can, r.String())
		}
	}
	if can == nil {
		return "none_for_" + t.String()
	}
	return fmt.Sprintf("%s_%d", can[s.rng.Intn(len(can))], s.rng.Intn(8))
}
