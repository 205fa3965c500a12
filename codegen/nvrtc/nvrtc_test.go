package nvrtc_test

import (
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/nvrtc"
	"github.com/kgen-dev/kgen/codegen/nvrtc/nvrtctest"
)

// reverse turns 64 floats round through shared memory.
const reverse = `extern "C" __global__ void reverse(float *p, int n) {
	__shared__ float s[64];
	int i = threadIdx.x;
	s[i] = p[i];
	__syncthreads();
	if (i < n) p[i] = s[63 - i];
}
`

func TestCompile(t *testing.T) {
	c := nvrtctest.Compiler(t)
	tests := []struct {
		arch   string
		target string
		cubin  bool
	}{
		{"compute_80", ".target sm_80", false},
		{"sm_80", ".target sm_80", true},
		{"sm_90a", ".target sm_90a", true},
		{"sm_120", ".target sm_120", true},
	}
	for _, tt := range tests {
		t.Run(tt.arch, func(t *testing.T) {
			r, err := c.Compile(t.Context(), nvrtc.Source{Name: "reverse.cu", Text: reverse}, nvrtc.Options{Arch: tt.arch})
			require.NoError(t, err)
			require.Contains(t, string(r.PTX), ".visible .entry reverse(")
			require.Contains(t, string(r.PTX), tt.target)
			require.NotContains(t, string(r.PTX), ".loc")
			require.NotEqual(t, byte(0), r.PTX[len(r.PTX)-1])
			require.Empty(t, r.Log)
			if !tt.cubin {
				require.Nil(t, r.Cubin)
				return
			}
			_, err = elf.NewFile(bytes.NewReader(r.Cubin))
			require.NoError(t, err)
		})
	}
}

func TestCompileIsDeterministic(t *testing.T) {
	c := nvrtctest.Compiler(t)
	opt := nvrtc.Options{Arch: "sm_80", LineInfo: true, Flags: []string{"--ptxas-options=-v"}}
	first, err := c.Compile(t.Context(), nvrtc.Source{Name: "reverse.cu", Text: reverse}, opt)
	require.NoError(t, err)
	second, err := c.Compile(t.Context(), nvrtc.Source{Name: "reverse.cu", Text: reverse}, opt)
	require.NoError(t, err)
	require.Equal(t, first, second)
	require.Contains(t, string(first.PTX), ".loc")
	usage := nvrtc.ParseUsage(first.Log)
	require.Len(t, usage, 1)
	require.Equal(t, "reverse", usage[0].Kernel)
	require.Equal(t, 64*4, usage[0].SharedBytes)
	require.Equal(t, 1, usage[0].Barriers)
	require.Positive(t, usage[0].Registers)
}

// Errors carry the line that #line gives, so that a message about generated
// code leads back to what it was generated from.
func TestCompileError(t *testing.T) {
	c := nvrtctest.Compiler(t)
	src := nvrtc.Source{Name: "gen.cu", Text: "#line 7 \"norm.tile\"\n__device__ int f() { int unused; return y; }\n__device__ void g() { h(); }\n"}
	_, err := c.Compile(t.Context(), src, nvrtc.Options{Arch: "sm_80"})
	var ce *nvrtc.CompileError
	require.ErrorAs(t, err, &ce)
	require.EqualError(t, err, `compiling gen.cu for sm_80: norm.tile:7: error: identifier "y" is undefined (and 1 more)`)
	require.Equal(t, []nvrtc.Diagnostic{
		{File: "norm.tile", Line: 7, Severity: nvrtc.Error, Message: `identifier "y" is undefined`},
		{File: "norm.tile", Line: 8, Severity: nvrtc.Error, Message: `identifier "h" is undefined`},
		{File: "norm.tile", Line: 7, Severity: nvrtc.Warning, Message: `variable "unused" was declared but never referenced`},
	}, sorted(ce.Diagnostics))
}

// sorted puts errors before warnings; NVRTC orders them by its own passes.
func sorted(ds []nvrtc.Diagnostic) []nvrtc.Diagnostic {
	var out []nvrtc.Diagnostic
	for _, s := range []nvrtc.Severity{nvrtc.Error, nvrtc.Warning, nvrtc.Info} {
		for _, d := range ds {
			if d.Severity == s {
				out = append(out, d)
			}
		}
	}
	return out
}

