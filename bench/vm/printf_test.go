package vm_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/nvrtc"
	"github.com/kgen-dev/kgen/codegen/nvrtc/nvrtctest"
)

// formats are calls of printf, and what glibc's writes for them, which is whose
// CUDA's driver uses.
var formats = [][2]string{
	{`"%d|%5d|%-5d|%05d|%+d|% d|%.3d|%8.3d|%-8.3d|%+.3d", -7, 42, 42, -42, 42, 42, 7, -7, 7, 7`, "-7|   42|42   |-0042|+42| 42|007|    -007|007     |+007"},
	{`"%08.3d|%.0d|%+05d|% 05d|%i", 7, 0, 7, 7, -1`, "     007||+0007| 0007|-1"},
	{`"%u|%5u|%+u|% u|%05u", 4000000000u, 7u, 7u, 7u, 7u`, "4000000000|    7|7|7|00007"},
	{`"%x|%X|%#x|%#X|%#x|%08x|%#08x|%-8x|%.4x|%#.4x", 255u, 255u, 255u, 255u, 0u, 255u, 255u, 255u, 255u, 255u`, "ff|FF|0xff|0XFF|0|000000ff|0x0000ff|ff      |00ff|0x00ff"},
	{`"%o|%#o|%#o|%6o|%#06o|%.3o|%#.3o|%#.5o", 8u, 8u, 0u, 8u, 8u, 8u, 8u, 8u`, "10|010|0|    10|000010|010|010|00010"},
	{`"%ld|%lu|%lx|%lo|%lld|%llu|%llx|%lli", -5L, 5UL, ~0UL, 8UL, -9223372036854775807LL - 1, ~0ULL, ~0ULL, 9LL`, "-5|5|ffffffffffffffff|10|-9223372036854775808|18446744073709551615|ffffffffffffffff|9"},
	{`"%hd|%hu|%hx|%hhd|%hhu|%hhx", 70000, 70000, 70000, 300, 300, 300`, "4464|4464|1170|44|44|2c"},
	{`"%zu|%zd|%jd|%td", 7UL, -7L, -3L, 4L`, "7|-7|-3|4"},
	{`"%c|%5c|%-5c|%c%c", 'a', 'b', 'c', 'd', 200`, "a|    b|c    |d\xc8"},
	{`"%s|%8s|%-8s|%.2s|%8.2s|%-8.2s|%.0s|%.9s", "abc", "abc", "abc", "abc", "abc", "abc", "abc", "abc"`, "abc|     abc|abc     |ab|      ab|ab      ||abc"},
	{`"%p|%20p|%-20p|%p", (void *)0x7f0012345678, (void *)0x1234, (void *)0x1234, (void *)0`, "0x7f0012345678|              0x1234|0x1234              |(nil)"},
	{`"%f|%.0f|%#.0f|%.1f|%10.3f|%-10.3f|%010.3f|%+f|% f|%.3f", 1.5, 2.5, 2.5, 0.25f, 3.14159, 3.14159, -3.14159, 1.0, 1.0, -0.0`, "1.500000|2|2.|0.2|     3.142|3.142     |-00003.142|+1.000000| 1.000000|-0.000"},
	{`"%e|%.0e|%#.0e|%.3e|%12.2e|%E|%e|%e", 12345.678, 12345.678, 12345.678, 1e100, 1e-5, 1e-300, 0.0, -1.5e10`, "1.234568e+04|1e+04|1.e+04|1.000e+100|    1.00e-05|1.000000E-300|0.000000e+00|-1.500000e+10"},
	{`"%g|%g|%g|%g|%g|%g|%g|%g|%g", 0.1, 100000.0, 1000000.0, 1e-4, 1e-5, 123456789.0, 1.0 / 3, 0.0, 100.0`, "0.1|100000|1e+06|0.0001|1e-05|1.23457e+08|0.333333|0|100"},
	{`"%.3g|%.10g|%.0g|%#g|%#.3g|%10.4g|%-10.4g|%010.4g|%+g|%G|%.17g|%#.0g", 1234.5, 1.0 / 3, 1234.5, 1.0, 1e10, 3.14159, 3.14159, -3.14159, 2.0, 1e-10, 0.1, 3.0`, "1.23e+03|0.3333333333|1e+03|1.00000|1.00e+10|     3.142|3.142     |-00003.142|+2|1E-10|0.10000000000000001|3."},
	{`"%f|%F|%e|%G|%10f|%-10f|%010f|%+f|% f", INF, INF, -INF, -INF, INF, -INF, INF, INF, INF`, "inf|INF|-inf|-INF|       inf|-inf      |       inf|+inf| inf"},
	{`"%f|%F|%8g|%08E", NAN, NAN, NAN, NAN`, "nan|NAN|     nan|     NAN"},
	{`"%a|%A|%.2a|%a|%a|%20a|%020a|%a|%#.0a|%+a", 1.0, 255.5, 3.14159, 0.0, -0.5, 2.0, 2.0, INF, 1.0, 1.0`, "0x1p+0|0X1.FFP+7|0x1.92p+1|0x0p+0|-0x1p-1|              0x1p+1|0x000000000000001p+1|inf|0x1.p+0|+0x1p+0"},
	{`"%*d|%-*d|%*d|%.*f|%*.*f|%.*d", 5, 42, 5, 42, -5, 42, 2, 3.14159, 8, 1, 2.5, -1, 5`, "   42|42   |42   |3.14|     2.5|5"},
	{`"100%%|%%d|%5%|"`, "100%|%d|%|"},
	{`"%.f|%5.f|%.e|%.g|%.s|%.x|%.d", 2.5, 3.5, 2.5, 2.5, "abc", 0u, 0`, "2|    4|2e+00|2|||"},
	{`"%-05d|%+ d|%- d|%0-5d|%'d", 7, 7, 7, 7, 1234567`, "7    |+7| 7|7    |1234567"},
	{`"%.20f|%.30g|%.40e", 0.1, 0.1, 1e-300`, "0.10000000000000000555|0.100000000000000005551115123126|1.0000000000000000250590918352087596856961e-300"},
	{`"%k|%y"`, "%k|%y"},
	{`"%5"`, ""},
	{`"%d", 5, 6.5, 7LL`, "5"},        // too many
	{`"%c %s", 'x', local`, "x mine"}, // a string in local memory
	{`"%d %lld %d %f", 1, 2LL, -3, 4.5`, "1 2 -3 4.500000"}, // gaps between arguments
}

