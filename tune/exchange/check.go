package exchange

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/tune/store"
)

// check refuses a run that no kgen recorded: of a GPU or a family that there is none of,
// or of a problem that its family refuses. What others published is of any kernel and GPU.
func check(r *Recorded) error {
	if err := checkNames(r); err != nil {
		return err
	}
	if r.Started.After(time.Now().Add(aheadOf)) {
		return fmt.Errorf("it was started at %s: want a time that has been", r.Started.Format(time.RFC3339))
	}
	for i := range r.Evaluations {
		if _, err := parseConfig(r.Evaluations[i].Config); err != nil {
			return err
		}
	}
	if r.Policy == imported {
		return nil
	}
	gpu, err := target.Lookup(r.GPU)
	if err != nil {
		return fmt.Errorf("GPU %.60q: want one of kgen gpus, or the policy %q", r.GPU, imported)
	}
	if r.Types == store.Described {
		return nil
	}
	f, err := kernels.Family(r.Family)
	if err != nil {
		return fmt.Errorf("%w, or the types %q of a described kernel", err, store.Described)
	}
	var problem map[string]json.RawMessage
	if err := json.Unmarshal(r.Problem, &problem); err != nil {
		return fmt.Errorf("problem %.100q: want a JSON object: %w", r.Problem, err)
	}
	if _, err := f.Problem(family.FlagTexts(problem), gpu); err != nil {
		return fmt.Errorf("problem: %w", err)
	}
	return nil
}

// checkNames refuses names of which no file's name can be made.
func checkNames(r *Recorded) error {
	for _, x := range []struct{ what, name string }{{"GPU", r.GPU}, {"kernel", r.Family}} {
		if !filepath.IsLocal(x.name) {
			return fmt.Errorf("%s %.60q: want a name, and no path that leads elsewhere", x.what, x.name)
		}
	}
	return nil
}

// aheadOf is how far another machine's clock may be ahead of this one's.
const aheadOf = 24 * time.Hour
