package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/target"
	_ "github.com/kgen-dev/kgen/internal/fixedseed" // of rapid
	"github.com/kgen-dev/kgen/roofline"
)

var update = flag.Bool("update", false, "write the golden SVGs anew")

func golden(t *testing.T, name string, f *Figure) {
	t.Helper()
	scene, err := f.Scene()
	require.NoError(t, err)
	clearOfRoofs(t, scene)
	goldenScene(t, name, scene)
}

// clearOfRoofs requires that no label lies across a roof or a slope where it binds.
func clearOfRoofs(t *testing.T, scene *Scene) {
	t.Helper()
	var drawn []*Line
	var texts []*Text
	for _, g := range scene.Groups {
		for _, e := range g.Elements {
			switch {
			case g.Name == "ceilings" && e.Line.Style.Stroke == ink:
				drawn = append(drawn, e.Line)
			case e.Text != nil && strings.HasSuffix(g.Name, "labels"):
				texts = append(texts, e.Text)
			}
		}
	}
	require.NotEmpty(t, drawn)
	for _, text := range texts {
		for _, b := range text.boxes() {
			for _, l := range drawn {
				clear := along(l.Points[0], l.Points[1], func(at box) bool { return at.x0 <= b.x0 || at.x0 >= b.x1 || at.y0 <= b.y0 || at.y0 >= b.y1 })
				require.True(t, clear, "%q lies across a roof", text.Text)
			}
		}
	}
}

