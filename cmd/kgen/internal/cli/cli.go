// Package cli is kgen's command line: a file a command, and no logic of its
// own beyond reading flags and printing results.
//
// Results go to standard output, words to standard error. A command returns an
// error and never exits; the error's class decides the exit code.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// app is what the commands of one run share.
type app struct {
	in  io.Reader
	out *writer // results
	err io.Writer
	log *slog.Logger // words, to err

	quiet, verbose, json bool
	running              bool // the flags and arguments are in order
}

// commands lists every command in the order that help shows them.
func (a *app) commands() []*cobra.Command {
	return []*cobra.Command{
		a.tuneCommand(),
		a.workerCommand(),
		a.dbCommand(),
		a.tableCommand(),
		a.emitCommand(),
		a.compileCommand(),
		a.checkCommand(),
		a.runCommand(),
		a.caseCommand(),
		a.ptxCommand(),
		a.generateCommand(),
		a.rooflineCommand(),
		a.benchCommand(),
		a.kernelsCommand(),
		a.gpusCommand(),
		a.doctorCommand(),
		a.versionCommand(),
	}
}

// Main runs kgen with the arguments and returns its exit code.
func Main(args []string, in io.Reader, out, err io.Writer) (code int) {
	ignoreFileSizeSignal()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once

	a := &app{in: in, out: &writer{w: out}, err: err}
	defer func() {
		if r := recover(); r != nil {
			fmt.Fprintf(err, "kgen: internal error: %v\n%s", r, debug.Stack())
			code = exitFailed
		}
	}()
	return a.exit(a.run(ctx, args))
}

func (a *app) run(ctx context.Context, args []string) error {
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if a.out.err != nil {
		return fmt.Errorf("standard output: %w", a.out.err)
	}
	if !a.running {
		return usage(err)
	}
	return err
}

// exit prints an error as one line, or complaints about PTX as a line each, and
// turns it into the exit code.
func (a *app) exit(err error) int {
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(a.err, "kgen: interrupted")
	case errors.Is(err, syscall.EPIPE): // whoever reads the results has enough
	default:
		var complaints ptx.Errors
		if errors.As(err, &complaints) {
			for _, line := range lines(err) {
				fmt.Fprintf(a.err, "kgen: %s\n", line)
			}
			break
		}
		fmt.Fprintf(a.err, "kgen: %s\n", oneLine(err))
		a.explain(err)
	}
	return exitCode(err)
}

// explain shows what there is to say about a bug of ours beside its line.
func (a *app) explain(err error) {
	var bug *codegen.InternalError
	var device *bench.InternalError
	switch {
	case errors.As(err, &device) && a.verbose:
		fmt.Fprintf(a.err, "%s", device.Stack)
	case errors.As(err, &device):
		fmt.Fprintln(a.err, "kgen: --verbose shows where; please report it")
	case !errors.As(err, &bug):
	case a.verbose:
		fmt.Fprintf(a.err, "before pass %s:\n%s\n%s", bug.Pass, bug.IR, bug.Stack)
	default:
		fmt.Fprintln(a.err, "kgen: --verbose shows the program before the pass; please report it")
	}
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "kgen",
		Short: "Generate, check and tune GPU kernels",
		Long: `Generate, check and tune GPU kernels, without a GPU where there is none.

Results go to standard output, words to standard error. The exit code is 0 when
done, 1 when something failed, 2 for a mistake in the command line or an input
file, and 3 when a check found a wrong answer or a fault.`,
		Version:           readBuildInfo().Version,
		SilenceErrors:     true,
		SilenceUsage:      true,
		Args:              a.subcommand,
		RunE:              func(c *cobra.Command, _ []string) error { return c.Help() },
		PersistentPreRunE: func(*cobra.Command, []string) error { return a.setup() },
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(flagError)
	root.SetVersionTemplate("kgen {{.Version}}\n")
	flags := root.PersistentFlags()
	flags.BoolVarP(&a.quiet, "quiet", "q", false, "say nothing but errors")
	flags.BoolVarP(&a.verbose, "verbose", "v", false, "say what is being done")
	root.AddCommand(a.commands()...)
	a.tightenBuiltins(root)
	return root
}

// tightenBuiltins makes cobra's own commands refuse what they do not know.
func (a *app) tightenBuiltins(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "completion":
			c.Args, c.RunE = a.subcommand, func(c *cobra.Command, _ []string) error { return c.Help() }
		case "help":
			c.Args = func(_ *cobra.Command, args []string) error {
				about, rest, err := root.Find(args)
				if err != nil {
					return usage(err)
				}
				return a.subcommand(about, rest)
			}
		}
	}
}

// setup runs once the flags are read, before the command.
func (a *app) setup() error {
	if a.quiet && a.verbose {
		return usagef("--quiet and --verbose contradict each other")
	}
	level := slog.LevelInfo
	switch {
	case a.quiet:
		level = slog.LevelError
	case a.verbose:
		level = slog.LevelDebug
	}
	a.running = true
	a.log = a.logger(a.err, level)
	return nil
}

func (a *app) logger(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: dropTime}))
}

// dropTime leaves the time out: a person watches, and scripts compare.
func dropTime(groups []string, attr slog.Attr) slog.Attr {
	if len(groups) == 0 && attr.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return attr
}

// jsonFlag gives a command that prints data the flag to print it as JSON.
func (a *app) jsonFlag(c *cobra.Command) {
	c.Flags().BoolVar(&a.json, "json", false, "print one JSON object")
}
