package roofline

import (
	"fmt"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/target"
)

// Unit is a part of the GPU that can bind a kernel.
type Unit string

// The units, in the order in which reports show them.
const (
	HBM    Unit = "HBM"
	L2     Unit = "L2"
	Shared Unit = "shared"
	Tensor Unit = "tensor"
	MUFU   Unit = "MUFU"
	Issue  Unit = "issue" // instruction slots and the FMA and ALU pipes behind them
	Launch Unit = "launch"
)

// Units returns every unit, in order.
func Units() []Unit { return []Unit{HBM, L2, Shared, Tensor, MUFU, Issue, Launch} }

// Name is a unit in words for people: the device's memory by the kind that the GPU has.
// Records and flags keep to Unit.
func (u Unit) Name(g *target.GPU) string {
	if u == HBM {
		return g.Memory()
	}
	return string(u)
}

// Name is a unit's name on the GPU; see Unit.Name.
func (r Roofs) Name(u Unit) string { return u.Name(r.GPU) }

// Roofs are the ceilings of one GPU.
type Roofs struct {
	GPU    *target.GPU
	HBM    target.Figure // GB/s
	L2     target.Figure // GB/s
	Shared target.Figure // GB/s
}

// DeviceRoofs returns the GPU's ceilings by the clocks and widths of the
// device, as marketed where those are not known.
func DeviceRoofs(g *target.GPU) Roofs {
	return Roofs{
		GPU: g,
		HBM: g.HBM(),
		L2:  g.L2(),
		Shared: target.Figure{
			Value:   g.SharedBandwidth(),
			Basis:   target.Device,
			Note:    fmt.Sprintf("%g B per SM and clock at %g MHz", g.Pipes().SharedBytes, g.Clock()),
			Sources: g.Architecture().FieldSources["pipes.shared_bytes"],
		},
	}
}

// Bandwidth returns a memory level's ceiling in GB/s, 0 for other units.
func (r Roofs) Bandwidth(u Unit) float64 {
	switch u {
	case HBM:
		return r.HBM.Value
	case L2:
		return r.L2.Value
	case Shared:
		return r.Shared.Value
	}
	return 0
}

// Ridge returns the arithmetic intensity (operations per byte) at which a kind
// of arithmetic stops being bound by a memory level; false if the GPU lacks it.
func (r Roofs) Ridge(m target.Math, u Unit) (float64, bool) {
	p, ok := r.GPU.Peak(m)
	bw := r.Bandwidth(u)
	if !ok || bw == 0 {
		return 0, false
	}
	return p.TFLOPS * 1e3 / bw, true
}

// WorkOf gives back the counts behind the least times in microseconds of units, as
// Limits names them; the tensor cores' are left out, for the time does not say of which
// arithmetic they are. Of the pipes behind the instruction slots only the tightest is
// behind the time, which is given as slots.
func (r Roofs) WorkOf(limits map[string]float64, from bench.Provenance) Work {
	count := func(u Unit, perUS float64) Count {
		if us := limits[string(u)]; us > 0 {
			return Count{us * perUS, from}
		}
		return Count{}
	}
	pipes := r.GPU.Pipes()
	perClock := float64(r.GPU.SMs) * r.GPU.Clock()
	return Work{
		HBMBytes:    count(HBM, r.HBM.Value*1e3),
		L2Bytes:     count(L2, r.L2.Value*1e3),
		SharedBytes: count(Shared, r.Shared.Value*1e3),
		MUFU:        count(MUFU, pipes.MUFU*perClock),
		Issue:       count(Issue, pipes.Issue/target.WarpSize*perClock),
		Launches:    count(Launch, 1/r.GPU.Architecture().LaunchUS),
	}
}

// pipe returns the microseconds that n thread results need at a rate per SM
// and clock.
func (r Roofs) pipe(n, rate float64) float64 {
	return n / (rate * float64(r.GPU.SMs) * r.GPU.Clock())
}

// floors returns the least time of every unit that has work, in order.
func (r Roofs) floors(w *Work) []Floor {
	rate, launch := r.GPU.Pipes().MUFU, r.GPU.Architecture().LaunchUS
	of := func(u Unit, work Count, us float64, detail string, args ...any) Floor {
		if us <= 0 {
			return Floor{}
		}
		return Floor{u, us, work.From, fmt.Sprintf(detail, args...)}
	}
	var out []Floor
	for _, f := range []Floor{
		r.memory(HBM, w.HBMBytes, r.HBM),
		r.memory(L2, w.L2Bytes, r.L2),
		r.memory(Shared, w.SharedBytes, r.Shared),
		r.tensor(w),
		of(MUFU, w.MUFU, r.pipe(w.MUFU.Value, rate), "%g results per SM and clock", rate),
		r.issue(w),
		of(Launch, w.Launches, w.Launches.Value*launch, "%g us each", launch),
	} {
		if f.US > 0 {
			out = append(out, f)
		}
	}
	return out
}

func (r Roofs) memory(u Unit, bytes Count, roof target.Figure) Floor {
	us := bytes.Value / (roof.Value * 1e3)
	if us == 0 { // most kernels of many were not profiled at every level
		return Floor{}
	}
	return Floor{u, us, bytes.From, fmt.Sprintf("%.0f GB/s, %s (%s)", roof.Value, roof.Basis, roof.Note)}
}

// tensor adds the times of all tensor kinds: they share the tensor cores.
func (r Roofs) tensor(w *Work) Floor {
	f := Floor{Unit: Tensor}
	reach := 1.0
	if w.TensorReach > 0 {
		reach = w.TensorReach
	}
	for _, o := range w.Operations {
		if !o.Math.Tensor() || o.Count.Value == 0 {
			continue
		}
		p, _ := r.GPU.Peak(o.Math)
		f.US += o.Count.Value / (p.TFLOPS * reach * 1e6)
		f.From = mix(f.From, o.Count.From)
		if f.Detail != "" {
			f.Detail += ", "
		}
		f.Detail += fmt.Sprintf("%s %.1f TFLOP/s dense at %g MHz", o.Math, p.TFLOPS, p.ClockMHz)
		if reach < 1 {
			f.Detail += fmt.Sprintf(", of which the instructions used reach %.0f %%", reach*100)
		}
	}
	return f
}

// issue takes the tightest of instruction slots, FMA pipe, ALU pipe and the
// arithmetic that has no tensor core.
func (r Roofs) issue(w *Work) Floor {
	p := r.GPU.Pipes()
	best := Floor{Unit: Issue}
	offer := func(us float64, from bench.Provenance, detail string, args ...any) {
		if us > best.US {
			best = Floor{Issue, us, from, fmt.Sprintf(detail, args...)}
		}
	}
	offer(r.pipe(w.Issue.Value*target.WarpSize, p.Issue), w.Issue.From, "%g warp instructions per SM and clock", p.Issue/target.WarpSize)
	offer(r.pipe(w.FMA.Value, p.FMA), w.FMA.From, "FMA pipe, %g results per SM and clock", p.FMA)
	offer(r.pipe(w.ALU.Value, p.ALU), w.ALU.From, "ALU pipe, %g results per SM and clock", p.ALU)
	for _, o := range w.Operations {
		if o.Math.Tensor() || o.Count.Value == 0 {
			continue
		}
		peak, _ := r.GPU.Peak(o.Math)
		offer(o.Count.Value/(peak.TFLOPS*1e6), o.Count.From, "%s %.1f TFLOP/s at %g MHz", o.Math, peak.TFLOPS, peak.ClockMHz)
	}
	return best
}
