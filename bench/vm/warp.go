package vm

import "math/bits"

// warp is 32 threads that run together while they can. Its lanes may part at
// branches; each group of lanes that runs on its own is a path, one of which
// is current and kept in the warp itself.
type warp struct {
	// The current path.
	r    []lanes32 // the frame's registers
	q    []lanes64
	p    []uint32
	u    []uint32 // undefined lanes of each unified slot; nil where nothing is tracked
	mask uint32   // active lanes
	mode mode
	pc   int32
	code []inst
	fr   *frame
	join *join
	stop stop

	live      uint32 // lanes that have not exited
	registers int    // of each thread, as setmaxnreg counts them; 0 is not known
	started   uint32 // lanes that there are
	executed  int64  // instructions
	slept     int64  // nanoseconds
	limit     int64  // of executed, for now

	b        *block
	cta      *cta
	index    int // in the cluster
	number   int // in its block
	tally    *tally
	paths    []path // that are not current
	meetings []*meeting
	bulk     [warpSize]*bulkLane
	wg       wgmmaGroups
	wide     *wideTiles
	gaveUp   bool // the path was told that its time at an mbarrier is over
	undefs   int  // registers with undefined lanes in the current frame

	base   *frame   // the kernel's own
	joins  []*join  // free
	frames []*frame // free

	tid      [3]lanes32
	tiles    *tiles
	patterns []*pattern // by memory instruction
	async    asyncCopies

	tensorLoads, tensorStores []*tensorWork        // not waited for
	afterSync                 *[warpSize]afterSync // under strict-proxy
	tensorClocks              *[warpSize]clock     // what those know who wait for a thread's commits
	clock                     warpClock

	lastPoll *inst
	polls    [mostPolls]recentPoll

	local     []byte // of the lanes one after the other
	localSize int64  // of one lane

	localUndef *sharedUndefined
}

// path is a group of lanes that is not current.
type path struct {
	pc   int32
	mask uint32
	fr   *frame
	join *join
	wait wait

	gaveUp bool
}

// wait is what a path waits for.
type wait struct {
	kind  waitKind
	in    *inst
	id    uint32 // barrier
	addr  uint32 // mbarrier
	phase uint32
	meet  *meeting
}

type waitKind uint8

const (
	waitNothing    waitKind = iota // it can run
	waitBarrier                    // for a barrier's other threads
	waitCollective                 // for other lanes at a .sync instruction
	waitMbarrier                   // for a phase to complete
	waitCluster                    // for the cluster's other blocks
	waitAsync                      // for asynchronous copies to complete
	waitTurn                       // for the block's turn to touch what all blocks share
	waitTensor                     // for tensor memory to be allocated
	waitRegisters                  // for other warps to give some up
)

// join is where the lanes that parted at a branch or call meet again.
type join struct {
	pc      int32
	fr      *frame
	want    uint32 // lanes that are to come
	arrived uint32
	parent  *join
	call    bool // the end of a call: fr is the caller's
	site    *callSite
}

// stop says why a warp left its loop.
type stop uint8

const (
	running       stop = iota
	stopPath           // the current path ended or waits
	stopLimit          // w.limit is reached
	stopYield          // the path polls; others first
	stopTurn           // the instruction needs the block's turn
	stopHandsOver      // the block gives its turn away before the instruction
	stopAbort          // the launch is over
	stopFatal          // the launch can't go on
)

// frame is the registers of one call of a function.
type frame struct {
	prog      *program
	r         []lanes32
	q         []lanes64
	p         []uint32
	u         []uint32
	undef     *undefinedBits
	undefs    int
	fragments *registerUses    // nil: not looked at yet
	local     int64            // where its local variables begin
	stack     *[warpSize]int64 // bytes that alloca took, by lane; nil: none
	depth     int              // calls below it
	tally     *tally
}

// tally counts instructions of one program by place, as differences: the
// count at i is the sum of all entries up to i.
type tally struct {
	warps, threads []int64
}

func newTally(p *program) *tally {
	return &tally{make([]int64, len(p.code)+1), make([]int64, len(p.code)+1)}
}

func (t *tally) add(pc, n int32, threads int64) {
	t.warps[pc]++
	t.warps[pc+n]--
	t.threads[pc] += threads
	t.threads[pc+n] -= threads
}

