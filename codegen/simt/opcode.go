package simt

import (
	"strconv"
	"strings"
)

// suffix is the type's name in an opcode: kind 's' signed, 'u' unsigned, 'b'
// bits; floats are themselves but for 'b'.
func (t Type) suffix(kind byte) string {
	if t == Pred {
		return "pred"
	}
	if kind != 'b' && t.IsFloat() {
		return typeNames[t]
	}
	return string(kind) + strconv.Itoa(t.Bits())
}

// Opcode is the instruction's whole PTX opcode, such as "ld.global.nc.v4.b32".
// A row's template is copied with these marks replaced: $s $u $b the type as
// signed, unsigned or bits; $1s $1u $1j the first operand's; $r ".rn" for
// floats, $l ".lo" or ".rn", $q and $d ".approx" or ".rn", $z ".ftz", $n
// ".NaN"; $m the rounding mode, $v the same where a
// conversion needs one; $c and $k a comparison and its type; $j an integer
// with the sign of the flags; $8 an 8-bit float format; $h $V $o $a $S the
// modes of shuffles, votes, reductions and fences; $R which way registers change;
// $e what L2 does with lines.
func (in *Instr) Opcode() string {
	switch in.Op {
	case OpLd, OpSt:
		return in.accessOpcode()
	case OpAtom, OpRed:
		return in.atomOpcode()
	case OpCpAsync:
		return in.copyOpcode()
	case OpLdMatrix, OpStMatrix:
		return in.matrixOpcode()
	case OpMma:
		return in.Mma.Info().PTX
	case OpWgmma:
		return in.wgmmaOpcode()
	case OpTensorLoad, OpTensorStore:
		return in.tensorOpcode()
	case OpMapSet:
		return in.MapField().opcode()
	}
	t := in.Op.Info().PTX
	if strings.IndexByte(t, '$') < 0 {
		return t
	}
	var out []byte
	for i := 0; i < len(t); i++ {
		if t[i] != '$' {
			out = append(out, t[i])
			continue
		}
		i++
		if t[i] == '1' {
			i++
			out = append(out, in.argSuffix(t[i])...)
			continue
		}
		if t[i] == 'm' && i+1 < len(t) && t[i+1] == 'i' {
			i++
			out = append(out, in.Round.String()+"i"...)
			continue
		}
		out = append(out, in.mark(t[i])...)
	}
	return string(out)
}

func (in *Instr) argSuffix(kind byte) string {
	if kind == 'j' {
		kind = in.sign()
	}
	return in.Args[0].Type.suffix(kind)
}

func (in *Instr) sign() byte {
	if in.Flags&Unsigned != 0 {
		return 'u'
	}
	return 's'
}

// when is s if the flag is set.
func (in *Instr) when(f Flags, s string) string {
	if in.Flags&f != 0 {
		return s
	}
	return ""
}

func (in *Instr) mark(m byte) string {
	switch m {
	case 's', 'u', 'b':
		return in.Type.suffix(m)
	case 'j':
		return in.Type.suffix(in.sign())
	case 'r':
		if in.Type.IsFloat() {
			return ".rn"
		}
	case 'l':
		if in.Type.IsFloat() {
			return ".rn"
		}
		return ".lo"
	case 'd', 'q':
		switch {
		case in.Type.IsInt():
		case in.Flags&Approx != 0:
			return ".approx"
		default:
			return ".rn"
		}
	case 'z':
		return in.when(FTZ, ".ftz")
	case 'n':
		return in.when(NaN, ".NaN")
	case 'm':
		return in.Round.String()
	case 'v':
		return in.cvtRound()
	case 'c':
		return in.cmpName()
	case 'k':
		return in.cmpType()
	case '8':
		if in.Mem == E5M2 {
			return "e5m2x2"
		}
		return "e4m3x2"
	case 'h':
		return in.Shfl.String()
	case 'V':
		if in.Atom == AtomAnd {
			return "all"
		}
		return "any"
	case 'o':
		return strings.TrimSuffix(in.Atom.String(), "u")
	case 'a':
		switch in.Atom {
		case AtomAnd, AtomOr, AtomXor:
			return "b32"
		case AtomMinU, AtomMaxU:
			return "u32"
		}
		return "s32"
	case 'S':
		return in.Scope.String()
	case 'e':
		return L2Policy(in.Imm).String()
	case 'R':
		if in.Flags&Fewer != 0 {
			return "dec"
		}
		return "inc"
	}
	return ""
}

