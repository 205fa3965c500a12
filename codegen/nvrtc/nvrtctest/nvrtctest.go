// Package nvrtctest finds the compilers for tests, which run from anywhere and
// so have no .toolchain folder beside their executable.
//
// A test that needs a compiler is skipped where there is none, unless
// KGEN_REQUIRE_TOOLCHAIN is set, as it is in continuous integration: then it fails.
package nvrtctest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kgen-dev/kgen/codegen/nvrtc"
)

// Compiler opens NVRTC or skips the test.
func Compiler(tb testing.TB) *nvrtc.Compiler {
	tb.Helper()
	return find(tb, nvrtc.Find)
}

// Ptxas finds ptxas or skips the test.
func Ptxas(tb testing.TB) nvrtc.Ptxas {
	tb.Helper()
	return find(tb, nvrtc.FindPtxas)
}

// Nvdisasm finds nvdisasm or skips the test.
func Nvdisasm(tb testing.TB) nvrtc.Nvdisasm {
	tb.Helper()
	return find(tb, nvrtc.FindNvdisasm)
}

// Toolchain is the project's .toolchain folder, or "" when `make toolchain`
// has not been run. $KGEN_TOOLCHAIN goes before it.
func Toolchain() string {
	if dir := os.Getenv(nvrtc.ToolchainEnv); dir != "" {
		return dir
	}
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
	dir = filepath.Join(dir, ".toolchain")
	if _, err := os.Stat(dir); err != nil {
		return ""
	}
	return dir
}

func find[T any](tb testing.TB, find func(...string) (T, error)) T {
	tb.Helper()
	var dirs []string
	if dir := Toolchain(); dir != "" {
		dirs = append(dirs, dir)
	}
	tool, err := find(dirs...)
	if err == nil {
		return tool
	}
	if os.Getenv("KGEN_REQUIRE_TOOLCHAIN") != "" {
		tb.Fatal(err)
	}
	tb.Skip(err)
	return tool
}
