package replay

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/tune/search"
)

// Run is what a replayed search found. As JSON it is what `kgen tune --replay --json`
// prints.
type Run struct {
	Kernel      string  `json:"kernel,omitempty"` // as the file names them
	GPU         string  `json:"gpu,omitempty"`
	Strategy    string  `json:"strategy"`
	Seed        uint64  `json:"seed"`
	Best        *Found  `json:"best"`     // null if nothing tried was correct
	Optimum     float64 `json:"optimum"`  // milliseconds of the best in the file
	Fraction    float64 `json:"fraction"` // Optimum over the best's time; 0 without one
	Evaluations int     `json:"evaluations"`
	Trace       []Try   `json:"trace"`
}

// Found is a configuration with its mean time.
type Found struct {
	Config json.RawMessage `json:"config"`
	TimeMS float64         `json:"time_ms"`
	// Provenance is that of the time; absent where the file does not say.
	Provenance bench.Provenance `json:"provenance,omitempty"`
}

// Try is one evaluation.
type Try struct {
	Evaluation int             `json:"evaluation"` // from 1
	Config     json.RawMessage `json:"config"`
	Status     Status          `json:"status"`
	TimeMS     *float64        `json:"time_ms"` // null unless correct
	BestMS     *float64        `json:"best_ms"` // so far; null before the first correct one
}

// Search replays a search with a strategy ("" is the default), trying at most budget
// configurations. It ends with ctx.
func (s *Space) Search(ctx context.Context, strategy string, budget int, seed uint64) (*Run, error) {
	best := s.Optimum()
	if best == nil {
		return nil, fmt.Errorf("%w: not one of its %d configurations has a time", ErrFormat, len(s.Entries))
	}
	if strategy == "" {
		strategy = search.Default
	}
	o := search.Options{Seed: seed, Budget: min(budget, len(s.Entries))}
	st, err := search.New(strategy, s.domain, o)
	if err != nil {
		return nil, err
	}
	steps, err := search.Run(ctx, s.domain, st, o, func(p search.Point) (search.Result, error) {
		return s.Entry(p).Result(), nil
	})
	if err != nil {
		return nil, err
	}
	r := &Run{Kernel: s.Kernel, GPU: s.Device, Strategy: strategy, Seed: seed, Optimum: best.MS, Evaluations: len(steps), Trace: make([]Try, 0, len(steps))}
	for i, step := range steps {
		r.add(s, i+1, s.Entry(step.Point))
	}
	return r, nil
}

func (r *Run) add(s *Space, n int, e *Entry) {
	t := Try{Evaluation: n, Config: s.config(e), Status: e.Status}
	if e.Status == Correct {
		t.TimeMS = &e.MS
		if r.Best == nil || e.MS < r.Best.TimeMS {
			r.Best = &Found{t.Config, e.MS, e.From}
			r.Fraction = r.Optimum / e.MS
		}
	}
	if r.Best != nil {
		ms := r.Best.TimeMS
		t.BestMS = &ms
	}
	r.Trace = append(r.Trace, t)
}
