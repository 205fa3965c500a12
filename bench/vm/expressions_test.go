package vm_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen/nvrtc"
	"github.com/kgen-dev/kgen/codegen/nvrtc/nvrtctest"
	"github.com/kgen-dev/kgen/ir/num"
)

// expression is a value in CUDA C, and in Go: bits of 32 or 64.
type expression struct {
	text string
	eval func(in []uint32) uint64
}

// exprKind is the type of an expression.
type exprKind int

const (
	exprU32 exprKind = iota
	exprU64
	exprF32
	exprF64
	exprKinds
)

var exprNames = [exprKinds]string{"unsigned", "unsigned long long", "float", "double"}

// expressionsOf makes random expressions without what C or the hardware leave
// open.
type expressionsOf struct{ r *rand.Rand }

func (g expressionsOf) leaf(k exprKind) expression {
	i := g.r.IntN(8)
	switch k {
	case exprU32:
		if g.r.IntN(4) == 0 {
			c := uint32(anyBits(g.r, 32))
			return expression{fmt.Sprintf("%du", c), func([]uint32) uint64 { return uint64(c) }}
		}
		return expression{fmt.Sprintf("x[%d]", i), func(in []uint32) uint64 { return uint64(in[i]) }}
	case exprU64:
		return expression{fmt.Sprintf("((unsigned long long)x[%d] << 32 | x[%d])", i, 7-i), func(in []uint32) uint64 { return uint64(in[i])<<32 | uint64(in[7-i]) }}
	case exprF32:
		if g.r.IntN(3) == 0 {
			return expression{fmt.Sprintf("__uint_as_float(x[%d])", i), func(in []uint32) uint64 { return uint64(in[i]) }}
		}
		return expression{fmt.Sprintf("(float)(int)x[%d]", i), func(in []uint32) uint64 { return uint64(math.Float32bits(float32(int32(in[i])))) }}
	}
	return expression{fmt.Sprintf("(double)(int)x[%d]", i), func(in []uint32) uint64 { return math.Float64bits(float64(int32(in[i]))) }}
}

// apply makes an expression of operands a, b, c that stand at %1, %2, %3 of the
// text.
func apply(text string, f func(a, b, c uint64) uint64, of ...expression) expression {
	pairs := []string{}
	for i, e := range of {
		pairs = append(pairs, fmt.Sprintf("%%%d", i+1), "("+e.text+")")
	}
	return expression{"(" + strings.NewReplacer(pairs...).Replace(text) + ")", func(in []uint32) uint64 {
		var v [3]uint64
		for i, e := range of {
			v[i] = e.eval(in)
		}
		return f(v[0], v[1], v[2])
	}}
}

// operation is a line of the table: its text, the kinds of its operands, what
// it computes.
type operation struct {
	text string
	of   []exprKind
	f    func(a, b, c uint64) uint64
}

func asF32(v uint64) float32   { return math.Float32frombits(uint32(v)) }
func bitsF32(x float32) uint64 { return uint64(math.Float32bits(x)) }