func goldenScene(t *testing.T, name string, scene *Scene) {
	t.Helper()
	var got bytes.Buffer
	require.NoError(t, scene.WriteSVG(&got))
	path := filepath.Join("testdata", name+".svg")
	if *update {
		require.NoError(t, os.WriteFile(path, got.Bytes(), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run with -update to write it")
	require.True(t, bytes.Equal(want, got.Bytes()), "%s differs: run with -update and look at it", path)
}

func device(t testing.TB, gpu string) roofline.Roofs {
	g, err := target.Lookup(gpu)
	require.NoError(t, err)
	return roofline.DeviceRoofs(g)
}

// run is a made-up tuning run of the standard attention problem.
func run(t testing.TB, gpu string, n int) ([]Entry, int) {
	random := rand.New(rand.NewPCG(7, 11))
	r := device(t, gpu)
	var entries []Entry
	best := 0
	for i := range n {
		w := roofline.Work{
			Operations:  []roofline.Operations{{Math: target.BF16, Count: roofline.Formula(549755813888)}},
			HBMBytes:    roofline.Formula(335544320 * (1 + 0.3*random.Float64())),
			L2Bytes:     roofline.Counted(2.2e9 * (1 + 3*random.Float64())),
			SharedBytes: roofline.Counted(17e9 * (1 + random.Float64())),
			MUFU:        roofline.Formula(1.07e9),
		}
		a, err := roofline.Assess(r, w)
		require.NoError(t, err)
		v, err := a.Judge(a.LeastUS()*(1.7+6*random.Float64()*random.Float64()), bench.Predicted)
		require.NoError(t, err)
		entries = append(entries, Entry{fmt.Sprintf("%dx%d, %d stages, %d warps", 64<<(i%2), 32<<(i%3), 2+i%3, 4<<(i%2)), v})
		if v.TimeUS < entries[best].Verdict.TimeUS {
			best = i
		}
	}
	return entries, best
}

func TestTuningRun(t *testing.T) {
	entries, best := run(t, "h100", 96)
	f, err := TuningRun("flashattn batch=4 heads=32 kv-heads=8 seq=4096 seq-kv=4096 head-dim=128 causal=true dtype=bf16", entries, best)
	require.NoError(t, err)
	require.NoError(t, f.Measured("vLLM 0.14.0, float16", 1127, entries[best].Verdict.Assessment))
	golden(t, "tuning_h100", f)
	entries, best = run(t, "a100", 64)
	f, err = TuningRun("flashattn on A100", entries, best)
	require.NoError(t, err)
	golden(t, "tuning_a100", f)
}

// GPP on V100 by NERSC: six versions, each at three levels of memory.
// Source: cyanguwa/nersc-roofline at 65487eb4, data_hierarchical.txt (figures).
func TestHierarchicalGPP(t *testing.T) {
	f := &Figure{
		Title:    "GPP on V100, six versions",
		Subtitle: "measured by NERSC; roofs by ERT",
		Slopes:   []Slope{{"L1 14336 GB/s", 14336, false}, {"L2 2997 GB/s (measured)", 2996.77, false}, {"HBM 829 GB/s (measured)", 828.758, false}},
		Roofs:    []Roof{{"FMA 7.07 TFLOP/s", 7.06886, false}, {"no FMA 3.54 TFLOP/s", 3.53579, true}},
	}
	for i, row := range [][4]float64{
		{2.584785579, 2.250285265, 0.865326481, 2085.756683},
		{4.738878073, 3.34359685, 1.556526957, 3593.593112},
		{6.892970567, 3.245471837, 2.222121895, 4381.739349},
		{9.047063062, 3.766406852, 2.863508257, 4625.535516},
		{11.08619259, 4.356477696, 3.446245893, 4599.764097},
		{13.21154434, 5.182021625, 4.034947498, 4692.209405},
	} {
		f.Series = append(f.Series, Series{Name: fmt.Sprintf("nw = %d", i+1), From: bench.Measured, Dots: []Dot{{
			Label: fmt.Sprintf("nw %d", i+1), TFLOPS: row[3] / 1e3,
			At: []roofline.Intensity{{Level: roofline.HBM, Value: row[0]}, {Level: roofline.L2, Value: row[1]}, {Level: roofline.Shared, Value: row[2]}},
		}}})
	}
	golden(t, "gpp_v100", f)
}

func TestTrajectoryAndOffFrame(t *testing.T) {
	f := &Figure{
		Title:    "A sweep of sizes <with> \"awkward\" & long names that do not end where one might wish them to end at all",
		Subtitle: "made up",
		Slopes:   []Slope{{"HBM 2039 GB/s", 2039, false}},
		Roofs:    []Roof{{"bf16 312 TFLOP/s (dense, 1410 MHz)", 312, false}},
		Series:   []Series{{Name: "sweep", From: bench.Measured, Joined: true}},
	}
	for _, n := range []float64{64, 128, 256, 512, 1024, 2048, 4096, 8192} {
		ai := n / 3
		f.Series[0].Dots = append(f.Series[0].Dots, Dot{Label: fmt.Sprintf("n = %g", n), TFLOPS: 0.8 * min(312, ai*2.039), At: []roofline.Intensity{{Level: roofline.HBM, Value: ai}}, Best: n == 8192})
	}
	f.Series = append(f.Series, Series{Name: "off the frame", From: bench.Counted, Dots: []Dot{
		{Label: "far right", TFLOPS: 100, At: []roofline.Intensity{{Level: roofline.HBM, Value: 1e9}}},
		{Label: "too fast", TFLOPS: 1e5, At: []roofline.Intensity{{Level: roofline.HBM, Value: 1000}}},
	}})
	golden(t, "trajectory", f)
}

// On log axes a bandwidth is a straight line of slope 1: one decade right, one
// decade up, and exactly rate = intensity x bandwidth at both ends.
func TestMemoryLineHasItsTrueSlope(t *testing.T) {
	entries, best := run(t, "h100", 40)
	f, err := TuningRun("slope", entries, best)
	require.NoError(t, err)
	scene, err := f.Scene()
	require.NoError(t, err)
	xs, ys := f.spans()
	x := axis{low: xs[0], high: xs[1], start: scene.Frame[0].X, end: scene.Frame[1].X}
	y := axis{low: ys[0], high: ys[1], start: scene.Frame[1].Y, end: scene.Frame[0].Y}
	seen := 0
	for _, g := range scene.Groups {
		for _, e := range g.Elements {
			if g.Name != "ceilings" || e.Line == nil || len(e.Line.Points) != 2 || e.Line.Points[0].Y == e.Line.Points[1].Y {
				continue
			}
			seen++
			a, b := e.Line.Points[0], e.Line.Points[1]
			bandwidth := y.value(a.Y) / x.value(a.X) * 1e3
			require.InEpsilon(t, bandwidth, y.value(b.Y)/x.value(b.X)*1e3, 1e-9)
			matches := 0
			for _, s := range f.Slopes {
				if math.Abs(bandwidth/s.GBs-1) < 1e-9 {
					matches++
				}
			}
			require.Equal(t, 1, matches, "%g GB/s", bandwidth)
			rise := (a.Y - b.Y) / (y.start - y.end) * float64(ys[1]-ys[0])
			reach := (b.X - a.X) / (x.end - x.start) * float64(xs[1]-xs[0])
			require.InEpsilon(t, 1, rise/reach, 1e-9)
		}
	}
	require.Equal(t, 2*len(f.Slopes), seen)
}

// No two texts lie on each other, and none leaves the scene.
func TestLabelsDoNotOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := randomFigure(t)
		scene, err := f.Scene()
		require.NoError(t, err)
		var texts []*Text
		for _, g := range scene.Groups {
			for _, e := range g.Elements {
				if e.Text != nil && (g.Name == "labels" || g.Name == "ceiling labels") {
					texts = append(texts, e.Text)
				}
			}
		}
		for i, a := range texts {
			for _, ba := range a.boxes() {
				require.True(t, ba.x0 >= 0 && ba.y0 >= 0 && ba.x1 <= scene.Width && ba.y1 <= scene.Height, "%q leaves the scene", a.Text)
				for _, b := range texts[i+1:] {
					for _, bb := range b.boxes() {
						apart := ba.x1 <= bb.x0 || bb.x1 <= ba.x0 || ba.y1 <= bb.y0 || bb.y1 <= ba.y0
						require.True(t, apart, "%q on %q", a.Text, b.Text)
					}
				}
			}
		}
	})
}

