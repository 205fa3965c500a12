package roofline

import (
	"fmt"

	"github.com/kgen-dev/kgen/bench"
)

// Kernel is what a profiler, a device or the virtual machine saw a kernel do:
// the mean of its launches.
type Kernel struct {
	Name     string
	At       string // the file and line that it is from, for errors; or ""
	Launches int
	Work     Work
	Least    Count            // the least bytes that must pass to or from memory; the zero Count if unknown
	TimeUS   float64          // 0 if nobody timed it
	From     bench.Provenance // of the time
	ClockMHz float64          // the SMs' during the run, 0 if unknown
	Seen     Seen
}

// Seen are counters that tell why a kernel takes its time, not how much work it
// does. A zero is unknown.
type Seen struct {
	Loads, Stores   Access  // of global memory
	Wavefronts      float64 // of shared memory
	IdealWavefronts float64 // what its accesses need without bank conflicts
	Occupancy       float64 // active warps, as a share of an SM's most
	Waves           float64 // of blocks over the places on the SMs
	Blocks          float64 // of the grid
	HitRate         float64 // of the L2, a share
	Spilled         float64 // bytes of local memory moved
	Busy            []Busy  // what a profiler saw of the parts of the GPU, in the order of Parts
	Worst           string  // the place with the most bank conflicts or sectors, in words
}

// Access is traffic of one kind with global memory: a request is a warp's
// instruction, a sector 32 bytes that it touches.
type Access struct {
	Requests, Sectors float64
	Bytes             float64 // that threads asked for; 0 if unknown
}

// excess returns how many times the least sectors an access touches, and false
// where that is not known. Without the bytes asked for, 4 a thread are assumed,
// for which a warp needs 4 sectors.
func (a Access) excess() (float64, bool) {
	if a.Requests == 0 || a.Sectors == 0 {
		return 0, false
	}
	least := 4 * a.Requests
	if a.Bytes > 0 {
		least = max(a.Bytes/bench.SectorBytes, a.Requests)
	}
	return a.Sectors / least, true
}

// Traffic sets the least bytes beside those that passed.
type Traffic struct {
	Least   Count   `json:"least"`
	Counted Count   `json:"counted"`
	Ratio   float64 `json:"ratio"` // counted / least; below 1 where results stay in the L2
	Doubt   string  `json:"doubt,omitempty"`
}

// Traffic compares a kernel's bytes; nil where one of both is unknown.
func (k *Kernel) Traffic() *Traffic {
	if k.Least.Value == 0 || k.Work.HBMBytes.Value == 0 || k.Work.HBMBytes.From == bench.Formula {
		return nil
	}
	return &Traffic{Least: k.Least, Counted: k.Work.HBMBytes, Ratio: k.Work.HBMBytes.Value / k.Least.Value}
}

// Judged is a kernel held to a GPU's roofs.
type Judged struct {
	Kernel *Kernel
	*Assessment
	Verdict *Verdict // nil without a time
	Advice  string   // what to do next, one line
}

// Traffic is the kernel's, with a doubt where it is less than needed by more than the L2
// spares: what lies in it before a launch is not read, and what stays in it is not written.
func (j *Judged) Traffic() *Traffic {
	t := j.Kernel.Traffic()
	if t == nil {
		return nil
	}
	if l2 := float64(j.Roofs.GPU.L2Bytes()); l2 > 0 && t.Least.Value-t.Counted.Value > 2*l2 {
		t.Doubt = fmt.Sprintf("less than needed by more than an L2 of %g MiB can spare: is --bytes of one launch?", j.Roofs.GPU.L2MiB)
	}
	return t
}

// Judge assesses a kernel's work, and its time if it has one.
func (k *Kernel) Judge(r Roofs) (*Judged, error) {
	a, err := Assess(r, k.Work)
	if err != nil {
		return nil, err
	}
	j := &Judged{Kernel: k, Assessment: a}
	if k.TimeUS > 0 {
		if j.Verdict, err = a.Judge(k.TimeUS, k.From); err != nil {
			return nil, err
		}
	}
	j.Advice = j.advise()
	return j, nil
}
