package cli

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kgen-dev/kgen/codegen/ptx"
)

// ptxReport is what kgen ptx check --json prints.
type ptxReport struct {
	File         string   `json:"file"`
	OK           bool     `json:"ok"`
	Version      string   `json:"version"` // "", with those below, if not OK
	Target       string   `json:"target"`
	LeastVersion string   `json:"least_version"`     // of PTX, for LeastFor; no pair with the next
	LeastFor     string   `json:"least_version_for"` // Target
	LeastTarget  string   `json:"least_target"`      // in LeastIn
	LeastIn      string   `json:"least_target_in"`   // the newest version of PTX
	Kernels      []string `json:"kernels"`

	Errors []ptxError `json:"errors"` // in the order of the text
}

// ptxError is a complaint about a place in PTX.
type ptxError struct {
	Line    int    `json:"line"` // from 1; 0 for the file as a whole
	Column  int    `json:"column"`
	Message string `json:"message"`
}

func (a *app) ptxCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "ptx",
		Short: "Format, check or explain PTX, from whichever compiler",
		Args:  a.subcommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.ptxFormatCommand(), a.ptxCheckCommand(), a.ptxExplainCommand())
	return c
}

func (a *app) ptxFormatCommand() *cobra.Command {
	var inPlace bool
	c := &cobra.Command{
		Use:   "fmt FILE.ptx",
		Short: "Print PTX in one form",
		Long: `Print PTX in one form, whoever wrote it. Comments are not kept. Instructions are not
looked up: kgen ptx check does that. For - the text comes from standard input.`,
		Example: "  kgen ptx fmt kernel.ptx | less\n  kgen ptx fmt -w kernel.ptx",
		Args:    positional("FILE.ptx"),
		RunE: func(_ *cobra.Command, args []string) error {
			if inPlace && args[0] == "-" {
				return usagef("-w -: standard input cannot be written: want a file")
			}
			return a.formatPTX(args[0], inPlace)
		},
	}
	c.Flags().BoolVarP(&inPlace, "write", "w", false, "write to the file, whole or not at all, if that changes it")
	completePTX(c)
	return c
}

func (a *app) ptxCheckCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "check FILE.ptx",
		Short: "Check every instruction of PTX against the table of instructions",
		Long: `Check PTX: its grammar, its names, and every instruction against the table of
instructions for the version and target that it names. What is wrong is named with
its line, and the exit code is 2. What is right shows the oldest version and target
that would do.`,
		Example: "  kgen ptx check kernel.ptx --json",
		Args:    positional("FILE.ptx"),
		RunE:    func(_ *cobra.Command, args []string) error { return a.checkPTX(args[0]) },
	}
	a.jsonFlag(c)
	completePTX(c)
	return c
}

func completePTX(c *cobra.Command) {
	c.ValidArgsFunction = cobra.FixedCompletions([]string{"ptx"}, cobra.ShellCompDirectiveFilterFileExt)
}

// readPTXText reads a file, or standard input for -.
func (a *app) readPTXText(name string) ([]byte, error) {
	if name == "-" {
		return readAll("standard input", a.in, ptx.MaxSource)
	}
	return readSource(name)
}

func (a *app) formatPTX(name string, inPlace bool) error {
	text, err := a.readPTXText(name)
	if err != nil {
		return usage(err)
	}
	m, err := ptx.Parse(name, text)
	if err != nil {
		return usage(err)
	}
	var out bytes.Buffer
	if err := ptx.Print(&out, m); err != nil {
		return err
	}
	switch {
	case !inPlace:
		return a.write("", out.Bytes())
	case bytes.Equal(text, out.Bytes()):
		return nil
	}
	return writeFile("-w", name, out.Bytes())
}

func (a *app) checkPTX(name string) error {
	text, err := a.readPTXText(name)
	if err != nil {
		return usage(err)
	}
	m, err := ptx.Load(name, text)
	if err != nil {
		return usage(errors.Join(err, a.reportPTX(name, err)))
	}
	r := ptxReport{File: name, OK: true, Version: m.Version.String(), Target: m.Target().String(), Kernels: []string{}, Errors: []ptxError{}}
	for _, d := range m.Decls {
		if f, ok := d.(*ptx.Function); ok && f.Kernel && f.Body != nil {
			r.Kernels = append(r.Kernels, f.Name)
		}
	}
	least, err := ptx.LeastVersion(m)
	if err != nil {
		return usage(err)
	}
	target, err := ptx.LeastTarget(m)
	if err != nil {
		return usage(err)
	}
	r.LeastVersion, r.LeastFor, r.LeastTarget, r.LeastIn = least.String(), r.Target, target.String(), ptx.NewestVersion().String()
	if a.json {
		return a.printJSON(r)
	}
	kernels := "1 kernel"
	if n := len(r.Kernels); n != 1 {
		kernels = fmt.Sprintf("%d kernels", n)
	}
	fmt.Fprintf(a.out, "%s: right: PTX %s for %s, %s\n", name, r.Version, r.Target, kernels)
	fmt.Fprintf(a.out, "the least that would do: PTX %s for %s; for PTX %s, %s\n", r.LeastVersion, r.Target, r.LeastIn, r.LeastTarget)
	return nil
}

// reportPTX prints what is wrong with PTX as JSON, where that was asked for.
func (a *app) reportPTX(name string, err error) error {
	var all ptx.Errors
	if !a.json || !errors.As(err, &all) {
		return nil
	}
	r := ptxReport{File: name, Kernels: []string{}}
	for _, e := range all {
		r.Errors = append(r.Errors, ptxError{Line: int(e.Pos.Line), Column: int(e.Pos.Col), Message: e.Msg})
	}
	return a.printJSON(r)
}
