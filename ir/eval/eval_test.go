package eval_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/kgen-dev/kgen/internal/fixedseed" // of rapid
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/eval"
)

func parse(t testing.TB, src string) *ir.Program {
	p, err := ir.Parse("test", []byte(src))
	require.NoError(t, err)
	return p
}

func parseFile(t testing.TB, name string) *ir.Program {
	src, err := os.ReadFile("../../testdata/tile/roundtrip/" + name)
	require.NoError(t, err)
	return parse(t, string(src))
}

// normal returns a tensor of normal random numbers; rows are padded by pad
// elements of poison.
func normal(seed uint64, e ir.Elem, pad int, shape ...int) *eval.Tensor {
	r := rand.New(rand.NewPCG(seed, 0))
	padded := append([]int(nil), shape...)
	padded[len(padded)-1] += pad
	t := eval.NewTensor(e, padded...)
	t.Poison()
	t.Shape = shape
	for i := range t.Len() {
		t.SetFloat(i, r.NormFloat64())
	}
	return t
}

func poisoned(e ir.Elem, shape ...int) *eval.Tensor {
	t := eval.NewTensor(e, shape...)
	t.Poison()
	return t
}

func run(t testing.TB, p *ir.Program, o eval.Options, args ...eval.Arg) {
	require.NoError(t, eval.Run(context.Background(), p, args, o))
}

// TestGemm compares with a float64 sum. The bound: K products of normal numbers
// accumulated in f32, and one rounding to bf16 (half an ulp, 2^-9).
func TestGemm(t *testing.T) {
	p := parseFile(t, "gemm.tile")
	for _, size := range [][3]int{{150, 200, 100}, {1, 1, 1}, {129, 3, 65}} {
		m, n, k := size[0], size[1], size[2]
		a, b := normal(1, ir.BF16, (8-k%8)%8, m, k), normal(2, ir.BF16, 0, k, n)
		bias, c := normal(3, ir.F32, 0, n), poisoned(ir.BF16, m, n)
		run(t, p, eval.Options{}, eval.View(a), eval.View(b), eval.View(bias), eval.View(c))
		for i := range m {
			for j := range n {
				sum, size := bias.Float(j), math.Abs(bias.Float(j))
				for x := range k {
					term := a.Float(i*k+x) * b.Float(x*n+j)
					sum += term
					size += math.Abs(term)
				}
				tol := math.Abs(sum)*0x1p-8 + size*float64(k+1)*0x1p-24
				require.InDelta(t, sum, c.Float(i*n+j), tol, "c[%d, %d]", i, j)
			}
		}
	}
}

// attention runs the attention program.
func attention(t testing.TB, batch, heads, kvHeads, sq, sk int, o eval.Options) (q, k, v, out, lse *eval.Tensor) {
	const d = 64
	q, k, v = normal(1, ir.BF16, 0, batch, sq, heads, d), normal(2, ir.BF16, 0, batch, sk, kvHeads, d), normal(3, ir.BF16, 0, batch, sk, kvHeads, d)
	out, lse = poisoned(ir.BF16, batch, sq, heads, d), poisoned(ir.F32, batch, heads, sq)
	run(t, parseFile(t, "attention.tile"), o, eval.View(q), eval.View(k), eval.View(v), eval.View(out), eval.View(lse), eval.Float(1/math.Sqrt(d)))
	return
}

// TestAttention compares with a float64 softmax, rows that see nothing included.
// The weights are rounded to bf16 (2^-9 relative) before they meet V.
func TestAttention(t *testing.T) {
	const d = 64
	batch, heads, kvHeads, sq, sk := 2, 4, 2, 90, 70
	q, k, v, out, lse := attention(t, batch, heads, kvHeads, sq, sk, eval.Options{})
	for b := range batch {
		for h := range heads {
			for i := range sq {
				want, total, peak := make([]float64, d), 0.0, 0.0
				for j := 0; j < sk && j <= i+sk-sq; j++ {
					s := 0.0
					for x := range d {
						s += q.Float(((b*sq+i)*heads+h)*d+x) * k.Float(((b*sk+j)*kvHeads+h/2)*d+x)
					}
					w := math.Exp(s / math.Sqrt(d))
					total += w
					for x := range d {
						y := v.Float(((b*sk+j)*kvHeads+h/2)*d + x)
						want[x] += w * y
						peak = max(peak, math.Abs(y))
					}
				}
				l := lse.Float((b*heads+h)*sq + i)
				if total == 0 {
					require.Equal(t, math.Inf(-1), l)
				} else {
					require.InDelta(t, math.Log(total), l, 1e-4)
				}
				for x := range d {
					require.InDelta(t, want[x]/max(total, 1e-300), out.Float(((b*sq+i)*heads+h)*d+x), 3*peak*0x1p-8)
				}
			}
		}
	}
}

