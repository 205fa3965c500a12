package roofline

import (
	"fmt"
	"strings"
)

// Busy is how much of its peak rate a profiler saw a part of the GPU work at.
type Busy struct {
	Part  Part    `json:"part"`
	Share float64 `json:"share"`
}

// Part is a part of the GPU in a profiler's words, wider than a Unit.
type Part string

// The parts, in the order in which reports show them. The memory's is that of its busiest
// level, the SM's that of its busiest pipe or of the instruction slots.
const (
	PartSM     Part = "SM"
	PartTensor Part = "tensor pipe"
	PartMemory Part = "memory"
	PartL1     Part = "L1"
	PartL2     Part = "L2"
	PartDRAM   Part = "DRAM"
)

// Parts returns every part, in order.
func Parts() []Part { return []Part{PartSM, PartTensor, PartMemory, PartL1, PartL2, PartDRAM} }

// units are those whose work keeps a part busy.
func (p Part) units() []Unit {
	switch p {
	case PartSM:
		return []Unit{Tensor, MUFU, Issue}
	case PartTensor:
		return []Unit{Tensor}
	case PartMemory:
		return []Unit{HBM, L2, Shared}
	case PartL1:
		return []Unit{Shared}
	case PartL2:
		return []Unit{L2}
	}
	return []Unit{HBM}
}

// uncounted is what finds the work behind a busy part whose units were not counted.
var uncounted = map[Part]string{
	PartSM:     "smsp__inst_executed.sum, sm__inst_executed_pipe_fma.sum, sm__inst_executed_pipe_alu.sum and sm__inst_executed_pipe_xu.sum tell which of its pipes",
	PartTensor: "sm__ops_path_tensor_src_*.sum counts its operations",
	PartMemory: "dram__bytes.sum, lts__t_bytes.sum and l1tex__data_pipe_lsu_wavefronts_mem_shared.sum tell which level",
	PartL1:     "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum and l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum tell which accesses",
	PartL2:     "lts__t_bytes.sum counts its bytes",
	PartDRAM:   "dram__bytes.sum counts its bytes",
}

// FromBusy gives the bytes that memory moved by the share of its peak that a profiler saw
// it busy for, where nobody counted them; false where that is not known either.
func (k *Kernel) FromBusy(r Roofs) bool {
	if k.Work.HBMBytes.Value > 0 || k.TimeUS == 0 {
		return false
	}
	for _, b := range k.Seen.Busy {
		if b.Part == PartDRAM && b.Share > 0 {
			k.Work.HBMBytes = Counted(min(b.Share, 1) * r.HBM.Value * 1e3 * k.TimeUS)
			return true
		}
	}
	return false
}

// busiest is the part that a profiler saw work nearest to its peak. One that others are a
// part of gives way to the one whose share it reports.
func (s *Seen) busiest() (most Busy) {
	for _, b := range s.Busy {
		inside := most.Part == PartMemory || most.Part == PartSM && b.Part == PartTensor
		if b.Share > most.Share || inside && b.Share >= most.Share-sameShare {
			most = b
		}
	}
	return most
}

const (
	sameShare = 0.005 // of the peak: two shares are one
	apart     = 0.1   // of the peak: more than clocks and rounding explain
)

// Overruled returns the part that a profiler saw busier than the binding floor can be: the
// work that keeps it busy was not counted. False where the floors explain all.
func (j *Judged) Overruled() (Busy, bool) {
	b := j.Kernel.Seen.busiest()
	if j.Verdict == nil || b.Share < latencyBound || b.Share < j.Verdict.Score+apart {
		return Busy{}, false
	}
	for _, u := range b.Part.units() {
		if j.share(u) >= b.Share-apart {
			return Busy{}, false
		}
	}
	return b, true
}

func adviseBusy(j *Judged) string {
	b, ok := j.Overruled()
	if !ok {
		return ""
	}
	var counted []string
	for _, f := range j.Floors {
		counted = append(counted, j.Roofs.Name(f.Unit))
	}
	return fmt.Sprintf("the %s is at %s of its peak by the profiler, and what was counted (%s) is not why: %s",
		b.Part, percent(b.Share), strings.Join(counted, ", "), uncounted[b.Part])
}

// idle says that no unit is busy, of as many as somebody looked at.
func (j *Judged) idle() string {
	share, of := j.Verdict.Score, "no unit"
	seen := map[Part]bool{}
	for _, b := range j.Kernel.Seen.Busy {
		seen[b.Part] = true
		share = max(share, b.Share)
	}
	if whole := seen[PartSM] && seen[PartMemory]; !whole && len(j.Floors) < len(Units())-1 {
		of = "of the units counted none"
	}
	return fmt.Sprintf("%s is busy for more than %s of the time", of, percent(share))
}
