package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kgen-dev/kgen/internal/wordlist"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1 // the machine, the toolchain or kgen is at fault
	exitUsage  = 2 // the command line or an input file is
	exitWrong  = 3 // a check found a wrong answer or a fault
)

// classified is an error whose class decides the exit code.
type classified struct {
	code int
	err  error
}

func (e *classified) Error() string { return e.err.Error() }

func (e *classified) Unwrap() error { return e.err }

// usage marks an error as the caller's: a flag, an argument, an input file.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return &classified{exitUsage, err}
}

func usagef(format string, args ...any) error { return usage(fmt.Errorf(format, args...)) }

// wrong marks the result of a check that ran and found something.
func wrong(err error) error {
	if err == nil {
		return nil
	}
	return &classified{exitWrong, err}
}

func exitCode(err error) int {
	var c *classified
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &c):
		return c.code
	}
	return exitFailed
}

// oneLine is an error as a single visible line: joined errors are separated by
// semicolons.
func oneLine(err error) string {
	return strings.Join(lines(err), "; ")
}

// lines are the lines of an error's text.
func lines(err error) []string {
	all := strings.FieldsFunc(bothNames(visible(err.Error())), func(r rune) bool { return r == '\n' || r == '\r' })
	return slices.DeleteFunc(all, func(s string) bool { return strings.TrimSpace(s) == "" })
}

// flagError words what pflag found wrong, names the command and near matches.
func flagError(c *cobra.Command, err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	if words := c.Flags().Args(); len(words) > 0 && !c.HasParent() {
		return unknownCommand(c, words[0]) // whose flags these may be
	}
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		return usagef("unknown flag -%s for %s", unknown.GetSpecifiedName(), c.CommandPath())
	case errors.As(err, &unknown):
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		name := "--" + unknown.GetSpecifiedName()
		if name == "--json" {
			return usagef("%s prints text: it has no --json", c.CommandPath())
		}
		return usagef("unknown flag %s for %s%s", name, c.CommandPath(), didYouMean(name, names))
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		return usagef("--%s %q: want %s", f.Name, invalid.GetValue(), wanted(f.Value.Type(), invalid.Unwrap()))
	}
	return usage(err)
}

// wanted says what a flag of a type takes. Types of our own explain it in
// their errors.
func wanted(kind string, cause error) string {
	switch kind {
	case "bool":
		return "true or false"
	case "int", "int64", "int32":
		return "a whole number"
	case "intSlice", "int64Slice":
		return "whole numbers"
	case "uint", "uint64", "uint32":
		return "a whole number from 0"
	case "float64", "float32":
		return "a number"
	case "duration":
		return "a duration such as 90s or 10m"
	}
	return oneLine(cause)
}

// subcommand refuses the argument of a command that only holds others.
func (a *app) subcommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return unknownCommand(c, args[0])
}

func unknownCommand(c *cobra.Command, name string) error {
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return usagef("unknown command %q for %s%s", name, c.CommandPath(), didYouMean(name, names))
}

// positional checks a command's arguments against their names, the last of
// which may end in "..." for one or more, or be in brackets for none or one.
func positional(names ...string) cobra.PositionalArgs {
	least, most := len(names), len(names)
	if most > 0 {
		switch last := names[most-1]; {
		case strings.HasSuffix(last, "..."):
			most = -1
		case strings.HasPrefix(last, "["):
			least--
		}
	}
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usagef("%s: missing %s", c.CommandPath(), names[len(args)])
		case most >= 0 && len(args) > most && most == 0:
			return usagef("%s: unexpected argument %q: it takes none%s", c.CommandPath(), args[most], switchHint(c, args[most]))
		case most >= 0 && len(args) > most:
			return usagef("%s: unexpected argument %q after %s", c.CommandPath(), args[most], names[most-1])
		}
		return nil
	}
}

// switchHint says how a switch is set for a word that was meant for one: pflag
// takes --causal false as --causal and a word.
func switchHint(c *cobra.Command, word string) string {
	if _, err := strconv.ParseBool(word); err != nil {
		return ""
	}
	var set []string
	c.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.Type() == "bool" {
			set = append(set, "--"+f.Name+"="+word)
		}
	})
	if len(set) == 0 {
		return ""
	}
	return "; a switch takes its value with =, such as " + wordlist.Or(set)
}
