package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/kgen-dev/kgen/internal/jsontext"
	"github.com/kgen-dev/kgen/tune/replay"
	"github.com/kgen-dev/kgen/tune/search"
)

// replay searches a published space.
func (a *app) replay(ctx context.Context, f *tuneFlags, gpu string) error {
	switch {
	case f.budget.time > 0:
		return usagef("--budget %s: a replay takes no time: want a number of configurations", &f.budget)
	case gpu != "":
		return usagef("--gpu %s: a replay has the GPU on which its space was timed", gpu)
	case f.dryRun || f.explain != "":
		return usagef("--dry-run and --explain go with a family or --space, not with --replay")
	case f.given("parallel") || f.compile.given():
		return usagef("--parallel, -I and -D go with --space: a replay compiles and runs nothing")
	case f.fleet.remote() || f.given("device") || f.shapes != "":
		return usagef("--serve, --workers, --device and --shapes do not go with --replay, whose times are there")
	case f.store != "" || f.dir != "":
		return usagef("--replay neither reads nor writes files of its own: it takes no --store and no -o")
	}
	if err := f.checkStrategy(); err != nil {
		return err
	}
	s, err := replay.ReadFile(ctx, f.replay)
	if err != nil {
		return spaceFileError("--replay", f.replay, err)
	}
	if s.Cut != "" {
		a.log.Warn(string(s.Cut), "file", f.replay, "configurations", len(s.Entries))
	}
	r, err := s.Search(ctx, f.strategy, f.most(), f.seed)
	if err != nil {
		return spaceFileError("--replay", f.replay, err)
	}
	if a.json {
		return a.printJSON(r)
	}
	a.printReplay(filepath.Base(f.replay), s, r)
	return nil
}

// checkStrategy refuses a strategy that there is not.
func (f *tuneFlags) checkStrategy() error {
	if f.strategy != "" && search.Describe(f.strategy) == "" {
		return usagef("--strategy %q%s", f.strategy, didYouMean(f.strategy, search.Names()))
	}
	return nil
}

// spaceFileError says of a flag's file what is wrong, as a mistake of the caller where the
// file is missing or in no known format.
func spaceFileError(flag, file string, err error) error {
	var missing *fs.PathError
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &missing):
		return usagef("%s %s: %w", flag, file, missing.Err)
	case errors.Is(err, replay.ErrFormat):
		return usagef("%s %s: %w", flag, file, err)
	}
	return fmt.Errorf("%s %s: %w", flag, file, err)
}

func (a *app) printReplay(file string, s *replay.Space, r *replay.Run) {
	what := "" // a CSV does not say
	if s.Kernel != "" || s.Device != "" {
		what = fmt.Sprintf("%s on %s, ", cmp.Or(s.Kernel, "a kernel"), cmp.Or(s.Device, "a GPU"))
	}
	fmt.Fprintf(a.out, "%s\n", visible(what+"published in "+file))
	fmt.Fprintf(a.out, "space     %d configurations of %d parameters\n", len(s.Entries), len(s.Names))
	fmt.Fprintf(a.out, "tried     %d with %s, seed %d%s\n", r.Evaluations, r.Strategy, r.Seed, failedTries(r))
	if r.Best == nil {
		fmt.Fprintln(a.out, "best      none: every configuration tried failed")
		return
	}
	n := 0
	for ; r.Trace[n].BestMS == nil || *r.Trace[n].BestMS != r.Best.TimeMS; n++ {
	}
	from := "" // most files do not say
	if r.Best.Provenance != 0 {
		from = " " + r.Best.Provenance.String()
	}
	fmt.Fprintf(a.out, "best      %.4g ms%s, found at evaluation %d: %s\n", r.Best.TimeMS, from, r.Trace[n].Evaluation, configText(r.Best.Config))
	fmt.Fprintf(a.out, "optimum   %.4g ms: the best has %.3f of its speed\n", r.Optimum, r.Fraction)
}

// configText writes a configuration's object as NAME=VALUE.
func configText(object json.RawMessage) string {
	var o jsontext.Object
	if json.Unmarshal(object, &o) != nil {
		return visible(string(object))
	}
	words := make([]string, len(o.Names))
	for i, name := range o.Names {
		words[i] = name + "=" + o.Plain(i)
	}
	return visible(strings.Join(words, " "))
}

// failedTries counts what failed, by status.
func failedTries(r *replay.Run) string {
	var parts []string
	for _, status := range []replay.Status{replay.Compile, replay.Runtime, replay.Correctness, replay.Timeout, replay.Constraints} {
		n := 0
		for _, t := range r.Trace {
			if t.Status == status {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", status, n))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "; failed: " + strings.Join(parts, ", ")
}
