package llm

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// One sequence passes all stages in turn: they do not make it faster.
func TestPipelineOfOne(t *testing.T) {
	for _, phase := range []Phase{Prefill, Decode, Train} {
		for _, pp := range []int64{2, 5, 32} {
			one := run(t, "llama3.1-8b", "h100", phase)
			alone, err := Analyse(one)
			require.NoError(t, err)
			require.Zero(t, alone.BubbleUS)
			staged := *one
			staged.PP = pp
			rep, err := Analyse(&staged)
			require.NoError(t, err)
			require.EqualValues(t, 1, rep.Micro)
			update := 0.0 // which the stages share
			if phase == Train {
				update = alone.Operators[len(alone.Operators)-1].US
			}
			require.Greater(t, rep.StepUS, alone.StepUS-update, "%s pp=%d", phase, pp)
			require.Less(t, rep.StepUS, 1.1*alone.StepUS, "%s pp=%d", phase, pp)
			require.InEpsilon(t, float64(rep.Tokens)/rep.StepUS*1e6, rep.TokensPerSec, 1e-12)
		}
	}
}

// Many sequences fill the stages, in micro-batches; n GPUs are never more than n times as fast.
func TestPipelineFilled(t *testing.T) {
	for _, phase := range []Phase{Prefill, Decode, Train} {
		for _, batch := range []int64{2, 7, 64, 1 << 20} {
			one := run(t, "llama3.1-8b", "h100", phase)
			one.Batch = batch
			alone, err := Analyse(one)
			require.NoError(t, err)
			staged := *one
			staged.PP = 4
			rep, err := Analyse(&staged)
			require.NoError(t, err)
			require.Zero(t, batch%rep.Micro)
			require.GreaterOrEqual(t, rep.BubbleUS, 0.0)
			require.Greater(t, 4*rep.StepUS, alone.StepUS, "%s batch=%d", phase, batch)
			if batch >= 64 {
				require.Greater(t, rep.Micro, int64(1))
				require.Less(t, rep.StepUS, 0.8*alone.StepUS, "%s batch=%d", phase, batch)
			}
			if phase == Prefill && batch == 64 { // GPipe's bubble: (p - 1) of (k + p - 1)
				require.InDelta(t, 3/float64(rep.Micro+3), rep.BubbleUS/rep.StepUS, 0.02)
			}
		}
	}
}
