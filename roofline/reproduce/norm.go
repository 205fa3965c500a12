package reproduce

import (
	"fmt"

	"github.com/kgen-dev/kgen/codegen/target"
)

// layerNorm: batch 8, 512 tokens, 1024 columns of fp16; reads x and the
// residual and writes y. Counted as 10 operations an element: mean, variance,
// scale and shift, dropout and sum.
func layerNorm(r *Result, t *table) error {
	g, err := r.deviceFigure("v100", target.F32)
	if err != nil {
		return err
	}
	const elements = 8 * 512 * 1024
	d := &drawing{result: r}
	var marks []mark
	for i := range t.rows {
		layout, us := t.text(i, "layout"), t.printed(i, "time_us")
		rate := exact(3 * 2 * elements / 1e3).over(us)
		r.add(layout+": GB/s", t.printed(i, "gbs"), rate)
		if t.text(i, "percent") != "" {
			r.add(layout+": % of the marketed bandwidth", t.printed(i, "percent"), rate.over(exact(g.BandwidthGBs)).scaled(100))
		}
		marks = append(marks, mark{label: layout, title: layout, rate: exact(10 * elements / 1e6).over(us), at: atHBM(exact(10.0 / 6))})
	}
	d.series("layouts", false, marks)
	return t.err
}

// quack: the share of an H100's memory bandwidth that softmax reaches, what a
// third pass over the data costs, and the table of ratios between shared
// memory's and memory's bandwidth for four GPUs, from SMs, clock and 128 bytes
// an SM and clock.
func quack(r *Result, t *table) error {
	h100, err := r.deviceFigure("h100", target.F32)
	if err != nil {
		return err
	}
	reached := quantity{3.01, 0.005}
	r.add("softmax at 3.01 TB/s, % of memory's bandwidth", quantity{89.7, 0.05}, reached.over(exact(h100.BandwidthGBs)).scaled(1e5))
	r.add("Triton's softmax, which loads twice: useful TB/s", quantity{2.0, 0.05}, quantity{3.0, 0.05}.scaled(2.0/3))
	for i := range t.rows {
		g, _, err := gpu(t.text(i, "gpu"))
		if err != nil {
			return err
		}
		clock, memory := t.printed(i, "clock_ghz"), t.number(i, "memory_tbs")
		perClock := exact(memory * 1e3).over(clock.scaled(float64(g.SMs)))
		shared := clock.scaled(float64(g.SMs) * g.Pipes().SharedBytes / 1e3)
		r.add(g.ID+": SMs", t.printed(i, "sms"), exact(float64(g.SMs)))
		r.add(g.ID+": bytes from memory an SM and clock", t.printed(i, "memory_bytes"), perClock)
		r.add(g.ID+": shared memory, TB/s", t.printed(i, "shared_tbs"), shared)
		r.add(g.ID+": shared memory to memory", t.printed(i, "ratio"), shared.over(exact(memory)))
	}
	// Softmax of 16384 rows of 131072 fp32 columns: 5 operations an element,
	// 4 bytes in and 4 out.
	d := &drawing{result: r}
	for _, s := range []struct {
		name string
		tbs  float64
	}{{"QuACK softmax", 3.01}, {"torch.compile softmax", 1.89}, {"Liger softmax, 65536 columns", 2.0}} {
		label := fmt.Sprintf("%s %g TB/s", s.name, s.tbs)
		d.series(s.name, false, []mark{{label: label, title: label, rate: exact(s.tbs * 5 / 8), at: atHBM(exact(5.0 / 8))}})
	}
	return t.err
}
