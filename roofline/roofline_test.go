package roofline

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/target"
	_ "github.com/kgen-dev/kgen/internal/fixedseed" // of rapid
)

func roofs(t *testing.T, name string) Roofs {
	t.Helper()
	g, err := target.Lookup(name)
	require.NoError(t, err)
	return DeviceRoofs(g)
}

// attention is causal attention of batch 4, 4096 tokens, 32 query and 8 key
// heads of 128, two bytes an element: operations and least bytes by formula,
// one exp2 for each of the S*(S+1)/2 visible scores.
func attention(m target.Math) Work {
	const b, s, h, hk, d = 4, 4096, 32, 8, 128
	return Work{
		Operations: []Operations{{m, Formula(2 * b * h * s * s * d)}},
		HBMBytes:   Formula(2 * b * s * d * (2*h + 2*hk)),
		MUFU:       Formula(b * h * s * (s + 1) / 2),
		Launches:   Formula(1),
	}
}

func TestAttentionOnH100(t *testing.T) {
	a, err := Assess(roofs(t, "h100"), attention(target.BF16))
	require.NoError(t, err)
	require.Equal(t, Tensor, a.Binding.Unit)
	// 549.8 GFLOP at 989.4 TFLOP/s.
	require.InEpsilon(t, 555.7, a.LeastUS(), 0.001)
	require.InEpsilon(t, 989.4, a.AttainableTFLOPS(), 0.001)
	// One exp2 for 4*128 operations: half the tensor time, by clock 1830 against 1980.
	require.InEpsilon(t, 0.5*1830/1980*555.7, a.Limits()["MUFU"], 0.002)
	require.InEpsilon(t, 335544320/3352.3e3, a.Limits()["HBM"], 0.001)

	// FlashAttention-3 in NVIDIA's table: 1.127 ms.
	v, err := a.Judge(1127, bench.Measured)
	require.NoError(t, err)
	require.InEpsilon(t, 0.493, v.Score, 0.002)
	require.InEpsilon(t, 488, v.TFLOPS, 0.001)
	require.Empty(t, v.Doubt)
}

func TestTensorReach(t *testing.T) {
	w := attention(target.BF16)
	w.TensorReach = 0.63
	a, err := Assess(roofs(t, "h100"), w)
	require.NoError(t, err)
	require.InEpsilon(t, 555.7/0.63, a.LeastUS(), 0.001)
	require.Contains(t, a.Binding.Detail, "reach 63 %")
	w.TensorReach = 1.5
	_, err = Assess(roofs(t, "h100"), w)
	require.ErrorContains(t, err, "tensor reach of 1.5")
}

func TestMUFUBindsNarrowHeadsOnBlackwell(t *testing.T) {
	// At head dimension 64 a B200 needs 32 exp2 per clock and has 16.
	w := Work{Operations: []Operations{{target.BF16, Formula(4 * 64)}}, MUFU: Formula(1)}
	a, err := Assess(roofs(t, "b200"), w)
	require.NoError(t, err)
	require.Equal(t, MUFU, a.Binding.Unit)
	// Blackwell Ultra has twice the exp2.
	a, err = Assess(roofs(t, "b300"), w)
	require.NoError(t, err)
	require.Less(t, a.Limits()["MUFU"], a.Limits()["tensor"]*1.01)
}

// Ridge points of the reference: 16-bit operations per byte.
func TestRidges(t *testing.T) {
	for gpu, want := range map[string]float64{"a100": 153, "h100": 295, "h200": 206} {
		r, ok := roofs(t, gpu).Ridge(target.BF16, HBM)
		require.True(t, ok)
		require.InEpsilon(t, want, r, 0.005, gpu)
	}
	_, ok := roofs(t, "t4").Ridge(target.BF16, HBM)
	require.False(t, ok)
}

// The measured V100 GPP kernel against its published ceilings: at one
// iteration it reaches 97.4 % of the HBM line.
func TestGPPOnV100(t *testing.T) {
	r := roofs(t, "v100")
	r.HBM.Value = 828.758
	const gflops, ai = 2085.756683, 2.584785579
	ops := 1e12
	a, err := Assess(r, Work{Operations: []Operations{{target.F64, Counted(ops)}}, HBMBytes: Counted(ops / ai)})
	require.NoError(t, err)
	v, err := a.Judge(ops/gflops/1e3, bench.Measured)
	require.NoError(t, err)
	require.Equal(t, HBM, v.Binding.Unit)
	require.InEpsilon(t, 0.974, v.Score, 0.001)
	require.InEpsilon(t, ai, v.Intensities[0].Value, 1e-9)
}

