package model

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/simt"
)

// TestVectorIsTheEvaluator computes every integer operation on random lanes, uniform
// ones among them, both ways.
func TestVectorIsTheEvaluator(t *testing.T) {
	k := simt.NewKernel("ops", 32)
	b := simt.NewBuilder(k)
	param := func(typ simt.Type) *simt.Value { return b.Param(b.AddParam(simt.Param{Type: typ})) }
	x, y, z := param(simt.I32), param(simt.I32), param(simt.I32)
	u, v := param(simt.I64), param(simt.I64)
	ptr := param(simt.Ptr)
	var all []*simt.Value
	add := func(vs ...*simt.Value) { all = append(all, vs...) }
	add(b.Add(x, y), b.Sub(x, y), b.Mul(x, y), b.And(x, y), b.Or(x, y), b.Xor(x, y), b.Mad(x, y, z))
	add(b.Add(u, v), b.Mul(u, v), b.Add(ptr, u), b.MulWide(x, y), b.MadWide(x, y, u), b.MadWide(x, y, ptr))
	add(b.Shl(x, b.Const32(7)), b.ShrU(x, b.Const32(3)), b.Shl(u, b.Const32(40)), b.ShrU(u, b.Const32(33)), b.Shl(x, y))
	add(b.Min(x, y), b.DivU(x, y), b.Sext(x, simt.I64), b.Trunc(u, simt.I32))
	var preds []*simt.Value
	for c := simt.EQ; c <= simt.GEU; c++ {
		preds = append(preds, b.Cmp(c, x, y), b.Cmp(c, u, v))
	}
	add(preds...)
	add(b.And(preds[4], preds[5]), b.Or(preds[4], preds[5]), b.Xor(preds[4], preds[5]))
	add(b.Select(preds[6], x, y), b.Select(preds[6], u, v))

	r := rand.New(rand.NewPCG(1, 1))
	fast := 0
	for range 50 {
		values := map[*simt.Value]lanes{}
		for _, p := range []*simt.Value{x, y, z, u, v, ptr} {
			values[p] = randomLanes(r, p.Type)
		}
		for _, p := range preds {
			values[p] = randomLanes(r, simt.Pred)
		}
		for _, res := range all {
			in := res.Def
			var ops [3]lanes
			for i, a := range in.Args {
				ops[i] = values[a]
				if a.IsConst() {
					ops[i] = lanes{known: true, n: a.Int()}
				}
			}
			out := make([]int64, warpSize)
			if !vector(in, out, &ops) {
				continue
			}
			fast++
			f := in.Evaluator()
			for i := range out {
				want, ok := f(ops[0].at(i), ops[1].at(i), ops[2].at(i))
				require.True(t, ok, "%s", in)
				require.Equal(t, want, out[i], "%s of %d, %d, %d", in, ops[0].at(i), ops[1].at(i), ops[2].at(i))
			}
		}
	}
	require.Greater(t, fast, 50*25)
}

// randomLanes are values of a type as the evaluator keeps them: sign-extended.
func randomLanes(r *rand.Rand, typ simt.Type) lanes {
	one := func() int64 {
		n := int64(r.Uint64() >> r.IntN(64))
		if r.IntN(2) == 0 {
			n = -n
		}
		switch typ {
		case simt.Pred:
			return n & 1
		case simt.I32:
			return int64(int32(n))
		}
		return n
	}
	x := lanes{known: true, n: one()}
	if r.IntN(3) > 0 {
		x.v = make([]int64, warpSize)
		for i := range x.v {
			x.v[i] = one()
		}
	}
	return x
}

// TestShuffled: lanes by the PTX ISA's rules for shfl.sync, worked by hand.
func TestShuffled(t *testing.T) {
	for _, c := range []struct {
		mode           simt.ShflMode
		width          int
		lane, by, from int
	}{
		{simt.Idx, 32, 5, 17, 17}, {simt.Idx, 16, 21, 3, 19}, {simt.Idx, 8, 9, 12, 12}, {simt.Idx, 8, 9, 7, 15},
		{simt.Bfly, 32, 5, 16, 21}, {simt.Bfly, 8, 5, 3, 6}, {simt.Bfly, 8, 5, 8, 5},
		{simt.Down, 32, 30, 1, 31}, {simt.Down, 32, 31, 1, 31}, {simt.Down, 8, 6, 2, 6},
		{simt.Up, 32, 3, 2, 1}, {simt.Up, 32, 1, 2, 1}, {simt.Up, 8, 9, 1, 8}, {simt.Up, 8, 8, 1, 8},
	} {
		k := simt.NewKernel("k", 32)
		b := simt.NewBuilder(k)
		v := b.Shfl(c.mode, b.Special(simt.LaneID), b.Const32(c.by), c.width)
		require.Equal(t, c.from, shuffled(v.Def, c.lane, c.by), "%v width %d lane %d by %d", c.mode, c.width, c.lane, c.by)
	}
}
