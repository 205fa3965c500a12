package vm

import "github.com/kgen-dev/kgen/codegen/ptx"

// Happens-before by vector clocks. A warp's time is a tick, which moves on at
// every operation that orders memory; a thread's clock says up to which tick it
// knows of each lane of each warp of its block, and of other blocks' too.

// known is how far the lanes of one warp are known.
type known struct {
	all   uint32            // every lane up to this tick
	lanes *[warpSize]uint32 // and some further; nil if none is
}

// vclock is what is known of one block's warps. It is never changed once made;
// nil knows nothing.
type vclock []known

func (v vclock) knows(warp, lane int, tick uint32) bool {
	if warp >= len(v) {
		return false
	}
	k := &v[warp]
	return tick <= k.all || k.lanes != nil && tick <= k.lanes[lane]
}

// is says whether two clocks are the same one.
func (v vclock) is(o vclock) bool {
	return len(v) == len(o) && (len(v) == 0 || &v[0] == &o[0])
}

// isBeside says whether two clocks were told the same of all warps but one.
func (v vclock) isBeside(o vclock, warp int) bool {
	if v.is(o) {
		return true
	}
	for i := range max(len(v), len(o)) {
		if i != warp && v.of(i) != o.of(i) {
			return false
		}
	}
	return true
}

// beside is what a clock knows of one warp, and what another does of all the others.
func (v vclock) beside(o vclock, warp int) vclock {
	out := make(vclock, max(len(o), warp+1))
	copy(out, o)
	out[warp] = v.of(warp)
	return out
}

// of is what is known of a warp.
func (v vclock) of(warp int) known {
	if warp < len(v) {
		return v[warp]
	}
	return known{}
}

// join is the later of two clocks in everything.
func (v vclock) join(o vclock) vclock {
	if len(o) == 0 || v.is(o) {
		return v
	}
	switch {
	case len(v) == 0:
		return o
	case v.covers(o):
		return v
	case o.covers(v):
		return o
	}
	out := make(vclock, max(len(v), len(o)))
	copy(out, v)
	for i, k := range o {
		out[i] = out[i].join(k)
	}
	return out
}

// covers says whether a clock knows all that another does.
func (v vclock) covers(o vclock) bool {
	if len(o) > len(v) {
		return false
	}
	for i := range o {
		if !v[i].covers(&o[i]) {
			return false
		}
	}
	return true
}

func (a *known) covers(b *known) bool {
	if b.all > a.all && a.lanes == nil {
		return false
	}
	if b.lanes == nil && b.all <= a.all || b.lanes == a.lanes && b.all <= a.all {
		return true
	}
	for i := range warpSize {
		if b.at(i) > a.at(i) {
			return false
		}
	}
	return true
}

func (a known) join(b known) known {
	if a.lanes == nil && b.lanes == nil {
		return known{all: max(a.all, b.all)}
	}
	if b.lanes == nil && b.all <= a.all {
		return a
	}
	if a.lanes == nil && a.all <= b.all {
		return b
	}
	var lanes [warpSize]uint32
	least := ^uint32(0)
	for i := range lanes {
		lanes[i] = max(a.at(i), b.at(i))
		least = min(least, lanes[i])
	}
	out := known{all: least}
	for _, t := range lanes {
		if t > least {
			out.lanes = &lanes
			break
		}
	}
	return out
}

func (a *known) at(lane int) uint32 {
	if a.lanes == nil {
		return a.all
	}
	return max(a.all, a.lanes[lane])
}

// with adds lanes of a warp up to a tick.
func (v vclock) with(warps, warp int, lanes, live uint32, tick uint32) vclock {
	out := make(vclock, max(warps, len(v), warp+1))
	copy(out, v)
	add := known{all: tick}
	if live&^lanes != 0 {
		var l [warpSize]uint32
		for m := lanes; m != 0; m &= m - 1 {
			l[firstLane(m)] = tick
		}
		add = known{lanes: &l}
	}
	out[warp] = out[warp].join(add)
	return out
}

// clock is what is known of several blocks, sorted by their order; nil knows
// nothing. It is never changed once made.
type clock []blockClock

type blockClock struct {
	block int64
	v     vclock
	proxy seen // of the block's own
}

// seen is what is visible to the async proxy, of each space: of shared memory in
// the whole cluster and, beyond that, in each of its blocks.
type seen struct {
	shared, global vclock
	own            []vclock // by the block's rank; nil shows nothing more
}

// of is that of a space.
func (s seen) of(space ptx.Space) vclock {
	if space == ptx.SpaceGlobal {
		return s.global
	}
	return s.shared
}

