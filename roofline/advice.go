package roofline

import "fmt"

// What counts as much, in advice.
const (
	nearRoof     = 0.8  // of the attainable rate: little is left to gain
	latencyBound = 0.6  // of the binding floor: below, no unit is busy
	manyTimes    = 1.25 // of the least sectors, wavefronts or bytes
	fewWarps     = 0.25 // of an SM's most
	muchOfTime   = 0.3  // of the time or of the binding floor: worth a change
	fewIdle      = 0.1  // of the SMs without a block: worth no change
	nearlyBinds  = 0.8  // of the binding floor: it would bind before long
)

// advise returns the one thing that helps most, by the counters; the rules come
// in the order in which they explain away later ones.
func (j *Judged) advise() string {
	for _, rule := range []func(*Judged) string{
		adviseDoubt, adviseConflicts, adviseSectors, adviseSpills, adviseBusy, adviseTraffic, adviseWaves, adviseLatency, adviseBound,
	} {
		if s := rule(j); s != "" {
			return s
		}
	}
	return ""
}

// time is what floors are compared with: the kernel's, or its least.
func (j *Judged) time() float64 {
	if j.Kernel.TimeUS > 0 {
		return j.Kernel.TimeUS
	}
	return j.LeastUS()
}

// share is a unit's floor as a part of the time.
func (j *Judged) share(u Unit) float64 {
	for _, f := range j.Floors {
		if f.Unit == u {
			return f.US / j.time()
		}
	}
	return 0
}

func adviseDoubt(j *Judged) string {
	if j.Verdict == nil || j.Verdict.Cause == "" {
		return ""
	}
	return "first find out why it is above its roof: " + string(j.Verdict.Cause)
}

func (s *Seen) at() string {
	if s.Worst == "" {
		return ""
	}
	return " (" + s.Worst + ")"
}

func adviseConflicts(j *Judged) string {
	s := &j.Kernel.Seen
	if s.IdealWavefronts == 0 || s.Wavefronts < manyTimes*s.IdealWavefronts || j.share(Shared) < muchOfTime && j.Binding.Unit != Shared {
		return ""
	}
	return fmt.Sprintf("shared memory takes %.1f times the wavefronts its bytes need%s: swizzle or pad its rows", s.Wavefronts/s.IdealWavefronts, s.at())
}

func adviseSectors(j *Judged) string {
	name, most := "", manyTimes
	for _, a := range []struct {
		name string
		Access
	}{{"loads", j.Kernel.Seen.Loads}, {"stores", j.Kernel.Seen.Stores}} {
		if e, ok := a.excess(); ok && e > most {
			name, most = a.name, e
		}
	}
	if name == "" {
		return ""
	}
	return fmt.Sprintf("global %s touch %.1f times the sectors their bytes need%s: let neighbouring threads take neighbouring addresses", name, most, j.Kernel.Seen.at())
}

func adviseSpills(j *Judged) string {
	if j.Kernel.Seen.Spilled < muchOfTime*j.Work.HBMBytes.Value || j.Kernel.Seen.Spilled == 0 {
		return ""
	}
	return fmt.Sprintf("%.3g MB pass through local memory: fewer registers a thread, so that nothing spills", j.Kernel.Seen.Spilled/1e6)
}

// adviseTraffic: memory binds, or would soon, and moves more than it must. Bytes that pass
// while another unit works longer cost nothing.
func adviseTraffic(j *Judged) string {
	t := j.Kernel.Traffic()
	if t == nil || t.Ratio < manyTimes || j.share(HBM) < nearlyBinds*j.share(j.Binding.Unit) {
		return ""
	}
	return fmt.Sprintf("%.1f times the least bytes pass to memory: larger tiles, or an order of blocks that reuses the L2", t.Ratio)
}

// adviseWaves: SMs have no block, all the time or in the last wave. A grid that does not
// take every place is no fault as long as every SM has a block.
func adviseWaves(j *Judged) string {
	w := j.Kernel.Seen.Waves
	full := float64(int(w))
	switch {
	case w == 0 || j.Verdict != nil && j.Verdict.Score > nearRoof:
		return ""
	case w < 1 && j.Kernel.Seen.Blocks > 0 && j.Kernel.Seen.Blocks < (1-fewIdle)*float64(j.Roofs.GPU.SMs):
		return fmt.Sprintf("%.0f blocks leave %.0f of %d SMs idle: split the sum over more blocks, or smaller tiles",
			j.Kernel.Seen.Blocks, float64(j.Roofs.GPU.SMs)-j.Kernel.Seen.Blocks, j.Roofs.GPU.SMs)
	case w < 1:
		return ""
	case w-full > 0 && (w-full) < 0.5 && full < 4:
		return fmt.Sprintf("%.2f waves of blocks: the last leaves %.0f %% of the SMs idle: another tile, or persistent blocks", w, 100*(1-(w-full)))
	}
	return ""
}

// adviseLatency: no unit is busy.
func adviseLatency(j *Judged) string {
	switch {
	case j.Verdict == nil || j.Verdict.Score >= latencyBound:
		return ""
	case j.Binding.Unit == Launch:
		return ""
	case j.Kernel.Seen.Occupancy > 0 && j.Kernel.Seen.Occupancy < fewWarps:
		return fmt.Sprintf("waits: %s and %.0f %% of the warps are there: more warps, or more copies under way for each", j.idle(), 100*j.Kernel.Seen.Occupancy)
	}
	return fmt.Sprintf("waits: %s: more stages of copies under way, fewer barriers, more independent instructions", j.idle())
}

// percent writes a share without decimals, but with a digit that is not 0.
func percent(share float64) string {
	if share < 0.01 {
		return fmt.Sprintf("%.1g %%", 100*share)
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}

// bound says what helps a kernel that keeps its binding unit busy.
var bound = map[Unit]string{
	HBM:    "fewer bytes: fuse with what comes before or after, or smaller types",
	L2:     "larger tiles, so that fewer bytes pass through the L2, or clusters that share copies",
	Shared: "larger fragments in registers, or operands that tensor cores read from shared memory themselves",
	Tensor: "a faster kind of arithmetic, such as 8-bit types",
	MUFU:   "fewer exponentials: compute some by polynomials on the FMA pipe",
	Issue:  "fewer instructions: wider loads, less address arithmetic, tensor cores where they fit",
	Launch: "less to launch: fuse kernels, or graphs",
}

func adviseBound(j *Judged) string {
	unit := j.Binding.Unit
	name := j.Roofs.Name(unit)
	switch {
	case j.Verdict == nil:
		return fmt.Sprintf("at best bound by %s: %s", name, bound[unit])
	case j.Verdict.Score < nearRoof && unit != Launch:
		return fmt.Sprintf("%.0f %% of what is attainable, bound by %s, which waits the rest of the time: more of its work under way at once (warps, stages, overlap), then %s",
			100*j.Verdict.Score, name, bound[unit])
	}
	return fmt.Sprintf("%.0f %% of what is attainable, bound by %s: %s", 100*j.Verdict.Score, name, bound[unit])
}
