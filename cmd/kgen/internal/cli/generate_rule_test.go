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
	short, long := layerNormConfig(t, 512), layerNormConfig(t, 4096)
	require.NoError(t, os.WriteFile(file, []byte(`{
  "kernel": "layernorm", "gpu": "a100-sxm4-80", "provenance": "predicted",
  "worst_regret": 0.0425,
  "shapes": [
    {"problem": {"rows": 64, "cols": 512}, "best_us": 3, "regret": 0.0425, "chosen": "`+short+`"},
    {"problem": {"rows": 64, "cols": 4096}, "best_us": 5, "regret": 0, "chosen": "`+long+`"}
  ],
  "rule": {"size": "cols", "most": 1448,
    "below": {"config": "`+short+`"},
    "above": {"config": "`+long+`"}}
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
		"unused":  {text, []string{"layernorm", "--gpu", "h100"}, "a rule for layernorm on a100-sxm4-80: want one for a family and a GPU of the package"},
		"options": {text, []string{"layernorm:norm=rms", "--gpu", "a100"}, "want one for norm=rms"},
		"config":  {strings.ReplaceAll(text, "warps=", "warps=3"), []string{"layernorm", "--gpu", "a100"}, "no configuration of the space"},
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

// A file that was altered so that what it says of itself does not follow is refused with
// the line and the key.
func TestAlteredRule(t *testing.T) {
	text := string(must(os.ReadFile(layerNormRule(t))))
	for name, tt := range map[string]struct{ old, new, want string }{
		"no bound":       {`"most": 1448,`, ``, "line 8: rule.most: 0, or missing: want a size of 1 or more"},
		"renamed":        {`"above"`, `"over"`, `line 10: unknown key "over"`},
		"no half":        {`"above": {"config"`, `"config": {"size"`, "line 10: rule.config: found an object: want a string"},
		"no leaf":        {`"below": {"config"`, `"below": {"size"`, "line 9: rule.below.most: 0, or missing"},
		"regret":         {`"worst_regret": 0.0425`, `"worst_regret": 1e18`, "line 3: worst_regret: 1e+18: want 0.0425, the worst of its shapes"},
		"its regret":     {`"regret": 0.0425`, `"regret": 1e18`, "line 5: shapes.0.regret: 1e+18: want 0 to 1000"},
		"no regret":      {`"regret": 0.0425, `, ``, "line 5: shapes.0.regret: missing"},
		"held out":       {`"worst_regret"`, `"worst_held_out_regret": 0.5, "worst_regret"`, "line 3: worst_held_out_regret: 0.5: want the worst of its shapes"},
		"smaller regret": {`"regret": 0.0425`, `"regret": 0.01`, "line 3: worst_regret: 0.0425: want 0.01"},
		"other bound":    {`"most": 1448`, `"most": 100`, "line 5: shapes.0.chosen"},
		"size":           {`"size": "cols"`, `"size": "cells"`, "line 8: rule: it asks for cells, which callers of layernorm do not give"},
		"problem":        {`"rows": 64, "cols": 512`, `"rows": -1, "cols": 512`, "line 5: shapes.0.problem: --rows -1"},
		"family":         {`"layernorm"`, `"nope"`, `line 2: kernel: unknown kernel family "nope"`},
		"GPU":            {`"a100-sxm4-80"`, `"../x"`, "line 2: gpu: "},
		"provenance":     {`"predicted"`, `"guessed"`, `line 2: provenance: "guessed": want predicted or measured`},
		"kind":           {`"most": 1448`, `"most": "many"`, "line 8: "},
		"twice":          {`"provenance"`, `"gpu": "h100-sxm5-80", "provenance"`, "line 2: gpu: there in line 2 too"},
		"twice within":   {`"above": {"config"`, `"size": "rows", "above": {"config"`, "line 10: size: there in line 8 too"},
		"cut":            {"}\n}", "}\n", "line 11: the text ends early"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, text, tt.old)
			file := filepath.Join(t.TempDir(), "rule.json")
			altered := strings.Replace(text, tt.old, tt.new, 1)
			require.NoError(t, os.WriteFile(file, []byte(altered), 0o666))
			files, words, code := generate(t, filepath.Join(t.TempDir(), "out"), "layernorm", "--gpu", "a100", "--rule", file)
			require.Equal(t, exitUsage, code)
			require.Contains(t, words, "kgen: --rule "+file+": "+tt.want)
			require.Empty(t, files)
		})
	}
	// Shapes that are gone are missed where a configuration was chosen for them alone.
	for _, gone := range []string{text[strings.Index(text, `    {"problem": {"rows": 64, "cols": 512`):strings.Index(text, `    {"problem": {"rows": 64, "cols": 4096`)], ""} {
		altered := strings.Replace(text, gone, "", 1)
		want := "worst_regret: 0.0425: want 0, the worst of its shapes"
		if gone == "" {
			altered = text[:strings.Index(text, `  "shapes"`)] + text[strings.Index(text, `  "rule"`):]
			want = "line 1: shapes: 0, or missing: want the 1 to 256 that the rule was fitted to"
		}
		file := filepath.Join(t.TempDir(), "rule.json")
		require.NoError(t, os.WriteFile(file, []byte(altered), 0o666))
		_, words, code := generate(t, filepath.Join(t.TempDir(), "out"), "layernorm", "--gpu", "a100", "--rule", file)
		require.Equal(t, exitUsage, code)
		require.Contains(t, words, want)
	}
}
