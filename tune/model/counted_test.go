package model_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
	"github.com/kgen-dev/kgen/codegen/target"
	_ "github.com/kgen-dev/kgen/internal/fixedseed" // of rapid
	"github.com/kgen-dev/kgen/tune/model"
)

// stream is what blocks of 128 threads count that each load and store 4 bytes a thread.
func stream(blocks, each int64) *bench.Counters {
	c := &bench.Counters{Blocks: blocks, Warps: 4 * blocks, Threads: 128 * blocks}
	c.Instructions[ptx.PipeLSU] = bench.Issue{Warp: 8 * each * blocks, Thread: 256 * each * blocks}
	c.Instructions[ptx.PipeALU] = bench.Issue{Warp: 16 * each * blocks, Thread: 512 * each * blocks}
	c.Global.Loads = bench.AccessCount{Requests: 4 * each * blocks, Bytes: 512 * each * blocks, Sectors: 16 * each * blocks}
	c.L2 = bench.L2Traffic{Reads: 16 * each * blocks, Writes: 16 * each * blocks, MemoryReads: 16 * each * blocks, MemoryWrites: 16 * each * blocks}
	return c
}

func predictStream(t require.TestingT, g *target.GPU, blocks, ran, each int64, registers int) *model.Prediction {
	p, err := model.Counted(g, model.Launched{Kernel: "stream", Blocks: blocks, Threads: 128, Counters: stream(ran, each)}, model.Resources{Registers: registers})
	require.NoError(t, err)
	return p
}

// The parts add up to the time; blocks that did not run count like those that did; more
// work never takes less time.
func TestCounted(t *testing.T) {
	g, err := target.Lookup("h100")
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		blocks := rapid.Int64Range(1, 1<<22).Draw(t, "blocks")
		ran := rapid.Int64Range(1, min(blocks, 64)).Draw(t, "ran")
		each := rapid.Int64Range(1, 64).Draw(t, "each")
		registers := rapid.SampledFrom([]int{16, 64, 128, 255}).Draw(t, "registers")
		p := predictStream(t, g, blocks, ran, each, registers)
		sum := 0.0
		for _, us := range p.Parts() {
			sum += us
		}
		require.InEpsilon(t, p.US, sum, 1e-9)
		require.InEpsilon(t, p.US, predictStream(t, g, blocks, 1, each, registers).US, 1e-9)
		require.GreaterOrEqual(t, predictStream(t, g, blocks, ran, 2*each, registers).US, p.US)
		require.GreaterOrEqual(t, predictStream(t, g, blocks+1, ran, each, registers).US*(1+1e-9), p.US)
	})
}

// A large stream takes what the memory needs for it, and a little more.
func TestCountedStreamIsMemoryBound(t *testing.T) {
	g, err := target.Lookup("a100")
	require.NoError(t, err)
	const blocks = 1 << 20
	p := predictStream(t, g, blocks, blocks, 1, 32)
	least := blocks * 1024 / (g.HBM().Value * 1e3)
	require.Greater(t, p.US, least)
	require.Less(t, p.US, 1.6*least)
}

func TestCountedRefuses(t *testing.T) {
	g, err := target.Lookup("a100")
	require.NoError(t, err)
	_, err = model.Counted(g, model.Launched{Kernel: "big", Blocks: 1, Threads: 1024, Counters: stream(1, 1)}, model.Resources{Registers: 255})
	require.ErrorIs(t, err, model.ErrFit)
	_, err = model.Counted(g, model.Launched{Kernel: "none", Blocks: 1, Threads: 32, Counters: &bench.Counters{}}, model.Resources{Registers: 8})
	require.ErrorContains(t, err, "0 of 1 blocks")
	c := stream(1, 1)
	c.Tensor = []bench.TensorCount{{Kind: "wgmma", A: "e4m3", B: "e4m3", Accumulator: "f32", Count: 1, Operations: 1 << 20}}
	_, err = model.Counted(g, model.Launched{Kernel: "fp8", Blocks: 1, Threads: 128, Counters: c}, model.Resources{Registers: 8})
	require.ErrorContains(t, err, "no rate is known for fp8_acc32")
}
