package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kgen-dev/kgen/tune/exchange"
	"github.com/kgen-dev/kgen/tune/store"
)

// dbFlags are what the commands of kgen db take.
type dbFlags struct {
	store string
	runs  []int64
}

func (a *app) dbCommand() *cobra.Command {
	f := &dbFlags{}
	c := &cobra.Command{
		Use:   "db",
		Short: "Look into the store of tuning runs, and exchange them",
		Long: `Look into the store in which kgen tune keeps every evaluation, write runs to files
that other tuners read, take runs from files, compare runs and remove them.`,
		Args: a.subcommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	for _, sub := range []*cobra.Command{a.dbList(f), a.dbExport(f), a.dbImport(f), a.dbCompare(f), a.dbPrune(f)} {
		sub.Flags().SortFlags = false
		filledFlag(sub, &f.store, "store", "", "`FILE` of the store (default in the state folder)")
		c.AddCommand(sub)
	}
	return c
}

// withStore opens the store for a command that reads or changes what is there.
func (a *app) withStore(f *dbFlags, do func(*store.Store) error) error {
	if f.store != "" {
		if _, err := os.Stat(f.store); errors.Is(err, fs.ErrNotExist) {
			return usagef("--store %s: no such file: want one that kgen tune or kgen db import wrote", f.store)
		}
	}
	return a.withNewStore(f, do)
}

// withNewStore opens the store for a command, and begins it if it is not there.
func (a *app) withNewStore(f *dbFlags, do func(*store.Store) error) error {
	s, err := a.openStore(f.store, store.OpenWhole)
	if err != nil {
		return err
	}
	defer s.Close()
	err = do(s)
	if errors.Is(err, store.ErrNoRun) {
		err = usage(err)
	}
	for _, damaged := range s.Skipped() {
		a.log.Warn("a row of the store is not believed: it is left out", "error", damaged)
	}
	return err
}

// runSummary is a run as kgen db list shows it.
type runSummary struct {
	store.Run
	Evaluations int                   `json:"evaluations"` // new configurations
	Outcomes    map[store.Outcome]int `json:"outcomes"`
	BestUS      *float64              `json:"best_us"`
	BestConfig  string                `json:"best_config,omitempty"`
	Provenance  string                `json:"provenance,omitempty"` // of the best time
}

func summarise(s *store.Store, r store.Run) (*runSummary, error) {
	all, err := s.Evaluations(r.ID)
	if err != nil {
		return nil, err
	}
	newest := map[store.Key]*store.Evaluation{} // a check supersedes what was predicted
	for i := range all {
		if e := &all[i]; !e.Single() {
			newest[e.Key] = e
		}
	}
	sum := &runSummary{Run: r, Evaluations: len(newest), Outcomes: map[store.Outcome]int{}}
	for i := range all {
		e := &all[i]
		if newest[e.Key] != e {
			continue
		}
		sum.Outcomes[e.Outcome]++
		if e.Outcome.Timed() && (sum.BestUS == nil || e.TimeUS < *sum.BestUS) {
			sum.BestUS, sum.BestConfig, sum.Provenance = &e.TimeUS, e.Config, e.Provenance.String()
		}
	}
	return sum, nil
}

func (a *app) dbList(f *dbFlags) *cobra.Command {
	c := &cobra.Command{
		Use: "list", Short: "List the runs in the store, newest first", Args: positional(),
		Example: "  kgen db list --json",
		RunE: func(*cobra.Command, []string) error {
			return a.withStore(f, func(s *store.Store) error {
				runs, err := s.Runs()
				if err != nil {
					return err
				}
				out := []*runSummary{}
				for _, r := range runs {
					sum, err := summarise(s, r)
					if err != nil {
						return err
					}
					out = append(out, sum)
				}
				if a.json {
					return a.printJSON(map[string]any{"store": s.Path(), "runs": out})
				}
				return a.printRuns(out)
			})
		},
	}
	a.jsonFlag(c)
	return c
}

func (a *app) printRuns(runs []*runSummary) error {
	w := a.table()
	fmt.Fprintln(w, "RUN\tSTARTED\tKERNEL\tGPU\tNEW\tFAILED\tBEST\t\tPOLICY\tPROBLEM")
	for _, r := range runs {
		best, failed := "-", 0
		if r.BestUS != nil {
			best = fmt.Sprintf("%.4g us", *r.BestUS)
		}
		for o, n := range r.Outcomes {
			if !o.Timed() {
				failed += n
			}
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\n", r.ID, r.Started.Format("2006-01-02 15:04"), visible(r.Family), visible(r.GPU), r.Evaluations, failed, best, r.Provenance, visible(r.Policy), visible(problemText(r.Problem)))
	}
	return w.Flush()
}

// problemText writes a run's problem as "k=512 m=1024"; "" if it is no object.
func problemText(problem json.RawMessage) string {
	var settings map[string]any
	d := json.NewDecoder(bytes.NewReader(problem))
	d.UseNumber()
	if d.Decode(&settings) != nil {
		return ""
	}
	return settingsText(settings)
}

// runsFlag declares --run.
func runsFlag(c *cobra.Command, runs *[]int64, doc string) {
	c.Flags().Int64SliceVar(runs, "run", nil, doc)
	c.Flags().Lookup("run").DefValue = "" // which pflag would show as []
}

// recorded reads runs with their evaluations, in the order given; all for none.
func recorded(s *store.Store, ids []int64) ([]exchange.Recorded, error) {
	if len(ids) == 0 {
		runs, err := s.Runs()
		if err != nil {
			return nil, err
		}
		for _, r := range slices.Backward(runs) {
			ids = append(ids, r.ID)
		}
	}
	var out []exchange.Recorded
	for _, id := range ids {
		r, err := s.Run(id)
		if err != nil {
			return nil, err
		}
		all, err := s.Evaluations(id)
		if err != nil {
			return nil, err
		}
		out = append(out, exchange.Recorded{Run: *r, Evaluations: append([]store.Evaluation{}, all...)}) // a list in JSON, of none too
	}
	return out, nil
}

func (a *app) dbExport(f *dbFlags) *cobra.Command {
	form := choice{value: "json", words: exchange.Formats()}
	var file string
	c := &cobra.Command{
		Use: "export", Short: "Write runs as JSON, T4 results, a Kernel Tuner cache or CSV", Args: positional(),
		Long: `Write runs of the store. As json nothing is lost, and kgen db import takes it back; the
other forms have the newest evaluation of each configuration of one kernel on one GPU
for one problem. Whether times were measured or predicted stands in the file, as do
kernel, GPU and problem: kgen db import, kgen tune --replay and kgen roofline import take
them from it. T4 results and Kernel Tuner caches also hold each evaluation as the store
has it, and an import brings that back; of a CSV it brings back what the columns say.`,
		Example: "  kgen db export --run 3 --format t4 -o results.json\n  kgen db export >all.json",
		RunE: func(*cobra.Command, []string) error {
			if err := checkOutput("-o", file); err != nil {
				return err
			}
			return a.withStore(f, func(s *store.Store) error {
				if err := checkNotInput("-o", file, s.Path()); err != nil {
					return err
				}
				runs, err := recorded(s, f.runs)
				if err != nil {
					return err
				}
				var b bytes.Buffer
				if err := exchange.Write(&b, form.value, runs); err != nil {
					return usage(err)
				}
				return a.write(file, b.Bytes())
			})
		},
	}
	choiceFlag(c, &form, "format", "the form of the file")
	runsFlag(c, &f.runs, "`ID` of a run, as kgen db list shows it; may be given again (default all)")
	filledFlag(c, &file, "output", "o", "`FILE` to write (default standard output)")
	return c
}

func (a *app) dbCompare(f *dbFlags) *cobra.Command {
	c := &cobra.Command{
		Use: "compare RUN RUN", Short: "Compare two runs, configuration by configuration", Args: positional("RUN", "RUN"),
		Long: `Compare two runs, configuration by configuration: the times of both, and what ended
otherwise. Measured times are not compared with predicted ones.`,
		Example: "  kgen db compare 3 7",
		RunE: func(_ *cobra.Command, args []string) error {
			var ids [2]int64
			for i, text := range args {
				id, err := strconv.ParseInt(text, 10, 64)
				if err != nil {
					return usagef("run %q: want a number that kgen db list shows", text)
				}
				ids[i] = id
			}
			return a.withStore(f, func(s *store.Store) error {
				runs, err := recorded(s, ids[:])
				if err != nil {
					return err
				}
				d, err := exchange.Compare(&runs[0], &runs[1])
				if err != nil {
					return usage(err)
				}
				if a.json {
					return a.printJSON(d)
				}
				a.printComparison(d)
				return nil
			})
		},
	}
	a.jsonFlag(c)
	return c
}

func (a *app) printComparison(d *exchange.Comparison) {
	for i, r := range []*exchange.Side{&d.A, &d.B} {
		best := "no time"
		if r.BestUS != nil {
			best = fmt.Sprintf("best %.4g us %s: %s", *r.BestUS, r.Provenance, visible(r.BestConfig))
		}
		fmt.Fprintf(a.out, "run %-5d %s on %s, %d configurations, %s\n", r.Run, visible(r.Kernel), visible(r.GPU), r.Configurations, best)
		if i == 1 && d.BestRatio != nil {
			fmt.Fprintf(a.out, "best      the second run's takes %s\n", ofTheFirst(*d.BestRatio, "the first's"))
		}
	}
	fmt.Fprintf(a.out, "common    %d configurations, %d with a time in both", d.Common, d.Timed)
	if d.MeanRatio != nil {
		fmt.Fprintf(a.out, ": the second takes %s in the geometric mean; it is faster in %d, slower in %d", ofTheFirst(*d.MeanRatio, "the first"), d.Faster, d.Slower)
	}
	fmt.Fprintln(a.out)
	if d.Incomparable != "" {
		fmt.Fprintf(a.out, "times     not compared: %s\n", d.Incomparable)
	}
	for _, c := range d.Changed[:min(mostShown, len(d.Changed))] {
		fmt.Fprintf(a.out, "changed   %s: %s, then %s\n", visible(c.Config), c.A, c.B)
	}
	if n := len(d.Changed) - mostShown; n > 0 {
		fmt.Fprintf(a.out, "changed   %d more; --json has them all\n", n)
	}
}

// ofTheFirst says a ratio of times in words.
func ofTheFirst(ratio float64, first string) string {
	switch text := fmt.Sprintf("%.4g", ratio); {
	case ratio == 1:
		return "the same time as " + first
	case text == "1":
		return "about the same time as " + first
	default:
		return text + " of the first's time"
	}
}

func (a *app) dbPrune(f *dbFlags) *cobra.Command {
	var older time.Duration
	var keep int
	c := &cobra.Command{
		Use: "prune", Short: "Remove runs with all their evaluations", Args: positional(),
		Long: `Remove runs from the store: those named with --run, or those that are older than a
time, but of each kernel and GPU the newest --keep.`,
		Example: "  kgen db prune --run 3\n  kgen db prune --older 2160h --keep 2",
		RunE: func(*cobra.Command, []string) error {
			if (len(f.runs) > 0) == (older > 0) {
				return usagef("kgen db prune: want --run or --older, and not both")
			}
			if keep < 0 {
				return usagef("--keep %d: want 0 or more", keep)
			}
			return a.withStore(f, func(s *store.Store) error {
				ids := f.runs
				if older > 0 {
					var err error
					if ids, err = olderRuns(s, older, keep); err != nil {
						return err
					}
				}
				slices.Sort(ids)
				ids = slices.Compact(ids)
				n, err := s.Prune(ids)
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(map[string]any{"runs": len(ids), "evaluations": n})
				}
				fmt.Fprintf(a.out, "removed %s with %s\n", numberOf(len(ids), "run"), numberOf(n, "evaluation"))
				return nil
			})
		},
	}
	runsFlag(c, &f.runs, "`ID` of a run; may be given again")
	c.Flags().DurationVar(&older, "older", 0, "runs that were started so long ago, such as 720h")
	c.Flags().IntVar(&keep, "keep", 1, "with --older: keep the newest `N` of each kernel and GPU")
	a.jsonFlag(c)
	return c
}

// olderRuns are the runs started so long ago, but the newest of each kernel and GPU.
func olderRuns(s *store.Store, older time.Duration, keep int) ([]int64, error) {
	runs, err := s.Runs()
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(runs, func(a, b store.Run) int { return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(b.ID, a.ID)) })
	kept := map[string]int{}
	var ids []int64
	for _, r := range runs {
		kind := strings.Join([]string{r.Family, r.GPU, string(r.Problem)}, "\x00")
		if kept[kind]++; kept[kind] > keep && time.Since(r.Started) > older {
			ids = append(ids, r.ID)
		}
	}
	return ids, nil
}
