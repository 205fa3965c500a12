package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/cuda"
	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen/target"
)

// devices are what --device takes: the virtual machine, or this machine's GPU.
func devices() choice { return choice{value: "vm", words: []string{"vm", "cuda"}} }

// machineOnly are the flags that only the virtual machine takes.
var machineOnly = []string{"gpu", "seed", "schedule", "async", "approx", "max-steps", "checks", "blocks"}

// openGPU opens this machine's first GPU.
func openGPU(c *cobra.Command) (bench.Device, error) {
	for _, name := range machineOnly {
		if c.Flags().Changed(name) {
			return nil, usagef("--%s with --device cuda: only the virtual machine takes it", name)
		}
	}
	d, err := cuda.Open(0)
	if err != nil {
		return nil, fmt.Errorf("--device cuda: %w", err)
	}
	return d, nil
}

// openThisGPU opens this machine's first GPU that is of a kind.
func openThisGPU(gpu *target.GPU) (bench.Device, error) {
	info, err := cuda.Find()
	if err != nil {
		return nil, fmt.Errorf("--device cuda: %w", err)
	}
	var there []string
	for i, d := range info.Devices {
		if d.Major == gpu.CC.Major && d.Minor == gpu.CC.Minor && d.SMs == gpu.SMs {
			return cuda.Open(i)
		}
		there = append(there, fmt.Sprintf("%s (%d.%d, %d SMs)", d.Name, d.Major, d.Minor, d.SMs))
	}
	return nil, usagef("--device cuda: no GPU here is a %s (%d.%d, %d SMs): there is %s", gpu.ID, gpu.CC.Major, gpu.CC.Minor, gpu.SMs, strings.Join(there, ", "))
}

// machineFlags describe a virtual machine.
type machineFlags struct {
	seed     uint64
	schedule choice
	async    choice
	approx   choice
	tensor   choice
	checks   string
	maxSteps int64
}

func newMachineFlags() machineFlags {
	return machineFlags{
		schedule: choice{value: "order", words: []string{"order", "random"}},
		async:    choice{value: "late", words: []string{"late", "early", "random"}},
		approx:   choice{value: "round", words: []string{"round", "perturb"}},
		tensor:   choice{value: "ordered", words: []string{"ordered", "exact"}},
	}
}

func (f *machineFlags) declare(c *cobra.Command) {
	c.Flags().Uint64Var(&f.seed, "seed", 0, "`N` that all chance follows from (default 0)")
	choiceFlag(c, &f.schedule, "schedule", "the order of warps, lanes and blocks")
	choiceFlag(c, &f.async, "async", "when asynchronous copies and tensor operations land")
	choiceFlag(c, &f.approx, "approx", "what approximate instructions give: the nearest value, or another within PTX's bounds by the seed")
	choiceFlag(c, &f.tensor, "tensor", "how tensor cores add: in the order of K, or bit for bit as the GPU's do")
	c.Flags().Int64Var(&f.maxSteps, "max-steps", vm.DefaultSteps, "`N` warp instructions after which a launch counts as one without an end")
	c.Flags().StringVar(&f.checks, "checks", "", "`LIST` of faults to look for: all, none, classes, +class or -class (default all but strict-proxy and same-value)")
	mustComplete(c, "checks", completeChecks)
}

// completeChecks completes the last word of a list of checks.
func completeChecks(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	head := prefix[:strings.LastIndexByte(prefix, ',')+1]
	if last := prefix[len(head):]; strings.HasPrefix(last, "+") || strings.HasPrefix(last, "-") {
		head += last[:1]
	}
	words := []string{head + vm.StrictProxy, head + vm.SameValue}
	if head == "" {
		words = append(words, "default", "all", "none")
	}
	for _, class := range bench.FaultClasses() {
		words = append(words, head+string(class))
	}
	return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// opener opens the virtual machine when called.
func (f *machineFlags) opener(gpu *target.GPU) func() (bench.Device, error) {
	return func() (bench.Device, error) {
		d, err := f.open(gpu)
		return d, usage(err)
	}
}

// open makes the virtual machine; without a GPU one that fits the PTX.
func (f *machineFlags) open(gpu *target.GPU) (*vm.Device, error) {
	opt := vm.Options{GPU: gpu, Seed: f.seed, MaxSteps: f.maxSteps}
	if f.maxSteps < 1 {
		return nil, fmt.Errorf("--max-steps %d: want 1 or more", f.maxSteps)
	}
	var err error
	if opt.Schedule, err = vm.ParseSchedule(f.schedule.value); err != nil {
		return nil, err
	}
	if opt.Async, err = vm.ParseAsync(f.async.value); err != nil {
		return nil, err
	}
	if opt.Approx, err = vm.ParseApprox(f.approx.value); err != nil {
		return nil, err
	}
	if opt.Tensor, err = vm.ParseTensor(f.tensor.value); err != nil {
		return nil, err
	}
	if opt.Checks, err = vm.ParseChecks(f.checks); err != nil {
		return nil, fmt.Errorf("--checks: %w", err)
	}
	return vm.New(opt)
}