func TestPrintfFormats(t *testing.T) {
	c := nvrtctest.Compiler(t)
	text := "#define INF __longlong_as_double(0x7ff0000000000000LL)\n#define NAN __longlong_as_double(0x7ff8000000000000LL)\n" +
		"extern \"C\" __global__ void k(int *taken, int zero) {\nchar local[5] = {'m', 'i', 'n', 'e', 0}; local[4] = zero;\n"
	want := ""
	for i, f := range formats {
		text += fmt.Sprintf("taken[%d] = printf(%s); printf(\"\\n\");\n", i, f[0])
		want += f[1] + "\n"
	}
	text += fmt.Sprintf("taken[%d] = printf((const char *)(long long)zero);\n}\n", len(formats))
	for _, flag := range []string{"-lineinfo", "-G"} {
		r, err := c.Compile(t.Context(), nvrtc.Source{Name: "k.cu", Text: text}, nvrtc.Options{Arch: "compute_80", Flags: []string{flag}})
		require.NoError(t, err)
		x := newRunner(t, timings[0], "k.ptx", r.PTX)
		taken := out[int32](x, len(formats)+1)
		x.launch("k", threads(1), threads(1), 0, taken, 0)
		require.Equal(t, want, x.printed)
		got := taken.get()
		require.Equal(t, []int32{10, 5, 5, 10}, got[:4])
		require.Equal(t, int32(-1), got[len(formats)], "no format")
	}
	// A format that wants more than there is reads what lies there, and no further.
	r, err := c.Compile(t.Context(), nvrtc.Source{Name: "few.cu", Text: `extern "C" __global__ void k() { printf("%d|%s|%f|%lld|%9999999999999999d|%.*f|\n", 1); }`}, nvrtc.Options{Arch: "compute_80"})
	require.NoError(t, err)
	x := newRunner(t, timings[0], "k.ptx", r.PTX)
	report, err := x.dev.Launch(t.Context(), x.mod, "k", bench.Launch{Grid: threads(1), Block: threads(1)})
	require.NoError(t, err)
	require.Contains(t, report.Printed, "1|")
	require.Less(t, len(report.Printed), 8192)
}
