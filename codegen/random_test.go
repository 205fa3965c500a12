package codegen_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/nvrtc"
	"github.com/kgen-dev/kgen/codegen/nvrtc/nvrtctest"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/eval"
	"github.com/kgen-dev/kgen/ir/irtest"
)

var gpuNames = []string{"a100", "rtx3090", "h100", "rtx5090", "t4"}

// TestRandomPrograms compiles random tile programs, runs them on the virtual machine
// and holds the results to the interpreter's: to the bit, but for what the program says
// is approximated. KGEN_SEED runs one program alone and prints it.
func TestRandomPrograms(t *testing.T) {
	first, count := firstSeed(), samples(60)
	if seed, err := strconv.ParseUint(os.Getenv("KGEN_SEED"), 10, 64); err == nil {
		first, count = seed, 1
	}
	for seed := first; seed < first+count; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			c, gpu := drawCase(t, seed)
			if count == 1 {
				t.Log(c.Prog)
				for i, p := range c.Prog.Params {
					if x := c.Args[i].Tensor; x != nil {
						t.Logf("%s: sizes %v, strides %v", p.Name, x.Shape, x.Strides)
					} else {
						t.Logf("%s: %d", p.Name, c.Args[i].Int)
					}
				}
			}
			compareCase(t, c, gpu, direct)
		})
	}
}

// TestRandomCUDA does the same with NVRTC's PTX of the CUDA C.
func TestRandomCUDA(t *testing.T) {
	cc := nvrtctest.Compiler(t)
	for seed := firstSeed(); seed < firstSeed()+samples(6); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			c, gpu := drawCase(t, seed)
			compareCase(t, c, gpu, func(c *codegen.Compiled) (string, error) {
				src, err := c.CUDA()
				if err != nil {
					return "", err
				}
				if len(src) > 300_000 {
					t.Skipf("%d bytes of CUDA C would take NVRTC minutes", len(src))
				}
				o := nvrtc.Options{Arch: c.Module.Virtual(), Flags: []string{"--fmad=false"}}
				res, err := cc.Compile(context.Background(), nvrtc.Source{Name: "random.cu", Text: src}, o)
				if err != nil {
					return "", err
				}
				return string(res.PTX), nil
			})
		})
	}
}

// TestRandomAssembles holds that ptxas takes the PTX of random programs.
func TestRandomAssembles(t *testing.T) {
	tool := nvrtctest.Ptxas(t)
	for seed := firstSeed(); seed < firstSeed()+samples(6); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			c, gpu := drawCase(t, seed)
			compiled, err := codegen.Compile(c.Prog, gpu, codegen.Options{})
			if errors.Is(err, codegen.ErrResources) {
				t.Skip(err)
			}
			require.NoError(t, err)
			text, err := compiled.PTX()
			require.NoError(t, err)
			if len(text) > 300_000 {
				t.Skipf("%d bytes of PTX would take ptxas minutes", len(text))
			}
			_, err = tool.Assemble(context.Background(), []byte(text), compiled.Module.Arch, "-O0")
			require.NoError(t, err)
		})
	}
}

// drawCase draws a random program for a GPU of its seed.
func drawCase(tb testing.TB, seed uint64) (*irtest.Case, *target.GPU) {
	tb.Helper()
	gpu, err := target.Lookup(gpuNames[seed%uint64(len(gpuNames))])
	require.NoError(tb, err)
	var lacks []ir.Elem
	if gpu.CC.SM() < 80 {
		lacks = append(lacks, ir.BF16)
	}
	c, err := irtest.NewCase(seed, lacks...)
	require.NoError(tb, err)
	return c, gpu
}

// direct is our own PTX.
func direct(c *codegen.Compiled) (string, error) { return c.PTX() }

// firstSeed is where tests begin that draw by seeds.
func firstSeed() uint64 {
	n, _ := strconv.ParseUint(os.Getenv("KGEN_FIRST"), 10, 64)
	return n
}

