package family

import "github.com/kgen-dev/kgen/ir"

// Named gives a value the name it is printed under, and returns it.
func Named(name string, v *ir.Value) *ir.Value {
	v.Name = name
	return v
}