// cvtRound is the rounding of a float conversion: none where it widens, an
// integer rounding where the type stays.
func (in *Instr) cvtRound() string {
	from := in.Args[0].Type
	switch {
	case in.Imm != 0:
		return "." + in.Round.String() + "i"
	case from.Bits() < in.Type.Bits():
		return ""
	}
	return "." + in.Round.String()
}

func (in *Instr) cmpName() string {
	if in.Type.IsFloat() || in.Cmp < LTU {
		return in.Cmp.String()
	}
	return (in.Cmp - LTU + LT).String()
}

func (in *Instr) cmpType() string {
	if in.Type.IsInt() && (in.Cmp >= LTU || in.Type == Ptr) {
		return in.Type.suffix('u')
	}
	return in.Type.suffix('s')
}

func (in *Instr) vector() string {
	switch in.Vec {
	case 2:
		return ".v2"
	case 4:
		return ".v4"
	}
	return ""
}

// memSuffix is the element type in a load's or store's opcode.
func (in *Instr) memSuffix() string {
	switch in.Mem {
	case B64:
		return ".b64"
	case B16:
		return ".b16"
	case U8:
		return ".u8"
	case S8:
		return ".s8"
	}
	return ".b32"
}

func (in *Instr) accessOpcode() string {
	op := "st."
	if in.Op == OpLd {
		op = "ld."
	}
	if in.Flags&Volatile != 0 {
		return op[:3] + "volatile." + in.Space.String() + in.vector() + in.memSuffix()
	}
	op += in.Space.String()
	c := in.Cache
	switch {
	case c&CacheNC != 0 && in.Op == OpLd:
		op += ".nc"
	case c&CacheCG != 0:
		op += ".cg"
	case c&CacheCS != 0:
		op += ".cs"
	}
	switch {
	case c&L1NoAllocate != 0:
		op += ".L1::no_allocate"
	case c&L1EvictFirst != 0:
		op += ".L1::evict_first"
	}
	if in.Op == OpLd {
		op += c.prefetch()
	}
	return op + in.vector() + in.memSuffix()
}

func (c Cache) prefetch() string {
	switch {
	case c&L2Prefetch256 != 0:
		return ".L2::256B"
	case c&L2Prefetch128 != 0:
		return ".L2::128B"
	case c&L2Prefetch64 != 0:
		return ".L2::64B"
	}
	return ""
}

func (in *Instr) atomOpcode() string {
	op := in.Op.String() + ".relaxed." + in.Scope.String() + "." + in.Space.String() + "." + strings.TrimSuffix(in.Atom.String(), "u")
	t := in.Type
	switch in.Atom {
	case AtomAdd:
		switch {
		case t == F16 || t == BF16 || t == F16x2 || t == BF16x2:
			return op + ".noftz." + t.String()
		case t.IsInt():
			return op + "." + t.suffix('u')
		}
		return op + "." + t.String()
	case AtomMin, AtomMax:
		return op + "." + t.suffix('s')
	case AtomMinU, AtomMaxU, AtomInc, AtomDec:
		return op + "." + t.suffix('u')
	}
	return op + "." + t.suffix('b')
}

func (in *Instr) copyOpcode() string {
	op := "cp.async.ca.shared.global"
	if in.CpAsyncBytes() == 16 && in.Cache&CacheCG != 0 {
		op = "cp.async.cg.shared.global"
	}
	return op + in.Cache.prefetch()
}

