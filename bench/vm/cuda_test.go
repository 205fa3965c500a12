package vm_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/nvrtc"
	"github.com/kgen-dev/kgen/codegen/nvrtc/nvrtctest"
)

// CUDA C in the manner of well-known kernels, in testdata/cuda, goes through
// NVRTC and runs under several schedules: none may report a fault, and what
// comes out is compared with a plain computation in Go.

// cudaArchs are the targets that NVRTC compiles for. One of them a program is
// enough; KGEN_FULL takes all.
var cudaArchs = []string{"compute_75", "compute_80", "compute_90", "compute_100", "compute_120"}

// cudaFlags are ways to compile: each program takes its turn with one, and is
// compiled for debuggers as well.
var cudaFlags = [][]string{{"-lineinfo"}, {"-default-device"}, {"--restrict"}}

// cudaProgram is what to do with a source.
type cudaProgram struct {
	file string
	run  func(x *runner)
}

func TestCUDA(t *testing.T) {
	c := nvrtctest.Compiler(t)
	full := os.Getenv("KGEN_FULL") != ""
	files, err := filepath.Glob("testdata/cuda/*.cu")
	require.NoError(t, err)
	require.Len(t, files, len(cudaPrograms), "every source is run")
	for i, p := range cudaPrograms {
		t.Run(strings.TrimSuffix(p.file, ".cu"), func(t *testing.T) {
			t.Parallel()
			archs := cudaArchs
			if !full {
				archs = []string{cudaArchs[i%len(cudaArchs)]}
			}
			for _, arch := range archs {
				ptx := compileCUDA(t, c, p.file, arch, cudaFlags[i%len(cudaFlags)]...)
				for _, opt := range timings {
					p.run(newRunner(t, opt, p.file, ptx))
				}
				ptx = compileCUDA(t, c, p.file, arch, "-G")
				p.run(newRunner(t, timings[2], p.file, ptx))
			}
		})
	}
}

func compileCUDA(t *testing.T, c *nvrtc.Compiler, file, arch string, flags ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata/cuda", file))
	require.NoError(t, err)
	r, err := c.Compile(t.Context(), nvrtc.Source{Name: file, Text: string(text)}, nvrtc.Options{Arch: arch, Flags: flags})
	require.NoError(t, err)
	return r.PTX
}
