package nvrtc_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/nvrtc"
	"github.com/kgen-dev/kgen/codegen/nvrtc/nvrtctest"
)

// square is direct PTX that needs no feature newer than version 7.0.
const square = `.version 7.0
.target sm_80
.address_size 64
.visible .entry square(.param .u64 p)
{
	.reg .b64 %rd<3>;
	.reg .f32 %f<2>;
	.reg .b32 %r<2>;
	.shared .align 4 .b8 s[512];
	ld.param.u64 %rd1, [p];
	cvta.to.global.u64 %rd1, %rd1;
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd2, %r1, 4;
	add.s64 %rd1, %rd1, %rd2;
	ld.global.f32 %f1, [%rd1];
	st.shared.f32 [s], %f1;
	bar.sync 0;
	mul.f32 %f1, %f1, %f1;
	st.global.f32 [%rd1], %f1;
	ret;
}
`

func TestAssembleAndDisassemble(t *testing.T) {
	a, err := nvrtctest.Ptxas(t).Assemble(t.Context(), []byte(square), "sm_80")
	require.NoError(t, err)
	require.Len(t, a.Usage, 1)
	u := a.Usage[0]
	require.Equal(t, "square", u.Kernel)
	require.Equal(t, 512, u.SharedBytes)
	require.Equal(t, 1, u.Barriers)
	require.Positive(t, u.Registers)
	require.Zero(t, u.SpillStoreBytes+u.SpillLoadBytes+u.StackBytes)

	sass, err := nvrtctest.Nvdisasm(t).Disassemble(t.Context(), a.Cubin, "-c")
	require.NoError(t, err)
	require.Contains(t, sass, "FMUL")
	require.Contains(t, sass, "BAR.SYNC")
}

func TestAssembleRefuses(t *testing.T) {
	p := nvrtctest.Ptxas(t)
	tests := []struct{ name, ptx, arch, want string }{
		{"syntax", square + "foo", "sm_80", "kernel.ptx:22: error: Parsing error near 'foo'"},
		{"empty", "", "sm_80", "kernel.ptx"},
		{"binary", "\x7fELF\x00\xff", "sm_80", "kernel.ptx"},
		{"older architecture", square, "sm_20", "does not assemble for sm_20"},
		{"target above the architecture", square, "sm_75", "sm_75"},
		{"virtual architecture", square, "compute_80", `"compute_80" is no architecture ptxas assembles for`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := p.Assemble(t.Context(), []byte(tt.ptx), tt.arch)
			require.ErrorContains(t, err, tt.want)
			require.NotContains(t, err.Error(), os.TempDir())
		})
	}
}

func TestDisassembleRefuses(t *testing.T) {
	_, err := nvrtctest.Nvdisasm(t).Disassemble(t.Context(), []byte("no ELF"))
	require.ErrorContains(t, err, "nvdisasm of 6 bytes")
}

func TestToolVersions(t *testing.T) {
	for _, version := range []func(context.Context) (string, error){nvrtctest.Ptxas(t).Version, nvrtctest.Nvdisasm(t).Version} {
		v, err := version(t.Context())
		require.NoError(t, err)
		require.Regexp(t, `^\d+\.\d+\.\d+$`, v)
	}
}

// program writes a shell script that stands in for a tool.
func program(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tool")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755))
	return path
}

func TestToolIsKilledWithItsContext(t *testing.T) {
	p := nvrtc.Ptxas{Path: program(t, "sleep 600 & wait")}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := p.Assemble(ctx, []byte(square), "sm_80")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, nvrtc.ErrDeadline)
}

// A tool that hangs is killed, and so is what it started.
func TestToolHasADeadline(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "alive")
	p := nvrtc.Ptxas{Path: program(t, "(sleep 1; touch "+mark+") & wait"), Deadline: 50 * time.Millisecond}
	_, err := p.Assemble(t.Context(), []byte(square), "sm_80")
	require.ErrorIs(t, err, nvrtc.ErrDeadline)
	require.ErrorContains(t, err, "killed after 50ms")
	time.Sleep(1200 * time.Millisecond)
	require.NoFileExists(t, mark)
}

func TestToolThatPrintsWithoutEnd(t *testing.T) {
	p := nvrtc.Ptxas{Path: program(t, "head -c 70000000 /dev/zero")}
	_, err := p.Version(t.Context())
	require.ErrorContains(t, err, "printed more than 67108864 bytes")
}

// A tool that crashes is no fault of the PTX, and one that leaves no cubin
// behind has not assembled anything.
func TestToolThatFails(t *testing.T) {
	var ce *nvrtc.CompileError
	_, err := nvrtc.Ptxas{Path: program(t, "kill -SEGV $$")}.Assemble(t.Context(), []byte(square), "sm_80")
	require.Error(t, err)
	require.NotErrorAs(t, err, &ce)
	_, err = nvrtc.Ptxas{Path: program(t, "exit 0")}.Assemble(t.Context(), []byte(square), "sm_80")
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = nvrtc.Ptxas{Path: "/nonexistent/ptxas"}.Assemble(t.Context(), []byte(square), "sm_80")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func BenchmarkAssemble(b *testing.B) {
	p := nvrtctest.Ptxas(b)
	for b.Loop() {
		_, err := p.Assemble(b.Context(), []byte(square), "sm_80")
		require.NoError(b, err)
	}
}
