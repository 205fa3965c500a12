package model

import (
	"fmt"
	"strings"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/roofline"
)

// CountedVersion changes whenever a prediction of Counted may.
const CountedVersion = "counted 1"

// loadsInFlight is how many loads of global memory Counted takes a warp to wait for
// together: counts do not show it.
const loadsInFlight = 4

// Launched is a launch that was run, whole or in part.
type Launched struct {
	Kernel   string
	Blocks   int64 // of the whole grid
	Threads  int   // a block
	Dynamic  int   // bytes of shared memory beside the kernel's own
	Counters *bench.Counters
}

// Counted predicts the time of any kernel from what the virtual machine counted: each
// unit's time is that of its counted work, blocks fall on the SMs as for Predict, and a
// block's chain of dependences, which counts do not show, is taken to be that of a warp in
// which every instruction needs the one before and loads come loadsInFlight at a time. Blocks that did not run are taken to be
// like those that did. Its error wraps ErrFit for a kernel that does not fit an SM.
func Counted(g *target.GPU, l Launched, r Resources) (*Prediction, error) {
	c := l.Counters
	if c.Blocks < 1 || l.Blocks < c.Blocks || l.Threads < 1 {
		return nil, fmt.Errorf("kernel %s: %d of %d blocks of %d threads counted: want one or more, of as many or more", l.Kernel, c.Blocks, l.Blocks, l.Threads)
	}
	s := Step{Kernel: l.Kernel, Blocks: l.Blocks, Registers: r.Registers, Shared: r.Shared + l.Dynamic}
	var err error
	s.Occupancy, err = g.Occupancy(target.Usage{Registers: s.Registers, Shared: s.Shared, Threads: l.Threads, Barriers: 1})
	if err != nil {
		return nil, err
	}
	if s.Occupancy.CTAs == 0 {
		return nil, fmt.Errorf("kernel %s: %d threads of %d registers and %d bytes of shared memory: %w: limited by %s",
			l.Kernel, l.Threads, s.Registers, s.Shared, ErrFit, s.Occupancy.Limiter)
	}
	work, tensor, err := countedWork(g, l)
	if err != nil {
		return nil, err
	}
	u := countedUnits(g, &work, tensor, l.Blocks)
	warps := float64(c.Warps)
	chain := arithmeticLatency*float64(c.Instructions.Total().Warp)/warps + memoryLatency*float64(c.Global.Loads.Requests)/warps/loadsInFlight
	chain /= g.Clock()
	shared := func(n int) float64 { return u.together(float64(n)/sustained, chain, overlap) }

	resident := s.Occupancy.CTAs
	slots := float64(g.SMs) * float64(resident)
	s.Waves = float64(l.Blocks) / slots
	s.US = alikeBlocks(g.SMs, resident, l.Blocks, shared)
	for i, name := range unitNames {
		s.Terms = append(s.Terms, Term{string(name), u[i] * float64(l.Blocks) / sustained / float64(g.SMs)})
	}
	s.Terms = append(s.Terms, Term{Latency, chain * max(1, s.Waves)})
	s.Parts = parts(s.Terms, chain*s.Waves, s.Waves*shared(resident), s.US)
	return &Prediction{US: s.US + g.Architecture().LaunchUS, Steps: []Step{s}, Work: work}, nil
}

// alikeBlocks is alike for any number of blocks.
func alikeBlocks(sms, most int, blocks int64, shared func(n int) float64) float64 {
	slots := int64(sms) * int64(most)
	whole := blocks / slots
	return float64(whole)*shared(most) + alike(sms, most, int(blocks-whole*slots), shared)
}

