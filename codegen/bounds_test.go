package codegen_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/kernels"
	"github.com/kgen-dev/kgen/kernels/family"
)

func compileText(t *testing.T, text string) *codegen.Compiled {
	t.Helper()
	p, err := ir.Parse("bounds", []byte(text))
	require.NoError(t, err, text)
	gpu, err := target.Lookup("a100")
	require.NoError(t, err)
	c, err := codegen.Compile(p, gpu, codegen.Options{Verify: true})
	require.NoError(t, err, text)
	return c
}

// TestBounds holds what is found of indices to what follows by hand.
func TestBounds(t *testing.T) {
	for _, c := range []struct {
		what, space, body string
		want              []string
	}{
		{"tiles of a view", "ceildiv(M, 64)", "%row = mul %i, %c64\n  %v = load %x[%row, %zero] : <64x8xf32>", nil},
		{"a long step", "1", "%m = dim %x axis=0\n  %c = const 131072 : i32\n  for %k = %zero to %m step %c {\n    %v = load %x[%k, %zero] : <8x8xf32>\n  }", []string{"M + 131071"}},
		{"a part of a loop", "ceildiv(M, 1048576)", "%m = dim %x axis=0\n  %c = const 1048576 : i32\n  %lo = mul %i, %c\n  %e = add %lo, %c\n  %hi = min %m, %e\n  for %k = %lo to %hi step %c64 {\n    %v = load %x[%k, %zero] : <64x8xf32>\n  }", []string{"M + 1048575"}},
		{"an offset that is given", "ceildiv(M, 64)", "%a = mul %i, %c64\n  %row = add %a, %n\n  %v = load %x[%row, %zero] : <64x8xf32>", []string{"M + n + 62", "M - n"}},
		{"two views in one", "ceildiv(M, 64)", "%m = dim %x axis=1\n  %row = add %i, %m\n  %b = mul %row, %c64\n  %v = load %x[%b, %zero] : <64x8xf32>", []string{"N + ceildiv(M, 64) - 1", "M + 64 * N + 62"}},
		{"rows of sequences", "M", "%m = dim %x axis=1\n  %row = mul %i, %m\n  %v = load %x[%row, %zero] : <64x8xf32>", []string{"(M - 1) * N + 63"}},
		{"a hash", "M", "%c = const 1664525 : i32\n  %a = mul %i, %c\n  %b = mul %a, %c\n  %m = and %b, %c64\n  %v = load %x[%m, %zero] : <64x8xf32>", nil},
		{"the rest of a view", "ceildiv(M, 64)", "%row = mul %i, %c64\n  %c = const 100000 : i32\n  %s = subview %x[%row, %zero] extent [%c, %c]\n  %m = dim %s axis=0\n  for %k = %zero to %m step %c64 {\n    %v = load %s[%k, %zero] : <64x8xf32>\n  }", nil},
		{"a quotient's multiple", "1", "%m = dim %x axis=0\n  %q = div %m, %c64\n  %w = mul %q, %c64\n  %v = load %x[%w, %zero] : <64x8xf32>", nil},
		{"data", "M", "%a = load %r[%i] : i32\n  %b = add %a, %c64\n  %v = load %x[%b, %zero] : <64x8xf32>", nil},
	} {
		t.Run(c.what, func(t *testing.T) {
			text := "kernel @k(%x: view<f32>[M, N], %r: view<i32>[M], %n: i32, %o: view<f32>[8]) {\n  over %i: " + c.space +
				"\n  %zero = const 0 : i32\n  %c64 = const 64 : i32\n  " + c.body + "\n}\n"
			var got []string
			for _, e := range compileText(t, text).Kernels[0].Bounds {
				got = append(got, e.String())
			}
			require.Equal(t, c.want, got)
		})
	}
}

// partSum adds up blocks of 2^17 columns of a row, with the copies running ahead.
const partSum = `
kernel @parts(%x: view<f16>[16, N], %y: view<f16>[N, 16], %o: view<f32>[P, 16, 16]) {
  assume stride(%o, 2) = 1
  over %p: ceildiv(N, 131072)
  %zero = const 0 : i32
  %step = const 64 : i32
  %part = const 131072 : i32
  %lo = mul %p, %part
  %e = add %lo, %part
  %n = dim %x axis=1
  %hi = min %n, %e
  %init = const 0 : <16x16xf32>
  %sum = for %k = %lo to %hi step %step carry (%acc = %init) stages=3 : <16x16xf32> {
    %a = load %x[%zero, %k] : <16x64xf16>
    %b = load %y[%k, %zero] : <64x16xf16>
    %d = dot %a, %b, %acc
    yield %d
  }
  store %o[%p, %zero, %zero] = %sum
}
`

// Near the largest sizes a kernel computes what it should, and a plan refuses those
// where it would not. The views are one element, again and again, so that they take no
// memory.
func TestSizesNearTheLimit(t *testing.T) {
	c := compileText(t, partSum)
	gpu, err := target.Lookup("a100")
	require.NoError(t, err)
	text, err := c.PTX()
	require.NoError(t, err)
	const most = math.MaxInt32 - (1<<17 - 1) // N + 2^17 - 1 is the end of the last part
	arguments := func(n int64) []codegen.Argument {
		return []codegen.Argument{
			{Dims: []int64{16, n}, Strides: []int64{0, 0}},
			{Dims: []int64{n, 16}, Strides: []int64{0, 0}},
			{Dims: []int64{1 << 20, 16, 16}, Strides: []int64{0, 16, 1}},
		}
	}
	_, err = c.Plan(arguments(most + 1))
	require.ErrorIs(t, err, codegen.ErrArguments)
	require.EqualError(t, err, fmt.Sprintf("kernel parts: size N = %d: want at most %d, as indices have 32 bits", most+1, most))

	for _, n := range []int64{most - 17} {
		plan, err := c.Plan(arguments(n))
		require.NoError(t, err)
		last := plan.Steps[0].Grid - 1
		require.Equal(t, float32(n-last<<17), runLast(t, gpu, text, plan), "N = %d", n)
	}
}

