package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kgen-dev/kgen/bench/launchfile"
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/atomicfile"
	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/tune"
)

const launchUsage = "write to `FILE` how to launch the kernels, as JSON: docs/launch.md"

func launchFlag(c *cobra.Command, file *string) {
	c.Flags().StringVar(file, "launch", "", launchUsage)
}

// checkLaunch finds out whether a launch description can be written.
func checkLaunch(file, output string) error {
	switch {
	case file == "":
		return nil
	case file == "-":
		return usagef("--launch -: standard output is for the result: want a file")
	case file == output:
		return usagef("--launch %s: that is -o: want another file", file)
	}
	return checkOutput("--launch", file)
}

// describe says how to launch what was compiled for a job. Compiler and files are the caller's.
func (j *job) describe(config space.Config, c *codegen.Compiled, plan *codegen.Plan) (*launchfile.File, error) {
	return tune.Describe(j.family, j.problem, j.gpu, config, c, plan, readBuildInfo().Version)
}

// beside is a file's path as one in another file's folder names it; "" stays.
func beside(file, other string) (string, error) {
	if file == "" || file == "-" {
		return "", nil
	}
	from, err := filepath.Abs(filepath.Dir(other))
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	if name, err := filepath.Rel(from, to); err == nil {
		return name, nil
	}
	return to, nil
}

// writeLaunch writes a launch description.
func writeLaunch(file string, d *launchfile.File) error {
	text, err := d.Text()
	if err != nil {
		return err
	}
	return writeFile("--launch", file, text)
}

// newCaseOf writes the case of a launch description.
func (a *app) newCaseOf(name, file string) error {
	d, err := launchfile.Read(name)
	if err != nil {
		return usage(err)
	}
	if d.Files.PTX == "" {
		return usagef("%s names no PTX: want one of kgen tune, of kgen compile --ptx FILE.ptx --launch FILE, or of kgen emit --stage ptx -o FILE.ptx --launch FILE", name)
	}
	ptxFile := d.Files.PTX
	if !filepath.IsAbs(ptxFile) {
		ptxFile = filepath.Join(filepath.Dir(name), ptxFile)
	}
	if _, err := os.Stat(ptxFile); err != nil {
		return usage(err)
	}
	named, err := beside(ptxFile, file)
	if err != nil {
		return err
	}
	text, err := d.Case(named, filepath.Dir(file))
	if err != nil {
		return usagef("%s: %w", name, err)
	}
	if err := atomicfile.Write(atomicfile.Bytes(file, text)); err != nil {
		return err
	}
	kernel := d.Launches[0].Kernel
	if a.json {
		return a.printJSON(caseReport{file, ptxFile, kernel})
	}
	fmt.Fprintf(a.out, "%s: %d launches over %d buffers, of which those that are read want NAME.npy\nthen: kgen run %s\n",
		file, len(d.Launches), len(d.Tensors)+len(d.Workspace), file)
	return nil
}