func randomFigure(t *rapid.T) *Figure {
	positive := rapid.Custom(func(t *rapid.T) float64 { return math.Pow(10, rapid.Float64Range(-6, 9).Draw(t, "decade")) })
	f := &Figure{
		Title:  rapid.String().Draw(t, "title"),
		Slopes: []Slope{{"HBM", positive.Draw(t, "hbm"), false}, {"L2 of some length", positive.Draw(t, "l2"), false}},
		Roofs:  []Roof{{"one roof", positive.Draw(t, "roof"), false}, {"another", positive.Draw(t, "second"), true}},
	}
	for range rapid.IntRange(0, 3).Draw(t, "series") {
		s := Series{Name: rapid.String().Draw(t, "name"), From: bench.Measured}
		for range rapid.IntRange(1, 40).Draw(t, "dots") {
			s.Dots = append(s.Dots, Dot{
				Label: rapid.StringN(0, 30, -1).Draw(t, "label"), TFLOPS: positive.Draw(t, "rate"), Best: rapid.Bool().Draw(t, "best"),
				At: []roofline.Intensity{{Level: roofline.HBM, Value: positive.Draw(t, "x")}, {Level: roofline.L2, Value: positive.Draw(t, "x2")}},
			})
		}
		f.Series = append(f.Series, s)
	}
	return f
}

