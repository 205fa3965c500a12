package ncu

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/roofline"
)

// row writes a line of the long form for launch 0 of process 1.
func row(kernel, metric, unit, value string) string {
	return strings.Join([]string{`"0","1","` + kernel, metric, unit, value + `"` + "\n"}, `","`)
}

func read(t *testing.T, text string) *Report {
	t.Helper()
	r, err := Read(strings.NewReader(text), "f.csv")
	require.NoError(t, err)
	return r
}

// only is the one kernel of a text.
func only(t *testing.T, text string) *roofline.Kernel {
	t.Helper()
	r := read(t, text)
	require.Len(t, r.Kernels, 1)
	return &r.Kernels[0]
}

var plainRows = row("k(int)", "gpu__time_duration.sum", "ns", "2000") + row("k(int)", "dram__bytes.sum", "byte", "4096")

// What exports do that a table does not: one test for each.
func TestIrregularities(t *testing.T) {
	right := func(t *testing.T, text string) {
		t.Helper()
		k := only(t, text)
		require.Equal(t, 2.0, k.TimeUS)
		require.Equal(t, 4096.0, k.Work.HBMBytes.Value)
	}
	for _, c := range []struct {
		name string
		test func(t *testing.T)
	}{
		{"byte order mark and CRLF", func(t *testing.T) {
			right(t, "\ufeff"+strings.ReplaceAll(head+plainRows, "\n", "\r\n"))
		}},
		{"words of the profiler and the program before, between and after", func(t *testing.T) {
			lines := strings.SplitAfter(head+plainRows, "\n")
			right(t, "==PROF== Connected to process 7 (/home/someone/a.out)\nresult: 1, 2, 3\n"+strings.Join(lines, "step, done\n==WARNING== slow\n\n")+"bye\n==PROF== Disconnected\n")
		}},
		{"names in C++", func(t *testing.T) {
			k := only(t, head+strings.ReplaceAll(plainRows, "k(int)", `void ns::(anonymous namespace)::gemm<float, (int)128, ""x"">(T1 *, T2)`))
			require.Equal(t, 2.0, k.TimeUS)
			require.Contains(t, k.Name, "gemm")
		}},
		{"thousands separators", func(t *testing.T) {
			k := only(t, head+row("k", "gpu__time_duration.sum", "ns", "1,209,252.43")+row("k", "dram__bytes.sum", "byte", "690,960,320"))
			require.InDelta(t, 1209.25243, k.TimeUS, 1e-9)
			require.Equal(t, 690960320.0, k.Work.HBMBytes.Value)
		}},
		{"European numbers, and those that may be either", func(t *testing.T) {
			k := only(t, head+row("k", "gpu__time_duration.sum", "us", "65,77")+row("k", "dram__bytes.sum", "byte", "27.595.520")+row("k", "lts__t_bytes.sum", "byte", "1.234"))
			require.InDelta(t, 65.77, k.TimeUS, 1e-9)
			require.Equal(t, 1234.0, k.Work.L2Bytes.Value)
			for text, want := range map[string]string{
				head + row("k", "gpu__time_duration.sum", "us", "1.234"):                                         `f.csv:2: number "1.234": may be a thousand times as much`,
				head + row("k", "gpu__time_duration.sum", "us", "65,7") + row("k", "dram__bytes.sum", "", "1.5"): `f.csv:2: number "65,7" beside "1.5" in line 3: the file mixes`,
				head + row("k", "gpu__time_duration.sum", "us", "1,23,4"):                                        `f.csv:2: number "1,23,4": neither 1,234.5 nor 1.234,5`,
			} {
				_, err := Read(strings.NewReader(text), "f.csv")
				require.ErrorContains(t, err, want)
			}
		}},
		{"no unit, and words for no value", func(t *testing.T) {
			rows := row("k", "gpu__time_duration.sum", "", "2000") + row("k", "dram__bytes.sum", "", "4096")
			for _, none := range []string{"", "n/a", "(!) n/a", "no data", "nan"} {
				rows += row("k", "lts__t_bytes.sum", "byte", none)
			}
			right(t, head+rows)
			require.Zero(t, only(t, head+rows).Work.L2Bytes.Value)
		}},
		{"spellings of units", func(t *testing.T) {
			for spelled, us := range map[string]float64{"ns": 1e-3, "nsecond": 1e-3, "us": 1, "usecond": 1, "msecond": 1e3, "second": 1e6} {
				require.InEpsilon(t, 3*us, only(t, head+row("k", "gpu__time_duration.sum", spelled, "3")+row("k", "dram__bytes.sum", "Kbyte", "4")).TimeUS, 1e-12, spelled)
			}
			for spelled, factor := range map[string]float64{"byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9} {
				require.InEpsilon(t, 3*factor, only(t, head+row("k", "gpu__time_duration.sum", "us", "3")+row("k", "dram__bytes.sum", spelled, "3")).Work.HBMBytes.Value, 1e-12, spelled)
			}
			for spelled, mhz := range map[string]float64{"hz": 3e-6, "Ghz": 3e3, "cycle/second": 3e-6, "cycle/nsecond": 3e3} {
				require.InEpsilon(t, mhz, only(t, head+plainRows+row("k(int)", "sm__cycles_elapsed.avg.per_second", spelled, "3")).ClockMHz, 1e-12, spelled)
			}
			for _, spelled := range []string{"byte/second", "Gbyte/s"} {
				k := only(t, head+row("k", "gpu__time_duration.sum", "second", "1")+row("k", "dram__bytes.sum.per_second", spelled, "3"))
				require.NotZero(t, k.Work.HBMBytes.Value)
			}
			k := only(t, head+plainRows+row("k(int)", "smsp__inst_executed.sum", "inst", "7")+row("k(int)", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "sector", "8")+
				row("k(int)", "lts__t_sector_hit_rate.pct", "%", "50")+row("k(int)", "launch__registers_per_thread", "register/thread", "32"))
			require.Equal(t, 0.5, k.Seen.HitRate)
			require.Equal(t, 8.0, k.Seen.Loads.Sectors)
		}},
		{"the GUI's units in headers", func(t *testing.T) {
			right(t, "\"ID\",\"Function Name\",\"gpu__time_duration.sum [us]\",\"dram__bytes.sum [Kbyte]\"\n\"0\",\"k\",\"2\",\"4.096\"\n\"1\",\"k\",\"2.0\",\"4.096\"\n")
		}},
		{"several processes and devices", func(t *testing.T) {
			text := `"ID","Process ID","Device","Kernel Name","Metric Name","Metric Unit","Metric Value"` + "\n"
			for _, launch := range []string{`"0","1","0"`, `"0","2","0"`, `"0","1","1"`} {
				text += launch + `,"k","gpu__time_duration.sum","ns","2000"` + "\n" + launch + `,"k","dram__bytes.sum","byte","4096"` + "\n"
			}
			k := only(t, text)
			require.Equal(t, 3, k.Launches)
			require.Equal(t, 2.0, k.TimeUS)
			contexts := `"ID","Process ID","Context","Kernel Name","Metric Name","Metric Unit","Metric Value"` + "\n"
			for _, launch := range []string{`"0","1","1"`, `"0","1","2"`} {
				contexts += launch + `,"k","gpu__time_duration.sum","ns","2000"` + "\n" + launch + `,"k","dram__bytes.sum","byte","4096"` + "\n"
			}
			require.Equal(t, 2, only(t, contexts).Launches)
		}},
		{"a device by name", func(t *testing.T) {
			wide := "\"ID\",\"Device\",\"Kernel Name\",\"device__attribute_display_name\",\"gpu__time_duration.sum\",\"dram__bytes.sum\"\n\"\",\"\",\"\",\"\",\"ns\",\"byte\"\n"
			r := read(t, wide+"\"0\",\"NVIDIA A100-SXM4-80GB\",\"k\",\"NVIDIA A100-SXM4-80GB\",\"2000\",\"4096\"\n")
			require.Equal(t, "NVIDIA A100-SXM4-80GB", r.Device)
			g, err := target.Lookup(r.Device)
			require.NoError(t, err)
			require.Equal(t, "a100-sxm4-80", g.ID)
			require.Equal(t, "NVIDIA H200", read(t, wide+"\"0\",\"NVIDIA H200\",\"k\",\"\",\"2000\",\"4096\"\n").Device)
			require.Empty(t, read(t, wide+"\"0\",\"0\",\"k\",\"n/a\",\"2000\",\"4096\"\n").Device)
		}},
		{"passes in files of their own", func(t *testing.T) {
			dir := t.TempDir()
			var files []string
			for name, text := range map[string]string{
				"a.csv": head + row("k", "gpu__time_duration.sum", "ns", "2000"), "b.csv": head + row("k", "dram__bytes.sum", "byte", "4096"),
			} {
				files = append(files, filepath.Join(dir, name))
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
			}
			r, err := ReadFiles(files...)
			require.NoError(t, err)
			require.Len(t, r.Kernels, 1)
			require.Equal(t, 1, r.Kernels[0].Launches)
			require.Equal(t, 4096.0, r.Kernels[0].Work.HBMBytes.Value)
			// Or joined by hand: the header is there again, IDs and process repeat.
			k := only(t, head+row("k", "gpu__time_duration.sum", "ns", "2000")+head+row("k", "dram__bytes.sum", "byte", "4096"))
			require.Equal(t, 1, k.Launches)
			require.Equal(t, 4096.0, k.Work.HBMBytes.Value)
			require.Equal(t, 2, only(t, head+plainRows+head+plainRows).Launches, "the same again is another launch")
			_, err = Read(strings.NewReader(head+plainRows+row("k(int)", "dram__bytes.sum", "byte", "4100")), "f.csv")
			require.ErrorContains(t, err, "f.csv:4: metric dram__bytes.sum of kernel k is there twice for one launch")
		}},
		{"cycles skewed by counting instructions", func(t *testing.T) {
			slow := row("k", "gpu__time_duration.sum", "ns", "300000") + row("k", "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", "inst", "10")
			fast := strings.ReplaceAll(row("k", "gpu__time_duration.sum", "ns", "2000")+row("k", "dram__bytes.sum", "byte", "4096"), `"0","1"`, `"0","2"`)
			k := only(t, head+slow+fast)
			require.Equal(t, 2.0, k.TimeUS)
			require.Equal(t, []roofline.Operations{{Math: target.F32, Count: roofline.Counted(20)}}, k.Work.Operations)
		}},
		{"half precision works on pairs", func(t *testing.T) {
			const counter = "smsp__sass_thread_inst_executed_op_"
			k := only(t, head+plainRows+row("k(int)", counter+"hadd_pred_on.sum", "inst", "100")+
				row("k(int)", counter+"hmul_pred_on.sum", "inst", "10")+row("k(int)", counter+"hfma_pred_on.sum", "inst", "1"))
			require.Equal(t, []roofline.Operations{{Math: target.F16Vector, Count: roofline.Counted(2*100 + 2*10 + 4)}}, k.Work.Operations)
		}},
		{"names below names", func(t *testing.T) {
			k := only(t, head+plainRows+row("k(int)", "dram__bytes.sum.peak_sustained", "byte/cycle", "99")+
				row("k(int)", "dram__bytes.sum.per_second", "byte/second", "1")+row("k(int)", "dram__bytes.sum.pct_of_peak_sustained_elapsed", "%", "3")+row("k(int)", "dram__bytes.avg", "byte", "5"))
			require.Equal(t, 4096.0, k.Work.HBMBytes.Value)
		}},
		{"graphs and ranges without a kernel", func(t *testing.T) {
			r := read(t, head+plainRows+row("", "gpu__time_duration.sum", "ns", "9"))
			require.Equal(t, 1, r.Skipped)
			require.Len(t, r.Kernels, 1)
			_, err := Read(strings.NewReader(head+row("", "gpu__time_duration.sum", "ns", "9")), "f.csv")
			require.ErrorContains(t, err, "no kernels: 1 rows are of graphs or ranges")
		}},
		{"cold caches: more bytes counted than the time allows", func(t *testing.T) {
			k := only(t, head+row("k", "gpu__time_duration.sum", "us", "3")+row("k", "dram__bytes.sum", "Mbyte", "16"))
			g, err := target.Lookup("a100")
			require.NoError(t, err)
			j, err := k.Judge(roofline.DeviceRoofs(g))
			require.NoError(t, err)
			require.Equal(t, roofline.CacheResident, j.Verdict.Cause)
		}},
		{"nobody's folder in an error", func(t *testing.T) {
			_, err := Read(strings.NewReader("==PROF== /home/someone/secret\n"+head+row("k", "gpu__time_duration.sum", "furlong", "1")), "f.csv")
			require.ErrorContains(t, err, `f.csv:3: metric gpu__time_duration.sum: unit "furlong": unknown`)
			require.NotContains(t, err.Error(), "someone")
			_, err = Read(strings.NewReader("/home/someone/secret\n"), "f.csv")
			require.NotContains(t, err.Error(), "someone")
		}},
	} {
		t.Run(c.name, c.test)
	}
}

