// Package search holds the strategies that choose which configuration of a space to try
// next. A strategy sees points, which are indices of values, and what came of those it
// proposed; it knows nothing of kernels, devices or files. All chance follows from one
// seed: the same calls give the same proposals, bit by bit.
package search

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/kgen-dev/kgen/kernels/space"
)

var _ Domain = (*space.Bound)(nil)

// Point is a configuration: for each dimension the index of its value.
type Point = []int

// Dim is one parameter of a domain.
type Dim = space.Dim

// Domain is the set of points that may be tried. A space with its names bound is one.
type Domain interface {
	// Dims are the parameters. A point has an index for each.
	Dims() []Dim
	// Valid tells whether a point meets the constraints; its indices are in range.
	Valid(Point) bool
	// Sample draws a valid point, any of them possible. ok is false if it found none.
	Sample(*rand.Rand) (p Point, ok bool)
	// Next returns the valid point after p in a fixed order, the first one after nil. ok
	// is false after the last.
	Next(p Point) (next Point, ok bool)
}

// Result is what came of a point.
type Result struct {
	OK   bool    // false: it failed, and Time says nothing
	Time float64 // the less the better, above 0, in any unit
}

// Strategy chooses points. Propose may be called several times before the results of
// earlier proposals are observed.
type Strategy interface {
	// Propose returns the next point to try; ok is false when there is none left. It
	// may return a point a second time, which costs nothing: see Run.
	Propose() (p Point, ok bool)
	// Observe tells what came of a point, proposed or not.
	Observe(Point, Result)
}

// Options are what every strategy takes.
type Options struct {
	Seed   uint64
	Budget int // how many points will be tried: schedules are tied to it; at least 1
	// First are points to try before all others, such as the default configuration.
	First []Point
	// Model predicts times in any unit, for instance from the kernel's counts; nil if
	// there is none. Only the ratios of its values are used.
	Model func(Point) float64
}

// kind is a row of the table of strategies.
type kind struct {
	name, doc string
	make      func(Domain, Options) Strategy
}

// kinds has every strategy, the default first.
var kinds = []kind{
	{"guided", "Gaussian process over products and sums of parameters, expected improvement, refined around the best (default)", newGuided},
	{"random", "valid points in random order", newRandom},
	{"exhaustive", "every point in the space's order", newExhaustive},
	{"genetic", "crossover and mutation of a small population", newGenetic},
	{"annealing", "random walk that accepts ever less loss", newAnnealing},
	{"local", "descent to the next better neighbour, with restarts", newLocal},
	{"forest", "random forest on the logarithm of the time, sampled candidates", newForest},
	{"model-first", "rank by the cost model, try the best few, correct the model, repeat", newModelFirst},
}

// Default is the strategy used where none is named.
const Default = "guided"

// Names lists the strategies, the default first.
func Names() []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.name
	}
	return names
}

// Describe returns a line about the strategy called name.
func Describe(name string) string {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
	if i < 0 {
		return ""
	}
	return kinds[i].doc
}

// New makes the strategy called name, "" being the default.
func New(name string, d Domain, o Options) (Strategy, error) {
	if name == "" {
		name = Default
	}
	if o.Budget < 1 {
		return nil, fmt.Errorf("budget %d: want 1 or more", o.Budget)
	}
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
	if i < 0 {
		return nil, fmt.Errorf("strategy %q: want one of %s", name, strings.Join(Names(), ", "))
	}
	s := kinds[i].make(d, o)
	if len(o.First) > 0 {
		s = &prefixed{Strategy: s, first: slices.Clone(o.First)}
	}
	return s, nil
}

// prefixed proposes some points before its strategy's.
type prefixed struct {
	Strategy
	first []Point
}

func (p *prefixed) Propose() (Point, bool) {
	if len(p.first) > 0 {
		next := p.first[0]
		p.first = p.first[1:]
		return next, true
	}
	return p.Strategy.Propose()
}

// Step is one evaluation of a run.
type Step struct {
	Point  Point
	Result Result
}

// stale is how often in a row a strategy may propose what was tried already before a
// random point is put in its proposal's place.
const stale = 100

