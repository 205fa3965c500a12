package ir_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kgen-dev/kgen/ir"
)

// TestRandomRoundtrip is the law of the textual form on random programs.
func TestRandomRoundtrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { requireRoundtrip(t, drawProgram(t)) })
}

func TestCloneIsEqualAndApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProgram(t)
		before := p.Hash()
		q := p.Clone()
		require.NoError(t, ir.Verify(q))
		require.True(t, p.Equal(q))
		for _, k := range q.Kernels {
			k.Name += "x"
			k.Walk(func(o *ir.Op) {
				o.Args = nil
				o.Axis++
			})
		}
		require.Equal(t, before, p.Hash())
	})
}

// TestClonedCodeIsValid repeats a kernel's operations behind themselves.
func TestClonedCodeIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := drawKernel(t, "k")
		c := ir.NewCloner(k)
		for _, o := range k.Body.Ops {
			k.Body.Ops = append(k.Body.Ops, c.Op(o))
		}
		require.NoError(t, ir.VerifyKernel(k))
		k.Renumber()
		require.NoError(t, ir.VerifyKernel(k))
	})
}

// TestHashIgnoresNames renames every value but parameters.
func TestHashIgnoresNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := drawKernel(t, "k")
		before := k.Hash()
		k.Walk(func(o *ir.Op) {
			for _, v := range o.Results {
				v.Name += "z"
			}
			o.Pos = ir.Pos{}
		})
		require.Equal(t, before, k.Hash())
	})
}

// TestBrokenPrograms damages programs at random: verifying and printing them
// never panics, and what still verifies keeps the law of the text.
func TestBrokenPrograms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProgram(t)
		k := p.Kernels[0]
		var all []*ir.Op
		var values []*ir.Value
		k.Walk(func(o *ir.Op) {
			all = append(all, o)
			values = append(values, o.Results...)
		})
		if len(all) == 0 {
			return
		}
		o := rapid.SampledFrom(all).Draw(t, "operation")
		n := rapid.IntRange(0, 20).Draw(t, "n")
		switch rapid.IntRange(0, 11).Draw(t, "damage") {
		case 0:
			o.Args = o.Args[:min(n, len(o.Args))]
		case 1:
			if len(o.Args) > 0 && len(values) > 0 {
				o.Args[n%len(o.Args)] = rapid.SampledFrom(values).Draw(t, "value")
			}
		case 2:
			if len(o.Args) > 0 {
				o.Args[n%len(o.Args)] = nil
			}
		case 3:
			o.Code = ir.Opcode(n * 4)
		case 4:
			o.Axis, o.Pending, o.Stages = n-10, n-10, n*10
		case 5:
			o.Dims, o.Perm = []int{n - 1}, []int{n - 1}
		case 6:
			o.Given = uint16(1 << (n % 16))
		case 7:
			o.Results = nil
		case 8:
			if len(o.Results) > 0 {
				o.Results[0].Type = ir.TileOf(ir.Elem(n), n)
			}
		case 9:
			o.Regions = append(o.Regions, nil, &ir.Region{})
		case 10:
			if len(o.Results) > 0 {
				o.Results[0].ID = n - 3
			}
		case 11:
			for _, r := range o.Regions {
				r.Ops, r.Params = nil, nil
			}
		}
		_ = p.String()
		if ir.Verify(p) == nil {
			requireRoundtrip(t, p)
		}
	})
}

// FuzzParse checks that no text makes the parser panic, and that what it accepts
// keeps the law of the text.
func FuzzParse(f *testing.F) {
	for _, folder := range []string{"roundtrip", "run"} {
		for _, file := range corpus(f, folder) {
			f.Add(string(read(f, file)))
		}
	}
	for _, file := range corpus(f, "error") {
		for _, part := range strings.Split(string(read(f, file)), "\n----\n") {
			f.Add(part)
		}
	}
	f.Fuzz(func(t *testing.T, src string) {
		if p, err := ir.Parse("fuzz", []byte(src)); err == nil {
			requireRoundtrip(t, p)
		}
	})
}
