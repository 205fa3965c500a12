package ptx

import (
	"sort"
	"strings"
	"sync"
)

// row is a line of the table of instructions.
//
// mods are groups of modifiers in order, with a space between: a group is
// words with a | between, and a ? at its end where it may be left out. A word
// may be followed by @ and what it needs. $name stands for one of the lists in
// modLists; where a list has several lines (a newline between), the row stands
// for a form with each.
//
// operands are, with a space between, a kind, a : and a type, and a ? where it
// may be left out: see operandKinds. The type is t0 (the first type among the
// modifiers; also where none is given), t1 and so on, w (an integer of twice
// t0's width), acc (t0, packed if it is f16), a type by name, or * (not looked at); ^ after it lets a register
// be wider, ! wants one of untyped bits. {4}:b32 is four registers in braces; i=1,2 is one of some numbers, i=0..255
// one of a range.
//
// need is the least PTX version and target, as parseNeed reads it.
type row struct {
	name, mods, operands string
	pipe                 Pipe
	need                 string
}

// specs are the table's forms by name.
var specs = sync.OnceValue(func() map[string][]*Spec {
	m := map[string][]*Spec{}
	for _, part := range [][]row{
		integerRows, floatRows, halfRows, compareRows, moveRows, convertRows, memoryRows, asyncRows,
		syncRows, atomicRows, warpRows, controlRows, mmaRows, wgmmaRows, tcgen05Rows, rubinRows, fabricRows, textureRows, videoRows,
	} {
		for _, r := range part {
			for _, r := range withPolicy(r) {
				for _, mods := range expand(r.mods) {
					m[r.name] = append(m[r.name], newSpec(r, mods))
				}
			}
		}
	}
	return m
})

// withPolicy makes two rows of one with $hint: one without a cache policy, and
// one with its modifier and its operand.
func withPolicy(r row) []row {
	if !strings.Contains(r.mods, "$hint") {
		return []row{r}
	}
	with := r
	r.mods = strings.Replace(r.mods, "$hint", "", 1)
	r.operands = strings.Replace(r.operands, "policy", "", 1)
	with.mods = strings.Replace(with.mods, "$hint", "L2::cache_hint@7.4/80", 1)
	with.operands = strings.Replace(with.operands, "policy", "s:u64", 1)
	return []row{r, with}
}

// expand replaces the $names in a row's modifiers.
func expand(mods string) []string {
	i := strings.IndexByte(mods, '$')
	if i < 0 {
		return []string{mods}
	}
	end := i + 1
	for end < len(mods) && inWord(mods[end]) && mods[end] != '$' {
		end++
	}
	list, ok := modLists[mods[i+1:end]]
	if !ok {
		list, ok = tensorLists[mods[i+1:end]]
	}
	if !ok {
		panic("ptx: table: no list " + mods[i:end])
	}
	var all []string
	for line := range strings.SplitSeq(list, "\n") {
		all = append(all, expand(mods[:i]+strings.TrimSpace(line)+mods[end:])...)
	}
	return all
}

func newSpec(r row, mods string) *Spec {
	s := &Spec{Name: r.name, Mods: mods, Operands: r.operands, Pipe: r.pipe, need: parseNeed(r.need)}
	for text := range strings.FieldsSeq(mods) {
		var g group
		text, g.optional = strings.CutSuffix(text, "?")
		for w := range strings.SplitSeq(text, "|") {
			w, need, _ := strings.Cut(w, "@")
			g.words = append(g.words, word{w, parseNeed(need)})
		}
		s.groups = append(s.groups, g)
	}
	for text := range strings.FieldsSeq(r.operands) {
		s.operands = append(s.operands, newOperandSpec(text))
	}
	return s
}

