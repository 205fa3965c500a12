package vm

import (
	"fmt"
	"math"

	"github.com/kgen-dev/kgen/codegen/ptx"
	"github.com/kgen-dev/kgen/ir/num"
)

// Tensor is how tensor cores add the products of floats.
type Tensor string

// Ways to add.
const (
	Ordered Tensor = ""      // in the order of K, each sum rounded to f32
	Fused   Tensor = "exact" // as the GPU's do, bit for bit where that was published
)

// ParseTensor reads "ordered" or "exact".
func ParseTensor(s string) (Tensor, error) {
	switch s {
	case "", "ordered":
		return Ordered, nil
	case "exact":
		return Fused, nil
	}
	return "", fmt.Errorf("tensor cores %q: want ordered or exact", s)
}

// fusedSum is how a tensor core adds products to an accumulator. All terms, the
// accumulator among them, are cut off, towards zero, a number of bits below the
// largest exponent; what remains is added exactly and rounded once. A product's
// exponent is the sum of its factors', and those of subnormals are the least of
// their format.
//
// The model and its figures: Xie, Wang, Yang and Yang, "MMA-Sim", arXiv
// 2511.10909; Khattak and Mikaitis, "Accurate Models of NVIDIA Tensor Cores",
// arXiv 2512.07004, whose measurements on GPUs the tests hold it to; both agree
// with Fasi et al., PeerJ CS 7:e330 on what these found for Volta to Ampere.
// Nobody has published that of sparse products and of 4- and 6-bit floats
// without block scales: they follow the dense ones.
type fusedSum struct {
	a, b     significands
	fraction int  // bits kept below the largest exponent
	kept     int  // fraction bits of a result of f32
	step     int  // elements of K that are added at once
	half     bool // results are of f16, rounded to nearest even; else of f32, cut off

	// apart says that ptxas 13.0 makes two products of f16 of one of 8-bit floats,
	// the first of the lower two of each four elements, and adds the accumulator
	// to them by an instruction of its own.
	apart bool

	// group is how many products of e2m1 with block scales are added exactly, and
	// scaled, before they count as one term; 0: each product is a term.
	group  int
	scales significands
}

// significands says how a format's values are split.
type significands struct {
	fraction int // bits
	least    int // exponent of normal values
}

var significandsOf32 = significandsOf(num.F32)

func significandsOf(f num.Format) significands {
	return significands{f.Mantissa(), math.Ilogb(f.MinNormal())}
}

// tensorFormats are the formats of operands.
var tensorFormats = map[ptx.Type]num.Format{
	ptx.F16: num.F16, ptx.BF16: num.BF16, ptx.TF32: num.TF32, ptx.E4M3: num.E4M3, ptx.E5M2: num.E5M2,
	ptx.E3M2: num.E3M2, ptx.E2M3: num.E2M3, ptx.E2M1: num.E2M1, packedE2M1: num.E2M1,
}

// fusedSum is how the module's GPU adds for an instruction ("mma", "wmma",
// "wgmma", "tcgen05"), nil if the device does not ask for it or there are no
// floats to round or no tensor core does it.
func (m *module) fusedSum(kind string, op *mmaOp) *fusedSum {
	fa, okA := tensorFormats[op.at]
	fb, okB := tensorFormats[op.bt]
	sm := m.gpu.CC.SM()
	if m.dev.opt.Tensor != Fused || !okA || !okB || op.m == 8 && op.k == 4 && sm >= 80 {
		return nil // the last one's tensor cores have no such product, and ptxas adds in an order of its own
	}
	s := &fusedSum{a: significandsOf(fa), b: significandsOf(fb), fraction: 25, kept: num.F32.Mantissa(), step: op.k, half: op.dt == ptx.F16}
	narrow := fa.Bits() <= 8
	if op.scale != nil {
		s.scales = significands{0, -127} // of ue8m0
		if op.scale.ue4m3 {
			s.scales = significandsOf(num.E4M3)
		}
	}
	if op.at == packedE2M1 {
		s.fraction, s.group = 35, 16
		if op.sparse != nil {
			s.group *= 2
		}
		return s
	}
	switch {
	case sm < 75:
		s.fraction, s.step = 23, 4
	case sm < 90:
		s.fraction = 24
		s.step = 8 // of a dense product
		if op.at == ptx.TF32 {
			s.step = 4
		}
	}
	switch {
	case !narrow || kind == "tcgen05":
	case kind == "wgmma":
		s.fraction, s.kept = 13, 13
	case sm == 89:
		s.fraction, s.kept, s.step = 13, 13, 16
	case sm >= 90 && sm < 120:
		s.a, s.b, s.apart, s.step = significandsOf(num.F16), significandsOf(num.F16), true, op.k/2
		return s
	}
	if op.sparse != nil && s.step < op.k {
		s.step *= 2
	}
	s.step = min(s.step, op.k)
	return s
}

// notFinite is the exponent of infinities and NaN.
const notFinite = 1 << 13

// exponent is a finite value's of the format.
func (f significands) exponent(v float32) int32 {
	switch e := int32(math.Float32bits(v) >> 23 & 0xff); {
	case v == 0:
		return -126
	case e == 0xff:
		return notFinite
	default:
		return max(e-127, int32(f.least)) // of subnormal f32 too, as no format has a lower one
	}
}

// power is 2 to the n-th.
func power(n int32) float64 { return math.Float64frombits(uint64(n+1023) << 52) }