func (t *tally) takeBack(pc int32, threads int64) {
	t.warps[pc]--
	t.warps[pc+1]++
	t.threads[pc] -= threads
	t.threads[pc+1] += threads
}

// execute runs the current path until something stops it.
func (w *warp) execute() {
	w.stop = running
	for w.stop == running {
		code := w.code
		pc := w.pc
		in := &code[pc]
		active := int64(bits.OnesCount32(w.mask))
		if n := in.run; n > 0 {
			if w.mode == modeUndefined {
				w.forget()
			}
			w.tally.add(pc, n+1, active)
			w.executed += int64(n)
			end := pc + n
			for ; pc < end; pc++ {
				in := &code[pc]
				in.fn[w.mode&(numModes-1)](w, in)
			}
			w.pc = end
			in = &code[end]
		} else {
			w.tally.add(pc, 1, active)
		}
		w.executed++
		if w.executed > w.limit {
			w.retry(stopLimit)
			return
		}
		in.ctl(w, in)
	}
}

// retry stops before the current control instruction, which then has not run.
func (w *warp) retry(why stop) {
	w.executed--
	w.tally.takeBack(w.pc, int64(bits.OnesCount32(w.mask)))
	w.stop = why
}

// enter makes a frame the current one.
func (w *warp) enter(fr *frame) {
	if w.fr != nil {
		w.fr.undefs = w.undefs
	}
	w.fr = fr
	w.r, w.q, w.p, w.u = fr.r, fr.q, fr.p, fr.u
	w.code = fr.prog.code
	w.tally = fr.tally
	w.undefs = fr.undefs
}

// setMode chooses how instructions run from now on.
func (w *warp) setMode() {
	switch {
	case w.undefs > 0:
		w.mode = modeUndefined
	case w.mask == w.live:
		w.mode = modeFull
	default:
		w.mode = modePartial
	}
}

// resume makes a path current.
func (w *warp) resume(p path) {
	if p.fr != w.fr {
		w.enter(p.fr)
	}
	w.pc, w.mask, w.join, w.gaveUp = p.pc, p.mask, p.join, p.gaveUp
	w.setMode()
}

// next picks a path that can run, the newest first; false if there is none.
func (w *warp) next() bool {
	for i := len(w.paths) - 1; i >= 0; i-- {
		if w.paths[i].wait.kind == waitNothing {
			p := w.paths[i]
			w.paths = append(w.paths[:i], w.paths[i+1:]...)
			w.resume(p)
			return true
		}
	}
	w.mask = 0
	return false
}

// park puts the current path aside to wait.
func (w *warp) park(wt wait) {
	w.paths = append(w.paths, path{pc: w.pc, mask: w.mask, fr: w.fr, join: w.join, wait: wt})
	w.mask = 0
	w.stop = stopPath
}

// rotate lets the oldest path that can run go before the current one.
func (w *warp) rotate() {
	for i := range w.paths {
		if w.paths[i].wait.kind == waitNothing {
			p := w.paths[i]
			copy(w.paths[i:], w.paths[i+1:])
			w.paths[len(w.paths)-1] = path{pc: w.pc, mask: w.mask, fr: w.fr, join: w.join}
			w.resume(p)
			return
		}
	}
}

func (w *warp) newJoin(pc int32, fr *frame, want uint32, parent *join) *join {
	var j *join
	if n := len(w.joins); n > 0 {
		j = w.joins[n-1]
		w.joins = w.joins[:n-1]
	} else {
		j = new(join)
	}
	*j = join{pc: pc, fr: fr, want: want, parent: parent}
	return j
}

// joinsAt says whether the current path's join is at a place of its function.
func (w *warp) joinsAt(pc int32) bool {
	j := w.join
	return j != nil && j.pc == pc && j.fr == w.fr && !j.call
}

// diverge parts the current path: the lanes of other go to pc, the rest stay.
// All meet again at reconverge.
func (w *warp) diverge(other uint32, pc, reconverge int32) {
	if reconverge >= 0 && !w.joinsAt(reconverge) {
		w.join = w.newJoin(reconverge, w.fr, w.mask, w.join)
	}
	if pc == reconverge {
		w.join.arrived |= other
	} else {
		w.paths = append(w.paths, path{pc: pc, mask: other, fr: w.fr, join: w.join})
	}
	w.mask &^= other
	w.setMode()
}