// operandKinds are the kinds of operands as the table writes them.
var operandKinds = map[string]operandKind{
	"any": kindAny, "d": kindDest, "d|p": kindDestPair, "d||p": kindDestBoth,
	"p": kindPred, "p|q": kindPredPair, "p||q": kindPredBoth,
	"s": kindSource, "r": kindReg, "a": kindAddress, "q": kindCond, "i": kindImm,
	"m": kindMem, "m+": kindMemMore, "mt": kindMemTensor, "fh": kindFabric, "fh+": kindFabricCounter, "tm": kindTensorMemory, "off": kindOffsets, "lanes": kindLanes, "size": kindSize, "dv": kindVectorD, "sv": kindVectorS,
	"d_": kindDestSink, "_": kindSink, "dsel": kindDestSelect, "d_||p": kindDestBothSink,
	"dpack": kindPackD, "spack": kindPackS, "acc": kindAccumulator, "vec": kindVectorAny, "desc": kindDescriptor,
	"label": kindLabel, "targets": kindTargets, "callee": kindCallee, "list": kindList, "tail": kindCallTail,
}

func newOperandSpec(text string) operandSpec {
	text, optional := strings.CutSuffix(text, "?")
	kind, typ, _ := strings.Cut(text, ":")
	if k, wider := strings.CutSuffix(kind, "^"); wider {
		kind, typ = k, "t0^"
	}
	o := operandSpec{optional: optional}
	if n, ok := strings.CutPrefix(kind, "{"); ok {
		o.kind = kindVector
		n = strings.TrimSuffix(n, "}")
		if o.count, ok = namedCounts[n]; !ok {
			o.count = mustAtoi(n)
		}
	} else {
		kind, values, _ := strings.Cut(kind, "=")
		if o.kind, ok = operandKinds[kind]; !ok {
			panic("ptx: table: operand " + text)
		}
		for v := range strings.SplitSeq(values, ",") {
			if v == "" {
				continue
			}
			first, last, ok := strings.Cut(v, "..")
			if !ok {
				last = first
			}
			for n := mustAtoi(first); n <= mustAtoi(last); n++ {
				o.values = append(o.values, int64(n))
			}
		}
	}
	o.typ = newTypeRule(typ)
	return o
}

func newTypeRule(text string) typeRule {
	text, wider := strings.CutSuffix(text, "^")
	text, plain := strings.CutSuffix(text, "!")
	r := typeRule{wider: wider, plain: plain}
	switch {
	case text == "" || text == "t0":
		r.from = typeMod
	case text == "*":
	case text == "acc":
		r.from = typeAccumulator
	case text == "w":
		r.from = typeWide
	case text[0] == 't' && len(text) == 2:
		r.from, r.index = typeMod, int8(text[1]-'0')
	default:
		var ok bool
		if r.typ, ok = ParseType(text); !ok {
			panic("ptx: table: type " + text)
		}
		r.from = typeFixed
	}
	return r
}

// splitName finds the table's longest name that an instruction's words begin
// with. It returns the name and how many of the dotted words belong to it.
func splitName(first string, words []string) (name string, used int) {
	for _, n := range longNames()[first] {
		if rest, ok := cutName(n, words); ok {
			return n, rest
		}
	}
	return first, 0
}

func cutName(name string, words []string) (used int, ok bool) {
	_, rest, _ := strings.Cut(name, ".")
	for rest != "" {
		var w string
		w, rest, _ = strings.Cut(rest, ".")
		if used == len(words) || words[used] != w {
			return 0, false
		}
		used++
	}
	return used, true
}

// longNames lists the table's names of more than one word by their first word,
// longest first.
var longNames = sync.OnceValue(func() map[string][]string {
	m := map[string][]string{}
	for n := range specs() {
		if first, _, dotted := strings.Cut(n, "."); dotted {
			m[first] = append(m[first], n)
		}
	}
	for _, all := range m {
		sort.Slice(all, func(i, j int) bool {
			return len(all[i]) > len(all[j]) || len(all[i]) == len(all[j]) && all[i] < all[j]
		})
	}
	return m
})

// Names are the names of the instructions in the table, sorted.
func Names() []string {
	all := make([]string, 0, len(specs()))
	for n := range specs() {
		all = append(all, n)
	}
	sort.Strings(all)
	return all
}
