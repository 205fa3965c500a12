package ncu

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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

const head = `"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"` + "\n"

func TestNotations(t *testing.T) {
	r, err := Read(strings.NewReader(head+`"0","1","k(int)","gpu__time_duration.sum","us","65,77"`+"\n"+`"0","1","k(int)","dram__bytes.sum","byte","27.595.520"`+"\n"), "eu.csv")
	require.NoError(t, err)
	require.InDelta(t, 65.77, r.Kernels[0].TimeUS, 1e-9)
	require.Equal(t, 27595520.0, r.Kernels[0].Work.HBMBytes.Value)
	for text, want := range map[string]string{
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

func FuzzRead(f *testing.F) {
	f.Add(head + `"0","1","k(int)","gpu__time_duration.sum","us","65,77"`)
	f.Fuzz(func(t *testing.T, text string) {
		if r, err := Read(strings.NewReader(text), "f.csv"); err == nil {
			require.NotEmpty(t, r.Kernels)
		}
	})
}
