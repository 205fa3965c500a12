package reproduce

import (
	"fmt"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/roofline"
	"github.com/kgen-dev/kgen/roofline/plot"
)

// The ceilings that NERSC's empirical roofline tool measured on a V100.
var (
	ertSlopes = []plot.Slope{
		{Label: "L1 14336 GB/s (theoretical)", GBs: 14336},
		{Label: "L2 2997 GB/s (measured)", GBs: 2996.77},
		{Label: "HBM 828.8 GB/s (measured)", GBs: 828.758},
	}
	ertRoofs = []plot.Roof{
		{Label: "fp64 FMA 7.07 TFLOP/s (measured)", TFLOPS: 7.06886},
		{Label: "fp64 without FMA 3.54 TFLOP/s (measured)", TFLOPS: 3.53579, Second: true},
	}
)

func gpp(r *Result, t *table) error {
	r.Figure = &plot.Figure{Title: r.Title, Subtitle: "every version at the bytes of three levels of memory", Slopes: ertSlopes, Roofs: ertRoofs}
	d := &drawing{result: r}
	for i := range t.rows {
		version := t.text(i, "version")
		d.series(version, false, []mark{{label: version, title: version, rate: t.printed(i, "gflops").scaled(1e-3), at: []intensity{
			{roofline.HBM, t.printed(i, "ai_hbm")}, {roofline.L2, t.printed(i, "ai_l2")}, {roofline.Shared, t.printed(i, "ai_l1")},
		}}})
	}
	if err := d.readBack("GFLOP/s", 1e-3, true); err != nil {
		return err
	}
	gppLaws(r, t)
	return eightSteps(r)
}

// gppLaws: every frequency (nw) adds the same operations, and up to four of
// them the bytes from memory stay the same, so that the first two versions give
// the operations per byte of the next two. The shares of the roofs are those of
// the first version of memory's and of the last of the FMA peak.
func gppLaws(r *Result, t *table) {
	first := t.printed(0, "ai_hbm")
	more := quantity{t.number(1, "ai_hbm") - first.value, t.printed(1, "ai_hbm").half + first.half}
	for _, i := range []int{2, 3} {
		step := more.scaled(float64(i))
		r.add(t.text(i, "version")+", HBM: operations per byte by the first two versions", t.printed(i, "ai_hbm"), quantity{first.value + step.value, first.half + step.half})
	}
	memory, fma := ertSlopes[2].GBs, ertRoofs[0].TFLOPS*1e3
	last := len(t.rows) - 1
	r.add("nw=1, % of what memory allows", quantity{97.4, 0.05}, t.printed(0, "gflops").over(first).scaled(100/memory))
	r.add("nw=6, % of the FMA peak", quantity{66, 0.5}, t.printed(last, "gflops").scaled(100/fma))
}

// eightSteps computes the peaks that the authors set their kernel's 3.7 TFLOP/s
// against (arXiv 2008.11326): the fp64 peak at the 1312 MHz that Nsight Compute
// fixes, and what of it remains where 58 % of the instructions are FMAs.
func eightSteps(r *Result) error {
	v100, _, err := gpu("v100")
	if err != nil {
		return err
	}
	rate, ok := v100.Rate(target.F64)
	if !ok {
		return fmt.Errorf("%s: no fp64 rate", v100.ID)
	}
	const clock, fma = 1312, 0.58
	reached := quantity{3.7, 0.05}
	peak := exact(float64(v100.SMs) * rate * 2 * clock / 1e6)
	mixed := peak.times(quantity{(1 + fma) / 2, 0.005 / 2})
	r.add("fp64 peak at 1312 MHz, TFLOP/s", quantity{6.7, 0.05}, peak)
	r.add("peak with 58 % FMA instructions, TFLOP/s", quantity{5.3, 0.05}, mixed)
	r.add("3.7 TFLOP/s of the peak, %", quantity{55, 0.5}, reached.over(peak).scaled(100))
	r.add("3.7 TFLOP/s of the mixed peak, %", quantity{70, 0.5}, reached.over(mixed).scaled(100))
	return nil
}
