package table_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/tune/table"
)

func softmax(t *testing.T, gpu string, rows, cols int) (*family.Family, family.Problem, *target.GPU) {
	t.Helper()
	for _, f := range kernels.Families() {
		if f.Name != "softmax" {
			continue
		}
		g, err := target.Lookup(gpu)
		require.NoError(t, err)
		p, err := f.Problem(map[string]string{"rows": fmt.Sprint(rows), "cols": fmt.Sprint(cols)}, g)
		require.NoError(t, err)
		return f, p, g
	}
	t.Fatal("no softmax")
	return nil, nil, nil
}

// entry has the default configuration of a problem as its best.
func entry(t *testing.T, gpu string, rows, cols int) table.Entry {
	t.Helper()
	f, p, g := softmax(t, gpu, rows, cols)
	c, err := p.Default(g)
	require.NoError(t, err)
	e := table.Entry{Kernel: f.Name, GPU: g.ID, Made: time.Unix(int64(rows), 0), Provenance: bench.Predicted, Best: []table.Best{{Config: c.String(), TimeUS: 1}}}
	e.Sizes, e.Options = table.Split(f, p.Settings())
	return e
}

// Each entry in turn is the answer, once the better ones are gone.
func TestLookupFallsBack(t *testing.T) {
	f, p, g := softmax(t, "a100", 1000, 1024)
	order := []struct {
		entry    table.Entry
		match    table.Match
		distance float64
	}{
		{entry(t, "a100", 1024, 1024), table.Exact, 0.034},
		{entry(t, "a100-pcie-40", 1024, 1024), table.Architecture, 1.034},
		{entry(t, "a100", 2000, 1024), table.Nearest, 1},
		{entry(t, "a100-pcie-40", 2000, 1024), table.Nearest, 2},
		{entry(t, "h100", 1000, 1024), table.Nearest, 5},
		{entry(t, "a100", 64000, 1024), table.Nearest, 6},
	}
	var entries []table.Entry
	for i := range order {
		entries = append(entries, order[len(order)-1-i].entry)
	}
	for _, want := range order {
		found, err := table.New(entries).Lookup(f, p, g)
		require.NoError(t, err)
		require.Equal(t, want.match, found.Match)
		require.InDelta(t, want.distance, found.Distance, 0.001)
		require.Equal(t, want.entry, *found.Entry)
		require.Len(t, found.Configs, 1)
		kept := entries[:0:0]
		for _, e := range entries {
			if e.String() != want.entry.String() {
				kept = append(kept, e)
			}
		}
		require.Len(t, kept, len(entries)-1)
		entries = kept
	}
	found, err := table.New(entries).Lookup(f, p, g)
	require.NoError(t, err)
	require.Equal(t, table.Default, found.Match)
	require.Len(t, found.Configs, 1)
}

// Configurations that the asked problem forbids are no answer, and checks name them.
func TestForbiddenConfigurations(t *testing.T) {
	f, p, g := softmax(t, "a100", 1000, 1024)
	e := entry(t, "a100", 1000, 1024)
	e.Best = append([]table.Best{{Config: "BM=3 BN=1", TimeUS: 0.5}}, e.Best...)
	found, err := table.New([]table.Entry{e}).Lookup(f, p, g)
	require.NoError(t, err)
	require.Equal(t, 1, found.Dropped)
	require.Len(t, found.Configs, 1)
	find := func(string) (*family.Family, error) { return f, nil }
	require.Len(t, e.Check(find), 1)
	e.Best = e.Best[1:]
	require.Empty(t, e.Check(find))
	e.Best[0].TimeUS = -1
	require.ErrorContains(t, e.Check(find)[0], "want times above 0")
	e.GPU = "h1000"
	require.ErrorContains(t, e.Check(find)[0], "h1000")
}
