package exchange

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/tune/replay"
	"github.com/kgen-dev/kgen/tune/store"
)

// imported is the policy of times that a file of another form than kgen's own had.
const imported = "imported, as published"

// FromSpace makes a run of a published space: times are what the file says they are, else
// measured, by whoever published it. What is predicted counts as not verified, whatever
// the file says of that. program is a digest of the file: with it the same configuration of another file is
// another evaluation. Parameters' names and values must be free of spaces.
func FromSpace(s *replay.Space, program string, at time.Time) (Recorded, error) {
	r := Recorded{Run: store.Run{Started: at, Command: "kgen db import", Family: s.Kernel, Problem: []byte(`{}`), GPU: s.Device, Policy: imported}}
	if r.Family == "" {
		r.Family = "kernel"
	}
	if r.GPU == "" {
		r.GPU = "unknown"
	}
	if s.Problem != nil {
		r.Problem = s.Problem
	}
	for i := range s.Entries {
		e := &s.Entries[i]
		config, err := configText(s.Names, e.Values)
		if err != nil {
			return r, err
		}
		v := store.Evaluation{At: at, Program: program, Config: config, Outcome: store.Outcome(e.Status)}
		if e.CostMS > 0 {
			v.Seconds = map[string]float64{"all": e.CostMS / 1000}
		}
		if e.Status == replay.Correct {
			v.TimeUS, v.Provenance = 1000*e.MS, cmp.Or(e.From, bench.Measured)
			if v.Provenance == bench.Predicted {
				v.Outcome = store.Predicted
			}
			for _, ms := range e.Samples {
				v.Samples = append(v.Samples, 1000*ms)
			}
			if slices.ContainsFunc(v.Samples, func(us float64) bool { return !(us > 0) }) {
				v.Samples = nil
			}
		} else {
			v.Error = string(e.Status) + ", as published"
		}
		if err := restore(&v, e); err != nil {
			return r, err
		}
		r.Evaluations = append(r.Evaluations, v)
	}
	if err := checkNames(&r); err != nil {
		return r, err
	}
	return r, restoreRun(&r, s)
}

func configText(names []string, values []replay.Value) (string, error) {
	var fields []string
	for i, name := range names {
		text := values[i].Plain()
		if name == "" || strings.ContainsAny(name, " =\t\n") || text == "" || strings.ContainsAny(text, " \t\n") {
			return "", fmt.Errorf("parameter %q with value %q: %w", name, text, errSpaces)
		}
		fields = append(fields, name+"="+text)
	}
	return strings.Join(fields, " "), nil
}

var errSpaces = errors.New("want names and values without spaces, and names without =")
