package vm

import (
	"sort"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// counts is what blocks count as they run, beside their instructions.
type counts struct {
	blocks, warps, threads int64
	global                 bench.GlobalTraffic
	shared                 bench.SharedTraffic
	local, constant        bench.AccessCount
	mbarriers, atomics     int64
	divergent              int64
}

func (c *counts) add(o *counts) {
	c.blocks += o.blocks
	c.warps += o.warps
	c.threads += o.threads
	for _, p := range [][2]*bench.AccessCount{
		{&c.global.Loads, &o.global.Loads},
		{&c.global.Stores, &o.global.Stores},
		{&c.global.Copies, &o.global.Copies},
		{&c.global.Writes, &o.global.Writes},
		{&c.global.Atomics, &o.global.Atomics},
		{&c.local, &o.local},
		{&c.constant, &o.constant},
	} {
		p[0].Requests += p[1].Requests
		p[0].Bytes += p[1].Bytes
		p[0].Sectors += p[1].Sectors
	}
	for _, p := range [][2]*bench.SharedCount{
		{&c.shared.Loads, &o.shared.Loads},
		{&c.shared.Stores, &o.shared.Stores},
		{&c.shared.Matrix, &o.shared.Matrix},
		{&c.shared.Copies, &o.shared.Copies},
		{&c.shared.Atomics, &o.shared.Atomics},
		{&c.shared.Operands, &o.shared.Operands},
	} {
		p[0].Requests += p[1].Requests
		p[0].Bytes += p[1].Bytes
		p[0].Wavefronts += p[1].Wavefronts
		p[0].Ideal += p[1].Ideal
	}
	c.mbarriers += o.mbarriers
	c.atomics += o.atomics
	c.divergent += o.divergent
}

// counting adds up what a launch's workers counted.
type counting struct {
	counts  counts
	tallies map[*program]*tally
}

func (c *counting) init() { c.tallies = map[*program]*tally{} }

func (c *counting) merge(w *worker) {
	c.counts.add(&w.counts)
	for p, t := range w.tallies {
		mine := c.tallies[p]
		if mine == nil {
			c.tallies[p] = t
			continue
		}
		for i := range t.warps {
			mine.warps[i] += t.warps[i]
			mine.threads[i] += t.threads[i]
		}
	}
}

// result is the launch's counters.
func (c *counting) result() bench.Counters {
	n := &c.counts
	out := bench.Counters{
		Blocks: n.blocks, Warps: n.warps, Threads: n.threads,
		Global: n.global, Shared: n.shared, Local: n.local, Const: n.constant,
		Mbarriers: n.mbarriers, Atomics: n.atomics, Divergent: n.divergent,
	}
	tensor := map[bench.TensorCount]int64{}
	for p, t := range c.tallies {
		t.counts(p, func(pc int32, in *ptx.Instruction, warps, threads int64) {
			pipe := ptx.PipeNone
			if in.Spec != nil {
				pipe = in.Spec.Pipe
			}
			out.Instructions[pipe].Warp += warps
			out.Instructions[pipe].Thread += threads
			out.ActiveLanes += threads
			switch p.counter[pc] {
			case countBranch:
				out.Branches += warps
			case countBarrier:
				out.Barriers += warps
			case countFence:
				out.Fences += warps
			}
			if k, ok := p.tensor[pc]; ok {
				tensor[k] += warps
			}
		})
	}
	for k, n := range tensor {
		k.Count = n
		k.Operations *= n
		out.Tensor = append(out.Tensor, k)
	}
	sort.Slice(out.Tensor, func(i, j int) bool {
		a, b := out.Tensor[i], out.Tensor[j]
		return a.Kind+" "+a.Shape+" "+a.A+" "+a.B+" "+a.Accumulator < b.Kind+" "+b.Shape+" "+b.A+" "+b.B+" "+b.Accumulator
	})
	return out
}

// counter is a count that goes by how often an instruction runs.
type counter uint8

const (
	countNothing counter = iota
	countBranch
	countBarrier
	countFence
)
