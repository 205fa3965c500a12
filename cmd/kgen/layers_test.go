package main

import (
	"bufio"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	_ "github.com/kgen-dev/kgen/internal/fixedseed" // of rapid
)

const module = "github.com/kgen-dev/kgen/"

// layers is the import table of ARCHITECTURE.md: a folder and what it may
// import of this module. A folder below one named here follows the same row
// unless it has its own; /... takes in the folders below.
var layers = map[string][]string{
	"ir":                 {"ir/layout", "ir/num"},
	"ir/layout":          {},
	"ir/num":             {},
	"ir/irtest":          {"ir", "ir/eval", "ir/layout"},
	"ir/eval":            {"ir", "ir/layout", "ir/num"},
	"codegen":            {"ir", "ir/layout", "ir/num", "codegen/..."},
	"codegen/atomicfile": {},
	"codegen/cache":      {"codegen/atomicfile"},
	"codegen/cubin":      {},
	"codegen/cudac":      {"codegen/simt"},
	"codegen/gopkg":      {"codegen", "ir"},
	"codegen/nvrtc":      {"codegen/nvrtc"}, // its test helper
	"codegen/ptx":        {"codegen/simt"},
	"codegen/simt":       {"codegen/simt"}, // its test helper
	"codegen/target":     {"internal/jsontext", "internal/userfile"},
	"kernels":            {"ir", "ir/num", "codegen/target", "kernels/...", "internal/wordlist"},
	"bench":              {"ir/num", "codegen", "codegen/atomicfile", "codegen/ptx", "codegen/target", "bench/numcheck", "internal/jsontext", "internal/userfile"},
	"bench/ceilings":     {"bench"},
	"bench/launchfile":   {"bench", "bench/numcheck", "codegen", "ir", "internal/jsontext", "internal/userfile"},
	"bench/vm":           {"bench", "bench/numcheck", "bench/vm/...", "ir/num", "codegen/ptx", "codegen/target"},
	"bench/cuda":         {"bench", "codegen/ptx"},
	"tune":               {"kernels/...", "codegen/...", "bench", "bench/launchfile", "bench/numcheck", "bench/vm", "roofline/...", "tune/...", "ir/num", "internal/jsontext", "internal/userfile"},
	"roofline":           {"codegen/target", "codegen/ptx", "bench", "roofline/...", "internal/jsontext", "internal/userfile"}, // ptx for its pipes
	"cmd":                {"..."},
	"internal/fixedseed": {},
	"internal/jsontext":  {},
	"internal/userfile":  {},
	"internal/wordlist":  {},
}

// doors names the one folder that may import a third party; "..." is any, and
// "" none but tests.
var doors = map[string]string{
	"github.com/dave/jennifer":           "codegen/gopkg",
	"github.com/ianlancetaylor/demangle": "cmd/kgen/internal/cli",
	"github.com/mumax/3":                 "bench/cuda",
	"github.com/nats-io":                 "tune/queue",
	"github.com/schollz/progressbar":     "cmd/kgen/internal/cli",
	"github.com/spf13/cobra":             "cmd/kgen/internal/cli",
	"github.com/spf13/pflag":             "cmd/kgen/internal/cli",
	"golang.org/x/sys":                   "bench/vm",
	"golang.org/x/term":                  "cmd/kgen/internal/cli",
	"golang.org/x/image":                 "roofline/plot",
	"golang.org/x/sync":                  "...",
	"gonum.org/v1/gonum":                 "tune",
	"modernc.org/sqlite":                 "tune/store",
	"github.com/google/go-cmp":           "",
	"github.com/rogpeppe/go-internal":    "",
	"github.com/stretchr/testify":        "",
	"pgregory.net/rapid":                 "internal/fixedseed",
}

// copyleft are modules that must not be in the default build.
var copyleft = []string{"github.com/mumax/3"}

func TestLayers(t *testing.T) {
	for _, tags := range []string{"", "cuda"} {
		lines := goList(t, "-e", "-tags="+tags, "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
		require.Greater(t, len(lines), 10)
		require.Contains(t, lines, module+"cmd/kgen "+module+"cmd/kgen/internal/cli os runtime")
		require.Empty(t, violations(lines))
	}
}

func TestDefaultBuildHoldsNoCopyleft(t *testing.T) {
	deps := goList(t, "-deps", "./cmd/kgen")
	require.Contains(t, deps, "github.com/spf13/cobra")
	require.Empty(t, among(deps, copyleft))
	require.NotEmpty(t, among(append(deps, "github.com/mumax/3/cuda/cu"), copyleft))
}

// Each line of the fixture is a package and its imports, and after # the
// violation that they are, if any.
func TestLayersFire(t *testing.T) {
	f, err := os.Open(filepath.Join("testdata", "layers.txt"))
	require.NoError(t, err)
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		line, want, bad := strings.Cut(s.Text(), " # ")
		fields := strings.Fields(line)
		for i, p := range fields {
			if !strings.Contains(p, ".") {
				fields[i] = module + p
			}
		}
		got := violations([]string{strings.Join(fields, " ")})
		if !bad {
			require.Empty(t, got, line)
			continue
		}
		require.Equal(t, []string{want}, got, line)
	}
}

func goList(t *testing.T, args ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...)
	cmd.Dir = filepath.Join("..", "..")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// violations checks lines of a package and its imports.
func violations(lines []string) []string {
	var vs []string
	for _, line := range lines {
		fields := strings.Fields(line)
		pkg := strings.TrimPrefix(fields[0], module)
		for _, imp := range fields[1:] {
			if why := violation(pkg, imp); why != "" {
				vs = append(vs, pkg+" imports "+strings.TrimPrefix(imp, module)+": "+why)
			}
		}
	}
	return vs
}

func violation(pkg, imp string) string {
	own, inModule := strings.CutPrefix(imp, module)
	domain, _, _ := strings.Cut(imp, "/")
	switch {
	case !inModule && !strings.Contains(domain, "."): // the standard library
		return ""
	case !inModule:
		return thirdParty(pkg, imp)
	case strings.HasSuffix(own, "test"):
		return "it is for tests"
	}
	row, ok := rowOf(pkg)
	if !ok {
		return "its folder has no row in the table"
	}
	if !slices.ContainsFunc(layers[row], func(pattern string) bool { return matches(pattern, own) }) {
		return row + " may import " + strings.Join(append(slices.Clone(layers[row]), "nothing else"), ", ")
	}
	return ""
}

// rowOf is the nearest folder at or above pkg that the table has.
func rowOf(pkg string) (string, bool) {
	for ; pkg != "."; pkg = path.Dir(pkg) {
		if _, ok := layers[pkg]; ok {
			return pkg, true
		}
	}
	return "", false
}

func thirdParty(pkg, imp string) string {
	for mod, door := range doors {
		if !under(mod, imp) {
			continue
		}
		switch {
		case door == "":
			return "only tests may"
		case door != "..." && !under(door, pkg):
			return "only " + door + " may"
		}
		return ""
	}
	return "no folder is its door"
}

func matches(pattern, pkg string) bool {
	dir, subtree := strings.CutSuffix(pattern, "...")
	if subtree {
		return dir == "" || under(strings.TrimSuffix(dir, "/"), pkg)
	}
	return pattern == pkg
}

func under(dir, pkg string) bool { return pkg == dir || strings.HasPrefix(pkg, dir+"/") }

func among(pkgs, modules []string) []string {
	var found []string
	for _, p := range pkgs {
		if slices.ContainsFunc(modules, func(m string) bool { return under(m, p) }) {
			found = append(found, p)
		}
	}
	return found
}
