package simt

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/kgen-dev/kgen/internal/fixedseed" // of rapid
)

// TestCountIsWhatExecutes compares the static count with what the evaluator
// executed, for kernels whose decisions the launch determines.
func TestCountIsWhatExecutes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := randomKernel(t, true)
		if rapid.Bool().Draw(t, "clean") {
			Clean(k)
		}
		c := NewCounter(k)
		for seed := range uint64(3) {
			r := rand.New(rand.NewPCG(seed, 2))
			m := machine{global: make([]byte, inBytes+outBytes), cta: uint64(r.IntN(1 << 10))}
			m.params = []uint64{0, inBytes, uint64(r.IntN(70)), r.Uint64()}
			require.NoError(t, m.run(k))
			var want Counts
			want.add(&m.counts, int64(k.Threads/warpSize))
			env := Env{Params: []int64{0, inBytes, int64(m.params[2]), int64(m.params[3])}, Block: [3]int64{int64(m.cta)}}
			got, err := c.Count(env)
			require.NoError(t, err)
			require.Equal(t, want, got, "%s", k)
		}
	})
}

// TestCountByWarp counts a kernel where the first warp does other work.
func TestCountByWarp(t *testing.T) {
	k := NewKernel("roles", 128)
	b := NewBuilder(k)
	p := b.Param(b.AddParam(Param{Name: "p", Type: Ptr}))
	n := b.Param(b.AddParam(Param{Name: "n", Type: I32}))
	warp := b.ShrU(b.Special(TidX), b.Const32(5))
	b.If(b.Cmp(EQ, warp, b.Const32(0)), func() []*Value {
		b.For(b.Const32(0), n, b.Const32(1), nil, func(i *Value, _ []*Value) []*Value {
			b.StGlobal(p, []*Value{b.Const32(1)}, Access{Sectors: 1})
			return nil
		})
		return nil
	}, func() []*Value {
		b.Bar(b.Const32(1), 96)
		return nil
	})
	lane := b.And(b.Special(TidX), b.Const32(31))
	b.Guarded(b.Cmp(EQ, lane, b.Const32(0)), func() { b.StGlobal(p, []*Value{b.Const32(1)}, Access{Sectors: 1}) })
	require.NoError(t, Verify(k))
	got, err := NewCounter(k).Count(Env{Params: []int64{0, 10}})
	require.NoError(t, err)
	require.Equal(t, int64(3), got.Bars)
	require.Equal(t, int64(10+4), got.Sectors)
	require.Equal(t, int64(4), got.Unknown)
}

func TestCountEnds(t *testing.T) {
	k := NewKernel("endless", 32)
	b := NewBuilder(k)
	p := b.Param(b.AddParam(Param{Name: "p", Type: Ptr}))
	b.Loop([]*Value{b.Const32(0)}, func(carried []*Value) (*Value, []*Value) {
		b.StGlobal(p, carried, Access{})
		return b.Cmp(GE, b.And(carried[0], b.Const32(7)), b.Const32(0)), []*Value{b.Add(carried[0], b.Const32(1))}
	})
	_, err := NewCounter(k).Count(Env{Params: []int64{0}})
	require.ErrorContains(t, err, "count of endless")
	_, err = NewCounter(k).Count(Env{})
	require.ErrorContains(t, err, "0 parameters, want 1")
}

// TestLongLoopsCountAsRun counts loops with a ring, a peeled beginning and a masked end
// that are too long to go through: one more ring of rounds is always as much more.
func TestLongLoopsCountAsRun(t *testing.T) {
	k := NewKernel("long", 32)
	b := NewBuilder(k)
	p := b.Param(b.AddParam(Param{Name: "p", Type: Ptr}))
	n := b.Param(b.AddParam(Param{Name: "n", Type: I32}))
	store := func(guard *Value) {
		b.Guarded(guard, func() { b.StGlobal(p, []*Value{b.Const32(1)}, Access{Sectors: 1}) })
	}
	b.For(b.Const32(0), n, b.Const32(1), []*Value{b.Const32(0)}, func(i *Value, carried []*Value) []*Value {
		store(b.Cmp(LT, i, b.Const32(5)))
		store(b.Cmp(EQ, carried[0], b.Const32(3)))
		store(b.Cmp(GE, i, b.Sub(n, b.Const32(7))))
		next := b.Add(carried[0], b.Const32(1))
		return []*Value{b.Select(b.Cmp(EQ, next, b.Const32(4)), b.Const32(0), next)}
	})
	c := NewCounter(k)
	for _, n := range []int64{1, 100, longLoop, longLoop + 1, longLoop + 77, 1 << 20, 1<<31 - 10} {
		got, err := c.Count(Env{Params: []int64{0, n}})
		require.NoError(t, err)
		require.Equal(t, min(n, 5)+n/4+min(n, 7), got.Sectors, n)
		require.Zero(t, got.Unknown)
	}
}
