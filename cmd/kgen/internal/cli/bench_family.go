package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kgen-dev/kgen/bench/cuda"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/roofline"
	"github.com/kgen-dev/kgen/tune"
)

// benchReport is what kgen bench FAMILY --json prints.
type benchReport struct {
	Kernel  string          `json:"kernel"`
	GPU     string          `json:"gpu"`
	Problem family.Settings `json:"problem"`
	Config  space.Config    `json:"config"`
	*verdictInfo
	Library *tune.Library `json:"library"` // null where the tables lack the problem
	// Times the library's time, of its fastest row that is possible: above 1 the library
	// is faster. 0 without one.
	OfLibrary float64 `json:"times_library,omitempty"`
}

func (a *app) benchCommand() *cobra.Command {
	var set []string
	device := devices()
	var seed uint64
	c := a.familyCommand(familyVerb{
		name:  "bench",
		short: "Time one configuration, or measure this machine's GPU",
		long: `Time one configuration of a family and set beside it what a library reached on that
GPU and shape: the untuned configuration, or that of --set. Without a GPU the time is
predicted; with --device cuda this machine's GPU, which must be the --gpu, times it and
what it computes is compared with the reference.

kgen bench ceilings measures what the GPU itself reaches.`,
		example: `  kgen bench flashattn --gpu h100
  kgen bench gemm --gpu a100 --m 8192 --set BM=128 --set BN=128
  kgen bench gemm --gpu h100 --device cuda --json`,
		flags: func(c *cobra.Command) {
			settingFlag(c, &set)
			choiceFlag(c, &device, "device", "where the time is from: vm, predicted, or cuda, measured on this machine's GPU")
			c.Flags().Uint64Var(&seed, "seed", 0, "`N` that all chance follows from (default 0)")
			a.jsonFlag(c)
		},
		run: func(ctx context.Context, j *job) error {
			if err := j.launchable(); err != nil {
				return err
			}
			config, err := j.config(set)
			if err != nil {
				return err
			}
			var k *roofline.Kernel
			if device.value == "cuda" {
				k, err = a.timed(ctx, j, config, seed)
			} else {
				k, err = tune.PredictKernel(j.problem, j.gpu, config)
			}
			if err != nil {
				return compileError(err)
			}
			return a.bench(j, config, k)
		},
		otherwise: "; or ceilings",
	})
	c.AddCommand(a.ceilingsCommand())
	return c
}

// timed is the configuration as this machine's GPU times it.
func (a *app) timed(ctx context.Context, j *job, c space.Config, seed uint64) (*roofline.Kernel, error) {
	if _, err := cuda.Find(); err != nil {
		return nil, fmt.Errorf("--device cuda: %w", err)
	}
	device, err := openThisGPU(j.gpu)
	if err != nil {
		return nil, err
	}
	defer device.Close()
	o := a.familyOptions(j, seed)
	o.Log = a.log
	k, err := tune.TimeKernel(ctx, o, device, c)
	if tune.IsWrong(err) {
		return nil, wrong(err)
	}
	return k, err
}

// bench prints a timed configuration beside the library's time.
func (a *app) bench(j *job, c space.Config, k *roofline.Kernel) error {
	roofs := roofline.DeviceRoofs(j.gpu)
	judged, err := k.Judge(roofs)
	if err != nil {
		return usage(err)
	}
	best, err := j.best(roofs)
	if err != nil {
		return err
	}
	r := &benchReport{Kernel: j.family.Name, GPU: j.gpu.ID, Problem: j.problem.Settings(), Config: c, verdictInfo: verdictOf(judged)}
	r.OfLeast = ofLeast(judged, best)
	if r.Library, err = tune.LibraryTime(j.problem, j.gpu); err != nil {
		return err
	}
	if r.Library != nil && r.Library.Doubt == "" {
		r.OfLibrary = k.TimeUS / r.Library.US
	}
	if a.json {
		return a.printJSON(r)
	}
	fmt.Fprintf(a.out, "%s (%s) on %s\n", r.Kernel, r.Problem, j.gpu.Name)
	if r.TFLOPS > 0 {
		fmt.Fprintf(a.out, "%.4g TFLOP/s, like the time %s\n", r.TFLOPS, k.From)
	}
	fmt.Fprintln(a.out)
	a.printVerdict(judged)
	a.printOfLeast(r.verdictInfo, best.LeastUS())
	a.printLibrary(r.Library)
	if r.OfLibrary > 0 {
		fmt.Fprintf(a.out, "          %.3g times the library's time\n", r.OfLibrary)
	}
	return nil
}
