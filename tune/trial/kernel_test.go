package trial_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen/cache"
	"github.com/kgen-dev/kgen/codegen/nvrtc/nvrtctest"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/tune/spec"
	"github.com/kgen-dev/kgen/tune/store"
	"github.com/kgen-dev/kgen/tune/trial"
)

// source computes 2*in+1, unless what asks it for something else.
const source = `
extern "C" __global__ void scale(const float *in, float *out, int n) {
	static_assert(what != 1, "refused");
	int at = blockIdx.x * block + threadIdx.x;
	if (what == 3) at += 100000;
	if (at < n - (what == 4) || what == 3) out[at] = 2 * in[at % n] + (what == 2 ? 3 : 1);
}
extern "C" __global__ void plain(const float *in, float *out, int n) {
	for (int at = threadIdx.x; at < n; at += blockDim.x) out[at] = 2 * in[at] + 1;
#ifdef far
	out[n + 100000] = 0;
#endif
}
extern "C" __global__ void other(float *out) { *out = 0; }`

const description = `{
  "source": "scale.cu", "kernel": "scale", "sizes": {"n": 1000},
  "parameters": [{"name": "block", "values": [64, 128]}, {"name": "what", "values": [0, 1, 2, 3, 4]}],
  "grid": "ceildiv(n, block)", "block": "block",
  "arguments": ["f32[{n}]:random", "f32[{n}]:none", "i32={n}"],
  "reference": {"kernel": "plain", "grid": 1, "block": 128, "defines": {"block": 128, "what": 0}}
}`

// clocked is the virtual machine as a device that measures: every launch takes as long, and
// it does not know what was never written.
type clocked struct{ bench.Device }

func (clocked) Provenance() bench.Provenance { return bench.Measured }

func (c clocked) Launch(ctx context.Context, m *bench.Module, kernel string, l bench.Launch) (*bench.Report, error) {
	r, err := c.Device.Launch(ctx, m, kernel, l)
	if err == nil && len(r.Faults) > 0 {
		err = &bench.KernelError{Message: r.Faults[0].Message}
	}
	if r != nil {
		r.Time = 7 * time.Microsecond
	}
	return r, err
}

func kernel(t *testing.T, measures bool) *trial.Kernel {
	t.Helper()
	return described(t, description, measures)
}

func described(t *testing.T, description string, measures bool) *trial.Kernel {
	t.Helper()
	return written(t, description, source, measures)
}

func written(t *testing.T, description, source string, measures bool) *trial.Kernel {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "scale.cu"), []byte(source), 0o666))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "scale.json"), []byte(description), 0o666))
	s, err := spec.Read(filepath.Join(dir, "scale.json"))
	require.NoError(t, err)
	g, err := target.Lookup("a100")
	require.NoError(t, err)
	b, err := s.Bind(g)
	require.NoError(t, err)
	device, err := vm.New(vm.Options{GPU: g})
	require.NoError(t, err)
	t.Cleanup(func() { device.Close() })
	k := &trial.Kernel{Spec: b, Compiler: nvrtctest.Compiler(t), Device: device, Called: func(symbol, name string) bool { return symbol == name }}
	if measures {
		k.Device = clocked{device}
	}
	return k
}

// On a device that counts and on one that measures, each way to fail is told apart, and
// what is not written is wrong.
func TestOutcomes(t *testing.T) {
	for name, measures := range map[string]bool{"counted": false, "measured": true} {
		t.Run(name, func(t *testing.T) {
			k := kernel(t, measures)
			for what, want := range []store.Outcome{store.Correct, store.Compile, store.Correctness, store.Runtime, store.Correctness} {
				point := []int{1, what}
				b, err := k.Compile(t.Context(), point)
				require.NoError(t, err)
				if want == store.Compile {
					require.Equal(t, want, b.Outcome)
					require.Contains(t, b.Error, "refused")
					continue
				}
				require.Empty(t, b.Outcome, b.Error)
				require.Greater(t, b.Registers, 0)
				require.Greater(t, b.CTAsPerSM, 0)
				r, err := k.Run(t.Context(), point, 3)
				require.NoError(t, err)
				require.Equal(t, want, r.Outcome, "%d: %s", what, r.Error)
				if want != store.Correct {
					continue
				}
				require.True(t, r.Verified)
				if measures {
					require.Equal(t, []float64{7, 7, 7}, r.Samples)
					require.Equal(t, bench.Measured, r.Provenance)
				} else {
					require.Greater(t, r.TimeUS, 0.0)
					require.Equal(t, bench.Predicted, r.Provenance)
				}
			}
		})
	}
}

