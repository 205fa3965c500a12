package cli

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/gopkg"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
)

func portableVariant(f *family.Family, p family.Problem, gpu *target.GPU, c space.Config, from string) (*gopkg.Variant, error) {
	portable, err := compileFor(p, c, gpu, codegen.Options{Portable: true})
	if err != nil {
		return nil, compileError(fmt.Errorf("%s on %s: %w", f.Name, gpu.ID, err))
	}
	if c, err = portableConfig(p, gpu, c, portable); err != nil {
		return nil, err
	}
	return newVariant(portable, gpu, c, from)
}

// leftOut are the parameters that ask for what portable code may go without.
var leftOut = []string{"copy", "overlap", "persistent", "cluster"}

// portableConfig is the configuration of portable code, which does without some of what
// was asked for: parameters that then change nothing have their first values.
func portableConfig(p family.Problem, gpu *target.GPU, c space.Config, portable *codegen.Compiled) (space.Config, error) {
	bound, err := p.Space(gpu)
	if err != nil {
		return c, err
	}
	try := func(name string, value int, o codegen.Options) error {
		now, ok := c.Get(name)
		if !ok || now == value {
			return nil
		}
		other, err := compileFor(p, c.With(name, value), gpu, o)
		if err != nil {
			return nil // the other value is for another kernel
		}
		same, err := sameKernels(portable, other)
		if same {
			c = c.With(name, value)
		}
		return err
	}
	for _, name := range leftOut {
		if q, ok := bound.Space().Param(name); ok {
			if err := try(name, q.Values[0], codegen.Options{Portable: true}); err != nil {
				return c, err
			}
		}
	}
	if own, err := compileFor(p, c, gpu, codegen.Options{}); err == nil {
		if same, err := sameKernels(portable, own); same || err != nil {
			return c, err
		}
	}
	return c, try("portable", 1, codegen.Options{})
}

// sameKernels tells whether two programs have the same code and launches.
func sameKernels(x, y *codegen.Compiled) (bool, error) {
	one, err := x.PTX()
	if err != nil {
		return false, err
	}
	other, err := y.PTX()
	if err != nil || one != other {
		return false, err
	}
	return slices.EqualFunc(x.Kernels, y.Kernels, func(k, l codegen.Kernel) bool {
		k.Notes, l.Notes = nil, nil // they say what was asked for
		return reflect.DeepEqual(k, l)
	}), nil
}
