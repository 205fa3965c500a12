// Package kernels lists the kernel families.
package kernels

import (
	"fmt"
	"strings"

	"github.com/kgen-dev/kgen/kernels/attention"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/gemm"
	"github.com/kgen-dev/kgen/kernels/layernorm"
	"github.com/kgen-dev/kgen/kernels/paged"
	"github.com/kgen-dev/kgen/kernels/softmax"
)

// Families returns every family, in the order they are shown. A new one is a folder
// here and a line below.
func Families() []*family.Family {
	return []*family.Family{
		gemm.Family(),
		attention.Family(),
		layernorm.Family(),
		paged.Family(),
		paged.AppendFamily(),
		softmax.Family(),
	}
}

// Family returns the family called name; the error lists those there are.
func Family(name string) (*family.Family, error) {
	var names []string
	for _, f := range Families() {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return nil, fmt.Errorf("unknown family %q: want one of %s", name, strings.Join(names, ", "))
}
