package layernorm

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/kernels/family"
)

func data(t *testing.T, p *Problem) family.Data {
	t.Helper()
	d, err := family.NewData(p.Args(), 3)
	require.NoError(t, err)
	return d
}

func expect(t *testing.T, p *Problem, d family.Data, out string) family.Expected {
	t.Helper()
	e, err := p.Expect(d, d[out].Whole())
	require.NoError(t, err)
	return e
}

// Without weight and bias a row of y has mean 0 and variance 1, and for RMSNorm mean
// square 1.
func TestExpectedRowsAreNormal(t *testing.T) {
	for _, norm := range []string{"layer", "rms"} {
		p := &Problem{Rows: 3, Cols: 777, Norm: norm, Type: "f32", Residual: "f16", Weight: none, Bias: none, Dropout: 0.3, Seed: 5}
		e := expect(t, p, data(t, p), "y")
		for i := range p.Rows {
			sum, square := 0.0, 0.0
			for _, y := range e.Want[777*i : 777*(i+1)] {
				sum += y / 777
				square += y * y / 777
			}
			if norm == "layer" {
				require.InDelta(t, 0, sum, 1e-12)
			}
			require.InDelta(t, 1, square, 1e-12)
		}
	}
}

func TestExpectedSumDropsAndScales(t *testing.T) {
	p := &Problem{Rows: 40, Cols: 1000, Norm: "layer", Type: "f32", Residual: none, WriteResidual: true, Weight: none, Bias: none, Dropout: 0.25, Seed: 5}
	d := data(t, p)
	e := expect(t, p, d, "sum")
	dropped := 0
	for i, x := range d["x"].Region(d["x"].Whole()) {
		if e.Want[i] == 0 {
			dropped++
		} else {
			require.InDelta(t, x/0.75, e.Want[i], 1e-12)
		}
	}
	require.InDelta(t, 10000, dropped, 5*math.Sqrt(40000*0.25*0.75)) // 5 standard deviations
}

// A mean that misses one element of the longest row is wrong, and so is a sum of squares
// that misses one of 4096.
func TestTolerancesNoticeADroppedTerm(t *testing.T) {
	p := &Problem{Rows: 1, Cols: maxCols, Norm: "layer", Type: "f32", Residual: none, Weight: none, Bias: none, Stats: true, Eps: 1e-5}
	d := data(t, p)
	mean := expect(t, p, d, "mean")
	at := 0
	for i := range 100 {
		if math.Abs(d["x"].At(0, i)) > 0.1 {
			at = i
		}
	}
	require.Greater(t, math.Abs(d["x"].At(0, at))/maxCols, 2*mean.Tol[0])

	p = &Problem{Rows: 1, Cols: 4096, Norm: "rms", Type: "f32", Residual: none, Weight: none, Bias: none, Stats: true, Eps: 1e-5}
	d = data(t, p)
	before := expect(t, p, d, "rstd")
	for at = 0; math.Abs(d["x"].At(0, at)) < 0.5; at++ {
	}
	d["x"].Set(0, 0, at)
	after := expect(t, p, d, "rstd")
	require.Greater(t, math.Abs(after.Want[0]-before.Want[0]), 2*before.Tol[0])
}

func TestExpectRefusesWhatIsNoOutput(t *testing.T) {
	p := &Problem{Rows: 1, Cols: 8, Norm: "layer", Type: "f32", Residual: none, Weight: none, Bias: none, Stats: true}
	for _, name := range []string{"x", "sum", "eps"} {
		_, err := p.Expect(data(t, p), family.Region{Out: name})
		require.ErrorContains(t, err, "want y, mean, rstd")
	}
}
