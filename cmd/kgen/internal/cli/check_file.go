package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/numcheck"
	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen/nvrtc"
	"github.com/kgen-dev/kgen/codegen/ptx"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/internal/userfile"
)

// launchFlags describe a launch of a file's kernel.
type launchFlags struct {
	kernel               string
	grid, block, cluster string
	shared               int64
	args                 []string
	tolerance            numcheck.Tolerance
	extent               extentFlags
	compile              compileFlags
}

func (f *launchFlags) declare(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.kernel, "kernel", "", "`NAME` of a file's kernel; not needed if it is the only one")
	flags.StringVar(&f.grid, "grid", "1", "blocks of a file's launch, `X,Y,Z`")
	flags.StringVar(&f.block, "block", "", "threads of a block, `X,Y,Z`")
	flags.StringVar(&f.cluster, "cluster", "", "blocks of a cluster, `X,Y,Z`; without it as the kernel says")
	flags.Int64Var(&f.shared, "shared", 0, "`N` bytes of dynamic shared memory")
	flags.StringArrayVar(&f.args, "arg", nil, "`ARG` of a file's kernel; given again for each parameter")
	flags.Float64Var(&f.tolerance.Absolute, "absolute", 0, "`X` that |got - want| may be (default 0)")
	flags.Float64Var(&f.tolerance.Relative, "relative", 0, "`X` that |got - want| may be of |want|, beside --absolute (default 0)")
	f.compile.declare(c, "a file of CUDA C")
	f.extent.declare(c)
}

// checkFile runs a file's kernel as the flags say.
func (a *app) checkFile(ctx context.Context, name, gpuName string, m *machineFlags, f *launchFlags) error {
	gpu, err := optionalGPU(gpuName)
	if err != nil {
		return err
	}
	if err := f.tolerance.Validate(); err != nil {
		return usage(err)
	}
	return a.runOn(ctx, m.opener(gpu), &f.extent, func(dev bench.Device) (*bench.Case, error) {
		c := &bench.Case{File: name, PTXFile: ptxOf(name), Tolerance: f.tolerance}
		if err := f.fit(dev); err != nil {
			return nil, usage(err)
		}
		if err := f.launch(c, m.seed); err != nil {
			return nil, usage(err)
		}
		text, called, err := readPTX(ctx, name, f.kernel, gpu, &f.compile)
		if err != nil {
			return nil, err
		}
		c.PTX = text
		module, err := dev.Load(ctx, c.PTXFile, c.PTX)
		if err != nil {
			return nil, usage(atSource(err, name, text))
		}
		defer dev.Unload(module)
		k, err := pickKernel(module, called)
		if err != nil {
			return nil, usagef("%s: %w", name, err)
		}
		c.Launches[0].Kernel = k.Name
		return c, usage(checkTypes(c, f.args, k.Name, sourceOf(name)))
	})
}

// optionalGPU is the GPU of a name, nil for "".
func optionalGPU(name string) (*target.GPU, error) {
	if name == "" {
		return nil, nil
	}
	return lookupGPU(name)
}

// fit holds the buffers together to what the virtual machine has room for, before they
// are made.
func (f *launchFlags) fit(dev bench.Device) error {
	machine, ok := dev.(*vm.Device)
	if !ok {
		return nil
	}
	var total int64
	for _, text := range f.args {
		total += bench.ArgumentBytes(text)
	}
	if most := machine.Memory(); total > most {
		return fmt.Errorf("--arg: buffers of %d bytes together: want at most %d, which the virtual machine has here", total, most)
	}
	return nil
}

// launch adds the launch and its buffers to a case; the kernel is not known yet.
func (f *launchFlags) launch(c *bench.Case, seed uint64) error {
	l := bench.CaseLaunch{SharedBytes: f.shared}
	if f.block == "" {
		return errors.New("--block is missing: want the threads of a block, such as 128 or 16,16")
	}
	for _, e := range []struct {
		flag, text string
		to         *[3]uint32
	}{{"grid", f.grid, &l.Grid}, {"block", f.block, &l.Block}, {"cluster", f.cluster, &l.Cluster}} {
		var err error
		if *e.to, err = parseExtents(e.text); err != nil {
			return fmt.Errorf("--%s %q: %w", e.flag, e.text, err)
		}
	}
	if err := l.Validate(); err != nil {
		return err
	}
	for i, text := range f.args {
		a, err := bench.ParseArgument(text, i, seed, "")
		if err != nil {
			return fmt.Errorf("--arg: %w", err)
		}
		if a.Buffer == nil {
			l.Args = append(l.Args, a.Value)
			continue
		}
		l.Args = append(l.Args, bench.CaseArg{Buffer: len(c.Buffers), Kind: "buffer"})
		c.Buffers = append(c.Buffers, *a.Buffer)
	}
	c.Launches = []bench.CaseLaunch{l}
	return nil
}

