// Command mutation changes kgen's own kernels and other compilers' in one place at a
// time (a barrier, wait, commit, fence, arrival, expected count, guard, swizzle or
// offset dropped, moved or changed), runs each under a number of schedules and moments
// of asynchronous work, and says which of the changes that matter the virtual machine
// finds. It prints a report in Markdown.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"time"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm/mutate"
	"github.com/kgen-dev/kgen/codegen/nvrtc"
)

func main() {
	var s suite
	flag.IntVar(&s.timings, "timings", 6, "`N` random schedules beside the two in order")
	flag.IntVar(&s.orders, "orders", 0, "`N` mutants of what orders accesses in each program, drawn by the seed; 0: all")
	flag.IntVar(&s.others, "others", 0, "`N` mutants of accesses, branches and swizzles; 0: all")
	flag.Uint64Var(&s.seed, "seed", 1, "`N` that mutants are drawn and ordered by")
	flag.DurationVar(&s.budget, "budget", time.Hour, "`TIME` after which what is left is only counted")
	only := flag.String("only", "", "`REGEXP` of programs' names")
	dir := flag.String("cases", "testdata/ptx/foreign", "`FOLDER` of other compilers' cases")
	file := flag.String("out", "", "`FILE` to write (default standard output)")
	kept := flag.String("record", "", "`FILE` to keep judgements in; those in it are not run again")
	flag.BoolVar(&s.verbose, "v", false, "print every mutant that is not found")
	flag.Parse()
	if err := s.run(context.Background(), *dir, *only, *kept, *file); err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1)
	}
}

// suite is what to do, and what came of it.
type suite struct {
	timings, orders, others int
	seed                    uint64
	budget                  time.Duration
	verbose                 bool

	started time.Time
	record  *record
	rows    []*row
}

// row is a program and its mutants.
type row struct {
	name     string
	mutants  int // of which those in judged were run
	judged   []judged
	original time.Duration
}

type judged struct {
	mutate.Judgement
	m *mutate.Mutant
}

func (s *suite) run(ctx context.Context, dir, only, kept, file string) error {
	want, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	if s.record, err = openRecord(kept); err != nil {
		return err
	}
	err = errors.Join(programs(ctx, dir, want, s.take(ctx)), s.record.close())
	if err != nil {
		return err
	}
	var out bytes.Buffer
	s.report(&out)
	if file == "" {
		_, err = os.Stdout.Write(out.Bytes())
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o644)
}

// take is judge for programs.
func (s *suite) take(ctx context.Context) func(string, *bench.Case) error {
	if s.started.IsZero() {
		s.started = time.Now()
	}
	return func(name string, c *bench.Case) error { return s.judge(ctx, name, c) }
}

// programs calls f for every program of ours and of others that the pattern matches.
func programs(ctx context.Context, dir string, want *regexp.Regexp, f func(name string, c *bench.Case) error) error {
	by, err := nvrtc.Find()
	if err != nil {
		fmt.Fprintln(os.Stderr, "without NVRTC's kernels:", err)
	}
	compilers := []*nvrtc.Compiler{nil}
	if err == nil {
		compilers = append(compilers, by)
	}
	seen := map[string]int{}
	for _, o := range ours {
		for _, by := range compilers {
			via := "PTX"
			if by != nil {
				via = "NVRTC"
			}
			name := o.name(via)
			if seen[name]++; seen[name] > 1 {
				name = fmt.Sprintf("%s, %d", name, seen[name])
			}
			if !want.MatchString(name) {
				continue
			}
			c, err := o.build(ctx, by)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if err := f(name, c); err != nil {
				return err
			}
		}
	}
	cases, names, err := foreign(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !want.MatchString(name) {
			continue
		}
		if err := f(name, cases[name]); err != nil {
			return err
		}
	}
	return nil
}

// judge runs a program's mutants while there is time.
func (s *suite) judge(ctx context.Context, name string, c *bench.Case) error {
	at := time.Now()
	sub, err := mutate.NewSubject(ctx, name, c, mutate.Timings(s.timings))
	if err != nil {
		return err
	}
	r := &row{name: name, original: time.Since(at)}
	s.rows = append(s.rows, r)
	list, err := mutate.Mutants(c.PTXFile, c.PTX)
	if err != nil {
		return err
	}
	r.mutants = len(list)
	rng := rand.New(rand.NewPCG(s.seed, uint64(len(list))))
	rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	list = s.draw(list)
	ctx, cancel := context.WithDeadline(ctx, s.started.Add(s.budget))
	defer cancel()
	for i := range list {
		j, err := s.verdict(ctx, sub, &list[i])
		if errors.Is(err, context.DeadlineExceeded) {
			continue // later ones may be on record
		}
		if err != nil {
			return err
		}
		r.judged = append(r.judged, judged{j, &list[i]})
		if s.verbose && j.Verdict != mutate.Found {
			fmt.Fprintf(os.Stderr, "%s: %s: %s\n", name, j.Verdict, &list[i])
		}
	}
	fmt.Fprintf(os.Stderr, "%s: %d of %d mutants, %v\n", name, len(r.judged), r.mutants, time.Since(at).Round(time.Millisecond))
	return nil
}

// verdict is what is on record of a mutant, or else what its runs say.
func (s *suite) verdict(ctx context.Context, sub *mutate.Subject, m *mutate.Mutant) (mutate.Judgement, error) {
	k := key(sub.Name, s.timings, m)
	if j, ok := s.record.known[k]; ok {
		return j, nil
	}
	if ctx.Err() != nil {
		return mutate.Judgement{}, ctx.Err()
	}
	j, err := sub.Judge(ctx, m)
	if err != nil {
		return j, err
	}
	return j, s.record.add(k, j)
}

// draw takes as many of each sort as are asked for, those that order first.
func (s *suite) draw(list []mutate.Mutant) []mutate.Mutant {
	var orders, others []mutate.Mutant
	for _, m := range list {
		if m.Orders() {
			orders = append(orders, m)
		} else {
			others = append(others, m)
		}
	}
	if s.orders > 0 {
		orders = orders[:min(s.orders, len(orders))]
	}
	if s.others > 0 {
		others = others[:min(s.others, len(others))]
	}
	return append(orders, others...)
}
