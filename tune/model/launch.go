package model

import (
	"fmt"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/codegen/target"
)

// launch is a step of a plan as the model sees it. What a block of a persistent kernel does
// is counted of one that has a single tile: its grid has a block for each, which then is
// what is told apart, counted and handed out.
type launch struct {
	*codegen.PlanStep
	blocks  int64                  // of the grid
	owner   func(tile int64) int64 // of those, by the tile's number
	kernel  *kernel
	counter *simt.Counter
	params  []int64
	inputs  Inputs
	tiles   []int64

	classes []class
	axes    []axis  // by dimension of the tile space
	traffic Counts  // of the busiest class, from addresses
	written float64 // bytes, the busiest class
	reads   [maxPointers]pointerReads
	least   float64 // share of any class
	cycles  float64 // of the busiest class, alone on an SM
	ends    float64 // of those, before the first product and after the last one
	between float64 // of those, from a tile's last product to the next one's first, in a persistent kernel
	prober  *walk
}

// class is blocks that do the same work, or nearly.
type class struct {
	amounts
	share float64 // of the busiest class's bytes read
}

// pointerReads is what blocks read through a pointer: their bytes, and the bytes of what
// is new to them, of the class with the least share and of the one with a share of 1. What
// each block reads once, such as the queries of a causal pass, does not grow with the
// length of its loop.
type pointerReads struct {
	all, once [2]float64
}

// of is what a block of a class reads, all and once, when the least share is given.
func (r *pointerReads) of(share, least float64) (all, once float64) {
	t := 1.0
	if least < 1 {
		t = (share - least) / (1 - least)
	}
	return r.all[0] + t*(r.all[1]-r.all[0]), r.once[0] + t*(r.once[1]-r.once[0])
}

// axis is one dimension of a tile space.
type axis struct {
	samples int64   // classes along it; 1: the work does not depend on it
	group   []int64 // by pointer: how many neighbours read the same; 0: all do
}

const (
	// mostSamples bounds the classes along an axis; further axes add none once there
	// are mostClasses.
	mostSamples = 64
	mostClasses = 64
	// mostCounted bounds how many points of a single axis are counted; the rest lie on
	// straight lines between.
	mostCounted = 6
)

// newLaunch counts a step. Pointers are taken to be aligned and apart.
func newLaunch(g *target.GPU, k *simt.Kernel, s *codegen.PlanStep, in Inputs) (*launch, error) {
	one := s.Rounds(1)
	l := &launch{PlanStep: &one, blocks: s.Grid, owner: s.Owner, inputs: in, kernel: prepare(k), counter: simt.NewCounter(k), tiles: s.Tiles()}
	l.params = stepParams(s)
	if len(l.params) != len(k.Params) {
		return nil, fmt.Errorf("kernel %s: %d arguments planned for %d parameters", k.Name, len(l.params), len(k.Params))
	}
	if err := l.classify(); err != nil {
		return nil, err
	}
	busiest := 0
	for i := range l.classes {
		if l.classes[i].issue > l.classes[busiest].issue {
			busiest = i
		}
	}
	w, err := l.walk(l.pointOf(busiest), k.Threads)
	if err != nil {
		return nil, err
	}
	w.clock = newTimeline(g, l.kernel)
	w.run()
	l.traffic, l.cycles, l.written = w.counts, w.clock.cycles(), float64(bench.SectorBytes*(w.counts.Stores.Sectors+w.counts.Writes.Sectors))
	l.ends, l.between = w.clock.ends()
	if l.kernel.roles && l.ends > 0 { // copies that another role waits for
		l.ends += memoryLatency
		l.cycles += memoryLatency
	}
	lightest := 0
	for i := range l.classes {
		c := &l.classes[i]
		c.share = 1
		if most := l.classes[busiest].loads; most > 0 {
			c.share = c.loads / most
		}
		if c.share < l.classes[lightest].share {
			lightest = i
		}
	}
	l.least = l.classes[lightest].share
	light := w
	if l.least < 1 {
		if light, err = l.walk(l.pointOf(lightest), k.Threads); err != nil {
			return nil, err
		}
		light.run()
	}
	for p := range l.reads {
		l.reads[p].all[0], l.reads[p].once[0] = light.readThrough(p)
		l.reads[p].all[1], l.reads[p].once[1] = w.readThrough(p)
	}
	return l, l.probe()
}

