package plot

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/roofline"
)

// sectors is where accesses to global memory meet the first cache: for dots alone.
const sectors = roofline.Unit("L1")

// transaction is the bytes of one at a level of memory: a sector, or a wavefront of
// shared memory.
func transaction(u roofline.Unit) float64 {
	if u == roofline.Shared {
		return roofline.WavefrontBytes
	}
	return bench.SectorBytes
}

// patterns are the walls of Ding and Williams (PMBS 2019): how many transactions a
// warp's access to 4-byte elements takes, by its stride or its bank conflicts.
var patterns = []Wall{
	{"stride 0; no bank conflict", 1},
	{"stride 1", 1.0 / 4},
	{"stride 8 or more; 32-way bank conflict", 1.0 / 32},
}

// instructions is the instruction roofline: every instruction of a kernel over the
// transactions of each level of memory, and its accesses alone over theirs.
func (s *Subject) instructions() (*Figure, error) {
	r := s.Kernels[0].Roofs
	g := r.GPU
	gips := float64(g.SMs) * g.Pipes().Issue / target.WarpSize * g.Clock() / 1e3
	f := &Figure{
		Title: s.Title, Subtitle: s.Subtitle, Axes: Instructions, Memory: g.Memory(), Walls: patterns,
		Roofs: []Roof{{Label: fmt.Sprintf("%.4g warp GIPS (%g an SM and clock, %.0f MHz)", gips, g.Pipes().Issue/target.WarpSize, g.Clock()), TFLOPS: gips}},
	}
	for _, level := range []struct {
		unit   roofline.Unit
		figure target.Figure
	}{{roofline.HBM, r.HBM}, {roofline.L2, r.L2}, {roofline.Shared, r.Shared}} {
		used := func(j *roofline.Judged) bool { return j.Work.Bytes(level.unit).Value > 0 }
		if level.unit == roofline.HBM || slices.ContainsFunc(s.Kernels, used) {
			rate := level.figure.Value / transaction(level.unit)
			f.Slopes = append(f.Slopes, Slope{Label: fmt.Sprintf("%s %.4g GTXN/s (%s)", r.Name(level.unit), rate, level.figure.Basis), GBs: rate})
		}
	}
	f.Series = s.series(issued)
	if len(f.Series) == 0 {
		return nil, errors.New("no kernel has its instructions counted, and the bytes to set them against: Nsight Compute counts them as smsp__inst_executed.sum")
	}
	if len(s.Kernels) <= ownSeries {
		s.accesses(f)
	}
	return f, nil
}

// issued is all instructions of a kernel.
func issued(j *roofline.Judged) (Dot, bool) {
	d := Dot{TFLOPS: j.Work.Issue.Value / timeOf(j) / 1e3}
	for _, level := range []roofline.Unit{roofline.HBM, roofline.L2, roofline.Shared} {
		if b := j.Work.Bytes(level).Value; b > 0 && j.Work.Issue.Value > 0 {
			d.At = append(d.At, roofline.Intensity{Level: level, Value: j.Work.Issue.Value / (b / transaction(level))})
		}
	}
	d.Label = fmt.Sprintf("%s GIPS: %s", plain(max(d.TFLOPS, unseen)), brief(j.Kernel.Name, labelLetters))
	return d, len(d.At) > 0
}

// accesses adds each kernel's accesses to its series: what the walls bound.
func (s *Subject) accesses(f *Figure) {
	for _, j := range s.Kernels {
		i := slices.IndexFunc(f.Series, func(t Series) bool { return t.Name == j.Kernel.Name })
		if i < 0 {
			continue
		}
		seen := &j.Kernel.Seen
		add := func(what string, level roofline.Unit, instructions, transactions float64) {
			if instructions > 0 && transactions > 0 {
				f.Series[i].Dots = append(f.Series[i].Dots, Dot{
					Label: what, Title: j.Kernel.Name + ", " + what, TFLOPS: instructions / timeOf(j) / 1e3,
					At: []roofline.Intensity{{Level: level, Value: instructions / transactions}},
				})
			}
		}
		add("global loads", sectors, seen.Loads.Requests, seen.Loads.Sectors)
		add("global stores", sectors, seen.Stores.Requests, seen.Stores.Sectors)
		add("shared accesses", roofline.Shared, seen.IdealWavefronts, seen.Wavefronts)
	}
}
