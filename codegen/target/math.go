package target

import "slices"

// Math is a kind of arithmetic with its accumulator, named as in gpus.json.
type Math string

// Kinds of arithmetic. Those up to BF16Vector run on the ordinary pipes, the
// rest on tensor cores.
const (
	F64        Math = "fp64"
	F32        Math = "fp32"
	F16Vector  Math = "fp16_vec" // packed half2 arithmetic
	BF16Vector Math = "bf16_vec"
	F64Tensor  Math = "fp64_tensor"
	TF32       Math = "tf32"       // f32 accumulator
	F16Acc32   Math = "fp16_acc32" // f16 operands, f32 accumulator
	F16Acc16   Math = "fp16_acc16" // f16 operands, f16 accumulator
	BF16       Math = "bf16"       // f32 accumulator
	F8Acc32    Math = "fp8_acc32"  // e4m3 or e5m2 operands, f32 accumulator
	F8Acc16    Math = "fp8_acc16"
	F4         Math = "fp4" // e2m1 operands with block scales, f32 accumulator
	I8         Math = "int8"
)

// Maths returns every kind, in a fixed order.
func Maths() []Math {
	return []Math{F64, F64Tensor, F32, F16Vector, BF16Vector, TF32, F16Acc32, F16Acc16, BF16, F8Acc32, F8Acc16, F4, I8}
}

// Tensor reports whether the kind runs on tensor cores.
func (m Math) Tensor() bool {
	switch m {
	case F64, F32, F16Vector, BF16Vector:
		return false
	}
	return true
}

// Peak is a dense compute peak: SMs x Rate x 2 x Clock.
type Peak struct {
	Math     Math
	TFLOPS   float64 // TOPS for int8; 1 FMA = 2 operations; dense
	Rate     float64 // FMA per SM per clock; 0 if only the published peak is known
	ClockMHz float64
	Basis    Basis // Device where computed from rate and clock, else Published
}

// Rate returns the dense rate in FMA per SM per clock; false where the GPU
// lacks the kind or nobody knows the rate.
func (g *GPU) Rate(m Math) (float64, bool) {
	r, ok := g.rates[m]
	return r, ok
}

// Peak returns the dense peak of a kind of arithmetic, computed from rate and
// clock; the published figure only where no clock is known. False where the
// GPU lacks the kind or nobody knows its rate.
func (g *GPU) Peak(m Math) (Peak, bool) {
	rate, ok := g.rates[m]
	if !ok {
		return Peak{}, false
	}
	clock := g.ClockMHz
	if m.Tensor() && !slices.Contains(g.arch.BoostClock, m) {
		clock = g.TensorClockMHz
	}
	if clock > 0 {
		return Peak{m, float64(g.SMs) * rate * 2 * clock / 1e6, rate, clock, Device}, true
	}
	published, ok := g.PublishedTFLOPS[m]
	if !ok {
		return Peak{}, false
	}
	return Peak{m, published, rate, published * 1e6 / (float64(g.SMs) * rate * 2), Published}, true
}
