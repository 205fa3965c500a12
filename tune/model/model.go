// Package model predicts how long a compiled program takes on a GPU that is not there.
//
// What each block of threads does is counted from the thread program under the launch's
// arguments (simt.Counter, and walks over the addresses). The time is then a few named
// terms: what each unit of an SM needs for the blocks that share it, the least time of
// a block on its own (its dependences, with the latencies of units and memory), what
// memory and L2 must move, how blocks fall on the SMs, and the launch itself.
package model

import (
	"fmt"
	"math"
	"slices"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/roofline"
)

// Version changes whenever a prediction may: predictions of other versions are not
// compared with this one's.
const Version = "10"

// The model's constants. They were set once against kernel times that NVIDIA measured
// (FlashAttention-2's forward pass on A100 and H100, matrix products on both), and are
// the same for all kernels and GPUs.
const (
	// sustained is the share of a unit's rate that a long kernel holds. Matrix products
	// on A100 reach 271 of 312 TFLOP/s over many shapes (ml-engineering, MAMF). On H100
	// they bring the clock down from 1.83 to about 1.6 GHz (FlashMLA's notes), at which
	// all else in such a kernel runs too.
	sustained = 0.87

	// sustainedHBM is the share of the memory's bandwidth that streams reach: the triad
	// moves 1759 of 2039 GB/s on A100 (gpu-benches), reads of weights 3.10 of 3.35 TB/s
	// on H100 (aiconfigurator).
	sustainedHBM = 0.88

	// usableL2 is the share of L2 that keeps what is read again: A100 and H100 have two
	// halves, and each keeps what its SMs read. A100's bandwidth falls beyond 16.5 of
	// its 40 MiB (gpu-benches).
	usableL2 = 0.5

	// overlap is the exponent under which the times of the units inside an SM and of a
	// block's own chain of dependences add up: 1 would be one after the other, infinity
	// perfectly hidden. Under 2, units that are both busy half of the time get in each
	// other's way as the products and exponentials of FlashAttention-2 do.
	overlap = 2

	// overlapUnderWay is the same where products of one round of a loop are still under
	// way in the next: the tensor cores do not wait for what the threads do between.
	// cuBLAS' product of 8192 on H100 takes 1.07 times what the tensor term alone does.
	overlapUnderWay = 4

	// overlapTurns is the same where two warpgroups take turns at multiplying, each with
	// its softmax under the other's products. With it and products that overlap the
	// softmax FlashAttention-3 reaches 661 TFLOP/s where it has 582 without (Shah et al.,
	// arXiv 2407.08608, table 2: 4 sequences of 8448, 16 heads of 128, no mask).
	overlapTurns = 2.2

	// overlapMemory is the same for what L2 and memory move meanwhile: copies run ahead
	// of the arithmetic and delay it only near the limit.
	overlapMemory = 4
)

// Resources are what a compiler says that a kernel takes; the zero value is for one
// that nobody compiled, whose registers are estimated.
type Resources struct {
	Registers int // a thread
	Shared    int // static bytes a block
	Spill     int // bytes a thread stores and loads for lack of registers
}

// Prediction is a program's time and where it goes.
type Prediction struct {
	US    float64 // microseconds
	Steps []Step
	Work  roofline.Work // of the whole program but its useful operations
}

// Step is one launch.
type Step struct {
	Kernel    string
	US        float64
	Blocks    int64
	Occupancy target.Occupancy
	Registers int  // a thread
	Estimated bool // the registers are
	Shared    int  // bytes a block, static and dynamic
	Waves     float64
	Terms     []Term // what bounds it, each as if it were alone
	Parts     []Term // of US, which they add up to: the largest of Terms without waves, overlap, waves
	Unknown   int64  // decisions that depend on data, in the busiest block

	block       Counts  // of the busiest; of a persistent kernel, a tile's
	tiles       int64   // that there are such blocks of
	sharedBytes float64 // of all blocks
}

// Seen are the counters that tell why a launch takes its time. Accesses at places that
// data decide are left out.
func (s *Step) Seen(g *target.GPU) roofline.Seen {
	n := float64(s.tiles)
	seen := roofline.Seen{Occupancy: g.Fraction(s.Occupancy), Waves: s.Waves, Blocks: float64(s.Blocks)}
	if s.Unknown == 0 {
		loads := s.block.Loads
		loads.add(s.block.Copies, 1)
		seen.Loads, seen.Stores = loads.times(n), s.block.Stores.times(n)
	}
	// The operands of wgmma come without conflicts.
	seen.Wavefronts = max(s.sharedBytes/roofline.WavefrontBytes, n*float64(s.block.Wavefronts()))
	seen.IdealWavefronts = seen.Wavefronts - n*float64(s.block.Wavefronts()-s.block.SharedIdeal)
	return seen
}