// compareCase runs a case both ways. What does not fit a GPU, or is not supported, is
// skipped.
func compareCase(t *testing.T, c *irtest.Case, gpu *target.GPU, ptx func(*codegen.Compiled) (string, error)) {
	t.Helper()
	compiled, err := codegen.Compile(c.Prog, gpu, codegen.Options{Verify: true})
	if errors.Is(err, codegen.ErrUnsupported) || errors.Is(err, codegen.ErrResources) {
		t.Skip(err)
	}
	require.NoError(t, err)
	text, err := ptx(compiled)
	require.NoError(t, err)
	want, got, staged := copyArgs(c.Args), copyArgs(c.Args), copyArgs(c.Args)
	require.NoError(t, eval.Run(context.Background(), c.Prog, want, eval.Options{}))
	prog := *c.Prog
	prog.Kernels = compiled.Staged
	require.NoError(t, eval.Run(context.Background(), &prog, staged, eval.Options{}))
	for i, p := range c.Prog.Params {
		if x := want[i].Tensor; x != nil {
			require.Equal(t, x.Data, staged[i].Tensor.Data, "%s of the staged program", p.Name)
		}
	}
	requireNoFaults(t, runOn(t, schedule(gpu, c), compiled, text, got, c.Skew))
	for i, p := range c.Prog.Params {
		if got[i].Tensor != nil {
			compareMemory(t, p.Name, c.Tol[i], want[i].Tensor, got[i].Tensor)
		}
	}
}

// schedule lets warps and copies run in one of several orders, by the program's size.
func schedule(gpu *target.GPU, c *irtest.Case) vm.Options {
	n := uint64(len(c.Prog.String()))
	return vm.Options{
		GPU: gpu, Seed: n,
		Schedule: []vm.Schedule{vm.InOrder, vm.Shuffle}[n%2],
		Async:    []vm.Async{vm.Late, vm.Early, vm.Random}[n%3],
	}
}

func copyArgs(args []eval.Arg) []eval.Arg {
	out := make([]eval.Arg, len(args))
	for i, a := range args {
		out[i] = a
		if a.Tensor != nil {
			x := *a.Tensor
			x.Data = append([]byte(nil), x.Data...)
			out[i].Tensor = &x
		}
	}
	return out
}

// compareMemory compares all of a tensor's memory, also what none of its elements is.
func compareMemory(t *testing.T, name string, tol irtest.Tolerance, want, got *eval.Tensor) {
	t.Helper()
	all := func(x *eval.Tensor) *eval.Tensor {
		return &eval.Tensor{Elem: x.Elem, Shape: []int{len(x.Data) * 8 / x.Elem.MemoryBits()}, Strides: []int{1}, Data: x.Data}
	}
	want, got = all(want), all(got)
	wrong := 0
	for i := range want.Shape[0] {
		w, g := want.Float(i), got.Float(i)
		if tol.Allows(w, g) {
			continue
		}
		if wrong++; wrong <= 3 {
			t.Errorf("%s, element %d of memory (%s): %v, want %v within %v", name, i, want.Elem, g, w, tol)
		}
	}
	if wrong > 3 {
		t.Errorf("%s: %d elements of %d are wrong", name, wrong, want.Shape[0])
	}
}

// TestDump writes what each pass makes of the program in the file $KGEN_TILE to the
// folder $KGEN_DUMP, for reading.
func TestDump(t *testing.T) {
	file, dir := os.Getenv("KGEN_TILE"), os.Getenv("KGEN_DUMP")
	if file == "" || dir == "" {
		t.Skip("KGEN_TILE and KGEN_DUMP say what to dump")
	}
	src, err := os.ReadFile(file)
	require.NoError(t, err)
	p, err := ir.Parse(file, src)
	require.NoError(t, err)
	gpu, err := target.Lookup("a100")
	require.NoError(t, err)
	dump := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	c, err := codegen.Compile(p, gpu, codegen.Options{Verify: true, Dump: func(k, pass, text string) { dump(k+"."+pass, text) }})
	require.NoError(t, err)
	text, err := c.PTX()
	require.NoError(t, err)
	dump(p.Name+".ptx", text)
}
