package llm

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestShard counts by hand what one of the GPUs that share all layers holds: its part of the
// matrices, and all of routers, projections to latent vectors, norms and biases of outputs.
func TestShard(t *testing.T) {
	const half = 2.0 // bytes of a 16-bit number

	// DeepSeek-V3: 61 layers of 7168, 3 of them dense; 128 heads; ranks 1536 and 512 + 64.
	attention := 7168*(576+1536) + (1536*128*192+512*128*256+128*128*7168)/8.0
	matrices := 61*attention + (3*3*7168*18432+58*257*3*7168*2048)/8.0
	rest := 58*(7168*256+256) + 2*129280*7168/8.0 + 61*(2*7168+512+1536) + 7168
	parameters, bytes := model(t, "DeepSeek-V3").shard(8, 1)
	require.InEpsilon(t, matrices+rest, parameters, 1e-12)
	require.InEpsilon(t, matrices*(1+4.0/(128*128))+half*rest, bytes, 1e-12)

	// gpt-oss-20b: 24 layers of 2880, 64 heads of 64, 8 heads of keys: one for each two GPUs.
	experts := 24 * 32 * 3 * 2880 * 2880 / 16.0
	attention = (2*64*64*2880)/16.0 + 2*64*2880
	vectors := 3*2880 + 64/16.0 + 64*64/16.0 + 2*64 // norms and the output's bias; sinks; biases of queries, keys and values
	rest = 24*(attention+vectors+32*2*2880/16.0+32*2880+2880*32+32) + 2*201088*2880/16.0 + 2880
	parameters, bytes = model(t, "gpt-oss-20b").shard(16, 1)
	require.InEpsilon(t, experts+rest, parameters, 1e-12)
	require.InEpsilon(t, experts*(0.5+1/32.0)+half*rest, bytes, 1e-12)

	// One GPU holds all, and a copy of four its part of the experts.
	for _, m := range sparseModels {
		c := model(t, m.name)
		parameters, bytes := c.shard(1, 1)
		require.Equal(t, float64(c.Parameters()), parameters, m.name)
		require.InEpsilon(t, c.WeightBytes(), bytes, 1e-12, m.name)
		quarter, _ := c.shard(1, 4)
		each := float64(c.expertWeights()/c.Experts.Count + c.Experts.biases)
		require.InEpsilon(t, parameters-0.75*float64(c.sparse(c.Layers)*c.Experts.Count)*each, quarter, 1e-12, m.name)
	}
}

// TestWhole: GPUs that share a layer each read all of what they each have.
func TestWhole(t *testing.T) {
	r := &Run{Config: model(t, "DeepSeek-V3"), GPU: gpu(t, "h200"), Phase: Decode, Batch: 1, Seq: 1000, TP: 8, PP: 1, DP: 1, KV: BF16}
	want := map[string]float64{
		"q to its rank":     61 * (7168*1536*(1+4.0/(128*128)) + 2*(7168+1536)),
		"latent projection": 61 * (7168*576*(1+4.0/(128*128)) + 2*(7168+576)),
		"router":            58 * (7168*256 + 7168 + 256) * 2,
	}
	seen := 0
	for _, o := range analyse(t, r).Operators {
		if bytes, ok := want[o.Name]; ok {
			require.InEpsilon(t, bytes, o.Bytes, 1e-12, o.Name)
			seen++
		}
	}
	require.Len(t, want, seen)
}
