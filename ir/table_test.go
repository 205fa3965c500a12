package ir_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/ir"
)

func TestTableIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range ir.Opcodes() {
		info := c.Info()
		require.NotEmpty(t, info.Name, "operation %d", c)
		require.NotEmpty(t, info.Doc, info.Name)
		require.False(t, seen[info.Name], "%s twice", info.Name)
		seen[info.Name] = true
		back, ok := ir.OpcodeByName(info.Name)
		require.True(t, ok)
		require.Equal(t, c, back)
		lists := 0
		slots := map[string]bool{}
		for _, s := range info.Slots {
			require.False(t, slots[s.Name], "%s: slot %s twice", info.Name, s.Name)
			slots[s.Name] = true
			if s.Kind == ir.SlotRings || s.Kind == ir.SlotAny {
				lists++
			}
			if s.Optional {
				require.Equal(t, s.Name, strings.TrimSpace(s.Lead), "%s: an optional operand's keyword is its name", info.Name)
			}
		}
		require.LessOrEqual(t, lists, 1, "%s: lists whose lengths can't be told apart", info.Name)
		if info.Typed {
			require.Equal(t, 1, info.Results, info.Name)
		}
	}
	require.Empty(t, ir.OpInvalid.Info().Slots)
	require.Equal(t, "invalid", ir.Opcode(255).String())
}

// TestCorpusHasEveryOperation keeps the printed corpus complete.
func TestCorpusHasEveryOperation(t *testing.T) {
	seen := map[ir.Opcode]bool{}
	for _, folder := range []string{"roundtrip", "run"} {
		for _, file := range corpus(t, folder) {
			p, err := ir.Parse(file, read(t, file))
			require.NoError(t, err)
			for _, k := range p.Kernels {
				k.Walk(func(o *ir.Op) { seen[o.Code] = true })
			}
		}
	}
	for _, c := range ir.Opcodes() {
		require.True(t, seen[c], "no %s in testdata/tile", c)
	}
}

func TestElements(t *testing.T) {
	for _, name := range []string{"i1", "i4", "i8", "i32", "i64", "f16", "bf16", "f32", "f64", "e4m3", "e5m2", "e2m1"} {
		e, ok := ir.ElemByName(name)
		require.True(t, ok, name)
		require.Equal(t, name, e.String())
		require.NotEqual(t, e.IsInt(), e.IsFloat(), name)
		require.Positive(t, e.Bits())
	}
	_, ok := ir.ElemByName("none")
	require.False(t, ok)
	require.Equal(t, 8, ir.I1.MemoryBits())
	require.Equal(t, 4, ir.E2M1.MemoryBits())
}
