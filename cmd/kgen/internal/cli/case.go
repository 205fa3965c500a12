package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen/atomicfile"
	"github.com/kgen-dev/kgen/codegen/ptx"
	"github.com/kgen-dev/kgen/internal/userfile"
)

// caseReport is what kgen case new --json prints.
type caseReport struct {
	Case   string `json:"case"`
	PTX    string `json:"ptx"`
	Kernel string `json:"kernel"`
}

func (a *app) caseCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "case",
		Short: "Write a case for kgen run",
		Args:  a.subcommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.caseNewCommand())
	return c
}

func (a *app) caseNewCommand() *cobra.Command {
	var kernel, gpu, file string
	var compile compileFlags
	c := &cobra.Command{
		Use:   "new FILE.cu|FILE.ptx|FILE.json",
		Short: "Write a case.json to fill in, from a kernel's parameters or a launch description",
		Long: `Write a case.json to fill in, from the parameters of a file's kernel: one argument
for each, of a form that fits. CUDA C is compiled by NVRTC for the --gpu (h100 if
none is named), and its PTX written beside the case. Nothing is overwritten.

A launch description (docs/launch.md), which kgen tune writes beside the best kernel,
becomes a case with its launches, grids, values and tensor maps: only the data is to be
filled in.

The form of a case stands in testdata/ptx/foreign/README.md.`,
		Example: "  kgen case new kernel.ptx\n  kgen case new add.cu --gpu a100 --kernel add -o add.json",
		Args:    positional("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.newCase(c.Context(), args[0], kernel, gpu, file, &compile)
		},
	}
	c.Flags().StringVar(&kernel, "kernel", "", "`NAME` of the kernel; not needed if it is the only one")
	c.Flags().StringVar(&gpu, "gpu", "", gpuUsage+"; CUDA C is compiled for it (default "+defaultCUDA+")")
	mustComplete(c, "gpu", completeGPUFlag)
	c.Flags().StringVarP(&file, "output", "o", "", "`FILE` to write (default case.json beside the kernel's file)")
	compile.declare(c, "CUDA C")
	a.jsonFlag(c)
	return c
}

func (a *app) newCase(ctx context.Context, name, kernel, gpuName, file string, compile *compileFlags) error {
	gpu, err := optionalGPU(gpuName)
	if err != nil {
		return err
	}
	if _, err := os.Stat(name); err != nil {
		return usage(err)
	}
	if file == "" {
		file = filepath.Join(filepath.Dir(name), "case.json")
	}
	launch := strings.HasSuffix(name, ".json")
	if launch && kernel != "" {
		return usagef("--kernel %s: a launch description has all its kernels in the case", kernel)
	}
	ptxFile := name
	if strings.HasSuffix(name, ".cu") {
		ptxFile = filepath.Join(filepath.Dir(file), strings.TrimSuffix(filepath.Base(name), ".cu")+".ptx")
	}
	if exists(file) {
		return usagef("%s is there: want another -o, or that file out of the way", file)
	}
	if err := checkOutput("-o", file); err != nil {
		return err
	}
	if launch {
		if compile.given() {
			return usagef("%s: -I and -D are for CUDA C: want a file of that", name)
		}
		return a.newCaseOf(name, file)
	}
	text, kernel, err := readPTX(ctx, name, kernel, gpu, compile)
	if err != nil {
		return err
	}
	if ptxFile != name {
		if err := checkSamePTX(ptxFile, text); err != nil {
			return err
		}
	}
	k, err := kernelOf(ctx, name, text, kernel)
	if err != nil {
		return err
	}
	named, err := beside(ptxFile, file)
	if err != nil {
		return err
	}
	files := []atomicfile.File{atomicfile.Bytes(file, []byte(bench.NewCase(k, named)))}
	if ptxFile != name {
		files = append(files, atomicfile.Bytes(ptxFile, text))
	}
	if err := atomicfile.Write(files...); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(caseReport{file, ptxFile, k.Name})
	}
	fmt.Fprintf(a.out, "%s: kernel %s with %d arguments to fill in\n", file, plainNames(k.Name), len(k.Params))
	fmt.Fprintf(a.out, "then: kgen run %s; or without a case: kgen check %s --block N --arg ...\n", file, name)
	return nil
}

// checkSamePTX refuses to overwrite PTX, unless it is what would be written: that of
// another kernel's case from the same source.
func checkSamePTX(file string, text []byte) error {
	if !exists(file) {
		return checkOutput("-o", file)
	}
	there, err := userfile.Read(file, ptx.MaxSource)
	if err != nil {
		return usage(err)
	}
	if !bytes.Equal(there, text) {
		return usagef("%s is there and holds other PTX: want -o in another folder, or that file out of the way", file)
	}
	return nil
}

// kernelOf finds a kernel in PTX.
func kernelOf(ctx context.Context, file string, text []byte, name string) (*bench.Kernel, error) {
	dev, err := vm.New(vm.Options{})
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	m, err := dev.Load(ctx, ptxOf(file), text)
	if err != nil {
		return nil, usage(atSource(err, file, text))
	}
	k, err := pickKernel(m, name)
	if err != nil {
		return nil, usagef("%s: %w", file, err)
	}
	return k, nil
}
