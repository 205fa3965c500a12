package simt

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Loads and arithmetic that wait for their first use mean what they did.
func TestSinkKeepsMeaning(t *testing.T) {
	moved := 0
	rapid.Check(t, func(t *rapid.T) {
		k := randomKernel(t, false)
		want, err := results(k, 1)
		require.NoError(t, err)
		before := k.String()
		stretches(k.Body, 0, func(list []*Instr, _ int) { copy(list, sunk(list)) })
		require.NoError(t, Verify(k))
		if k.String() != before {
			moved++
		}
		got, err := results(k, 1)
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
	require.NotZero(t, moved)
}

// A tile that is added to another is loaded element by element where both together are more
// than a thread has registers for, and at once where they are not, or where that leaves too
// many all the same.
func TestSinkLoadsAsItAdds(t *testing.T) {
	for _, tt := range []struct{ threads, asked, registers, live int }{
		{64, 0, 128, 130}, {64, 0, 64, 128}, // of 224 registers, what ptxas adds left out
		{512, 0, 80, 82}, {512, 0, 128, 256}, // of 128
		{512, 240, 80, 160}, {512, 240, 128, 130}, {64, 168, 128, 130}, {64, 120, 128, 256},
	} {
		k := NewKernel("add", tt.threads)
		b := NewBuilder(k)
		if tt.asked > 0 {
			b.MaxRegisters(tt.asked, true)
		}
		in := b.Param(b.AddParam(Param{Name: "in", Type: Ptr, Align: 16}))
		out := b.Param(b.AddParam(Param{Name: "out", Type: Ptr, Align: 16}))
		var xs, ys []*Value
		for i := range tt.registers {
			xs = append(xs, b.LdGlobal(F32, 1, in, Access{Offset: 4 * i})...)
		}
		b.Bar(b.Const32(0), 0)
		for i := range tt.registers {
			ys = append(ys, b.LdGlobal(F32, 1, in, Access{Offset: 4 * (tt.registers + i)})...)
		}
		for i := range xs {
			xs[i] = b.Add(xs[i], ys[i])
		}
		for i, x := range xs {
			b.StGlobal(out, []*Value{x}, Access{Offset: 4 * i})
		}
		Sink(k)
		require.NoError(t, Verify(k))
		s := sinker{k: k}
		s.measure()
		most := 0
		for _, n := range s.pressure {
			most = max(most, n)
		}
		require.InDelta(t, tt.live, most, 8, "%+v, pointers beside", tt)
	}
}
