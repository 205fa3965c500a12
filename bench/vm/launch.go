package vm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/target"
)

// launch is one run of a kernel.
//
// Blocks run on several workers at once. What all blocks share (atomics and
// strong accesses in global memory) a block touches only while it has the
// turn. The turn goes round the resident blocks in order of index: a block
// keeps it to its end, or until it does nothing but poll. So the order of
// those operations is the same whatever the number of workers, and a block
// that needs no turn never waits.
type launch struct {
	dev    *Device
	mod    *module
	kern   *kernel
	prog   *program
	grid   [3]uint32
	block  [3]uint32
	list   [][3]uint32 // chosen blocks; nil is all
	total  int64       // of clusters, where there are any
	checks checkBits

	cluster  [3]uint32
	ctas     int  // blocks of a cluster
	explicit bool // the launch or the kernel says how large clusters are

	lines       bool // to count by line
	early       bool // launches before may still run
	threads     int
	sharedSize  int64
	dynamicSize int64
	maxSteps    int64
	cut         int64 // steps after which it was ended, where faults may be why it had no end
	params      []byte
	paramAlloc  *allocation
	abort       atomic.Bool

	mu       sync.Mutex
	changed  sync.Cond
	next     int64 // the first block that is not resident yet
	first    int64 // all before it have started
	ring     []int64
	at       int // the ring's block that has the turn
	resident map[int64]*resident
	most     int // materialised blocks
	live     int // of them now
	version  int64
	idle     int   // turns in a row that changed nothing
	doomed   bool  // blocks wait for one another and none can go on by polling
	hopeless bool  // nor in any other way
	steps    int64 // taken by blocks up to the last time the turn went on
	done     int64 // blocks that have ended

	before originals // where blocks work on copies of global memory
	across across    // touched in turn
	limits limits

	faults   faultList
	printed  string
	counters counting
	l2       *l2Run
	err      error
}

// resident is a block's state while it may run.
type resident struct {
	b      *block // nil where it has not started or is done
	state  residentState
	faults *faultList

	printed string
	steps   int64 // of a block that is done, since it last gave its turn away
	stuckAt int64 // the version at which the block's polls came to nothing; 0 is none
	lostAt  int64 // that at which it found no other way on
	gaveWay bool  // it has given its turn away, and stands where it stood then
}

type residentState uint8

const (
	notStarted residentState = iota
	isRunning
	isParked
	isDone
)

// Launch runs a kernel to its end. What it refuses to run (an instruction that
// it does not know, too many of them) is a *ptx.Error.
func (d *Device) Launch(ctx context.Context, m *bench.Module, name string, spec bench.Launch) (report *bench.Report, err error) {
	mod, ok := d.modules[m.ID]
	if !ok {
		return nil, fmt.Errorf("module %d: not loaded", m.ID)
	}
	if _, err := m.Kernel(name); err != nil {
		return nil, err
	}
	defer func() {
		if cause := recover(); cause != nil {
			report, err = nil, internalError("launching kernel "+name+" of "+mod.src.File, cause)
		}
	}()
	kern, err := mod.kernel(ctx, name)
	if err != nil {
		return nil, err
	}
	l := &launch{dev: d, mod: mod, kern: kern, prog: kern.prog, checks: d.opt.Checks.effective(), maxSteps: d.opt.MaxSteps, limits: limitsFor(d.mem.used)}
	return l.whole(ctx, spec)
}

// whole runs the launch from its arguments to its report.
func (l *launch) whole(ctx context.Context, spec bench.Launch) (*bench.Report, error) {
	l.changed.L = &l.mu
	if err := l.prepare(spec); err != nil {
		return nil, fmt.Errorf("kernel %s: %w", l.prog.name, err)
	}
	defer func() {
		if l.paramAlloc != nil {
			l.dev.mem.free(l.paramAlloc)
		}
	}()
	return l.run(ctx)
}

