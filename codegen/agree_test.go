package codegen_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/eval"
	"github.com/kgen-dev/kgen/kernels"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
)

// sample is a random problem of a family with a random configuration.
type sample struct {
	f    *family.Family
	p    family.Problem
	c    space.Config
	gpu  *target.GPU
	prog *ir.Program
	data family.Data
}

func (s *sample) String() string {
	return fmt.Sprintf("%s on %s: %v with %s", s.f.Name, s.gpu.Name, s.p.Settings(), s.c)
}

// draw makes the sample of a seed; everything about it follows from the seed.
func draw(t *testing.T, f *family.Family, seed uint64) *sample {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	names := []string{"a100", "rtx3090", "l40s", "h100", "rtx5090", "t4"}
	gpu, err := target.Lookup(names[r.IntN(len(names))])
	require.NoError(t, err)
	return drawFor(t, f, gpu, r, seed)
}

// drawFor makes a sample for a GPU.
func drawFor(t *testing.T, f *family.Family, gpu *target.GPU, r *rand.Rand, seed uint64) *sample {
	t.Helper()
	s := &sample{f: f, gpu: gpu, p: f.Awkward(r)}
	for !takes(f, gpu, s.p) {
		s.p = f.Awkward(r)
	}
	b, err := s.p.Space(gpu)
	require.NoError(t, err)
	s.c, err = family.Draw(r, b)
	require.NoError(t, err)
	s.prog, err = s.p.Program(s.c)
	require.NoError(t, err)
	s.data, err = family.NewData(s.p.Args(), seed)
	require.NoError(t, err)
	return s
}

// takes tells whether a GPU has a problem's types.
func takes(f *family.Family, gpu *target.GPU, p family.Problem) bool {
	flags := map[string]string{}
	for _, x := range p.Settings() {
		if slices.ContainsFunc(f.Flags, func(flag family.Flag) bool { return flag.Name == x.Name }) {
			flags[x.Name] = x.Value
		}
	}
	_, err := f.Problem(flags, gpu)
	return err == nil
}

// args are the sample's arguments for the interpreter, outputs in memory of their own.
func (s *sample) args() ([]eval.Arg, map[string]*eval.Tensor) {
	var args []eval.Arg
	outs := map[string]*eval.Tensor{}
	for _, a := range s.p.Args() {
		switch {
		case a.IsScalar() && a.Elem.IsFloat():
			args = append(args, eval.Float(a.Float))
		case a.IsScalar():
			args = append(args, eval.Int(a.Int))
		default:
			bytes := append([]byte(nil), s.data[a.Name].Bytes...)
			e := &eval.Tensor{Elem: a.Elem, Shape: a.Dims, Strides: a.Strides, Data: bytes}
			if a.Out {
				outs[a.Name] = e
			}
			args = append(args, eval.View(e))
		}
	}
	return args, outs
}

func (s *sample) interpret(t *testing.T, p *ir.Program) map[string]*eval.Tensor {
	t.Helper()
	args, outs := s.args()
	require.NoError(t, eval.Run(context.Background(), p, args, eval.Options{}))
	return outs
}

// samples is how many samples of each family a test takes.
func samples(short int) uint64 {
	if n, err := strconv.Atoi(os.Getenv("KGEN_SAMPLES")); err == nil {
		return uint64(n)
	}
	return uint64(short)
}

// TestStagedMeansTheSame interprets programs before and after staging, peeling and
// the choice of layouts: nothing about the result may change, to the bit.
func TestStagedMeansTheSame(t *testing.T) {
	for _, f := range kernels.Families() {
		for seed := range samples(8) {
			t.Run(fmt.Sprintf("%s/%d", f.Name, seed), func(t *testing.T) {
				t.Parallel()
				s := draw(t, f, seed)
				c, err := codegen.Compile(s.prog, s.gpu, codegen.Options{Verify: true})
				require.NoError(t, err, s.String())
				staged := *s.prog
				staged.Kernels = c.Staged
				want, got := s.interpret(t, s.prog), s.interpret(t, &staged)
				for name, w := range want {
					require.Equal(t, w.Data, got[name].Data, "%s: output %s", s, name)
				}
			})
		}
	}
}
