package reproduce

import (
	"embed"
	"encoding/csv"
	"fmt"
	"slices"
	"strings"
)

//go:embed data
var data embed.FS

// table is one embedded file: published figures, a row each.
type table struct {
	name    string
	columns []string
	rows    [][]string
	err     error // the first that a cell gave
}

func open(name string) (*table, error) {
	file := "data/" + name + ".csv"
	f, err := data.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(rows) < 2 {
		return nil, fmt.Errorf("%s: want a heading and rows", file)
	}
	return &table{name: file, columns: rows[0], rows: rows[1:]}, nil
}

// text returns a cell.
func (t *table) text(row int, column string) string {
	c := slices.Index(t.columns, column)
	if c < 0 {
		t.fail(row, fmt.Errorf("no column %q", column))
		return ""
	}
	return t.rows[row][c]
}

// printed returns a cell as a publication's rounded number.
func (t *table) printed(row int, column string) quantity {
	q, err := printed(t.text(row, column))
	if err != nil {
		t.fail(row, fmt.Errorf("column %s: %w", column, err))
	}
	return q
}

// number returns a cell that is exact: a size or a counter.
func (t *table) number(row int, column string) float64 { return t.printed(row, column).value }

// fail keeps the first error; the heading is line 1.
func (t *table) fail(row int, err error) {
	if t.err == nil {
		t.err = fmt.Errorf("%s:%d: %w", t.name, row+2, err)
	}
}

// label joins cells as "column=cell".
func (t *table) label(row int, columns ...string) string {
	var parts []string
	for _, c := range columns {
		parts = append(parts, c+"="+t.text(row, c))
	}
	return strings.Join(parts, " ")
}