// TestTiles runs chosen points of a tile space only.
func TestTiles(t *testing.T) {
	p := parse(t, `
kernel @k(%y: view<i32>[N, 3]) {
  over %i: N, %j: 3
  %three = const 3 : i32
  %r = mul %i, %three
  %v = add %r, %j
  store %y[%i, %j] = %v
}`)
	y := eval.NewTensor(ir.I32, 2, 3)
	run(t, p, eval.Options{Tiles: func(k string, tile []int) bool { return tile[0] == 1 && tile[1] != 1 }}, eval.View(y))
	require.Equal(t, []float64{0, 0, 0, 3, 0, 5}, y.Floats())
}

// TestWide sums what f32 loses.
func TestWide(t *testing.T) {
	p := parse(t, `
kernel @k(%x: view<f32>[3], %y: view<f32>[2]) {
  %v = load %x[0] : <3xf32>
  %s = reduce add %v axis=0
  store %y[0] = %s
  %row = expand %v axis=0
  %ones = const 1 : <3x1xf32>
  %zero = const 0 : <1x1xf32>
  %d = dot %row, %ones, %zero
  %e = reshape %d : f32
  store %y[1] = %e
}`)
	x, y := eval.NewTensor(ir.F32, 3), eval.NewTensor(ir.F32, 2)
	x.SetFloats([]float64{1 << 24, 1, -1 << 24})
	run(t, p, eval.Options{}, eval.View(x), eval.View(y))
	require.Equal(t, []float64{0, 0}, y.Floats())
	run(t, p, eval.Options{Wide: true}, eval.View(x), eval.View(y))
	require.Equal(t, []float64{1, 1}, y.Floats())
}

// TestWorkspaceIsPoisoned reads what nobody wrote.
func TestWorkspaceIsPoisoned(t *testing.T) {
	p := parse(t, `
program @p(%y: view<f32>[N]) {
  workspace %w: f32[N * 2]
  workspace %z: f32[N] zero
  step @copy(%w, %z, %y)
}
kernel @copy(%w: view<f32>[W], %z: view<f32>[N], %y: view<f32>[N]) {
  %a = load %w[1] : <1xf32>
  %b = load %z[0] : <1xf32>
  store %y[0] = %a
  store %y[1] = %b
}`)
	y := eval.NewTensor(ir.F32, 2)
	sizes := map[string][]int{}
	run(t, p, eval.Options{Workspace: func(name string, w *eval.Tensor) { sizes[name] = w.Shape }}, eval.View(y))
	require.True(t, math.IsNaN(y.Float(0)))
	require.Zero(t, y.Float(1))
	require.Equal(t, map[string][]int{"w": {4}, "z": {2}}, sizes)
}

// TestCopyKeepsBytes loads and stores every element type through odd strides.
func TestCopyKeepsBytes(t *testing.T) {
	for _, e := range []ir.Elem{ir.I4, ir.I8, ir.I32, ir.I64, ir.F16, ir.BF16, ir.F32, ir.F64, ir.E4M3, ir.E5M2, ir.E2M1} {
		t.Run(e.String(), func(t *testing.T) {
			p := parse(t, fmt.Sprintf(`
kernel @copy(%%x: view<%v>[M, N], %%y: view<%v>[M, N]) {
  over %%i: ceildiv(M, 4)
  %%c = const 4 : i32
  %%m = mul %%i, %%c
  %%v = load %%x[%%m, 0] : <4x9x%v>
  store %%y[%%m, 0] = %%v
}`, e, e, e))
			x, y := normal(7, e, 3, 6, 7), poisoned(e, 7, 6)
			y.Shape, y.Strides = []int{6, 7}, []int{1, 6}
			run(t, p, eval.Options{}, eval.View(x), eval.View(y))
			require.Equal(t, x.Floats(), y.Floats())
		})
	}
}

