// Package cloud draws all that libraries reached for an operation on a GPU, of
// every shape that was measured, with the roof that they make together.
package cloud

import (
	"fmt"
	"slices"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/roofline"
	"github.com/kgen-dev/kgen/roofline/measured"
	"github.com/kgen-dev/kgen/roofline/plot"
)

// Cloud is every sample of an operation, a GPU and a type of operands.
type Cloud struct {
	GPU  *target.GPU
	Op   measured.Op
	Type string
	Best *measured.Peaks

	Doubts map[measured.Doubt]int // samples by what is doubtful about them
	Odd    []Point                // the impossible ones
	Figure *plot.Figure
}

// Point is a sample in words and rates.
type Point struct {
	Shape   string  `json:"shape"`
	Library string  `json:"library"`
	US      float64 `json:"us"`
	TFLOPS  float64 `json:"tflops"`
	GBs     float64 `json:"gbs"`
}

// Of collects and draws the samples. The error names what the tables lack.
func Of(g *target.GPU, op measured.Op, typ string) (*Cloud, error) {
	best, err := measured.Best(op, g.ID, typ)
	if err != nil {
		return nil, err
	}
	c := &Cloud{GPU: g, Op: op, Type: typ, Best: best, Doubts: map[measured.Doubt]int{}, Figure: figure(g, op, typ, best)}
	err = measured.Each(op, g.ID, typ, func(s *measured.Sample) error {
		c.add(s)
		return nil
	})
	return c, err
}

// figure has the roofs of the hardware and those of the libraries.
func figure(g *target.GPU, op measured.Op, typ string, best *measured.Peaks) *plot.Figure {
	f := &plot.Figure{
		Title: fmt.Sprintf("%s of %s on %s: every shape that was measured", op, typ, g.Name),
		Subtitle: fmt.Sprintf("%d points, %d impossible by rule; best of all shapes %.4g TFLOP/s (%s); operations and least bytes by formula",
			best.Points, best.Impossible, best.TFLOPS, best.TFLOPSShape),
		Memory: g.Memory(),
		Slopes: []plot.Slope{plot.MemorySlope(g.Memory(), best.Ceilings.HBM)},
		Roofs: []plot.Roof{
			plot.PeakRoof(best.Ceilings.Peak),
			{Label: fmt.Sprintf("best of all shapes %.4g TFLOP/s (measured)", best.TFLOPS), TFLOPS: best.TFLOPS, Second: true},
		},
	}
	if best.GBs > 0 {
		f.Slopes = append(f.Slopes, plot.Slope{Label: fmt.Sprintf("best of large shapes %.0f GB/s (measured)", best.GBs), GBs: best.GBs, Second: true})
	}
	return f
}

func (c *Cloud) add(s *measured.Sample) {
	doubt := c.Best.Ceilings.Doubt(s)
	flops, bytes := s.FLOPs(), s.Bytes()
	p := Point{s.Shape(), s.Library(), s.US, flops / s.US / 1e6, bytes / s.US / 1e3}
	dot := plot.Dot{Title: p.Shape, TFLOPS: p.TFLOPS, At: []roofline.Intensity{{Level: roofline.HBM, Value: flops / bytes}}}
	switch doubt {
	case measured.Impossible:
		dot.Doubt = string(doubt)
		c.Odd = append(c.Odd, p)
	case measured.Cached, measured.Boosted:
		dot.Title += "; " + string(doubt)
	}
	if doubt != "" {
		c.Doubts[doubt]++
	}
	all := &c.Figure.Series
	i := slices.IndexFunc(*all, func(t plot.Series) bool { return t.Name == p.Library })
	if i < 0 {
		i = len(*all)
		*all = append(*all, plot.Series{Name: p.Library, From: bench.Measured})
	}
	(*all)[i].Dots = append((*all)[i].Dots, dot)
}
