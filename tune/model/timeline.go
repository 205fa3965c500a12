package model

import (
	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/roofline"
)

// Latencies in cycles of the SM's clock, from an instruction's start to its result.
// Sources: Luo et al., arXiv 2402.13499 and 2501.12084 (A100, H100), and Sun et al.,
// arXiv 2206.02874 (mma.sync on A100: 25 to 33 for m16n8k16). Other architectures
// differ by a few cycles, which no prediction shows.
const (
	arithmeticLatency = 4
	convertLatency    = 8
	mufuLatency       = 18
	tensorLatency     = 33
	sharedLatency     = 29
	shuffleLatency    = 23
	barrierLatency    = 25

	// clusterLatency is that of a barrier of a cluster's blocks: what it takes to reach
	// another SM on H100 (Luo et al., arXiv 2402.13499: 180 cycles).
	clusterLatency = 180

	// memoryLatency is that of global memory under load; idle, an access that misses L2
	// takes 466 cycles on A100 and 479 on H100.
	memoryLatency = 600
)

// timeline runs one warp's instructions on a sub-partition of its own, each as soon as
// its operands are there and the unit takes it: the least time a block of threads
// takes, however many fit an SM.
type timeline struct {
	rates rates
	ready []float64              // by value
	free  [simt.NumPipes]float64 // when each unit takes the next instruction
	from  float64                // nothing starts before
	last  float64                // the latest start
	end   float64                // the latest result
	extra float64                // of rounds that were extrapolated

	open   float64   // when the copies since the last commit have landed
	groups []float64 // when each group of copies has

	own    bool      // the warp asks for the tensor maps' copies that it waits for
	landed []float64 // when those have that it has not waited for

	product  float64   // when the wgmma instructions since the last commit are over
	products []float64 // when each group of them is

	begun     bool
	head, met float64 // when the first product started and the last one was over
	tile      float64 // when the loop over tiles began, if there is one
}

// ends is how long nothing multiplies before the first product and after the last one, and
// how much of that comes again with each tile; 0 where there is no product.
func (t *timeline) ends() (all, tile float64) {
	if !t.begun {
		return 0, 0
	}
	all = t.head + t.cycles() - t.met
	return all, all - t.tile
}

// multiplies notes a product.
func (t *timeline) multiplies(start, done float64) {
	if !t.begun {
		t.begun, t.head = true, start
	}
	t.met = max(t.met, done+t.extra)
}

// rates are how many cycles a warp's instruction keeps its sub-partition's units busy.
type rates struct {
	pipe [simt.NumPipes]float64
	mma  [simt.NumMmas]float64

	wgmma     [simt.NumWgmmas]float64 // of a piece
	wavefront float64                 // of shared memory, of the SM
}

func ratesOf(g *target.GPU) rates {
	p := g.Pipes()
	per := func(results float64) float64 { return warpSize * partitions(g) / results }
	var r rates
	r.pipe[simt.PipeALU] = per(p.ALU)
	r.pipe[simt.PipeFMA] = per(p.FMA)
	r.pipe[simt.PipeMUFU] = per(p.MUFU)
	r.pipe[simt.PipeCvt] = per(p.ALU)
	r.pipe[simt.PipeFP64] = per(p.MUFU)
	if d, ok := g.Rate(target.F64); ok {
		r.pipe[simt.PipeFP64] = per(d)
	}
	r.pipe[simt.PipeLSU] = per(p.Shuffle)
	r.pipe[simt.PipeCtrl] = 1
	for m := range r.mma {
		r.mma[m] = mmaCycles(g, simt.Mma(m)) * partitions(g)
	}
	r.wavefront = roofline.WavefrontBytes / p.SharedBytes
	for f := range r.wgmma {
		r.wgmma[f] = wgmmaCycles(g, simt.Wgmma(f)) * partitions(g)
	}
	return r
}

func partitions(g *target.GPU) float64 { return float64(g.Architecture().Partitions) }

func newTimeline(g *target.GPU, k *kernel) *timeline {
	return &timeline{rates: ratesOf(g), ready: make([]float64, k.NumValues()), own: !k.roles}
}

// mark is how far the instructions have got.
func (t *timeline) mark() float64 { return t.last + t.extra }

// cycles is the whole time.
func (t *timeline) cycles() float64 { return max(t.end, t.last) + t.extra }

