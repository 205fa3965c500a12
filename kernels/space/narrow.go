package space

import (
	"math"
	"math/rand/v2"
	"slices"
)

// narrowing is a traversal for large products. It keeps the values that each open
// parameter may still have: a constraint with one open parameter strikes out the values
// that break it, and one with several ends the prefix when the bounds of what is left
// show that it cannot hold.
type narrowing struct {
	*Bound
	frame  frame
	bounds []interval
	dead   [][]bool // by parameter and value
	live   []int    // by parameter: how many are not dead
	trail  []struck

	pick    []int // by depth: index of the value
	start   []int // the first prefix to visit; nil: from the beginning
	shuffle *rand.Rand
	visited int // prefixes so far
	steps   int // prefixes that may still be visited; 0: any number
	visit   func() bool
	settled func() bool // instead of visit where no constraint is open; nil: none
	depth   int         // of the prefix, for settled
	removed []int64     // by rule; nil when nobody counts
}

// struck is a value that was struck out, and the bounds before.
type struck struct {
	param, value int
	before       interval
}

// stages says at which depth each rule is looked at.
type stages struct {
	last    [][]int // all but its last parameter are bound
	partial [][]int // its newest parameter is bound, two or more are open
	settled int     // from this depth on no rule is
}

func (b *Bound) stages() stages {
	n := len(b.names)
	s := stages{last: make([][]int, n+1), partial: make([][]int, n+1)}
	for i, r := range b.rules {
		k := len(r.uses)
		if k == 0 {
			continue
		}
		at := 0
		if k > 1 {
			at = r.uses[k-2] + 1
			s.partial[0] = append(s.partial[0], i)
		}
		for _, u := range r.uses[:max(0, k-2)] {
			s.partial[u+1] = append(s.partial[u+1], i)
		}
		s.last[at] = append(s.last[at], i)
		s.settled = max(s.settled, at)
	}
	return s
}

func (b *Bound) narrowing() *narrowing {
	n := len(b.names)
	w := &narrowing{Bound: b, frame: frame{values: make([]int64, n)}, bounds: make([]interval, n), live: make([]int, n), pick: make([]int, n)}
	for p, values := range b.values {
		w.dead = append(w.dead, make([]bool, len(values)))
		w.live[p] = len(values)
		w.bounds[p] = interval{slices.Min(values), slices.Max(values)}
	}
	return w
}

// run traverses, to the end or until visit or settled say that it is enough.
func (w *narrowing) run() {
	for _, i := range w.ready[0] {
		w.frame.fault = false
		if !w.rules[i].holds(&w.frame) || w.frame.fault {
			w.count(i, w.open(0, -1))
			return
		}
	}
	w.enter(0, w.start != nil)
}

// enter narrows what is open behind a prefix of length depth and extends it. On the
// edge, the prefix is that of start.
func (w *narrowing) enter(depth int, edge bool) bool {
	if w.visited++; w.visited%untilLook == 0 && w.over() {
		return false
	}
	if w.steps > 0 {
		if w.steps--; w.steps == 0 {
			return false
		}
	}
	mark := len(w.trail)
	defer w.restore(mark)
	for _, i := range w.plan.partial[depth] {
		if !w.rules[i].may(w.bounds).yes {
			w.count(i, w.open(depth, -1))
			return true
		}
	}
	for _, i := range w.plan.last[depth] {
		if !w.strike(i, depth) {
			return true
		}
	}
	switch {
	case depth >= w.plan.settled && w.settled != nil:
		w.depth = depth
		return w.settled()
	case depth == len(w.values):
		return w.visit()
	}
	return w.extend(depth, edge)
}

func (w *narrowing) extend(depth int, edge bool) bool {
	before := w.bounds[depth]
	defer func() { w.bounds[depth] = before }()
	for _, i := range w.order(depth, edge) {
		if w.dead[depth][i] {
			continue
		}
		v := w.values[depth][i]
		w.pick[depth], w.frame.values[depth], w.bounds[depth] = i, v, interval{v, v}
		if !w.enter(depth+1, edge && i == w.start[depth]) {
			return false
		}
	}
	return true
}

// order is the order in which values are tried.
func (w *narrowing) order(depth int, edge bool) []int {
	from := 0
	if edge {
		from = w.start[depth]
	}
	all := make([]int, 0, len(w.values[depth])-from)
	for i := from; i < len(w.values[depth]); i++ {
		all = append(all, i)
	}
	if w.shuffle != nil {
		w.shuffle.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	return all
}

// strike takes out the values of a rule's last parameter that break it. It reports
// whether one is left.
func (w *narrowing) strike(rule, depth int) bool {
	r := &w.rules[rule]
	p := r.uses[len(r.uses)-1]
	if !w.some(rule) {
		w.count(rule, w.open(depth, p)*int64(w.live[p]))
		return false
	}
	before := w.bounds[p]
	left := interval{math.MaxInt64, math.MinInt64}
	for i, v := range w.values[p] {
		if w.dead[p][i] {
			continue
		}
		w.frame.values[p], w.frame.fault = v, false
		if r.holds(&w.frame) && !w.frame.fault {
			left.lo, left.hi = min(left.lo, v), max(left.hi, v)
			continue
		}
		w.dead[p][i] = true
		w.live[p]--
		w.trail = append(w.trail, struck{p, i, before})
		w.count(rule, w.open(depth, p))
	}
	if w.live[p] == 0 {
		return false
	}
	w.bounds[p] = left
	return true
}

// How many values a parameter has before those of a rule are looked for by halves, and how
// many parts are looked at.
const (
	fewValues = 16
	mostParts = 64
)

// some tells whether a rule may hold for one of its last parameter's values, of which it is
// the only open one: it halves them as long as bounds rule parts out.
func (w *narrowing) some(rule int) bool {
	r := &w.rules[rule]
	p := r.uses[len(r.uses)-1]
	values, before := w.values[p], w.bounds[p]
	if len(values) < fewValues || !w.rising[p] {
		return true
	}
	defer func() { w.bounds[p] = before }()
	parts := mostParts
	var search func(from, to int) bool
	search = func(from, to int) bool {
		if parts--; parts < 0 {
			return true
		}
		w.bounds[p] = interval{values[from], values[to-1]}
		if !r.may(w.bounds).yes {
			return false
		}
		if to-from == 1 {
			return true
		}
		middle := (from + to) / 2
		return search(from, middle) || search(middle, to)
	}
	return search(0, len(values))
}

// restore takes back what was struck out since the trail had the length mark.
func (w *narrowing) restore(mark int) {
	for len(w.trail) > mark {
		s := w.trail[len(w.trail)-1]
		w.trail = w.trail[:len(w.trail)-1]
		w.dead[s.param][s.value] = false
		w.live[s.param]++
		w.bounds[s.param] = s.before
	}
}

// open is how many points lie behind a prefix, without regard to one parameter.
func (w *narrowing) open(depth, without int) int64 {
	n := int64(1)
	for p := depth; p < len(w.live); p++ {
		if p != without {
			n *= int64(w.live[p])
		}
	}
	return n
}

func (w *narrowing) count(rule int, points int64) {
	if w.removed != nil {
		w.removed[rule] += points
	}
}
