package mutate

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// Verdict is what became of a mutant.
type Verdict string

// The verdicts.
const (
	Found     Verdict = "found"     // a fault is reported
	Wrong     Verdict = "wrong"     // no fault, and the same wrong answer in every timing: any test finds it
	Unchanged Verdict = "unchanged" // no fault, and the right answer in every timing
	Survived  Verdict = "survived"  // no fault, and answers that depend on the timing
	NotRun    Verdict = "not run"   // the original never comes to what was changed
	Refused   Verdict = "refused"   // the program or its launch is not taken
)

// Timings are the schedules and moments of asynchronous work that a mutant is run
// under, the default first: all but random schedules of n more.
func Timings(n int) []vm.Options {
	list := []vm.Options{{}, {Async: vm.Early}}
	moments := []vm.Async{vm.Random, vm.Late, vm.Early}
	for i := range n {
		list = append(list, vm.Options{Schedule: vm.Shuffle, Async: moments[i%len(moments)], Seed: uint64(i + 1)})
	}
	return list
}

// Judgement is a verdict and what it rests on.
type Judgement struct {
	Verdict Verdict
	Class   bench.FaultClass // of the first fault
	Timing  int              // in which it was reported
	Answers int              // different ones
	Why     string           // of a refusal
}

// Subject is a program that is right.
type Subject struct {
	Name    string
	Case    *bench.Case
	timings []vm.Options
	steps   int64          // that a run of it takes
	answer  uint64         // that it gives
	ran     map[int32]bool // lines with an instruction that ran
}

// NewSubject runs a case in every timing; the error says what is not right of it.
func NewSubject(ctx context.Context, name string, c *bench.Case, timings []vm.Options) (*Subject, error) {
	s := &Subject{Name: name, Case: c, timings: timings}
	for i, opt := range timings {
		r, answer, err := s.run(ctx, c, opt)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		case len(r.Faults) > 0:
			return nil, fmt.Errorf("%s: timing %d: %s: %s", name, i, r.Faults[0].Class, r.Faults[0].Message)
		case !r.OK:
			return nil, fmt.Errorf("%s: timing %d: it does not give what the case wants", name, i)
		case i > 0 && answer != s.answer:
			return nil, fmt.Errorf("%s: timing %d: another answer than before", name, i)
		}
		s.answer, s.steps = answer, max(s.steps, total(r.Counters.Instructions))
	}
	var err error
	s.ran, err = linesRun(ctx, c)
	return s, err
}

// linesRun is the lines of a case's PTX that some warp came to. Counts are by line of
// the source where the PTX says which: so the program is printed without.
func linesRun(ctx context.Context, c *bench.Case) (map[int32]bool, error) {
	tree, err := ptx.Parse(c.PTXFile, c.PTX)
	if err != nil {
		return nil, err
	}
	bare := *c
	bare.PTX = withoutSource(tree)
	again, err := ptx.Parse(c.PTXFile, bare.PTX)
	if err != nil {
		return nil, err
	}
	dev, err := vm.New(vm.Options{Checks: vm.NoChecks()})
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	r, err := bench.RunCase(ctx, dev, &bare, bench.RunOptions{Lines: true})
	if err != nil {
		return nil, err
	}
	printed := map[int32]bool{}
	for _, l := range r.Lines {
		if l.Instructions.Warp > 0 {
			printed[int32(l.Line)] = true
		}
	}
	ran := map[int32]bool{}
	copies := instructions(again)
	for i, in := range instructions(tree) {
		if printed[copies[i].Pos.Line] {
			ran[in.Pos.Line] = true
		}
	}
	return ran, nil
}

// run runs a case and gives a hash of what its buffers hold at the end.
func (s *Subject) run(ctx context.Context, c *bench.Case, opt vm.Options) (*bench.Result, uint64, error) {
	if s.steps > 0 {
		opt.MaxSteps = 4*s.steps + 1e5
	}
	opt.MaxFaults = 4
	dev, err := vm.New(opt)
	if err != nil {
		return nil, 0, err
	}
	defer dev.Close()
	r, err := bench.RunCase(ctx, dev, c, bench.RunOptions{Keep: true})
	if err != nil {
		return nil, 0, err
	}
	h := fnv.New64a()
	for _, data := range r.Kept {
		h.Write(data)
	}
	if r.Failure != nil {
		h.Write([]byte("failed"))
	}
	return r, h.Sum64(), nil
}

// Judge runs a mutant in every timing, until a fault is reported.
func (s *Subject) Judge(ctx context.Context, m *Mutant) (Judgement, error) {
	if !s.ran[m.Line] {
		return Judgement{Verdict: NotRun}, nil
	}
	c := *s.Case
	c.PTX = []byte(m.PTX)
	answers := map[uint64]bool{}
	for i, opt := range s.timings {
		r, answer, err := s.run(ctx, &c, opt)
		var input *bench.InputError
		switch {
		case ctx.Err() != nil:
			return Judgement{}, ctx.Err()
		case errors.As(err, &input):
			return Judgement{Verdict: Refused, Why: err.Error()}, nil
		case err != nil:
			return Judgement{}, fmt.Errorf("%s: %s: %w", s.Name, m, err)
		case len(r.Faults) > 0:
			return Judgement{Verdict: Found, Class: r.Faults[0].Class, Timing: i, Answers: len(answers)}, nil
		}
		answers[answer] = true
	}
	j := Judgement{Verdict: Survived, Answers: len(answers)}
	switch {
	case len(answers) == 1 && answers[s.answer]:
		j.Verdict = Unchanged
	case len(answers) == 1:
		j.Verdict = Wrong
	}
	return j, nil
}

func total(n bench.PipeCounts) int64 {
	sum := int64(0)
	for _, k := range n {
		sum += k.Warp
	}
	return sum
}
