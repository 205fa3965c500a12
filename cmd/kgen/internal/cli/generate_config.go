package cli

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/tune/store"
)

// openStore opens the store of tuning results if there is one.
func (g *generator) openStore() error {
	path := g.store
	if path == "" {
		var err error
		if path, err = store.DefaultPath(); err != nil {
			return nil // nowhere to have tuned
		}
		if _, err := os.Stat(path); err != nil {
			return nil
		}
	} else if _, err := os.Stat(path); err != nil {
		return usagef("--store %s: %s: want a file that kgen tune wrote", path, reason(err))
	}
	var err error
	g.open, err = store.OpenWhole(path)
	switch {
	case errors.Is(err, store.ErrForeign), errors.Is(err, store.ErrNewer):
		return usage(err)
	case err != nil:
		return err
	}
	g.runs, err = g.open.Runs()
	return err
}

// config is the best verified configuration that the store has for a problem and the
// provenance of its time, or else the default.
func (g *generator) config(f *family.Family, p family.Problem, gpu *target.GPU) (space.Config, string, error) {
	c, err := p.Default(gpu)
	if err != nil {
		return c, "", usage(err)
	}
	best, err := g.tuned(f, p, gpu)
	if best == nil || err != nil {
		return c, "default", err
	}
	bound, err := p.Space(gpu)
	if err != nil {
		return c, "", err
	}
	tuned, err := bound.Space().Override(c, strings.Fields(best.Config))
	if err != nil || bound.Check(tuned) != nil { // of another version's space
		return c, "default", nil
	}
	return tuned, best.Provenance.String(), nil
}

// tuned is the fastest verified evaluation of a problem, nil if there is none. A measured
// one comes before any predicted one, and of these the newest run's: what several models
// predict does not compare.
func (g *generator) tuned(f *family.Family, p family.Problem, gpu *target.GPU) (*store.Evaluation, error) {
	problem, err := p.Settings().MarshalJSON()
	if err != nil {
		return nil, err
	}
	var best *store.Evaluation
	for i := range g.runs {
		r := &g.runs[i]
		if r.Family != f.Name || r.GPU != gpu.ID || !sameJSON(r.Problem, problem) {
			continue
		}
		all, err := g.open.Best(r, math.MaxInt)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(all, func(e store.Evaluation) bool { return e.Verified })
		if at >= 0 && (best == nil || measuredFaster(&all[at], best)) {
			best = &all[at]
		}
	}
	return best, nil
}

// sameJSON compares objects whatever the order of their keys.
func sameJSON(x, y []byte) bool {
	var a, b any
	return json.Unmarshal(x, &a) == nil && json.Unmarshal(y, &b) == nil && reflect.DeepEqual(a, b)
}

// measuredFaster tells whether an evaluation was measured and than was not, or was slower.
func measuredFaster(e, than *store.Evaluation) bool {
	return e.Provenance == bench.Measured && (than.Provenance != bench.Measured || e.TimeUS < than.TimeUS)
}
