package measured

import (
	"fmt"

	"github.com/kgen-dev/kgen/codegen/target"
)

// Doubt says how a sample relates to its GPU's roofs.
type Doubt string

// What a time below the roofs' can mean. A sample without doubt has "".
const (
	Cached     Doubt = "above memory's roof: its data may stay in the L2"
	Boosted    Doubt = "above the published peak, but below that of the device's highest clock"
	Impossible Doubt = "impossible: faster than the peak at the device's highest clock, or more bytes than memory and a full L2 deliver"
)

// Ceilings are the roofs that samples of one type of operands are held to.
type Ceilings struct {
	Peak  target.Peak // dense
	Boost float64     // TFLOP/s of the same at the highest clock that the driver reports
	HBM   target.Figure
	L2    float64 // bytes
}

// maths maps the tables' types to kinds of arithmetic.
var maths = map[string]target.Math{"float16": target.F16Acc32, "fp8": target.F8Acc32}

// Arithmetic returns the kind that a type of the tables runs at; false for others.
func Arithmetic(typ string) (target.Math, bool) {
	m, ok := maths[typ]
	return m, ok
}

// Types returns the types of operands that the tables name, in a fixed order.
func Types() []string { return []string{"float16", "fp8"} }

// CeilingsOf returns a GPU's roofs for a type that the tables name.
func CeilingsOf(g *target.GPU, typ string) (*Ceilings, error) {
	p, ok := g.Peak(maths[typ])
	if !ok {
		return nil, fmt.Errorf("%s: no tensor cores for type %q", g.ID, typ)
	}
	return &Ceilings{Peak: p, Boost: p.TFLOPS * max(1, g.MaxClockMHz/p.ClockMHz), HBM: g.HBM(), L2: g.L2MiB * (1 << 20)}, nil
}

// Doubt holds a sample to the roofs.
func (c *Ceilings) Doubt(s *Sample) Doubt {
	flops, bytes := s.FLOPs(), s.Bytes()
	compute, memory := flops/c.Peak.TFLOPS/1e6, bytes/c.HBM.Value/1e3
	switch {
	case s.US >= compute && s.US >= memory:
		return ""
	case flops/c.Boost/1e6 > s.US || (bytes-c.L2)/c.HBM.Value/1e3 > s.US:
		return Impossible
	case compute > s.US:
		return Boosted
	}
	return Cached
}

// impossible is Impossible if the GPU can't have done the problem in the time, else "".
func (s *Sample) impossible(gpu string, us float64) (Doubt, error) {
	g, err := target.Lookup(gpu)
	if err != nil {
		return "", err
	}
	c, err := CeilingsOf(g, s.Type)
	if err != nil {
		return "", err
	}
	timed := *s
	timed.US = us
	if c.Doubt(&timed) == Impossible {
		return Impossible, nil
	}
	return "", nil
}

// Peaks are the best rates of an operation over all shapes, as far as they are
// possible: the roof of a library rather than of the hardware.
type Peaks struct {
	Ceilings    *Ceilings
	TFLOPS      float64
	TFLOPSShape string
	GBs         float64 // of shapes whose bytes are many times the L2's, below memory's roof
	GBsShape    string
	Points      int
	Impossible  int
}

// timesL2 is how much larger than the L2 a problem is that must come from
// memory: what stays in the L2 is then a tenth at most.
const timesL2 = 10

// Best returns the best rates on a GPU (its id) with a type of operands. The
// error names what the tables lack.
func Best(op Op, gpu, typ string) (*Peaks, error) {
	g, err := target.Lookup(gpu)
	if err != nil {
		return nil, err
	}
	c, err := CeilingsOf(g, typ)
	if err != nil {
		return nil, err
	}
	p := &Peaks{Ceilings: c}
	err = Each(op, g.ID, typ, func(s *Sample) error {
		p.Points++
		doubt := c.Doubt(s)
		if doubt == Impossible {
			p.Impossible++
			return nil
		}
		if rate := s.FLOPs() / s.US / 1e6; rate > p.TFLOPS {
			p.TFLOPS, p.TFLOPSShape = rate, s.Shape()+", "+s.Library()
		}
		if rate := s.Bytes() / s.US / 1e3; doubt == "" && s.Bytes() > timesL2*c.L2 && rate > p.GBs {
			p.GBs, p.GBsShape = rate, s.Shape()+", "+s.Library()
		}
		return nil
	})
	if err == nil && p.Points == 0 {
		err = fmt.Errorf("no %s of type %s on %s: the tables hold %s", op, typ, g.ID, held(op))
	}
	return p, err
}

// held lists the GPUs and types of an operation's tables.
func held(op Op) string {
	text := ""
	for _, id := range GPUs() {
		for _, typ := range Types() {
			found := false
			if err := Each(op, id, typ, func(*Sample) error { found = true; return errStop }); err != nil && !found {
				continue
			}
			if found {
				if text != "" {
					text += ", "
				}
				text += id + " " + typ
			}
		}
	}
	return text
}

// errStop ends an iteration.
var errStop = fmt.Errorf("stop")
