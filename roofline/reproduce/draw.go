package reproduce

import (
	"math"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/roofline"
	"github.com/kgen-dev/kgen/roofline/plot"
)

// mark is a published point: its rate in TFLOP/s and its operations per byte,
// one for each level of memory.
type mark struct {
	label string // in the drawing; empty in a cloud
	title string // in rows and on hover
	rate  quantity
	at    []intensity
}

type intensity struct {
	level roofline.Unit
	value quantity
}

func atHBM(q quantity) []intensity { return []intensity{{roofline.HBM, q}} }

// drawing is a series of marks of the result's figure.
type drawing struct {
	result *Result
	marks  [][]mark
}

func (d *drawing) series(name string, joined bool, marks []mark) {
	s := plot.Series{Name: name, From: bench.Measured, Joined: joined}
	for _, m := range marks {
		dot := plot.Dot{Label: m.label, Title: m.title, TFLOPS: m.rate.value}
		for _, a := range m.at {
			dot.At = append(dot.At, roofline.Intensity{Level: a.level, Value: a.value.value})
		}
		s.Dots = append(s.Dots, dot)
	}
	d.result.Figure.Series = append(d.result.Figure.Series, s)
	d.marks = append(d.marks, marks)
}

// readBack sets beside every published rate, in units of scale TFLOP/s, where
// its marker stands in the drawing, read off the axes as a reader would; and
// with intensities the operations per byte too. A back end writes hundredths of
// a pixel, which is what the reading may be off.
func (d *drawing) readBack(unit string, scale float64, intensities bool) error {
	scene, err := d.result.Figure.Scene()
	if err != nil {
		return err
	}
	for _, datum := range scene.Data {
		m := d.marks[datum.Series][datum.Dot]
		at := plot.Point{X: hundredths(datum.At.X), Y: hundredths(datum.At.Y)}
		x, y := scene.Read(at)
		dx, dy := scene.Read(plot.Point{X: at.X + 0.005, Y: at.Y - 0.005})
		if datum.Level == m.at[0].level {
			d.result.add(m.title+": "+unit+", as drawn", m.rate.scaled(1/scale), quantity{y, math.Abs(dy - y)}.scaled(1/scale))
		}
		for _, a := range m.at {
			if intensities && a.level == datum.Level {
				d.result.add(m.title+", "+string(a.level)+": operations per byte, as drawn", a.value, quantity{x, math.Abs(dx - x)})
			}
		}
	}
	return nil
}

func hundredths(v float64) float64 { return math.Round(v*100) / 100 }
