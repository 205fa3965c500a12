package bench

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

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
	L2     L2Traffic     `json:"l2"`
	Bulk   BulkTraffic   `json:"bulk"`
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

// Efficiency is the share of lanes that were active when a warp instruction
// ran, 1 where every branch goes one way for all lanes of full warps.
func (c *Counters) Efficiency() float64 {
	return share(c.ActiveLanes, lanesPerWarp*c.Instructions.Total().Warp)
}

const lanesPerWarp = 32

// share is a part of a whole; of nothing it is 1.
func share(part, whole int64) float64 {
	if whole == 0 {
		return 1
	}
	return float64(part) / float64(whole)
}

// MarshalJSON adds what follows from the counts.
func (c Counters) MarshalJSON() ([]byte, error) {
	type counts Counters
	return json.Marshal(struct {
		counts
		Efficiency float64 `json:"divergence_efficiency"`
	}{counts(c), c.Efficiency()})
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

// Add adds another launch's counts. Distinct bytes are summed: what both
// touch counts twice.
func (c *Counters) Add(d *Counters) {
	c.Blocks += d.Blocks
	c.Warps += d.Warps
	c.Threads += d.Threads
	for i := range c.Instructions {
		c.Instructions[i].Warp += d.Instructions[i].Warp
		c.Instructions[i].Thread += d.Instructions[i].Thread
	}
	c.addTensor(d.Tensor)
	c.Global.add(&d.Global)
	c.L2.add(&d.L2)
	c.Bulk.add(&d.Bulk)
	c.Shared.add(&d.Shared)
	c.Local.Add(&d.Local)
	c.Const.Add(&d.Const)
	c.Barriers += d.Barriers
	c.Mbarriers += d.Mbarriers
	c.Fences += d.Fences
	c.Atomics += d.Atomics
	c.Branches += d.Branches
	c.Divergent += d.Divergent
	c.ActiveLanes += d.ActiveLanes
}

// kind is what two tensor counts must share to be one.
func (t TensorCount) kind() TensorCount {
	t.Count, t.Operations = 0, 0
	return t
}

func (c *Counters) addTensor(all []TensorCount) {
	for _, t := range all {
		i, found := slices.BinarySearchFunc(c.Tensor, t, compareTensor)
		if !found {
			c.Tensor = slices.Insert(c.Tensor, i, t.kind())
		}
		c.Tensor[i].Count += t.Count
		c.Tensor[i].Operations += t.Operations
	}
}

func compareTensor(a, b TensorCount) int {
	sparse := 0
	if a.Sparse != b.Sparse {
		if sparse = 1; b.Sparse {
			sparse = -1
		}
	}
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Shape, b.Shape), cmp.Compare(a.A, b.A),
		cmp.Compare(a.B, b.B), cmp.Compare(a.Accumulator, b.Accumulator), sparse)
}

// SortTensor puts tensor counts in the order that Counters.Tensor has.
func SortTensor(all []TensorCount) { slices.SortFunc(all, compareTensor) }
