package model

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/kernels/family"
)

// A product of few columns takes as long as reading its operands: with A and B in shared
// memory, which gives 128 bytes a cycle, 64 columns are what the tensor cores can just
// be fed with; with A in registers any number is.
func TestNarrowProductsStarve(t *testing.T) {
	gpu := lookup(t, "h100")
	r := ratesOf(gpu)
	cycles := func(n int, shared bool) float64 {
		b := simt.NewBuilder(simt.NewKernel("k", 128))
		a := []*simt.Value{b.Pack(b.Const32(0), b.Const32(0), simt.I64)}
		desc := a[0]
		if !shared {
			x := b.Bitcast(b.Const32(0), simt.BF16x2)
			a = []*simt.Value{x, x, x, x}
		}
		d := b.Wgmma(simt.WgmmaShape{Form: simt.WgmmaBF16, N: n}, a, desc, nil)
		return r.product(d[0].Def)
	}
	const tensor = 1980.0 / 1830 / 2 // cycles of the SM's clock for a column
	for _, n := range []int{64, 128, 176, 256} {
		require.InEpsilon(t, tensor*float64(n), cycles(n, true), 1e-3)
	}
	for _, n := range []int{16, 32} {
		require.InEpsilon(t, float64(64*16*2+n*16*2)/128, cycles(n, true), 1e-3)
	}
	for _, n := range []int{16, 32, 64, 256} {
		require.InEpsilon(t, tensor*float64(n), cycles(n, false), 1e-3)
	}
}

// alone is how many cycles a block of attention takes alone on an SM for so many keys.
func alone(t *testing.T, keys int, settings ...string) *timeline {
	t.Helper()
	gpu := lookup(t, "h100")
	p := problem(t, "flashattn", gpu, map[string]string{"causal": "false", "seq": "128", "seq-kv": fmt.Sprint(keys)})
	b, err := p.Space(gpu)
	require.NoError(t, err)
	c, err := p.Default(gpu)
	require.NoError(t, err)
	c, err = b.Space().Override(c, settings)
	require.NoError(t, err)
	compiled, plan := compile(t, p, c, gpu)
	k := prepare(compiled.Module.Kernels[0])
	w := newWalk(k, &plan.Steps[0], family.Integers(p.Args()), 0, k.Threads)
	w.clock = newTimeline(gpu, k)
	w.run()
	return w.clock
}

// A warp issues in order: it asks for the scores of the next keys after the softmax of
// these, and the softmax waits for its scores. Only the product with V is hidden, or hides
// the softmax; without overlap nothing is.
func TestSoftmaxUnderProducts(t *testing.T) {
	const keys, step = 4096, 128
	round := func(settings ...string) float64 {
		const more = 16
		return (alone(t, keys+more*step, settings...).cycles() - alone(t, keys, settings...).cycles()) / more
	}
	r := ratesOf(lookup(t, "h100"))
	product := r.wgmma[simt.WgmmaBF16] * 128 / simt.WgmmaN * 8 // scores of 64 queries, or their output
	exponentials := r.pipe[simt.PipeMUFU] * (128 * 128 / 256)
	over, after := round("BN=128", "overlap=1"), round("BN=128", "overlap=0")
	require.Greater(t, over, product+exponentials)
	require.Greater(t, after, 2*product+exponentials)
	require.InDelta(t, product, after-over, 0.3*product)
}

// Products that overlap the softmax, and warpgroups that take turns at them, gain what
// FlashAttention-3's authors measured on H100 without them: 661 against 582 TFLOP/s (Shah
// et al., arXiv 2407.08608, table 2).
func TestOverlapGainsWhatWasMeasured(t *testing.T) {
	gpu := lookup(t, "h100")
	p := problem(t, "flashattn", gpu, map[string]string{"batch": "4", "heads": "16", "kv-heads": "16", "seq": "8448", "causal": "false"})
	b, err := p.Space(gpu)
	require.NoError(t, err)
	def, err := p.Default(gpu)
	require.NoError(t, err)
	us := func(overlap string) float64 {
		c, err := b.Space().Override(def, []string{"overlap=" + overlap})
		require.NoError(t, err)
		return predict(t, p, c, gpu, nil).US
	}
	require.InDelta(t, 661.0/582, us("0")/us("2"), 0.02)
	require.Greater(t, us("1"), us("2"))
	require.Greater(t, us("0"), us("1"))
}

