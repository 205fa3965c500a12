package vm_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/ptx"
)

// spelling is an opcode with its modifiers, taken apart.
type spelling struct {
	op       string
	name     string
	mods     []string // without the types
	types    []string
	operands int
}

func newSpelling(op string, operands int) spelling {
	words := strings.Split(op, ".")
	s := spelling{op: op, name: words[0], operands: operands}
	for _, w := range words[1:] {
		if _, ok := ptx.ParseType(w); ok || w == "tf32" {
			s.types = append(s.types, w)
		} else {
			s.mods = append(s.mods, w)
		}
	}
	return s
}

func (s spelling) has(mod string) bool { return slices.Contains(s.mods, mod) }

// one is the modifier among some that the spelling has, or "".
func (s spelling) one(mods ...string) string {
	for _, m := range mods {
		if s.has(m) {
			return m
		}
	}
	return ""
}

// packed takes x2 or x4 off a type, and says how many values it has.
func packed(typ string) (string, int) {
	if t, ok := strings.CutSuffix(typ, "x2"); ok {
		return t, 2
	}
	if t, ok := strings.CutSuffix(typ, "x4"); ok {
		return t, 4
	}
	return typ, 1
}

// integerType is an integer type's width, and whether it has a sign.
func integerType(t string) (bits int, signed, ok bool) {
	if t == "" || !strings.ContainsAny(t[:1], "usb") || strings.Contains(t, "f") {
		return 0, false, false
	}
	_, err := fmt.Sscanf(t[1:], "%d", &bits)
	return bits, t[0] == 's', err == nil && fmt.Sprint(bits) == t[1:]
}

// each applies a reference for n values of some bits to packed operands.
func each(bits, n int, g func(v []uint64) uint64) func(v []uint64) uint64 {
	return func(v []uint64) uint64 {
		var out uint64
		for i := range n {
			w := make([]uint64, len(v))
			for k := range v {
				w[k] = v[k] >> (i * bits) & (1<<bits - 1)
			}
			out |= g(w) & (1<<bits - 1) << (i * bits)
		}
		return out
	}
}

// samples is an instruction of every spelling up to PTX 9.2, for the first of some
// targets that has it.
var samples = sync.OnceValue(func() []ptx.Sample {
	var targets []ptx.Target
	for _, name := range []string{"sm_53", "sm_90a", "sm_100a", "sm_120a"} {
		t, err := ptx.ParseTarget(name)
		if err != nil {
			panic(err)
		}
		targets = append(targets, t)
	}
	return ptx.Samples(ptx.Version{}, ptx.Version{Major: 9, Minor: 2}, targets, 1000)
})

// runSpellings holds every spelling that the table of PTX instructions has of
// some names to the references that of gives. Those of which it gives none must
// be excused.
func runSpellings(t *testing.T, names []string, of func(s spelling) []instruction, excused func(s spelling) bool) {
	by := map[string][]instruction{}
	seen := map[string]bool{}
	for _, sample := range samples() {
		if !slices.Contains(names, sample.Form.Name) {
			continue
		}
		op, _, _ := strings.Cut(sample.Text, " ")
		s := newSpelling(op, len(strings.Fields(sample.Form.Operands)))
		if key := fmt.Sprint(op, s.operands); seen[key] {
			continue
		} else {
			seen[key] = true
		}
		list := of(s)
		if list == nil && !excused(s) {
			t.Errorf("%s with %d operands: no reference", s.op, s.operands)
		}
		for _, ins := range list {
			ins.op = op
			by[sample.Target.String()] = append(by[sample.Target.String()], ins)
		}
	}
	require.NotEmpty(t, seen)
	for target, list := range by {
		for chunk := range slices.Chunk(list, 64) {
			runTogether(t, target, chunk)
		}
	}
}

// runTogether runs instructions one after the other in one kernel.
func runTogether(t *testing.T, target string, list []instruction) {
	t.Helper()
	const n = 128
	var body strings.Builder
	var in []byte
	vals := make([][][]uint64, len(list))
	for i, ins := range list {
		fmt.Fprintf(&body, "mad.wide.u32 %%ad, %%t, %d, %%in0; add.u64 %%ad, %%ad, %d;\n", 8*len(ins.src), len(in))
		ins.write(&body)
		fmt.Fprintf(&body, "mad.wide.u32 %%ad, %%t, 8, %%in1; st.global.b64 [%%ad+%d], %%dq;\n", 8*n*i)
		var data []byte
		vals[i], data = ins.operands(n)
		in = append(in, data...)
	}
	p := small{target: target, regs: instructionRegs, body: body.String(), block: n}
	out, report := p.run(t, in, make([]byte, 8*n*len(list)))
	require.Empty(t, report.Faults)
	got := toLongs(out[1])
	for i, ins := range list {
		t.Run(ins.op, func(t *testing.T) { ins.compare(t, vals[i], got[n*i:n*i+n]) })
	}
}

// valuesOf are operands by width: floating-point of a format, any bits else.
func valuesOf(formats ...format) func(r *rand.Rand, bits int) uint64 {
	return func(r *rand.Rand, bits int) uint64 {
		for _, f := range formats {
			if f.bits == bits {
				return floatValues(f)(r, bits)
			}
		}
		return anyBits(r, bits)
	}
}
