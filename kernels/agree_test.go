package kernels_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/eval"
	"github.com/kgen-dev/kgen/kernels"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
)

// interpret runs a program on the interpreter over the data's memory. tiles says which
// points of each kernel's tile space to run, nil all.
func interpret(t *testing.T, prog *ir.Program, p family.Problem, d family.Data, tiles map[string][][]int) {
	t.Helper()
	var args []eval.Arg
	for _, a := range p.Args() {
		switch {
		case !a.IsScalar():
			x := d[a.Name]
			args = append(args, eval.View(&eval.Tensor{Elem: a.Elem, Shape: a.Dims, Strides: a.Strides, Data: x.Bytes}))
		case a.Elem.IsFloat():
			args = append(args, eval.Float(a.Float))
		default:
			args = append(args, eval.Int(a.Int))
		}
	}
	var o eval.Options
	if tiles != nil {
		o.Tiles = func(kernel string, tile []int) bool {
			return slices.ContainsFunc(tiles[kernel], func(at []int) bool { return slices.Equal(at, tile) })
		}
	}
	require.NoError(t, eval.Run(context.Background(), prog, args, o))
}

// compare checks regions of the outputs against the reference.
func compare(p family.Problem, d family.Data, regions []family.Region) error {
	for _, r := range regions {
		e, err := p.Expect(d, r)
		if err != nil {
			return err
		}
		if err := d[r.Out].Check(r, e); err != nil {
			return err
		}
	}
	return nil
}

func outputs(p family.Problem) []family.Region {
	var rs []family.Region
	for _, a := range p.Args() {
		if a.Out {
			rs = append(rs, a.Whole())
		}
	}
	return rs
}

// drawn makes the n-th random problem of a family, with a configuration and data.
func drawn(t *testing.T, f *family.Family, n int) (family.Problem, space.Config, family.Data) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(n), 9))
	p := f.Awkward(r)
	b, err := p.Space(gpu(t, "a100"))
	require.NoError(t, err)
	c, err := family.Draw(r, b)
	require.NoError(t, err)
	d, err := family.NewData(p.Args(), uint64(n))
	require.NoError(t, err)
	return p, c, d
}

// The tile program of a family computes what its reference does.
func TestProgramsAgreeWithReference(t *testing.T) {
	for _, f := range kernels.Families() {
		for n := range 25 {
			t.Run(fmt.Sprintf("%s/%d", f.Name, n), func(t *testing.T) {
				p, c, d := drawn(t, f, n)
				prog, err := p.Program(c)
				require.NoError(t, err)
				interpret(t, prog, p, d, nil)
				require.NoError(t, compare(p, d, outputs(p)), "%s, %s", p.Settings(), c)
			})
		}
	}
}

// A part of a run is complete in itself, and only its regions are.
func TestPartsAgreeWithReference(t *testing.T) {
	for _, f := range kernels.Families() {
		for n := range 5 {
			p, c, d := drawn(t, f, 100+n)
			requireParts(t, p, c, d)
		}
	}
	g := gpu(t, "a100")
	p := problem(t, "gemm", flags{"m": "100", "n": "130", "k": "333", "bias": "true", "act": "gelu"}, g)
	d, err := family.NewData(p.Args(), 1)
	require.NoError(t, err)
	c, err := p.Default(g)
	require.NoError(t, err)
	requireParts(t, p, c.With("split", 4), d)
	p = problem(t, "gemm", flags{"m": "100", "n": "130", "k": "333", "bias": "true", "residual": "true", "out": "f32", "alpha": "0.5"}, g)
	d, err = family.NewData(p.Args(), 2)
	require.NoError(t, err)
	requireParts(t, p, c.With("split", 4).With("atomic", 1), d)
}

func requireParts(t *testing.T, p family.Problem, c space.Config, d family.Data) {
	t.Helper()
	prog, err := p.Program(c)
	require.NoError(t, err)
	parts, err := p.Parts(c, rand.New(rand.NewPCG(1, 1)), 3)
	require.NoError(t, err)
	for i, part := range parts[:min(len(parts), 2)] {
		require.Len(t, part.Tiles, len(prog.Steps))
		tiles := map[string][][]int{}
		for s, step := range prog.Steps {
			tiles[step.Kernel] = part.Tiles[s]
		}
		if i+1 < len(parts) {
			require.Error(t, compare(p, d, parts[i+1].Regions), "%v, %s: part %d before it ran", p.Settings(), c, i+1)
		}
		interpret(t, prog, p, d, tiles)
		require.NoError(t, compare(p, d, part.Regions), "%v, %s: part %d", p.Settings(), c, i)
	}
}

// The check is worth something: a program whose first loop stops one step early fails.
func TestDroppedStepFails(t *testing.T) {
	g := gpu(t, "a100")
	for _, c := range []struct {
		family string
		flags  flags
		set    []string
	}{
		{"gemm", flags{"m": "70", "n": "50", "k": "150", "dtype": "bf16", "act": "relu"}, []string{"BM=32", "BN=32", "BK=16"}},
		{"gemm", flags{"m": "70", "n": "50", "k": "150", "dtype": "f16", "layout": "tn"}, []string{"BM=32", "BN=32", "BK=16"}},
		{"gemm", flags{"m": "70", "n": "50", "k": "150", "dtype": "tf32", "layout": "nt"}, []string{"BM=32", "BN=32", "BK=16", "split=2"}},
		{"gemm", flags{"m": "70", "n": "50", "k": "150", "dtype": "f32", "layout": "tt"}, []string{"BM=32", "BN=32", "BK=16"}},
		{"flashattn", flags{"batch": "1", "heads": "2", "kv-heads": "1", "seq": "90", "seq-kv": "120", "head-dim": "32"}, []string{"BM=64", "BN=32"}},
		{"flashattn", flags{"batch": "1", "heads": "2", "kv-heads": "2", "seq": "10", "seq-kv": "210", "head-dim": "48", "causal": "false", "dtype": "f16"}, []string{"BM=64", "BN=32"}},
		{"softmax", flags{"rows": "5", "cols": "700"}, []string{"BN=256"}},
	} {
		p := problem(t, c.family, c.flags, g)
		cfg, err := p.Default(g)
		require.NoError(t, err)
		b, err := p.Space(g)
		require.NoError(t, err)
		cfg, err = b.Space().Override(cfg, c.set)
		require.NoError(t, err)
		prog, err := p.Program(cfg)
		require.NoError(t, err)
		d, err := family.NewData(p.Args(), 3)
		require.NoError(t, err)
		interpret(t, prog, p, d, nil)
		require.NoError(t, compare(p, d, outputs(p)), "%s %v", c.family, c.flags)
		stopEarly(t, prog.Kernels[0])
		interpret(t, prog, p, d, nil)
		for _, r := range outputs(p) {
			require.Error(t, compare(p, d, []family.Region{r}), "%s %v: %s without the last step", c.family, c.flags, r.Out)
		}
	}
}

// stopEarly makes the first loop of a kernel end one step before its end.
func stopEarly(t *testing.T, k *ir.Kernel) {
	t.Helper()
	at := slices.IndexFunc(k.Body.Ops, func(o *ir.Op) bool { return o.Code == ir.OpFor })
	require.GreaterOrEqual(t, at, 0)
	loop := k.Body.Ops[at]
	var before ir.Region
	b := ir.BuildAt(k, &before)
	loop.Args[1] = b.Sub(loop.Args[1], loop.Args[2])
	require.NoError(t, b.Err())
	k.Body.Ops = slices.Insert(k.Body.Ops, at, before.Ops...)
}