// TestDropoutMaskOfAnyTile draws the same mask whatever the tile.
func TestDropoutMaskOfAnyTile(t *testing.T) {
	mask := func(rows, cols int) []float64 {
		p := parse(t, strings.NewReplacer("ROWS", fmt.Sprint(rows), "COLS", fmt.Sprint(cols)).Replace(`
kernel @mask(%y: view<i32>[M, N], %seed: i64) {
  over %i: ceildiv(M, ROWS), %j: ceildiv(N, COLS)
  %bm = const ROWS : i32
  %bn = const COLS : i32
  %m = mul %i, %bm
  %n = mul %j, %bn
  %ms = splat %m : <ROWSxCOLSxi32>
  %ns = splat %n : <ROWSxCOLSxi32>
  %r = iota axis=0 : <ROWSxCOLSxi32>
  %c = iota axis=1 : <ROWSxCOLSxi32>
  %row = add %r, %ms
  %col = add %c, %ns
  %plane = const 3 : i32
  %d = random16 %seed, %plane, %plane, %row, %col
  store %y[%m, %n] = %d
}`))
		y := poisoned(ir.I32, 11, 50)
		run(t, p, eval.Options{}, eval.View(y), eval.Int(-12345678901))
		return y.Floats()
	}
	want := mask(4, 8)
	require.Equal(t, want, mask(1, 50))
	require.Equal(t, want, mask(3, 7))
	for _, v := range want {
		require.True(t, v >= 0 && v < 1<<16)
	}
}

func TestArgumentErrors(t *testing.T) {
	p := parse(t, `
kernel @k(%x: view<f32>[N], %n: i8) {
}`)
	x := eval.NewTensor(ir.F32, 4)
	short := eval.NewTensor(ir.F32, 4)
	short.Data = short.Data[:15]
	strides := eval.NewTensor(ir.F32, 4)
	strides.Strides = []int{math.MaxInt64 / 2}
	for want, args := range map[string][]eval.Arg{
		"1 arguments: want 2":                       {eval.View(x)},
		"argument x: want a tensor of view<f32>[N]": {eval.View(eval.NewTensor(ir.F16, 4)), eval.Int(1)},
		"argument n: 200 is outside i8":             {eval.View(x), eval.Int(200)},
		"reach element 0 to 3: memory holds 3":      {eval.View(short), eval.Int(1)},
		"too large":                                 {eval.View(strides), eval.Int(1)},
		"argument n: want a number":                 {eval.View(x), eval.View(x)},
	} {
		require.ErrorContains(t, eval.Run(context.Background(), p, args, eval.Options{}), want)
	}
}

func TestLimits(t *testing.T) {
	endless := parse(t, `
kernel @k(%n: i32) {
  over %i: 2000000000
  for %k = 0 to 2000000000 step 1 {
  }
}`)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, eval.Run(ctx, endless, []eval.Arg{eval.Int(0)}, eval.Options{}), context.DeadlineExceeded)

	large := parse(t, `
program @p(%n: i32) {
  workspace %w: f32[n, n]
}`)
	require.ErrorContains(t, eval.Run(context.Background(), large, []eval.Arg{eval.Int(1 << 30)}, eval.Options{}), "more than 4294967296 bytes")

	tiles := parse(t, `
kernel @k() {
  %x = const 0 : <4096x4096xf32>
  %y = neg %x
}`)
	require.ErrorContains(t, eval.Run(context.Background(), tiles, nil, eval.Options{MaxBytes: 1 << 27}), "take more than 134217728 bytes")
}

