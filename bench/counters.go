package bench

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/kgen-dev/kgen/codegen/ptx"
)

// Counters are what a launch did, exactly. All numbers are totals over the
// blocks that ran.
type Counters struct {
	Blocks  int64 `json:"blocks"`
	Warps   int64 `json:"warps"`
	Threads int64 `json:"threads"`

	Instructions PipeCounts    `json:"instructions"`
	Tensor       []TensorCount `json:"tensor"` // sorted by kind, shape and types

	Global GlobalTraffic `json:"global"`
	Shared SharedTraffic `json:"shared"`
	Local  AccessCount   `json:"local"` // loads and stores, spills included
	Const  AccessCount   `json:"const"`

	Barriers    int64 `json:"barriers"`     // bar and barrier, counted once per warp
	Mbarriers   int64 `json:"mbarriers"`    // mbarrier operations, per thread
	Fences      int64 `json:"fences"`       // per warp
	Atomics     int64 `json:"atomics"`      // atom and red, per thread
	Branches    int64 `json:"branches"`     // per warp
	Divergent   int64 `json:"divergent"`    // branches that split a warp
	ActiveLanes int64 `json:"active_lanes"` // lanes active, summed over warp instructions
}

// Issue counts instructions of one pipe: once for each warp, and once for each
// active thread.
type Issue struct {
	Warp   int64 `json:"warp"`
	Thread int64 `json:"thread"`
}

// PipeCounts are instructions by pipe.
type PipeCounts [ptx.NumPipes]Issue

// Total is the sum over all pipes.
func (p *PipeCounts) Total() Issue {
	var t Issue
	for _, c := range p {
		t.Warp += c.Warp
		t.Thread += c.Thread
	}
	return t
}

// MarshalJSON writes an object with a key for each pipe, in the pipes' order.
func (p PipeCounts) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, c := range p {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `%q:{"warp":%d,"thread":%d}`, ptx.Pipe(i), c.Warp, c.Thread)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON reads what MarshalJSON writes; an unknown pipe is an error.
func (p *PipeCounts) UnmarshalJSON(data []byte) error {
	var m map[string]Issue
	if err := json.Unmarshal(data, &m); err != nil {
		return err
	}
	*p = PipeCounts{}
	for i := range p {
		name := ptx.Pipe(i).String()
		p[i] = m[name]
		delete(m, name)
	}
	for name := range m {
		return fmt.Errorf("pipe %q: unknown", name)
	}
	return nil
}

// TensorCount counts tensor instructions of one shape and type.
type TensorCount struct {
	Kind        string `json:"kind"`        // "mma", "wmma", "wgmma", "tcgen05"
	Shape       string `json:"shape"`       // "m16n8k16"
	A           string `json:"a"`           // operand types, "f16"
	B           string `json:"b"`           //
	Accumulator string `json:"accumulator"` // "f32"
	Sparse      bool   `json:"sparse,omitempty"`
	Count       int64  `json:"count"`      // instructions: per warp, warpgroup (wgmma) or issuing thread (tcgen05)
	Operations  int64  `json:"operations"` // 2*m*n*k each
}

// AccessCount counts accesses of one kind.
type AccessCount struct {
	Requests int64 `json:"requests"` // warp instructions, or bulk copies
	Bytes    int64 `json:"bytes"`    // that the active threads asked for
	Sectors  int64 `json:"sectors"`  // distinct aligned 32-byte sectors of each request, summed
}

// GlobalTraffic is global memory's traffic at the level of requests, before
// any cache.
type GlobalTraffic struct {
	Loads   AccessCount `json:"loads"`   // ld, and ldu
	Stores  AccessCount `json:"stores"`  // st
	Copies  AccessCount `json:"copies"`  // cp.async, bulk and tensor copies from global memory
	Writes  AccessCount `json:"writes"`  // bulk and tensor copies and reductions to global memory
	Atomics AccessCount `json:"atomics"` // atom and red

	UniqueReadBytes  int64 `json:"unique_read_bytes"`  // distinct bytes read by all of them
	UniqueWriteBytes int64 `json:"unique_write_bytes"` // distinct bytes written

	L2ReadSectors  int64 `json:"l2_read_sectors"` // that reach DRAM through the cache model
	L2WriteSectors int64 `json:"l2_write_sectors"`
}

// SharedCount counts accesses to shared memory. A wavefront is one pass over
// the 32 banks of 4 bytes; Ideal is what the same bytes need without conflicts.
type SharedCount struct {
	Requests   int64 `json:"requests"`
	Bytes      int64 `json:"bytes"`
	Wavefronts int64 `json:"wavefronts"`
	Ideal      int64 `json:"ideal_wavefronts"`
}

// SharedTraffic is shared memory's traffic.
type SharedTraffic struct {
	Loads    SharedCount `json:"loads"`    // ld
	Stores   SharedCount `json:"stores"`   // st
	Matrix   SharedCount `json:"matrix"`   // ldmatrix, stmatrix
	Copies   SharedCount `json:"copies"`   // cp.async into shared memory
	Atomics  SharedCount `json:"atomics"`  // atom, red
	Operands SharedCount `json:"operands"` // read by wgmma and tcgen05, bulk copies
}
