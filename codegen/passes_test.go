package codegen

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/ir"
)

var passLine = regexp.MustCompile(`^; pass (\w+)\n`)

// TestPasses compares what one pass makes of small programs with testdata/passes.
func TestPasses(t *testing.T) {
	files, err := filepath.Glob("testdata/passes/*.tile")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	gpu, err := target.Lookup("a100")
	require.NoError(t, err)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			src, err := os.ReadFile(file)
			require.NoError(t, err)
			p, err := ir.Parse(file, src)
			require.NoError(t, err)
			name := passLine.FindStringSubmatch(string(src))[1]
			got := after(t, p, gpu, name)
			require.NotEmpty(t, got, "no pass %s", name)
			want := strings.TrimSuffix(file, ".tile") + ".want"
			if flag.Lookup("update").Value.String() == "true" {
				require.NoError(t, os.WriteFile(want, []byte(got), 0o644))
			}
			text, err := os.ReadFile(want)
			require.NoError(t, err, "run go test -update to write it")
			require.Equal(t, string(text), got, "%s: run go test -update and read the difference", want)
		})
	}
}

// after is a program's text after a pass; shared is the plan of shared memory, which
// the lowering makes for itself.
func after(t *testing.T, p *ir.Program, gpu *target.GPU, pass string) (text string) {
	t.Helper()
	c, err := Compile(p, gpu, Options{Verify: true, Dump: func(_, name, dump string) {
		if name == pass {
			text = dump
		}
	}})
	require.NoError(t, err)
	if pass != "shared" {
		return text
	}
	k := c.Staged[0]
	plan, err := planShared(k, newFacts(k), max(k.Hints.Warps, 1), room{})
	require.NoError(t, err)
	var lines []string
	for of, b := range plan.buffers {
		name := ""
		switch x := of.(type) {
		case *ir.Value:
			name = "ring %" + x.Name
		case *ir.Op:
			name = fmt.Sprintf("%s at line %d", x.Code, x.Pos.Line)
		}
		lines = append(lines, fmt.Sprintf("%6d to %6d, operations %3d to %3d: %s", b.offset, b.offset+b.bytes(), b.first, b.last, name))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + fmt.Sprintf("\n%d bytes in all\n", plan.size)
}
