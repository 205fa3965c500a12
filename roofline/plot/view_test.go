package plot

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/roofline"
)

// profiled is three kernels of a program as a profiler might see them, and a copy, which
// has no arithmetic.
func profiled(t testing.TB) *Subject { return profiledOn(t, "a100") }

func profiledOn(t testing.TB, gpu string) *Subject {
	r := device(t, gpu)
	s := &Subject{Title: "A program on A100", Subtitle: "made up"}
	for _, k := range []roofline.Kernel{
		{
			Name: "gemm", TimeUS: 520, From: bench.Measured, Least: roofline.Formula(100e6),
			Work: roofline.Work{
				Operations: []roofline.Operations{{Math: target.BF16, Count: roofline.Formula(137e9)}}, HBMBytes: roofline.Counted(140e6),
				L2Bytes: roofline.Counted(1.1e9), SharedBytes: roofline.Counted(6e9), Issue: roofline.Counted(40e6), Launches: roofline.Formula(1),
			},
			Seen: roofline.Seen{Loads: roofline.Access{Requests: 1e6, Sectors: 4.2e6}, Wavefronts: 46e6, IdealWavefronts: 40e6},
		},
		{
			Name: "transpose<float, 32>", TimeUS: 75, From: bench.Measured, Launches: 3,
			Work: roofline.Work{HBMBytes: roofline.Counted(64e6), L2Bytes: roofline.Counted(130e6), SharedBytes: roofline.Counted(0.3e9), Issue: roofline.Counted(6e6), Launches: roofline.Formula(1)},
			Seen: roofline.Seen{Stores: roofline.Access{Requests: 0.5e6, Sectors: 15e6}, Wavefronts: 1.9e6, IdealWavefronts: 0.5e6},
		},
		{
			Name: "bias", TimeUS: 3, From: bench.Measured,
			Work: roofline.Work{Operations: []roofline.Operations{{Math: target.F32, Count: roofline.Counted(1e6)}}, HBMBytes: roofline.Counted(4e6), Issue: roofline.Counted(0.2e6), Launches: roofline.Formula(1)},
		},
	} {
		j, err := k.Judge(r)
		require.NoError(t, err)
		s.Kernels = append(s.Kernels, j)
	}
	return s
}

func goldenView(t *testing.T, name string, v View, s *Subject) *Scene {
	t.Helper()
	scene, err := s.Draw(v)
	require.NoError(t, err)
	goldenScene(t, name, scene)
	return scene
}

func TestViews(t *testing.T) {
	s := profiled(t)
	goldenView(t, "view_roofline", RateView, s)
	goldenView(t, "view_instructions", InstructionView, s)
	times := goldenView(t, "view_time", TimeView, s)
	bars := goldenView(t, "view_floors", FloorView, s)

	// A kernel's least and own times stand where the axes say.
	var at Datum
	for _, d := range times.Data {
		if d.Name == "gemm: 520 us (measured)" {
			at = d
		}
	}
	x, y := times.Read(at.At)
	require.InEpsilon(t, 520, max(x, y), 1e-6)
	least := s.Kernels[0].Limits()
	require.InEpsilon(t, least["tensor"]/least["HBM"], y/x, 1e-6)
	for _, d := range bars.Data {
		want := s.Kernels[d.Dot].Kernel.TimeUS
		if unit := bars.Series[d.Series].Name; unit != "time" {
			want = s.Kernels[d.Dot].Limits()[unit]
		}
		us, _ := bars.Read(d.At)
		require.InDelta(t, want, us, 1e-6)
		require.Equal(t, want, d.Exact)
	}
}