// Term is one part of a prediction.
type Term struct {
	Name string // a roofline.Unit, or "latency"
	US   float64
}

// Latency names the term of a block's own chain of dependences.
const Latency = "latency"

// The parts of a prediction beside the unit, or latency, that takes longest.
const (
	Overlap = "overlap" // units that get in each other's way
	Waves   = "waves"   // places on SMs that stay empty: uneven blocks, a last wave
)

// Parts are what the time consists of, with Launch; they add up to US.
func (p *Prediction) Parts() map[string]float64 {
	parts, left := map[string]float64{}, p.US
	for _, s := range p.Steps {
		for _, t := range s.Parts {
			parts[t.Name] += t.US
			left -= t.US
		}
	}
	parts[string(roofline.Launch)] = left
	return parts
}

// Longest is the step that takes longest, the first of equal ones; the zero Step where no
// step launches a block.
func (p *Prediction) Longest() (longest Step) {
	for _, s := range p.Steps {
		if s.US > longest.US {
			longest = s
		}
	}
	return longest
}

// ErrFit is in the error for a kernel that no SM can hold.
var ErrFit = codegen.ErrResources

// Predict predicts the time of a plan of a compiled program. resources says what each
// kernel takes, by name; those it lacks are estimated. in is memory that decides what is
// executed; nil: none. Its error wraps ErrFit for a kernel that does not fit an SM.
func Predict(g *target.GPU, c *codegen.Compiled, p *codegen.Plan, in Inputs, resources map[string]Resources) (*Prediction, error) {
	out := &Prediction{Work: roofline.Work{Launches: roofline.Count{Value: float64(len(p.Steps)), From: bench.Formula}}}
	for i := range p.Steps {
		s := &p.Steps[i]
		k := kernelOf(c, s.Kernel)
		if k == nil {
			return nil, fmt.Errorf("kernel %s: not in the module", s.Kernel)
		}
		us := g.Architecture().LaunchUS
		if s.Grid > 0 {
			l, err := newLaunch(g, k, s, in)
			if err != nil {
				return nil, err
			}
			step, err := l.predict(g, resources[s.Kernel], &out.Work)
			if err != nil {
				return nil, fmt.Errorf("kernel %s: %w", s.Kernel, err)
			}
			out.Steps = append(out.Steps, step)
			us += step.US
		}
		out.US += us
	}
	return out, nil
}

func kernelOf(c *codegen.Compiled, name string) *simt.Kernel {
	for _, k := range c.Module.Kernels {
		if k.Name == name {
			return k
		}
	}
	return nil
}

// fit finds how many blocks an SM holds.
func (l *launch) fit(g *target.GPU, r *Resources, s *Step) error {
	k := l.kernel.Kernel
	s.Registers = r.Registers
	if r.Registers == 0 {
		s.Estimated = true
		s.Registers, r.Spill = estimate(g, k)
	}
	s.Shared = r.Shared + l.SharedBytes
	if s.Estimated && !k.Dynamic {
		s.Shared = k.Shared
	}
	var err error
	s.Occupancy, err = g.Occupancy(target.Usage{Registers: s.Registers, Shared: s.Shared, Threads: k.Threads, Barriers: 1})
	if err != nil {
		return err
	}
	if s.Occupancy.CTAs == 0 {
		return fmt.Errorf("%d threads of %d registers and %d bytes of shared memory: %w: limited by %s",
			k.Threads, s.Registers, s.Shared, ErrFit, s.Occupancy.Limiter)
	}
	return nil
}

