package softmax

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/kernels/family"
)

// This family is what a new one takes: this folder, and kernels.go.
func TestOnlyTheRegistryKnowsTheFamily(t *testing.T) {
	var importers []string
	root := os.DirFS(filepath.Join("..", ".."))
	require.NoError(t, fs.WalkDir(root, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() && strings.HasPrefix(e.Name(), ".") && path != "." {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		src, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, src, parser.ImportsOnly)
		if err != nil {
			return nil // a file that doesn't compile is another test's business
		}
		for _, spec := range f.Imports {
			if strings.HasSuffix(spec.Path.Value, `/kernels/softmax"`) {
				importers = append(importers, path)
			}
		}
		return nil
	}))
	require.Equal(t, []string{"kernels/kernels.go"}, importers)
}

func TestExpectedRowsSumToOne(t *testing.T) {
	p := &Problem{Rows: 4, Cols: 777, Type: "f32"}
	d, err := family.NewData(p.Args(), 1)
	require.NoError(t, err)
	e, err := p.Expect(d, family.Region{Out: "y", Lo: []int{1, 0}, Hi: []int{3, 777}})
	require.NoError(t, err)
	for i := range 2 {
		row, sum := e.Want[777*i:777*(i+1)], 0.0
		for _, y := range row {
			sum += y
		}
		require.InDelta(t, 1, sum, 1e-12)
		x := make([]float64, 777)
		d["x"].Row(x, d["x"].Offset(1+i, 0))
		require.Equal(t, slices.Index(x, slices.Max(x)), slices.Index(row, slices.Max(row)))
	}
	part, err := p.Expect(d, family.Region{Out: "y", Lo: []int{2, 100}, Hi: []int{3, 105}})
	require.NoError(t, err)
	require.Equal(t, part.Want, e.Want[777+100:777+105])
	_, err = p.Expect(d, family.Region{Out: "x"})
	require.ErrorContains(t, err, `softmax has no output "x": want y`)
}
