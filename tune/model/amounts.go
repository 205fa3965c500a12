package model

import "github.com/kgen-dev/kgen/codegen/simt"

// amounts are what a block does on each unit.
type amounts struct {
	issue, fma, alu, mufu float64 // warp instructions
	wavefronts            float64
	bars                  float64 // waited at, by warps
	fills                 float64 // of buffers, by tensor maps or by each warp that copies
	loads                 float64 // bytes
	mma                   [simt.NumMmas]float64
	wgmma                 [simt.NumWgmmas]float64 // pieces
}

func amountsOf(c *simt.Counts) amounts {
	a := amounts{
		issue:      float64(c.Issue()),
		fma:        float64(c.Pipe[simt.PipeFMA]),
		alu:        float64(c.Pipe[simt.PipeALU] + c.Pipe[simt.PipeCvt]),
		mufu:       float64(c.Pipe[simt.PipeMUFU]),
		wavefronts: float64(c.Waves),
		bars:       float64(c.Bars),
		fills:      float64(c.Fills),
		loads:      float64(c.Loads),
	}
	for m, n := range c.Mma {
		a.mma[m] = float64(n)
	}
	for f, n := range c.Wgmma {
		a.wgmma[f] = float64(n)
	}
	return a
}

// mix is a point of the line from a to b: a at 0, b at 1.
func (a *amounts) mix(b *amounts, t float64) amounts {
	line := func(x, y float64) float64 { return x + t*(y-x) }
	m := amounts{
		issue: line(a.issue, b.issue), fma: line(a.fma, b.fma), alu: line(a.alu, b.alu), mufu: line(a.mufu, b.mufu),
		wavefronts: line(a.wavefronts, b.wavefronts), bars: line(a.bars, b.bars), fills: line(a.fills, b.fills), loads: line(a.loads, b.loads),
	}
	for i := range m.mma {
		m.mma[i] = line(a.mma[i], b.mma[i])
	}
	for i := range m.wgmma {
		m.wgmma[i] = line(a.wgmma[i], b.wgmma[i])
	}
	return m
}