// Whatever the figure, the SVG is well-formed and the same twice.
func TestSVGIsWellFormed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := randomFigure(t)
		var once, twice bytes.Buffer
		for _, w := range []*bytes.Buffer{&once, &twice} {
			scene, err := f.Scene()
			require.NoError(t, err)
			require.NoError(t, scene.WriteSVG(w))
		}
		require.Equal(t, once.String(), twice.String())
		require.NotContains(t, once.String(), "NaN")
		require.NotContains(t, once.String(), "Inf\"")
		d := xml.NewDecoder(&once)
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestBadFigures(t *testing.T) {
	good := func() *Figure {
		return &Figure{Slopes: []Slope{{"HBM", 1000, false}}, Roofs: []Roof{{"peak", 10, false}}, Series: []Series{{Name: "s", Dots: []Dot{{Label: "k", TFLOPS: 1, At: []roofline.Intensity{{Level: roofline.HBM, Value: 1}}}}}}}
	}
	for want, breakIt := range map[string]func(*Figure){
		"one bandwidth":            func(f *Figure) { f.Slopes = nil },
		"one peak":                 func(f *Figure) { f.Roofs = nil },
		"HBM: 0 GB/s":              func(f *Figure) { f.Slopes[0].GBs = 0 },
		"peak: NaN TFLOP/s":        func(f *Figure) { f.Roofs[0].TFLOPS = math.NaN() },
		"k: -1 TFLOP/s":            func(f *Figure) { f.Series[0].Dots[0].TFLOPS = -1 },
		"k: no arithmetic":         func(f *Figure) { f.Series[0].Dots[0].At = nil },
		"k: +Inf FLOP/byte at HBM": func(f *Figure) { f.Series[0].Dots[0].At[0].Value = math.Inf(1) },
		"a point of s: 0 TFLOP/s":  func(f *Figure) { f.Series[0].Dots[0].Label, f.Series[0].Dots[0].TFLOPS = "", 0 },
	} {
		f := good()
		breakIt(f)
		_, err := f.Scene()
		require.ErrorContains(t, err, want)
	}
	entries, best := run(t, "h100", 2)
	f, err := TuningRun("library", entries, best)
	require.NoError(t, err)
	require.ErrorContains(t, f.Measured("cuBLAS", 0, entries[best].Verdict.Assessment), "cuBLAS: time of 0 us")
	_, err = TuningRun("empty", nil, 0)
	require.ErrorContains(t, err, "best configuration 0")
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestWriteErrorIsReported(t *testing.T) {
	entries, best := run(t, "a100", 3)
	f, err := TuningRun("x", entries, best)
	require.NoError(t, err)
	scene, err := f.Scene()
	require.NoError(t, err)
	require.ErrorContains(t, scene.WriteSVG(fullDisk{}), "no space left")
}

// A plot of 100 000 points is to take less than 2 s, in every format.
func BenchmarkHundredThousandPoints(b *testing.B) {
	entries, best := run(b, "h100", 100_000)
	for _, ext := range []string{"svg", "html", "png", "pdf"} {
		b.Run(ext, func(b *testing.B) {
			for b.Loop() {
				f, err := TuningRun("cloud", entries, best)
				require.NoError(b, err)
				scene, err := f.Scene()
				require.NoError(b, err)
				data, err := scene.Encode("a." + ext)
				require.NoError(b, err)
				b.ReportMetric(float64(len(data)), "bytes")
			}
		})
	}
}

// The page of 100 000 points stays under 5 MB.
func TestPageOfHundredThousandPoints(t *testing.T) {
	entries, best := run(t, "h100", 100_000)
	f, err := TuningRun("cloud", entries, best)
	require.NoError(t, err)
	scene, err := f.Scene()
	require.NoError(t, err)
	page, err := scene.Encode("a.html")
	require.NoError(t, err)
	require.Len(t, scene.Data, 100_002) // the best at three levels
	require.Less(t, len(page), 5_000_000)
}

func TestTextWidth(t *testing.T) {
	require.InDelta(t, 55.6*spread, width("0123456789", 10, false), 1e-9)
	require.Greater(t, width("W", 10, true), width("i", 10, true))
	require.Equal(t, "abc", fit("abc", 10, false, 100))
	require.Equal(t, "a…", fit("abcdef", 10, false, 17))
	require.Equal(t, "…", fit("abcdef", 10, false, 0))
	require.Len(t, widths, '~'-' '+1)
	require.Equal(t, "0.001 1 500000 1e6 0.0002", strings.Join([]string{label(1, -3), label(1, 0), label(5, 5), label(1, 6), label(2, -4)}, " "))
	require.Equal(t, "1988 313 31.3 3.13 0.00313 1000000000", strings.Join([]string{plain(1988.2), plain(312.9), plain(31.29), plain(3.129), plain(0.003129), plain(1e9)}, " "))
	require.Equal(t, []string{"abc", "d"}, wrap("abc d", 10, false, 22, 2))
	require.Equal(t, []string{"abc", "da…"}, wrap("abc dabc f", 10, false, 22, 2))
	require.Equal(t, []string{"a…"}, wrap("abcdef", 10, false, 17, 2))
	low, high := steps(67/1.25, 989.4)
	require.InDelta(t, 50, math.Pow(10, low), 1e-9)
	require.InDelta(t, 1000, math.Pow(10, high), 1e-9)
}
