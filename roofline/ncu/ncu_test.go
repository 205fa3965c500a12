package ncu

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/roofline"
)

func TestSamples(t *testing.T) {
	for _, c := range []struct {
		file, kernel string
		bytes, us    float64
	}{
		{"rtx5070_gemm_tiled.csv", "gemm", 56639232, 10195.552},
		{"rtx5070_saxpy.csv", "saxpy_kernel", 177852672, 292.928},
		{"rtx5070_transpose_naive.csv", "transpose", 23401216, 163.072},
	} {
		r, err := ReadFiles(filepath.Join("testdata", c.file))
		require.NoError(t, err)
		require.Len(t, r.Kernels, 1)
		k := r.Kernels[0]
		require.Contains(t, k.Name, c.kernel)
		require.Equal(t, c.bytes, k.Work.HBMBytes.Value)
		require.InDelta(t, c.us, k.TimeUS, 1e-6)
	}
}

// TestMade: exports of other chips, pages and languages, written here (testdata/README.md).
func TestMade(t *testing.T) {
	type kernel struct {
		name          string
		launches      int
		us, hbm, l2   float64
		ops           []roofline.Operations
		instructions  float64
		waves, active float64
	}
	ops := func(m target.Math, n float64) []roofline.Operations {
		return []roofline.Operations{{Math: m, Count: roofline.Counted(n)}}
	}
	const sector = 32
	for _, c := range []struct {
		files   []string
		device  string
		unused  []string
		kernels []kernel
	}{
		{[]string{"a100_details_de.csv"}, "", []string{"DRAM Frequency", "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained"}, []kernel{
			{name: "vectorized_elementwise_kernel", launches: 2, us: (287.49 + 286.11) / 2, hbm: (1402301234567.89*287.49 + 1409115222333.44*286.11) / 2 / 1e6, waves: 37.93, active: 0.917},
		}},
		{[]string{"h100_raw.csv"}, "NVIDIA H100 80GB HBM3", []string{"launch__block_size", "launch__grid_size", "launch__occupancy_limit_registers", "launch__registers_per_thread"}, []kernel{
			{
				name: "device_kernel<enable_sm90_or_later<FlashAttnFwdSm90<CollectiveMainloopFwdSm90<2,", launches: 1, us: 1127.328, hbm: 338690048, l2: sector * 212101120,
				ops: []roofline.Operations{{Math: target.F32, Count: roofline.Counted(2e6)}, {Math: target.BF16, Count: roofline.Counted(549755813888)}}, instructions: 12345678, waves: 1, active: 0.185,
			},
			{name: "rms_norm", launches: 3, us: 41.408, hbm: 134217728, l2: sector * 8388608, ops: ops(target.F32, 2*16777216+8388608+33554432), instructions: 12345678, waves: 1, active: 0.185},
			{name: "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT", launches: 1, us: 1368.96, hbm: 402653184, l2: sector * 100663296, ops: ops(target.BF16, 1099511627776), instructions: 12345678, waves: 1, active: 0.185},
		}},
		{[]string{"rtx4090_gui_fr.csv"}, "NVIDIA GeForce RTX 4090", []string{}, []kernel{
			{name: "sgemm_128x128", launches: 2, us: 2400, hbm: 201.34e6, l2: 4311.74e6, ops: ops(target.F32, 2*68719476736), instructions: 153092096},
		}},
		{[]string{"v100_two_passes.csv"}, "", []string{}, []kernel{
			{name: "stencil", launches: 2, us: 25.664, hbm: 17179869, ops: ops(target.F64, 6442450+2*2147483)},
		}},
		{[]string{"gb10_details_ch.csv"}, "", []string{}, []kernel{
			{name: "decode", launches: 1, us: 1512.448, l2: sector * 12582912, ops: ops(target.F32, 2*67108864), instructions: 8388608.5},
		}},
		{[]string{"b200_time.csv", "b200_counters.csv"}, "NVIDIA B200", []string{}, []kernel{
			{name: "gemm_tcgen05", launches: 3, us: (812.35 + 811.9 + 812.5) / 3, hbm: 1.25e9 + 268.44e6, ops: ops(target.F8Acc32, 2199023255552)},
		}},
	} {
		t.Run(c.files[0], func(t *testing.T) {
			var files []string
			for _, f := range c.files {
				files = append(files, filepath.Join("testdata", "made", f))
			}
			r, err := ReadFiles(files...)
			require.NoError(t, err)
			require.Equal(t, c.device, r.Device)
			require.ElementsMatch(t, c.unused, r.Unused)
			require.Empty(t, r.Notes)
			require.Len(t, r.Kernels, len(c.kernels))
			for i, want := range c.kernels {
				k := &r.Kernels[i]
				require.Equal(t, want.name, k.Name)
				require.Equal(t, want.launches, k.Launches)
				require.Equal(t, want.ops, k.Work.Operations)
				for _, x := range [][2]float64{
					{want.us, k.TimeUS}, {want.hbm, k.Work.HBMBytes.Value}, {want.l2, k.Work.L2Bytes.Value},
					{want.instructions, k.Work.Issue.Value}, {want.waves, k.Seen.Waves}, {want.active, k.Seen.Occupancy},
				} {
					require.InDelta(t, x[0], x[1], 1e-9*x[0])
				}
			}
			if c.device != "" {
				_, err := target.Lookup(c.device)
				require.NoError(t, err)
			}
		})
	}
}

