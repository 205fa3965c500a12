package ncu

import (
	"encoding/csv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/kgen-dev/kgen/internal/fixedseed"
)

// What no export holds is refused by file and line, and not read as something else.
func TestRefused(t *testing.T) {
	const wide = "\"ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\",\"CC\",\"gpu__time_duration.sum\",\"dram__bytes.sum\"\n\"\",\"\",\"\",\"\",\"\",\"us\",\"byte\"\n"
	row3 := func(block, grid, cc string) string {
		return wide + `"0","k","` + block + `","` + grid + `","` + cc + `","2","4096"` + "\n"
	}
	time := row("k", "gpu__time_duration.sum", "us", "2")
	for _, c := range []struct{ text, want string }{
		{row3("(-128, 1, 1)", "(1, 1, 1)", "9.0"), `f.csv:3: Block Size "(-128, 1, 1)": want up to three whole numbers above 0, such as (128, 1, 1)`},
		{row3("(128, 1, 1)", "(0, 1, 1)", "9.0"), `f.csv:3: Grid Size "(0, 1, 1)": want`},
		{row3("wide", "(1, 1, 1)", "9.0"), `f.csv:3: Block Size "wide": want`},
		{row3("(128, 1, 1, 1)", "(1, 1, 1)", "9.0"), `f.csv:3: Block Size "(128, 1, 1, 1)": want`},
		{row3("(128, 1, 1)", "(1, 1, 1)", "zz"), `f.csv:3: CC "zz": want a compute capability such as 9.0`},
		{wide + `"0","k","(1, 1, 1)","(1, 1, 1)","9.0","2","4096` + "\n", `f.csv:3: a quote without its end`},
		{head + time + `"0","1","k","dram__bytes.sum","byte","4096` + "\n", `f.csv:3: a quote without its end`},
		{strings.TrimSuffix(head, "\"\n") + "\n" + time, `f.csv:1: a quote without its end`},
		{head + time + row("k", "dram__bytes.sum", "byte", "4096") + row("k", "dram__bytes.sum", "Kbyte", "4096"),
			`f.csv:4: metric dram__bytes.sum of kernel k is there twice for one launch, as 4096 byte and as 4096 Kbyte`},
		{"\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\",\"dram__bytes.sum\",\"dram__bytes.sum\"\n\"\",\"\",\"us\",\"byte\",\"Mbyte\"\n\"0\",\"k\",\"2\",\"7\",\"7\"\n",
			`f.csv:3: metric dram__bytes.sum of kernel k is there twice`},
		{head + time + row("k", "dram__bytes.sum", "byte", "4096") + row("k", "launch__block_size", "", "-32"), `f.csv:4: launch__block_size "-32": want`},
		{head + time + row("k", "Compute (SM) Throughput", "%", "130"), `f.csv:3: metric Compute (SM) Throughput: 130 %: want a share from 0 to 100`},
		{head + time + row("k", "dram__throughput.avg.pct_of_peak_sustained_elapsed", "%", "101.5"), `f.csv:3: metric dram__throughput.avg.pct_of_peak_sustained_elapsed: 101.5 %: want`},
		{head + time + row("k", "Achieved Occupancy", "%", "-3"), `f.csv:3: metric Achieved Occupancy: -3 %: want a number from 0`},
	} {
		_, err := Read(strings.NewReader(c.text), "f.csv")
		require.ErrorContains(t, err, c.want, c.text)
	}
	require.Equal(t, 1.003, only(t, head+time+row("k", "Compute (SM) Throughput", "%", "100.3")).Seen.Busy[0].Share, "of two passes")
	// As versions and locales write what they describe.
	for _, sizes := range [][3]string{
		{"(128, 1, 1)", "(4294, 65535, 1)", "9.0"}, {"128, 1, 1", "1,024, 1, 1", "7.5"}, {" 128x1x1 ", "(1.024; 1; 1)", "12,0"}, {"", "n/a", ""}, {"256", "(1'024, 1, 1)", "10.3"}, {"(32,4,1)", "1,000, 2,000, 1", "8.6"}, {"256", "1’024", "9.0"},
	} {
		only(t, row3(sizes[0], sizes[1], sizes[2]))
	}
	// The same value in the same unit, by another spelling of none, is no contradiction.
	only(t, head+time+row("k", "dram__bytes.sum", "byte", "4096")+row("k", "dram__bytes.sum", "", "4096"))
}

// TestSeparators: what a spreadsheet saves, and Swiss numbers.
func TestSeparators(t *testing.T) {
	text := head + row("k", "gpu__time_duration.sum", "ns", "2’000,5") + row("k", "dram__bytes.sum", "byte", "4’096")
	k := only(t, strings.ReplaceAll(text, `","`, `";"`))
	require.InDelta(t, 2.0005, k.TimeUS, 1e-12)
	require.Equal(t, 4096.0, k.Work.HBMBytes.Value)
	k = only(t, strings.ReplaceAll(strings.ReplaceAll(text, `","`, "\t"), `"`, ""))
	require.Equal(t, 4096.0, k.Work.HBMBytes.Value)
	_, err := Read(strings.NewReader(strings.ReplaceAll(head+"\"0\",\"1\n", `","`, `";"`)), "f.csv")
	require.ErrorContains(t, err, "f.csv:2: ")
}

// TestSplitPlain: the short way gives what encoding/csv does, wherever it gives anything.
func TestSplitPlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.StringOf(rapid.SampledFrom([]rune(`",;a 1`))).Draw(t, "line")
		fields := splitPlain(nil, line, ",")
		if fields == nil {
			return
		}
		c := csv.NewReader(strings.NewReader(line))
		c.LazyQuotes = true
		want, err := c.Read()
		require.NoError(t, err)
		require.Equal(t, want, fields)
	})
}

func TestLongLine(t *testing.T) {
	_, err := Read(strings.NewReader(head+strings.Repeat("9", maxLine+1)), "f.csv")
	require.EqualError(t, err, "f.csv:2: a line of more than 4 MiB: want one of Nsight Compute's CSV")
}
