package model

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/roofline"
	"github.com/kgen-dev/kgen/roofline/measured"
)

func problem(t testing.TB, name string, gpu *target.GPU, flags map[string]string) family.Problem {
	t.Helper()
	f, err := kernels.Family(name)
	require.NoError(t, err)
	p, err := f.Problem(flags, gpu)
	require.NoError(t, err)
	return p
}

func predict(t testing.TB, p family.Problem, c space.Config, gpu *target.GPU, r map[string]Resources) *Prediction {
	t.Helper()
	compiled, plan := compile(t, p, c, gpu)
	out, err := Predict(gpu, compiled, plan, family.Integers(p.Args()), r)
	require.NoError(t, err)
	return out
}

func square(n int) map[string]string {
	s := fmt.Sprint(n)
	return map[string]string{"m": s, "n": s, "k": s}
}

// TestPredictionsAreWithinReality holds the best of a spread of configurations, and the
// default one, to what the hardware and the libraries allow: slower than 1.15 times the
// dense tensor peak, and no more than 1.9 times the measured library's time (3 times on
// H100, where only mma.sync serves yet).
func TestPredictionsAreWithinReality(t *testing.T) {
	attention := func(gpu string) ([]measured.Time, error) {
		return measured.LookupAttention(measured.Prefill, gpu, "bf16", "bf16", measured.Attention{Batch: 4, NewTokens: 4096, Heads: 32, KVHeads: 8, HeadDim: 128})
	}
	product := func(n int) func(string) ([]measured.Time, error) {
		return func(gpu string) ([]measured.Time, error) { return measured.LookupGEMM(gpu, "bf16", n, n, n) }
	}
	for _, c := range []struct {
		family  string
		flags   map[string]string
		library func(string) ([]measured.Time, error)
	}{
		{"flashattn", nil, attention}, {"gemm", square(4096), product(4096)}, {"gemm", square(8192), product(8192)},
	} {
		for name, most := range map[string]float64{"a100": 1.9, "h100": 3} {
			t.Run(fmt.Sprintf("%s %v on %s", c.family, c.flags["m"], name), func(t *testing.T) {
				t.Parallel()
				gpu := lookup(t, name)
				p := problem(t, c.family, gpu, c.flags)
				times, err := c.library(gpu.ID)
				require.NoError(t, err)
				require.NotEmpty(t, times)
				peak, ok := gpu.Peak(p.Work().Math)
				require.True(t, ok)
				dense := p.Work().FLOPs / peak.TFLOPS / 1e6
				best := predictBest(t, p, gpu)
				require.Greater(t, best, 1.15*dense)
				require.Less(t, best, most*times[0].US)
				t.Logf("best %.0f us: %.2f of the library's %.0f, %.2f of the dense peak's %.0f", best, best/times[0].US, times[0].US, best/dense, dense)
			})
		}
	}
}

// predictBest predicts the default configuration and a spread of others.
func predictBest(t *testing.T, p family.Problem, gpu *target.GPU) float64 {
	b, err := p.Space(gpu)
	require.NoError(t, err)
	def, err := p.Default(gpu)
	require.NoError(t, err)
	best := predict(t, p, def, gpu, nil).US
	step := b.Count().Valid/24 + 1
	i := int64(0)
	for c := range b.All() {
		if i++; i%step == 0 {
			best = min(best, predict(t, p, c, gpu, nil).US)
		}
	}
	return best
}

// Every term and every count follows from the work: twice the blocks, twice the units'
// times.
func TestTermsScaleWithTheProblem(t *testing.T) {
	gpu := lookup(t, "a100")
	small := problem(t, "gemm", gpu, map[string]string{"m": "2048", "n": "4096", "k": "4096"})
	large := problem(t, "gemm", gpu, map[string]string{"m": "4096", "n": "4096", "k": "4096"})
	c := space.Of("BM", 128, "BN", 128, "BK", 32, "warps", 4, "stages", 4, "group", 8, "split", 1, "cluster", 1, "persistent", 0, "hilbert", 0, "portable", 0, "copy", 0, "atomic", 0)
	x, y := predict(t, small, c, gpu, nil), predict(t, large, c, gpu, nil)
	require.InEpsilon(t, 2, y.Work.SharedBytes.Value/x.Work.SharedBytes.Value, 1e-9)
	require.InEpsilon(t, 2, y.Work.Issue.Value/x.Work.Issue.Value, 1e-9)
	require.InEpsilon(t, 2, y.Work.L2Bytes.Value/x.Work.L2Bytes.Value, 1e-9)
	require.Greater(t, y.US, 1.5*x.US)
	for _, term := range y.Steps[0].Terms {
		require.Less(t, term.US, y.US, term.Name)
	}
	require.InEpsilon(t, 4096*4096*4096*2/(312e6*1.0)/sustained, termUS(y, string(roofline.Tensor)), 0.01)
}