// prepare checks the launch's extents and arguments.
func (l *launch) prepare(spec bench.Launch) error {
	limits := l.mod.gpu.Limits()
	l.grid, l.block = ones(spec.Grid), ones(spec.Block)
	l.lines, l.early = spec.Lines, spec.Early
	if l.kern.blocksAreClusters {
		if err := l.countBlocks(); err != nil {
			return err
		}
	}
	for i, most := range [3]uint32{1<<31 - 1, 65535, 65535} {
		if l.grid[i] > most {
			return fmt.Errorf("grid %v: want at most %d in dimension %d", l.grid, most, i)
		}
	}
	threads := uint64(1)
	for _, n := range l.block {
		threads = min(threads*uint64(n), 1<<31)
	}
	if threads > uint64(limits.ThreadsPerBlock) || l.block[2] > 64 {
		return fmt.Errorf("block %v: want at most %d threads, and 64 in dimension 2", l.block, limits.ThreadsPerBlock)
	}
	l.threads = int(threads)
	if r := l.kern.required; r != ([3]uint32{}) && r != l.block {
		return fmt.Errorf("block %v: the kernel requires %v", l.block, r)
	}
	if m := l.kern.maximum; m != ([3]uint32{}) && threads > uint64(m[0])*uint64(m[1])*uint64(m[2]) {
		return fmt.Errorf("block %v: the kernel takes at most %v", l.block, m)
	}
	if spec.SharedBytes < 0 {
		return fmt.Errorf("%d bytes of dynamic shared memory: want 0 or more", spec.SharedBytes)
	}
	l.dynamicSize = spec.SharedBytes
	l.sharedSize = l.kern.static
	if spec.SharedBytes > 0 {
		l.sharedSize = l.kern.dynamic + spec.SharedBytes
	}
	if l.sharedSize-l.kern.system > int64(limits.SharedPerBlock) {
		return fmt.Errorf("%d bytes of shared memory: %s has %d for a block", l.sharedSize, l.mod.gpu.Name, limits.SharedPerBlock)
	}
	if err := l.clusterExtents(spec.Cluster); err != nil {
		return err
	}
	l.total = int64(l.grid[0]) * int64(l.grid[1]) * int64(l.grid[2]) / int64(l.ctas)
	if spec.Blocks != nil {
		l.list = l.clusterList(spec.Blocks)
		l.total = int64(len(l.list))
		for _, b := range spec.Blocks {
			if b[0] >= l.grid[0] || b[1] >= l.grid[1] || b[2] >= l.grid[2] {
				return fmt.Errorf("block %v: outside the grid %v", b, l.grid)
			}
		}
	}
	if most := l.maxSteps/l.startSteps() + 1; l.total > most && !l.kern.cancels {
		return l.tooMany(fmt.Sprintf("%d blocks", l.total), most)
	}
	return l.arguments(spec.Args)
}

// countBlocks turns a grid of clusters into one of blocks, which have the threads
// that the kernel requires where the launch says nothing of them.
func (l *launch) countBlocks() error {
	for i, n := range l.kern.cluster {
		blocks := uint64(l.grid[i]) * uint64(n)
		if blocks > math.MaxInt32 {
			return fmt.Errorf("grid %v of clusters %v: %d blocks in dimension %d, want at most %d", l.grid, l.kern.cluster, blocks, i, math.MaxInt32)
		}
		l.grid[i] = uint32(blocks)
	}
	if l.block == [3]uint32{1, 1, 1} {
		l.block = l.kern.required
	}
	return nil
}

func ones(v [3]uint32) [3]uint32 {
	for i := range v {
		v[i] = max(v[i], 1)
	}
	return v
}

// arguments lays the arguments out as the kernel's parameters.
func (l *launch) arguments(args []bench.Arg) error {
	params := l.prog.params
	if len(args) != len(params) {
		return fmt.Errorf("%d arguments: the kernel has %d parameters", len(args), len(params))
	}
	l.params = make([]byte, l.prog.paramBytes)
	for i, p := range params {
		if int64(len(args[i])) != p.v.Size() {
			return fmt.Errorf("argument %d: %d bytes: parameter %s has %d", i, len(args[i]), p.v.Name, p.v.Size())
		}
		copy(l.params[p.offset:], args[i])
	}
	// Parameters can be reached by generic addresses as well.
	a, err := l.dev.mem.alloc(int64(len(l.params)), 64)
	if err != nil {
		return err
	}
	a.data, a.constant, a.module, a.parameters, a.name = l.params, true, true, true, "the parameters"
	l.paramAlloc = a
	return nil
}

