package tune

import (
	"encoding/json"
	"slices"

	"github.com/kgen-dev/kgen/bench/launchfile"
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
)

// Describe says how to launch a configuration of a family's problem on a GPU, as compiled
// and planned. Compiler, files and time are left to the caller.
func Describe(f *family.Family, p family.Problem, g *target.GPU, c space.Config, compiled *codegen.Compiled, plan *codegen.Plan, version string) (*launchfile.File, error) {
	args := p.Args()
	written := make([]bool, len(args))
	for i, a := range args {
		written[i] = a.Out
	}
	d, err := launchfile.Describe(compiled, plan, Arguments(args), written)
	if err != nil {
		return nil, err
	}
	for _, e := range f.Sizes {
		if of := slices.IndexFunc(f.Sizes, func(o family.Extent) bool { return o.Field == e.MultipleOf }); of >= 0 {
			d.RequireMultiple(compiled, e.Symbol, f.Sizes[of].Symbol)
		}
	}
	d.Kgen, d.Family = version, f.Name
	d.GPU.ID, d.GPU.Name = g.ID, g.Name
	if d.Problem, err = json.Marshal(p.Settings()); err != nil {
		return nil, err
	}
	d.Config, err = json.Marshal(c)
	return d, err
}