// What a block does before its first product and after its last one is time of its own,
// unless another block multiplies meanwhile.
func TestEndsOfBlocks(t *testing.T) {
	short, _ := alone(t, 2048).ends()
	long, _ := alone(t, 4096).ends()
	require.InEpsilon(t, short, long, 1e-6)
	require.Greater(t, short, 300.0) // output through shared memory, two barriers, wide stores
	require.Less(t, short, 3000.0)

	gpu := lookup(t, "h100")
	us := func(keys int) float64 {
		p := problem(t, "flashattn", gpu, map[string]string{"causal": "false", "seq-kv": fmt.Sprint(keys)})
		c, err := p.Default(gpu)
		require.NoError(t, err)
		return predict(t, p, c, gpu, nil).US
	}
	fixed := 2*us(8192) - us(16384) // what no key adds
	const waves = 4 * 32 * 32 / 132.0
	least := (short + memoryLatency) / (gpu.Clock() * sustained) * waves
	require.Greater(t, fixed, least)
}

// With the longest rows of all heads first, blocks only ever get shorter, and the last wave
// leaves no SM waiting for a long one.
func TestLongestFirst(t *testing.T) {
	gpu := lookup(t, "h100")
	p := problem(t, "flashattn", gpu, nil)
	b, err := p.Space(gpu)
	require.NoError(t, err)
	def, err := p.Default(gpu)
	require.NoError(t, err)
	waves := func(order string) float64 {
		c, err := b.Space().Override(def, []string{"order=" + order})
		require.NoError(t, err)
		if order == "1" {
			compiled, plan := compile(t, p, c, gpu)
			l, err := newLaunch(gpu, compiled.Module.Kernels[0], &plan.Steps[0], nil)
			require.NoError(t, err)
			last := l.classes[len(l.classes)-1].issue
			l.visit(func(_ int, class int32, _ []int) {
				require.LessOrEqual(t, l.classes[class].issue, last)
				last = l.classes[class].issue
			})
		}
		return predict(t, p, c, gpu, nil).Parts()[Waves]
	}
	require.Less(t, waves("1"), 0.2*waves("0"))
	require.Less(t, waves("2"), waves("0")) // only the last sequence's blocks get shorter to the end
}

// The keys and values of one sequence's heads fit the L2, those of all don't: where the
// longest rows of a sequence come first the kernel moves as little as FlashAttention-3's,
// which a profiler counted on H100 (338.7 MB, roofline/ncu/testdata), and takes no longer.
func TestLongestFirstInTheL2(t *testing.T) {
	gpu := lookup(t, "h100")
	p := problem(t, "flashattn", gpu, nil)
	def, err := p.Default(gpu)
	require.NoError(t, err)
	all, sequence := predict(t, p, def.With("order", 1), gpu, nil), predict(t, p, def.With("order", 2), gpu, nil)
	require.Greater(t, all.Work.HBMBytes.Value, 3*338.7e6)
	require.InEpsilon(t, 338.7e6, sequence.Work.HBMBytes.Value, 0.15)
	require.Less(t, sequence.US, all.US)
}

// Threads that copy have rings as deep as tensor maps have, and wait longer for what they
// fill them with.
func TestThreadsCopyNoFaster(t *testing.T) {
	gpu := lookup(t, "h100")
	for _, c := range []struct {
		family   string
		flags    map[string]string
		settings []string
		depth    int
	}{
		{"flashattn", nil, nil, 2},
		{"flashattn", map[string]string{"dtype": "e4m3"}, []string{"BN=64", "stages=3"}, 3},
		{"gemm", square(4096), []string{"BM=128", "BN=256", "BK=64", "warps=8", "stages=3", "cluster=1", "persistent=0"}, 3},
	} {
		p := problem(t, c.family, gpu, c.flags)
		b, err := p.Space(gpu)
		require.NoError(t, err)
		def, err := p.Default(gpu)
		require.NoError(t, err)
		def, err = b.Space().Override(def, c.settings)
		require.NoError(t, err)
		var us [2]float64
		var found [2]*kernel
		for copies := range us {
			compiled, _ := compile(t, p, def.With("copy", copies), gpu)
			found[copies] = prepare(compiled.Module.Kernels[0])
			us[copies] = predict(t, p, def.With("copy", copies), gpu, nil).US
		}
		require.Equal(t, c.depth, found[1].ring.depth, c.family)
		require.Equal(t, found[0].ring.groups, found[1].ring.groups)
		require.Equal(t, found[0].first.own, found[1].first.own)
		require.Equal(t, found[0].first.group, found[1].first.group)
		require.Zero(t, found[0].ring.warps)
		require.NotZero(t, found[1].ring.warps)
		require.Greater(t, us[1], us[0], c.family)
	}
}

