package roofline

import (
	"fmt"
	"math"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/target"
)

// Floor is the least time one unit needs for its share of the work.
type Floor struct {
	Unit   Unit             `json:"unit"`
	US     float64          `json:"us"`         // microseconds
	From   bench.Provenance `json:"provenance"` // of the work counted; the ceiling's is in Detail
	Detail string           `json:"detail"`     // the ceiling it stands on
}

// Intensity is the arithmetic intensity at one level of memory: useful
// operations per byte that crosses it.
type Intensity struct {
	Level Unit    `json:"level"`
	Value float64 `json:"value"`
}

// Assessment is what the GPU's ceilings say about some work.
type Assessment struct {
	Roofs       Roofs
	Work        Work
	Floors      []Floor // of the units with work, in the order of Units
	Binding     Floor   // the largest floor
	Intensities []Intensity
}

// Assess computes the least time of every unit. The error names a count that
// no kernel has or a kind of arithmetic the GPU lacks, or says that there is
// no work at all.
func Assess(r Roofs, w Work) (*Assessment, error) {
	if err := w.check(r.GPU); err != nil {
		return nil, err
	}
	a := &Assessment{Roofs: r, Work: w, Floors: r.floors(&w)}
	for _, f := range a.Floors {
		if f.US > a.Binding.US {
			a.Binding = f
		}
	}
	if a.Binding.US == 0 {
		return nil, fmt.Errorf("work: nothing to do: every count is 0")
	}
	ops := w.Total().Value
	for _, level := range []Unit{HBM, L2, Shared} {
		if b := w.Bytes(level).Value; b > 0 && ops > 0 {
			a.Intensities = append(a.Intensities, Intensity{level, ops / b})
		}
	}
	return a, nil
}

// LeastUS returns the least possible time in microseconds.
func (a *Assessment) LeastUS() float64 { return a.Binding.US }

// AttainableTFLOPS returns the rate of useful operations at the least possible
// time, 0 for work without operations.
func (a *Assessment) AttainableTFLOPS() float64 { return a.Work.Total().Value / a.Binding.US / 1e6 }

// Compute returns the least time in microseconds of what is not memory: the slowest of
// tensor cores, MUFU and the instruction slots with their pipes.
func (a *Assessment) Compute() float64 {
	us := 0.0
	for _, f := range a.Floors {
		switch f.Unit {
		case Tensor, MUFU, Issue:
			us = max(us, f.US)
		}
	}
	return us
}

// Limits returns each unit's floor in microseconds, for printing as JSON.
func (a *Assessment) Limits() map[string]float64 {
	m := make(map[string]float64, len(a.Floors))
	for _, f := range a.Floors {
		m[string(f.Unit)] = f.US
	}
	return m
}

// Verdict is a time judged against an assessment.
type Verdict struct {
	*Assessment
	TimeUS float64          // microseconds
	From   bench.Provenance // of the time: measured or predicted
	Score  float64          // least possible time / time; above 1 is possible and says so in Doubt
	TFLOPS float64          // useful operations / time
	Doubt  string           // why a score above 1 cannot be taken at its word; empty otherwise
	Cause  Cause            // the same as a word
}

// Cause is what a score above 1 is likely to come from.
type Cause string

// The causes, the likelier first.
const (
	CacheResident Cause = "cache-resident"
	OtherClock    Cause = "other clock"
	WrongPeak     Cause = "wrong peak"
	NotPossible   Cause = "impossible"
)

// leastTime is less than a clock cycle of any GPU, in microseconds.
const leastTime = 1e-4

// Judge scores a time in microseconds. The score is never clamped: above 1 the
// counts, the ceiling or the time are not what they seem, and Doubt says which
// is likely.
func (a *Assessment) Judge(us float64, from bench.Provenance) (*Verdict, error) {
	if !(us > 0) || math.IsInf(us, 0) {
		return nil, fmt.Errorf("time of %g us: want a finite number above 0", us)
	}
	if us < leastTime {
		return nil, fmt.Errorf("time of %g us: want a clock cycle at least, %g", us, leastTime)
	}
	if from != bench.Measured && from != bench.Predicted {
		return nil, fmt.Errorf("time of %g us: a time is measured or predicted, not %s", us, from)
	}
	v := &Verdict{
		Assessment: a,
		TimeUS:     us,
		From:       from,
		Score:      a.Binding.US / us,
		TFLOPS:     a.Work.Total().Value / us / 1e6,
	}
	if v.Score > 1 {
		v.Cause, v.Doubt = v.doubt()
	}
	return v, nil
}

// overBoost is how far boards run above the clock that their driver reports, at
// most: 4.6 % were seen.
const overBoost = 1.1

// doubt explains a time below the least possible one.
func (v *Verdict) doubt() (Cause, string) {
	g := v.Roofs.GPU
	l2, bytes := g.L2MiB*(1<<20), v.Work.HBMBytes.Value
	switch v.Binding.Unit {
	case HBM:
		switch {
		case bytes <= l2:
			return CacheResident, fmt.Sprintf("%.1f MB of traffic fit the L2 of %g MiB: the data need not have come from %s", bytes/1e6, g.L2MiB, v.Roofs.Name(HBM))
		case (bytes-l2)/(v.Roofs.HBM.Value*1e3) <= v.TimeUS:
			return CacheResident, fmt.Sprintf("the L2 of %g MiB can hold back so much of the %.1f MB that %s moved the rest in time", g.L2MiB, bytes/1e6, v.Roofs.Name(HBM))
		}
	case Launch:
		return WrongPeak, fmt.Sprintf("launches take less than %s where none waits for another, in a graph, or where the time is of the kernel alone", v.Binding.Detail)
	case Tensor, Issue, MUFU, Shared:
		clock := g.Clock()
		if v.Binding.Unit == Tensor && g.TensorClockMHz > 0 {
			clock = g.TensorClockMHz
		}
		needed := clock * v.Score
		switch {
		case needed <= g.MaxClockMHz:
			return OtherClock, fmt.Sprintf("the peak is stated at %.0f MHz; the device runs up to %g MHz", clock, g.MaxClockMHz)
		case needed <= overBoost*max(clock, g.MaxClockMHz):
			return OtherClock, fmt.Sprintf("the peak is stated at %.0f MHz; %.0f MHz would explain the time, and boards boost a little past what they report", clock, needed)
		case v.Binding.Unit == Tensor && v.Score <= 2*overBoost:
			return WrongPeak, fmt.Sprintf("up to twice the dense peak (%s): sparse operands or a narrower accumulator run so fast", v.Binding.Detail)
		}
	}
	return NotPossible, fmt.Sprintf("impossible by the %s ceiling (%s): the time, the %s work or the ceiling is wrong", v.Roofs.Name(v.Binding.Unit), v.Binding.Detail, v.Binding.From)
}

// Peak returns the dense peak in TFLOP/s of the arithmetic that does most of
// the work, the roof a plot draws for it; false for work without operations.
func (a *Assessment) Peak() (target.Peak, bool) {
	var most Operations
	for _, o := range a.Work.Operations {
		if o.Count.Value > most.Count.Value {
			most = o
		}
	}
	return a.Roofs.GPU.Peak(most.Math)
}
