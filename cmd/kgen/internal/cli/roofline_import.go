package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kgen-dev/kgen/roofline"
	"github.com/kgen-dev/kgen/roofline/ncu"
)

func (a *app) importCommand() *cobra.Command {
	var gpu string
	c := &cobra.Command{
		Use:     "import FILE.csv...",
		Short:   "Judge kernels that Nsight Compute profiled",
		Long:    "Judge kernels that Nsight Compute profiled: long or wide CSV, several files of\none program joined by kernel and launch.",
		Example: "  kgen roofline import time.csv instructions.csv --gpu h100",
		Args:    positional("FILE.csv..."),
		RunE: func(_ *cobra.Command, files []string) error {
			g, err := lookupGPU(gpu)
			if err != nil {
				return err
			}
			r, err := ncu.ReadFiles(files...)
			if err != nil {
				return usage(err)
			}
			if len(r.Unused) > 0 {
				a.log.Info("metrics not used", "names", strings.Join(r.Unused, " "))
			}
			for i := range r.Kernels {
				j, err := r.Kernels[i].Judge(roofline.DeviceRoofs(g))
				if err != nil {
					return usage(fmt.Errorf("kernel %s: %w", r.Kernels[i].Name, err))
				}
				fmt.Fprintf(a.out, "%s: %.4g us (%s), %.1f %% of attainable, bound by %s; %s\n", visible(j.Kernel.Name), j.Kernel.TimeUS, j.Kernel.From,
					100*j.Verdict.Score, j.Binding.Unit, j.Advice)
				if j.Verdict.Doubt != "" {
					fmt.Fprintf(a.out, "  %s: %s\n", j.Verdict.Cause, j.Verdict.Doubt)
				}
			}
			return nil
		},
	}
	c.Flags().StringVar(&gpu, "gpu", "", gpuUsage)
	mustComplete(c, "gpu", completeGPUFlag)
	return c
}
