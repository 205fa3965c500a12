package ir_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/eval"
)

// TestTextKeepsMeaning runs random programs, and what their text parses to, on
// the same arguments: both give the same bytes, or both fail.
func TestTextKeepsMeaning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := ir.Single(drawKernel(t, "k"))
		q, err := ir.Parse("printed", []byte(p.String()))
		require.NoError(t, err)
		first, failed := runSmall(t, p)
		second, failedToo := runSmall(t, q)
		require.Equal(t, failed, failedToo)
		require.Equal(t, first, second)
	})
}

// runSmall runs a program on arguments made from its parameters alone and
// returns the tensors' memory.
func runSmall(t *rapid.T, p *ir.Program) (memory [][]byte, failed bool) {
	var args []eval.Arg
	for i, v := range p.Params {
		if v.Type.Kind != ir.View {
			args = append(args, eval.Arg{Int: 1, Float: 0.5})
			continue
		}
		shape, n := make([]int, len(v.Type.Dims)), 1
		for d, dim := range v.Type.Dims {
			shape[d] = dim.Size
			if dim.Sym != "" {
				shape[d] = 3 * len(dim.Sym)
			}
			n *= shape[d]
		}
		if n > 1<<18 {
			return nil, true
		}
		x := eval.NewTensor(v.Type.Elem, shape...)
		for j := range x.Data {
			x.Data[j] = byte(j*37+i*11) & 0x3f
		}
		args = append(args, eval.View(x))
		memory = append(memory, x.Data)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	few := func(_ string, tile []int) bool {
		for _, x := range tile {
			if x > 1 {
				cancel()
			}
		}
		return true
	}
	if err := eval.Run(ctx, p, args, eval.Options{Tiles: few, MaxBytes: 1 << 26, MaxOps: 2000}); err != nil {
		return nil, true
	}
	return memory, false
}

func BenchmarkText(b *testing.B) {
	src := read(b, "../testdata/tile/roundtrip/attention.tile")
	p, err := ir.Parse("x", src)
	require.NoError(b, err)
	k := p.Kernels[0]
	b.Run("parse", func(b *testing.B) {
		for b.Loop() {
			_, _ = ir.Parse("x", src)
		}
	})
	b.Run("print", func(b *testing.B) {
		for b.Loop() {
			_ = k.String()
		}
	})
	b.Run("verify", func(b *testing.B) {
		for b.Loop() {
			_ = ir.VerifyKernel(k)
		}
	})
	b.Run("hash", func(b *testing.B) {
		for b.Loop() {
			_ = k.Hash()
		}
	})
	b.Run("clone", func(b *testing.B) {
		for b.Loop() {
			_ = k.Clone()
		}
	})
}
