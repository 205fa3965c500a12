package space

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
)

// Bound is a space with its names given values: what can be enumerated and checked.
type Bound struct {
	space  *Space
	names  []string
	values [][]int64 // by parameter
	rising []bool    // by parameter: its values are in order
	done   <-chan struct{}
	rules  []rule  // in the order of the space's constraints
	ready  [][]int // by depth: the rules whose last parameter is bound there; [0] has the constant ones
	rest   []int64 // by depth: how many points lie under one prefix of that length
	env    Env
	plan   stages
	scope  scope
}

// plainPoints bounds the products that are traversed without narrowing.
const plainPoints = 1 << 20

type rule struct {
	Constraint
	holds boolFunc
	may   mayFunc
	uses  []int    // the indices of the parameters it reads, rising
	given []string // the names of env that the expression mentions
}

// Counts says how a space shrinks. A point is counted under the first constraint found
// to remove it, in the order in which enumeration checks them: by the last parameter
// each mentions, then as listed; or, in products of more than a million points, as soon
// as the parameters bound so far show that it cannot hold.
type Counts struct {
	Total, Valid int64
	Removed      []Removed // as the constraints are listed
}

// Removed is how many points one constraint took out.
type Removed struct {
	Constraint string
	Count      int64
}

// String says how many points are left and what each constraint that removed any took:
// "12 of 18 valid; shared removed 3, area removed 3".
func (c Counts) String() string {
	text := fmt.Sprintf("%d of %d valid", c.Valid, c.Total)
	sep := "; "
	for _, r := range c.Removed {
		if r.Count > 0 {
			text += fmt.Sprintf("%s%s removed %d", sep, clip(r.Constraint), r.Count)
			sep = ", "
		}
	}
	return text
}

// Bind compiles the constraints against env. It refuses a space whose number of points
// doesn't fit 64 bits.
func (s *Space) Bind(env Env) (*Bound, error) {
	if err := s.check(env); err != nil {
		return nil, err
	}
	b := &Bound{space: s, names: s.Names(), env: env, ready: make([][]int, len(s.Params)+1)}
	params := map[string]int{}
	for i, p := range s.Params {
		params[p.Name] = i
		b.values = append(b.values, widen(p.Values))
		b.rising = append(b.rising, slices.IsSorted(p.Values))
	}
	if err := b.sizes(); err != nil {
		return nil, err
	}
	b.scope = scope{space: s, params: params, env: env}
	if err := b.scope.lets(); err != nil {
		return nil, err
	}
	for i, con := range s.Constraints {
		c := compiler{scope: &b.scope}
		n, err := c.compile(con.Expr)
		if err != nil {
			return nil, fmt.Errorf("constraint %s: %w", clip(con.Name), err)
		}
		if n.cond == nil {
			return nil, fmt.Errorf("constraint %s: %q, column 1: this is a number, want a condition such as a <= b", clip(con.Name), clip(con.Expr))
		}
		b.rules = append(b.rules, rule{Constraint: con, holds: n.cond, may: n.can(), uses: n.uses, given: c.given})
		depth := 0
		if k := len(n.uses); k > 0 {
			depth = n.uses[k-1] + 1
		}
		b.ready[depth] = append(b.ready[depth], i)
	}
	b.plan = b.stages()
	return b, nil
}

func widen(values []int) []int64 {
	wide := make([]int64, len(values))
	for i, v := range values {
		wide[i] = int64(v)
	}
	return wide
}

// sizes fills rest.
func (b *Bound) sizes() error {
	b.rest = make([]int64, len(b.values)+1)
	b.rest[len(b.values)] = 1
	for d := len(b.values) - 1; d >= 0; d-- {
		n := int64(len(b.values[d]))
		if b.rest[d+1] > math.MaxInt64/n {
			return fmt.Errorf("search space of more than 2^63 points: give its %d parameters fewer values", len(b.values))
		}
		b.rest[d] = n * b.rest[d+1]
	}
	return nil
}

// Until returns the space for as long as ctx lasts: after it what traverses a large product
// ends, and its results are not to be used.
func (b *Bound) Until(ctx context.Context) *Bound {
	c := *b
	c.done = ctx.Done()
	return &c
}

