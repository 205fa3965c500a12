package nvrtc

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A log of ptxas -v with a device function between two kernels' own lines.
const verbose = `ptxas info    : 0 bytes gmem
ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to insufficient register resources for the wgmma pipeline in function 'a'
ptxas info    : Compiling entry function 'a' for 'sm_90a'
ptxas info    : Function properties for a
    1328 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Function properties for helper
    8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 168 registers, used 9 barriers, 1328 bytes cumulative stack size, 2048 bytes smem, 400 bytes cmem[0], 8 bytes cmem[2]
ptxas info    : Compile time = 3.852 ms
ptxas info    : Compiling entry function 'b' for 'sm_90a'
ptxas info    : Function properties for b
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers
`

func TestParseUsage(t *testing.T) {
	require.Equal(t, []Usage{
		{Kernel: "a", Registers: 168, Barriers: 9, StackBytes: 1328, SpillStoreBytes: 12, SpillLoadBytes: 16, SharedBytes: 2048, ConstantBytes: 408},
		{Kernel: "b", Registers: 8},
	}, ParseUsage(verbose))
	require.Empty(t, ParseUsage("ptxas info    : Used 8 registers"))
}

func TestDiagnose(t *testing.T) {
	tests := []struct {
		line string
		want []Diagnostic
	}{
		{`a b.cu(12): error: expected a ";"`, []Diagnostic{{"a b.cu", 12, Error, `expected a ";"`}}},
		{`x.cu(3): warning #177-D: variable "u" was declared`, []Diagnostic{{"x.cu", 3, Warning, `variable "u" was declared`}}},
		{`x.cu(1): catastrophic error: cannot open source file "m.h"`, []Diagnostic{{"x.cu", 1, Error, `cannot open source file "m.h"`}}},
		{`ptxas kernel.ptx, line 54; fatal   : Parsing error`, []Diagnostic{{"kernel.ptx", 54, Error, "Parsing error"}}},
		{`ptxas fatal   : Value 'sm_20' is not defined for option 'gpu-name'`, []Diagnostic{{"", 0, Error, "Value 'sm_20' is not defined for option 'gpu-name'"}}},
		{`nvrtc: error: invalid value for --gpu-architecture (-arch)`, []Diagnostic{{"", 0, Error, "invalid value for --gpu-architecture (-arch)"}}},
		{`x.cu(99999999999999999999): error: line no int holds`, nil},
		{`ptxas fatal   : Ptx assembly aborted due to errors`, nil},
		{`   int x = y;`, nil},
		{``, nil},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, Diagnose(tt.line+"\r\n"), tt.line)
	}
	require.Contains(t, Diagnose(verbose)[1].Message, "C7510")
}

func TestSerialised(t *testing.T) {
	require.Contains(t, Serialised(verbose), "insufficient register resources")
	require.Empty(t, Serialised("ptxas info    : (C7519) warpgroup.arrive is injected in around line 39"))
}

func TestCleanLogDropsTimings(t *testing.T) {
	require.NotContains(t, cleanLog(verbose), "Compile time")
	require.Contains(t, cleanLog(verbose+"\x00"), "Used 8 registers, used 0 barriers")
}

func FuzzDiagnose(f *testing.F) {
	f.Add(verbose)
	f.Add("x.cu(3): error: y")
	f.Fuzz(func(t *testing.T, log string) {
		for _, d := range Diagnose(log) {
			if d.Line < 0 {
				t.Errorf("line %d", d.Line)
			}
		}
		ParseUsage(log)
	})
}