// stepParams is the bits of a step's arguments, with an address for each pointer.
func stepParams(s *codegen.PlanStep) []int64 {
	params := make([]int64, len(s.Args))
	for i, a := range s.Args {
		switch {
		case a.Memory >= 0:
			params[i] = int64(a.Memory+1) << pointerShift
		case a.Bytes == 4:
			params[i] = int64(int32(uint32(a.Bits)))
		case a.Bytes == 1:
			params[i] = int64(a.Bits & 1)
		default:
			params[i] = int64(a.Bits)
		}
	}
	return params
}

// stepMaps are the tensor maps of a step's arguments.
func stepMaps(s *codegen.PlanStep) []*codegen.TensorMap {
	maps := make([]*codegen.TensorMap, len(s.Args))
	for i, a := range s.Args {
		maps[i] = a.Map
	}
	return maps
}

func (l *launch) walk(point []int, threads int) (*walk, error) {
	block, err := l.Block(point)
	if err != nil {
		return nil, err
	}
	return newWalk(l.kernel, l.PlanStep, l.inputs, block, threads), nil
}

// readThrough is the bytes read through a pointer, and those of them not read before.
func (w *walk) readThrough(pointer int) (all, once float64) {
	if w.seen[pointer] == 0 {
		return 0, 0
	}
	all = float64(w.counts.Read[pointer])
	return all, all * float64(w.reads[pointer].count) / float64(w.seen[pointer])
}

func (l *launch) count(point []int) (simt.Counts, error) {
	block, err := l.Block(point)
	if err != nil {
		return simt.Counts{}, err
	}
	return l.counter.Count(simt.Env{Params: l.params, Block: [3]int64{block}, Grid: [3]int64{l.Grid, 1, 1}, Load: l.inputs.load})
}

// middle is the point in the middle of the tile space.
func (l *launch) middle() []int {
	p := make([]int, len(l.tiles))
	for a, n := range l.tiles {
		p[a] = int(n / 2)
	}
	return p
}

// classify finds the axes that the work depends on, and counts it along them.
func (l *launch) classify() error {
	l.axes = make([]axis, len(l.tiles))
	base, err := l.count(l.middle())
	if err != nil {
		return err
	}
	total := 1
	for a, n := range l.tiles {
		l.axes[a].samples = 1
		for _, x := range []int64{0, n - 1} {
			p := l.middle()
			if n == 1 || x == int64(p[a]) || l.axes[a].samples > 1 {
				continue
			}
			p[a] = int(x)
			c, err := l.count(p)
			if err != nil {
				return err
			}
			if c != base && total < mostClasses {
				l.axes[a].samples = min(n, mostSamples)
			}
		}
		total *= int(l.axes[a].samples)
	}
	l.classes = make([]class, total)
	if total == 1 {
		l.classes[0].amounts = amountsOf(&base)
		return nil
	}
	varying := -1
	for a := range l.axes {
		if l.axes[a].samples == int64(total) {
			varying = a
		}
	}
	if varying >= 0 && total > mostCounted {
		return l.interpolate(varying)
	}
	for i := range l.classes {
		c, err := l.count(l.pointOf(i))
		if err != nil {
			return err
		}
		l.classes[i].amounts = amountsOf(&c)
	}
	return nil
}

