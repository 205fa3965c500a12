package cli

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kgen-dev/kgen/roofline/cloud"
	"github.com/kgen-dev/kgen/roofline/measured"
	"github.com/kgen-dev/kgen/roofline/plot"
)

// libraryReport is what kgen roofline library --json prints.
type libraryReport struct {
	GPU        string        `json:"gpu"`
	Op         measured.Op   `json:"op"`
	Type       string        `json:"type"`
	Points     int           `json:"points"`
	Peak       float64       `json:"peak_tflops"`
	HBM        float64       `json:"hbm_gbs"`
	BestTFLOPS float64       `json:"best_tflops"`
	BestShape  string        `json:"best_tflops_shape"`
	BestGBs    float64       `json:"best_gbs"` // of shapes far larger than the L2
	GBsShape   string        `json:"best_gbs_shape"`
	Cached     int           `json:"cached"`     // points above memory's roof that may stay in the L2
	Boosted    int           `json:"boosted"`    // points above the peak, at a clock above the published one
	Impossible []cloud.Point `json:"impossible"` // by rule
	Drawing    string        `json:"drawing,omitempty"`
}

func (a *app) libraryCommand() *cobra.Command {
	var gpu, output string
	op := choice{value: "gemm"}
	for _, o := range measured.Ops() {
		op.words = append(op.words, string(o))
	}
	typ := choice{value: "float16", words: measured.Types()}
	c := &cobra.Command{
		Use:   "library",
		Short: "Show what libraries reached, over all shapes that were measured",
		Long: `Show what libraries reached for an operation on a GPU, over all shapes of the
measured tables: the best rate of all shapes, which is a roof of its own, and the
best bandwidth of shapes that no cache holds. Points above a roof are told apart:
data that may stay in the L2, a clock above the published one, and what is
impossible by rule, which the drawing marks with crosses.`,
		Example: `  kgen roofline library --gpu h100 --op gemm --type float16 -o cloud.html
  kgen roofline library --gpu a100 --op decode --json`,
		Args: positional(),
		RunE: func(*cobra.Command, []string) error {
			g, err := lookupGPU(gpu)
			if err != nil {
				return err
			}
			if err := checkFigure(output); err != nil {
				return err
			}
			c, err := cloud.Of(g, measured.Op(op.value), typ.value)
			if err != nil {
				return usage(err)
			}
			return a.library(c, output)
		},
	}
	c.Flags().SortFlags = false
	c.Flags().StringVar(&gpu, "gpu", "", gpuUsage)
	mustComplete(c, "gpu", completeGPUFlag)
	choiceFlag(c, &op, "op", "the operation")
	choiceFlag(c, &typ, "type", "the operands' type")
	c.Flags().StringVarP(&output, "output", "o", "", "draw the cloud to `FILE`, which ends in "+plot.Formats)
	a.jsonFlag(c)
	return c
}

func (a *app) library(c *cloud.Cloud, output string) error {
	r := &libraryReport{
		GPU: c.GPU.ID, Op: c.Op, Type: c.Type, Points: c.Best.Points, Peak: c.Best.Ceilings.Peak.TFLOPS, HBM: c.Best.Ceilings.HBM.Value,
		BestTFLOPS: c.Best.TFLOPS, BestShape: c.Best.TFLOPSShape, BestGBs: c.Best.GBs, GBsShape: c.Best.GBsShape,
		Cached: c.Doubts[measured.Cached], Boosted: c.Doubts[measured.Boosted], Impossible: append([]cloud.Point{}, c.Odd...),
	}
	if output != "" {
		if err := drawTo(output, c.Figure); err != nil {
			return err
		}
		var err error
		if r.Drawing, err = filepath.Abs(output); err != nil {
			return err
		}
	}
	if a.json {
		return a.printJSON(r)
	}
	fmt.Fprintf(a.out, "%s of %s on %s: %d points, measured\n", r.Op, r.Type, c.GPU.Name, r.Points)
	fmt.Fprintf(a.out, "best rate        %.4g TFLOP/s, %.0f %% of the peak: %s\n", r.BestTFLOPS, 100*r.BestTFLOPS/r.Peak, r.BestShape)
	if r.BestGBs > 0 {
		fmt.Fprintf(a.out, "best bandwidth   %.0f GB/s, %.0f %% of memory's: %s\n", r.BestGBs, 100*r.BestGBs/r.HBM, r.GBsShape)
	}
	fmt.Fprintf(a.out, "above a roof     %d may stay in the L2, %d by a clock above the published one, %d are impossible\n", r.Cached, r.Boosted, len(r.Impossible))
	const few = 5
	for i, p := range r.Impossible {
		if i == few {
			fmt.Fprintf(a.out, "                 and %d more: --json lists them\n", len(r.Impossible)-few)
			break
		}
		fmt.Fprintf(a.out, "  impossible     %.4g us, %.4g TFLOP/s, %.0f GB/s: %s, %s\n", p.US, p.TFLOPS, p.GBs, p.Shape, p.Library)
	}
	if r.Drawing != "" {
		fmt.Fprintf(a.out, "drawing          %s\n", r.Drawing)
	}
	return nil
}
