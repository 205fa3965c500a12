package plot

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/roofline"
)

// crowds are figures of very many points, of each class and of all, with what the legend
// says of them.
var crowds = []struct {
	name   string
	dot    func(i int, d *Dot)
	legend []string
}{
	{"plain", func(int, *Dot) {}, []string{"many (measured), 100000 merged"}},
	{"impossible", func(_ int, d *Dot) { d.Doubt = "impossible" }, []string{"impossible by rule, 100000 merged"}},
	{"impossible, each in its own words", func(i int, d *Dot) { d.Doubt = fmt.Sprintf("it takes %d times what the memory can do at its most", i) }, []string{"impossible by rule, 100000 merged"}},
	{"off the frame", func(i int, d *Dot) {
		d.TFLOPS *= 1e12
		if i%2 == 0 {
			d.At = []roofline.Intensity{{Level: roofline.HBM, Value: d.At[0].Value * 1e30}}
		}
	}, []string{"outside the frame, 100000 merged"}},
	{"labels", func(i int, d *Dot) { d.Label = fmt.Sprintf("point %d", i) }, []string{"many (measured), 99800 merged"}},
	{"all the best", func(i int, d *Dot) { d.Best, d.Label = true, fmt.Sprintf("point %d", i) }, []string{"many (measured), 99800 merged"}},
	{"levels", func(_ int, d *Dot) {
		d.At = append(d.At, roofline.Intensity{Level: roofline.L2, Value: d.At[0].Value / 2}, roofline.Intensity{Level: roofline.Shared, Value: d.At[0].Value / 9})
	}, []string{"many (measured), 100000 merged"}},
	{"long names", func(i int, d *Dot) {
		d.Title = fmt.Sprintf("void cutlass::Kernel<cutlass::gemm::kernel::GemmUniversal<%d, \"%x\">>(Params) %s", i, i*7919, strings.Repeat("&", 200))
	}, []string{"many (measured), 100000 merged"}},
	{"all of these", func(i int, d *Dot) {
		d.Title = fmt.Sprintf("kernel<%d> %s", i, strings.Repeat(fmt.Sprint(i, " "), 20))
		d.Hollow, d.Best = i%5 == 0, i%7 == 0
		if i%2 == 0 {
			d.Doubt = fmt.Sprintf("doubt %d", i)
		}
		if i%3 == 0 {
			d.TFLOPS *= 1e12
		}
		if i%4 == 0 {
			d.Label = d.Title
		}
	}, []string{"outside the frame, 33267 merged", "impossible by rule, 33267 merged"}},
}

func crowd(n int, of func(i int, d *Dot)) *Figure {
	random := rand.New(rand.NewPCG(3, 5))
	f := &Figure{
		Title:  "many",
		Slopes: []Slope{{"HBM 3352 GB/s", 3352, false}}, Roofs: []Roof{{"989 TFLOP/s", 989, false}},
		Series: []Series{{Name: "many", From: bench.Measured}},
	}
	for i := range n {
		d := Dot{Title: fmt.Sprintf("point %d", i), TFLOPS: 900 * math.Pow(10, -3*random.Float64()), At: []roofline.Intensity{{Level: roofline.HBM, Value: math.Pow(10, 4*random.Float64())}}}
		of(i, &d)
		f.Series[0].Dots = append(f.Series[0].Dots, d)
	}
	return f
}

// TestCrowds: whatever 100 000 points are, every format stays small, the drawing has few
// elements, and the page keeps each point.
func TestCrowds(t *testing.T) {
	const most, elements = 5_000_000, 3 * cloudFrom
	for _, c := range crowds {
		t.Run(c.name, func(t *testing.T) {
			f := crowd(100_000, c.dot)
			f.Series[0].Joined = c.name == "all of these"
			scene, err := f.Scene()
			require.NoError(t, err)
			n, legend := 0, ""
			for _, g := range scene.Groups {
				n += len(g.Elements)
				for _, e := range g.Elements {
					if g.Name == "legend" && e.Text != nil {
						legend += e.Text.Text + ", "
					}
				}
			}
			require.Less(t, n, elements)
			require.GreaterOrEqual(t, len(scene.Data), 100_000)
			for _, words := range c.legend {
				require.Contains(t, legend, words)
			}
			for _, ext := range []string{"svg", "html", "pdf"} {
				b, err := scene.Encode("a." + ext)
				require.NoError(t, err)
				require.Less(t, len(b), most, ext)
			}
		})
	}
}