// Zeros that the reference writes and a kernel does not are wrong, from a reference that ran
// and from one that is remembered; what neither writes is not compared.
func TestZerosMustBeWritten(t *testing.T) {
	const text = `{
  "source": "scale.cu", "kernel": "relu", "sizes": {"n": 1000},
  "parameters": [{"name": "all", "values": [0, 1]}],
  "grid": "ceildiv(n, 128)", "block": 128%s,
  "arguments": ["f32[{n}]:random", "f32[{n}]:none", "i32={n}"],
  "reference": {"kernel": "relu", "grid": "ceildiv(n, 128)", "block": 128, "defines": {"all": 1}}
}`
	const relu = `
extern "C" __global__ void relu(const float *x, float *y, int n) {
	int at = blockIdx.x * blockDim.x + threadIdx.x;
	if (at < n - 8 && (all || x[at] > 0)) y[at] = x[at] > 0 ? x[at] : 0;
}`
	for _, measures := range []bool{false, true} {
		for _, blocks := range []string{"", `, "blocks": 2`} {
			kept := t.TempDir()
			for range 2 {
				k := written(t, fmt.Sprintf(text, blocks), relu, measures)
				var err error
				k.Cache, err = cache.Open(kept)
				require.NoError(t, err)
				for all, want := range []store.Outcome{store.Correctness, store.Correct} {
					if blocks != "" && !measures {
						want = store.Correct // which of the zeros are other blocks' is not known
					}
					r, err := k.Run(t.Context(), []int{all}, 0)
					require.NoError(t, err)
					require.Equal(t, want, r.Outcome, "%d measured %v%s: %s", all, measures, blocks, r.Error)
					if want == store.Correctness && !measures {
						require.Contains(t, r.Error, "was never written, want 0")
					}
				}
			}
		}
	}
}

// A check that is done again has other contents: a kernel that is right for those of the
// first check alone shows.
func TestAgain(t *testing.T) {
	args, err := kernel(t, false).Spec.Buffers(0)
	require.NoError(t, err)
	first := fmt.Sprintf("__float_as_uint(in[0]) == 0x%xu", binary.LittleEndian.Uint32(args[0].Buffer.Data))
	for _, measures := range []bool{false, true} {
		k := written(t, description, strings.Replace(source, "what == 2", "!("+first+")", 1), measures)
		point := []int{0, 0}
		for range 2 {
			r, err := k.Run(t.Context(), point, 0)
			require.NoError(t, err)
			require.Equal(t, store.Correct, r.Outcome, r.Error)
			r, err = k.Run(t.Context(), point, trial.Again)
			require.NoError(t, err)
			require.Equal(t, store.Correctness, r.Outcome)
		}
		right := kernel(t, measures)
		r, err := right.Run(t.Context(), point, trial.Again)
		require.NoError(t, err)
		require.Equal(t, store.Correct, r.Outcome, r.Error)
		require.True(t, r.Verified)
	}
}

