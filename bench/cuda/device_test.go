//go:build cuda && cgo && linux

package cuda

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// testDriver opens testdata/driver.c in the driver's place, whether or not the machine
// has one.
func testDriver(t *testing.T) bench.Device {
	t.Helper()
	lib := filepath.Join(t.TempDir(), libraryName)
	out, err := exec.CommandContext(t.Context(), "cc", "-shared", "-fPIC", "-Iinclude", "-o", lib, filepath.Join("testdata", "driver.c")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, openLibrary(lib))
	d, err := Open(0)
	require.NoError(t, err)
	return d
}

const kernels = `.version 8.0
.target sm_90
.address_size 64
.visible .entry vecadd(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n) { ret; }
.visible .entry echo(.param .u64 to, .param .u8 x, .param .u64 y, .param .u32 z, .param .align 64 .b8 map[128]) { ret; }
.visible .entry strays() { ret; }
.visible .entry endless() { ret; }
`

func TestNoDevice(t *testing.T) {
	testDriver(t).Close()
	_, err := Open(1)
	require.EqualError(t, err, "GPU 1: the driver has 1, counted from 0")
	_, err = Open(-1)
	require.Error(t, err)
}

// Memory holds what was written and elsewhere ones; everything is given back.
func TestMemory(t *testing.T) {
	d := testDriver(t)
	require.Equal(t, "Test GPU", d.Name())
	require.Equal(t, bench.Measured, d.Provenance())
	b, err := d.Alloc(16, 0)
	require.NoError(t, err)
	require.NoError(t, d.Write(b, 4, []byte("abcd")))
	got := make([]byte, 8)
	require.NoError(t, d.Read(b, 2, got))
	require.Equal(t, "\xff\xffabcd\xff\xff", string(got))
	require.ErrorContains(t, d.Write(b, 13, []byte("abcd")), "the buffer has 16")
	require.ErrorContains(t, d.Read(b, -1, got), "the buffer has 16")
	_, err = d.Alloc(2<<30, 0)
	var failed *Error
	require.ErrorAs(t, err, &failed)
	require.Equal(t, &Error{Call: "cuMemAlloc", Code: 2, Text: "something is wrong (2)"}, failed)
	_, err = d.Alloc(1, 512)
	require.Error(t, err)
	require.NoError(t, d.Free(b))
	require.NoError(t, d.Close())
}