// predict times the launch and adds its work to the program's.
func (l *launch) predict(g *target.GPU, r Resources, work *roofline.Work) (Step, error) {
	s := Step{Kernel: l.Kernel, Blocks: l.blocks, Unknown: l.traffic.Unknown, block: l.traffic, tiles: l.Grid}
	if err := l.fit(g, &r, &s); err != nil {
		return s, err
	}
	resident := s.Occupancy.CTAs
	sms := g.ClusterSMs(resident, l.kernel.Cluster)
	if l.Persistent() {
		resident = min(resident, max(1, int(l.blocks)/sms))
	}
	slots := int64(sms) * int64(resident)
	s.Waves = float64(l.Grid) / float64(slots)
	hbm := l.hbmBytes(slots, usableL2*g.L2MiB*(1<<20))

	blocks, scale := l.sample()
	weight := make([]float64, len(l.classes)) // blocks of each class
	for _, c := range blocks {
		weight[c] += scale
	}
	units := make([]unitTimes, len(l.classes))
	total := unitTimes{}
	reads := 0.0
	for i := range l.classes {
		reads += weight[i] * l.classes[i].share
	}
	for i := range l.classes {
		u := l.units(g, &l.classes[i], r.Spill)
		u[memoryUnit] = hbm * l.classes[i].share / max(reads, 1) / (g.HBM().Value * 1e3 / float64(g.SMs)) * sustained / sustainedHBM
		units[i] = u
		for j := range u {
			total[j] += weight[i] * u[j]
		}
	}
	us := func(class int32, n int) float64 { return l.shared(g, class, n, &units[class]) }
	known := memo(us, len(l.classes), resident)
	if l.Persistent() && len(l.classes) > 1 {
		s.US = l.walked(blocks, func(class int32) float64 { return known(class, resident) })
	} else {
		s.US = schedule(sms, resident, blocks, known)
	}
	if scale > 1 {
		s.US *= scale
	}
	s.US += l.once(g)
	for j, name := range unitNames {
		s.Terms = append(s.Terms, Term{string(name), total[j] / sustained / float64(g.SMs)})
	}
	s.Terms = append(s.Terms, Term{Latency, l.us(g, l.cycles) * math.Ceil(s.Waves)})
	even, chain := 0.0, 0.0 // with every place taken
	for i := range l.classes {
		places := weight[i] / float64(slots)
		even += places * us(int32(i), resident)
		chain += places * l.latency(g, i)
	}
	s.Parts = parts(s.Terms, chain, even+l.once(g), s.US)
	before := work.SharedBytes.Value
	l.addWork(work, weight, hbm)
	s.sharedBytes = work.SharedBytes.Value - before
	return s, nil
}

// latency is how long a block of a class takes alone on an SM, microseconds.
func (l *launch) latency(g *target.GPU, class int) float64 {
	busiest := 0.0
	for i := range l.classes {
		busiest = max(busiest, l.classes[i].issue)
	}
	return l.us(g, l.ends+(l.cycles-l.ends)*l.classes[class].issue/busiest)
}

// shared is how long a block of a class takes when n blocks share its SM, microseconds.
// One that has it to itself waits for its first copies, of its own from memory and of what
// others copy too from L2, and ends while nobody multiplies.
func (l *launch) shared(g *target.GPU, class int32, n int, u *unitTimes) float64 {
	chain := max(l.latency(g, int(class)), l.refill(g, &l.classes[class], u))
	ends := 0.0
	switch {
	case l.Persistent():
		ends = l.us(g, l.between)
		chain -= l.us(g, l.ends)
	case n == 1:
		ends = l.us(g, l.ends)
		chain -= ends
		ends += l.firstCopies(g)
	}
	us := u.together(float64(n)/sustained, chain, l.kernel.overlap())
	if l.Persistent() && n == 1 {
		ends += l.lateCopies(g, &l.classes[class], us-u[tensorUnit]/sustained, ends)
	}
	if l.kernel.Pingpong { // one warpgroup stores while the other multiplies
		return max(us, (us+ends)/2)
	}
	return ends + us
}

// firstCopies is how long the copies take that the first product waits for.
func (l *launch) firstCopies(g *target.GPU) float64 {
	perSM := 1e3 / float64(g.SMs) // of GB/s, bytes a microsecond
	return float64(l.kernel.first.own)/(g.HBM().Value*sustainedHBM*perSM) + float64(l.kernel.first.group)/(g.L2().Value*perSM)
}

// lateCopies is how long a persistent block waits for what is copied once for each tile, such
// as the queries of attention: they have one buffer, which is free when the last round has
// multiplied them. What threads do in that round beside its products hides the copies, and
// what they do between tiles; besides is what they do so in all rounds of the tile.
func (l *launch) lateCopies(g *target.GPU, c *class, besides, between float64) float64 {
	if l.kernel.first.own == 0 {
		return 0
	}
	rounds := max(1, c.fills/l.kernel.ring.fills())
	return max(0, memoryLatency/g.Clock()+l.firstCopies(g)-max(0, besides)/rounds-between)
}

// once is what the blocks of a persistent kernel do before their first tile: between tiles
// the copies of the next are under way.
func (l *launch) once(g *target.GPU) float64 {
	if !l.Persistent() {
		return 0
	}
	return l.us(g, l.ends-l.between) + l.firstCopies(g)
}

// us is how long so many cycles of a block take, at the clock that products leave.
func (l *launch) us(g *target.GPU, cycles float64) float64 {
	if l.ends > 0 {
		cycles /= sustained
	}
	return cycles / g.Clock()
}

// refill is how long a block of a class takes if it does nothing but wait for its ring of
// buffers: each is held for a round, for two where the products of one are under way in
// the next, and then comes back a memory latency later; where threads copy, after they have
// asked for all of its bytes, as fast as shared memory takes them.
func (l *launch) refill(g *target.GPU, c *class, u *unitTimes) float64 {
	r := l.kernel.ring
	if r.depth < 1 || !l.kernel.roles {
		return 0
	}
	rounds := c.fills / r.fills()
	away := memoryLatency / g.Clock()
	if r.warps > 0 {
		away += float64(l.kernel.first.group) / (g.SharedBandwidth() * 1e3 / float64(g.SMs))
	}
	held := 1.0
	if l.kernel.ahead {
		held = 2
	}
	return (rounds*away + held*slices.Max(u[sharedUnit:])) / float64(r.depth)
}