// runLast runs the last block of partSum over ones and returns an element of its part,
// which is stored where the only one has its place.
func runLast(t *testing.T, gpu *target.GPU, text string, plan *codegen.Plan) float32 {
	t.Helper()
	dev, err := vm.New(vm.Options{GPU: gpu})
	require.NoError(t, err)
	defer dev.Close()
	m, err := dev.Load(context.Background(), "kernel.ptx", []byte(text))
	require.NoError(t, err)
	var memory []bench.Buffer
	for _, data := range [][]byte{{0, 0x3c}, {0, 0x3c}, make([]byte, 1024)} {
		b, err := dev.Alloc(int64(len(data)), 256)
		require.NoError(t, err)
		require.NoError(t, dev.Write(b, 0, data))
		memory = append(memory, b)
	}
	last := plan.Steps[0].Point(plan.Steps[0].Grid - 1)
	reports, err := bench.RunPlan(context.Background(), dev, m, plan, memory, [][][]int{{last}})
	require.NoError(t, err)
	requireNoFaults(t, reports[0].Faults)
	out := make([]byte, 4)
	require.NoError(t, dev.Read(memory[2], 0, out))
	return math.Float32frombits(binary.LittleEndian.Uint32(out))
}

// Groups of rows are no larger than the grid, whatever the sizes.
func TestGroupsOfFewRows(t *testing.T) {
	c := compileText(t, strings.ReplaceAll(`
kernel @k(%x: view<f32>[M], %o: view<i32>[N]) {
  over %i: ceildiv(M, 64), %j: N
  order grouped 8
  %v = dim %x axis=0
  store %o[%j] = %v
}
`, "\t", ""))
	const n = 1 << 29 // 8 of which are 2^32
	plan, err := c.Plan([]codegen.Argument{{Dims: []int64{1}, Strides: []int64{1}}, {Dims: []int64{n}, Strides: []int64{0}}})
	require.NoError(t, err)
	text, err := c.PTX()
	require.NoError(t, err)
	gpu, err := target.Lookup("a100")
	require.NoError(t, err)
	dev, err := vm.New(vm.Options{GPU: gpu})
	require.NoError(t, err)
	defer dev.Close()
	m, err := dev.Load(context.Background(), "kernel.ptx", []byte(text))
	require.NoError(t, err)
	x, err := dev.Alloc(4, 0)
	require.NoError(t, err)
	o, err := dev.Alloc(4, 0)
	require.NoError(t, err)
	reports, err := bench.RunPlan(context.Background(), dev, m, plan, []bench.Buffer{x, o}, [][][]int{{{0, n - 1}}})
	require.NoError(t, err)
	requireNoFaults(t, reports[0].Faults)
	out := make([]byte, 4)
	require.NoError(t, dev.Read(o, 0, out))
	require.Equal(t, []byte{1, 0, 0, 0}, out)
}

// TestFamiliesTakeTheLargestSizes holds that the limit of a family's sizes is enough: its
// kernels need no bounds of their own, but the paged ones', whose rows are all heads of
// tokens, and whose keys are those of all pages.
func TestFamiliesTakeTheLargestSizes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	gpu, err := target.Lookup("h100")
	require.NoError(t, err)
	for _, f := range kernels.Families() {
		if strings.HasPrefix(f.Name, "paged") {
			continue
		}
		for range 25 {
			p := f.Awkward(r)
			s, err := p.Space(gpu)
			require.NoError(t, err)
			config, err := family.Draw(r, s)
			require.NoError(t, err)
			prog, err := p.Program(config)
			require.NoError(t, err)
			c, err := codegen.Compile(prog, gpu, codegen.Options{})
			require.NoError(t, err)
			for _, k := range c.Kernels {
				require.Empty(t, k.Bounds, "%s %s", p.Settings(), config)
			}
		}
	}
}

// Strides that a tile's elements are told apart by have 32 bits of bytes.
func TestWideStridesAreRefused(t *testing.T) {
	text := "kernel @k(%x: view<f32>[M, N], %o: view<f32>[8, 8]) {\n  ASSUME\n  over %i: 1\n  %zero = const 0 : i32\n  %v = load %x[%zero, %zero] : <8x8xf32>\n  store %o[%zero, %zero] = %v\n}\n"
	c := compileText(t, strings.Replace(text, "ASSUME", "assume stride(%x, 1) = 1", 1))
	out := codegen.Argument{Dims: []int64{8, 8}, Strides: []int64{8, 1}}
	for stride, ok := range map[int64]bool{1<<29 - 1: true, 1 << 29: false, 1 << 40: false} {
		_, err := c.Plan([]codegen.Argument{{Dims: []int64{8, 8}, Strides: []int64{stride, 1}}, out})
		require.Equal(t, ok, err == nil, "%d: %v", stride, err)
		if !ok {
			require.ErrorContains(t, err, fmt.Sprintf("argument x: stride %d in dimension 0: want at most 536870911", stride))
		}
	}
	p, err := ir.Parse("wide", []byte(strings.Replace(text, "ASSUME", "assume stride(%x, 0) = 536870912", 1)))
	require.NoError(t, err)
	gpu, err := target.Lookup("a100")
	require.NoError(t, err)
	_, err = codegen.Compile(p, gpu, codegen.Options{})
	require.ErrorIs(t, err, codegen.ErrUnsupported)
	require.ErrorContains(t, err, "stride of 536870912")
}
