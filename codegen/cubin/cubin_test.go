package cubin_test

import (
	"encoding/binary"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/cubin"
	"github.com/kgen-dev/kgen/codegen/nvrtc"
	"github.com/kgen-dev/kgen/codegen/nvrtc/nvrtctest"
)

var update = flag.Bool("update", false, "compile the cubins in testdata again")

func read(tb testing.TB, name string) []byte {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(tb, err)
	return b
}

// compile compiles kernels.cu and returns what ptxas said about each kernel.
func compile(t *testing.T, arch string) (image []byte, usage map[string]nvrtc.Usage) {
	t.Helper()
	src := nvrtc.Source{Name: "kernels.cu", Text: string(read(t, "kernels.cu"))}
	r, err := nvrtctest.Compiler(t).Compile(t.Context(), src, nvrtc.Options{Arch: arch, Flags: []string{"--ptxas-options=-v"}})
	require.NoError(t, err)
	usage = map[string]nvrtc.Usage{}
	for _, u := range nvrtc.ParseUsage(r.Log) {
		usage[u.Kernel] = u
	}
	return r.Cubin, usage
}

// What is read from the file is what ptxas said when it wrote it, whatever the
// architecture.
func TestParseAgreesWithPtxas(t *testing.T) {
	for _, arch := range []string{"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_120"} {
		t.Run(arch, func(t *testing.T) {
			image, usage := compile(t, arch)
			f, err := cubin.Parse(image)
			require.NoError(t, err)
			require.Len(t, f.Kernels, 3)
			for _, k := range f.Kernels {
				u := usage[k.Name]
				got := nvrtc.Usage{
					Kernel: k.Name, Registers: k.Registers, Barriers: k.Barriers, StackBytes: k.StackBytes,
					SpillStoreBytes: k.SpillStoreBytes, SpillLoadBytes: k.SpillLoadBytes, SharedBytes: k.SharedBytes,
					ConstantBytes: u.ConstantBytes,
				}
				require.Equal(t, u, got)
				require.True(t, k.SpillsKnown)
			}
			require.Positive(t, f.Kernel("spill").SpillStoreBytes)
			require.Positive(t, f.Kernel("stack").StackBytes)
			require.Zero(t, f.Kernel("stack").SpillStoreBytes)
		})
	}
}

func TestParse(t *testing.T) {
	if *update {
		for _, arch := range []string{"sm_80", "sm_90a"} {
			image, _ := compile(t, arch)
			require.NoError(t, os.WriteFile(filepath.Join("testdata", arch+".cubin"), image, 0o644))
		}
	}
	f, err := cubin.Parse(read(t, "sm_80.cubin"))
	require.NoError(t, err)
	require.Equal(t, 80, f.CC)
	require.Nil(t, f.Kernel("pick"), "a device function is no kernel")
	require.Equal(t, &cubin.Kernel{
		Name: "shared", Registers: 10, Barriers: 4, SharedBytes: 256, SpillsKnown: true, CodeBytes: 640,
		MaxThreads: [3]int{128, 1, 1}, ParamBytes: 132, Params: []cubin.Param{{0, 8}, {8, 4}, {12, 120}},
	}, f.Kernel("shared"))
	spill := f.Kernel("spill")
	require.Equal(t, [3]int{1024, 1, 1}, spill.MaxThreads)
	require.Equal(t, 64, spill.Registers)
	require.Equal(t, 4*spill.LocalStores, spill.SpillStoreBytes, "spills of single registers")
	require.Equal(t, [3]int{}, f.Kernel("stack").MaxThreads)
	require.Positive(t, f.Kernel("stack").LocalLoads)

	f, err = cubin.Parse(read(t, "sm_90a.cubin"))
	require.NoError(t, err)
	require.Equal(t, 90, f.CC)
	require.Equal(t, 256, f.Kernel("shared").SharedBytes, "without the KiB that the system reserves")
	require.Zero(t, f.Kernel("stack").SharedBytes)
}

// The container of CUDA 12.4: another version and layout of flags, barriers in
// the section's flags, spills not marked.
func TestParseOldContainer(t *testing.T) {
	f, err := cubin.Parse(read(t, "sm_80-cuda12.4.cubin"))
	require.NoError(t, err)
	require.Equal(t, 80, f.CC)
	shared, spill := f.Kernel("shared"), f.Kernel("spill")
	require.Equal(t, 4, shared.Barriers)
	require.Equal(t, 256, shared.SharedBytes)
	require.True(t, shared.SpillsKnown, "there is no local memory")
	require.Equal(t, 64, spill.Registers)
	require.False(t, spill.SpillsKnown)
	require.Positive(t, spill.LocalStores)
}