func TestLaunch(t *testing.T) {
	d := testDriver(t)
	m, err := d.Load(t.Context(), "k.ptx", []byte(kernels))
	require.NoError(t, err)
	require.Len(t, m.Kernels, 4)
	to, err := d.Alloc(176, 0)
	require.NoError(t, err)
	tensor := &bench.TensorMap{
		Type: ptx.BF16, Address: 4096, Dims: []uint64{64, 7}, Strides: []uint64{256}, Box: []uint32{32, 5}, Swizzle: 128, Atom: 64, FillNaN: true,
	}
	tm, err := d.TensorMap(tensor)
	require.NoError(t, err)
	launch := bench.Launch{
		Grid: [3]uint32{2, 1, 1}, Block: [3]uint32{32}, Cluster: [3]uint32{2}, SharedBytes: 90000,
		Args: []bench.Arg{bench.Pointer(to), {7}, bench.U64(1 << 40), bench.U32(9), tm},
	}
	r, err := d.Launch(t.Context(), m, "echo", launch)
	require.NoError(t, err)
	require.Equal(t, 250*time.Microsecond, r.Time)
	got := make([]byte, 176)
	require.NoError(t, d.Read(to, 0, got))
	require.EqualValues(t, 7, got[0])
	require.EqualValues(t, 1<<40, binary.LittleEndian.Uint64(got[8:]))
	require.EqualValues(t, 9, binary.LittleEndian.Uint32(got[16:]))
	for i, want := range []uint64{9, 2, 4096, 64, 7, 256, 32, 5, 1, 1, 0, 6, 1} {
		require.Equal(t, want, binary.LittleEndian.Uint64(got[32+8*i:]), "number %d of the tensor map", i)
	}
	require.Equal(t, []uint32{2, 1, 1, 0}, launched(t, d, to))
	for _, early := range []bool{false, true} {
		for _, cluster := range []uint32{0, 2} {
			how := launch
			how.Early, how.Cluster = early, [3]uint32{cluster}
			_, err := d.Launch(t.Context(), m, "echo", how)
			require.NoError(t, err)
			want := []uint32{cluster, cluster / 2, cluster / 2, 0}
			if early {
				want[3] = 1
			}
			require.Equal(t, want, launched(t, d, to))
		}
	}
	for want, change := range map[string]func(*bench.Launch){
		"kernel echo: 4 arguments: the kernel has 5 parameters":               func(l *bench.Launch) { l.Args = l.Args[:4] },
		"kernel echo: argument 1: 4 bytes: parameter x has 1":                 func(l *bench.Launch) { l.Args = append([]bench.Arg{l.Args[0], bench.U32(1)}, l.Args[2:]...) },
		"kernel echo: 100001 bytes of shared memory: Test GPU has 100000 for": func(l *bench.Launch) { l.SharedBytes = 100001 },
		"kernel echo: some blocks of a grid: a GPU runs all":                  func(l *bench.Launch) { l.Blocks = [][3]uint32{{1}} },
	} {
		bad := launch
		change(&bad)
		_, err := d.Launch(t.Context(), m, "echo", bad)
		require.ErrorContains(t, err, want)
	}
	require.NoError(t, d.Free(to))
	require.NoError(t, d.Unload(m))
	require.Error(t, d.Unload(m))
	_, err = d.Launch(t.Context(), m, "echo", launch)
	require.ErrorContains(t, err, "not loaded")
	require.NoError(t, d.Close())
}

// Maps of pixels are what the driver's calls for those make.
func TestIm2colMaps(t *testing.T) {
	d := testDriver(t)
	defer d.Close()
	m := &bench.TensorMap{
		Type: ptx.F16, Address: 8192, Dims: []uint64{64, 9, 9, 3}, Strides: []uint64{128, 1152, 10368}, ElementStrides: []uint32{1, 2, 2, 1}, Swizzle: 128,
		Im2col: &bench.Im2col{Lower: []int32{-1, -2}, Upper: []int32{-3, -4}, Channels: 64, Pixels: 32},
	}
	for _, wide := range []bool{false, true} {
		want := []uint64{6, 4, 8192, 3, 10368, ^uint64(0), ^uint64(1), ^uint64(2), ^uint64(3), 64, 32, 2, 0, 3, 0, 0}
		if m.Im2col.Wide = wide; wide {
			m.Im2col.Lower, m.Im2col.Upper, want[6], want[8] = m.Im2col.Lower[:1], m.Im2col.Upper[:1], 0, 0
		}
		got, err := d.TensorMap(m)
		require.NoError(t, err)
		for i := range want {
			require.Equal(t, want[i], binary.LittleEndian.Uint64(got[8*i:]), "number %d of the map", i)
		}
	}
	m.Im2col.Upper = nil
	_, err := d.TensorMap(m)
	require.ErrorContains(t, err, "im2col map of 4 dimensions with 1 lower and 0 upper corners: want 3 to 5 dimensions, and 1 of both")
}

// launched is what the kernel echo was launched with beside its arguments: the extents of
// clusters, and whether it may start early.
func launched(t *testing.T, d bench.Device, to bench.Buffer) []uint32 {
	t.Helper()
	b := make([]byte, 16)
	require.NoError(t, d.Read(to, 160, b))
	out := make([]uint32, 4)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return out
}

