package reproduce

import (
	"fmt"
	"strings"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/roofline"
	"github.com/kgen-dev/kgen/roofline/measured"
	"github.com/kgen-dev/kgen/roofline/plot"
)

// clouds draws every point of an operation's tables, a series for each GPU and
// type.
func (r *Result) clouds(op measured.Op) error {
	if _, err := r.deviceFigure("h100", target.F8Acc32, target.F16Acc32); err != nil {
		return err
	}
	if _, err := r.alsoRoofs("a100", target.F16Acc32); err != nil {
		return err
	}
	total := 0
	for _, id := range measured.GPUs() {
		for _, typ := range []string{"float16", "fp8"} {
			name := strings.ToUpper(id[:4]) + " " + typ
			s := plot.Series{Name: name, From: bench.Measured}
			err := measured.Each(op, id, typ, func(m *measured.Sample) error {
				f := m.FLOPs()
				s.Dots = append(s.Dots, plot.Dot{Title: m.Shape() + ", " + m.Library(), TFLOPS: f / m.US / 1e6, At: hbm(f / m.Bytes())})
				return nil
			})
			if err != nil {
				return err
			}
			if total += len(s.Dots); len(s.Dots) > 0 {
				r.Figure.Series = append(r.Figure.Series, s)
			}
		}
	}
	r.Figure.Subtitle = fmt.Sprintf("all %d points; operations and least bytes by formula", total)
	return nil
}

// alsoRoofs adds another GPU's memory and peaks to the figure.
func (r *Result) alsoRoofs(name string, kinds ...target.Math) (*target.GPU, error) {
	g, roofs, err := gpu(name)
	if err != nil {
		return nil, err
	}
	short := strings.ToUpper(name) + " "
	slope := plot.MemorySlope(roofs.Name(roofline.HBM), roofs.HBM)
	slope.Label = short + slope.Label
	r.Figure.Slopes = append(r.Figure.Slopes, slope)
	for _, m := range kinds {
		p, ok := g.Peak(m)
		if !ok {
			return nil, fmt.Errorf("%s: no %s peak", g.ID, m)
		}
		roof := plot.PeakRoof(p)
		roof.Label = short + roof.Label
		r.Figure.Roofs = append(r.Figure.Roofs, roof)
	}
	return g, nil
}

// rates sets the rate, bandwidth and intensity of a row of the tables of five
// GPUs beside what follows from its time and its sizes.
func (r *Result) rates(t *table, row int, label string, s *measured.Sample) {
	us := t.printed(row, "time_us")
	label = t.text(row, "gpu") + " " + t.text(row, "library") + " " + t.text(row, "type") + " " + label
	flops, bytes := exact(s.FLOPs()), exact(s.Bytes())
	r.add(label+": TFLOP/s", t.printed(row, "tflops"), flops.scaled(1e-6).over(us))
	r.add(label+": GB/s", t.printed(row, "gbs"), bytes.scaled(1e-3).over(us))
	r.add(label+": operations per byte", t.printed(row, "ai"), flops.over(bytes))
}

// typeOf is the tables' word for a type.
func typeOf(t *table, row int) string {
	return map[string]string{"fp16": "float16", "fp8": "fp8"}[t.text(row, "type")]
}

func nvidiaGEMM(r *Result, t *table) error {
	for i := range t.rows {
		s := &measured.Sample{Op: measured.GEMM, Type: typeOf(t, i), M: int(t.number(i, "m")), N: int(t.number(i, "n")), K: int(t.number(i, "k"))}
		r.rates(t, i, t.label(i, "m", "n", "k"), s)
	}
	if t.err != nil {
		return t.err
	}
	if err := r.clouds(measured.GEMM); err != nil {
		return err
	}
	for _, c := range []struct {
		gpu, framework string
		tflops         float64
	}{{"h100-sxm5-80", "vLLM", 800}, {"h100-sxm5-80", "TensorRT-LLM", 733}, {"a100-sxm4-80", "", 294}} {
		times, err := measured.LookupGEMM(c.gpu, "f16", 8192, 8192, 8192)
		if err != nil {
			return err
		}
		for _, m := range times {
			if c.framework == "" || m.Framework == c.framework {
				r.add(fmt.Sprintf("%s %s 8192^3: TFLOP/s", c.gpu, m.Framework), quantity{c.tflops, 0.5}, exact(2*8192.*8192*8192/m.US/1e6))
				break
			}
		}
	}
	return r.bestGEMMs()
}

