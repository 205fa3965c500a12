package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// layerNormRule is a file with a rule for rows short and long on an A100.
func layerNormRule(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rule.json")
	require.NoError(t, os.WriteFile(file, []byte(`{
  "kernel": "layernorm", "gpu": "a100-sxm4-80", "worst_regret": 0.0425, "provenance": "predicted",
  "shapes": [{"problem": {"rows": 64, "cols": 512}}, {"problem": {"rows": 64, "cols": 4096}}],
  "rule": {"size": "cols", "most": 1448,
    "below": {"config": "`+layerNormConfig(t, 512)+`"}, "above": {"config": "`+layerNormConfig(t, 4096)+`"}}
}`), 0o666))
	return file
}

// layerNormConfig is the configuration of rows of a length when none was tuned.
func layerNormConfig(t *testing.T, cols int) string {
	t.Helper()
	f := must(kernelFamily("layernorm"))
	gpu := must(anyGPU("a100"))
	p := must(f.Problem(map[string]string{"rows": "64", "cols": strconv.Itoa(cols)}, gpu))
	return must(p.Default(gpu)).String()
}

func generate(t *testing.T, dir string, args ...string) (files map[string]string, words string, code int) {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	var stderr bytes.Buffer
	code = Main(append([]string{"generate", "-o", dir, "--package", "norm"}, args...), nil, &stderr, &stderr)
	files = map[string]string{}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		files[e.Name()] = string(must(os.ReadFile(filepath.Join(dir, e.Name()))))
	}
	return files, stderr.String(), code
}

// A package says by which rule it chooses and what that loses at worst, and is made alike
// twice.
func TestGenerateByRule(t *testing.T) {
	require.NotEqual(t, layerNormConfig(t, 512), layerNormConfig(t, 4096))
	rule := layerNormRule(t)
	files, words, code := generate(t, filepath.Join(t.TempDir(), "a"), "layernorm", "--gpu", "a100", "--rule", rule)
	require.Zero(t, code, words)
	require.Contains(t, words, "by rule among 2")
	require.Contains(t, files["doc.go"], "On NVIDIA A100 SXM4 80GB the configuration is chosen by sizes: at worst 4.2 % slower than the best known of each of 2 shapes (predicted).")
	require.Contains(t, files["layernorm.go"], "func layerNormOnA100Sxm480(s LayerNormShape) int {\n\tif s.Cols <= 1448 {\n\t\treturn 0\n\t}\n\treturn 1\n}")
	require.Contains(t, files["layernorm.go"], layerNormConfig(t, 512))
	require.Contains(t, files["layernorm.go"], layerNormConfig(t, 4096))
	again, _, _ := generate(t, filepath.Join(t.TempDir(), "b"), "layernorm", "--gpu", "a100", "--rule", rule)
	require.Equal(t, files, again)
}

func TestGenerateByRuleMistakes(t *testing.T) {
	rule := layerNormRule(t)
	text := string(must(os.ReadFile(rule)))
	for name, tt := range map[string]struct {
		text string
		args []string
		want string
	}{
		"unused":    {text, []string{"layernorm", "--gpu", "h100"}, "a rule for layernorm on a100-sxm4-80: want one for a family and a GPU of the package"},
		"options":   {text, []string{"layernorm:norm=rms", "--gpu", "a100"}, "want one for norm=rms"},
		"no rule":   {`{"kernel": "layernorm"}`, []string{"layernorm", "--gpu", "a100"}, "no rule: want the file that kgen tune FAMILY --shapes wrote"},
		"half":      {strings.Replace(text, `"above"`, `"other"`, 1), []string{"layernorm", "--gpu", "a100"}, "no rule"},
		"config":    {strings.Replace(text, "warps=", "warps=3", 1), []string{"layernorm", "--gpu", "a100"}, "no configuration of the space"},
		"unfielded": {strings.Replace(text, `"size": "cols"`, `"size": "cells"`, 1), []string{"layernorm", "--gpu", "a100"}, "it asks for cells, which callers of layernorm do not give"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "rule.json")
			require.NoError(t, os.WriteFile(file, []byte(tt.text), 0o666))
			files, words, code := generate(t, filepath.Join(t.TempDir(), "out"), append(tt.args, "--rule", file)...)
			require.Equal(t, exitUsage, code)
			require.Contains(t, words, tt.want)
			require.Empty(t, files)
		})
	}
}
