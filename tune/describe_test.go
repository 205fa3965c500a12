package tune

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/launchfile"
	"github.com/kgen-dev/kgen/bench/numcheck"
	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels"
	"github.com/kgen-dev/kgen/kernels/family"
)

// What a launch description says is enough to launch by: a case made of its text alone,
// over the same data, computes what the reference does.
func TestLaunchFilesSuffice(t *testing.T) {
	for _, c := range []struct {
		name, family, gpu string
		flags             map[string]string
		set               []string
		early             bool // the second launch
		maps              int  // tensor maps
	}{
		{"tensor maps and clusters", "gemm", "h100", map[string]string{"m": "200", "n": "264", "k": "136", "bias": "true", "alpha": "0.5"},
			[]string{"BM=128", "BN=128", "BK=64", "warps=8", "stages=2", "group=1", "cluster=1", "persistent=0"}, false, 3},
		{"two launches, the second early", "gemm", "h100", map[string]string{"m": "64", "n": "96", "k": "512"},
			[]string{"BM=64", "BN=64", "BK=64", "warps=4", "stages=2", "group=1", "split=2", "cluster=1", "persistent=0"}, true, 3},
		{"odd strides", "gemm", "a100", map[string]string{"m": "50", "n": "33", "k": "77", "residual": "true"}, nil, false, 0},
		{"attention", "flashattn", "h100", map[string]string{"batch": "1", "heads": "2", "kv-heads": "1", "seq": "130", "seq-kv": "140", "head-dim": "64"}, nil, false, 4},
		{"scalars and seeds", "layernorm", "a100", map[string]string{"rows": "5", "cols": "300", "dropout": "0.25"}, nil, false, 0},
		{"numbers in memory", "paged", "a100", map[string]string{"batch": "3", "heads": "4", "kv-heads": "2", "context": "100", "page": "16", "head-dim": "64"}, nil, false, 0},
		{"what is written in part", "paged-append", "h100", map[string]string{"batch": "3", "kv-heads": "2", "context": "60", "page": "16", "head-dim": "64"}, nil, false, 0},
		{"before 8.0", "softmax", "t4", map[string]string{"rows": "3", "cols": "500", "dtype": "f16"}, nil, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := kernels.Family(c.family)
			require.NoError(t, err)
			gpu, err := target.Lookup(c.gpu)
			require.NoError(t, err)
			p, err := f.Problem(c.flags, gpu)
			require.NoError(t, err)
			dir := t.TempDir()
			d := described(t, dir, f, p, gpu, c.set)
			if c.early {
				require.True(t, d.Launches[1].Early)
			}
			maps := 0
			for _, l := range d.Launches {
				for _, q := range l.Params {
					if q.Kind == launchfile.TensorMap {
						maps++
					}
				}
			}
			require.Equal(t, c.maps, maps)
			launched(t, dir, d, p, gpu)
		})
	}
}

// What kernels were compiled with stands in the description, and what they do not read
// because another size says it.
func TestLaunchRequires(t *testing.T) {
	for _, c := range []struct {
		family string
		flags  map[string]string
		want   []string // all of the first launch that begin with dim and are no multiples of a number
	}{
		{"gemm", map[string]string{"m": "50", "n": "34", "k": "78"},
			[]string{"dim(b, 0) = dim(a, 1)", "dim(c, 0) = dim(a, 0)", "dim(c, 1) = dim(b, 1)"}},
		{"flashattn", map[string]string{"batch": "1", "heads": "2", "kv-heads": "1", "seq": "130", "seq-kv": "140", "head-dim": "64"}, []string{
			"dim(q, 3) = 64", "dim(k, 0) = dim(q, 0)", "dim(k, 3) = 64", "dim(v, 0) = dim(q, 0)", "dim(v, 1) = dim(k, 1)", "dim(v, 2) = dim(k, 2)", "dim(v, 3) = 64",
			"dim(o, 0) = dim(q, 0)", "dim(o, 1) = dim(q, 1)", "dim(o, 2) = dim(q, 2)", "dim(o, 3) = 64",
			"dim(lse, 0) = dim(q, 0)", "dim(lse, 1) = dim(q, 2)", "dim(lse, 2) = dim(q, 1)", "dim(q, 2) % dim(k, 2) = 0",
		}},
	} {
		t.Run(c.family, func(t *testing.T) {
			f, err := kernels.Family(c.family)
			require.NoError(t, err)
			gpu, err := target.Lookup("a100")
			require.NoError(t, err)
			p, err := f.Problem(c.flags, gpu)
			require.NoError(t, err)
			var got []string
			for _, r := range described(t, t.TempDir(), f, p, gpu, nil).Launches[0].Requires {
				if strings.HasPrefix(r, "dim(") && !regexp.MustCompile(`% \d+ = 0| in `).MatchString(r) {
					got = append(got, r)
				}
			}
			require.Equal(t, c.want, got)
		})
	}
}

