package model

import (
	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/codegen/target"
)

// mathOf is the arithmetic of a form of mma.sync.
func mathOf(m simt.Mma) target.Math {
	switch m {
	case simt.MmaM16N8K16F16, simt.MmaM16N8K8F16:
		return target.F16Acc32
	case simt.MmaM16N8K16F16AccF16, simt.MmaM16N8K8F16AccF16:
		return target.F16Acc16
	case simt.MmaM16N8K16BF16, simt.MmaM16N8K8BF16:
		return target.BF16
	case simt.MmaM16N8K8TF32, simt.MmaM16N8K4TF32:
		return target.TF32
	case simt.MmaM16N8K32S8, simt.MmaM16N8K16S8, simt.MmaM16N8K32U8:
		return target.I8
	case simt.MmaM16N8K32E4M3, simt.MmaM16N8K32E5M2:
		return target.F8Acc32
	}
	return target.F64Tensor
}

// wgmmaMath is the arithmetic of a form of wgmma.
func wgmmaMath(f simt.Wgmma) target.Math {
	switch f {
	case simt.WgmmaF16:
		return target.F16Acc32
	case simt.WgmmaF16AccF16:
		return target.F16Acc16
	case simt.WgmmaBF16:
		return target.BF16
	case simt.WgmmaTF32:
		return target.TF32
	}
	return target.F8Acc32
}

// wgmmaCycles is how many cycles of the SM's ordinary clock a piece of a wgmma
// instruction keeps all tensor cores of an SM busy, at their peak; 0 where the GPU lacks
// it.
func wgmmaCycles(g *target.GPU, f simt.Wgmma) float64 {
	peak, ok := g.Peak(wgmmaMath(f))
	if !ok {
		return 0
	}
	return float64(simt.WgmmaPieceFLOPs(f)) * float64(g.SMs) / (peak.TFLOPS * 1e6) * g.Clock()
}

// mmaCycles is how many cycles of the SM's ordinary clock one instruction keeps all
// tensor cores of an SM busy, at the share of their peak that mma.sync reaches; 0
// where the GPU lacks it.
func mmaCycles(g *target.GPU, m simt.Mma) float64 {
	math := mathOf(m)
	peak, ok := g.Peak(math)
	if !ok {
		return 0
	}
	share := 1.0
	if s, known := g.MMASyncOfPeak(); known && math != target.F64Tensor {
		share = s
	}
	i := m.Info()
	us := 2 * float64(i.M*i.N*i.K) * float64(g.SMs) / (peak.TFLOPS * 1e6 * share)
	return us * g.Clock()
}
