package model

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/ptx"
	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
)

// TestCountsAreWhatExecutes counts awkward problems of every family from the thread
// program, and runs them on the virtual machine: every count must be the same.
func TestCountsAreWhatExecutes(t *testing.T) {
	for _, f := range kernels.Families() {
		for seed := range samples(6) {
			t.Run(fmt.Sprintf("%s/%d", f.Name, seed), func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(seed, 7))
				gpu := lookup(t, []string{"a100", "h100", "rtx4090"}[r.IntN(3)])
				p := f.Awkward(r)
				b, err := p.Space(gpu)
				require.NoError(t, err)
				c, err := family.Draw(r, b)
				require.NoError(t, err)
				compiled, plan := compile(t, p, c, gpu)
				got, want := walked(t, compiled, plan, family.Integers(p.Args())), executed(t, p, compiled, plan, gpu)
				require.Equal(t, want, got, "%v with %s on %s", p.Settings(), c, gpu.Name)
			})
		}
	}
}

// TestTensorStoresAreWhatExecutes does the same with products that tensor maps load and
// store, past the matrices' ends too.
func TestTensorStoresAreWhatExecutes(t *testing.T) {
	for i, test := range []struct {
		flags    map[string]string
		settings []string
	}{
		{map[string]string{"m": "130", "n": "136", "k": "96"}, []string{"BM=64", "BN=112", "BK=64", "warps=4", "stages=2", "group=1", "cluster=1"}},
		{map[string]string{"m": "200", "n": "72", "k": "64", "out": "f32"}, []string{"BM=128", "BN=64", "BK=32", "warps=4", "stages=2", "group=1", "cluster=1"}},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			gpu := lookup(t, "h100")
			p := problem(t, "gemm", gpu, test.flags)
			b, err := p.Space(gpu)
			require.NoError(t, err)
			c, err := p.Default(gpu)
			require.NoError(t, err)
			c, err = b.Space().Override(c, test.settings)
			require.NoError(t, err)
			compiled, plan := compile(t, p, c, gpu)
			require.Equal(t, executed(t, p, compiled, plan, gpu), walked(t, compiled, plan, nil))
		})
	}
}

// samples is how many random samples a test takes.
func samples(short uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv("KGEN_SAMPLES"), 10, 32); err == nil {
		return n
	}
	return short
}

func lookup(t testing.TB, name string) *target.GPU {
	t.Helper()
	gpu, err := target.Lookup(name)
	require.NoError(t, err)
	return gpu
}

func compile(t testing.TB, p family.Problem, c space.Config, gpu *target.GPU) (*codegen.Compiled, *codegen.Plan) {
	t.Helper()
	prog, err := p.Program(c)
	require.NoError(t, err)
	compiled, err := codegen.Compile(prog, gpu, codegen.Options{})
	if errors.Is(err, codegen.ErrResources) {
		t.Skip(err) // a space's formula of shared memory leaves out what layouts add
	}
	require.NoError(t, err)
	plan, err := compiled.Plan(planArguments(p))
	require.NoError(t, err)
	return compiled, plan
}

func planArguments(p family.Problem) []codegen.Argument {
	var args []codegen.Argument
	for _, a := range p.Args() {
		x := codegen.Argument{Bits: uint64(a.Int)}
		if a.Elem.IsFloat() {
			x.Bits = uint64(math.Float32bits(float32(a.Float)))
		}
		for i := range a.Dims {
			x.Dims, x.Strides = append(x.Dims, int64(a.Dims[i])), append(x.Strides, int64(a.Strides[i]))
		}
		args = append(args, x)
	}
	return args
}

// tally is what both can count.
type tally struct {
	Mma                                                   map[string]int64
	MUFU, Barriers                                        int64
	Loads, Stores, Copies, Writes                         Access
	SharedLoads, SharedStores, SharedMatrix, SharedCopies int64
	SharedIdeal                                           int64
}

