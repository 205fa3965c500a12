package table

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/tune/store"
)

// Make makes a table of what a store holds of families: for each problem and GPU the
// Most best configurations, measured ones where there are any, else predicted ones by the
// newest cost model and compiler that ran. Runs of other kernels are left out.
func Make(s *store.Store, families func(string) (*family.Family, error)) (*Table, error) {
	runs, err := s.Runs() // newest first
	if err != nil {
		return nil, err
	}
	at := map[string]int{}
	var entries []Entry
	for i := range runs {
		r := &runs[i]
		f, err := families(r.Family)
		if err != nil {
			continue
		}
		e, err := entryOf(s, r, f)
		if err != nil {
			return nil, err
		}
		if e == nil {
			continue
		}
		key := e.Kernel + "\x00" + e.GPU + "\x00" + e.problem()
		old, ok := at[key]
		switch {
		case !ok:
			at[key] = len(entries)
			entries = append(entries, *e)
		case e.Provenance == bench.Measured && entries[old].Provenance != bench.Measured:
			entries[old] = *e
		}
	}
	return New(entries), nil
}

// entryOf is a run's entry; nil if it has no time.
func entryOf(s *store.Store, r *store.Run, f *family.Family) (*Entry, error) {
	best, err := s.Best(r, Most*4)
	if err != nil || len(best) == 0 {
		return nil, err
	}
	settings, err := settingsOf(f, r.Problem)
	if err != nil {
		return nil, nil //nolint:nilerr // a problem of another version's family
	}
	e := &Entry{Kernel: r.Family, GPU: r.GPU, Provenance: best[0].Provenance, Policy: r.Policy, Compiler: r.Compiler, CostModel: r.CostModel, Kgen: r.Kgen}
	e.Sizes, e.Options = Split(f, settings)
	// What spills comes last, as it does in a tuning run's own ranking.
	slices.SortStableFunc(best, func(a, b store.Evaluation) int {
		if e.Provenance == bench.Measured {
			return cmp.Compare(a.TimeUS, b.TimeUS)
		}
		return cmp.Or(cmp.Compare(min(a.SpillBytes, 1), min(b.SpillBytes, 1)), cmp.Compare(a.TimeUS, b.TimeUS))
	})
	for _, v := range best {
		if v.At.After(e.Made) {
			e.Made = v.At
		}
		known := slices.ContainsFunc(e.Best, func(b Best) bool { return b.Config == v.Config })
		if !known && len(e.Best) < Most {
			e.Best = append(e.Best, Best{v.Config, v.TimeUS, v.Verified})
		}
	}
	slices.SortStableFunc(e.Best, func(a, b Best) int { return cmp.Compare(a.TimeUS, b.TimeUS) })
	return e, nil
}

// settingsOf reads a run's problem.
func settingsOf(f *family.Family, problem json.RawMessage) (family.Settings, error) {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(problem, &values); err != nil {
		return nil, err
	}
	texts := family.FlagTexts(values)
	var out family.Settings
	for _, flag := range f.Flags {
		if text, ok := texts[flag.Name]; ok {
			out = append(out, family.Setting{Name: flag.Name, Value: text})
			delete(texts, flag.Name)
		}
	}
	if len(out) == 0 { // imported from a file that does not tell the problem
		return nil, fmt.Errorf("problem %s: no setting of %s", problem, f.Name)
	}
	if len(texts) > 0 {
		return nil, fmt.Errorf("problem %s: settings that %s has not", problem, f.Name)
	}
	return out, nil
}
