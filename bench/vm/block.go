package vm

import (
	"math/bits"
	"strings"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// block is a running block of threads, or several that are a cluster.
type block struct {
	l  *launch
	wk *worker

	order int64 // in the launch's order of blocks
	steps int64 // taken since the block last gave its turn away
	ctas  []*cta
	warps []*warp // of all of them
	ended int     // warps that have finished

	shared     []byte // of all of them
	sharedBase uint32 // the address of a block's first byte
	cluster    clusterBarrier

	sequence   []int // of the warps in a round
	at         int   // the warp in the round that runs
	within     bool  // its share has begun
	ran, polls int   // warps that ran in the round, and that only polled

	waited bool // for the launches before
	turn   bool // it may touch what all blocks share
	polled bool // a warp polled what all blocks share since the last turn
	idle   int  // rounds in which every warp that could run only polled
	barren int  // how often in a row as many as it gets, and nothing changed

	pollRounds int // in which some warps polled what all blocks share, since the block changed it

	heard      bool // it has read what others may write, since it last gave the turn away
	handedOver bool // it has given the turn away for the operation that it is about to run
	handOvers  int  // how often it has

	barrenAt int64 // the launch's version then

	faults     faultList
	tallies    map[*program]*tally
	counts     counts
	traffic    traffics
	trace      lineTrace
	race       *raceState
	undef      *sharedUndefined
	origins    []origin
	originsOf  map[*ptx.Instruction]*originCount
	lastOrigin *originCount
	printed    strings.Builder
	mbarriers  map[uint32]*mbarrier // by offset
	clocks     int                  // numbers given to mbarriers
	freeClocks []freeClock
	timedOut   map[*inst]bool // waits for mbarriers that were told that their time is over
	refused    bool           // a copy was not made, for a fault, that was to tell an mbarrier
	flight     []*bulkCopy    // bulk copies that have not landed, oldest first
	reducing   int            // of those, reductions in global memory
	tensor     tensorCore
	wideTiles  map[tileKey]*wideTile
	footprints map[footprintKey][]span
	was        stuckState
	pick       rng
}

// barrier is one of a block's sixteen.
type barrier struct {
	arrived [warpSize]uint32           // lanes, by warp
	parts   [warpSize]uint32           // lanes of a warp that is to arrive as one, until it is there
	at      [warpSize]*ptx.Instruction // where those are
	threads int                        // arrived, as the count operand counts them
	need    int                        // count operand; 0 is every thread
	waiting bool
	red     reduction
	clock   clock
}

// reduction is what bar.red computes over the threads that arrive.
type reduction struct {
	and, or bool
	count   uint32
	used    bool
}

// outcome says why a block stopped running.
type outcome uint8

const (
	blockDone      outcome = iota
	blockTurn              // it waits for its turn
	blockSpins             // it has its turn and polls for others
	blockHandsOver         // it has its turn and gives it away
	blockFatal             // the launch can't go on, for what the block did
	blockAbort
)

// quantum is how many instructions a warp runs before the block's others.
const quantum = 1 << 14

// run runs a block as far as it gets. What happens does not depend on whether
// the block had its turn at once or was put aside for it.
func (b *block) run() outcome {
	for b.ended < len(b.warps) {
		if b.l.abort.Load() { // no warp may ever have its whole share between two barriers
			return blockAbort
		}
		for ; b.at < len(b.warps); b.at++ {
			if b.race != nil && len(b.race.pages.list) >= maxPages {
				if !b.mayShare() {
					return blockTurn
				}
				b.race.flush()
			}
			if b.steps >= b.l.maxSteps {
				if !b.mayShare() {
					return blockTurn
				}
				b.l.mu.Lock()
				b.spent(b.steps)
				b.l.mu.Unlock()
				return b.fatal()
			}
			w := b.warps[b.sequence[b.at]]
			if !b.within {
				if !w.ready() {
					continue
				}
				b.ran++
				w.begin()
			}
			b.within = false
			switch b.slice(w) {
			case stopTurn:
				b.within = true
				return blockTurn
			case stopHandsOver:
				b.within = true
				b.showsOthers()
				return blockHandsOver
			case stopAbort:
				return blockAbort
			case stopFatal:
				return b.fatal()
			case stopYield:
				b.polls++
			}
		}
		if !b.mayReduce() {
			return blockTurn
		}
		ran, polls := b.ran, b.polls
		b.newRound()
		switch {
		case len(b.flight) > 0 && b.l.dev.opt.Async == Random && b.landSome():
			b.idle = 0
		case ran == 0:
			if !b.unblock() {
				b.deadlock()
				return b.finish()
			}
		case polls < ran && !b.pollsOn(polls):
			b.idle, b.barren = 0, 0
		default:
			if b.idle++; b.idle <= maxIdle {
				continue
			}
			b.idle = 0
			barren, stuck := b.l.barren(b), b.stuck()
			if (barren >= maxBarren || barren > 0 && stuck) && (b.release() || b.landLate()) {
				b.barren = 0
				continue
			}
			if b.polled && b.turn && b.l.others(b, stuck && barren > 0) {
				return b.spins()
			}
			if stuck && !b.unblock() {
				if b.polled && b.turn && !b.l.lost(b) {
					return b.spins()
				}
				b.deadlock()
				return b.finish()
			}
		}
	}
	return b.finish()
}

// pollsOn says whether a round in which some warps only polled for other blocks is to
// count as if all had: after many such rounds, as where a barrier lies between one poll
// and the next, and the others come to it again and again.
func (b *block) pollsOn(polls int) bool {
	if polls == 0 || !b.polled || !b.turn {
		return false
	}
	b.pollRounds++
	return b.pollRounds > maxPollRounds
}

// maxPollRounds is how many rounds a block has in which some warps poll and others don't
// before it gives its turn away.
const maxPollRounds = 64

// spins gives the turn away to those whom the block waits for.
func (b *block) spins() outcome {
	b.polled = false
	b.showsOthers()
	return blockSpins
}

// showsOthers is to come before the turn is given away: from here on the block sees what
// others wrote.
func (b *block) showsOthers() {
	if b.race != nil && !b.race.hadTurn {
		b.race.flush()
	}
}

// newRound starts over with the first warp.
func (b *block) newRound() {
	b.at, b.ran, b.polls = 0, 0, 0
	if b.l.dev.opt.Schedule == Shuffle {
		for i := len(b.sequence) - 1; i > 0; i-- {
			j := b.pick.below(i + 1)
			b.sequence[i], b.sequence[j] = b.sequence[j], b.sequence[i]
		}
	}
}

// finish ends the block: in its turn, where its accesses are compared with
// those of others.
func (b *block) finish() outcome {
	if !b.mayReduce() {
		b.ended = len(b.warps)
		return blockTurn
	}
	b.checkSources(b.warps)
	if len(b.flight) > 0 {
		b.landAll()
	}
	r := b.race
	if r == nil {
		b.faults.causes()
		return blockDone
	}
	if !b.mayShare() {
		b.ended = len(b.warps)
		return blockTurn
	}
	b.checkLifetimes()
	if len(b.faults.list) == 0 {
		for _, c := range b.ctas {
			c.checkGroups()
		}
	}
	r.settle()
	return blockDone
}

// fatal ends the launch for what the block did, which has its turn.
func (b *block) fatal() outcome {
	if b.race != nil {
		b.race.settle()
	}
	return blockFatal
}

// settle decides about what the block held back, and compares its accesses
// with those of others.
func (r *raceState) settle() {
	r.settleHeld()
	r.settleArrivals()
	r.settleAstray()
	r.b.l.across.held = append(r.b.l.across.held, r.held...)
	r.held = r.held[:0]
	clear(r.heldOf)
	r.meetOthers()
	r.pages.reset()
	r.b.faults.causes()
}

// maxIdle is how many rounds of polling alone a block gets in a row.
const maxIdle = 4

// maxBarren is how often in a row a block may have had them for nothing before
// its lanes that wait for those that poll go on without them, or a copy lands.
const maxBarren = 3

// release lets lanes that wait for mates go on alone; false if none waits.
func (b *block) release() bool {
	for _, w := range b.warps {
		if w.release() {
			return true
		}
	}
	return false
}

// ready says whether some path can run.
func (w *warp) ready() bool {
	if w.mask != 0 {
		return true
	}
	for i := range w.paths {
		if w.paths[i].wait.kind == waitNothing {
			return true
		}
	}
	return false
}

// begin gives a warp a new share of instructions.
func (w *warp) begin() {
	share := int64(quantum)
	if w.b.l.dev.opt.Schedule == Shuffle {
		share = int64(1 + w.b.pick.below(200))
	}
	w.limit = w.executed + min(share, max(w.b.l.maxSteps-w.b.steps, 0))
}

// slice runs a warp until it blocks, ends, or has had its share.
func (w *warp) slice() stop {
	for {
		if w.mask == 0 && !w.next() {
			if w.live == 0 && len(w.paths) == 0 {
				w.b.ended++
				w.cta.takeRegisters(w, 0)
			}
			return stopPath
		}
		w.execute()
		switch w.stop {
		case stopPath:
		case stopLimit:
			if w.b.l.abort.Load() {
				return stopAbort
			}
			w.rotate()
			return stopLimit
		case stopYield:
			w.rotate()
			return stopYield
		default:
			return w.stop
		}
	}
}

func firstLane(m uint32) int { return bits.TrailingZeros32(m) & 31 }

// exited settles what an exit of lanes of a warp lets others do.
func (c *cta) exited() {
	for id := range c.bars {
		bar := &c.bars[id]
		if !bar.waiting {
			continue
		}
		for _, w := range c.warps {
			bar.gather(w)
		}
		if c.complete(bar) {
			c.releaseBarrier(uint32(id))
		}
	}
	c.b.releaseCluster(nil)
}

// complete says whether all that a barrier waits for are there.
func (c *cta) complete(bar *barrier) bool {
	if bar.need > 0 {
		return bar.threads >= bar.need
	}
	for i, w := range c.warps {
		if w.live&^bar.arrived[i] != 0 {
			return false
		}
	}
	return true
}

// releaseBarrier starts a barrier's waiting paths again.
func (c *cta) releaseBarrier(id uint32) {
	bar := &c.bars[id]
	if bar.need == 0 {
		c.checkRegisters()
	}
	c.orderBarrier(bar)
	for _, w := range c.warps {
		for i := range w.paths {
			p := &w.paths[i]
			if p.wait.kind == waitBarrier && p.wait.id == id {
				bar.deliver(w, p.fr, p.mask, p.wait.in)
				p.wait = wait{}
			}
		}
	}
	*bar = barrier{}
}

// unblock looks for a way on when no warp can run; false if there is none.
func (b *block) unblock() bool {
	if b.landLate() {
		return true
	}
	for _, w := range b.warps {
		if w.forceCollective() {
			return true
		}
	}
	for _, w := range b.warps {
		if w.forceBarrier() {
			return true
		}
	}
	return b.release() || b.giveUp() || b.letPass()
}

// forceBarrier reports a barrier that lanes of a warp wait at while others of
// the warp wait for them to come back, or at another barrier, and lets it count
// those as arrived. Lanes that poll are no such: they may come yet.
func (w *warp) forceBarrier() bool {
	joins, barriers := w.waitingAtJoins(), w.waitingAtBarriers()
	for i := range w.paths {
		p := &w.paths[i]
		if p.wait.kind != waitBarrier {
			continue
		}
		bar := &w.cta.bars[p.wait.id]
		missing := joins
		where := "past the branch"
		if bar.parts[w.number] != 0 && joins == 0 {
			missing, where = barriers, "elsewhere"
		}
		if missing &^= bar.arrived[w.number] | bar.parts[w.number]; missing == 0 {
			continue
		}
		current := w.fr
		w.enter(p.fr)
		w.fault(bench.BarrierDivergence, p.wait.in, firstLane(p.mask),
			"barrier %d: lanes %08x of the warp wait here while its lanes %08x are %s", p.wait.id, p.mask, missing, where)
		if current != nil {
			w.enter(current)
		}
		if bar.parts[w.number] != 0 {
			bar.parts[w.number] |= missing
			bar.gather(w)
		} else {
			bar.threads += bits.OnesCount32(missing)
			bar.arrived[w.number] |= missing
		}
		if w.cta.complete(bar) {
			w.cta.releaseBarrier(p.wait.id)
		}
		return true
	}
	return false
}
