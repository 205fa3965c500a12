package cudac_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/cudac"
	"github.com/kgen-dev/kgen/codegen/nvrtc"
	"github.com/kgen-dev/kgen/codegen/nvrtc/nvrtctest"
	"github.com/kgen-dev/kgen/codegen/ptx"
	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/codegen/simt/simttest"
)

var update = flag.Bool("update", false, "write the golden files")

// TestPrintGolden compares the sample kernels' CUDA C with testdata.
func TestPrintGolden(t *testing.T) {
	for _, m := range simttest.Modules() {
		k := m.Kernels[0]
		simt.Clean(k)
		out, err := cudac.Print(m)
		require.NoError(t, err)
		path := filepath.Join("testdata", k.Name+".cu")
		if *update {
			require.NoError(t, os.WriteFile(path, []byte(out.Text), 0o644))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(want), out.Text, "%s: run with -update if the change is wanted", path)
	}
}

// TestPrintCompiles has NVRTC compile every operation, without an include path
// and without a warning.
func TestPrintCompiles(t *testing.T) {
	c := nvrtctest.Compiler(t)
	for _, m := range append(simttest.Modules(), simttest.Operations()...) {
		t.Run(m.Kernels[0].Name+"/"+m.Arch, func(t *testing.T) {
			out, err := cudac.Print(m)
			require.NoError(t, err)
			r, err := c.Compile(t.Context(), nvrtc.Source{Name: "k.cu", Text: out.Text}, nvrtc.Options{Arch: m.Arch})
			require.NoError(t, err, out.Text)
			require.Empty(t, nvrtc.Diagnose(r.Log), out.Text)
		})
	}
}

// TestPrintLines checks that each line's origin follows the notes.
func TestPrintLines(t *testing.T) {
	m := simttest.Modules()[3]
	out, err := cudac.Print(m)
	require.NoError(t, err)
	lines := regexp.MustCompile(`\n`).Split(out.Text, -1)
	require.Len(t, out.Lines, len(lines)-1)
	found := 0
	for i, l := range lines[:len(lines)-1] {
		if regexp.MustCompile(`^ +mma_m16n8k16_f16_f32\(`).MatchString(l) {
			found++
			require.Equal(t, cudac.Origin{Kernel: "double_buffer", Note: "multiply this one"}, out.Lines[i])
		}
	}
	require.Equal(t, 64, found)
	require.Equal(t, cudac.Origin{}, out.Lines[0])
}

// TestNoWorseThanPTX compares what ptxas makes of NVRTC's PTX and of ours: the
// detour through CUDA C may not cost registers or instructions.
func TestNoWorseThanPTX(t *testing.T) {
	c, ptxas, nvdisasm := nvrtctest.Compiler(t), nvrtctest.Ptxas(t), nvrtctest.Nvdisasm(t)
	instr := regexp.MustCompile(`(?m)^ +/\*[0-9a-f]{4,}\*/`)
	for _, m := range simttest.Modules() {
		simt.Clean(m.Kernels[0])
		source, err := cudac.Print(m)
		require.NoError(t, err)
		flags := []string{"--fmad=false", "--ptxas-options=-v"}
		a, err := c.Compile(t.Context(), nvrtc.Source{Name: "k.cu", Text: source.Text}, nvrtc.Options{Arch: m.Arch, Flags: flags})
		require.NoError(t, err)
		direct, err := ptx.FromSIMT(m)
		require.NoError(t, err)
		b, err := ptxas.Assemble(t.Context(), []byte(direct.String()), m.Arch)
		require.NoError(t, err)
		sassA, err := nvdisasm.Disassemble(t.Context(), a.Cubin, "-c")
		require.NoError(t, err)
		sassB, err := nvdisasm.Disassemble(t.Context(), b.Cubin, "-c")
		require.NoError(t, err)
		regsA, regsB := nvrtc.ParseUsage(a.Log)[0].Registers, b.Usage[0].Registers
		instrA, instrB := len(instr.FindAllString(sassA, -1)), len(instr.FindAllString(sassB, -1))
		t.Logf("%s: registers %d by NVRTC, %d directly; instructions %d and %d", m.Kernels[0].Name, regsA, regsB, instrA, instrB)
		require.LessOrEqual(t, regsA, regsB+8, m.Kernels[0].Name)
		require.LessOrEqual(t, instrA, instrB+instrB/10, m.Kernels[0].Name)
		require.LessOrEqual(t, instrB, instrA+instrA/10, m.Kernels[0].Name)
	}
}

func BenchmarkPrint(b *testing.B) {
	m := simttest.Modules()[3]
	simt.Clean(m.Kernels[0])
	b.ReportAllocs()
	for b.Loop() {
		_, err := cudac.Print(m)
		require.NoError(b, err)
	}
}