// untilLook is after how many prefixes a traversal looks whether it is to end.
const untilLook = 256

func (b *Bound) over() bool {
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// Space returns the space that was bound.
func (b *Bound) Space() *Space { return b.space }

// All yields the valid configurations, the last parameter varying fastest. A
// constraint is checked as soon as its last parameter has a value, so a prefix that
// fails is never extended.
func (b *Bound) All() iter.Seq[Config] {
	if b.rest[0] > plainPoints {
		return func(yield func(Config) bool) {
			w := b.narrowing()
			w.visit = func() bool { return yield(b.config(w.frame.values)) }
			w.run()
		}
	}
	return func(yield func(Config) bool) {
		w := walk{Bound: b, frame: frame{values: make([]int64, len(b.names))}}
		w.visit = func() bool { return yield(b.config(w.frame.values)) }
		w.enter(0)
	}
}

// Count walks the whole space, or of a large one what narrowing leaves.
func (b *Bound) Count() Counts {
	c := Counts{Total: b.rest[0]}
	removed := make([]int64, len(b.rules))
	if c.Total > plainPoints {
		b.countNarrowing(&c, removed)
	} else {
		w := walk{Bound: b, frame: frame{values: make([]int64, len(b.names))}, removed: removed}
		w.visit = func() bool { c.Valid++; return true }
		w.enter(0)
	}
	for i, r := range b.rules {
		c.Removed = append(c.Removed, Removed{Constraint: r.Name, Count: removed[i]})
	}
	return c
}

func (b *Bound) countNarrowing(c *Counts, removed []int64) {
	w := b.narrowing()
	w.removed = removed
	w.settled = func() bool {
		c.Valid += w.open(w.depth, -1)
		return true
	}
	w.run()
}

// walk is one traversal.
type walk struct {
	*Bound
	frame   frame
	visit   func() bool // false stops the traversal
	removed []int64     // by rule; nil when nobody counts
}

// enter checks the rules that the prefix of length depth completes, then extends it.
// It reports whether to go on.
func (w *walk) enter(depth int) bool {
	for _, i := range w.ready[depth] {
		if !w.holds(i) {
			if w.removed != nil {
				w.removed[i] += w.rest[depth]
			}
			return true
		}
	}
	if depth == len(w.values) {
		return w.visit()
	}
	for _, v := range w.values[depth] {
		w.frame.values[depth] = v
		if !w.enter(depth + 1) {
			return false
		}
	}
	return true
}

func (w *walk) holds(i int) bool {
	w.frame.fault = false
	return w.rules[i].holds(&w.frame) && !w.frame.fault
}

func (b *Bound) config(of []int64) Config {
	values := make([]int, len(of))
	for i, v := range of {
		values[i] = int(v)
	}
	return b.space.config(values)
}

// Check reports what is wrong with c: a parameter without a value, a value that isn't
// legal, or the first constraint that doesn't hold, with the values it was given.
func (b *Bound) Check(c Config) error {
	if err := b.space.Check(c); err != nil {
		return err
	}
	w := walk{Bound: b, frame: frame{values: make([]int64, len(b.names))}}
	for i, name := range b.names {
		v, _ := c.Get(name)
		w.frame.values[i] = int64(v)
	}
	for i := range b.rules {
		if !w.holds(i) {
			return fmt.Errorf("configuration %q: constraint %s does not hold: %s", c, clip(b.rules[i].Name), b.explain(i))
		}
	}
	return nil
}

// explain writes a rule's expression, its purpose, and the values from outside.
func (b *Bound) explain(i int) string {
	r := b.rules[i]
	text := r.Expr // whole, as what it says about c may be anywhere in it: the parser bounds it
	if r.Doc != "" {
		text += " (" + r.Doc + ")"
	}
	var given []string
	for _, name := range r.given {
		given = append(given, fmt.Sprintf("%s is %d", name, b.env[name]))
	}
	if len(given) > 0 {
		text += ", where " + strings.Join(given, ", ")
	}
	return text
}
