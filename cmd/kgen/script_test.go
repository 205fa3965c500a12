package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kgen-dev/kgen/bench/cuda"
	"github.com/kgen-dev/kgen/codegen/cache"
	"github.com/kgen-dev/kgen/codegen/nvrtc"
	"github.com/kgen-dev/kgen/codegen/nvrtc/nvrtctest"
)

var update = flag.Bool("update", false, "write what the commands print into the scripts")

// TestMain makes this test binary the kgen that the scripts run.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"kgen": main})
}

// TestScripts runs testdata/script: a file a subject, each in a folder of its
// own with a cache and results of its own. Beside testscript's own commands
// there are `exits CODE PROGRAM ARGS...`, `json FILE PATH [VALUE]`, `samejson FILE FILE
// PATH...` and `freeport VARIABLE`, and the
// conditions [nvrtc], [ptxas], [toolkit] (one installed for all), [cuda] (built
// with the GPU backend) and [full] (all cases, not a sample).
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("..", "..", "testdata", "script"),
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setup,
		Condition:           condition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":    exits,
			"json":     jsonValue,
			"samejson": sameJSON,
			"freeport": freePort,
		},
	})
}

func setup(env *testscript.Env) error {
	env.Setenv(nvrtc.ToolchainEnv, nvrtctest.Toolchain())
	env.Setenv(cache.Env, filepath.Join(env.WorkDir, ".cache"))
	env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, ".state"))
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return err
	}
	env.Setenv("ROOT", root)
	return nil
}

func condition(name string) (bool, error) {
	dir := nvrtctest.Toolchain()
	var err error
	switch name {
	case "nvrtc":
		_, err = nvrtc.Find(dir)
	case "ptxas":
		_, err = nvrtc.FindPtxas(dir)
	case "toolkit": // a CUDA toolkit where kgen looks for one
		_, err = os.Stat("/usr/local/cuda")
		return err == nil, nil
	case "cuda": // built with the GPU backend
		_, err := cuda.Find()
		return !errors.Is(err, cuda.ErrNotBuilt), nil
	case "full":
		return os.Getenv("KGEN_FULL") != "", nil
	default:
		return false, fmt.Errorf("unknown condition %q", name)
	}
	if err != nil && os.Getenv("KGEN_REQUIRE_TOOLCHAIN") != "" {
		return false, err
	}
	return err == nil, nil
}

// exits runs a program that must end with one exit code:
// `exits 2 kgen tune --gpu nothing`.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Check(err)
	}
	ts.Logf("[exit code %d]", got)
	if got != want {
		ts.Fatalf("%s exits with %d: want %d", strings.Join(args[1:], " "), got, want)
	}
}

// jsonValue checks a value in a JSON file, or that there is one:
// `json stdout best.0.provenance predicted`. With ! there must be none.
func jsonValue(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: json FILE PATH [VALUE]")
	}
	var v any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &v))
	got, ok := lookup(v, strings.Split(args[1], "."))
	match := ok && (len(args) == 2 || text(got) == args[2])
	if match == neg {
		ts.Fatalf("%s has %s = %s", args[0], args[1], text(got))
	}
}

// sameJSON holds values of two JSON files to each other: `samejson a.json b.json best trace`.
func sameJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: samejson FILE FILE PATH...")
	}
	var v [2]any
	for i := range v {
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[i])), &v[i]))
	}
	for _, path := range args[2:] {
		a, okA := lookup(v[0], strings.Split(path, "."))
		b, okB := lookup(v[1], strings.Split(path, "."))
		if !okA || !okB || text(a) != text(b) {
			ts.Fatalf("%s: %s\nis not\n%s", path, text(a), text(b))
		}
	}
}

// freePort sets a variable to a port of this machine that nobody listens at: `freeport PORT`.
func freePort(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: freeport VARIABLE")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	ts.Check(err)
	ts.Setenv(args[0], port)
}

// lookup follows keys and, in lists, indices; "#" is a list's length.
func lookup(v any, path []string) (any, bool) {
	for _, key := range path {
		switch node := v.(type) {
		case map[string]any:
			child, ok := node[key]
			if !ok {
				return nil, false
			}
			v = child
		case []any:
			if key == "#" {
				v = float64(len(node))
				continue
			}
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(node) {
				return nil, false
			}
			v = node[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// text is a JSON value as a script writes it: strings without their quotes.
func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