const head = `"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"` + "\n"

func TestNotations(t *testing.T) {
	r, err := Read(strings.NewReader(head+`"0","1","k(int)","gpu__time_duration.sum","us","65,77"`+"\n"+`"0","1","k(int)","dram__bytes.sum","byte","27.595.520"`+"\n"), "eu.csv")
	require.NoError(t, err)
	require.InDelta(t, 65.77, r.Kernels[0].TimeUS, 1e-9)
	require.Equal(t, 27595520.0, r.Kernels[0].Work.HBMBytes.Value)
	for text, want := range map[string]string{
		head + row("k", "gpu__time_duration.sum", "ns", "-5"):                          "f.csv:2: metric gpu__time_duration.sum: -5 ns: want a number from 0",
		head + plainRows + row("k", "lts__t_bytes.sum", "Gbyte", "1e308"):              "f.csv:4: metric lts__t_bytes.sum: 1e308 Gbyte: want a number from 0",
		head + plainRows + row("k", "lts__t_bytes.sum", "byte", "9223372036854775808"): "f.csv:4: metric lts__t_bytes.sum: 9223372036854775808 byte: want",
		head + plainRows + row("k", "lts__t_bytes.sum", "byte", "1e999"):               `f.csv:4: metric lts__t_bytes.sum: number "1e999": want a finite one`,
		strings.TrimSuffix(head+plainRows, "\"\n"):                                     "f.csv:3: a quote without its end: is the file cut off?",
		"": "f.csv:1: no table", head: "f.csv:1: a table without rows",
		head + `"0","1","k","gpu__time_duration.sum","us","1,234"`:   `f.csv:2: number "1,234": may be a thousand times`,
		head + `"0","1","k","gpu__time_duration.sum","us"`:           "f.csv:2: 5 fields: want the header's 6",
		head + `"0","1","k","gpu__time_duration.sum","furlong","12"`: `unit "furlong": unknown`,
		head + `"0","1","k","gpu__time_duration.sum","us","0"`:       "no time, or one of 0",
		head + `"0","1","k","gpu__time_duration.sum","us","nan"`:     "no time, or one of 0",
	} {
		_, err := Read(strings.NewReader(text), "f.csv")
		require.ErrorContains(t, err, want, text)
	}
}

// A value without quotes may be cut off without a trace but the newline.
func TestCutOff(t *testing.T) {
	const text = "ID,Kernel Name,gpu__time_duration.sum,dram__bytes.sum\n,,ns,byte\n0,k,2000,4096\n"
	require.Empty(t, read(t, text).Notes)
	require.Empty(t, read(t, strings.TrimSuffix(head+plainRows, "\n")).Notes)
	require.Equal(t, []string{"f.csv:3: no newline ends the last line: if the file is cut off, its last value is wrong"}, read(t, text[:len(text)-3]).Notes)
}

func FuzzRead(f *testing.F) {
	f.Add(head + `"0","1","k(int)","gpu__time_duration.sum","us","65,77"`)
	f.Fuzz(func(t *testing.T, text string) {
		if r, err := Read(strings.NewReader(text), "f.csv"); err == nil {
			require.NotEmpty(t, r.Kernels)
		}
	})
}