func termUS(p *Prediction, name string) float64 {
	for _, term := range p.Steps[0].Terms {
		if term.Name == name {
			return term.US
		}
	}
	return 0
}

// What a compiler says of registers and spills changes the time as it must: fewer
// blocks at a time are slower, and so are spills.
func TestResourcesMatter(t *testing.T) {
	gpu := lookup(t, "a100")
	p := problem(t, "gemm", gpu, square(4096))
	c := space.Of("BM", 128, "BN", 128, "BK", 32, "warps", 4, "stages", 3, "group", 8, "split", 1, "cluster", 1, "persistent", 0, "hilbert", 0, "portable", 0, "copy", 0, "atomic", 0)
	with := func(r Resources) *Prediction { return predict(t, p, c, gpu, map[string]Resources{"gemm": r}) }
	two, one, spilled := with(Resources{Registers: 200}), with(Resources{Registers: 255, Shared: 100 << 10}), with(Resources{Registers: 200, Spill: 200})
	require.Equal(t, 2, two.Steps[0].Occupancy.CTAs)
	require.Equal(t, 1, one.Steps[0].Occupancy.CTAs)
	require.Less(t, two.US, one.US)
	require.Less(t, two.US, spilled.US)
	require.False(t, two.Steps[0].Estimated)
	require.True(t, predict(t, p, c, gpu, nil).Steps[0].Estimated)

	compiled, plan := compile(t, p, c, gpu)
	_, err := Predict(gpu, compiled, plan, family.Integers(p.Args()), map[string]Resources{"gemm": {Registers: 200, Shared: 200 << 10}})
	require.ErrorIs(t, err, ErrFit)
	require.ErrorIs(t, err, codegen.ErrResources)
}

// Memory traffic of a product: without a cache every wave reads its tiles once; with an
// unlimited one every matrix comes once. Walking 8 rows together needs less than 1.
func TestHBMTraffic(t *testing.T) {
	gpu := lookup(t, "a100")
	p := problem(t, "gemm", gpu, square(4096))
	bytes := func(group, hilbert int, wave int64, capacity float64) float64 {
		c := space.Of("BM", 128, "BN", 128, "BK", 32, "warps", 4, "stages", 4, "group", group, "split", 1, "cluster", 1, "persistent", 0, "hilbert", hilbert, "portable", 0, "copy", 0, "atomic", 0)
		compiled, plan := compile(t, p, c, gpu)
		l, err := newLaunch(gpu, compiled.Module.Kernels[0], &plan.Steps[0], nil)
		require.NoError(t, err)
		return l.hbmBytes(wave, capacity)
	}
	const matrix, strip = 4096 * 4096 * 2, 128 * 4096 * 2 // bytes of a matrix, of a tile's rows
	require.InEpsilon(t, 3*matrix, bytes(1, 0, 108, 1e12), 1e-9)
	require.InEpsilon(t, 1024*2*strip+matrix, bytes(1, 0, 1, 0), 1e-9)
	// A wave of 128 blocks covers 4 of 32 strips of A by 32 of B, or 8 by 16.
	require.InEpsilon(t, 8*(4+32)*strip+matrix, bytes(1, 0, 128, 0), 1e-9)
	require.InEpsilon(t, 8*(8+16)*strip+matrix, bytes(8, 0, 128, 0), 1e-9)
	// Along Hilbert's curve a wave is a square whatever its size, here of 4, 8 and 16 strips by as many.
	for side := 4.0; side <= 16; side *= 2 {
		waves := 32 / side * 32 / side
		require.InEpsilon(t, waves*2*side*strip+matrix, bytes(8, 16, int64(side*side), 0), 1e-9)
	}
}

// The parts of a prediction add up to its time, and each is one.
func TestPartsAddUp(t *testing.T) {
	gpu := lookup(t, "h100")
	for _, f := range kernels.Families() {
		p := problem(t, f.Name, gpu, nil)
		b, err := p.Space(gpu)
		require.NoError(t, err)
		step, i := b.Count().Valid/6+1, int64(0)
		for c := range b.All() {
			if i++; i%step != 0 {
				continue
			}
			pr := predict(t, p, c, gpu, nil)
			sum := 0.0
			for name, us := range pr.Parts() {
				require.GreaterOrEqual(t, us, -1e-6*pr.US, "%s %s: %s", f.Name, c, name)
				sum += us
			}
			require.InEpsilon(t, pr.US, sum, 1e-9)
		}
	}
}