// Every view calls the device's memory by its kind, on hover and in tables too.
func TestMemoryByName(t *testing.T) {
	for gpu, want := range map[string]string{"a100": "HBM", "rtx4090": "GDDR6X", "l40": "GDDR6"} {
		s := profiledOn(t, gpu)
		for _, v := range Views() {
			scene, err := s.Draw(View(v))
			require.NoError(t, err)
			page, err := scene.Encode("a.html")
			require.NoError(t, err)
			require.Contains(t, string(page), want, "%s of %s", v, gpu)
			if want != "HBM" {
				require.NotContains(t, string(page), "HBM", "%s of %s", v, gpu)
			}
		}
	}
}

// The bar of all kernels' least times is as long as the scale above it says, or says that
// it is not to that scale.
func TestSumOfFloors(t *testing.T) {
	s := profiled(t)
	total := 0.0
	for _, j := range s.Kernels {
		total += j.LeastUS() * float64(max(1, j.Kernel.Launches))
	}
	for _, longest := range []float64{10 * total, total / 2} {
		for _, j := range s.Kernels {
			j.Kernel.TimeUS = longest
		}
		scene, err := s.Draw(FloorView)
		require.NoError(t, err)
		end, words := 0.0, ""
		for _, g := range scene.Groups {
			if g.Name != "sum" {
				continue
			}
			for _, e := range g.Elements {
				if e.Area != nil {
					end = max(end, e.Area.Points[1].X)
				}
				if e.Text != nil {
					words += e.Text.Text + "\n"
				}
			}
		}
		us, _ := scene.Read(Point{end, 0})
		if longest > total {
			require.InEpsilon(t, total, us, 1e-9)
			require.NotContains(t, words, "not to the scale")
		} else {
			require.Contains(t, words, "not to the scale above")
		}
		require.Contains(t, words, "at least "+plain(total)+" us")
	}
}

// Every view goes into every format, and the page's data are not the drawing's.
func TestViewsInAllFormats(t *testing.T) {
	s := profiled(t)
	for _, v := range Views() {
		scene, err := s.Draw(View(v))
		require.NoError(t, err)
		for _, file := range []string{"a.svg", "a.png", "a.pdf", "a.html"} {
			b, err := scene.Encode(file)
			require.NoError(t, err)
			require.NotEmpty(t, b, file)
			if file == "a.svg" {
				require.False(t, bytes.Contains(b, []byte("NaN")), v)
			}
		}
	}
}

func TestViewsOfMany(t *testing.T) {
	s := profiled(t)
	for len(s.Kernels) < 100 {
		s.Kernels = append(s.Kernels, s.Kernels[len(s.Kernels)%3])
	}
	for _, v := range Views() {
		_, err := s.Draw(View(v))
		require.NoError(t, err, v)
	}
	scene, err := s.Draw(FloorView)
	require.NoError(t, err)
	data, err := scene.Encode("a.svg")
	require.NoError(t, err)
	require.Contains(t, string(data), "the longest 60, without 40 more")
}

func TestViewsRefuse(t *testing.T) {
	s := profiled(t)
	_, err := s.Draw("pie")
	require.ErrorContains(t, err, `view "pie": want one of`)
	_, err = (&Subject{}).Draw(TimeView)
	require.ErrorContains(t, err, "no kernels")
	s.Kernels = s.Kernels[1:2]
	_, err = s.Draw(RateView)
	require.ErrorContains(t, err, "transpose<float, 32>: no operations")
	s.Kernels[0].Work.Issue = roofline.Count{}
	_, err = s.Draw(InstructionView)
	require.ErrorContains(t, err, "smsp__inst_executed.sum")
}

func TestLinearTicks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		high := rapid.Float64Range(1e-3, 1e9).Draw(t, "high")
		ticks := axis{high: high, linear: true}.linearTicks()
		require.GreaterOrEqual(t, len(ticks), 3)
		require.LessOrEqual(t, len(ticks), 8)
		require.LessOrEqual(t, ticks[len(ticks)-1], high)
	})
}

