package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kgen-dev/kgen/roofline/plot"
	"github.com/kgen-dev/kgen/roofline/reproduce"
)

func (a *app) reproduceCommand() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "reproduce [NAME]",
		Short: "Compute published roofline results again",
		Long: `Compute published roofline results again, from the publications' own figures, by
formula and from the GPU table, and print computed next to published. Without
NAME all of them. What is off by more than rounding is marked, and the exit code
is 3.

NAME is one of ` + strings.Join(reproduce.Names(), ", ") + `.`,
		Example: `  kgen roofline reproduce
  kgen roofline reproduce gpp -o gpp.svg
  kgen roofline reproduce --json -o figures`,
		Args:              positional("[NAME]"),
		ValidArgsFunction: cobra.FixedCompletions(reproduce.Names(), cobra.ShellCompDirectiveNoFileComp),
		RunE:              func(_ *cobra.Command, args []string) error { return a.reproduce(args, output) },
	}
	c.Flags().StringVarP(&output, "output", "o", "", "draw the figure to `FILE`, which ends in "+plot.Formats+"; without NAME all figures as SVG to a folder")
	a.jsonFlag(c)
	return c
}

// reproduce computes the named publications, or all. output is a file for one,
// a folder for all, or "".
func (a *app) reproduce(names []string, output string) error {
	one := len(names) > 0
	if !one {
		names = reproduce.Names()
	}
	if err := checkFigures(one, output); err != nil {
		return err
	}
	var all []*reproduce.Result
	for _, name := range names {
		r, err := reproduce.Compute(name)
		if err != nil {
			return usage(err) // the tables are embedded: only the name can be wrong
		}
		if output != "" {
			file := output
			if !one {
				file = filepath.Join(output, name+".svg")
			}
			if err := drawTo(file, r.Figure); err != nil {
				return err
			}
		}
		all = append(all, r)
	}
	if err := a.printReproduced(all); err != nil {
		return err
	}
	return reproduceFailure(all)
}

// checkFigures refuses an output that cannot be written, before the work.
func checkFigures(one bool, output string) error {
	switch {
	case output == "":
		return nil
	case one:
		return checkFigure(output)
	}
	if err := checkFolder("-o", output, output); err != nil {
		return err
	}
	return outputError("-o", output, os.MkdirAll(output, 0o755))
}

// checkFigure refuses a file that no figure can be written to.
func checkFigure(file string) error {
	if file == "" {
		return nil
	}
	if err := plot.CheckName(file); err != nil {
		return usagef("-o %w", err)
	}
	if info, err := os.Stat(file); err == nil && info.Mode()&os.ModeNamedPipe != 0 { // it may have no reader
		return usagef("-o %s: a pipe: want a file", file)
	}
	return checkOutput("-o", file)
}

// drawTo writes a figure in the format that the file's name ends in.
func drawTo(file string, f *plot.Figure) error {
	scene, err := f.Scene()
	if err != nil {
		return err
	}
	data, err := scene.Encode(file)
	if err != nil {
		return err
	}
	return writeFile("-o", file, data)
}

func (a *app) printReproduced(all []*reproduce.Result) error {
	if a.json {
		return a.printJSON(all)
	}
	for i, r := range all {
		if i > 0 {
			fmt.Fprintln(a.out)
		}
		fmt.Fprintf(a.out, "%s: %s; %d of %d rows agree\n", r.Name, r.Title, len(r.Rows)-len(r.Failed()), len(r.Rows))
		w := a.table()
		fmt.Fprintln(w, "\tPUBLISHED\tCOMPUTED\t")
		for _, row := range r.Rows {
			mark := "ok"
			if !row.OK {
				mark = a.paint("31", "differs")
			}
			fmt.Fprintf(w, "%s\t%.10g\t%.7g\t%s\n", row.Label, row.Published, row.Computed, mark)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// reproduceFailure is the error of rows that are off by more than rounding.
func reproduceFailure(all []*reproduce.Result) error {
	var parts []string
	for _, r := range all {
		if failed := r.Failed(); len(failed) > 0 {
			parts = append(parts, fmt.Sprintf("%s: %d of %d rows are off by more than rounding, first %s: published %g, computed %g",
				r.Name, len(failed), len(r.Rows), failed[0].Label, failed[0].Published, failed[0].Computed))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return wrong(fmt.Errorf("%s", strings.Join(parts, "; ")))
}