// Run tries up to budget distinct points, failed ones included, and returns what came of
// each in order. A point that is proposed again is answered from memory and not counted.
// It ends early when nothing is left, when evaluate returns an error, which it returns, or
// when ctx ends, even within a proposal; the strategy is of no use then.
func Run(ctx context.Context, d Domain, s Strategy, o Options, evaluate func(Point) (Result, error)) ([]Step, error) {
	return RunBatches(ctx, d, s, o, 1, func(batch []Point) ([]Result, error) {
		r, err := evaluate(batch[0])
		return []Result{r}, err
	})
}

// RunBatches is Run with up to so many points evaluated at a time: they are proposed one
// after the other and observed in that order, so that what is found depends on the size
// of batches alone, not on what ends first. A batch ends early when a strategy proposes
// what is under way.
func RunBatches(ctx context.Context, d Domain, s Strategy, o Options, batch int, evaluate func([]Point) ([]Result, error)) ([]Step, error) {
	keys := newKeys(d.Dims())
	tried := map[string]Result{}
	spare := newRandom(d, Options{Seed: o.Seed ^ 0x5a5a, Budget: o.Budget})
	var steps []Step
	var open []Point // proposed and not tried
	waiting := map[string]bool{}
	flush := func() error {
		results, err := evaluate(open)
		if err != nil {
			return err
		}
		for i, p := range open {
			tried[keys.of(p)] = results[i]
			steps = append(steps, Step{p, results[i]})
			s.Observe(p, results[i])
		}
		open, waiting = nil, map[string]bool{}
		return nil
	}
	for repeated := 0; len(steps)+len(open) < o.Budget; {
		p, ok, err := propose(ctx, func() (Point, bool) {
			p, ok := s.Propose()
			if repeated >= stale || !ok && repeated > 0 {
				return untried(spare, keys, tried)
			}
			return p, ok
		})
		if err != nil {
			return steps, err
		}
		if !ok {
			break
		}
		key := keys.of(p)
		if waiting[key] {
			if err := flush(); err != nil {
				return steps, err
			}
		}
		if r, seen := tried[key]; seen {
			s.Observe(p, r)
			repeated++
			continue
		}
		repeated = 0
		open, waiting[key] = append(open, slices.Clone(p)), true
		if len(open) == batch {
			if err := flush(); err != nil {
				return steps, err
			}
		}
	}
	if len(open) > 0 {
		if err := flush(); err != nil {
			return steps, err
		}
	}
	return steps, nil
}

// propose calls next, and leaves it to itself when ctx ends first: a walk through a space
// with few valid points may take any time.
func propose(ctx context.Context, next func() (Point, bool)) (p Point, ok bool, err error) {
	if ctx.Done() == nil {
		p, ok = next()
		return p, ok, nil
	}
	done := make(chan struct{})
	var q Point
	var found bool
	go func() {
		q, found = next()
		close(done)
	}()
	select {
	case <-done:
		return q, found, context.Cause(ctx)
	case <-ctx.Done():
		return nil, false, context.Cause(ctx)
	}
}

// untried asks a strategy for a point that was not tried.
func untried(s Strategy, keys keys, tried map[string]Result) (Point, bool) {
	for {
		p, ok := s.Propose()
		if !ok {
			return nil, false
		}
		if _, seen := tried[keys.of(p)]; !seen {
			return p, true
		}
	}
}

// keys makes map keys of points.
type keys struct{ wide bool }

func newKeys(dims []Dim) keys {
	return keys{slices.ContainsFunc(dims, func(d Dim) bool { return d.Len > 256 })}
}

// take marks a point as seen and reports whether it is new.
func (k keys) take(seen map[string]bool, p Point) bool {
	key := k.of(p)
	if seen[key] {
		return false
	}
	seen[key] = true
	return true
}

func (k keys) of(p Point) string {
	b := make([]byte, 0, 32)
	for _, i := range p {
		b = append(b, byte(i))
		if k.wide {
			b = append(b, byte(i>>8), byte(i>>16))
		}
	}
	return string(b)
}