// A sweep of sizes as a trajectory, and what changes did as arrows: from hollow to full.
func TestPaths(t *testing.T) {
	r := device(t, "h100")
	judged := func(name string, n, share float64) *roofline.Judged {
		k := roofline.Kernel{Name: name, From: bench.Measured, Work: roofline.Work{Operations: []roofline.Operations{{Math: target.BF16, Count: roofline.Formula(2 * n * n * n)}}, HBMBytes: roofline.Formula(6 * n * n)}}
		a, err := k.Judge(r)
		require.NoError(t, err)
		k.TimeUS = a.LeastUS() / share
		j, err := k.Judge(r)
		require.NoError(t, err)
		return j
	}
	sweep := Path{Name: "sizes"}
	for _, n := range []float64{64, 128, 256, 512, 1024, 2048, 4096, 8192} {
		sweep.Kernels = append(sweep.Kernels, judged(fmt.Sprintf("n=%g", n), n, 0.2+n/16384))
	}
	s := &Subject{
		Title: "Sizes and changes", Subtitle: "made up", Roofs: []Roof{{Label: "libraries reach 800 TFLOP/s (measured)", TFLOPS: 800, Second: true}},
		Paths: []Path{
			sweep,
			{Name: "swizzled", Arrows: true, Kernels: []*roofline.Judged{judged("swizzled", 600, 0.1), judged("swizzled", 700, 0.45)}},
			{Name: "worse than it was", Arrows: true, Kernels: []*roofline.Judged{judged("worse than it was", 3000, 0.6), judged("worse than it was", 3000, 0.3)}},
		},
	}
	scene := goldenView(t, "paths", RateView, s)
	heads := 0
	for _, g := range scene.Groups {
		for _, e := range g.Elements {
			if g.Name == "data" && e.Area != nil {
				heads++
				require.Len(t, e.Area.Points, 3)
			}
		}
	}
	require.Equal(t, 2, heads, "one arrow a change, none in the sweep")
	for _, v := range []View{TimeView, FloorView} {
		_, err := s.Draw(v)
		require.NoError(t, err)
	}
}

// Of many alternatives the fastest stands out, and the run's best so far is a path.
func TestManyAlternatives(t *testing.T) {
	s := profiled(t)
	gemm := s.Kernels[0]
	s.Kernels, s.Alternatives = nil, true
	path := Path{Name: "best so far", Bare: true}
	for i := range 2000 {
		k := *gemm.Kernel
		k.Name, k.TimeUS = fmt.Sprintf("configuration %d", i), 500+float64((i*7919)%2000)
		j, err := k.Judge(gemm.Roofs)
		require.NoError(t, err)
		s.Kernels = append(s.Kernels, j)
		if n := len(path.Kernels); n == 0 || k.TimeUS < path.Kernels[n-1].Kernel.TimeUS {
			path.Kernels = append(path.Kernels, j)
		}
	}
	s.Paths = []Path{path}
	scene, err := s.Draw(RateView)
	require.NoError(t, err)
	svg, err := scene.Encode("a.svg")
	require.NoError(t, err)
	require.Contains(t, string(svg), "274 TFLOP/s: configuration 0</text>")
	require.NotContains(t, string(svg), "configuration 1</text>")
}

// TestRidge: the ridge is the GPU's, where what was reached of it is drawn beside it.
func TestRidge(t *testing.T) {
	f := &Figure{
		Title:  "t",
		Slopes: []Slope{{Label: "reached", GBs: 3096, Second: true}, {Label: "HBM", GBs: 3352}, {Label: "L2", GBs: 9766}},
		Roofs:  []Roof{{Label: "peak", TFLOPS: 989.4}, {Label: "reached", TFLOPS: 937, Second: true}},
		Series: []Series{{Name: "a", Dots: []Dot{{Label: "a", TFLOPS: 10, At: []roofline.Intensity{{Level: roofline.HBM, Value: 10}}}}}},
	}
	scene, err := f.Scene()
	require.NoError(t, err)
	svg, err := scene.Encode("x.svg")
	require.NoError(t, err)
	require.Contains(t, string(svg), "ridge 295")
}
