package tune

import (
	"fmt"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/roofline"
	"github.com/kgen-dev/kgen/tune/model"
)

// PredictKernel says what one configuration of a problem does and how long it takes by
// the cost model, its registers estimated. The error wraps codegen.ErrUnsupported for a
// GPU that no code is generated for, and codegen.ErrResources for a configuration that
// does not fit it.
func PredictKernel(p family.Problem, g *target.GPU, c space.Config) (*roofline.Kernel, error) {
	program, err := p.Program(c)
	if err != nil {
		return nil, err
	}
	compiled, err := codegen.Compile(program, g, codegen.Options{})
	if err != nil {
		return nil, fmt.Errorf("configuration %q: %w", c, err)
	}
	plan, err := compiled.Plan(Arguments(p.Args()))
	if err != nil {
		return nil, err
	}
	prediction, err := model.Predict(g, compiled, plan, family.Integers(p.Args()), nil)
	if err != nil {
		return nil, fmt.Errorf("configuration %q: %w", c, err)
	}
	longest := prediction.Longest()
	return &roofline.Kernel{
		Name: c.String(), Launches: 1, Work: usefulWork(p, g, prediction.Work), Least: roofline.Formula(p.Work().Bytes),
		TimeUS: prediction.US, From: bench.Predicted,
		Seen: longest.Seen(g),
	}, nil
}

// usefulWork adds a problem's useful operations to counted work, and what the
// instructions that do them can reach: mma.sync, unless the model found others.
func usefulWork(p family.Problem, g *target.GPU, w roofline.Work) roofline.Work {
	f := p.Work()
	w.Operations = []roofline.Operations{{Math: f.Math, Count: roofline.Formula(f.FLOPs)}}
	if share, ok := g.MMASyncOfPeak(); ok && w.TensorReach == 0 {
		w.TensorReach = share
	}
	return w
}
