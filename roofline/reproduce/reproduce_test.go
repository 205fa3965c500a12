package reproduce

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every publication is reproduced, in all rows, and a row is a computation: it
// is near what was published and, but for rounding, not the same digits.
func TestAllIsReproduced(t *testing.T) {
	for _, name := range Names() {
		r, err := Compute(name)
		require.NoError(t, err, name)
		require.NotEmpty(t, r.Rows, name)
		digits := 0
		labels := map[string]bool{}
		for _, row := range r.Rows {
			require.True(t, row.OK, "%s: %s: published %v, computed %v", name, row.Label, row.Published, row.Computed)
			require.False(t, labels[row.Label], "%s: %s twice", name, row.Label)
			labels[row.Label] = true
			if row.Published != row.Computed {
				digits++
			}
		}
		require.Positive(t, digits, "%s", name)
		require.NotNil(t, r.Figure)
		_, err = r.Figure.Scene()
		require.NoError(t, err, name)
	}
}

// A published number that is off in its last digit but one is found out.
func TestWrongNumbersAreFoundOut(t *testing.T) {
	for _, name := range Names() {
		p := publications[indexOf(t, name)]
		tab, err := open(name)
		require.NoError(t, err)
		// Every cell of the last row that holds a published result, one at a time.
		row := len(tab.rows) - 1
		found := 0
		for c := range tab.columns {
			q, err := printed(tab.rows[row][c])
			if err != nil || q.value == 0 || strings.HasPrefix(name, "nvidia") && tab.columns[c] != "tflops" {
				continue // NVIDIA's tables are large: one cell of theirs
			}
			original := tab.rows[row][c]
			tab.rows[row][c] = strings.Replace(original, original[:1], string('0'+(original[0]-'0')%9+1), 1)
			r := &Result{Name: name}
			if err := p.compute(r, tab); err != nil || len(r.Failed()) > 0 {
				found++
			}
			tab.rows[row][c] = original
		}
		require.Positive(t, found, name)
	}
}

func indexOf(t *testing.T, name string) int {
	for i, n := range Names() {
		if n == name {
			return i
		}
	}
	t.Fatal(name)
	return 0
}

func TestUnknownName(t *testing.T) {
	_, err := Compute("gp")
	require.ErrorContains(t, err, `publication "gp": want one of gpp, gene, deepgemm`)
}

func TestJSON(t *testing.T) {
	b, err := json.Marshal(&Result{Name: "x", Title: "not there", Rows: []Row{{"l", 1, 2, false}}})
	require.NoError(t, err)
	require.JSONEq(t, `{"name":"x","rows":[{"label":"l","published":1,"computed":2,"ok":false}]}`, string(b))
}

func TestQuantities(t *testing.T) {
	q, err := printed("206")
	require.NoError(t, err)
	require.Equal(t, quantity{206, 0.5}, q)
	q, err = printed("0.923")
	require.NoError(t, err)
	require.Equal(t, 0.0005, q.half)
	for _, bad := range []string{"", "x", "NaN", "Inf", "1,2"} {
		_, err := printed(bad)
		require.Error(t, err, bad)
	}
	require.True(t, quantity{100, 0.5}.agrees(exact(100.5)))
	require.False(t, quantity{100, 0.5}.agrees(exact(100.6)))
	r := quantity{10, 1}.over(quantity{5, 0.5})
	require.InDelta(t, 2, r.value, 1e-12)
	require.InDelta(t, 0.4, r.half, 1e-12)
	require.InDelta(t, 10, quantity{10, 1}.times(quantity{5, 0.5}).half, 1e-12)
	require.Equal(t, 1.0, math.Abs(quantity{-1, 0}.value))
}

// Every table names its origin.
func TestOriginsAreNamed(t *testing.T) {
	origin, err := os.ReadFile(filepath.Join("data", "ORIGIN.md"))
	require.NoError(t, err)
	for _, name := range Names() {
		require.Contains(t, string(origin), "| "+name+".csv |", name)
	}
}