// Attention whose blocks go from tile to tile has the rings and the first copies of one with a
// block for each tile, and gains what it hides. Tiles of different length are handed out ahead
// of time: the longest of all first costs
// less than by sequence.
func TestPersistentAttentionHidesCopies(t *testing.T) {
	gpu := lookup(t, "h100")
	p := problem(t, "flashattn", gpu, nil)
	def, err := p.Default(gpu)
	require.NoError(t, err)
	longest := def.With("order", 1)
	var found [2]*kernel
	var us [2]float64
	for persistent := range us {
		compiled, _ := compile(t, p, longest.With("persistent", persistent), gpu)
		found[persistent] = prepare(compiled.Module.Kernels[0])
		us[persistent] = predict(t, p, longest.With("persistent", persistent), gpu, nil).US
	}
	require.Equal(t, found[0].ring, found[1].ring)
	require.Equal(t, found[0].first.own, found[1].first.own)
	require.Equal(t, found[0].first.group, found[1].first.group)
	require.Less(t, us[1], us[0])
	require.Greater(t, us[1], 0.9*us[0])
	bySequence := predict(t, p, def.With("order", 2).With("persistent", 1), gpu, nil).US
	require.Greater(t, bySequence, us[1])
}

// Blocks that go from tile to tile start once and find the copies of the next tile under
// way: they gain the same for each wave of tiles after the first. What a tile moves and
// multiplies does not change.
func TestPersistentBlocksStartOnce(t *testing.T) {
	gpu := lookup(t, "h100")
	us := func(waves int, persistent string) (float64, *Prediction) {
		p := problem(t, "gemm", gpu, map[string]string{"m": fmt.Sprint(128 * 33 * waves), "n": "1024", "k": "1024"})
		b, err := p.Space(gpu)
		require.NoError(t, err)
		def, err := p.Default(gpu)
		require.NoError(t, err)
		c, err := b.Space().Override(def, strings.Fields("BM=128 BN=256 BK=64 warps=8 stages=4 group=1 cluster=1 persistent="+persistent))
		require.NoError(t, err)
		out := predict(t, p, c, gpu, nil)
		return out.US, out
	}
	gain := func(waves int) float64 {
		one, counted := us(waves, "0")
		walking, same := us(waves, "1")
		require.InEpsilon(t, counted.Work.L2Bytes.Value, same.Work.L2Bytes.Value, 1e-9)
		require.InEpsilon(t, counted.Work.SharedBytes.Value, same.Work.SharedBytes.Value, 0.01)
		return one - walking
	}
	per := gain(3) - gain(2) // waves
	require.Greater(t, per, memoryLatency/gpu.Clock()*0.9)
	require.Less(t, per, 3.0)
	require.InDelta(t, per, gain(5)-gain(4), 0.1*per)
}

// Where two warpgroups have tiles in turns, one stores while the other multiplies: what is
// between the tiles of one is hidden as long as a tile's products take longer.
func TestPingpongHidesStores(t *testing.T) {
	gpu := lookup(t, "h100")
	us := func(k int, persistent string) *Prediction {
		p := problem(t, "gemm", gpu, map[string]string{"m": "8448", "n": "4096", "k": fmt.Sprint(k)})
		b, err := p.Space(gpu)
		require.NoError(t, err)
		def, err := p.Default(gpu)
		require.NoError(t, err)
		c, err := b.Space().Override(def, strings.Fields("BM=64 BN=256 BK=64 warps=4 stages=4 group=8 cluster=2 persistent="+persistent))
		require.NoError(t, err)
		return predict(t, p, c, gpu, nil)
	}
	gain := func(k int) float64 { return us(k, "1").US - us(k, "2").US }
	require.InEpsilon(t, us(512, "1").Work.L2Bytes.Value, us(512, "2").Work.L2Bytes.Value, 1e-9)
	require.Greater(t, gain(512), 4.0)
	require.InEpsilon(t, gain(1024), gain(2048), 0.05)
}
