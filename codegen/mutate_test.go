package codegen_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/ir"
)

// tileTexts are the texts of all tile programs of the tests.
func tileTexts(tb testing.TB) []string {
	tb.Helper()
	var texts []string
	for _, pattern := range []string{"../testdata/tile/*/*.tile", "testdata/*/*.tile"} {
		files, err := filepath.Glob(pattern)
		require.NoError(tb, err)
		require.NotEmpty(tb, files)
		for _, file := range files {
			src, err := os.ReadFile(file)
			require.NoError(tb, err)
			texts = append(texts, string(src))
		}
	}
	return texts
}

// compiles holds that a program compiles to PTX, or is refused as unsupported or too
// large; never is there a bug's error.
func compiles(tb testing.TB, src string, gpu *target.GPU) {
	tb.Helper()
	p, err := ir.Parse("mutated.tile", []byte(src))
	if err != nil || ir.Verify(p) != nil {
		return
	}
	c, err := codegen.Compile(p, gpu, codegen.Options{Verify: true})
	if errors.Is(err, codegen.ErrUnsupported) || errors.Is(err, codegen.ErrResources) {
		return
	}
	require.NoError(tb, err, src)
	_, err = c.PTX()
	require.NoError(tb, err, src)
}

// TestMutatedPrograms changes numbers, types and lines of tile programs at random.
func TestMutatedPrograms(t *testing.T) {
	texts := tileTexts(t)
	for seed := firstSeed(); seed < firstSeed()+samples(40); seed++ {
		r := rand.New(rand.NewPCG(seed, 3))
		gpu, err := target.Lookup(gpuNames[r.IntN(len(gpuNames))])
		require.NoError(t, err)
		for range 50 {
			src := texts[r.IntN(len(texts))]
			for range 1 + r.IntN(4) {
				src = mutate(r, src)
			}
			compiles(t, src, gpu)
		}
	}
}

var (
	number  = regexp.MustCompile(`\b\d+\b`)
	element = regexp.MustCompile(`\b(i1|i4|i8|i32|i64|f16|bf16|f32|f64|e4m3|e5m2|e2m1)\b`)
	word    = regexp.MustCompile(`\b(add|sub|mul|min|max|and|or|xor|div|rem|shl|neg|abs|exp2|log2|tanh|erf|sin|floor|cast|bitcast|reduce|scan)\b`)
)

// mutate changes one thing, or all occurrences of it.
func mutate(r *rand.Rand, src string) string {
	replace := func(re *regexp.Regexp, with ...string) string {
		found := re.FindAllString(src, -1)
		if len(found) == 0 {
			return src
		}
		old, to := found[r.IntN(len(found))], with[r.IntN(len(with))]
		if r.IntN(2) == 0 {
			return regexp.MustCompile(`\b`+regexp.QuoteMeta(old)+`\b`).ReplaceAllString(src, to)
		}
		at := re.FindAllStringIndex(src, -1)
		i := at[r.IntN(len(at))]
		return src[:i[0]] + to + src[i[1]:]
	}
	lines := strings.Split(src, "\n")
	i := r.IntN(len(lines))
	switch r.IntN(6) {
	case 0, 1:
		return replace(number, "0", "1", "2", "3", "7", "8", "16", "24", "32", "48", "100", "128", "1024", "70000", "2147483647")
	case 2:
		return replace(element, "i1", "i4", "i8", "i32", "i64", "f16", "bf16", "f32", "f64", "e4m3", "e5m2", "e2m1")
	case 3:
		return replace(word, "add", "mul", "max", "and", "div", "shl", "neg", "exp2", "tanh", "sin", "floor", "scan", "reduce")
	case 4:
		lines = append(lines[:i], lines[i+1:]...)
	case 5:
		j := r.IntN(len(lines))
		lines[i], lines[j] = lines[j], lines[i]
	}
	return strings.Join(lines, "\n")
}

// FuzzCompile holds that no text makes the code generator panic.
func FuzzCompile(f *testing.F) {
	for _, src := range tileTexts(f) {
		f.Add(src, uint8(0))
	}
	f.Fuzz(func(t *testing.T, src string, n uint8) {
		gpu, err := target.Lookup(gpuNames[int(n)%len(gpuNames)])
		require.NoError(t, err)
		compiles(t, src, gpu)
	})
}
