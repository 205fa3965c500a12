package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/kgen-dev/kgen/internal/userfile"
	"github.com/kgen-dev/kgen/tune/exchange"
	"github.com/kgen-dev/kgen/tune/replay"
	"github.com/kgen-dev/kgen/tune/store"
)

func (a *app) dbImport(f *dbFlags) *cobra.Command {
	c := &cobra.Command{
		Use: "import FILE", Short: "Add the runs of a file: an export, or a published space", Args: positional("FILE"),
		Long: `Add runs to the store: those of a kgen db export as json, or the configurations of a
Kernel Tuner cache, T4 or KTT results or a compact CSV, as one run: times are
predicted where the file says so, else measured by whoever published it. What the store
has is left out, so that a file may be imported again.`,
		Example: "  kgen db import all.json",
		RunE: func(c *cobra.Command, args []string) error {
			return a.importRuns(c.Context(), f, args[0])
		},
	}
	a.jsonFlag(c)
	return c
}

// dbImportReport is what kgen db import --json prints.
type dbImportReport struct {
	File        string  `json:"file"`
	Runs        []int64 `json:"runs"` // that were added
	Evaluations int     `json:"evaluations"`
	Known       int     `json:"known"` // evaluations that the store had
}

func (a *app) importRuns(ctx context.Context, f *dbFlags, file string) error {
	runs, err := a.readRuns(ctx, file)
	if err != nil {
		return err
	}
	return a.withNewStore(f, func(s *store.Store) error {
		ids, added, err := s.Import(runs)
		for _, machine := range []error{store.ErrReadOnly, store.ErrFull, store.ErrDisk, store.ErrBusy} {
			if errors.Is(err, machine) {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
		if err != nil {
			return usagef("%s: nothing is added: %w", file, err)
		}
		report := dbImportReport{File: file, Runs: append([]int64{}, ids...), Evaluations: added, Known: -added}
		for _, r := range runs {
			report.Known += len(r.Evaluations)
		}
		if a.json {
			return a.printJSON(report)
		}
		fmt.Fprintf(a.out, "added %s in %s", numberOf(report.Evaluations, "evaluation"), numberOf(len(report.Runs), "run"))
		if report.Known > 0 {
			fmt.Fprintf(a.out, "; %d were there", report.Known)
		}
		fmt.Fprintln(a.out)
		return nil
	})
}

// readRuns reads a file in any of the forms.
func (a *app) readRuns(ctx context.Context, name string) ([]exchange.Recorded, error) {
	file, err := userfile.Open(name)
	if err != nil {
		return nil, usage(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	runs, err := exchange.Read(io.TeeReader(file, h))
	if err == nil {
		return runs, nil
	}
	if errors.Is(err, exchange.ErrContent) {
		return nil, usagef("%s: nothing is added: %w", name, err)
	}
	if !errors.Is(err, exchange.ErrFormat) {
		return nil, err
	}
	space, other := replay.ReadFile(ctx, name)
	if other != nil {
		if errors.Is(other, replay.ErrFormat) {
			return nil, usagef("%s: %w; and %w", name, err, other)
		}
		return nil, other
	}
	if space.Cut != "" {
		a.log.Warn(string(space.Cut), "file", name, "configurations", len(space.Entries))
	}
	// The file's own time, so that a second import finds what the first added.
	r, err := exchange.FromSpace(space, hex.EncodeToString(h.Sum(nil)), info.ModTime().UTC().Truncate(time.Millisecond))
	if err != nil {
		return nil, usagef("%s: %w", name, err)
	}
	return []exchange.Recorded{r}, nil
}