// walked counts every block of every step.
func walked(t testing.TB, c *codegen.Compiled, plan *codegen.Plan, in Inputs) tally {
	t.Helper()
	var sum Counts
	for i := range plan.Steps {
		s := &plan.Steps[i]
		k := prepare(kernelOf(c, s.Kernel))
		for block := range s.Grid {
			w := newWalk(k, s, in, block, k.Threads)
			w.whole = true
			w.run()
			sum.add(&w.counts, 1)
		}
	}
	require.Zero(t, sum.Unknown)
	out := tally{
		Mma: map[string]int64{}, MUFU: sum.MUFU, Barriers: sum.Barriers,
		Loads: sum.Loads, Stores: sum.Stores, Copies: sum.Copies, Writes: sum.Writes,
		SharedLoads: sum.SharedLoads, SharedStores: sum.SharedStores, SharedMatrix: sum.SharedMatrix, SharedCopies: sum.SharedCopies, SharedIdeal: sum.SharedIdeal,
	}
	for m, n := range sum.Mma {
		if i := simt.Mma(m).Info(); n > 0 {
			out.Mma[fmt.Sprintf("m%dn%dk%d", i.M, i.N, i.K)] += n
		}
	}
	for f := range sum.Wgmma {
		for eighth, n := range sum.Wgmma[f] {
			if n > 0 {
				out.Mma[fmt.Sprintf("m%dn%dk%d", simt.WgmmaM, eighth*simt.WgmmaN, simt.Wgmma(f).Info().K)] += n * warpSize / simt.WgmmaThreads
			}
		}
	}
	return out
}

// executed runs our PTX on the virtual machine.
func executed(t testing.TB, p family.Problem, c *codegen.Compiled, plan *codegen.Plan, gpu *target.GPU) tally {
	t.Helper()
	d, err := vm.New(vm.Options{GPU: gpu})
	require.NoError(t, err)
	defer d.Close()
	data, err := family.NewData(p.Args(), 1)
	require.NoError(t, err)
	var memory []bench.Buffer
	for _, a := range p.Args() {
		var b bench.Buffer
		if !a.IsScalar() {
			b, err = d.Alloc(int64(len(data[a.Name].Bytes)), 0)
			require.NoError(t, err)
			require.NoError(t, d.Write(b, 0, data[a.Name].Bytes))
		}
		memory = append(memory, b)
	}
	for _, n := range plan.Workspace {
		b, err := d.Alloc(n, 256)
		require.NoError(t, err)
		memory = append(memory, b)
	}
	text, err := c.PTX()
	require.NoError(t, err)
	m, err := d.Load(context.Background(), "kernel.ptx", []byte(text))
	require.NoError(t, err)
	reports, err := bench.RunPlan(context.Background(), d, m, plan, memory, nil)
	require.NoError(t, err)
	out := tally{Mma: map[string]int64{}}
	for _, r := range reports {
		n := &r.Counters
		for _, x := range n.Tensor {
			out.Mma[x.Shape] += x.Count
		}
		out.MUFU += n.Instructions[ptx.PipeMUFU].Thread
		out.Barriers += n.Barriers
		for _, x := range []struct {
			to   *Access
			from bench.AccessCount
		}{{&out.Loads, n.Global.Loads}, {&out.Stores, n.Global.Stores}, {&out.Copies, n.Global.Copies}, {&out.Writes, n.Global.Writes}} {
			x.to.add(Access{x.from.Requests, x.from.Bytes, x.from.Sectors}, 1)
		}
		out.SharedLoads += n.Shared.Loads.Wavefronts
		out.SharedStores += n.Shared.Stores.Wavefronts
		out.SharedMatrix += n.Shared.Matrix.Wavefronts
		out.SharedCopies += n.Shared.Copies.Wavefronts
		out.SharedIdeal += n.Shared.Loads.Ideal + n.Shared.Stores.Ideal + n.Shared.Matrix.Ideal + n.Shared.Copies.Ideal
	}
	return out
}
