package codegen

import "github.com/kgen-dev/kgen/codegen/simt"

// pass is a step of the pipeline.
type pass struct {
	name  string
	apply func(*state) error
}

// pipeline is every step from a tile program to a clean thread program, in order.
var pipeline = append([]pass{
	{"check", func(s *state) error { return check(s.kernel, s.machine) }},
	{"stage", func(s *state) error { stage(s.kernel, s.machine); return nil }},
	{"overlap", func(s *state) error { overlap(s.kernel, s.machine); return nil }},
	{"peel", func(s *state) error { peel(s.kernel); return nil }},
	{"bounds", func(s *state) error { s.bounds = boundsOf(s.kernel); return nil }},
	{"layouts", func(s *state) error { layouts(s.kernel, s.machine); return nil }},
	{"lower", func(s *state) (err error) {
		s.thread, s.params, s.maps, err = lower(s.kernel, s.machine)
		return err
	}},
}, cleanup()...)

// cleanup is the thread program's own passes.
func cleanup() []pass {
	var ps []pass
	for _, p := range simt.Passes {
		ps = append(ps, pass{p.Name, func(s *state) error { p.Run(s.thread); return nil }})
	}
	return ps
}

// order says which pass must come before which, and why; a test holds the pipeline
// to it.
var order = []struct{ before, after, why string }{
	{"check", "stage", "nothing after it expects what it refuses"},
	{"stage", "peel", "a loop split before it is pipelined would drain its ring at the split"},
	{"stage", "overlap", "which moves a product along with the read of the buffer it needs"},
	{"overlap", "peel", "masks of the loop that is left are moved behind a branch, those of what stands before it are not"},
	{"stage", "layouts", "a read of shared memory takes the layout its dot wants; a load would not"},
	{"peel", "bounds", "indices that it computes must not wrap either"},
	{"bounds", "lower", "which takes indices not to wrap"},
	{"peel", "layouts", "masks that are proved away need no layout"},
	{"layouts", "lower", "registers are numbered by layouts"},
}
