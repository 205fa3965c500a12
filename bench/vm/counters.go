package vm

import (
	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// counts is what blocks count as they run, beside their instructions and what
// those do to memory.
type counts struct {
	blocks, warps, threads int64
	bulk                   bench.BulkTraffic
	mbarriers, atomics     int64
	divergent              int64
	products               map[bench.TensorCount]int64 // whose shape is known at run time, by one each
}

func (c *counts) add(o *counts) {
	c.blocks += o.blocks
	c.warps += o.warps
	c.threads += o.threads
	c.bulk.Loads += o.bulk.Loads
	c.bulk.Stores += o.bulk.Stores
	c.bulk.Reduces += o.bulk.Reduces
	c.mbarriers += o.mbarriers
	c.atomics += o.atomics
	c.divergent += o.divergent
	for k, n := range o.products {
		if c.products == nil {
			c.products = map[bench.TensorCount]int64{}
		}
		c.products[k] += n
	}
}

// counting adds up what a launch's workers counted.
type counting struct {
	counts  counts
	tallies map[*program]*tally
	traffic traffics
}

func (c *counting) init(k *kernel) {
	c.tallies, c.traffic = map[*program]*tally{}, make(traffics, k.memOps)
}

func (c *counting) merge(w *worker) {
	c.counts.add(&w.counts)
	c.traffic.add(w.traffic)
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
		Blocks: n.blocks, Warps: n.warps, Threads: n.threads, Bulk: n.bulk,
		Mbarriers: n.mbarriers, Atomics: n.atomics, Divergent: n.divergent,
	}
	for i := range c.traffic {
		for j := range c.traffic[i] {
			c.traffic[i][j].addTo(&out)
		}
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
	for k, n := range c.counts.products {
		tensor[k] += n
	}
	for k, n := range tensor {
		if k.Kind == "wgmma" {
			n /= warpgroup // each of its warps ran it
		}
		k.Count = n
		k.Operations *= n
		out.Tensor = append(out.Tensor, k)
	}
	bench.SortTensor(out.Tensor)
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
