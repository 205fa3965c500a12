package ncu

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// launchRows writes the rows of a launch of k, by its ID, from metric, unit and value in turn.
func launchRows(id string, cells ...string) string {
	text := ""
	for i := 0; i < len(cells); i += 3 {
		text += strings.Replace(row("k", cells[i], cells[i+1], cells[i+2]), `"0"`, `"`+id+`"`, 1)
	}
	return text
}

// A mean is of all launches: one that lacks what another has would be taken for a zero.
func TestMeanOfSome(t *testing.T) {
	const (
		tensor = "sm__ops_path_tensor_src_bf16_dst_fp32.sum"
		fadd   = "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum"
		ffma   = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
		clock  = "sm__cycles_elapsed.avg.per_second"
	)
	base := []string{"gpu__time_duration.sum", "us", "100", "dram__bytes.sum", "byte", "4096"}
	with := func(more ...string) []string { return append(append([]string{}, base...), more...) }
	for _, c := range []struct {
		some, other []string
		want        string
	}{
		{with(tensor, "", "5"), base, "kernel k: " + tensor + " in 1 of 2 launches: want it in all"},
		{with(fadd, "inst", "5", ffma, "inst", "5"), with(ffma, "inst", "5"), "kernel k: " + fadd + " in 1 of 2 launches: want it in all"},
		{base, []string{"gpu__time_duration.sum", "us", "0", "dram__bytes.sum", "byte", "4096"}, "kernel k: a time above 0 in 1 of 2 launches: want it in all"},
		{with(clock, "hz", "1e9"), with(clock, "hz", "0"), "kernel k: a clock above 0 in 1 of 2 launches: want it in all"},
	} {
		for _, order := range [][2][]string{{c.some, c.other}, {c.other, c.some}} {
			_, err := Read(strings.NewReader(head+launchRows("0", order[0]...)+launchRows("1", order[1]...)), "f.csv")
			require.EqualError(t, err, "f.csv:2: "+c.want)
		}
	}
}

// What a launch lacks its other metrics give, before the mean is taken.
func TestMeanOfDerived(t *testing.T) {
	text := head + launchRows("0", "gpu__time_duration.sum", "us", "100", "dram__bytes.sum.per_second", "byte/second", "1000000000") +
		launchRows("1", "sm__cycles_elapsed.avg", "cycle", "300000", "sm__cycles_elapsed.avg.per_second", "hz", "1000000000", "dram__bytes.sum.per_second", "byte/second", "3000000000")
	_, err := Read(strings.NewReader(text), "f.csv")
	require.EqualError(t, err, "f.csv:2: kernel k: cycles in 1 of 2 launches: want it in all")
	text = head
	for _, c := range [][3]string{{"0", "100000", "1000000000"}, {"1", "300000", "3000000000"}} {
		text += launchRows(c[0], "sm__cycles_elapsed.avg", "cycle", c[1], "sm__cycles_elapsed.avg.per_second", "hz", "1000000000", "dram__bytes.sum.per_second", "byte/second", c[2])
	}
	k := only(t, text)
	require.InEpsilon(t, 200, k.TimeUS, 1e-12)
	require.InEpsilon(t, (1e5+9e5)/2, k.Work.HBMBytes.Value, 1e-12, "each launch's rate holds for its own time")
}

// Files that write numbers differently keep every digit when they are joined, in either order.
func TestNotationsJoined(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(head+text), 0o644))
		return path
	}
	a := file("a.csv", row("k", "dram__bytes.sum", "Mbyte", "1,5")+row("k", "lts__t_bytes.sum", "Mbyte", "2.345,25"))
	for _, seconds := range []string{"0.0000257", "0.00000149", "0.0000004321"} {
		b := file("b.csv", row("k", "gpu__time_duration.sum", "second", seconds)+row("k", "smsp__inst_executed.sum", "inst", "123.0"))
		for _, files := range [][]string{{a, b}, {b, a}} {
			r, err := ReadFiles(files...)
			require.NoError(t, err)
			require.Len(t, r.Kernels, 1)
			us, err := point.parse(seconds)
			require.NoError(t, err)
			require.InEpsilon(t, us*1e6, r.Kernels[0].TimeUS, 1e-12)
			require.InEpsilon(t, 2345.25e6, r.Kernels[0].Work.L2Bytes.Value, 1e-12)
		}
	}
}

// A mean, or passes, of two GPUs' launches are of neither.
func TestGPUsMixed(t *testing.T) {
	const wide = "\"ID\",\"Process ID\",\"Kernel Name\",\"CC\",\"device__attribute_display_name\",\"gpu__time_duration.sum\",\"dram__bytes.sum\"\n\"\",\"\",\"\",\"\",\"\",\"us\",\"byte\"\n"
	const a100, h100 = "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3"
	launch := func(id, kernel, cc, gpu string) string {
		return `"` + strings.Join([]string{id, "1", kernel, cc, gpu, "10", "4096"}, `","`) + "\"\n"
	}
	for _, c := range []struct{ second, want string }{
		{launch("1", "k", "9.0", h100), `f.csv:4: kernel k: on NVIDIA H100 80GB HBM3, but k of f.csv:3 on NVIDIA A100-SXM4-80GB: want the launches of one GPU`},
		{launch("1", "other", "", h100), `f.csv:4: kernel other: on NVIDIA H100 80GB HBM3, but k of f.csv:3 on NVIDIA A100-SXM4-80GB`},
		{launch("1", "k", "9.0", ""), `f.csv:4: kernel k: on compute capability 9.0, but k of f.csv:3 on 8.0`},
	} {
		_, err := Read(strings.NewReader(wide+launch("0", "k", "8.0", a100)+c.second), "f.csv")
		require.ErrorContains(t, err, c.want)
	}
	// The same GPU by two names, and one launch that does not tell.
	for _, second := range []string{launch("1", "k", "8,0", "A100 SXM4 80GB"), launch("1", "k", "", "")} {
		r := read(t, wide+launch("0", "k", "8.0", a100)+second)
		require.Equal(t, 2, r.Kernels[0].Launches)
		require.Equal(t, a100, r.Device)
		require.Equal(t, "8.0", r.CC)
	}
	// Passes of one launch by different GPUs.
	_, err := Read(strings.NewReader(head+row("k", "gpu__time_duration.sum", "us", "10")+row("k", "device__attribute_display_name", "", a100)+
		head+row("k", "dram__bytes.sum", "byte", "4096")+row("k", "device__attribute_display_name", "", h100)), "f.csv")
	require.ErrorContains(t, err, "f.csv:5: kernel k: on NVIDIA H100 80GB HBM3, but k of f.csv:2 on NVIDIA A100-SXM4-80GB")
}
