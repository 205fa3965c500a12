package cli

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels/family"
)

// A kernel that was made wrong is found wrong, one that was not is right.
func TestCheckFindsWrongKernels(t *testing.T) {
	tests := []struct{ name, old, new, want string }{
		{"as it is", "ex2.approx", "ex2.approx", ""},
		{"wrong function", "ex2.approx", "sin.approx", "elements of"},
		{"outputs never written", "st.global", "// st.global", "got NaN"},
		{"outputs elsewhere", "st.global", "st.local", "local-out-of-bounds"},
	}
	gpu := must(target.Lookup("a100"))
	f := must(kernelFamily("softmax"))
	p := must(f.Problem(map[string]string{"rows": "5", "cols": "300", "dtype": "f32"}, gpu))
	config := must(p.Default(gpu))
	c := must(codegen.Compile(must(p.Program(config)), gpu, codegen.Options{}))
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dev := must(vm.New(vm.Options{GPU: gpu}))
			defer dev.Close()
			parts := must(p.Parts(config, rand.New(rand.NewPCG(1, 1)), 3))
			v := &checkRun{dev: dev, args: p.Args(), data: must(family.NewData(p.Args(), 1))}
			text := strings.ReplaceAll(must(c.PTX()), tt.old, tt.new)
			require.NoError(t, v.launch(t.Context(), c, text, parts))
			r := &checkReport{Faults: v.faults}
			for _, part := range parts {
				for _, region := range part.Regions {
					require.NoError(t, r.compare(p, v.data, region))
				}
			}
			if tt.want == "" {
				require.Empty(t, r.firstWrong())
				return
			}
			require.Contains(t, r.firstWrong(), tt.want)
		})
	}
}

func TestCheckIsBounded(t *testing.T) {
	f := must(kernelFamily("gemm"))
	for _, tt := range []struct {
		n  string
		ok bool
	}{{"16384", true}, {"20000", false}} {
		p := must(f.Problem(map[string]string{"m": tt.n, "n": tt.n, "k": tt.n}, nil))
		require.Equal(t, tt.ok, checkable(p) == nil, tt.n)
	}
}