var exprOperations = [exprKinds][]operation{
	exprU32: {
		{"%1 + %2", []exprKind{exprU32, exprU32}, func(a, b, _ uint64) uint64 { return uint64(uint32(a + b)) }},
		{"%1 - %2", []exprKind{exprU32, exprU32}, func(a, b, _ uint64) uint64 { return uint64(uint32(a - b)) }},
		{"%1 * %2 + %3", []exprKind{exprU32, exprU32, exprU32}, func(a, b, c uint64) uint64 { return uint64(uint32(a*b + c)) }},
		{"%1 / (%2 | 1u)", []exprKind{exprU32, exprU32}, func(a, b, _ uint64) uint64 { return a / (b | 1) }},
		{"%1 % (%2 | 1u)", []exprKind{exprU32, exprU32}, func(a, b, _ uint64) uint64 { return a % (b | 1) }},
		{"%1 / 7u", []exprKind{exprU32}, func(a, _, _ uint64) uint64 { return a / 7 }},
		{"(%1 & %2) ^ ~%3", []exprKind{exprU32, exprU32, exprU32}, func(a, b, c uint64) uint64 { return uint64(uint32(a&b ^ ^c)) }},
		{"%1 | %2", []exprKind{exprU32, exprU32}, func(a, b, _ uint64) uint64 { return a | b }},
		{"%1 << (%2 & 31)", []exprKind{exprU32, exprU32}, func(a, b, _ uint64) uint64 { return uint64(uint32(a << (b & 31))) }},
		{"(unsigned)((int)%1 >> (%2 & 31))", []exprKind{exprU32, exprU32}, func(a, b, _ uint64) uint64 { return uint64(uint32(int32(a) >> (b & 31))) }},
		{"__umulhi(%1, %2)", []exprKind{exprU32, exprU32}, func(a, b, _ uint64) uint64 { return a * b >> 32 }},
		{"(unsigned)__mulhi((int)%1, (int)%2)", []exprKind{exprU32, exprU32}, func(a, b, _ uint64) uint64 { return uint64(uint32(int64(int32(a)) * int64(int32(b)) >> 32)) }},
		{"(unsigned)__popc(%1) + __clz((int)%2)", []exprKind{exprU32, exprU32}, func(a, b, _ uint64) uint64 {
			return uint64(bits.OnesCount32(uint32(a)) + bits.LeadingZeros32(uint32(b)))
		}},
		{"__brev(%1)", []exprKind{exprU32}, func(a, _, _ uint64) uint64 { return uint64(bits.Reverse32(uint32(a))) }},
		{"__byte_perm(%1, %2, %3 & 0x7777)", []exprKind{exprU32, exprU32, exprU32}, func(a, b, c uint64) uint64 {
			all, out := b<<32|a, uint64(0)
			for i := range 4 {
				out |= all >> (8 * (c >> (4 * i) & 7)) & 0xff << (8 * i)
			}
			return out
		}},
		{"__funnelshift_l(%1, %2, %3)", []exprKind{exprU32, exprU32, exprU32}, func(a, b, c uint64) uint64 { return (b<<32 | a) << (c & 31) >> 32 }},
		{"%1 < %2 ? %3 : %1", []exprKind{exprU32, exprU32, exprU32}, func(a, b, c uint64) uint64 {
			if a < b {
				return c
			}
			return a
		}},
		{"(unsigned)max((int)%1, (int)%2)", []exprKind{exprU32, exprU32}, func(a, b, _ uint64) uint64 { return uint64(uint32(max(int32(a), int32(b)))) }},
		{"__usad(%1, %2, %3)", []exprKind{exprU32, exprU32, exprU32}, func(a, b, c uint64) uint64 { return uint64(uint32(max(a, b) - min(a, b) + c)) }},
		{"(unsigned)(signed char)%1 + (unsigned short)%2", []exprKind{exprU32, exprU32}, func(a, b, _ uint64) uint64 { return uint64(uint32(int32(int8(a)) + int32(uint16(b)))) }},
		{"(unsigned)__dp4a((int)%1, (int)%2, (int)%3)", []exprKind{exprU32, exprU32, exprU32}, func(a, b, c uint64) uint64 {
			sum := int32(c)
			for i := range 4 {
				sum += int32(int8(a>>(8*i))) * int32(int8(b>>(8*i)))
			}
			return uint64(uint32(sum))
		}},
		{"(unsigned)(%1 >> 17)", []exprKind{exprU64}, func(a, _, _ uint64) uint64 { return uint64(uint32(a >> 17)) }},
		{"(unsigned)(%1 > %2) * 3u", []exprKind{exprF32, exprF32}, func(a, b, _ uint64) uint64 { return 3 * yes(asF32(a) > asF32(b)) }},
		{"(unsigned)__float2int_rn(%1)", []exprKind{exprF32}, func(a, _, _ uint64) uint64 {
			x := math.RoundToEven(float64(asF32(a)))
			switch {
			case x != x:
				return 0
			case x >= 1<<31:
				return 1<<31 - 1
			case x < -1<<31:
				return 1 << 31
			}
			return uint64(uint32(int32(x)))
		}},
	},
	exprU64: {
		{"%1 + %2", []exprKind{exprU64, exprU64}, func(a, b, _ uint64) uint64 { return a + b }},
		{"%1 * %2 - %3", []exprKind{exprU64, exprU64, exprU64}, func(a, b, c uint64) uint64 { return a*b - c }},
		{"%1 / (%2 | 1ull)", []exprKind{exprU64, exprU64}, func(a, b, _ uint64) uint64 { return a / (b | 1) }},
		{"(unsigned long long)((long long)%1 % 1000003ll)", []exprKind{exprU64}, func(a, _, _ uint64) uint64 { return uint64(int64(a) % 1000003) }},
		{"__umul64hi(%1, %2)", []exprKind{exprU64, exprU64}, func(a, b, _ uint64) uint64 { hi, _ := bits.Mul64(a, b); return hi }},
		{"(unsigned long long)((long long)%1 >> (%2 & 63))", []exprKind{exprU64, exprU64}, func(a, b, _ uint64) uint64 { return uint64(int64(a) >> (b & 63)) }},
		{"(unsigned long long)%1 * %2", []exprKind{exprU32, exprU32}, func(a, b, _ uint64) uint64 { return a * b }},
		{"(unsigned long long)((long long)(int)%1 * (int)%2)", []exprKind{exprU32, exprU32}, func(a, b, _ uint64) uint64 { return uint64(int64(int32(a)) * int64(int32(b))) }},
		{"(unsigned long long)__popcll(%1) ^ __brevll(%2)", []exprKind{exprU64, exprU64}, func(a, b, _ uint64) uint64 { return uint64(bits.OnesCount64(a)) ^ bits.Reverse64(b) }},
	},
	exprF32: {
		{"%1 + %2", []exprKind{exprF32, exprF32}, func(a, b, _ uint64) uint64 { return bitsF32(asF32(a) + asF32(b)) }},
		{"%1 - %2", []exprKind{exprF32, exprF32}, func(a, b, _ uint64) uint64 { return bitsF32(asF32(a) - asF32(b)) }},
		{"%1 * %2", []exprKind{exprF32, exprF32}, func(a, b, _ uint64) uint64 { return bitsF32(asF32(a) * asF32(b)) }},
		{"%1 / %2", []exprKind{exprF32, exprF32}, func(a, b, _ uint64) uint64 { return bitsF32(asF32(a) / asF32(b)) }},
		{"__fmaf_rn(%1, %2, %3)", []exprKind{exprF32, exprF32, exprF32}, func(a, b, c uint64) uint64 { return bitsF32(num.FMA32(asF32(a), asF32(b), asF32(c))) }},
		{"sqrtf(fabsf(%1))", []exprKind{exprF32}, func(a, _, _ uint64) uint64 {
			return bitsF32(float32(math.Sqrt(math.Abs(float64(asF32(a))))))
		}},
		{"truncf(%1) + rintf(%2)", []exprKind{exprF32, exprF32}, func(a, b, _ uint64) uint64 {
			return bitsF32(float32(math.Trunc(float64(asF32(a)))) + float32(math.RoundToEven(float64(asF32(b)))))
		}},
		{"__fadd_rz(%1, %2)", []exprKind{exprF32, exprF32}, func(a, b, _ uint64) uint64 {
			if !single.finite(a, b) {
				return bitsF32(asF32(a) + asF32(b))
			}
			return single.fma(a, single.one(), b, "rz")
		}},
		{"(float)%1", []exprKind{exprU32}, func(a, _, _ uint64) uint64 { return bitsF32(float32(uint32(a))) }},
		{"(float)(long long)%1", []exprKind{exprU64}, func(a, _, _ uint64) uint64 { return bitsF32(float32(int64(a))) }},
		{"(float)%1", []exprKind{exprF64}, func(a, _, _ uint64) uint64 { return bitsF32(float32(math.Float64frombits(a))) }},
	},
	exprF64: {
		{"%1 + %2", []exprKind{exprF64, exprF64}, func(a, b, _ uint64) uint64 {
			return math.Float64bits(math.Float64frombits(a) + math.Float64frombits(b))
		}},
		{"%1 * %2", []exprKind{exprF64, exprF64}, func(a, b, _ uint64) uint64 {
			return math.Float64bits(math.Float64frombits(a) * math.Float64frombits(b))
		}},
		{"%1 / %2", []exprKind{exprF64, exprF64}, func(a, b, _ uint64) uint64 {
			return math.Float64bits(math.Float64frombits(a) / math.Float64frombits(b))
		}},
		{"__fma_rn(%1, %2, %3)", []exprKind{exprF64, exprF64, exprF64}, func(a, b, c uint64) uint64 {
			return math.Float64bits(math.FMA(math.Float64frombits(a), math.Float64frombits(b), math.Float64frombits(c)))
		}},
		{"(double)%1", []exprKind{exprF32}, func(a, _, _ uint64) uint64 { return math.Float64bits(float64(asF32(a))) }},
		{"(double)%1", []exprKind{exprU64}, func(a, _, _ uint64) uint64 { return math.Float64bits(float64(a)) }},
	},
}

