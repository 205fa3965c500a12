package main

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/roofline/measured"
	"github.com/kgen-dev/kgen/tune/document"
)

// TestTable: every source gives problems, every ratio is a likely one, and the document
// holds a table of the same groups.
func TestTable(t *testing.T) {
	var table bytes.Buffer
	require.NoError(t, run(&table, 2, "../../roofline/reproduce/data"))
	text, err := os.ReadFile("../../docs/library-ratio.md")
	require.NoError(t, err)
	_, written, found := bytes.Cut(text, []byte(document.Mark("library-ratio")))
	require.True(t, found)
	now, then := strings.Split(table.String(), "\n"), strings.Split(string(written), "\n")
	require.Equal(t, len(then), len(now), "run make library-ratio")
	require.Equal(t, then[:2], now[:2])
	for i, line := range now[2 : len(now)-1] {
		cells := strings.Split(line, " | ")
		require.Equal(t, strings.Split(then[i+2], " | ")[:5], cells[:5], "run make library-ratio")
		require.Len(t, cells, 13)
		median, err := strconv.ParseFloat(cells[7], 64)
		require.NoError(t, err, line)
		require.True(t, median > 0.05 && median < 20, line)
	}
}

func TestQuantile(t *testing.T) {
	require.Equal(t, []string{"1.00", "3.00", "5.00", "-"}, []string{
		quantile([]float64{5, 4, 3, 2, 1}, 0.1), quantile([]float64{5, 4, 3, 2, 1}, 0.5), quantile([]float64{5, 4, 3, 2, 1}, 0.9), quantile(nil, 0.5),
	})
}

// TestFlags: what the families lack is left out.
func TestFlags(t *testing.T) {
	s := measured.Sample{Op: measured.Prefill, Type: "float16", KVType: "float16", Attention: measured.Attention{Batch: 2, NewTokens: 8, PastTokens: 3, Heads: 4, KVHeads: 2, HeadDim: 64}}
	flags, ok := flagsOf(&s)
	require.True(t, ok)
	require.Equal(t, map[string]string{"dtype": "f16", "batch": "2", "heads": "4", "kv-heads": "2", "head-dim": "64", "seq": "8", "seq-kv": "11"}, flags)
	s.Window = 128
	_, ok = flagsOf(&s)
	require.False(t, ok)
	s.Op, s.NewTokens = measured.Decode, 1
	flags, ok = flagsOf(&s)
	require.True(t, ok)
	require.Equal(t, "4", flags["context"])
	s.KVType = "fp8"
	_, ok = flagsOf(&s)
	require.False(t, ok)
}