// parseExtents reads "8", "8,2" or "8,2,1"; zeros for "".
func parseExtents(text string) (e [3]uint32, err error) {
	if text == "" {
		return e, nil
	}
	words := strings.Split(text, ",")
	e = [3]uint32{1, 1, 1}
	for i, w := range words {
		n, err := strconv.ParseUint(w, 10, 32)
		switch {
		case errors.Is(err, strconv.ErrRange):
			return e, fmt.Errorf("%s: want numbers from 1 to %d", w, math.MaxInt32)
		case err != nil || len(words) > 3:
			return e, errors.New("want one to three numbers such as 8,2")
		}
		e[i] = uint32(n)
	}
	return e, nil
}

// defaultCUDA is the GPU that CUDA C is compiled for where none is named: the
// newest that takes what older ones do, wgmma and tensor maps as well.
const defaultCUDA = "h100"

// readPTX is the PTX of a file, what NVRTC makes of it if it is CUDA C: that may include
// what lies beside it, in the flags' folders, and CUDA's own headers where the compiler
// came with them. A kernel that is an instance of a template (axpy<float, 4>) is made, and
// called in the PTX what is returned; other names are returned as they are.
func readPTX(ctx context.Context, name, kernel string, gpu *target.GPU, f *compileFlags) (text []byte, called string, err error) {
	text, err = readSource(name)
	if err != nil {
		return nil, "", usage(err)
	}
	if !strings.HasSuffix(name, ".cu") {
		if f.given() {
			return nil, "", usagef("%s: -I and -D are for CUDA C: want a file of that", name)
		}
		return text, kernel, nil
	}
	flags, err := f.nvrtc()
	if err != nil {
		return nil, "", err
	}
	if gpu == nil {
		if gpu, err = lookupGPU(defaultCUDA); err != nil {
			return nil, "", err
		}
	}
	compiler, err := nvrtc.Find()
	if err != nil {
		return nil, "", fmt.Errorf("%w; %s", err, nvrtc.Remedy(err))
	}
	flags = slices.Concat([]string{"-I" + filepath.Dir(name)}, flags, compiler.HeaderFlags())
	res, err := compiler.Compile(ctx, nvrtc.Source{Name: filepath.Base(name), Text: string(text)}, nvrtc.Options{Arch: virtualArch(gpu), Kernel: nvrtc.Instance(kernel), LineInfo: true, Flags: flags})
	var refused *nvrtc.CompileError
	switch {
	case errors.As(err, &refused):
		return nil, "", usage(err)
	case err != nil:
		return nil, "", err
	}
	return res.PTX, cmp.Or(res.Kernel, kernel), nil
}

// virtualArch is what a GPU's own CUDA C is compiled for: with the instructions
// of its architecture alone where it has such.
func virtualArch(gpu *target.GPU) string {
	name := fmt.Sprintf("compute_%d", gpu.CC.SM())
	if gpu.CC.AtLeast(9, 0) {
		name += "a"
	}
	return name
}

// readSource reads a file of at most as many bytes as PTX may have.
func readSource(name string) ([]byte, error) {
	return userfile.Read(name, ptx.MaxSource)
}

// pickKernel finds the kernel that a name means: as the module has it, or as
// its source does, where C++ added types; for "" the only one.
func pickKernel(m *bench.Module, name string) (*bench.Kernel, error) {
	if name == "" {
		if len(m.Kernels) == 1 {
			return &m.Kernels[0], nil
		}
		var names []string
		for i := range m.Kernels {
			names = append(names, m.Kernels[i].Name)
		}
		return nil, fmt.Errorf("--kernel is missing: the module has %s", cmp.Or(strings.Join(names, ", "), "none"))
	}
	var found []*bench.Kernel
	for i := range m.Kernels {
		if calledInSource(m.Kernels[i].Name, name) {
			found = append(found, &m.Kernels[i])
		}
	}
	exact := slices.ContainsFunc(m.Kernels, func(k bench.Kernel) bool { return k.Name == name })
	if !exact && len(found) == 1 {
		return found[0], nil
	}
	return m.Kernel(name)
}
