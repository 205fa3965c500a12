package cli

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strconv"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/tune"
	"github.com/kgen-dev/kgen/tune/spec"
	"github.com/kgen-dev/kgen/tune/trial"
)

// childCommand starts this program again to try configurations of what the arguments of
// kgen tune name.
func (f *tuneFlags) childCommand(device string, what ...string) (func() *exec.Cmd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := append([]string{"tune"}, what...)
	args = append(args, "--device", device, "--seed", strconv.FormatUint(f.seed, 10), "--child")
	return func() *exec.Cmd {
		cmd := exec.Command(program, args...)
		cmd.Stderr, cmd.Env = os.Stderr, withoutToken(os.Environ())
		// A Ctrl-C is for the parent, which ends its children.
		ownGroup(cmd)
		return cmd
	}, nil
}

// spacePool has processes that try configurations of a described kernel.
func (a *app) spacePool(f *tuneFlags, gpuName string) (*trial.Pool, error) {
	command, err := f.childCommand(f.device.value, append(f.compile.words(), "--space", f.space, "--gpu", gpuName)...)
	if err != nil {
		return nil, err
	}
	return &trial.Pool{Command: command, Workers: runtime.GOMAXPROCS(0), OneDevice: f.device.value == "cuda", Log: a.log}, nil
}

// familyPool has processes that try configurations of a family's problem on a device.
func (a *app) familyPool(f *tuneFlags, j *job, device string) (*trial.Pool, error) {
	command, err := f.childCommand(device, append(familyWords(j.family.Name, j.given), "--gpu", j.gpuName)...)
	if err != nil {
		return nil, err
	}
	p := &trial.Pool{Command: command, Workers: runtime.GOMAXPROCS(0), Deadlines: tune.Deadlines(), Log: a.log}
	if device == "cuda" {
		p.Workers, p.OneDevice = 1, true
	}
	return p, nil
}

// serveSpace is what a child process does for a described kernel.
func (a *app) serveSpace(ctx context.Context, f *tuneFlags, k *trial.Kernel) error {
	device, err := f.openDevice(k.Spec)
	if err != nil {
		return err
	}
	defer device.Close()
	k.Device = device
	return trial.Serve(ctx, k, a.in, a.out)
}

func (f *tuneFlags) openDevice(b *spec.Bound) (bench.Device, error) {
	if f.device.value == "cuda" {
		return openThisGPU(b.GPU)
	}
	return vm.New(vm.Options{GPU: b.GPU, Seed: f.seed})
}

// serveFamily is what a child process does for a family's problem.
func (a *app) serveFamily(ctx context.Context, f *tuneFlags, j *job) error {
	var device bench.Device
	if f.device.value == "cuda" {
		var err error
		if device, err = openThisGPU(j.gpu); err != nil {
			return err
		}
		defer device.Close()
	}
	k, err := tune.NewKernel(ctx, a.familyOptions(j, f.seed), device)
	if err != nil {
		return err
	}
	return trial.Serve(ctx, k, a.in, a.out)
}

// familyOptions are those that say what to tune and with what.
func (a *app) familyOptions(j *job, seed uint64) tune.Options {
	return tune.Options{
		Family: j.family, Problem: j.problem, GPU: j.gpu, Toolchain: tune.FindToolchain(), Cache: a.openCache(), Seed: seed,
	}
}

// driverOf is the name of this machine's GPU that is to measure, which says at once when
// there is none.
func driverOf(gpu *target.GPU) (string, error) {
	d, err := openThisGPU(gpu)
	if err != nil {
		return "", err
	}
	defer d.Close()
	return d.Name(), nil
}