func TestUnknownMetricsAreNamed(t *testing.T) {
	r := read(t, head+plainRows+row("k(int)", "sm__made_up.sum", "inst", "1")+row("k(int)", "Another Label", "", "2"))
	require.Equal(t, []string{"Another Label", "sm__made_up.sum"}, r.Unused)
}

// Metrics are called differently on each chip and page.
func TestNamesByChip(t *testing.T) {
	time := row("k", "gpu__time_duration.sum", "us", "10")
	for name, rows := range map[string]string{
		"sum": row("k", "dram__bytes.sum", "byte", "96"), "read and write": row("k", "dram__bytes_read.sum", "byte", "64") + row("k", "dram__bytes_write.sum", "byte", "32"),
		"GB202": row("k", "dram__bytes_op_read.sum", "byte", "64") + row("k", "dram__bytes_op_write.sum", "byte", "32"), "sectors": row("k", "dram__sectors.sum", "sector", "3"),
		"rate": row("k", "dram__bytes.sum.per_second", "byte/second", "9600000"), "label": row("k", "Memory Throughput", "byte/second", "9600000"),
	} {
		require.InEpsilon(t, 96, only(t, head+time+rows).Work.HBMBytes.Value, 1e-12, name)
	}
	for metric, want := range map[string]target.Math{
		"sm__ops_path_tensor_src_fp16_bf16_tf32_dst_fp32.sum": target.F16Acc32, "sm__ops_path_tensor_src_bf16_dst_fp32.sum": target.BF16,
		"sm__ops_path_tensor_src_tf32_dst_fp32.sum": target.TF32, "sm__ops_path_tensor_src_int8.sum": target.I8, "sm__ops_path_tensor_src_fp64.sum": target.F64Tensor,
		"sm__ops_path_tensor_src_fp8.sum": target.F8Acc32, "sm__ops_path_tensor_src_fp8_dst_fp16.sum": target.F8Acc16, "sm__ops_path_tensor_src_fp4_dst_fp32.sum": target.F4,
		"sm__ops_path_tensor_src_fp16_dst_fp16.sum": target.F16Acc16,
	} {
		// What counts a part of it beside it is not counted again.
		for _, rows := range []string{"", row("k", strings.TrimSuffix(metric, ".sum")+"_sparsity_off.sum", "", "900")} {
			ops := only(t, head+time+row("k", metric, "", "1000")+rows).Work.Operations
			require.Equal(t, []roofline.Operations{{Math: want, Count: roofline.Counted(1000)}}, ops, metric)
		}
	}
}
