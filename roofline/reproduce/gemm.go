package reproduce

import (
	"fmt"

	"github.com/kgen-dev/kgen/codegen/target"
)

// deepGEMM: the table gives a rate and a bandwidth for the same time, fp8
// operands and a result of two bytes, so that each follows from the other. An
// H800 has an H100's SMs, clocks and memory.
func deepGEMM(r *Result, t *table) error {
	if _, err := r.deviceFigure("h100", target.F8Acc32); err != nil {
		return err
	}
	r.Figure.Subtitle = "roofs of " + r.Figure.Subtitle + ", of which H800 keeps SMs, clocks and memory"
	d := &drawing{result: r}
	series := map[float64][]mark{}
	var order []float64
	for i := range t.rows {
		m, n, k := t.number(i, "m"), t.number(i, "n"), t.number(i, "k")
		intensity := exact(2 * m * n * k / (m*k + k*n + 2*m*n))
		tflops, gbs := t.printed(i, "tflops"), t.printed(i, "gbs")
		label := t.label(i, "m", "n", "k")
		r.add(label+": GB/s from TFLOP/s", gbs, tflops.over(intensity).scaled(1e3))
		r.add(label+": TFLOP/s from GB/s", tflops, gbs.times(intensity).scaled(1e-3))
		if series[m] == nil {
			order = append(order, m)
		}
		series[m] = append(series[m], mark{title: label, rate: tflops, at: atHBM(intensity)})
	}
	for _, m := range order {
		d.series(fmt.Sprintf("m=%g", m), false, series[m])
	}
	return t.err
}

// sgemmLadder: the steps of a tutorial, 4096^3, each with its share of cuBLAS,
// the last row.
func sgemmLadder(r *Result, t *table) error {
	if _, err := r.deviceFigure("rtx-a6000", target.F32); err != nil {
		return err
	}
	const n = 4096
	last := len(t.rows) - 1
	library := t.printed(last, "gflops")
	d := &drawing{result: r}
	var marks []mark
	for i := range t.rows {
		kernel, rate := t.text(i, "kernel"), t.printed(i, "gflops")
		r.add(kernel+": % of cuBLAS", t.printed(i, "percent"), rate.over(library).scaled(100))
		marks = append(marks, mark{label: fmt.Sprintf("%d %s", i+1, kernel), title: kernel, rate: rate.scaled(1e-3), at: atHBM(exact(2 * n * n * n / (3 * 4 * n * n)))})
	}
	d.series("steps", true, marks[:last])
	d.series("library", false, marks[last:])
	if t.err != nil {
		return t.err
	}
	return d.readBack("GFLOP/s", 1e-3, false)
}
