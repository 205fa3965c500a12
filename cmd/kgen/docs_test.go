package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/nvrtc/nvrtctest"
)

// blockOf matches a sentence that begins with a file's name, and the indented lines that
// are its content.
var blockOf = regexp.MustCompile("(?m)^`([a-z.]+)` [^\n]*:\n\n((?:(?:    [^\n]*)?\n)+)")

// commandOf matches an indented command.
var commandOf = regexp.MustCompile(`(?m)^    kgen [^\n]*$`)

// docs/space.md works by copying: its files, its commands.
func TestSpacePage(t *testing.T) {
	nvrtctest.Compiler(t)
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "space.md"))
	require.NoError(t, err)
	var script strings.Builder
	script.WriteString("# docs/space.md\n")
	commands := commandOf.FindAllString(string(page), -1)
	require.Len(t, commands, 3)
	for _, c := range commands {
		script.WriteString("exec " + strings.TrimSpace(c) + "\n")
	}
	script.WriteString("stdout 'us predicted'\n")
	// The reference of the page's other example.
	script.WriteString("exec kgen tune --space other.json --gpu a100 --budget 6 --json\njson stdout best.0.verified true\n")
	files := blockOf.FindAllStringSubmatch(string(page), -1)
	require.Len(t, files, 3)
	_, other, found := strings.Cut(string(page), "    \"reference\": {\"kernel\"")
	require.True(t, found)
	other, _, found = strings.Cut(other, "}}\n")
	require.True(t, found)
	for _, f := range files {
		content := regexp.MustCompile(`(?m)^    `).ReplaceAllString(f[2], "")
		script.WriteString("-- " + f[1] + " --\n" + content)
		if f[1] == "scale.json" {
			own := regexp.MustCompile(`"reference": [^\n]*`).FindString(content)
			require.NotEmpty(t, own)
			script.WriteString("-- other.json --\n" + strings.Replace(content, own, `"reference": {"kernel"`+other+"}},", 1))
		}
	}
	file := filepath.Join(t.TempDir(), "space.txtar")
	require.NoError(t, os.WriteFile(file, []byte(script.String()), 0o666))
	testscript.Run(t, testscript.Params{
		Files: []string{file}, RequireExplicitExec: true, RequireUniqueNames: true, Setup: setup, Condition: condition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"json": jsonValue},
	})
}

// docs/launch.md works by copying: its commands in order, after which the example has the
// cubin that it reads and a case the PTX.
func TestLaunchPage(t *testing.T) {
	nvrtctest.Compiler(t)
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "launch.md"))
	require.NoError(t, err)
	commands := commandOf.FindAllString(string(page), -1)
	require.Len(t, commands, 3)
	var script strings.Builder
	script.WriteString("# docs/launch.md\n")
	for _, c := range commands {
		script.WriteString("exec " + strings.TrimSpace(c) + "\n")
	}
	script.WriteString(`stdout 'kgen run case.json'
exists gemm.cubin
json gemm.json files.cubin gemm.cubin
json gemm.json files.ptx gemm.ptx
json emitted.json files.ptx emitted.ptx
`)
	file := filepath.Join(t.TempDir(), "launch.txtar")
	require.NoError(t, os.WriteFile(file, []byte(script.String()), 0o666))
	testscript.Run(t, testscript.Params{
		Files: []string{file}, RequireExplicitExec: true, RequireUniqueNames: true, Setup: setup, Condition: condition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"json": jsonValue},
	})
}
