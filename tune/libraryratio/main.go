// Command libraryratio sets predicted times of kgen's untuned kernels beside what libraries
// were measured to take for the same problems: the ratio's distribution for each family,
// GPU and type, as a table in Markdown.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"gonum.org/v1/gonum/stat"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels"
	"github.com/kgen-dev/kgen/roofline"
	"github.com/kgen-dev/kgen/tune"
	"github.com/kgen-dev/kgen/tune/document"
)

// problem is one that a library was timed on.
type problem struct {
	family string
	flags  map[string]string
	us     float64 // the fastest library's, measured
}

// group is problems of one source, family, GPU and type.
type group struct {
	family, gpu, typ, source string
	problems                 []problem
}

func main() {
	most := flag.Int("rows", 200, "problems of each group, evenly from all")
	folder := flag.String("published", "roofline/reproduce/data", "`FOLDER` with the published tables")
	file := flag.String("out", "", "`FILE` whose table is to be written anew (default standard output)")
	flag.Parse()
	var table bytes.Buffer
	err := run(&table, *most, *folder)
	if err == nil {
		err = document.WriteTable(*file, "library-ratio", table.Bytes())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "libraryratio:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, most int, folder string) error {
	groups, err := measuredGroups()
	if err != nil {
		return err
	}
	published, err := publishedGroups(folder)
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "| family | GPU | type | times from | problems | compared | p10 | median | p90 | of 20 us and more | p10 | median | p90 |")
	fmt.Fprintln(w, "|"+strings.Repeat(" --- |", 13))
	var all []ratio
	for _, g := range append(groups, published...) {
		found, err := g.ratios(most)
		if err != nil {
			return err
		}
		all = append(all, found...)
		row(w, []string{g.family, g.gpu, g.typ, g.source, fmt.Sprint(len(g.problems))}, found)
	}
	row(w, []string{"**all**", "", "", "", ""}, all)
	return nil
}

// ratio is a predicted time over a library's.
type ratio struct {
	value float64
	least float64 // that the problem takes by formula, microseconds
}

// ratios predicts a sample of the group's problems, taken evenly.
func (g *group) ratios(most int) ([]ratio, error) {
	chosen := g.problems
	if len(chosen) > most {
		chosen = nil
		for i := range most {
			chosen = append(chosen, g.problems[i*len(g.problems)/most])
		}
	}
	gpu, err := target.Lookup(g.gpu)
	if err != nil {
		return nil, err
	}
	out, errs := make([]ratio, len(chosen)), make([]error, len(chosen))
	var wait sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, p := range chosen {
		wait.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			us, least, err := predicted(p.family, p.flags, gpu)
			out[i], errs[i] = ratio{us / p.us, least}, err
		})
	}
	wait.Wait()
	for i, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("%s %v on %s: %w", chosen[i].family, chosen[i].flags, g.gpu, err)
		}
	}
	return slices.DeleteFunc(out, func(r ratio) bool { return r.value == 0 }), nil
}

// predicted is what the cost model says of the family's untuned configuration, and the
// problem's least time by formula, in microseconds; 0 where the family does not have the
// problem on the GPU.
func predicted(name string, flags map[string]string, gpu *target.GPU) (us, least float64, err error) {
	f, err := kernels.Family(name)
	if err != nil {
		return 0, 0, err
	}
	p, err := f.Problem(flags, gpu)
	if err != nil {
		return 0, 0, nil //nolint:nilerr // too large for the GPU, or another head dimension
	}
	c, err := p.Default(gpu)
	if err != nil {
		return 0, 0, nil //nolint:nilerr // no configuration fits
	}
	k, err := tune.PredictKernel(p, gpu, c)
	if err != nil {
		return 0, 0, err
	}
	best, err := roofline.Assess(roofline.DeviceRoofs(gpu), tune.FormulaWork(p.Work()))
	if err != nil {
		return 0, 0, err
	}
	return k.TimeUS, best.LeastUS(), nil
}

// long is a least time from which on it is the GPU that a kernel waits for, not its launch,
// in microseconds.
const long = 20

// row prints the quantiles of ratios: of all, and of those of long problems.
func row(w io.Writer, cells []string, ratios []ratio) {
	var all, longer []float64
	for _, r := range ratios {
		all = append(all, r.value)
		if r.least >= long {
			longer = append(longer, r.value)
		}
	}
	for _, values := range [][]float64{all, longer} {
		cells = append(cells, fmt.Sprint(len(values)), quantile(values, 0.1), quantile(values, 0.5), quantile(values, 0.9))
	}
	fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
}

func quantile(values []float64, share float64) string {
	if len(values) == 0 {
		return "-"
	}
	sorted := slices.Sorted(slices.Values(values))
	return fmt.Sprintf("%.2f", stat.Quantile(share, stat.Empirical, sorted, nil))
}
