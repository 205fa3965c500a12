package bench_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
)

// TestLinesInOrder: the compiler's order of a source's lines is not that of the source.
func TestLinesInOrder(t *testing.T) {
	got := bench.SumLines([]bench.LineCount{{Source: "a.cu:10", Line: 3}, {Source: "a.cu:9", Line: 7}, {Line: 2}, {Source: "a.cu:10", Line: 8}})
	require.Equal(t, []bench.LineCount{{Line: 2}, {Source: "a.cu:9", Line: 7}, {Source: "a.cu:10", Line: 3}}, got)
}