// TestTrafficIsAtLeastTheFormulas: a kernel moves every byte once at least, whichever
// the order of its blocks.
func TestTrafficIsAtLeastTheFormulas(t *testing.T) {
	for _, f := range kernels.Families() {
		for _, name := range []string{"a100", "h100"} {
			t.Run(f.Name+" on "+name, func(t *testing.T) {
				t.Parallel()
				gpu := lookup(t, name)
				p := problem(t, f.Name, gpu, nil)
				b, err := p.Space(gpu)
				require.NoError(t, err)
				least := p.Work().Bytes
				step, i := b.Count().Valid/12+1, int64(0)
				for c := range b.All() {
					if i++; i%step == 0 {
						require.GreaterOrEqual(t, predict(t, p, c, gpu, nil).Work.HBMBytes.Value, least, c.String())
					}
				}
			})
		}
	}
	gpu := lookup(t, "h100")
	p := problem(t, "flashattn", gpu, nil)
	for _, order := range []int{0, 1} {
		c := space.Of("BM", 128, "BN", 128, "warps", 8, "stages", 2, "order", order, "portable", 0, "overlap", 0, "persistent", 0, "copy", 0)
		bytes := predict(t, p, c, gpu, nil).Work.HBMBytes.Value
		require.GreaterOrEqual(t, bytes, p.Work().Bytes)
		require.Less(t, bytes, 4*p.Work().Bytes)
	}
}

// Blocks of a causal pass differ in length, and the rows of all heads of a group read
// the same keys.
func TestAttentionClasses(t *testing.T) {
	gpu := lookup(t, "h100")
	p := problem(t, "flashattn", gpu, nil)
	c := space.Of("BM", 128, "BN", 64, "warps", 4, "stages", 2, "order", 0, "portable", 0, "overlap", 0, "persistent", 0, "copy", 0)
	compiled, plan := compile(t, p, c, gpu)
	l, err := newLaunch(gpu, compiled.Module.Kernels[0], &plan.Steps[0], nil)
	require.NoError(t, err)
	var samples []int64
	for _, a := range l.axes {
		samples = append(samples, a.samples)
	}
	require.Equal(t, []int64{1, 1, 32}, samples) // batch, head, rows
	// Row m has m + 1 squares of 128 by 128, the last one whole: 32 * 33 / 2 in all.
	sum := 0.0
	for m := range l.classes {
		flops := l.classes[m].wgmma[simt.WgmmaBF16] * float64(simt.WgmmaPieceFLOPs(simt.WgmmaBF16))
		require.InEpsilon(t, float64(m+1)*128*128*128*4, flops, 0.01)
		sum += flops
	}
	require.InEpsilon(t, 32*33/2*128*128*128*4.0, sum, 0.001)
	require.Equal(t, []int64{1, 1, 1}, l.groups(0)) // queries: every block its own
	require.Equal(t, []int64{1, 4, 0}, l.groups(1)) // keys: four heads share, all rows do
	require.Equal(t, []int64{1, 4, 0}, l.groups(2))
}

func (l *launch) groups(pointer int) []int64 {
	var out []int64
	for _, a := range l.axes {
		out = append(out, a.group[pointer])
	}
	return out
}

// TestSkippedRoundsCountAsRun counts loops of many rounds with and without going
// through all of them.
func TestSkippedRoundsCountAsRun(t *testing.T) {
	gpu := lookup(t, "a100")
	for name, flags := range map[string]map[string]string{
		"gemm":      {"m": "200", "n": "136", "k": "3000"},
		"flashattn": {"batch": "1", "heads": "2", "kv-heads": "1", "seq": "130", "seq-kv": "3001", "head-dim": "64"},
		"softmax":   {"rows": "9", "cols": "5000"},
	} {
		p := problem(t, name, gpu, flags)
		b, err := p.Space(gpu)
		require.NoError(t, err)
		step, i := b.Count().Valid/6+1, int64(0)
		for c := range b.All() {
			if i++; i%step != 0 {
				continue
			}
			compiled, plan := compile(t, p, c, gpu)
			for j := range plan.Steps {
				s := &plan.Steps[j]
				k := prepare(kernelOf(compiled, s.Kernel))
				for _, block := range []int64{0, s.Grid - 1} {
					var counts [2]Counts
					for whole := range 2 {
						w := newWalk(k, s, family.Integers(p.Args()), block, k.Threads)
						w.whole = whole == 1
						w.run()
						counts[whole] = w.counts
					}
					require.Equal(t, counts[1], counts[0], "%s with %s, block %d", name, c, block)
				}
			}
		}
	}
}