func (in *Instr) matrixOpcode() string {
	op := "stmatrix.sync.aligned.m8n8.x"
	if in.Op == OpLdMatrix {
		op = "ldmatrix.sync.aligned.m8n8.x"
	}
	return op + strconv.Itoa(int(in.Vec)) + in.when(Trans, ".trans") + ".shared.b16"
}

// Requires is the least PTX version (times ten) and the least target the
// instruction needs. Source: the "PTX ISA Notes" and "Target ISA Notes" of
// each instruction in PTX ISA 9.1.
func (in *Instr) Requires() (version, sm int) {
	info := in.Op.Info()
	version, sm = info.Ver, info.SM
	need := func(v, s int) { version, sm = max(version, v), max(sm, s) }
	bf := in.Type == BF16 || in.Type == BF16x2
	half := bf || in.Type == F16 || in.Type == F16x2
	switch in.Op {
	case OpMma:
		m := in.Mma.Info()
		need(m.MinVersion, m.MinSM)
	case OpAdd, OpSub, OpMul:
		if bf {
			need(78, 90)
		}
	case OpFma, OpNeg, OpAbs:
		switch {
		case bf:
			need(70, 80)
		case half && in.Op == OpAbs:
			need(65, 53)
		case half && in.Op == OpNeg:
			need(60, 53)
		}
	case OpMin, OpMax:
		if half || in.Flags&NaN != 0 {
			need(70, 80)
		}
	case OpEx2, OpTanh:
		switch {
		case bf:
			need(78, 90)
		case half:
			need(70, 75)
		}
	case OpCmp:
		if bf {
			need(78, 90)
		}
	case OpFloatCvt:
		in.requireCvt(need)
	case OpIntToFloat, OpFloatToInt:
		if bf || in.Args[0].Type == BF16 {
			need(78, 90)
		}
	case OpLd, OpSt, OpCpAsync:
		if in.Cache&^(CacheNC|CacheCG|CacheCS) != 0 {
			need(74, 75)
		}
		if in.Cache&L2Prefetch256 != 0 {
			need(74, 80)
		}
	case OpAtom, OpRed:
		switch {
		case bf:
			need(78, 90)
		case half:
			need(63, 70)
		default:
			need(60, 70)
		}
	case OpStMatrix:
		need(78, 90)
	}
	return version, sm
}

func (in *Instr) requireCvt(need func(v, s int)) {
	from, to := in.Args[0].Type, in.Type
	switch {
	case from == BF16 && to == F32:
		need(71, 80)
	case from == F32 && to == BF16:
		need(70, 80)
	case from == BF16 || to == BF16:
		need(78, 90)
	}
}

// targetVersion is the least PTX version that knows a target.
// Source: PTX ISA 9.1, ".target" and the release notes' table.
var targetVersion = map[string]int{
	"sm_70": 60, "sm_72": 61, "sm_75": 63, "sm_80": 70, "sm_86": 71, "sm_87": 74, "sm_88": 90, "sm_89": 78,
	"sm_90": 78, "sm_90a": 80, "sm_100": 86, "sm_100a": 86, "sm_100f": 88, "sm_101a": 86, "sm_103": 88, "sm_103a": 88,
	"sm_110": 90, "sm_110a": 90, "sm_120": 87, "sm_120a": 87, "sm_121": 88, "sm_121a": 88,
}

// Version is the least PTX version (times ten) a module needs: what its
// target and its instructions ask for.
func (m *Module) Version() int {
	v := targetVersion[m.Arch]
	for _, k := range m.Kernels {
		Walk(k.Body, func(in *Instr) {
			n, _ := in.Requires()
			v = max(v, n)
		})
	}
	return max(v, 60)
}

// Walk calls f for every instruction, in order, outer before inner.
func Walk(b *Block, f func(*Instr)) {
	if b == nil {
		return
	}
	for _, in := range b.Instrs {
		f(in)
		Walk(in.Body, f)
		Walk(in.Else, f)
	}
}