// in says whether what a lane did by a tick to the shared memory of a block is visible.
func (s seen) in(rank int, warp, lane int, tick uint32) bool {
	return rank < len(s.own) && s.own[rank].knows(warp, lane, tick)
}

func (s seen) join(o seen) seen {
	own := joinOwn(s.own, o.own)
	if s.shared.is(s.global) && o.shared.is(o.global) {
		v := s.shared.join(o.shared)
		return seen{v, v, own}
	}
	return seen{s.shared.join(o.shared), s.global.join(o.global), own}
}

func joinOwn(s, o []vclock) []vclock {
	switch {
	case o == nil:
		return s
	case s == nil || &s[0] == &o[0]:
		return o
	}
	out := make([]vclock, len(s))
	for i := range out {
		out[i] = s[i].join(o[i])
	}
	return out
}

func (s seen) covers(o seen) bool {
	if o.own != nil && s.own == nil {
		return false
	}
	for i := range o.own {
		if !s.own[i].covers(o.own[i]) {
			return false
		}
	}
	return s.shared.covers(o.shared) && (s.shared.is(s.global) && o.shared.is(o.global) || s.global.covers(o.global))
}

// is says whether two clocks are the same one.
func (c clock) is(o clock) bool {
	return len(c) == len(o) && (len(c) == 0 || &c[0] == &o[0])
}

func (c clock) of(block int64) vclock {
	for i := range c {
		if c[i].block == block {
			return c[i].v
		}
	}
	return nil
}

func (c clock) proxyOf(block int64) seen {
	for i := range c {
		if c[i].block == block {
			return c[i].proxy
		}
	}
	return seen{}
}

// join is the later of two clocks in everything.
func (c clock) join(o clock) clock {
	switch {
	case len(o) == 0 || c.is(o):
		return c
	case len(c) == 0:
		return o
	case c.covers(o):
		return c
	case o.covers(c):
		return o
	}
	out := make(clock, 0, len(c)+len(o))
	for len(c) > 0 && len(o) > 0 {
		switch {
		case c[0].block < o[0].block:
			out, c = append(out, c[0]), c[1:]
		case c[0].block > o[0].block:
			out, o = append(out, o[0]), o[1:]
		default:
			out = append(out, blockClock{c[0].block, c[0].v.join(o[0].v), c[0].proxy.join(o[0].proxy)})
			c, o = c[1:], o[1:]
		}
	}
	return append(append(out, c...), o...)
}

// covers says whether a clock knows all that another does.
func (c clock) covers(o clock) bool {
	if len(o) > len(c) {
		return false
	}
	for i := range o {
		for len(c) > 0 && c[0].block < o[i].block {
			c = c[1:]
		}
		if len(c) == 0 || c[0].block != o[i].block || !c[0].v.covers(o[i].v) || !c[0].proxy.covers(o[i].proxy) {
			return false
		}
	}
	return true
}

// seen is a clock all of which is visible to the async proxy, in the spaces of a fence.
func (c clock) seen(f *fenceOp) clock {
	if len(c) == 0 {
		return c
	}
	out := make(clock, len(c))
	for i, k := range c {
		out[i] = blockClock{k.block, k.v, k.proxy.join(f.shows(k.v))}
	}
	return out
}

// without is the clock of all blocks but one.
func (c clock) without(block int64) clock {
	for i := range c {
		if c[i].block == block {
			out := append(clock(nil), c[:i]...)
			return append(out, c[i+1:]...)
		}
	}
	return c
}

// warpClock is a warp's time and what its lanes know.
type warpClock struct {
	tick   uint32
	own    [warpSize]vclock // of the lanes' own block, beyond the block's floor
	remote [warpSize]clock  // of other blocks
	proxy  [warpSize]seen   // what a lane knows to be visible to the async proxy
	any    bool             // some lane knows something beyond the floor

	hasRemote bool
	snap      *[warpSize]clock // a copy of remote for events, made when needed

	fenced  [warpSize]scoped // what a lane knew at its last fence
	pending [warpSize]clock  // what it read without acquiring
	nearby  [warpSize]clock  // as far as a fence of its block, or cluster, goes
	passed  [warpSize]clock  // what others had read so, before they met at a barrier
	fences  bool             // some fenced are set
	reads   bool             // some pending are set
	alike   bool             // all lanes have the same fenced and passed, and no pending
	inits   [warpSize]clock  // up to where a lane knows of initialisations of mbarriers
	last    uint32           // tick of the last event
	met     uint32           // all lanes met at a collective after what they did up to this tick

	cache []cachedEvent // by memory instruction
}

// scoped is what a fence lets a lane pass on, and how far.
type scoped struct {
	c     clock
	scope scope
	sc    bool // fence.sc, which membar is too
}

type cachedEvent struct {
	tick, id uint32
}