// bestGEMMs: the best rate over all shapes, and the best bandwidth of vLLM for a
// matrix times one row.
func (r *Result) bestGEMMs() error {
	for _, c := range []struct {
		gpu, typ    string
		tflops, tbs float64
		percent     float64
	}{
		{"a100-sxm4-80", "float16", 299, 1.74, 96},
		{"h100-sxm5-80", "float16", 937, 3.10, 0},
		{"h100-sxm5-80", "fp8", 1511, 0, 0},
	} {
		best, err := measured.Best(measured.GEMM, c.gpu, c.typ)
		if err != nil {
			return err
		}
		r.add(c.gpu+" "+c.typ+", best of all shapes: TFLOP/s", quantity{c.tflops, 0.5}, exact(best.TFLOPS))
		if c.tbs > 0 {
			tbs, err := bestRow(c.gpu, c.typ)
			if err != nil {
				return err
			}
			r.add(c.gpu+" "+c.typ+", best bandwidth of one row: TB/s", quantity{c.tbs, 0.005}, exact(tbs))
		}
		if c.percent > 0 {
			r.add(c.gpu+" "+c.typ+", best of all shapes: % of peak", quantity{c.percent, 0.5}, exact(100*best.TFLOPS/best.Ceilings.Peak.TFLOPS))
		}
	}
	return nil
}

// bestRow is vLLM's best bandwidth in TB/s with one row on the left.
func bestRow(gpu, typ string) (float64, error) {
	best := 0.0
	err := measured.Each(measured.GEMM, gpu, typ, func(s *measured.Sample) error {
		if s.M == 1 && s.Framework == "vLLM" {
			best = max(best, s.Bytes()/s.US/1e6)
		}
		return nil
	})
	return best, err
}

func nvidiaPrefill(r *Result, t *table) error {
	for i := range t.rows {
		typ := typeOf(t, i)
		s := &measured.Sample{Op: measured.Prefill, Type: typ, KVType: typ, Attention: attentionOf(t, i)}
		s.NewTokens = int(t.number(i, "seq"))
		r.rates(t, i, t.label(i, "batch", "heads", "kv_heads", "head_dim", "seq"), s)
	}
	if t.err != nil {
		return t.err
	}
	if err := r.clouds(measured.Prefill); err != nil {
		return err
	}
	standard := measured.Attention{Batch: 4, NewTokens: 4096, Heads: 32, KVHeads: 8, HeadDim: 128}
	s := measured.Sample{Op: measured.Prefill, Type: "float16", KVType: "float16", Attention: standard}
	for _, c := range []struct {
		gpu, framework string
		tflops, ms     float64
	}{{"h100-sxm5-80", "vLLM", 488, 1.127}, {"h100-sxm5-80", "TensorRT-LLM", 423, 1.300}, {"a100-sxm4-80", "vLLM", 162, 3.396}} {
		times, err := measured.LookupAttention(measured.Prefill, c.gpu, "f16", "f16", standard)
		if err != nil {
			return err
		}
		for _, m := range times {
			if m.Framework != c.framework {
				continue
			}
			r.add(c.gpu+" "+m.Framework+" "+s.Shape()+": TFLOP/s", quantity{c.tflops, 0.5}, exact(s.FLOPs()/m.US/1e6))
		}
	}
	return nil
}

func nvidiaDecode(r *Result, t *table) error {
	for i := range t.rows {
		typ := typeOf(t, i)
		s := &measured.Sample{Op: measured.Decode, Type: typ, KVType: typ, Attention: attentionOf(t, i)}
		s.NewTokens, s.PastTokens = 1, int(t.number(i, "past"))-1
		r.rates(t, i, t.label(i, "batch", "heads", "kv_heads", "head_dim", "past"), s)
	}
	if t.err != nil {
		return t.err
	}
	return r.clouds(measured.Decode)
}

func attentionOf(t *table, row int) measured.Attention {
	n := func(c string) int { return int(t.number(row, c)) }
	return measured.Attention{Batch: n("batch"), Heads: n("heads"), KVHeads: n("kv_heads"), HeadDim: n("head_dim")}
}
