package ptx

import (
	"fmt"
	"strconv"
	"strings"
)

// describe says what an operand is, for messages.
func (m *operandMatch) describe(o *Operand) string {
	text := clip(o.String())
	switch o.Kind {
	case OpReg:
		return fmt.Sprintf("%s (.%s)", text, o.registerType())
	case OpSpecial:
		return fmt.Sprintf("%s (special register)", text)
	case OpVector:
		if len(o.Elems()) > 0 && o.Elems()[0].Kind == OpReg {
			return fmt.Sprintf("%d registers, %s of .%s first", len(o.Elems()), o.Elems()[0].Name(), o.Elems()[0].registerType())
		}
	}
	return text
}

// want says what a spec wants, for messages.
func (m *operandMatch) want(s *operandSpec) string {
	t := ""
	if typ := m.typeOf(s.typ); typ != NoType {
		t = "." + typ.String() + " "
	}
	switch s.kind {
	case kindDest, kindReg:
		return "a " + t + "register"
	case kindSource, kindAddress:
		if s.values != nil {
			return "a " + t + "register or " + s.String()
		}
		return "a " + t + "register or number"
	case kindVectorD, kindVectorS:
		return plural(m.r.vec, t)
	case kindVector:
		return plural(m.r.registers(s), t)
	case kindAccumulator:
		return plural(m.r.acc, t)
	}
	return s.String()
}

func plural(n int, t string) string {
	if n == 1 {
		return "a " + t + "register"
	}
	return fmt.Sprintf("%d %sregisters in braces", n, t)
}

var kindText = [...]string{
	kindAny: "an operand", kindDest: "a register", kindDestSink: "a register or _", kindSink: "_",
	kindDestSelect: "a register with a selector such as .b0", kindDestPair: "a register, or register|predicate",
	kindDestBoth: "register|predicate", kindDestBothSink: "register|predicate",
	kindPred: "a predicate register", kindPredPair: "a predicate register, or two as p|q", kindPredBoth: "two predicate registers as p|q",
	kindSource: "a register or number", kindReg: "a register", kindAddress: "a register, number or address",
	kindCond: "a predicate", kindImm: "a whole number", kindMem: "an address in brackets", kindMemMore: "an address with coordinates, in brackets",
	kindFabric: "[32-bit register, 64-bit register]", kindFabricCounter: "[32-bit register, two 64-bit registers]",
	kindMemTensor: "[tensor map, {as many coordinates as dimensions}]", kindTensorMemory: "a 32-bit register in brackets",
	kindOffsets: "im2col offsets in braces", kindLanes: "4 registers in braces, 8 of a pair of blocks",
	kindVectorD: "registers", kindVectorS: "registers", kindVector: "registers in braces", kindVectorAny: "operands in braces",
	kindAccumulator: "registers in braces", kindPackD: "registers in braces that make up the type", kindPackS: "registers in braces that make up the type",
	kindDescriptor: "a 64-bit register or an address in brackets", kindLabel: "a label", kindTargets: "a .branchtargets label",
	kindCallee: "a function or register", kindList: "operands in parentheses", kindCallTail: "a .callprototype or .calltargets label",
}

func (s *operandSpec) String() string {
	if s.kind == kindSize {
		return fmt.Sprintf("a register or a multiple of %d", s.multiple())
	}
	if s.values == nil {
		return kindText[s.kind]
	}
	if first, last := s.values[0], s.values[len(s.values)-1]; len(s.values) > 16 && last-first == int64(len(s.values)-1) {
		return fmt.Sprintf("a number from %d to %d", first, last)
	}
	all := make([]string, len(s.values))
	for i, v := range s.values {
		all[i] = strconv.FormatInt(v, 10)
	}
	return "one of the numbers " + strings.Join(all, ", ")
}

// accumulators is how many registers a shape makes in a thread: of wgmma's
// mMnNkK an eighth of N times four over the values a register holds, of
// tcgen05's loads the shape's columns times the repetition.
func accumulators(mods []string, t Type) int {
	times, per := 0, 0
	for _, m := range mods {
		switch {
		case strings.HasPrefix(m, "m64n"):
			n, _, _ := strings.Cut(m[4:], "k")
			v, err := strconv.Atoi(n)
			if err != nil {
				return 0
			}
			if t == F16 {
				return v / 4
			}
			return v / 2
		case m == "32x32b" || m == "16x64b" || m == "16x32bx2":
			per = 1
		case m == "16x128b":
			per = 2
		case m == "16x256b":
			per = 4
		case len(m) > 1 && m[0] == 'x':
			times, _ = strconv.Atoi(m[1:])
		}
	}
	return times * per
}

// coordinates is how many a tensor copy takes: its dimensions, or the column
// and four rows of a gather or scatter.
//
// Its im2col offsets are one for each dimension between the first and last, or
// two in the w modes.
func coordinates(mods []string) (n, offsets int) {
	for _, m := range mods {
		switch {
		case len(m) == 2 && m[1] == 'd' && m[0] >= '1' && m[0] <= '5':
			n, offsets = int(m[0]-'0'), max(int(m[0]-'0')-2, 0)
		case m == "tile::gather4" || m == "tile::scatter4":
			return 5, 0
		case strings.HasPrefix(m, "im2col::"):
			offsets = 2
		}
	}
	return n, offsets
}

// overrides are what a tensor copy takes from its address in place of parts of
// the tensor map, in order; of the sizes, low and high parts of the strides of n
// dimensions.
func overrides(mods []string, n int) []operandSpec {
	of := func(t Type, count int) operandSpec {
		return operandSpec{kind: kindVectorS, typ: typeRule{from: typeFixed, typ: t}, count: count}
	}
	var all []operandSpec
	for _, m := range mods {
		switch m {
		case "override::global_address":
			all = append(all, of(U64, 0))
		case "override::global_dim":
			all = append(all, of(U16, only(n == 1, n)))
		case "override::global_dim_stride":
			all = append(all, of(U16, n), of(U32, only(n > 1, n-1)), of(U16, 0))
		}
	}
	return all
}

// only is n, or a count that no vector has.
func only(ok bool, n int) int {
	if ok {
		return n
	}
	return -1
}