func (g expressionsOf) make(k exprKind, depth int) expression {
	if depth == 0 {
		return g.leaf(k)
	}
	op := exprOperations[k][g.r.IntN(len(exprOperations[k]))]
	var of []expression
	for _, kind := range op.of {
		of = append(of, g.make(kind, max(0, depth-1-g.r.IntN(2))))
	}
	return apply(op.text, op.f, of...)
}

// sameResult compares bits; any NaN is as good as another.
func sameResult(k exprKind, a, b uint64) bool {
	switch k {
	case exprF32:
		return uint32(a) == uint32(b) || single.isNaN(a&0xffffffff) && single.isNaN(b&0xffffffff)
	case exprF64:
		return a == b || double.isNaN(a) && double.isNaN(b)
	}
	return a == b
}

// FuzzExpressions compiles random expressions with NVRTC, which folds, reorders
// and picks instructions as it likes, and runs them: they must give what Go
// gives.
func FuzzExpressions(f *testing.F) {
	for seed := range uint64(6) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		compiler := nvrtctest.Compiler(t)
		const count, threads = 24, 64
		g := expressionsOf{rand.New(rand.NewPCG(seed, 11))}
		var list [count]expression
		var kinds [count]exprKind
		var text strings.Builder
		text.WriteString("extern \"C\" __global__ void k(const unsigned *in, unsigned long long *out) {\n  unsigned x[8];\n  for (int i = 0; i < 8; i++) x[i] = in[8 * threadIdx.x + i];\n")
		for i := range list {
			kinds[i] = exprKind(i) % exprKinds
			list[i] = g.make(kinds[i], 2+i%4)
			fmt.Fprintf(&text, "  { %s v = %s; out[%d * threadIdx.x + %d] = ", exprNames[kinds[i]], list[i].text, count, i)
			text.WriteString([exprKinds]string{"v", "v", "__float_as_uint(v)", "(unsigned long long)__double_as_longlong(v)"}[kinds[i]] + "; }\n")
		}
		text.WriteString("}\n")
		arch := []string{"compute_75", "compute_80", "compute_90"}[seed%3]
		res, err := compiler.Compile(t.Context(), nvrtc.Source{Name: "expressions.cu", Text: text.String()}, nvrtc.Options{Arch: arch, Flags: []string{"-fmad=false"}})
		require.NoError(t, err, "%s", text.String())
		in := make([]uint32, 8*threads)
		for i := range in {
			in[i] = uint32(anyBits(g.r, 32))
		}
		out := runKernel(t, res.PTX, words(in...), 8*count*threads, threads)
		for th := range threads {
			for i, e := range list {
				want, got := e.eval(in[8*th:8*th+8]), binary.LittleEndian.Uint64(out[8*(count*th+i):])
				require.True(t, sameResult(kinds[i], want, got), "seed %d, thread %d, inputs %#x: %s %s = %#x, want %#x\n%s", seed, th, in[8*th:8*th+8], exprNames[kinds[i]], e.text, got, want, res.PTX)
			}
		}
	})
}

// runKernel runs kernel k(in, out) with one block.
func runKernel(t *testing.T, src, in []byte, outBytes int64, threads uint32) []byte {
	t.Helper()
	dev, err := vm.New(vm.Options{})
	require.NoError(t, err)
	defer dev.Close()
	ctx := context.Background()
	m, err := dev.Load(ctx, "k.ptx", src)
	require.NoError(t, err)
	a, err := dev.Alloc(int64(len(in)), 256)
	require.NoError(t, err)
	require.NoError(t, dev.Write(a, 0, in))
	b, err := dev.Alloc(outBytes, 256)
	require.NoError(t, err)
	report, err := dev.Launch(ctx, m, "k", bench.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{threads, 1, 1}, Args: []bench.Arg{bench.Pointer(a), bench.Pointer(b)}})
	require.NoError(t, err)
	require.Empty(t, report.Faults)
	out := make([]byte, outBytes)
	require.NoError(t, dev.Read(b, 0, out))
	return out
}
