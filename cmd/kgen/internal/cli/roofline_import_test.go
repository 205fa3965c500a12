package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// manyKernels is how many kernels or configurations a large file holds.
const manyKernels = 100_000

// BenchmarkImport reads, judges and draws files of 100,000 points.
func BenchmarkImport(b *testing.B) {
	for _, c := range []struct {
		name string
		text func() string
		args []string
	}{
		{"long.csv", longProfile, []string{"--gpu", "h100"}},
		{"raw.csv", rawProfile, []string{"--gpu", "h100"}},
		{"cache.json", tuningCache, []string{"--gpu", "h100", "--flops", "1e12", "--bytes", "1e9", "--math", "fp16_acc32"}},
		{"tune.json", tuningResult, nil},
	} {
		file := filepath.Join(b.TempDir(), c.name)
		require.NoError(b, os.WriteFile(file, []byte(c.text()), 0o600))
		args := append([]string{"roofline", "import", file, "-o", filepath.Join(b.TempDir(), "points.svg")}, c.args...)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var errors strings.Builder
				require.Zero(b, Main(args, nil, io.Discard, &errors), errors.String())
			}
		})
	}
}

// profiled is the i-th kernel's time in nanoseconds, its bytes and its FMAs.
func profiled(i int) (ns, bytes, fmas int) {
	ns = 2_000 + i*7919%1_000_000
	return ns, 1_000 + ns*(i%29+1)*40, 1_000 + ns*(i%31+1)*300
}

// longProfile has a row for each metric of a kernel.
func longProfile() string {
	var t strings.Builder
	t.WriteString(`"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"` + "\n")
	for i := range manyKernels {
		ns, bytes, fmas := profiled(i)
		for _, m := range []struct {
			name, unit string
			value      int
		}{{"gpu__time_duration.sum", "nsecond", ns}, {"dram__bytes.sum", "byte", bytes}, {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", "inst", fmas}} {
			fmt.Fprintf(&t, `"%d","4711","app","127.0.0.1","void gemm_%d<float, 128>(float *, const float *)","1","7","(128, 1, 1)","(%d, 1, 1)","0","9.0","Command line profiler metrics","%s","%s","%d"`+"\n", i, i, i+1, m.name, m.unit, m.value)
		}
	}
	return t.String()
}

// rawProfile has a row for each kernel, and metrics that nothing needs.
func rawProfile() string {
	const others = 12
	var t strings.Builder
	t.WriteString(`"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","gpu__time_duration.sum","dram__bytes.sum","smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"`)
	units := `"","","","","","","","","","","","ns","byte","inst"`
	for i := range others {
		fmt.Fprintf(&t, `,"smsp__other_metric_%d.avg"`, i)
		units += `,"inst/cycle"`
	}
	t.WriteString("\n" + units + "\n")
	for i := range manyKernels {
		ns, bytes, fmas := profiled(i)
		fmt.Fprintf(&t, `"%d","4711","app","127.0.0.1","void gemm_%d<float, 128>(float *, const float *)","1","7","(128, 1, 1)","(%d, 1, 1)","0","9.0","%d","%d","%d"`, i, i, i+1, ns, bytes, fmas)
		for j := range others {
			fmt.Fprintf(&t, `,"%d.%02d"`, i%97, j)
		}
		t.WriteString("\n")
	}
	return t.String()
}

// tuningCache is Kernel Tuner's.
func tuningCache() string {
	var t strings.Builder
	t.WriteString(`{"device_name": "NVIDIA H100 80GB HBM3", "kernel_name": "gemm", "tune_params_keys": ["x", "y"], "tune_params": {"x": [`)
	list := func(n int) {
		for i := range n {
			if i > 0 {
				t.WriteString(", ")
			}
			fmt.Fprint(&t, i)
		}
	}
	list(manyKernels / 100)
	t.WriteString(`], "y": [`)
	list(100)
	t.WriteString(`]}, "objective": "time", "cache": {`)
	for i := range manyKernels {
		if i > 0 {
			t.WriteString(",\n")
		}
		x, y := i/100, i%100
		ns, _, _ := profiled(i)
		fmt.Fprintf(&t, `"%d,%d": {"x": %d, "y": %d, "time": %g, "compile_time": 440.1, "verification_time": 0, "benchmark_time": 12.5, "timestamp": "2026-01-01 12:00:00+00:00"}`, x, y, x, y, 1+float64(ns)/1e5)
	}
	t.WriteString("}}\n")
	return t.String()
}

// tuningResult is what kgen tune --json prints.
func tuningResult() string {
	var t strings.Builder
	t.WriteString(`{"kernel": "gemm", "gpu": "h100-sxm5-80", "problem": {"m": 4096, "n": 4096, "k": 4096, "dtype": "f16"}, "best": [`)
	for i := range manyKernels {
		if i > 0 {
			t.WriteString(",\n")
		}
		ns, _, _ := profiled(i)
		fmt.Fprintf(&t, `{"config": {"index": %d, "n": %d, "bk": 64, "stages": 3, "warps": 8}, "time_us": %g, "limits": {"tensor": 140.5, "HBM": 30.2}, "provenance": "predicted"}`, i, i%7, 200+float64(ns)/1e3)
	}
	t.WriteString("]}\n")
	return t.String()
}