// BenchmarkPredict predicts a configuration already lowered: a search asks for hundreds.
func BenchmarkPredict(b *testing.B) {
	for _, name := range []string{"gemm", "flashattn"} {
		b.Run(name, func(b *testing.B) {
			gpu := lookup(b, "h100")
			p := problem(b, name, gpu, nil)
			c, err := p.Default(gpu)
			require.NoError(b, err)
			compiled, plan := compile(b, p, c, gpu)
			for b.Loop() {
				_, err := Predict(gpu, compiled, plan, family.Integers(p.Args()), nil)
				require.NoError(b, err)
			}
		})
	}
}

// TestNoPredictionBeatsTheFormulas draws sizes of every magnitude that a GPU's memory
// holds: whatever they are, no kernel is predicted to be faster than its FLOPs at the
// peak or its least bytes at the memory's rate.
func TestNoPredictionBeatsTheFormulas(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	size := func(most float64) string { return fmt.Sprint(int(math.Exp(r.Float64() * math.Log(most)))) }
	flags := map[string]func() map[string]string{
		"gemm": func() map[string]string {
			return map[string]string{"m": size(1 << 31), "n": size(1 << 31), "k": size(1 << 31)}
		},
		"flashattn": func() map[string]string {
			return map[string]string{"batch": size(1 << 10), "heads": "8", "kv-heads": "2", "seq": size(1 << 24), "seq-kv": size(1 << 24), "head-dim": "64"}
		},
		"layernorm": func() map[string]string { return map[string]string{"rows": size(1 << 31), "cols": size(1 << 20)} },
		"paged": func() map[string]string {
			return map[string]string{"batch": size(1 << 8), "query": size(1 << 8), "context": size(1 << 12), "page": "16", "heads": "8", "kv-heads": "2"}
		},
		"paged-append": func() map[string]string {
			return map[string]string{"batch": size(1 << 8), "query": size(1 << 12), "context": size(1 << 12), "kv-heads": size(1 << 6)}
		},
		"softmax": func() map[string]string { return map[string]string{"rows": size(1 << 31), "cols": size(1 << 31)} },
	}
	for _, f := range kernels.Families() {
		require.Contains(t, flags, f.Name)
		for done := 0; done < 12; {
			gpu := lookup(t, []string{"t4", "a100", "h100", "rtx4090", "b300"}[r.IntN(5)])
			p, err := f.Problem(flags[f.Name](), gpu)
			if err != nil {
				continue // more than the GPU's memory
			}
			c, err := p.Default(gpu)
			require.NoError(t, err, "%v on %s", p.Settings(), gpu.ID)
			prog, err := p.Program(c)
			require.NoError(t, err)
			compiled, err := codegen.Compile(prog, gpu, codegen.Options{})
			require.NoError(t, err)
			plan, err := compiled.Plan(planArguments(p))
			if errors.Is(err, codegen.ErrArguments) {
				continue // more than indices have room for
			}
			require.NoError(t, err)
			out, err := Predict(gpu, compiled, plan, family.Integers(p.Args()), nil)
			require.NoError(t, err)
			done++
			w := p.Work()
			peak, ok := gpu.Peak(w.Math)
			require.True(t, ok)
			least := max(w.FLOPs/peak.TFLOPS/1e6, w.Bytes/gpu.HBM().Value/1e3)
			require.GreaterOrEqual(t, out.US, least, "%s %v with %s on %s", f.Name, p.Settings(), c, gpu.ID)
			require.False(t, math.IsInf(out.US, 0) || math.IsNaN(out.US))
		}
	}
}

// A ring of buffers that is deeper waits less for memory, until the products bind.
func TestDeeperRingsWaitLess(t *testing.T) {
	gpu := lookup(t, "h100")
	p := problem(t, "gemm", gpu, square(4096))
	us := func(stages int) float64 {
		c := space.Of("BM", 128, "BN", 256, "BK", 64, "warps", 8, "stages", stages, "group", 8, "split", 1, "cluster", 2, "persistent", 0, "hilbert", 0, "portable", 0, "copy", 0, "atomic", 0)
		compiled, _ := compile(t, p, c, gpu)
		require.Equal(t, ring{groups: 1, depth: stages}, prepare(compiled.Module.Kernels[0]).ring)
		return predict(t, p, c, gpu, nil).US
	}
	require.Less(t, us(3), 0.95*us(2))
	require.Less(t, us(4), us(3))
}