// TestFewStay: of few points each has its own words, and of many those of which few are odd.
func TestFewStay(t *testing.T) {
	few := crowd(cloudFrom, func(_ int, d *Dot) { d.Doubt = "odd" })
	scene, err := few.Scene()
	require.NoError(t, err)
	svg, err := scene.SVG()
	require.NoError(t, err)
	require.Equal(t, cloudFrom, strings.Count(string(svg), "; odd</title>"))
	require.NotContains(t, string(svg), "merged")

	many := crowd(2*cloudFrom, func(i int, d *Dot) {
		if i%100 == 0 {
			d.Doubt = "odd"
		}
	})
	scene, err = many.Scene()
	require.NoError(t, err)
	svg, err = scene.SVG()
	require.NoError(t, err)
	require.Equal(t, 20, strings.Count(string(svg), "; odd</title>"))
	require.Contains(t, string(svg), "many (measured), 1980 merged")
}

// TestManyPaths: of very many changes the longest are drawn, and the rest counted.
func TestManyPaths(t *testing.T) {
	r := device(t, "a100")
	s := &Subject{Title: "changes", Subtitle: "A100"}
	for i := range 5000 {
		k := roofline.Kernel{
			Name: fmt.Sprintf("kernel %d", i), TimeUS: float64(100 + i), From: bench.Measured,
			Work: roofline.Work{Operations: []roofline.Operations{{Math: target.BF16, Count: roofline.Formula(1e9)}}, HBMBytes: roofline.Counted(1e6)},
		}
		j, err := k.Judge(r)
		require.NoError(t, err)
		s.Paths = append(s.Paths, Path{Name: k.Name, Kernels: []*roofline.Judged{j, j}, Arrows: true})
	}
	for _, v := range []View{RateView, TimeView, FloorView} {
		scene, err := s.Draw(v)
		require.NoError(t, err)
		svg, err := scene.SVG()
		require.NoError(t, err)
		require.Less(t, len(svg), 1_000_000, v)
		if v == RateView {
			require.Contains(t, string(svg), "the longest 60 of the paths, without 4940 more")
			require.Contains(t, string(svg), "kernel 4999")
			require.NotContains(t, string(svg), "kernel 4939<")
		}
	}
}

// TestLongProgress: a search of very many configurations is drawn as clouds.
func TestLongProgress(t *testing.T) {
	p := Progress{Title: "long", US: make([]float64, 100_000), From: bench.Predicted}
	for i := range p.US {
		if i%3 > 0 {
			p.US[i] = 100 + float64(i*7919%5000)
		}
	}
	scene, err := p.Scene()
	require.NoError(t, err)
	for _, ext := range []string{"svg", "html", "pdf", "png"} {
		b, err := scene.Encode("a." + ext)
		require.NoError(t, err)
		require.Less(t, len(b), 5_000_000, ext)
		require.NotEmpty(t, b)
	}
}

// TestLettersThatFontsLack: a PNG and a PDF have a question mark where SVG has the letter.
func TestLettersThatFontsLack(t *testing.T) {
	drawn := func(name, ext string) []byte {
		s := &Scene{Width: 100, Height: 40}
		s.group("labels", false).text(Text{At: Point{5, 20}, Size: 12, Fill: ink, Text: name})
		b, err := s.Encode("a." + ext)
		require.NoError(t, err)
		return b
	}
	for _, ext := range []string{"png", "pdf"} {
		require.Equal(t, drawn("a ? b", ext), drawn("a \U0001f680 b", ext), ext)
		require.Equal(t, drawn("a ? b", ext), drawn("a \u2764\ufe0f b", ext), ext)
		require.NotEqual(t, drawn("a ? b", ext), drawn("a x b", ext), ext)
	}
	require.Contains(t, string(drawn("a \U0001f680 b", "svg")), "\U0001f680")
}

// TestFewAreAllNamed: of few points close together each has its label, if with a leader that
// crosses others.
func TestFewAreAllNamed(t *testing.T) {
	f := crowd(0, nil)
	f.Series = nil
	for i, tflops := range []float64{13.4, 12.2, 10.3, 9.4, 8.6} {
		f.Series = append(f.Series, Series{Name: fmt.Sprint(i), Dots: []Dot{{
			Label: fmt.Sprintf("%g TFLOP/s: point %d", tflops, i), TFLOPS: tflops, At: []roofline.Intensity{{Level: roofline.HBM, Value: 4}},
		}}})
	}
	scene, err := f.Scene()
	require.NoError(t, err)
	svg, err := scene.SVG()
	require.NoError(t, err)
	for i := range f.Series {
		require.Contains(t, string(svg), fmt.Sprintf("point %d</text>", i))
	}
}
