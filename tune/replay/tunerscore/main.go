// Command tunerscore measures the search strategies on published spaces, without a GPU:
// the mean over seeds of the fraction of the optimum that is reached after 50, 100 and
// 200 evaluations. It prints a table in Markdown.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"gonum.org/v1/gonum/stat"

	"github.com/kgen-dev/kgen/tune/document"
	"github.com/kgen-dev/kgen/tune/replay"
	"github.com/kgen-dev/kgen/tune/search"
)

// budgets are the evaluations after which a search is judged.
var budgets = []int{50, 100, 200}

// whole are the strategies whose choices do not depend on the budget: one search serves
// all budgets.
var whole = []string{search.Default, "random", "local", "forest", "model-first"}

func main() {
	seeds := flag.Int("seeds", 200, "searches of each space")
	names := flag.String("strategies", "guided,forest,model-first,genetic,annealing,local,random", "to measure, separated by commas")
	file := flag.String("out", "", "`FILE` whose table is to be written anew (default standard output)")
	flag.Parse()
	var table bytes.Buffer
	err := run(&table, *seeds, strings.Split(*names, ","), flag.Args())
	if err == nil {
		err = document.WriteTable(*file, "tuner-score", table.Bytes())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tunerscore:", err)
		os.Exit(1)
	}
}

// named is a space with what stands in the table's head.
type named struct {
	name  string
	space *replay.Space
	scale *replay.Scale
}

func run(w io.Writer, seeds int, strategies, files []string) error {
	if seeds < 2 || len(files) == 0 {
		return fmt.Errorf("%d seeds of %d spaces: want 2 or more, of 1 or more", seeds, len(files))
	}
	var spaces []named
	for _, f := range files {
		s, err := replay.ReadFile(context.Background(), f)
		if err != nil {
			return err
		}
		scale, err := s.Scale()
		if err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
		name, _, _ := strings.Cut(filepath.Base(f), ".")
		spaces = append(spaces, named{name, s, scale})
	}
	fmt.Fprintf(w, "| strategy | mean |")
	for _, s := range spaces {
		fmt.Fprintf(w, " %s |", s.name)
	}
	fmt.Fprintf(w, " score |\n| --- | --- |%s --- |\n", strings.Repeat(" --- |", len(spaces)))
	for _, name := range strategies {
		row := row{strategy: name}
		for _, s := range spaces {
			c, err := measure(s, name, seeds)
			if err != nil {
				return err
			}
			row.cells = append(row.cells, c)
		}
		row.print(w)
	}
	row := row{strategy: "*random, exactly*"}
	for _, s := range spaces {
		var c cell
		for _, k := range budgets {
			c.mean = append(c.mean, s.scale.ExpectedFraction(k))
			c.variance = append(c.variance, 0)
		}
		row.cells = append(row.cells, c)
	}
	row.print(w)
	return nil
}

// cell is what a strategy reaches in a space: by budget the mean and the square of its
// standard error; and the published score.
type cell struct {
	mean, variance []float64
	score          float64
}

type row struct {
	strategy string
	cells    []cell
}

func (r row) print(w io.Writer) {
	var mean cell
	for b := range budgets {
		m, v := 0.0, 0.0
		for _, c := range r.cells {
			m += c.mean[b] / float64(len(r.cells))
			v += c.variance[b] / float64(len(r.cells)*len(r.cells))
		}
		mean.mean, mean.variance = append(mean.mean, m), append(mean.variance, v)
	}
	fmt.Fprintf(w, "| %s | **%s**", r.strategy, mean)
	score := 0.0
	for _, c := range r.cells {
		fmt.Fprintf(w, " | %s", c)
		score += c.score / float64(len(r.cells))
	}
	fmt.Fprintf(w, " | %.2f |\n", score)
}

func (c cell) String() string {
	var means, errors []string
	for b := range budgets {
		means = append(means, fmt.Sprintf("%.3f", c.mean[b]))
		errors = append(errors, fmt.Sprintf("%.3f", math.Sqrt(c.variance[b])))
	}
	if slices.Max(c.variance) == 0 {
		return strings.Join(means, " / ")
	}
	return strings.Join(means, " / ") + " ± " + strings.Join(errors, " / ")
}

// measure searches a space with each seed, on all cores.
func measure(s named, strategy string, seeds int) (cell, error) {
	reached := make([][]float64, seeds) // by seed and budget
	curves := make([][]float64, seeds)
	errs := make([]error, seeds)
	var wg sync.WaitGroup
	next := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for seed := range next {
				reached[seed], curves[seed], errs[seed] = one(s, strategy, uint64(seed))
			}
		})
	}
	for seed := range seeds {
		next <- seed
	}
	close(next)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return cell{}, err
		}
	}
	var c cell
	for b := range budgets {
		var all []float64
		for _, r := range reached {
			all = append(all, r[b])
		}
		m, v := stat.MeanVariance(all, nil)
		c.mean, c.variance = append(c.mean, m), append(c.variance, v/float64(seeds))
	}
	c.score, _ = s.scale.Score(s.scale.Curve(curves), 0.01, 0.95, 1000)
	return c, nil
}

// one searches once, for each budget by itself where the strategy depends on it.
func one(s named, strategy string, seed uint64) (reached, curve []float64, err error) {
	last := budgets[len(budgets)-1]
	long, err := s.space.Search(context.Background(), strategy, last, seed)
	if err != nil {
		return nil, nil, err
	}
	for _, t := range long.Trace {
		ms := math.NaN()
		if t.BestMS != nil {
			ms = *t.BestMS
		}
		curve = append(curve, ms)
	}
	for _, b := range budgets {
		fraction := 0.0
		if slices.Contains(whole, strategy) || b == last {
			if ms := curve[min(b, len(curve))-1]; !math.IsNaN(ms) {
				fraction = long.Optimum / ms
			}
		} else {
			r, err := s.space.Search(context.Background(), strategy, b, seed)
			if err != nil {
				return nil, nil, err
			}
			fraction = r.Fraction
		}
		reached = append(reached, fraction)
	}
	return reached, curve, nil
}
