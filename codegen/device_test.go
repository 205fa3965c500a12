package codegen_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/nvrtc"
	"github.com/kgen-dev/kgen/codegen/nvrtc/nvrtctest"
	"github.com/kgen-dev/kgen/kernels"
	"github.com/kgen-dev/kgen/kernels/family"
)

// arguments are the sample's arguments for a plan.
func (s *sample) arguments() []codegen.Argument {
	var out []codegen.Argument
	for _, a := range s.p.Args() {
		switch {
		case a.IsScalar() && a.Elem.IsFloat():
			out = append(out, codegen.Argument{Bits: uint64(math.Float32bits(float32(a.Float)))})
		case a.IsScalar():
			out = append(out, codegen.Argument{Bits: uint64(a.Int)})
		default:
			out = append(out, codegen.Argument{Dims: wide(a.Dims), Strides: wide(a.Strides)})
		}
	}
	return out
}

func wide(v []int) []int64 {
	out := make([]int64, len(v))
	for i, x := range v {
		out[i] = int64(x)
	}
	return out
}

// onDevice runs PTX of the sample on the virtual machine and returns its outputs. Any
// fault fails the test.
func (s *sample) onDevice(t *testing.T, c *codegen.Compiled, text string, o vm.Options) family.Data {
	t.Helper()
	return s.atPoints(t, c, text, o, nil)
}

// atPoints does the same with the blocks of some points of each step; nil: all.
func (s *sample) atPoints(t *testing.T, c *codegen.Compiled, text string, o vm.Options, points [][][]int) family.Data {
	t.Helper()
	ctx := context.Background()
	o.GPU = s.gpu
	dev, err := vm.New(o)
	require.NoError(t, err)
	defer dev.Close()
	m, err := dev.Load(ctx, "kernel.ptx", []byte(text))
	require.NoError(t, err, s.String())
	plan, err := c.Plan(s.arguments())
	require.NoError(t, err, s.String())
	var memory []bench.Buffer
	out := family.Data{}
	for _, a := range s.p.Args() {
		if a.IsScalar() {
			memory = append(memory, bench.Buffer{})
			continue
		}
		b, err := dev.Alloc(int64(len(s.data[a.Name].Bytes)), 0)
		require.NoError(t, err)
		require.NoError(t, dev.Write(b, 0, s.data[a.Name].Bytes))
		memory = append(memory, b)
	}
	for _, n := range plan.Workspace {
		b, err := dev.Alloc(n, 0)
		require.NoError(t, err)
		memory = append(memory, b)
	}
	reports, err := bench.RunPlan(ctx, dev, m, plan, memory, points)
	require.NoError(t, err, s.String())
	for _, r := range reports {
		for _, f := range r.Faults {
			t.Errorf("%s: %+v", s, f)
		}
	}
	for i, a := range s.p.Args() {
		x := &family.Tensor{Arg: a, Bytes: make([]byte, memory[i].Size)}
		if a.Out {
			require.NoError(t, dev.Read(memory[i], 0, x.Bytes))
			out[a.Name] = x
		}
	}
	return out
}

// right holds outputs to the reference.
func (s *sample) right(t *testing.T, by string, got family.Data) {
	t.Helper()
	for _, a := range s.p.Args() {
		if !a.Out {
			continue
		}
		r := a.Whole()
		want, err := s.p.Expect(s.data, r)
		require.NoError(t, err)
		require.NoError(t, got[a.Name].Check(r, want), "%s by %s", s, by)
	}
}

// TestFourWays holds every sample to its float64 reference four ways: the interpreter,
// our PTX and NVRTC's PTX of our CUDA C on the virtual machine.
func TestFourWays(t *testing.T) {
	cc := nvrtctest.Compiler(t)
	for _, f := range kernels.Families() {
		for seed := range samples(4) {
			t.Run(fmt.Sprintf("%s/%d", f.Name, seed), func(t *testing.T) {
				t.Parallel()
				s := draw(t, f, seed)
				c, err := codegen.Compile(s.prog, s.gpu, codegen.Options{Verify: true})
				require.NoError(t, err, s.String())
				interpreted := family.Data{}
				for name, x := range s.interpret(t, s.prog) {
					interpreted[name] = &family.Tensor{Arg: s.data[name].Arg, Bytes: x.Data}
				}
				s.right(t, "interpreter", interpreted)
				direct, err := c.PTX()
				require.NoError(t, err)
				s.right(t, "direct PTX", s.onDevice(t, c, direct, vm.Options{}))
				cuda, err := c.CUDA()
				require.NoError(t, err)
				res, err := cc.Compile(context.Background(), nvrtc.Source{Name: f.Name + ".cu", Text: cuda}, nvrtc.Options{Arch: c.Module.Virtual(), Flags: []string{"--fmad=false"}})
				require.NoError(t, err, s.String())
				s.right(t, "NVRTC's PTX", s.onDevice(t, c, string(res.PTX), vm.Options{}))
			})
		}
	}
}