func TestScoreAboveOneIsKeptAndExplained(t *testing.T) {
	r := roofs(t, "h100")
	judge := func(w Work, share float64) *Verdict {
		a, err := Assess(r, w)
		require.NoError(t, err)
		v, err := a.Judge(a.LeastUS()*share, bench.Measured)
		require.NoError(t, err)
		require.InEpsilon(t, 1/share, v.Score, 1e-9)
		return v
	}
	require.Contains(t, judge(Work{HBMBytes: Formula(20e6)}, 0.5).Doubt, "fit the L2")
	require.Contains(t, judge(attention(target.BF16), 0.95).Doubt, "1980 MHz")
	require.Contains(t, judge(attention(target.BF16), 0.5).Doubt, "sparse operands")
	require.Contains(t, judge(attention(target.BF16), 0.9).Doubt, "2033 MHz would explain")
	require.Contains(t, judge(attention(target.BF16), 0.3).Doubt, "impossible")
	require.Contains(t, judge(Work{HBMBytes: Formula(20e9)}, 0.5).Doubt, "formula")
}

func TestIssueNamesThePipe(t *testing.T) {
	r := roofs(t, "a100")
	for want, w := range map[string]Work{
		"FMA pipe":          {FMA: Counted(1e9), ALU: Counted(0.9e9), Issue: Counted(1e9 / 32)},
		"ALU pipe":          {FMA: Counted(1e9), ALU: Counted(1.1e9)},
		"warp instructions": {Issue: Counted(1e9), FMA: Counted(1e9)},
		"fp64":              {Operations: []Operations{{target.F64, Formula(1e9)}}},
	} {
		a, err := Assess(r, w)
		require.NoError(t, err)
		require.Equal(t, Issue, a.Binding.Unit)
		require.Contains(t, a.Binding.Detail, want)
	}
}

func TestSmallProblemsAreBoundByTheLaunch(t *testing.T) {
	w := Work{Operations: []Operations{{target.BF16, Formula(2 * 32 * 32 * 32)}}, Launches: Formula(2)}
	a, err := Assess(roofs(t, "a100"), w)
	require.NoError(t, err)
	require.Equal(t, Launch, a.Binding.Unit)
	require.Equal(t, 4.8, a.LeastUS())
}

func TestBadWork(t *testing.T) {
	r := roofs(t, "t4")
	ok := Formula(1)
	for want, w := range map[string]Work{
		"nothing to do":                {},
		"bf16 operations: no rate":     {Operations: []Operations{{target.BF16, ok}}},
		"HBM bytes: -1":                {HBMBytes: Formula(-1)},
		"MUFU results: NaN":            {MUFU: Formula(math.NaN())},
		"L2 bytes: +Inf":               {L2Bytes: Formula(math.Inf(1))},
		"fp32 operations given twice":  {Operations: []Operations{{target.F32, ok}, {target.F32, ok}}},
		"without saying where it is f": {FMA: Count{Value: 3}},
	} {
		_, err := Assess(r, w)
		require.ErrorContains(t, err, want)
	}
	a, err := Assess(r, Work{HBMBytes: ok})
	require.NoError(t, err)
	for _, us := range []float64{1e-320, 0, -1, math.NaN(), math.Inf(1)} {
		_, err := a.Judge(us, bench.Measured)
		require.Error(t, err)
	}
	_, err = a.Judge(1, bench.Formula)
	require.ErrorContains(t, err, "formula")
}

// Doubling all work doubles every floor, and the binding floor is the largest.
func TestFloorsAreLinear(t *testing.T) {
	gpus := target.All()
	rapid.Check(t, func(t *rapid.T) {
		g := gpus[rapid.IntRange(0, len(gpus)-1).Draw(t, "gpu")]
		c := func(name string) Count { return Counted(float64(rapid.Uint64Range(0, 1e15).Draw(t, name))) }
		w := Work{HBMBytes: c("hbm"), L2Bytes: c("l2"), SharedBytes: c("shared"), MUFU: c("mufu"), FMA: c("fma"), ALU: c("alu"), Issue: c("issue"), Launches: Formula(1)}
		for _, m := range target.Maths() {
			if _, ok := g.Peak(m); ok && rapid.Bool().Draw(t, string(m)) {
				w.Operations = append(w.Operations, Operations{m, c("ops")})
			}
		}
		a, err := Assess(DeviceRoofs(g), w)
		require.NoError(t, err)
		double := func(c *Count) { c.Value *= 2 }
		for _, c := range []*Count{&w.HBMBytes, &w.L2Bytes, &w.SharedBytes, &w.MUFU, &w.FMA, &w.ALU, &w.Issue, &w.Launches} {
			double(c)
		}
		w.Operations = append([]Operations(nil), w.Operations...)
		for i := range w.Operations {
			double(&w.Operations[i].Count)
		}
		b, err := Assess(DeviceRoofs(g), w)
		require.NoError(t, err)
		require.Len(t, b.Floors, len(a.Floors))
		for i, f := range a.Floors {
			require.InEpsilon(t, 2*f.US, b.Floors[i].US, 1e-12)
			require.LessOrEqual(t, f.US, a.Binding.US)
		}
	})
}

func TestFloorsHaveStableJSON(t *testing.T) {
	a, err := Assess(roofs(t, "h100"), attention(target.BF16))
	require.NoError(t, err)
	b, err := json.Marshal(a.Floors)
	require.NoError(t, err)
	require.Contains(t, string(b), `{"unit":"HBM","us":100.09`)
	require.Contains(t, string(b), `"provenance":"formula"`)
}