// meet is the pseudo instruction where lanes that parted come together.
func meet(w *warp, _ *inst) {
	for w.joinsAt(w.pc) {
		j := w.join
		j.arrived |= w.mask
		if j.arrived != j.want {
			w.mask = 0
			w.stop = stopPath
			return
		}
		w.mask, w.join = j.want, j.parent
		w.joins = append(w.joins, j)
		w.setMode()
	}
	w.pc++
}

// leave takes lanes out of every join from the current one up to (not
// including) end, and starts the path of each join that waited for them alone.
func (w *warp) leave(lanes uint32, end *join) {
	w.mask &^= lanes
	for j := w.join; j != end; j = j.parent {
		j.want &^= lanes
	}
	if w.mask != 0 {
		w.setMode()
		return
	}
	w.stop = stopPath
	w.complete(w.join, end)
}

// complete frees joins that nobody is left for, from the innermost, and starts
// the first whose lanes are all there.
func (w *warp) complete(j, end *join) {
	for j != end && j.arrived == j.want {
		parent := j.parent
		if j.want != 0 {
			w.paths = append(w.paths, path{pc: j.pc, mask: j.want, fr: j.fr, join: parent})
			w.joins = append(w.joins, j)
			return
		}
		w.joins = append(w.joins, j)
		j = parent
	}
}

// exitLanes ends threads.
func (w *warp) exitLanes(lanes uint32) {
	w.live &^= lanes
	w.cta.exiting(w, lanes)
	w.leave(lanes, nil)
	w.cta.exited()
}

// release lets lanes that wait for others at a join or behind a call go on
// alone, where those others make no progress; false if none waits.
func (w *warp) release() bool {
	if w.mask != 0 && w.releaseFrom(w.join) {
		return true
	}
	for i := range w.paths {
		if w.releaseFrom(w.paths[i].join) {
			return true
		}
	}
	return false
}

func (w *warp) releaseFrom(j *join) bool {
	for ; j != nil; j = j.parent {
		if j.arrived != 0 {
			w.paths = append(w.paths, path{pc: j.pc, mask: j.arrived, fr: j.fr, join: j.parent})
			j.want &^= j.arrived
			j.arrived = 0
			return true
		}
	}
	return false
}

// waitingAtJoins is the lanes that wait for others of the warp to meet them.
func (w *warp) waitingAtJoins() uint32 {
	var m uint32
	seen := func(j *join) {
		for ; j != nil; j = j.parent {
			m |= j.arrived
		}
	}
	seen(w.join)
	for i := range w.paths {
		seen(w.paths[i].join)
	}
	return m
}

// waitingAtBarriers is the lanes that wait at some barrier of the block.
func (w *warp) waitingAtBarriers() uint32 {
	var m uint32
	for i := range w.paths {
		if p := &w.paths[i]; p.wait.kind == waitBarrier {
			m |= p.mask
		}
	}
	return m
}

// guarded runs an instruction for the lanes whose guard holds.
func guarded(w *warp, in *inst) {
	m := w.mask & (w.p[in.guard] ^ in.flip)
	if m == 0 {
		return
	}
	inner := in.next
	if m == w.mask {
		inner.fn[w.mode&(numModes-1)](w, inner)
		return
	}
	saved := w.mask
	w.mask = m
	if w.mode == modeFull {
		w.mode = modePartial
	}
	inner.fn[w.mode&(numModes-1)](w, inner)
	w.mask = saved
	w.setMode()
}

// masked32 runs an instruction whose function computes all lanes, and keeps
// the active ones.
func masked32(w *warp, in *inst) {
	aside := in.next
	aside.fn[modeFull](w, aside)
	s, d := &w.r[aside.d], &w.r[in.d]
	for m := w.mask; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m) & 31
		d[i] = s[i]
	}
}

func masked64(w *warp, in *inst) {
	aside := in.next
	aside.fn[modeFull](w, aside)
	s, d := &w.q[aside.d], &w.q[in.d]
	for m := w.mask; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m) & 31
		d[i] = s[i]
	}
}