// parts splits a time: chain is the blocks' own chains of dependences and even the whole
// time if every place on the SMs were always taken.
func parts(terms []Term, chain, even, us float64) []Term {
	most := Term{Latency, chain}
	for _, t := range terms {
		if t.Name != Latency && t.US > most.US {
			most = t
		}
	}
	return []Term{most, {Overlap, even - most.US}, {Waves, us - even}}
}

// memo remembers the times of classes under each number of blocks that share an SM.
func memo(f func(int32, int) float64, classes, most int) func(int32, int) float64 {
	known := make([]float64, classes*(most+1))
	return func(class int32, n int) float64 {
		at := &known[int(class)*(most+1)+n]
		if *at == 0 {
			*at = f(class, n)
		}
		return *at
	}
}

// sample is the classes of the blocks looked at, in order, with how many each stands for.
func (l *launch) sample() (blocks []int32, scale float64) {
	n := l.visit(func(_ int, class int32, _ []int) { blocks = append(blocks, class) })
	return blocks, float64(l.Grid) / float64(n)
}

// unitTimes is how long a block keeps each unit of an SM busy at full rate,
// microseconds.
type unitTimes [6]float64

// The units, in the order of their names.
const (
	memoryUnit = iota
	l2Unit
	sharedUnit
	tensorUnit
	mufuUnit
	issueUnit
)

var unitNames = [...]roofline.Unit{roofline.HBM, roofline.L2, roofline.Shared, roofline.Tensor, roofline.MUFU, roofline.Issue}

// together is the time of n blocks' work on all units and of the chain of dependences,
// as they overlap under an exponent.
func (u *unitTimes) together(n, latency, overlap float64) float64 {
	inside := math.Pow(latency, overlap)
	for _, t := range u[sharedUnit:] {
		inside += math.Pow(n*t, overlap)
	}
	sum := math.Pow(inside, overlapMemory/overlap)
	for _, t := range u[:sharedUnit] {
		sum += math.Pow(n*t, overlapMemory)
	}
	return math.Pow(sum, 1.0/overlapMemory)
}

// units times a block of a class on each unit but the memory.
func (l *launch) units(g *target.GPU, c *class, spill int) unitTimes {
	var u unitTimes
	p, clock := g.Pipes(), g.Clock()
	u[l2Unit] = float64(l.traffic.L2Bytes()) * c.share / (g.L2().Value * 1e3 / float64(g.SMs))
	spilled := l.spilled(c, spill)
	u[sharedUnit] = (c.wavefronts*roofline.WavefrontBytes/p.SharedBytes + spilled) / clock
	for m, n := range c.mma {
		u[tensorUnit] += n * mmaCycles(g, simt.Mma(m)) / clock
	}
	for f, n := range c.wgmma {
		u[tensorUnit] += n * wgmmaCycles(g, simt.Wgmma(f)) / clock
	}
	u[mufuUnit] = c.mufu * warpSize / p.MUFU / clock
	u[issueUnit] = max((c.issue+spilled)*warpSize/p.Issue, c.fma*warpSize/p.FMA, c.alu*warpSize/p.ALU) / clock
	return u
}

// spilled is the warp accesses that spills cost a block: what the compiler spilled is
// taken to be moved once in every round of the longest loop, of which there are about
// as many as barriers.
func (l *launch) spilled(c *class, bytes int) float64 {
	warps := float64((l.Threads + warpSize - 1) / warpSize)
	rounds := max(1, c.bars/warps)
	return float64(bytes) / 4 * warps * rounds
}

// addWork adds a launch's counts to the program's work.
func (l *launch) addWork(w *roofline.Work, weight []float64, hbm float64) {
	add := func(c *roofline.Count, v float64) {
		c.Value += v
		if c.Value > 0 {
			c.From = bench.Predicted
		}
	}
	add(&w.HBMBytes, hbm)
	for i := range l.classes {
		c, n := &l.classes[i], weight[i]
		add(&w.L2Bytes, n*float64(l.traffic.L2Bytes())*c.share)
		add(&w.SharedBytes, n*c.wavefronts*roofline.WavefrontBytes)
		add(&w.MUFU, n*c.mufu*warpSize)
		add(&w.FMA, n*c.fma*warpSize)
		add(&w.ALU, n*c.alu*warpSize)
		add(&w.Issue, n*c.issue)
		if c.wgmma != [simt.NumWgmmas]float64{} {
			w.TensorReach = 1 // of the peak: wgmma
		}
	}
}