func TestCompileRefuses(t *testing.T) {
	c := nvrtctest.Compiler(t)
	tests := []struct {
		name string
		text string
		opt  nvrtc.Options
		want string
		is   error
	}{
		{"newer architecture", reverse, nvrtc.Options{Arch: "sm_999"}, "does not compile for sm_999: it is too old, sm_", nvrtc.ErrArch},
		{"older architecture", reverse, nvrtc.Options{Arch: "sm_20"}, "does not compile for sm_20: it is too new, sm_", nvrtc.ErrArch},
		{"no architecture", reverse, nvrtc.Options{}, `"" is no architecture: want a name such as sm_80`, nvrtc.ErrArch},
		{"option for an architecture", reverse, nvrtc.Options{Arch: "sm_80 --x"}, `"sm_80 --x" is no architecture`, nvrtc.ErrArch},
		{"unknown flag", reverse, nvrtc.Options{Arch: "sm_80", Flags: []string{"--bogus"}}, "unrecognized option --bogus", nil},
		{"NUL in the source", "int\x00x;", nvrtc.Options{Arch: "sm_80"}, "NUL byte at offset 3", nil},
		{"bad inline PTX", `extern "C" __global__ void k() { asm("bogus;"); }`, nvrtc.Options{Arch: "sm_80"}, "Not a name of any known instruction: 'bogus'", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := c.Compile(t.Context(), nvrtc.Source{Name: "x.cu", Text: tt.text}, tt.opt)
			require.ErrorContains(t, err, tt.want)
			if tt.is != nil {
				require.ErrorIs(t, err, tt.is)
			}
		})
	}
}

// slow takes the optimiser minutes: a straight line of dependent arithmetic.
func slow() string {
	return `extern "C" __global__ void slow(float *p) {
	float a = p[0], b = p[1];
` + strings.Repeat("\ta = sinf(a) * powf(b, a); b = cosf(b) / a;\n", 4000) + "\tp[0] = a + b;\n}\n"
}

func TestCompileIsCancelled(t *testing.T) {
	c := nvrtctest.Compiler(t)
	if major, minor := c.Version(); major < 12 || major == 12 && minor < 9 {
		t.Skipf("NVRTC %d.%d cannot be cancelled", major, minor)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := c.Compile(ctx, nvrtc.Source{Name: "slow.cu", Text: slow()}, nvrtc.Options{Arch: "sm_80"})
	require.ErrorIs(t, err, context.DeadlineExceeded)

	_, err = c.Compile(ctx, nvrtc.Source{Name: "reverse.cu", Text: reverse}, nvrtc.Options{Arch: "sm_80"})
	require.ErrorIs(t, err, context.DeadlineExceeded, "a context that is done compiles nothing")
}

func TestCompileFromManyGoroutines(t *testing.T) {
	c := nvrtctest.Compiler(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			name := fmt.Sprintf("kernel%d", i)
			text := strings.Replace(reverse, "reverse", name, 1)
			if i%4 == 3 {
				text += "error"
			}
			r, err := c.Compile(t.Context(), nvrtc.Source{Name: name + ".cu", Text: text}, nvrtc.Options{Arch: "compute_80"})
			switch {
			case i%4 == 3 && err == nil:
				t.Errorf("%s compiles", name)
			case i%4 != 3 && err != nil:
				t.Error(err)
			case err == nil && !strings.Contains(string(r.PTX), ".entry "+name+"("):
				t.Errorf("the PTX of %s is another kernel's", name)
			}
		})
	}
	wg.Wait()
}

func BenchmarkCompile(b *testing.B) {
	c := nvrtctest.Compiler(b)
	for b.Loop() {
		_, err := c.Compile(b.Context(), nvrtc.Source{Name: "reverse.cu", Text: reverse}, nvrtc.Options{Arch: "sm_80"})
		require.NoError(b, err)
	}
}

// A template's kernel that nothing in the source asks for is made by its name.
func TestCompileInstance(t *testing.T) {
	c := nvrtctest.Compiler(t)
	src := nvrtc.Source{Name: "t.cu", Text: "#define N 3\ntemplate <typename T, int U> __global__ void axpy(T *x) { *x *= U; }"}
	r, err := c.Compile(t.Context(), src, nvrtc.Options{Arch: "sm_80", Kernel: nvrtc.Instance("axpy<float, N>")})
	require.NoError(t, err)
	require.Equal(t, "_Z4axpyIfLi3EEvPT_", r.Kernel)
	require.Contains(t, string(r.PTX), ".entry "+r.Kernel+"(")
	_, err = c.Compile(t.Context(), src, nvrtc.Options{Arch: "sm_80", Kernel: "axpy<float>"})
	var refused *nvrtc.CompileError
	require.ErrorAs(t, err, &refused)
	require.Empty(t, nvrtc.Instance("axpy"))
}
