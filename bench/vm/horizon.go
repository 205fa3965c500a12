package vm

import (
	"math"
	"slices"
	"unsafe"
)

// What a release passes on takes some hundred bytes, for each block that is known more.
// Past a limit a launch forgets what was released to global memory, and from then on who
// acquires anything there takes all that was compared so far for known: up to a horizon,
// the number of the last record. A race may be missed then, none is made up.

// located is what addresses of global memory pass on from those who released there.
type located struct {
	at      map[uint64]*location
	size    int64 // bytes, about
	most    int64
	crowded bool // there were too many
}

// grow counts bytes that were added.
func (l *located) grow(n int64) {
	if l.size += n; l.size > l.most {
		*l = located{most: l.most, crowded: true}
	}
}

// anyBlock stands in a clock for all blocks: the one warp of it is known up to a horizon.
const anyBlock = -1

// beyond says whether an access is known by a horizon. Records that are numbered anew
// have lower numbers than before.
func (c clock) beyond(t trace) bool {
	return len(c) > 0 && c[0].block == anyBlock && c[0].v.knows(0, 0, uint32(t>>traceIndex))
}

// anywhere is a location that tells of all up to now: other blocks' accesses that were
// compared, and whatever the block's own threads did, or have under way.
func (r *raceState) anywhere() *location {
	b := r.b
	v := make(vclock, len(b.warps)+1+max(b.clocks, len(b.warps)))
	for i := range v {
		v[i].all = math.MaxUint32
	}
	for i, w := range b.warps {
		v[i].all = w.clock.tick
	}
	all := seen{shared: v, global: v}
	if len(b.ctas) > 1 {
		all.own = slices.Repeat([]vclock{v}, len(b.ctas))
	}
	own := clock{{b.order, v, all}}
	l := &location{far: clock{{block: anyBlock, v: vclock{{all: b.l.across.records.n}}}}.join(own)}
	if len(b.ctas) > 1 {
		l.near = []nearby{{b.order, own, slices.Repeat([]clock{own}, len(b.ctas))}}
	}
	return l
}

// size is about how many bytes a location takes, with its place in a table.
func (l *location) size() int64 {
	const place = 24
	n := place + int64(unsafe.Sizeof(*l)) + l.far.size()
	for i := range l.near {
		n += int64(unsafe.Sizeof(l.near[i])) + l.near[i].c.size()
		for _, c := range l.near[i].own {
			n += int64(unsafe.Sizeof(c)) + c.size()
		}
	}
	return n
}

// size is how many bytes a clock takes but for what its blocks' clocks may have in
// common with others: of these the last counts, as who released knew most of itself.
func (c clock) size() int64 {
	n := int64(len(c)) * int64(unsafe.Sizeof(blockClock{}))
	if len(c) > 0 {
		n += c[len(c)-1].v.size()
	}
	return n
}

func (v vclock) size() int64 {
	n := int64(len(v)) * int64(unsafe.Sizeof(known{}))
	for i := range v {
		if v[i].lanes != nil {
			n += int64(unsafe.Sizeof(*v[i].lanes))
		}
	}
	return n
}