// described writes PTX and description of a configuration and reads the latter.
func described(t *testing.T, dir string, f *family.Family, p family.Problem, gpu *target.GPU, set []string) *launchfile.File {
	t.Helper()
	bound, err := p.Space(gpu)
	require.NoError(t, err)
	config, err := p.Default(gpu)
	require.NoError(t, err)
	config, err = bound.Space().Override(config, set)
	require.NoError(t, err)
	prog, err := p.Program(config)
	require.NoError(t, err)
	compiled, err := codegen.Compile(prog, gpu, codegen.Options{})
	require.NoError(t, err)
	plan, err := compiled.Plan(Arguments(p.Args()))
	require.NoError(t, err)
	ptx, err := compiled.PTX()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kernel.ptx"), []byte(ptx), 0o666))
	d, err := Describe(f, p, gpu, config, compiled, plan, "test")
	require.NoError(t, err)
	d.Files.PTX = "kernel.ptx"
	text, err := d.Text()
	require.NoError(t, err)
	name := filepath.Join(dir, "launch.json")
	require.NoError(t, os.WriteFile(name, text, 0o666))
	read, err := launchfile.Read(name)
	require.NoError(t, err)
	again, err := read.Text()
	require.NoError(t, err)
	require.Equal(t, string(text), string(again))
	require.Contains(t, d.Comment("launch.json"), "1. "+d.Launches[0].Kernel+": grid")
	return read
}

// launched runs a description's case over a problem's data and compares.
func launched(t *testing.T, dir string, d *launchfile.File, p family.Problem, gpu *target.GPU) {
	t.Helper()
	text, err := d.Case(d.Files.PTX, dir)
	require.NoError(t, err)
	data, err := family.NewData(p.Args(), 7)
	require.NoError(t, err)
	var c map[string]any
	require.NoError(t, json.Unmarshal(text, &c))
	at := map[string]int{}
	for i, b := range c["buffers"].([]any) {
		fields := b.(map[string]any)
		name := fields["name"].(string)
		at[name] = i
		tensor := data[name]
		if tensor == nil || tensor.Out && !tensor.Partial {
			require.NotContains(t, fields, "buffer", name)
			continue
		}
		delete(fields, "uninitialised")
		fields["buffer"] = name + ".npy"
		kind, err := numcheck.ParseType(fields["type"].(string))
		require.NoError(t, err)
		require.NoError(t, bench.WriteNPYFile(filepath.Join(dir, name+".npy"), &bench.Array{
			DType: kind.DType(), Shape: []int64{int64(len(tensor.Bytes) / kind.Size())}, Data: tensor.Bytes,
		}))
	}
	text, err = json.Marshal(c)
	require.NoError(t, err)
	name := filepath.Join(dir, "case.json")
	require.NoError(t, os.WriteFile(name, text, 0o666))
	ready, err := bench.ReadCase(name)
	require.NoError(t, err)
	machine, err := vm.New(vm.Options{GPU: gpu})
	require.NoError(t, err)
	defer machine.Close()
	r, err := bench.RunCase(t.Context(), machine, ready, bench.RunOptions{Keep: true})
	require.NoError(t, err)
	require.Empty(t, r.Faults)
	for _, region := range whole(p).Regions {
		want, err := p.Expect(data, region)
		require.NoError(t, err)
		copy(data[region.Out].Bytes, r.Kept[at[region.Out]])
		require.NoError(t, data[region.Out].Check(region, want))
	}
}
