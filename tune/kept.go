package tune

import (
	"encoding/json"

	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/cache"
	"github.com/kgen-dev/kgen/tune/model"
	"github.com/kgen-dev/kgen/tune/store"
)

// keptCandidate is what a run learns of a configuration by lowering it, which the
// same program learns again in every run: kept in the cache, a run that finds all
// its evaluations in the store lowers only what it prints.
type keptCandidate struct {
	Config  string        `json:"config"`
	US      float64       `json:"us,omitempty"`
	Source  string        `json:"source,omitempty"`  // digest of what is compiled, where it was printed
	Outcome store.Outcome `json:"outcome,omitempty"` // of one that cannot be estimated
	Error   string        `json:"error,omitempty"`
	Program string        `json:"program,omitempty"` // digest of its tile program
}

// keptRanking is what a run keeps of its first phase.
type keptRanking struct {
	Seconds    float64         `json:"seconds"` // that it took
	Candidates []keptCandidate `json:"candidates"`
}

// keptKey is of everything that a ranking follows from; Build stands for the code.
func (s *session) keptKey() cache.Key {
	return cache.KeyOf("kgen ranking 2", s.Build, s.Family.Name, string(s.run.Problem), s.GPU.ID, s.builder.identity(), model.Version)
}

// restore fills in what was kept of the candidates; false if that is not all.
func (s *session) restore(all []candidate) bool {
	if s.Build == "" {
		return false
	}
	data, ok := s.Cache.Get(s.keptKey())
	if !ok {
		return false
	}
	var kept keptRanking
	if json.Unmarshal(data, &kept) != nil {
		return false
	}
	byConfig := make(map[string]*keptCandidate, len(kept.Candidates))
	for i := range kept.Candidates {
		c := &kept.Candidates[i]
		byConfig[c.Config] = c
	}
	for i := range all {
		k := byConfig[all[i].config.String()]
		if k == nil || (k.US > 0) == (k.Error != "") {
			return false
		}
		all[i].us, all[i].source, all[i].program = k.US, k.Source, k.Program
		if k.Error != "" {
			all[i].err = keptError{k}
		}
	}
	s.addSeconds("rank", kept.Seconds)
	return true
}

// keep keeps what is known of the candidates.
func (s *session) keep(all []candidate) {
	if s.Build == "" {
		return
	}
	kept := keptRanking{s.took["rank"].Seconds(), make([]keptCandidate, len(all))}
	for i, c := range all {
		k := &kept.Candidates[i]
		*k = keptCandidate{Config: c.config.String(), US: c.us, Source: c.source, Program: c.program}
		if c.err != nil {
			k.Outcome, k.Error = outcomeOf(c.err), c.err.Error()
		}
	}
	data, err := json.Marshal(kept)
	if err == nil {
		err = s.Cache.Put(s.keptKey(), data)
	}
	if err != nil { // costs time, not the result
		s.Log.Warn("not cached", "error", err)
	}
}

// keptError is an error of an earlier run.
type keptError struct{ of *keptCandidate }

func (e keptError) Error() string { return e.of.Error }

func (e keptError) Unwrap() error {
	if e.of.Outcome == store.Resources {
		return codegen.ErrResources
	}
	return nil
}
