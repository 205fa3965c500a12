// Package roofline judges a kernel against what its GPU can do: from counts of
// work it computes the least time each unit needs, names the one that binds and
// scores a time against it.
package roofline

import (
	"fmt"
	"math"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/target"
)

// Count is an amount of work with where it is from. The zero Count is "none".
type Count struct {
	Value float64          `json:"value"`
	From  bench.Provenance `json:"provenance"`
}

// Formula is a count computed by hand.
func Formula(v float64) Count { return Count{v, bench.Formula} }

// Counted is a count that the virtual machine or a profiler made.
func Counted(v float64) Count { return Count{v, bench.Counted} }

// Operations are useful operations of one kind of arithmetic: an FMA is two.
type Operations struct {
	Math  target.Math `json:"math"`
	Count Count       `json:"count"`
}

// WavefrontBytes is what shared memory moves in one wavefront, conflict or not.
const WavefrontBytes = 128

// Work is what a program does on the whole GPU, all launches together.
type Work struct {
	Operations []Operations `json:"operations"` // tensor cores and others, a kind at most once

	// TensorReach is the share of the tensor cores' peak that the instructions used can
	// reach, such as mma.sync's where others are faster; 0 is all of it.
	TensorReach float64 `json:"tensor_reach,omitempty"`

	HBMBytes    Count `json:"hbm_bytes"`
	L2Bytes     Count `json:"l2_bytes"`
	SharedBytes Count `json:"shared_bytes"` // WavefrontBytes for every wavefront, so that conflicts count

	MUFU  Count `json:"mufu"`  // thread results of exp2, rcp, rsqrt, ...
	FMA   Count `json:"fma"`   // thread results of f32 add, multiply, FMA
	ALU   Count `json:"alu"`   // thread results of integer, logic, compare
	Issue Count `json:"issue"` // warp instructions of every kind

	Launches Count `json:"launches"` // dependent launches, one after the other
}

// Total returns the sum of all useful operations. Its provenance
// is that of its least exact part.
func (w *Work) Total() Count {
	var sum Count
	for _, o := range w.Operations {
		sum.Value += o.Count.Value
		sum.From = mix(sum.From, o.Count.From)
	}
	return sum
}

// Nothing says whether every count is 0.
func (w *Work) Nothing() bool {
	sum := w.Total().Value
	for _, c := range []Count{w.HBMBytes, w.L2Bytes, w.SharedBytes, w.MUFU, w.FMA, w.ALU, w.Issue, w.Launches} {
		sum += c.Value
	}
	return sum == 0
}

// Bytes returns what crosses a level of memory, the zero Count for other units.
func (w *Work) Bytes(u Unit) Count {
	switch u {
	case HBM:
		return w.HBMBytes
	case L2:
		return w.L2Bytes
	case Shared:
		return w.SharedBytes
	}
	return Count{}
}

// mix returns the provenance of a sum: that of the less exact part.
func mix(a, b bench.Provenance) bench.Provenance {
	for _, p := range []bench.Provenance{bench.Predicted, bench.Measured, bench.Counted} {
		if a == p || b == p {
			return p
		}
	}
	return max(a, b)
}

// check refuses work that no kernel has: the error names the count.
func (w *Work) check(g *target.GPU) error {
	if !(w.TensorReach >= 0 && w.TensorReach <= 1) {
		return fmt.Errorf("work: tensor reach of %g: want a share of the peak, or 0 for all", w.TensorReach)
	}
	seen := map[target.Math]bool{}
	for _, o := range w.Operations {
		if seen[o.Math] {
			return fmt.Errorf("work: %s operations given twice", o.Math)
		}
		seen[o.Math] = true
		if err := o.Count.check(string(o.Math) + " operations"); err != nil {
			return err
		}
		if _, ok := g.Peak(o.Math); !ok && o.Count.Value > 0 {
			return fmt.Errorf("work: %s operations: no rate is known for them on %s", o.Math, g.ID)
		}
	}
	for _, c := range []struct {
		name  string
		count Count
	}{
		{"HBM bytes", w.HBMBytes}, {"L2 bytes", w.L2Bytes}, {"shared bytes", w.SharedBytes},
		{"MUFU results", w.MUFU}, {"FMA results", w.FMA}, {"ALU results", w.ALU},
		{"issued instructions", w.Issue}, {"launches", w.Launches},
	} {
		if err := c.count.check(c.name); err != nil {
			return err
		}
	}
	return nil
}

func (c Count) check(name string) error {
	if math.IsNaN(c.Value) || math.IsInf(c.Value, 0) || c.Value < 0 {
		return fmt.Errorf("work: %s: %g: want a finite number, 0 or more", name, c.Value)
	}
	if c.Value > 0 && c.From == 0 {
		return fmt.Errorf("work: %s: %g without saying where it is from", name, c.Value)
	}
	return nil
}