// run runs all blocks.
func (l *launch) run(ctx context.Context) (*bench.Report, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.faults.most = l.dev.opt.MaxFaults
	l.resident = map[int64]*resident{}
	l.version = 1
	workers := l.dev.opt.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	workers = int(max(min(int64(workers), l.total, maxBlockBytes/l.blockBytes()), 1))
	l.most = int(max(min(2*int64(workers), maxBlockBytes/l.blockBytes()), 1))
	resident := min(l.atFirst(), l.total)
	for l.next < resident {
		l.admit()
	}
	l.counters.init(l.kern)
	l.l2 = newL2Run(&l.dev.l2, l.mod.gpu.L2Bytes(), resident, l.total)
	l.across.init(l.limits)
	l.before.keeps, l.before.most = true, l.limits.originals
	defer l.dev.mem.forgetLaunch()
	stop := context.AfterFunc(ctx, func() {
		l.abort.Store(true)
		l.mu.Lock()
		l.changed.Broadcast()
		l.mu.Unlock()
	})
	var wg sync.WaitGroup
	all := make([]*worker, workers)
	for i := range all {
		all[i] = newWorker(l)
		wg.Add(1)
		go func() {
			defer wg.Done()
			all[i].loop()
		}()
	}
	wg.Wait()
	stop()
	for _, w := range all {
		l.counters.merge(w)
	}
	var failed *bench.KernelError
	if l.err != nil && !errors.As(l.err, &failed) {
		return nil, l.err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.settleGlobal()
	c := l.counters.result()
	c.L2 = l.l2.traffic()
	c.Global.UniqueRead, c.Global.UniqueWritten = l.dev.mem.takeTouched(l.early)
	report := &bench.Report{Faults: byLine(l.faults.list), Counters: c, Printed: l.printed}
	l.cutShort(report.Faults)
	if l.lines {
		report.Lines = l.counters.lines(l.kern)
	}
	return report, l.err
}

// maxBlockBytes is about how much memory all the blocks that run may take.
const maxBlockBytes = 2 << 30

// blockBytes is about how much memory a block takes.
func (l *launch) blockBytes() int64 {
	warps := int64(l.threads+warpSize-1) / warpSize
	registers := int64(l.prog.total()) * 8 * warpSize * 2
	return int64(l.ctas)*(warps*(registers+2*warpSize*l.prog.localBytes)+10*l.sharedSize) + 1<<16
}

// residency is how many blocks, or clusters, the GPU holds at a time.
func (l *launch) residency() int {
	registers := 0
	if d, ok := l.prog.fn.Directive("maxnreg"); ok {
		registers = int(d.Values[0])
	}
	occ, err := l.mod.gpu.Occupancy(target.Usage{Registers: registers, Shared: int(l.sharedSize), Threads: l.threads})
	if err != nil {
		return 1
	}
	return max(max(occ.CTAs, 1)*max(l.mod.gpu.SMs, 1)/l.ctas, 1)
}

// atFirst is how many of them begin at once: all that the GPU holds, but where
// schedules are left to chance and blocks take over others that have not begun,
// any number of those.
func (l *launch) atFirst() int64 {
	n := l.residency()
	if l.kern.cancels && l.dev.opt.Schedule == Shuffle {
		pick := newRNG(l.dev.opt.Seed, uint64(l.total))
		n = 1 + pick.below(int(min(int64(n), l.total)))
	}
	return int64(n)
}

// admit makes one more block resident.
func (l *launch) admit() {
	l.resident[l.next] = &resident{}
	l.ring = append(l.ring, l.next)
	l.next++
}

// take gives a worker something to run; nil at the end.
func (l *launch) take(wk *worker) *block {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		if l.abort.Load() || len(l.ring) == 0 {
			l.changed.Broadcast()
			return nil
		}
		holder := l.resident[l.ring[l.at]]
		switch holder.state {
		case isParked:
			holder.state = isRunning
			holder.b.turn = true
			holder.b.wk = wk
			return holder.b
		case notStarted:
			return l.start(wk, l.ring[l.at])
		}
		if l.live < l.most {
			if order, ok := l.unstarted(); ok {
				return l.start(wk, order)
			}
		}
		l.changed.Wait()
	}
}