func (t *timeline) instr(in *simt.Instr) {
	start := t.from
	for _, a := range in.Args {
		start = max(start, t.ready[a.ID])
	}
	if in.Guard != nil {
		start = max(start, t.ready[in.Guard.ID])
	}
	switch in.Op {
	case simt.OpBar:
		t.wait(max(start, t.last) + barrierLatency)
		return
	case simt.OpClusterWait:
		t.wait(max(start, t.last) + clusterLatency)
		return
	case simt.OpWgmmaCommit:
		t.products = append(t.products, t.product)
		t.product = 0
		return
	case simt.OpWgmmaWait:
		if n := len(t.products) - int(in.Imm); n > 0 {
			t.wait(t.products[n-1])
		}
		t.held(in, start)
		return
	case simt.OpWgmmaFence:
		t.from = max(t.from, t.last) // a warp issues in order, and no compiler moves products over what comes before them
		t.held(in, start)
		return
	case simt.OpMbarWait:
		if len(t.landed) > 0 {
			t.wait(t.landed[0])
			t.landed, start = t.landed[1:], max(start, t.from)
		}
	case simt.OpCpAsyncCommit:
		t.groups = append(t.groups, t.open)
		t.open = 0
		return
	case simt.OpCpAsyncWait:
		if n := len(t.groups) - int(in.Imm); n > 0 {
			t.wait(t.groups[n-1])
		}
		return
	}
	pipe := in.Pipe()
	start = max(start, t.free[pipe])
	t.free[pipe] = start + t.busy(in, pipe)
	t.last = max(t.last, start)
	done := start + latency(in, pipe)
	t.end = max(t.end, done)
	if pipe == simt.PipeTensor {
		t.multiplies(start, done)
	}
	if in.Op == simt.OpMbarExpect && t.own {
		t.landed = append(t.landed, start+memoryLatency)
	}
	if in.Op == simt.OpCpAsync {
		t.open = max(t.open, done)
	}
	if in.Op == simt.OpWgmma {
		t.product = max(t.product, done)
		done = t.free[pipe] // the next product of the same accumulators follows at once
	}
	for _, r := range in.Results {
		t.ready[r.ID] = done
	}
}

// held hands registers on as they are.
func (t *timeline) held(in *simt.Instr, start float64) {
	for _, r := range in.Results {
		t.ready[r.ID] = max(start, t.from)
	}
}

// wait keeps everything that follows from starting earlier.
func (t *timeline) wait(until float64) {
	t.from = max(t.from, until)
	t.last = max(t.last, t.from)
	t.end = max(t.end, t.from)
}

// busy is how long an instruction keeps its unit.
func (t *timeline) busy(in *simt.Instr, pipe simt.Pipe) float64 {
	switch {
	case in.Op == simt.OpMma:
		return t.rates.mma[in.Mma]
	case in.Op == simt.OpWgmma:
		return t.rates.product(in)
	case in.Op == simt.OpBitcast:
		return 0
	case pipe == simt.PipeLSU && in.Waves > 0:
		return float64(in.Waves)
	case pipe == simt.PipeCvt && in.Op != simt.OpCvtPack:
		return t.rates.pipe[simt.PipeMUFU]
	}
	return t.rates.pipe[pipe]
}

// product is how long a wgmma instruction keeps a sub-partition's tensor core: its
// arithmetic, or for few columns the reading of its operands, which the four warps do
// together.
func (r *rates) product(in *simt.Instr) float64 {
	s := in.Wgmma()
	warps := float64(simt.WgmmaThreads / warpSize)
	return max(r.wgmma[s.Form]*float64(s.N/simt.WgmmaN), warps*float64(in.OperandWaves())*r.wavefront)
}

func latency(in *simt.Instr, pipe simt.Pipe) float64 {
	switch pipe {
	case simt.PipeTensor:
		return tensorLatency
	case simt.PipeMUFU:
		return mufuLatency
	case simt.PipeCvt:
		return convertLatency
	case simt.PipeLSU:
		switch {
		case in.Op == simt.OpShfl:
			return shuffleLatency
		case in.Op == simt.OpMbarArrive, in.Op == simt.OpMbarCopied, in.Op == simt.OpMbarExpect, in.Op == simt.OpMbarInit, in.Op == simt.OpTensorLoad, in.Op == simt.OpTensorStore:
			return 1 // nobody waits for their end here
		case in.Op == simt.OpCpAsync, in.Space == simt.Global && in.Op.Info().Effect&simt.Reads != 0 && in.Op != simt.OpLdMatrix:
			return memoryLatency
		case in.Op == simt.OpSt || in.Op == simt.OpRed || in.Op == simt.OpStMatrix || in.Op == simt.OpStAt:
			return 1
		}
		return sharedLatency
	}
	if in.Op == simt.OpBitcast {
		return 0
	}
	return arithmeticLatency
}

// copy hands values to others: what a loop or branch yields.
func (t *timeline) copy(to, from []*simt.Value) {
	if len(to) == 0 {
		return
	}
	old := make([]float64, len(from))
	for i, f := range from {
		old[i] = t.ready[f.ID]
	}
	for i, v := range to {
		t.ready[v.ID] = old[i]
	}
}
