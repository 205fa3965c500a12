package codegen_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/eval"
	"github.com/kgen-dev/kgen/ir/irtest"
)

var sizesLine = regexp.MustCompile(`(?m)^; sizes (.*)$`)

// TestAgree runs the programs of testdata/agree on the virtual machine and by the
// interpreter.
func TestAgree(t *testing.T) {
	files, err := filepath.Glob("testdata/agree/*.tile")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		for _, name := range gpuNames {
			t.Run(filepath.Base(file)+"/"+name, func(t *testing.T) {
				t.Parallel()
				src, err := os.ReadFile(file)
				require.NoError(t, err)
				p, err := ir.Parse(file, src)
				require.NoError(t, err)
				sizes := map[string]int{}
				for _, word := range strings.Fields(sizesLine.FindStringSubmatch(string(src))[1]) {
					name, n, _ := strings.Cut(word, "=")
					sizes[name], err = strconv.Atoi(n)
					require.NoError(t, err)
				}
				gpu, err := target.Lookup(name)
				require.NoError(t, err)
				compareCase(t, &irtest.Case{Prog: p, Args: smallArgs(p, sizes), Tol: make([]irtest.Tolerance, len(p.Params))}, gpu, direct)
			})
		}
	}
}

// smallArgs are dense tensors of integers from -2 to 2, and scalars by name.
func smallArgs(p *ir.Program, sizes map[string]int) []eval.Arg {
	r := rand.New(rand.NewPCG(1, 2))
	var args []eval.Arg
	for _, v := range p.Params {
		if v.Type.IsScalar() {
			args = append(args, eval.Arg{Int: int64(sizes[v.Name]), Float: float64(sizes[v.Name])})
			continue
		}
		shape := make([]int, len(v.Type.Dims))
		for d, dim := range v.Type.Dims {
			if shape[d] = dim.Size; dim.Sym != "" {
				shape[d] = sizes[dim.Sym]
			}
		}
		x := eval.NewTensor(v.Type.Elem, shape...)
		for i := range x.Len() {
			x.SetFloat(i, float64(r.IntN(5)-2))
		}
		args = append(args, eval.View(x))
	}
	return args
}