// unstarted is the first resident block that has not started.
func (l *launch) unstarted() (order int64, ok bool) {
	for ; l.first < l.next; l.first++ {
		if r := l.resident[l.first]; r != nil && r.state == notStarted {
			return l.first, !l.checks.has(checkRaces) || l.before.mayBegin(l.first)
		}
	}
	return 0, false
}

func (l *launch) start(wk *worker, order int64) *block {
	r := l.resident[order]
	r.state = isRunning
	l.live++
	func() {
		l.mu.Unlock()
		defer l.mu.Lock()
		r.b = wk.newBlock(order)
	}()
	return r.b
}

// give takes a block back that has stopped running.
func (l *launch) give(b *block, why outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.abort.Load() {
		return
	}
	r := l.resident[b.order]
	switch why {
	case blockFatal:
		l.end(b)
	case blockAbort:
		l.abort.Store(true)
	case blockDone:
		faults := b.faults
		r.state, r.faults, r.printed, r.steps, r.b = isDone, &faults, b.printed.String(), b.steps, nil
		l.l2.done(b.order, &b.trace)
		l.live--
		l.retire()
	case blockTurn:
		r.state = isParked
	case blockSpins, blockHandsOver:
		r.state, r.gaveWay = isParked, true
		l.pass(b, why)
	}
	l.changed.Broadcast()
}

// end ends the launch for what a block that has the turn did. What is reported
// is what blocks did in the order of turns, so that it does not depend on how
// far others have come meanwhile.
func (l *launch) end(b *block) {
	for _, order := range l.ring {
		if r := l.resident[order]; r.gaveWay && r.b != nil && r.b != b {
			l.faults.merge(&r.b.faults)
			l.print(r.b.printed.String())
		}
	}
	l.faults.merge(&b.faults)
	l.print(b.printed.String())
	l.abort.Store(true)
}

// maxLaunchPrinted bounds what a launch may print.
const maxLaunchPrinted = 1 << 20

func (l *launch) print(text string) {
	if len(l.printed) < maxLaunchPrinted {
		l.printed += text
	}
}

// retire takes the blocks that are done out of the ring, from the one that has
// the turn, and admits others in their place.
func (l *launch) retire() {
	for len(l.ring) > 0 {
		order := l.ring[l.at]
		r := l.resident[order]
		if r.state != isDone {
			return
		}
		l.faults.merge(r.faults)
		l.print(r.printed)
		l.steps += r.steps
		l.done++
		delete(l.resident, order)
		if l.at == 0 {
			l.ring = l.ring[1:]
		} else {
			l.ring = append(l.ring[:l.at], l.ring[l.at+1:]...)
		}
		if l.next < l.total {
			l.admit()
		}
		if l.at >= len(l.ring) {
			l.at = 0
		}
		l.version++
		l.idle = 0
		if l.steps > l.maxSteps && len(l.ring) > 0 {
			l.interrupt()
			return
		}
	}
}

// worker runs blocks, one at a time.
type worker struct {
	l       *launch
	b       *block // that runs
	tallies map[*program]*tally
	free    []*block
	counts  counts
	traffic traffics
}

func newWorker(l *launch) *worker {
	return &worker{l: l, tallies: map[*program]*tally{}, traffic: make(traffics, l.kern.memOps)}
}

func (wk *worker) loop() {
	defer func() {
		if cause := recover(); cause != nil {
			wk.l.broken(wk.b, cause)
		}
	}()
	for wk.b = wk.l.take(wk); wk.b != nil; wk.b = wk.l.take(wk) {
		why := wk.b.run()
		if why == blockDone {
			wk.collect(wk.b)
		}
		wk.l.give(wk.b, why)
	}
}
