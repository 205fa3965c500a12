package exchange

import (
	"encoding/json"
	"fmt"

	"github.com/kgen-dev/kgen/internal/jsontext"
	"github.com/kgen-dev/kgen/tune/replay"
	"github.com/kgen-dev/kgen/tune/store"
)

// kgenMember is what the forms of others leave room for: a member in which an evaluation,
// and beside the records their run, stands as the store has it.
const kgenMember = "kgen"

// own is an evaluation without what its place in the file says, or the store anew.
type own struct {
	store.Evaluation
	ID     int64  `json:"id,omitempty"`
	Run    int64  `json:"run,omitempty"`
	Key    string `json:"key,omitempty"`
	Config string `json:"config,omitempty"`
}

func ownOf(e *store.Evaluation) *own { return &own{Evaluation: *e} }

// restore puts in what kgen wrote of a configuration beside what the form has, unless that
// was changed meanwhile: the form's own members are what others see and edit.
func restore(v *store.Evaluation, e *replay.Entry) error {
	if e.Own == nil {
		return nil
	}
	was := store.Evaluation{At: v.At, Program: v.Program, TimeUS: v.TimeUS, Provenance: v.Provenance, Samples: v.Samples}
	if err := json.Unmarshal(e.Own, &was); err != nil {
		return fmt.Errorf("configuration %q: what kgen wrote beside it: %w", v.Config, jsontext.Plain(err))
	}
	if was.Outcome.Timed() != v.Outcome.Timed() || was.Outcome.Timed() && was.Provenance != v.Provenance {
		return nil
	}
	if was.Seconds == nil {
		was.Seconds = v.Seconds
	}
	was.ID, was.Run, was.Key, was.Config = 0, 0, store.Key{}, v.Config
	*v = was
	return nil
}

// restoreRun does so for a run.
func restoreRun(r *Recorded, s *replay.Space) error {
	if s.Own == nil {
		return nil
	}
	was := r.Run
	if err := json.Unmarshal(s.Own, &was); err != nil {
		return fmt.Errorf("what kgen wrote of the run: %w", jsontext.Plain(err))
	}
	if was.Family != r.Family || was.GPU != r.GPU {
		return nil
	}
	was.ID, was.Problem = 0, r.Problem
	r.Run = was
	return check(r)
}