// interpolate counts a few points along the only axis that the work depends on, and
// puts the classes on the lines between.
func (l *launch) interpolate(axis int) error {
	n := l.tiles[axis]
	var at [mostCounted]float64
	var known [mostCounted]amounts
	for i := range known {
		x := int64(i) * (n - 1) / (mostCounted - 1)
		p := l.middle()
		p[axis] = int(x)
		c, err := l.count(p)
		if err != nil {
			return err
		}
		at[i], known[i] = float64(x), amountsOf(&c)
	}
	for i := range l.classes {
		// The middle of the stretch of points that the class stands for.
		x := (float64(i)+0.5)*float64(n)/float64(len(l.classes)) - 0.5
		j := 0
		for j < mostCounted-2 && x > at[j+1] {
			j++
		}
		l.classes[i].amounts = known[j].mix(&known[j+1], (x-at[j])/(at[j+1]-at[j]))
	}
	return nil
}

// pointOf is a point whose blocks are of a class.
func (l *launch) pointOf(class int) []int {
	p := l.middle()
	for a := len(p) - 1; a >= 0; a-- {
		if s := int(l.axes[a].samples); s > 1 {
			p[a] = int((int64(class%s)*2 + 1) * l.tiles[a] / int64(2*s))
			class /= s
		}
	}
	return p
}

// classOf is the class of a point.
func (l *launch) classOf(p []int) int {
	class := 0
	for a, x := range p {
		if s := l.axes[a].samples; s > 1 {
			class = class*int(s) + int(int64(x)*s/l.tiles[a])
		}
	}
	return class
}

// probe finds which axes decide what is read through each pointer, by the address of
// the first access: blocks that differ along an axis that does not, or by less than its
// group, read the same.
func (l *launch) probe() error {
	base, err := l.firsts(make([]int, len(l.tiles)))
	if err != nil {
		return err
	}
	for a, n := range l.tiles {
		group := make([]int64, maxPointers)
		for x := int64(1); x < n; x *= 2 {
			p := make([]int, len(l.tiles))
			p[a] = int(x)
			at, err := l.firsts(p)
			if err != nil {
				return err
			}
			for i := range group {
				if group[i] == 0 && at[i] != base[i] {
					group[i] = x
				}
			}
		}
		l.axes[a].group = group
	}
	return nil
}

// firsts is where the first lane of a point's block first reads through each pointer.
func (l *launch) firsts(p []int) ([maxPointers]int64, error) {
	block, err := l.Block(p)
	if err != nil {
		return [maxPointers]int64{}, err
	}
	if l.prober == nil {
		l.prober = newWalk(l.kernel, l.PlanStep, l.inputs, block, 1)
		l.prober.probe = true
	}
	l.prober.restart(block)
	l.prober.run()
	if last := l.Threads - simt.WgmmaThreads; last > 0 && l.kernel.roles { // the warps of a role that copies
		l.prober.again(last)
		l.prober.run()
	}
	return l.prober.first, nil
}

// source is a number for what a point reads through a pointer: equal for points that
// read the same, and below sources.
func (l *launch) source(pointer int, p []int) int64 {
	id := int64(0)
	for a, x := range p {
		if g := l.axes[a].group[pointer]; g > 0 {
			id = id*((l.tiles[a]+g-1)/g) + int64(x)/g
		}
	}
	return id
}

// sources is how many different things points read through a pointer.
func (l *launch) sources(pointer int) int64 {
	n := int64(1)
	for a := range l.tiles {
		if g := l.axes[a].group[pointer]; g > 0 {
			n *= (l.tiles[a] + g - 1) / g
		}
	}
	return n
}

// visit calls f with the classes and points of the launch's blocks, in order; of more
// than mostBlocks with those of stretches that lie evenly over the grid. It returns how
// many they were.
func (l *launch) visit(f func(i int, class int32, p []int)) int {
	n, stretch := l.Grid, l.Grid
	if n > mostBlocks {
		n, stretch = mostBlocks, mostBlocks/stretches
	}
	for i := range n {
		p := l.Point(i/stretch*(l.Grid-stretch)/max(1, n/stretch-1) + i%stretch)
		f(int(i), int32(l.classOf(p)), p)
	}
	return int(n)
}