// TestElementwiseAgreesWithBig checks f16 and bf16 arithmetic against float64
// followed by one rounding, which is exact for one operation on such operands
// (but for fma, which TestExamples has).
func TestElementwiseAgreesWithFloat64(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := rapid.SampledFrom([]ir.Elem{ir.F16, ir.BF16}).Draw(t, "type")
		op := rapid.SampledFrom([]string{"add", "sub", "mul", "div"}).Draw(t, "operation")
		p, err := ir.Parse("test", []byte(fmt.Sprintf(`
kernel @k(%%x: view<%v>[N], %%y: view<%v>[N], %%z: view<%v>[N]) {
  %%a = load %%x[0] : <64x%v>
  %%b = load %%y[0] : <64x%v>
  %%c = %s %%a, %%b
  store %%z[0] = %%c
}`, e, e, e, e, e, op)))
		require.NoError(t, err)
		x, y, z, want := eval.NewTensor(e, 64), eval.NewTensor(e, 64), eval.NewTensor(e, 64), eval.NewTensor(e, 64)
		for _, v := range []*eval.Tensor{x, y} {
			copy(v.Data, rapid.SliceOfN(rapid.Byte(), 128, 128).Draw(t, "bits"))
		}
		for i := range 64 {
			a, b := x.Float(i), y.Float(i)
			want.SetFloat(i, map[string]float64{"add": a + b, "sub": a - b, "mul": a * b, "div": a / b}[op])
		}
		require.NoError(t, eval.Run(context.Background(), p, []eval.Arg{eval.View(x), eval.View(y), eval.View(z)}, eval.Options{}))
		for i := range 64 {
			if w := want.Float(i); w == w {
				require.Equal(t, w, z.Float(i), "%s of %v and %v", op, x.Float(i), y.Float(i))
			} else {
				require.True(t, math.IsNaN(z.Float(i)))
			}
		}
	})
}

// FuzzRun runs whatever parses on small arguments: it may fail, not panic or hang.
func FuzzRun(f *testing.F) {
	for _, pattern := range []string{"../../testdata/tile/run/*.tile", "../../testdata/tile/roundtrip/*.tile"} {
		for _, src := range readAll(f, pattern) {
			f.Add(src)
		}
	}
	f.Fuzz(func(t *testing.T, src string) {
		p, err := ir.Parse("fuzz", []byte(src))
		if err != nil {
			return
		}
		var args []eval.Arg
		for i, v := range p.Params {
			if v.Type.Kind != ir.View {
				args = append(args, eval.Arg{Int: int64(i), Float: float64(i)})
				continue
			}
			shape := make([]int, len(v.Type.Dims))
			n := 1
			for d, dim := range v.Type.Dims {
				shape[d] = dim.Size
				if dim.Sym != "" {
					shape[d] = 1 + len(dim.Sym)%5
				}
				if n *= shape[d]; n > 1<<16 {
					return
				}
			}
			args = append(args, eval.View(eval.NewTensor(v.Type.Elem, shape...)))
		}
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		_ = eval.Run(ctx, p, args, eval.Options{MaxBytes: 1 << 24})
	})
}

// BenchmarkDot multiplies 128x128 by 128x64.
func BenchmarkDot(b *testing.B) {
	p := parse(b, `
kernel @k(%x: view<bf16>[128, 128], %y: view<bf16>[128, 64], %n: i32) {
  %a = load %x[0, 0] : <128x128xbf16>
  %c = load %y[0, 0] : <128x64xbf16>
  %z = const 0 : <128x64xf32>
  %d = for %i = 0 to %n step 1 carry (%e = %z) {
    %f = dot %a, %c, %e
    yield %f
  }
}`)
	x, y := normal(1, ir.BF16, 0, 128, 128), normal(2, ir.BF16, 0, 128, 64)
	b.ResetTimer()
	run(b, p, eval.Options{}, eval.View(x), eval.View(y), eval.Int(int64(b.N)))
}

// BenchmarkAttention runs 100 tiles of 64 queries against 320 keys.
func BenchmarkAttention(b *testing.B) {
	for b.Loop() {
		attention(b, 4, 5, 1, 320, 320, eval.Options{})
	}
}

func TestMaxOps(t *testing.T) {
	p := parse(t, `
kernel @k() {
  for %i = 0 to 100 step 1 {
    %x = neg %i
  }
}`)
	run(t, p, eval.Options{MaxOps: 105})
	require.ErrorContains(t, eval.Run(context.Background(), p, nil, eval.Options{MaxOps: 50}), "more than 50 operations")
}