// countedWork scales what was counted to the whole grid. tensor is the time of all tensor
// cores of the GPU, microseconds.
func countedWork(g *target.GPU, l Launched) (w roofline.Work, tensor float64, err error) {
	c := l.Counters
	scale := float64(l.Blocks) / float64(c.Blocks)
	from := bench.Counted
	if scale > 1 {
		from = bench.Predicted
	}
	count := func(n int64) roofline.Count { return roofline.Count{Value: float64(n) * scale, From: from} }
	pipes := &c.Instructions
	shared := c.Shared.Total()
	// A quarter-rate conversion takes the slots of four.
	alu := pipes[ptx.PipeALU].Thread + 4*pipes[ptx.PipeConvert].Thread
	w = roofline.Work{
		HBMBytes:    count(c.L2.MemoryBytes()),
		L2Bytes:     count(c.L2.Bytes()),
		SharedBytes: count(roofline.WavefrontBytes * shared.Wavefronts),
		MUFU:        count(pipes[ptx.PipeMUFU].Thread),
		FMA:         count(pipes[ptx.PipeFMA].Thread),
		ALU:         count(alu),
		Issue:       count(pipes.Total().Warp),
		Launches:    roofline.Formula(1),
	}
	if n := pipes[ptx.PipeFP64].Thread; n > 0 {
		w.Operations = append(w.Operations, roofline.Operations{Math: target.F64, Count: count(2 * n)})
	}
	for _, t := range c.Tensor {
		math := tensorMath(t)
		peak, ok := g.Peak(math)
		if !ok {
			return w, 0, fmt.Errorf("kernel %s: %s of %s by %s: no rate is known for %s on %s", l.Kernel, t.Kind, t.A, t.B, math, g.ID)
		}
		reach := 1.0
		if share, known := g.MMASyncOfPeak(); known && (t.Kind == "mma" || t.Kind == "wmma") && math != target.F64Tensor {
			reach = share
		}
		ops := float64(t.Operations) * scale
		tensor += ops / (peak.TFLOPS * reach * 1e6)
		w.TensorReach = max(w.TensorReach, reach)
		w.Operations = addOperations(w.Operations, math, roofline.Count{Value: ops, From: from})
	}
	return w, tensor, nil
}

// addOperations adds to those of the same arithmetic.
func addOperations(all []roofline.Operations, m target.Math, n roofline.Count) []roofline.Operations {
	for i := range all {
		if all[i].Math == m {
			all[i].Count.Value += n.Value
			return all
		}
	}
	return append(all, roofline.Operations{Math: m, Count: n})
}

// tensorMath is the arithmetic of counted tensor instructions.
func tensorMath(t bench.TensorCount) target.Math {
	narrow := t.Accumulator == "f16"
	switch a := t.A; {
	case a == "f64":
		return target.F64Tensor
	case a == "tf32":
		return target.TF32
	case a == "bf16":
		return target.BF16
	case a == "f16" && narrow:
		return target.F16Acc16
	case a == "f16":
		return target.F16Acc32
	case strings.HasPrefix(a, "e2m1"):
		return target.F4
	case strings.HasPrefix(a, "e") && narrow:
		return target.F8Acc16
	case strings.HasPrefix(a, "e"):
		return target.F8Acc32
	}
	return target.I8
}

// countedUnits is how long a block keeps each unit of an SM busy at full rate.
func countedUnits(g *target.GPU, w *roofline.Work, tensor float64, blocks int64) unitTimes {
	var u unitTimes
	p := g.Pipes()
	sms, n := float64(g.SMs), float64(blocks)
	cycles := func(c roofline.Count, rate float64) float64 { return c.Value / rate / g.Clock() / n }
	u[memoryUnit] = w.HBMBytes.Value / n / (g.HBM().Value * 1e3 / sms) * sustained / sustainedHBM
	u[l2Unit] = w.L2Bytes.Value / n / (g.L2().Value * 1e3 / sms)
	u[sharedUnit] = cycles(w.SharedBytes, p.SharedBytes)
	u[tensorUnit] = tensor * sms / n
	u[mufuUnit] = cycles(w.MUFU, p.MUFU)
	slots := w.Issue
	slots.Value *= target.WarpSize
	u[issueUnit] = max(cycles(slots, p.Issue), cycles(w.FMA, p.FMA), cycles(w.ALU, p.ALU))
	for _, o := range w.Operations {
		if peak, ok := g.Peak(o.Math); ok && !o.Math.Tensor() {
			u[issueUnit] = max(u[issueUnit], o.Count.Value/(peak.TFLOPS*1e6)*sms/n)
		}
	}
	return u
}
