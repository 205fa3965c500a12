package cli

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
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

// What is counted by line is what is counted in all.
func TestCheckCountsByLine(t *testing.T) {
	gpu := must(target.Lookup("a100"))
	f := must(kernelFamily("softmax"))
	p := must(f.Problem(map[string]string{"rows": "5", "cols": "300"}, gpu))
	config := must(p.Default(gpu))
	c := must(codegen.Compile(must(p.Program(config)), gpu, codegen.Options{}))
	dev := must(vm.New(vm.Options{GPU: gpu}))
	defer dev.Close()
	v := &checkRun{dev: byLine{dev}, args: p.Args(), data: must(family.NewData(p.Args(), 1))}
	require.NoError(t, v.launch(t.Context(), c, must(c.PTX()), must(p.Parts(config, rand.New(rand.NewPCG(1, 1)), 3))))
	var sum bench.Issue
	var bytes int64
	for _, l := range v.lines {
		sum.Warp += l.Instructions.Warp
		sum.Thread += l.Instructions.Thread
		bytes += l.Global.Bytes
	}
	require.Equal(t, v.counters.Instructions.Total(), sum)
	require.Equal(t, v.counters.Global.Loads.Bytes+v.counters.Global.Stores.Bytes, bytes)
	require.NotZero(t, bytes)
}

// A check takes the memory that it says it takes, and refuses what takes more.
func TestCheckIsBounded(t *testing.T) {
	gpu := must(target.Lookup("h100"))
	for _, tt := range []struct {
		family string
		flags  map[string]string
		ok     bool
	}{
		{"gemm", map[string]string{"m": "16384", "n": "16384", "k": "16384"}, true},
		{"gemm", map[string]string{"m": "20000", "n": "20000", "k": "20000"}, false},
		{"flashattn", map[string]string{"batch": "1", "heads": "1", "kv-heads": "1", "seq": "128", "seq-kv": "3000000"}, true},
		{"flashattn", map[string]string{"batch": "1", "heads": "1", "kv-heads": "1", "seq": "128", "seq-kv": "4000000"}, false},
		{"softmax", map[string]string{"rows": "1", "cols": "70000000"}, true},
		{"softmax", map[string]string{"rows": "1", "cols": "100000000"}, false},
	} {
		f := must(kernelFamily(tt.family))
		j := &job{family: f, gpu: gpu, problem: must(f.Problem(tt.flags, gpu))}
		config := must(j.config(nil))
		_, plan, err := j.lower(config, codegen.Options{Verify: true})
		require.NoError(t, err)
		parts := must(j.problem.Parts(config, rand.New(rand.NewPCG(1, 1)), 4))
		require.Equal(t, tt.ok, checkable(j.problem, plan, parts) == nil, "%s %v: %v", tt.family, tt.flags, checkable(j.problem, plan, parts))
	}
}
