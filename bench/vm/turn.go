package vm

import "sort"

// The turn goes round the resident blocks in order of index, the first time at least. A
// block keeps it to its end, or until it does nothing but poll, or gives it away though it
// could go on: so that what others do in the meantime comes between what it has heard and
// what it does next. Of two blocks that meet again and again at a barrier made of a
// counter, one is else always through the second before the other has left the first, and
// what they do between two of them seems ordered by the third.

// handsOver says whether a block that has the turn gives it away before an operation that
// all blocks see: by chance where schedules are left to it, and else before it writes what
// others may wait for, once it has heard of others and all have begun.
func (b *block) handsOver(w *warp, in *inst, writes bool) bool {
	if b.handedOver { // for this very operation
		b.handedOver = false
		return false
	}
	if w.pollsAgain(in) {
		return false
	}
	if b.l.dev.opt.Schedule == Shuffle {
		// Ever more rarely, as a block may have any number of them.
		if b.pick.below(handOvers+b.handOvers/4) > 0 {
			return false
		}
	} else if !writes || !b.heard || !b.l.allBegan() {
		return false
	}
	b.handedOver, b.heard = true, false
	b.handOvers++
	return true
}

// handOvers is in how many operations, at first, a block hands over by chance.
const handOvers = 2

// mayAct says whether a warp may run an operation that all blocks see. If not, it stops
// before it, and the block waits for its turn or gives it away.
func (w *warp) mayAct(in *inst, writes bool) bool {
	switch {
	case !w.b.mayShare():
		w.retry(stopTurn)
	case w.b.handsOver(w, in, writes):
		w.retry(stopHandsOver)
	default:
		return true
	}
	return false
}

// began is how many of the ring's blocks, its first, have had the turn.
func (l *launch) began() int {
	return sort.Search(len(l.ring), func(i int) bool { return i > l.at && !l.resident[l.ring[i]].gaveWay })
}

// allBegan says whether every block that may run has had the turn, and there are several.
func (l *launch) allBegan() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ring) > 1 && l.began() == len(l.ring)
}

// heir is the place in the ring of the block that has the turn next.
func (l *launch) heir(b *block, why outcome) int {
	if why == blockHandsOver && l.dev.opt.Schedule == Shuffle {
		n := l.began()
		if n < len(l.ring) && n < l.beginsByChance() {
			n++ // the first time is in order of index
		}
		return b.pick.below(n)
	}
	return (l.at + 1) % len(l.ring)
}

// beginsByChance is how many blocks may be under way before others have to wait for them,
// as each takes memory.
func (l *launch) beginsByChance() int { return int(max(min(maxBlockBytes/l.blockBytes(), ahead), 2)) }

// pass hands the turn on.
func (l *launch) pass(b *block, why outcome) {
	l.steps += b.steps
	b.turn, b.steps = false, 0
	if l.steps > l.maxSteps {
		b.spent(l.steps)
		l.end(b)
		return
	}
	if l.at = l.heir(b, why); why == blockSpins {
		l.idle++
	}
	l.retire()
}

// barren is how often in a row the block has come to do nothing but poll: 0
// while other blocks may still change what it looks at.
func (l *launch) barren(b *block) int {
	if !b.polled { // on nothing that others change
		b.barren++
		return b.barren
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if b.barrenAt != l.version {
		b.barrenAt, b.barren = l.version, 0
	}
	b.barren++
	if len(l.ring) > 1 && l.idle < len(l.ring) && !l.doomed {
		return 0
	}
	return b.barren
}

// others says whether a block that only polls should let others run: there are
// some, and not all of them are known to be stuck as things are.
func (l *launch) others(b *block, stuck bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ring) < 2 || l.doomed {
		return false
	}
	if stuck {
		l.resident[b.order].stuckAt = l.version
	}
	if l.idle < len(l.ring) {
		return true
	}
	for _, order := range l.ring {
		if l.resident[order].stuckAt != l.version {
			return true
		}
	}
	l.doomed = true
	return false
}

// lost says whether none of the blocks that wait for one another finds a way on
// by itself, now that this one finds none.
func (l *launch) lost(b *block) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resident[b.order].lostAt = l.version
	for _, order := range l.ring {
		if l.hopeless {
			break
		}
		if l.resident[order].lostAt != l.version {
			return false
		}
	}
	l.hopeless = true
	return true
}

// mayShare says whether the block has the turn.
func (b *block) mayShare() bool {
	if b.turn {
		return true
	}
	l := b.l
	l.mu.Lock()
	b.turn = len(l.ring) > 0 && l.ring[l.at] == b.order
	l.mu.Unlock()
	return b.turn
}

// touched notes that the block changed what all blocks share.
func (b *block) touched() {
	b.l.mu.Lock()
	b.l.version++
	b.l.idle = 0
	b.l.doomed, b.l.hopeless = false, false
	b.l.mu.Unlock()
	b.idle, b.barren, b.pollRounds = 0, 0, 0
}
