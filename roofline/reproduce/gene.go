package reproduce

import (
	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/roofline/plot"
)

// grid is GENE's local domain of the run, in points: x, y, z, v, w and species.
// The run had 70 x 16 x 24 x 48 x 32 x 2 points, split in 3 along z and in 2
// along w.
type grid struct{ x, y, z, v, w, s float64 }

var geneGrid = grid{70, 16, 24 / 3, 48, 32 / 2, 2}

func (g grid) points() float64 { return g.x * g.y * g.z * g.v * g.w * g.s }

// work is a kernel's operations and bytes by hand. A point is a complex number
// of two fp64: 16 bytes; adding two takes 2 operations, multiplying by a real
// number 2, by a complex one 6.
type work struct{ flops, bytes float64 }

func geneWork(kernel string, g grid) work {
	n := g.points()
	withGhosts := (g.x + 4) * n / g.x // two beyond each end of x
	factors := 8 * 2 * n / g.y        // two real prefactors that do not depend on y
	switch kernel {
	case "ij_deriv": // stencil of 5 in x, a complex factor in y; two results
		return work{(5*2 + 4*2 + 6) * n, 16 * (withGhosts + 2*n)}
	case "update": // two products and two sums; reads three and writes one
		return work{8 * n, 16*4*n + factors}
	case "fused": // both
		return work{(5*2 + 4*2 + 6 + 8) * n, 16*(withGhosts+2*n) + factors}
	}
	// dzv: stencil of 13 in z and v with its coefficients
	return work{(13*2 + 12*2) * n, 16*(g.x*g.y*(g.z+4)*(g.v+4)*g.w*g.s+n) + 8*13*n/g.y}
}

// gene computes the paper's table from the profiler's counters (means over a
// kernel's launches; time and instructions are from different passes) and from
// the formulas. Its "G" is 2^30.
func gene(r *Result, t *table) error {
	r.Figure = &plot.Figure{
		Title: r.Title, Subtitle: "by formula and by counted bytes; decimal units, in which update lies above the memory's roof",
		Slopes: ertSlopes[2:], Roofs: ertRoofs,
	}
	estimated := plot.Series{Name: "by formula", From: bench.Formula}
	counted := plot.Series{Name: "counted", From: bench.Measured}
	for i := range t.rows {
		kernel := t.text(i, "kernel")
		seconds := t.number(i, "cycles") / t.number(i, "cycles_per_second")
		hand := geneWork(kernel, geneGrid)
		real := work{t.number(i, "dadd") + t.number(i, "dmul") + 2*t.number(i, "dfma"), t.number(i, "dram_bytes")}
		const g = 1 << 30
		for _, c := range []struct {
			column, label string
			computed      float64
		}{
			{"time_ms", "time, ms", seconds * 1e3},
			{"flop_rate_est", "flop rate by formula, 2^30/s", hand.flops / seconds / g},
			{"flop_rate", "flop rate counted, 2^30/s", real.flops / seconds / g},
			{"mem_rate_est", "memory rate by formula, GiB/s", hand.bytes / seconds / g},
			{"mem_rate", "memory rate counted, GiB/s", real.bytes / seconds / g},
			{"ai_est", "operations per byte by formula", hand.flops / hand.bytes},
			{"ai", "operations per byte counted", real.flops / real.bytes},
		} {
			r.add(kernel+": "+c.label, t.printed(i, c.column), exact(c.computed))
		}
		estimated.Dots = append(estimated.Dots, plot.Dot{Title: kernel + " by formula", TFLOPS: hand.flops / seconds / 1e12, At: hbm(hand.flops / hand.bytes)})
		counted.Dots = append(counted.Dots, plot.Dot{Label: kernel, Title: kernel + " counted", TFLOPS: real.flops / seconds / 1e12, At: hbm(real.flops / real.bytes)})
	}
	r.Figure.Series = []plot.Series{counted, estimated}
	return nil
}