// Several launches are one span of time, and what one of them does wrong is theirs.
func TestLaunchAll(t *testing.T) {
	d := testDriver(t)
	defer d.Close()
	all, ok := d.(bench.Overlapper)
	require.True(t, ok)
	m, err := d.Load(t.Context(), "k.ptx", []byte(kernels))
	require.NoError(t, err)
	to, err := d.Alloc(176, 0)
	require.NoError(t, err)
	echo := func(x byte, early bool) bench.Launch {
		return bench.Launch{Early: early, Args: []bench.Arg{bench.Pointer(to), {x}, bench.U64(0), bench.U32(0), make(bench.Arg, 128)}}
	}
	r, err := all.LaunchAll(t.Context(), m, []string{"echo", "echo"}, []bench.Launch{echo(1, false), echo(2, true)})
	require.NoError(t, err)
	require.Equal(t, 250*time.Microsecond, r.Time)
	got := make([]byte, 1)
	require.NoError(t, d.Read(to, 0, got))
	require.EqualValues(t, 2, got[0])
	require.Equal(t, []uint32{0, 0, 0, 1}, launched(t, d, to))

	_, err = all.LaunchAll(t.Context(), m, []string{"echo", "strays"}, []bench.Launch{echo(1, false), {SharedBytes: -1}})
	require.ErrorContains(t, err, "kernel strays: -1 bytes of shared memory")
	_, err = all.LaunchAll(t.Context(), m, []string{"strays", "echo"}, []bench.Launch{{}, echo(3, true)})
	require.EqualError(t, err, "k.ptx: kernel strays, echo: an illegal memory access was encountered (700)")
}

// PTX that the driver refuses is refused with its log; PTX that is none before that.
func TestLoadRefuses(t *testing.T) {
	d := testDriver(t)
	defer d.Close()
	_, err := d.Load(t.Context(), "k.ptx", []byte(regexp.MustCompile("sm_90").ReplaceAllString(kernels, "sm_90, debug")+"// sm_999\n"))
	require.ErrorContains(t, err, "k.ptx: Test GPU refuses it: cuModuleLoadDataEx: something is wrong (209): no such target")
	_, err = d.Load(t.Context(), "k.ptx", []byte("no PTX"))
	require.ErrorContains(t, err, "k.ptx:1")
}

// A kernel that does wrong ends the context; that is its error, not the device's.
func TestKernelThatFails(t *testing.T) {
	d := testDriver(t)
	defer d.Close()
	m, err := d.Load(t.Context(), "k.ptx", []byte(kernels))
	require.NoError(t, err)
	_, err = d.Launch(t.Context(), m, "strays", bench.Launch{})
	var died *bench.KernelError
	require.ErrorAs(t, err, &died)
	require.EqualError(t, died, "k.ptx: kernel strays: an illegal memory access was encountered (700)")
	_, err = d.Alloc(1, 0)
	require.ErrorContains(t, err, "kernel strays ended the context")
}

// A kernel without an end is left when the caller's patience ends.
func TestKernelWithoutEnd(t *testing.T) {
	d := testDriver(t)
	defer d.Close()
	m, err := d.Load(t.Context(), "k.ptx", []byte(kernels))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	_, err = d.Launch(ctx, m, "endless", bench.Launch{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = d.Alloc(1, 0)
	require.EqualError(t, err, "kernel endless still runs")
}

// Every call that the binding makes is in the table, and in the linker script.
func TestEveryCallIsForwarded(t *testing.T) {
	table, err := os.ReadFile(filepath.Join("include", "calls.h"))
	require.NoError(t, err)
	script, err := os.ReadFile(filepath.Join("lib", "libcuda.so"))
	require.NoError(t, err)
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^CALL\((\w+),`).FindAllSubmatch(table, -1) {
		names = append(names, string(m[1]))
		require.Contains(t, string(script), "\nPROVIDE("+string(m[1])+" = main);\n")
	}
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "github.com/mumax/3/cuda/cu").Output()
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(string(dir[:len(dir)-1]), "*.go"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`C\.(cu[A-Z]\w+)\(`).FindAllSubmatch(text, -1) {
			require.Contains(t, names, string(m[1]))
		}
	}
}

func TestPanicsOfOthersGoOn(t *testing.T) {
	th := newThread()
	defer th.end()
	require.PanicsWithError(t, "mine", func() {
		th.do(func() error { panic(errors.New("mine")) }) //nolint:errcheck // it panics
	})
}
