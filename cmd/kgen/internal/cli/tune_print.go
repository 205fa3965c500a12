package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/tune"
	"github.com/kgen-dev/kgen/tune/queue"
)

func (a *app) printTuning(j *job, r *tune.Result, workers []queue.Standing) error {
	if err := a.printResult(j, r, workers); err != nil {
		return err
	}
	if n := len(r.Wrong); n > 0 {
		return wrong(fmt.Errorf("%s: %s found and left out; the first: %s", r.Kernel, numberOf(n, "wrong kernel"), r.Wrong[0].Config))
	}
	return nil
}

func (a *app) printResult(j *job, r *tune.Result, workers []queue.Standing) error {
	if a.json {
		return a.printJSON(struct {
			*tune.Result
			Workers []queue.Standing `json:"workers,omitempty"`
		}{r, workers})
	}
	fmt.Fprintf(a.out, "%s (%s) on %s\n", r.Kernel, r.Problem, j.gpu.Name)
	fmt.Fprintf(a.out, "space     %s\n", r.Removed)
	fmt.Fprintf(a.out, "compiled  %d%s%s\n\n", r.Compiled, parenthesised(r.Toolchain), failedText(r.Failures))
	if err := a.printBest(j.gpu, r.Best); err != nil {
		return err
	}
	fmt.Fprintln(a.out)
	a.printFailures(r.Wrong, r.Causes)
	a.printSASS(r.Best)
	a.printImportance(r.Importance, r.Together, r.Samples)
	a.printSeconds(r.Seconds)
	a.printWorkers(workers)
	if r.Next != "" {
		fmt.Fprintf(a.out, "next      %s\n", r.Next)
	}
	a.printLibrary(r.Library)
	for _, n := range r.Notes {
		fmt.Fprintf(a.out, "note      %s\n", n)
	}
	for _, x := range []struct{ name, path string }{
		{"cuda", r.Artifacts.CUDA},
		{"ptx", r.Artifacts.PTX},
		{"cubin", r.Artifacts.Cubin},
		{"launch", r.Artifacts.Launch},
		{"roofline", r.Artifacts.Roofline},
		{"progress", r.Artifacts.Progress},
		{"store", r.Artifacts.Store},
	} {
		if x.path != "" {
			fmt.Fprintf(a.out, "%-8s  %s\n", x.name, x.path)
		}
	}
	return nil
}

func parenthesised(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// printBest prints the best configurations as a table: the tile, which are the
// parameters in capitals, then the others, then what came of them.
func (a *app) printBest(gpu *target.GPU, best []tune.Best) error {
	if len(best) == 0 {
		return nil
	}
	w := a.table()
	tile, others := splitConfig(best[0].Config)
	decimals := rateDecimals(best)
	fmt.Fprintf(w, "TILE %s\t%s\tREGISTERS\tSHARED B\tSPILLS B\tCTAS/SM\tTIME\t\tTFLOP/S\tSCORE\tLIMIT\tVERIFIED\n", strings.Join(tile, "x"), strings.ToUpper(strings.Join(others, "\t")))
	for _, b := range best {
		verified, registers, spills, ctas := "no", "?", "?", strconv.Itoa(b.CTAsPerSM) // nothing compiled
		if b.Verified {
			verified = "yes"
		}
		if b.Estimated {
			ctas = "~" + ctas
		}
		if b.Registers > 0 {
			registers, spills = strconv.Itoa(b.Registers), strconv.Itoa(b.SpillBytes)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%.*f\t%.2f\t%s\t%s\n", values(b.Config, tile, "x"), values(b.Config, others, "\t"),
			registers, b.SharedBytes, spills, ctas, timeText(b.TimeUS, b.LowUS, b.HighUS, 1), b.Provenance, decimals, b.TFLOPS, b.Score, b.Limit.Name(gpu), verified)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(a.out, `
TFLOP/S, SCORE and LIMIT are %s like TIME; SCORE is the least possible time over TIME.
REGISTERS, SHARED and SPILLS are the compiled kernel's, CTAS/SM by formula (~: with an estimate of the registers).
`, best[0].Provenance)
	return nil
}

// printSASS says what the compiled code of the best configuration is made of.
func (a *app) printSASS(best []tune.Best) {
	if len(best) == 0 || best[0].Instructions == nil {
		return
	}
	var parts []string
	for _, op := range slices.Sorted(maps.Keys(best[0].Instructions)) {
		parts = append(parts, fmt.Sprintf("%d %s", best[0].Instructions[op], op))
	}
	if len(parts) == 0 {
		parts = []string{"nothing of tensor cores or asynchronous copies"}
	}
	fmt.Fprintf(a.out, "sass      %s; %d registers, %d bytes of spills\n", strings.Join(parts, ", "), best[0].Registers, best[0].SpillBytes)
}

// rateDecimals is how many decimals show three digits of the slowest.
func rateDecimals(best []tune.Best) int {
	slowest := slices.MinFunc(best, func(a, b tune.Best) int { return cmp.Compare(a.TFLOPS, b.TFLOPS) })
	switch {
	case slowest.TFLOPS >= 10:
		return 1
	case slowest.TFLOPS >= 1:
		return 2
	}
	return 4
}

// splitConfig sets the names of the tile's parameters apart from the others.
func splitConfig(c space.Config) (tile, others []string) {
	for i := range c.Len() {
		name, _ := c.At(i)
		if strings.ContainsFunc(name, unicode.IsLower) {
			others = append(others, name)
		} else {
			tile = append(tile, name)
		}
	}
	return tile, others
}

func values(c space.Config, names []string, sep string) string {
	words := make([]string, len(names))
	for i, n := range names {
		v, _ := c.Get(n)
		words[i] = fmt.Sprint(v)
	}
	return strings.Join(words, sep)
}
