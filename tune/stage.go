package tune

import (
	"context"
	"fmt"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/tune/store"
)

// RoundsOfCheck is how many tiles a persistent block goes through when it is checked.
const RoundsOfCheck = 2

// stage is a problem's data in a device's memory, on which programs are checked.
type stage struct {
	problem family.Problem
	device  bench.Device
	data    family.Data
	buffers []bench.Buffer // by argument; none for scalars
	args    []codegen.Argument
	known   map[string]family.Expected // by region
}

// newStage draws a problem's inputs and copies them to the device.
func newStage(d bench.Device, p family.Problem, seed uint64) (*stage, error) {
	data, err := family.NewData(p.Args(), seed)
	if err != nil {
		return nil, err
	}
	s := &stage{problem: p, device: d, data: data, args: Arguments(p.Args()), known: map[string]family.Expected{}}
	for _, a := range p.Args() {
		var b bench.Buffer
		if !a.IsScalar() {
			t := data[a.Name]
			if b, err = d.Alloc(int64(len(t.Bytes)), 0); err != nil {
				return nil, err
			}
			if err := d.Write(b, 0, t.Bytes); err != nil {
				return nil, err
			}
		}
		s.buffers = append(s.buffers, b)
	}
	return s, nil
}

// whole is all of a problem as a part: every tile, every output.
func whole(p family.Problem) family.Part {
	var part family.Part
	for _, a := range p.Args() {
		if a.Out && a.Elements() > 0 {
			part.Regions = append(part.Regions, a.Whole())
		}
	}
	return part
}

// wrongError is what a check found wrong with a kernel.
type wrongError struct {
	error
	outcome store.Outcome
}

// check runs parts of a program and compares what they wrote with the reference. A
// wrongError says what is wrong with the program; any other error that it could not be
// checked.
func (s *stage) check(ctx context.Context, ptx []byte, c *codegen.Compiled, parts []family.Part) error {
	plan, err := c.Plan(s.args)
	if err != nil {
		return err
	}
	plan.Rounds(RoundsOfCheck)
	m, err := s.device.Load(ctx, "kernel.ptx", ptx)
	if err != nil {
		return err
	}
	defer s.device.Unload(m)
	memory, free, err := s.workspace(plan)
	if err != nil {
		return err
	}
	defer free()
	for _, p := range parts {
		if err := s.poison(p); err != nil {
			return err
		}
	}
	reports, err := bench.RunPlan(ctx, s.device, m, plan, memory, points(parts, len(plan.Steps)))
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return wrongError{err, store.Runtime}
	}
	for _, r := range reports {
		if len(r.Faults) > 0 {
			f := r.Faults[0]
			return wrongError{fmt.Errorf("%s in block %v, thread %v: %s", f.Class, f.Block, f.Thread, f.Message), store.Correctness}
		}
	}
	for _, p := range parts {
		if err := s.compare(p); err != nil {
			return err
		}
	}
	return nil
}

// workspace is the memory of the arguments and, until free, that of a plan's workspace.
func (s *stage) workspace(plan *codegen.Plan) (memory []bench.Buffer, free func(), err error) {
	memory = append(memory, s.buffers...)
	free = func() {
		for _, b := range memory[len(s.buffers):] {
			s.device.Free(b)
		}
	}
	for _, bytes := range plan.Workspace {
		b, err := s.device.Alloc(bytes, 256)
		if err != nil {
			free()
			return nil, nil, err
		}
		memory = append(memory, b)
	}
	return memory, free, nil
}

// points joins the tiles of parts, step by step; nil runs everything.
func points(parts []family.Part, steps int) [][][]int {
	var out [][][]int
	for _, p := range parts {
		if p.Tiles == nil {
			return nil
		}
		if out == nil {
			out = make([][][]int, steps)
		}
		for i, t := range p.Tiles {
			out[i] = append(out[i], t...)
		}
	}
	return out
}

// span is the bytes from a region's first element to its last.
func (s *stage) span(r family.Region) (t *family.Tensor, b bench.Buffer, lo, hi int64) {
	for i, a := range s.problem.Args() {
		if a.Name == r.Out {
			b = s.buffers[i]
		}
	}
	t = s.data[r.Out]
	last := make([]int, len(r.Hi))
	for d := range last {
		last[d] = r.Hi[d] - 1
	}
	size := t.Elem.MemoryBits() / 8
	return t, b, int64(t.Offset(r.Lo...) * size), int64((t.Offset(last...) + 1) * size)
}

// poison fills the outputs of a part with NaN.
func (s *stage) poison(p family.Part) error {
	for _, r := range p.Regions {
		_, b, lo, hi := s.span(r)
		nan := make([]byte, hi-lo)
		for i := range nan {
			nan[i] = 0xff
		}
		if err := s.device.Write(b, lo, nan); err != nil {
			return err
		}
	}
	return nil
}

// compare checks the outputs of a part.
func (s *stage) compare(p family.Part) error {
	for _, r := range p.Regions {
		t, b, lo, hi := s.span(r)
		if err := s.device.Read(b, lo, t.Bytes[lo:hi]); err != nil {
			return err
		}
		key := fmt.Sprint(r)
		want, ok := s.known[key]
		if !ok {
			var err error
			if want, err = s.problem.Expect(s.data, r); err != nil {
				return err
			}
			s.known[key] = want
		}
		if err := t.Check(r, want); err != nil {
			return wrongError{err, store.Correctness}
		}
	}
	return nil
}