// add returns c + x*y for a step of K. a and b are the exponents of x and y.
func (s *fusedSum) add(c float32, a, b []int32, x, y []float64) float32 {
	b, y = b[:len(a)], y[:len(x)]
	top := significandsOf32.exponent(c)
	for i, e := range a {
		top = max(top, e+b[i])
	}
	if top >= notFinite-1<<10 {
		return special(c, x, y)
	}
	// The products, and with a power of two, are exact in f64; converting them
	// cuts off.
	unit := power(int32(s.fraction) - top)
	sum := int64(float64(c) * unit)
	for i, v := range x {
		sum += int64(v * y[i] * unit)
	}
	return s.round(float64(sum) * power(top-int32(s.fraction))) // exact
}

// special is a sum with infinities or NaN.
func special(c float32, x, y []float64) float32 {
	sum := float64(c)
	for i, v := range x {
		sum += v * y[i]
	}
	if sum != sum {
		return canonicalNaN
	}
	return float32(sum)
}

// keptBits are the bits of a sum in f64 that a result of f32 has.
func (s *fusedSum) keptBits() uint64 { return ^uint64(0) << ((52 - s.kept) & 63) }

// round is a sum as the result's format holds it.
func (s *fusedSum) round(sum float64) float32 {
	switch size := math.Abs(sum); {
	case sum == 0:
		return 0
	case s.half:
		return half(num.F16FromF64(sum))
	case size >= 0x1p128:
		return float32(math.Copysign(math.Inf(1), sum))
	case size >= 0x1p-126:
		return float32(math.Float64frombits(math.Float64bits(sum) & s.keptBits()))
	default: // a subnormal number, of multiples of 2^-149
		cut := uint32(size*0x1p149) >> (23 - s.kept) << (23 - s.kept)
		return float32(math.Copysign(float64(cut)*0x1p-149, sum))
	}
}

// dot returns c + x*y for the whole of K, step by step.
func (s *fusedSum) dot(c float32, a, b []int32, x, y []float64) float32 {
	sum := c
	if s.apart {
		sum = 0
	}
	for k := 0; k < len(a); k += s.step {
		end := min(k+s.step, len(a))
		sum = s.add(sum, a[k:end], b[k:end], x[k:end], y[k:end])
	}
	if s.apart {
		return s.joined(c, sum)
	}
	return sum
}

// joined is an accumulator and a sum that an instruction of its own adds.
func (s *fusedSum) joined(c, sum float32) float32 {
	if s.half {
		return half(num.F16FromF32(c + sum))
	}
	return c + sum
}

// fusedMatrix is an operand as its rows, or columns, of k numbers.
type fusedMatrix struct {
	exponents []int32
	values    []float64
}

// prepare takes n rows of k values: where products are two, the lower two of each four
// first.
func (m *fusedMatrix) prepare(s *fusedSum, f significands, values []float32, n, k int) {
	values = values[:n*k]
	m.exponents, m.values = grown(m.exponents, n*k), grown(m.values, n*k)
	for i, v := range values {
		at := i
		if s.apart {
			col := i % k
			at += col>>2<<1 + col&1 + col>>1&1*(k/2) - col
		}
		m.exponents[at], m.values[at] = f.exponent(v), float64(v)
	}
}

// scale multiplies rows of k values by block scales, an equal part of K by each.
func (m *fusedMatrix) scale(s *fusedSum, scales [][4]float64, k, parts int) {
	for i := range m.values {
		scale := scales[i/k][i%k*parts/k]
		m.exponents[i] += s.scales.exponent(float32(scale))
		m.values[i] *= scale
	}
}

// fusedTiles is room for the operands of one product.
type fusedTiles struct{ a, b, sided fusedMatrix }

// prepareRows takes rows of A, of k values each.
func (t *fusedTiles) prepareRows(s *fusedSum, a []float32, rows, k int) {
	t.a.prepare(s, s.a, a, rows, k)
}

// prepare takes rows of A and columns of B, of k values each.
func (t *fusedTiles) prepare(s *fusedSum, a, b []float32, rows, cols, k int) {
	t.prepareRows(s, a, rows, k)
	t.b.prepare(s, s.b, b, cols, k)
}

// dot returns c and the product of a row and a column.
func (t *fusedTiles) dot(s *fusedSum, c float32, row, col, k int) float32 {
	row *= k
	col *= k
	return s.dot(c, t.a.exponents[row:row+k], t.b.exponents[col:col+k], t.a.values[row:row+k], t.b.values[col:col+k])
}

// prepareScaled takes rows of A and columns of B with block scales.
func (t *fusedTiles) prepareScaled(s *fusedSum, a, b []float32, scaleA, scaleB [][4]float64, k, parts int) {
	t.prepare(s, a, b, len(scaleA), len(scaleB), k)
	if s.group == 0 {
		t.a.scale(s, scaleA, k, parts)
		t.b.scale(s, scaleB, k, parts)
	}
}

// scaled returns c and the product of a row and a column with block scales, some
// products of which count as one term.
func (s *fusedSum) scaled(c float32, t *fusedTiles, row, col, k int, sa, sb []float64) float32 {
	x, y := t.a.values[row*k:][:k], t.b.values[col*k:][:k]
	top := significandsOf32.exponent(c)
	for i := range sa {
		if scale := sa[i] * sb[i]; scale != scale {
			return canonicalNaN
		}
		top = max(top, s.scales.exponent(float32(sa[i]))+s.scales.exponent(float32(sb[i])))
	}
	if top >= notFinite-1<<10 {
		return c // an infinity or NaN
	}
	unit := power(int32(s.fraction) - top)
	sum := int64(float64(c) * unit)
	for i := 0; i < k; i += s.group {
		var products float64
		for j := i; j < i+s.group; j++ {
			products += x[j] * y[j]
		}
		sum += int64(products * sa[i*len(sa)/k] * sb[i*len(sb)/k] * unit)
	}
	return s.round(float64(sum) * power(top-int32(s.fraction))) // exact
}
