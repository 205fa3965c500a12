package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/nvrtc/nvrtctest"
	"github.com/kgen-dev/kgen/ir"
)

// kgen runs a command line that must succeed without words, and returns its results.
func kgen(t *testing.T, args ...string) string {
	t.Helper()
	var out, words strings.Builder
	require.Equal(t, 0, Main(args, strings.NewReader(""), &out, &words), words.String())
	require.Empty(t, words.String())
	return out.String()
}

// What emit prints of the tile IR parses back to the same program.
func TestEmitParsesBack(t *testing.T) {
	for _, name := range familyNames() {
		for _, gpu := range []string{"a100", "sm_86", "h100", "rtx5090"} {
			for _, stage := range []string{"tile", "staged"} {
				t.Run(name+"/"+gpu+"/"+stage, func(t *testing.T) {
					text := kgen(t, "emit", name, "--gpu", gpu, "--stage", stage)
					p, err := ir.Parse("emitted.tile", []byte(text))
					require.NoError(t, err)
					require.Equal(t, text, p.String())
				})
			}
		}
	}
}

// Every family's PTX is accepted by ptxas.
func TestEmitAssembles(t *testing.T) {
	ptxas := nvrtctest.Ptxas(t)
	for _, name := range familyNames() {
		text := kgen(t, "emit", name, "--gpu", "a100", "--stage", "ptx")
		_, err := ptxas.Assemble(t.Context(), []byte(text), "sm_80")
		require.NoError(t, err, name)
	}
}

// Each pass is shown once, in the order of the pipeline, before the stage.
func TestEmitPasses(t *testing.T) {
	text := kgen(t, "emit", "gemm", "--gpu", "a100", "--passes", "--stage", "ptx")
	at := -1
	for _, mark := range []string{"// tile program\n", "// kernel gemm after stage\n", "// kernel gemm after lower\n", ".version"} {
		next := strings.Index(text, mark)
		require.Greater(t, next, at, mark)
		at = next
	}
	require.NotContains(t, kgen(t, "emit", "gemm", "--gpu", "a100", "--passes"), ".version")
}

// A family's flags keep their values to one run of the program.
func TestProblemFlagsAreFresh(t *testing.T) {
	first := kgen(t, "emit", "softmax", "--gpu", "a100", "--stage", "tile")
	require.NotEqual(t, first, kgen(t, "emit", "softmax", "--gpu", "a100", "--dtype", "f32", "--stage", "tile"))
	require.Equal(t, first, kgen(t, "emit", "softmax", "--gpu", "a100", "--stage", "tile"))
}

// Help of a family has its flags in the family's order, with what they want.
func TestFamilyHelp(t *testing.T) {
	text := kgen(t, "emit", "flashattn", "--help")
	require.Contains(t, text, "elements of a head's row; a multiple of 16 from 16 to 256 (default 128)")
	require.Less(t, strings.Index(text, "--batch n"), strings.Index(text, "--head-dim n"))
	require.NotContains(t, text, "kgen emit gemm")
}

// Garbage never panics.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{
		"emit gemm --gpu a100 --m 64", "tune", "run case.json", "gpus h100", "emit --set BM=3 gemm", "kernels x", "-- -x", "--\x00=",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Fields(line)
		if len(args) > 0 && (args[0] == "tune" || args[0] == "compile" || args[0] == "check" || strings.Contains(line, "-o") || strings.Contains(line, "dump")) {
			return // which write files, or take their time
		}
		var words strings.Builder
		code := Main(args, strings.NewReader(""), io.Discard, &words)
		require.NotContains(t, words.String(), "internal error")
		require.Contains(t, []int{0, 1, 2, 3}, code)
	})
}
