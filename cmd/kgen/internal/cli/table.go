package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kgen-dev/kgen/tune/store"
	"github.com/kgen-dev/kgen/tune/table"
)

func (a *app) tableCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "table",
		Short: "Make, check and read tables of the best configurations, which travel",
		Long: `A table holds the ten best configurations that kgen tune found for each kernel, GPU
and problem, with where their times are from and when. A look-up takes the exact GPU
and the bucket of every size (the power of two above it); else another GPU of the same
compute capability; else what is nearest, sizes by the logarithm of their ratio, plus 1
for another GPU and 4 for another architecture; else the default.`,
		Args: a.subcommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.tableMake(), a.tableCheck(), a.tableLookup())
	return c
}

func (a *app) tableMake() *cobra.Command {
	f := &dbFlags{}
	var file string
	c := &cobra.Command{
		Use: "make", Short: "Make a table of what the store holds", Args: positional(),
		Example: "  kgen table make -o table.json",
		RunE: func(*cobra.Command, []string) error {
			if err := checkOutput("-o", file); err != nil {
				return err
			}
			return a.withStore(f, func(s *store.Store) error {
				if err := checkNotInput("-o", file, s.Path()); err != nil {
					return err
				}
				t, err := table.Make(s, kernelFamily)
				if err != nil {
					return err
				}
				if len(t.Entries) == 0 {
					return usagef("store %s: no family was tuned: there is nothing to put in a table", s.Path())
				}
				var b bytes.Buffer
				e := json.NewEncoder(&b)
				e.SetIndent("", " ")
				if err := e.Encode(t); err != nil {
					return err
				}
				return a.write(file, b.Bytes())
			})
		},
	}
	c.Flags().SortFlags = false
	filledFlag(c, &f.store, "store", "", "`FILE` of the store (default in the state folder)")
	filledFlag(c, &file, "output", "o", "`FILE` to write (default standard output)")
	return c
}

// readConfigTable reads a table that a user names.
func readConfigTable(file string) (*table.Table, error) {
	t, err := table.ReadFile(file)
	if errors.Is(err, table.ErrFormat) {
		return nil, usagef("%s: %w", file, err)
	}
	return t, usage(err)
}

func (a *app) tableCheck() *cobra.Command {
	return &cobra.Command{
		Use: "check FILE", Short: "Check that a table's configurations are still valid, and show its age", Args: positional("FILE"),
		Example: "  kgen table check table.json",
		RunE: func(_ *cobra.Command, args []string) error {
			t, err := readConfigTable(args[0])
			if err != nil {
				return err
			}
			bad := 0
			w := a.table()
			fmt.Fprintln(w, "ENTRY\tBEST\t\tCONFIGURATIONS\tAGE\tVERDICT")
			for i := range t.Entries {
				e := &t.Entries[i]
				verdict := "right"
				if wrongs := e.Check(kernelFamily); len(wrongs) > 0 {
					bad++
					verdict = oneLine(errors.Join(wrongs...))
				}
				best := "-"
				if len(e.Best) > 0 {
					best = fmt.Sprintf("%.4g us", e.Best[0].TimeUS)
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\n", visible(e.String()), best, e.Provenance, len(e.Best), ageOf(e.Made), verdict)
			}
			if err := w.Flush(); err != nil {
				return err
			}
			if bad > 0 {
				return wrong(fmt.Errorf("%s: %d of %d entries are wrong", args[0], bad, len(t.Entries)))
			}
			return nil
		},
	}
}

// ageOf is how long ago something was, in days or hours.
func ageOf(t time.Time) string {
	hours := time.Since(t).Hours()
	if hours < 48 {
		return fmt.Sprintf("%.0f hours", hours)
	}
	return fmt.Sprintf("%.0f days", hours/24)
}

func (a *app) tableLookup() *cobra.Command {
	var file string
	return a.familyCommand(familyVerb{
		name: "lookup", short: "Look a problem up in a table",
		long:     "Look a problem up in a table: the configurations to try first, how the entry was chosen,\nat which distance, and how old it is.",
		example:  "  kgen table lookup gemm --gpu h100 --table table.json --m 4096",
		fileFlag: "table",
		flags: func(c *cobra.Command) {
			filledFlag(c, &file, "table", "", "`FILE` of the table")
			a.jsonFlag(c)
		},
		run: func(_ context.Context, j *job) error {
			if file == "" {
				return usagef("--table is missing: want a file that kgen table make wrote")
			}
			t, err := readConfigTable(file)
			if err != nil {
				return err
			}
			found, err := t.Lookup(j.family, j.problem, j.gpu)
			if err != nil {
				return usage(err)
			}
			return a.printFound(j, found)
		},
	})
}

func (a *app) printFound(j *job, f *table.Found) error {
	if a.json {
		return a.printJSON(f)
	}
	fmt.Fprintf(a.out, "match     %s\n", f.Match)
	if e := f.Entry; e != nil {
		fmt.Fprintf(a.out, "entry     %s, %s old, times %s; distance %.3g\n", visible(e.String()), ageOf(e.Made), e.Provenance, f.Distance)
		if f.Dropped > 0 {
			fmt.Fprintf(a.out, "dropped   %d configurations that %s or the problem forbids\n", f.Dropped, j.gpu.Name)
		}
	}
	for _, c := range f.Configs {
		fmt.Fprintf(a.out, "config    %s\n", c)
	}
	return nil
}
