package codegen

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/ir"
)

// accessFacts are what is known of the first load of a kernel with the given assumptions
// and body, over tiles i of a view x of halves.
func accessFacts(t *testing.T, assume, body string) (vector int, inside []bool) {
	t.Helper()
	var b strings.Builder
	b.WriteString("kernel @k(%x: view<f16>[M, N], %r: view<i32>[M], %n: i32) {\n")
	for _, a := range strings.Split(assume, "; ") {
		if a != "" {
			fmt.Fprintf(&b, "  assume %s\n", a)
		}
	}
	b.WriteString("  over %i: ceildiv(M, 48)\n  %zero = const 0 : i32\n  %c = const 48 : i32\n  %h = const 8 : i32\n  %row = mul %i, %c\n" + body + "\n}\n")
	p, err := ir.Parse("facts", []byte(b.String()))
	require.NoError(t, err, b.String())
	k := p.Kernels[0]
	f := newFacts(k)
	var load *ir.Op
	k.Walk(func(o *ir.Op) {
		if o.Code == ir.OpLoad && o.Result().Name == "v" {
			load = o
		}
	})
	a := accessOf(load, load.Result().Type.Shape)
	for axis := range a.shape {
		inside = append(inside, f.inside(a, axis))
	}
	return f.vector(a, 16), inside
}

// TestAccessFacts holds vector widths, and what never reaches outside a view, to the
// assumptions they follow from.
func TestAccessFacts(t *testing.T) {
	const dense = "stride(%x, 1) = 1; stride(%x, 0) % 8 = 0; pointer(%x) % 16 = 0; dim(%x, 1) % 8 = 0"
	load := "  %v = load %x[%row, %zero] : <48x64xf16>"
	for _, c := range []struct {
		what, assume, body string
		vector             int
		inside             []bool
	}{
		{"all is aligned", dense, load, 8, []bool{false, false}},
		{"no unit stride", strings.Replace(dense, "stride(%x, 1) = 1; ", "", 1), load, 1, []bool{false, false}},
		{"rows of any length", strings.Replace(dense, "; dim(%x, 1) % 8 = 0", "", 1), load, 1, []bool{false, false}},
		{"rows of four", strings.Replace(dense, "stride(%x, 0) % 8", "stride(%x, 0) % 4", 1), load, 4, []bool{false, false}},
		{"a pointer to two", strings.Replace(dense, "% 16 = 0", "% 4 = 0", 1), load, 2, []bool{false, false}},
		{"whole tiles of rows", dense + "; dim(%x, 0) % 96 = 0", load, 8, []bool{true, false}},
		{"a tile of 12 columns", dense, "  %v = load %x[%row, %zero] : <48x12xf16>", 4, []bool{false, false}},
		{"columns of an unknown start", dense, "  %v = load %x[%row, %n] : <48x64xf16>", 1, []bool{false, false}},
		{"columns of a known start", dense + "; %n % 8 = 0", "  %v = load %x[%row, %n] : <48x64xf16>", 8, []bool{false, false}},
		{"a loop over the columns", dense, "  %e = dim %x axis=1\n  for %k = %zero to %e step %h {\n    %v = load %x[%row, %k] : <48x8xf16>\n  }", 8, []bool{false, true}},
		{"a loop with an odd start", dense, "  %e = dim %x axis=1\n  for %k = %n to %e step %h {\n    %v = load %x[%row, %k] : <48x8xf16>\n  }", 1, []bool{false, false}},
		{"a loop past the columns", dense, "  %e = add %n, %h\n  for %k = %zero to %e step %h {\n    %v = load %x[%row, %k] : <48x8xf16>\n  }", 8, []bool{false, false}},
		{"part of the view", dense, "  %s = subview %x[%row, %h] extent [%c, %c]\n  %v = load %s[%zero, %zero] : <48x48xf16>", 8, []bool{false, false}},
		{"part of unknown width", dense, "  %s = subview %x[%row, %h] extent [%c, %n]\n  %v = load %s[%zero, %zero] : <48x48xf16>", 1, []bool{false, false}},
		{"rows by a table", dense, "  %t = load %r[%zero] : <48xi32>\n  %v = load %x[%t, %zero] : <48x64xf16>", 8, []bool{false, false}},
	} {
		t.Run(c.what, func(t *testing.T) {
			vector, inside := accessFacts(t, c.assume, c.body)
			require.Equal(t, c.vector, vector, "elements at once")
			require.Equal(t, c.inside, inside, "never outside, by axis")
		})
	}
}

// TestProductDivides holds the bound on known divisors: what is returned divides the
// product.
func TestProductDivides(t *testing.T) {
	for _, x := range []int64{0, 1, 3, 48, 1000003, 1 << 20, 3 << 29, 1<<31 - 1} {
		for _, y := range []int64{0, 1, 5, 16, 1000003, 1 << 12, 1 << 30} {
			p := product(x, y)
			if x == 0 || y == 0 {
				require.Zero(t, p)
				continue
			}
			require.Positive(t, p)
			require.LessOrEqual(t, p, int64(1)<<30)
			require.Zero(t, (x%p)*(y%p)%p, "%d * %d and %d", x, y, p)
		}
	}
}