func TestParseRefuses(t *testing.T) {
	image := read(t, "sm_80.cubin")
	edit := func(at int, value uint16) []byte {
		b := append([]byte(nil), image...)
		binary.LittleEndian.PutUint16(b[at:], value)
		return b
	}
	tests := []struct {
		name  string
		image []byte
	}{
		{"nothing", nil},
		{"a header's length of nothing", make([]byte, 64)},
		{"text", []byte(strings.Repeat("no ELF file ", 10))},
		{"another machine", edit(0x12, 62)},
		{"a header alone", image[:64]},
		{"cut in the middle", image[:len(image)/2]},
		{"more sections than there are", edit(0x3c, 1000)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := cubin.Parse(tt.image)
			require.ErrorIs(t, err, cubin.ErrFormat)
		})
	}
}

// A program that reads the machine it runs on is no cubin.
func TestParseRefusesPrograms(t *testing.T) {
	exe, err := os.Executable()
	require.NoError(t, err)
	b, err := os.ReadFile(exe)
	require.NoError(t, err)
	_, err = cubin.Parse(b)
	require.ErrorIs(t, err, cubin.ErrFormat)
}

func TestMix(t *testing.T) {
	const listing = `
	.section	.text.other,"ax",@progbits
        /*0000*/                   EXIT ;
	.section	.text.k,"ax",@progbits
.text.k:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/               @P0 FMUL.FTZ R3, R3, R3 ;
        /*0020*/              @!P1 FMUL R3, R3, R3 ;
        /*0030*/             @!UPT BRA 0x30 ;
.L_x_0:
        /*0040*/                   HMMA.16816.F32 R4, R8, R12, R4 ;
	.section	.nv.info,"a"
`
	require.Equal(t, []cubin.OpCount{{"FMUL", 2}, {"BRA", 1}, {"HMMA", 1}, {"LDC", 1}}, cubin.Mix(listing, "k"))
	require.Empty(t, cubin.Mix(listing, "absent"))
}

// The disassembler counts the same instructions that the parser decodes.
func TestMixAgreesWithCode(t *testing.T) {
	for _, name := range []string{"sm_80.cubin", "sm_90a.cubin"} {
		image := read(t, name)
		sass, err := nvrtctest.Nvdisasm(t).Disassemble(t.Context(), image, "-c")
		require.NoError(t, err)
		f, err := cubin.Parse(image)
		require.NoError(t, err)
		for _, k := range f.Kernels {
			counts := map[string]int{}
			total := 0
			for _, c := range cubin.Mix(sass, k.Name) {
				counts[c.Op] = c.Count
				total += c.Count
			}
			require.Equal(t, k.LocalStores, counts["STL"], "%s %s", name, k.Name)
			require.Equal(t, k.LocalLoads, counts["LDL"], "%s %s", name, k.Name)
			require.Equal(t, k.CodeBytes/16, total, "%s %s", name, k.Name)
		}
	}
}

// The parser knows each instruction of tensor cores and asynchronous copies by name as
// the disassembler does, and no other by theirs.
func TestUnits(t *testing.T) {
	ptx := read(t, "units.ptx")
	a, err := nvrtctest.Ptxas(t).Assemble(t.Context(), ptx, "sm_90a")
	require.NoError(t, err)
	images := [][]byte{a.Cubin, read(t, "sm_80.cubin"), read(t, "sm_90a.cubin")}
	told := []string{"HMMA", "HGMMA", "IGMMA", "LDGSTS", "LDSM", "QGMMA", "UTMALDG", "UTMAREDG", "UTMASTG"}
	for i, image := range images {
		sass, err := nvrtctest.Nvdisasm(t).Disassemble(t.Context(), image, "-c")
		require.NoError(t, err)
		f, err := cubin.Parse(image)
		require.NoError(t, err)
		for _, k := range f.Kernels {
			var want []cubin.OpCount
			for _, c := range cubin.Mix(sass, k.Name) {
				if slices.Contains(told, c.Op) {
					want = append(want, c)
				}
			}
			require.Equal(t, want, k.Units, k.Name)
			if i == 0 {
				require.Len(t, want, len(told))
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"sm_80.cubin", "sm_90a.cubin", "sm_80-cuda12.4.cubin"} {
		f.Add(read(f, name))
	}
	f.Fuzz(func(t *testing.T, image []byte) {
		file, err := cubin.Parse(image)
		if (file == nil) != (err != nil) {
			t.Errorf("file %v with error %v", file, err)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	image := read(b, "sm_90a.cubin")
	for b.Loop() {
		_, err := cubin.Parse(image)
		require.NoError(b, err)
	}
}