// What no configuration can be run with is the description's mistake, whether it is looked
// for or met.
func TestMistakes(t *testing.T) {
	for name, tt := range map[string]struct{ old, new, want string }{
		"right":                     {"", "", ""},
		"too few arguments":         {`, "i32={n}"`, ``, "reference plain: scale.cu: kernel plain: 2 arguments: want 3"},
		"parameters of another":     {`"kernel": "scale"`, `"kernel": "other"`, "configuration block=64 what=0: other: kernel other: 3 arguments: want 1 (u64)"},
		"argument of another size":  {`"i32={n}"`, `"f16=1"`, "args[2] is f16 of 2 bytes: want 4 bytes"},
		"reference is refused":      {`"what": 0`, `"what": 1`, "reference plain: compiling scale.cu for sm_80: scale.cu:3: error: static assertion failed"},
		"reference has no such":     {`"plain"`, `"simple"`, "scale.cu: no kernel simple: it has "},
		"reference takes others":    {`"kernel": "plain"`, `"kernel": "other"`, "reference other: scale.cu: kernel other: 3 arguments: want 1"},
		"reference faults":          {`"what": 0`, `"what": 0, "far": 1`, "reference plain: "},
		"kernel is not there":       {`"kernel": "scale"`, `"kernel": "scales"`, "scale.cu: no kernel scales: it has "},
		"reference's launch is bad": {`"grid": 1, "block": 128, "defines"`, `"grid": 1, "block": 4096, "defines"`, "reference plain: "},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, description, tt.old)
			text := strings.Replace(description, tt.old, tt.new, 1)
			k := described(t, text, false)
			_, checked := k.Check(t.Context(), []int{0, 0})
			_, met := k.Run(t.Context(), []int{0, 0}, 0)
			if tt.want == "" {
				require.NoError(t, checked)
				require.NoError(t, met)
				return
			}
			require.ErrorIs(t, met, trial.ErrMistake)
			require.ErrorContains(t, met, tt.want)
			if name != "reference faults" { // which shows when it runs
				require.ErrorIs(t, checked, trial.ErrMistake)
				require.Equal(t, met.Error(), checked.Error())
			}
		})
	}
}

// A parameter may have a name that the compiler's own headers use, and errors name the
// source's own lines.
func TestNamesOfHeaders(t *testing.T) {
	k := written(t, `{"source": "scale.cu", "kernel": "fill", "parameters": [{"name": "a", "values": [3, 0]}, {"name": "size", "values": [4]}],
		"grid": 1, "block": 32, "arguments": ["i32[32]:zeros"]}`, `
extern "C" __global__ void fill(int *out) {
	static_assert(a > 0, "nothing");
	out[threadIdx.x] = a + size;
}`, false)
	b, err := k.Compile(t.Context(), []int{0, 0})
	require.NoError(t, err)
	require.Empty(t, b.Outcome, b.Error)
	b, err = k.Compile(t.Context(), []int{1, 0})
	require.NoError(t, err)
	require.Equal(t, store.Compile, b.Outcome)
	require.Contains(t, b.Error, "scale.cu:3: error: static assertion failed")
}

// The digest of what is compiled follows the source and what it includes, not the folder.
func TestProgramFollowsItsFiles(t *testing.T) {
	a, b := kernel(t, false), kernel(t, false)
	first, err := a.Program([]int{0, 0})
	require.NoError(t, err)
	same, err := b.Program([]int{0, 0})
	require.NoError(t, err)
	require.Equal(t, first, same)
	other, err := a.Program([]int{1, 0})
	require.NoError(t, err)
	require.NotEqual(t, first, other)
	file := b.Spec.Path("scale.cu")
	require.NoError(t, os.WriteFile(b.Spec.Path("extra.h"), []byte("// 1"), 0o666))
	require.NoError(t, os.WriteFile(file, []byte("#include \"extra.h\"\n"+source), 0o666))
	included := func(text string) string {
		require.NoError(t, os.WriteFile(b.Spec.Path("extra.h"), []byte(text), 0o666))
		fresh := &trial.Kernel{Spec: b.Spec}
		p, err := fresh.Program([]int{0, 0})
		require.NoError(t, err)
		return p
	}
	require.NotEqual(t, included("// 1"), included("// 2"))
}
