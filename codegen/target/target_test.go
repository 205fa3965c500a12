package target

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/kgen-dev/kgen/internal/fixedseed" // of rapid
)

func TestEveryGPUIsComplete(t *testing.T) {
	gpus := All()
	require.Len(t, gpus, 33)
	for _, g := range gpus {
		require.Positive(t, g.SMs, g.ID)
		require.Positive(t, g.Clock(), g.ID)
		require.Positive(t, g.HBM().Value, g.ID)
		require.NotEmpty(t, g.HBM().Sources, g.ID)
		require.Positive(t, g.L2().Value, g.ID)
		require.Greater(t, g.L2().Value, g.HBM().Value, g.ID)
		require.Greater(t, g.SharedBandwidth(), g.L2().Value, g.ID)
		require.Equal(t, 65536, g.RegistersPerSM, g.ID)
		require.LessOrEqual(t, g.SharedPerBlockKiB<<10+g.Limits().SharedReserved, g.Limits().SharedPerSM, g.ID)
		p := g.Pipes()
		require.Positive(t, p.FMA, g.ID)
		require.Positive(t, p.MUFU, g.ID)
		require.Positive(t, g.Architecture().LaunchUS, g.ID)
		_, ok := g.Peak(F32)
		require.True(t, ok, g.ID)
	}
}

// Every source named anywhere must be explained.
func TestSourcesResolve(t *testing.T) {
	all := Sources()
	check := func(where string, names []string) {
		for _, n := range names {
			require.Contains(t, all, n, where)
		}
	}
	for _, g := range All() {
		for field, names := range g.FieldSources {
			check(g.ID+" "+field, names)
		}
		for key, m := range g.Measured {
			check(g.ID+" "+key, []string{m.Source})
		}
		for _, b := range g.L2Bandwidth {
			check(g.ID, []string{b.Source})
		}
	}
	for _, a := range load().archs {
		require.NotEmpty(t, a.FieldSources, a.CC)
		for field, names := range a.FieldSources {
			check(a.Target+" "+field, names)
		}
	}
}

// Peaks are computed; the vendor's printed figures must agree within rounding,
// but for these, which gpus.json explains.
func TestPeaksAgreeWithPublished(t *testing.T) {
	loose := map[string]float64{
		"l40s fp8_acc32": 0.013, // printed at 2520 MHz, the rest of the sheet at 2490
		"l40s fp8_acc16": 0.013,
		"l40s int8":      0.013,
		"b300 fp32":      0.027, // printed 75, the device's clock gives 77
		"gb300 fp64":     0.034, // printed with two digits
		"gb300 int8":     0.025,
		"gb10 fp4":       0.05, // needs a clock above the device's maximum
	}
	checked := 0
	for _, g := range All() {
		for _, m := range Maths() {
			published, ok := g.PublishedTFLOPS[m]
			if !ok {
				continue
			}
			p, ok := g.Peak(m)
			require.True(t, ok, "%s %s", g.ID, m)
			tolerance := 0.012
			if l, ok := loose[g.ID+" "+string(m)]; ok {
				tolerance = l
			}
			if p.Basis == Published {
				require.Equal(t, "b100", g.ID)
				require.Equal(t, published, p.TFLOPS)
				continue
			}
			require.InEpsilon(t, published, p.TFLOPS, tolerance, "%s %s", g.ID, m)
			if tolerance != 0.012 {
				require.Greater(t, math.Abs(p.TFLOPS/published-1), 0.012, "%s %s needs no exception", g.ID, m)
			}
			require.InEpsilon(t, p.TFLOPS, float64(g.SMs)*p.Rate*2*p.ClockMHz/1e6, 1e-12)
			checked++
		}
	}
	require.Greater(t, checked, 220)
}

// Spot checks against figures everybody knows (TFLOPS, dense).
func TestKnownPeaks(t *testing.T) {
	for _, c := range []struct {
		gpu  string
		math Math
		want float64
	}{
		{"a100", BF16, 312}, {"a100", TF32, 156}, {"a100", F32, 19.5}, {"a100", I8, 624}, {"a100", F64Tensor, 19.5},
		{"h100", BF16, 989.4}, {"h100", F8Acc32, 1978.9}, {"h100", F32, 66.9}, {"h100", F64Tensor, 66.9}, {"h100", TF32, 494.7},
		{"h200", F16Acc32, 989.4}, {"rtx4090", F16Acc32, 165.2}, {"rtx4090", F16Acc16, 330.3}, {"rtx3090", BF16, 71}, {"t4", F16Acc32, 65},
		{"b200", BF16, 2250}, {"rtx-5090", BF16, 209.5},
	} {
		g, err := Lookup(c.gpu)
		require.NoError(t, err)
		p, ok := g.Peak(c.math)
		require.True(t, ok)
		require.InEpsilon(t, c.want, p.TFLOPS, 0.005, "%s %s", c.gpu, c.math)
	}
	t4, err := Lookup("t4")
	require.NoError(t, err)
	_, ok := t4.Peak(BF16)
	require.False(t, ok, "a T4 has no bf16")
}

func TestLookup(t *testing.T) {
	for name, want := range map[string]string{
		"a100": "a100-sxm4-80", "A100": "a100-sxm4-80", "h100": "h100-sxm5-80", "h100-sxm5-80": "h100-sxm5-80",
		"h200": "h200-sxm-141", "rtx4090": "rtx-4090", "RTX 4090": "rtx-4090", "NVIDIA GeForce RTX 4090": "rtx-4090",
		"4090": "rtx-4090", "rtx3090": "rtx-3090", "sm_86": "rtx-3090", "sm86": "rtx-3090", "sm_80": "a100-sxm4-80",
		"sm_90a": "h100-sxm5-80", "NVIDIA H100 80GB HBM3": "h100-sxm5-80", "NVIDIA A100-SXM4-80GB": "a100-sxm4-80",
		"NVIDIA H200": "h200-sxm-141", "Tesla T4": "t4", "thor": "jetson-thor-t5000", "l40s": "l40s", "l40": "l40", "b200": "b200",
		"NVIDIA B300 SXM6 AC": "b300", "NVIDIA B200": "b200", "NVIDIA GB200": "gb200", "NVIDIA GB300": "gb300", "NVIDIA GH200 144G HBM3e": "gh200-144",
		"NVIDIA RTX PRO 6000 Blackwell Server Edition": "rtx-pro-6000-server", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition": "rtx-pro-6000-bw",
	} {
		g, err := Lookup(name)
		require.NoError(t, err, name)
		require.Equal(t, want, g.ID, name)
	}
	for _, g := range All() {
		byName, err := Lookup(g.Name)
		require.NoError(t, err)
		require.Equal(t, g.ID, byName.ID)
		for _, a := range g.Aliases() {
			byAlias, err := Lookup(a)
			require.NoError(t, err)
			require.Same(t, g, byAlias)
		}
	}
}

// Names that drivers report have the key of the one GPU that Lookup finds.
func TestKeys(t *testing.T) {
	of := map[string]string{}
	for _, g := range All() {
		for _, k := range g.Keys() {
			require.Empty(t, of[k], "%s of %s", k, g.ID)
			of[k] = g.ID
			found, err := Lookup(k)
			require.NoError(t, err)
			require.Same(t, g, found)
		}
	}
	for _, name := range []string{"NVIDIA H100 80GB HBM3", "NVIDIA GeForce RTX 4090", "NVIDIA H200", "NVIDIA A100-SXM4-40GB"} {
		g, err := Lookup(name)
		require.NoError(t, err)
		require.Contains(t, g.Keys(), normalise(name))
	}
	require.NotContains(t, of, "sm90")
	own, err := Lookup("h100")
	require.NoError(t, err)
	changed := *own
	changed.ID = "h100-sxm5-80-0a1b2c3d"
	require.Subset(t, changed.Keys(), own.Keys())
}

func TestUnknownGPU(t *testing.T) {
	for name, near := range map[string]string{
		"h10": "h100", "h1000": "h100", "rtx 4080": "rtx-4090", "a1000": "a100", "sm_88": "sm_8", "b20": "b200", "gb2000": "gb200",
	} {
		_, err := Lookup(name)
		var unknown *UnknownGPUError
		require.ErrorAs(t, err, &unknown, name)
		require.True(t, strings.HasPrefix(unknown.Near[0], near), "%s: %v", name, unknown.Near)
		require.Contains(t, err.Error(), name)
	}
	for _, name := range []string{"", "-", "\x00\xff", strings.Repeat("x", 1<<20)} {
		_, err := Lookup(name)
		var unknown *UnknownGPUError
		require.ErrorAs(t, err, &unknown)
		require.NotEmpty(t, unknown.Near)
	}
}

func TestArch(t *testing.T) {
	for name, want := range map[string]string{
		"t4": "sm_75", "a100": "sm_80", "rtx3090": "sm_86", "l4": "sm_89", "h100": "sm_90a", "b200": "sm_100a", "b300": "sm_103a", "rtx5090": "sm_120a",
	} {
		g, err := Lookup(name)
		require.NoError(t, err)
		require.Equal(t, want, g.Arch(), name)
		require.Equal(t, "sm_"+strconv.Itoa(g.CC.SM()), g.Architecture().Target)
		v, err := LeastPTX(g.Arch())
		require.NoError(t, err)
		_, err = LeastDriver(v)
		require.NoError(t, err)
	}
	_, err := LeastPTX("sm_99")
	require.ErrorContains(t, err, "sm_99")
	_, err = LeastPTX("")
	require.Error(t, err)
}

func TestPTXReleases(t *testing.T) {
	releases := PTXReleases()
	for i := 1; i < len(releases); i++ {
		require.True(t, releases[i-1].PTX.Less(releases[i].PTX))
		require.Less(t, releases[i-1].Driver, releases[i].Driver)
	}
	for ptx, driver := range map[string]int{"5.0": 384, "7.0": 445, "8.0": 525, "8.7": 570, "9.0": 580} {
		v, err := ParsePTXVersion(ptx)
		require.NoError(t, err)
		got, err := LeastDriver(v)
		require.NoError(t, err)
		require.Equal(t, driver, got, ptx)
	}
	_, err := LeastDriver(PTXVersion{99, 0})
	require.ErrorContains(t, err, "99.0")
	for _, bad := range []string{"", "8", "8.", "8.x", "-1.0", "8.0.1", "99999999999.0"} {
		_, err := ParsePTXVersion(bad)
		require.Error(t, err, bad)
	}
}

func TestJSONKeepsTheRecord(t *testing.T) {
	g, err := Lookup("h100")
	require.NoError(t, err)
	var m map[string]any
	require.NoError(t, json.Unmarshal(g.JSON(), &m))
	for _, key := range []string{"id", "sources", "derived_check", "conflicts", "status", "ridge_flop_per_byte"} {
		require.Contains(t, m, key)
	}
}

func TestOccupancyAgreesWithNVIDIA(t *testing.T) {
	f, err := os.Open("testdata/occupancy.csv")
	require.NoError(t, err)
	defer f.Close()
	r := csv.NewReader(f)
	r.Comment = '#'
	rows, err := r.ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 721)
	for _, row := range rows[1:] {
		g, err := Lookup(row[0])
		require.NoError(t, err)
		var n [5]int
		for i := range n {
			n[i], err = strconv.Atoi(row[i+1])
			require.NoError(t, err)
		}
		o, err := g.Occupancy(Usage{Threads: n[0], Registers: n[1], Shared: n[2], Barriers: n[3]})
		require.NoError(t, err)
		require.Equal(t, n[4], o.CTAs, "%v: limited by %s", row, o.Limiter)
	}
}

func TestOccupancyNamesTheLimiter(t *testing.T) {
	h100, err := Lookup("h100")
	require.NoError(t, err)
	for _, c := range []struct {
		use  Usage
		ctas int
		by   Limiter
	}{
		{Usage{Threads: 128, Registers: 255, Shared: 1024}, 2, ByRegisters},
		{Usage{Threads: 128, Registers: 32, Shared: 100 << 10}, 2, ByShared},
		{Usage{Threads: 128, Registers: 32, Shared: 227 << 10}, 1, ByShared},
		{Usage{Threads: 128, Registers: 32, Shared: 227<<10 + 1}, 0, ByShared},
		{Usage{Threads: 1024, Registers: 16}, 2, ByWarps},
		{Usage{Threads: 32, Registers: 16}, 32, ByBlocks},
		{Usage{Threads: 32, Registers: 16, Barriers: 16}, 4, ByBarriers},
		{Usage{Threads: 1025, Registers: 16}, 0, ByRegisters},
		{Usage{Threads: 128, Registers: 256}, 0, ByRegisters},
	} {
		o, err := h100.Occupancy(c.use)
		require.NoError(t, err)
		require.Equal(t, c.ctas, o.CTAs, "%+v", c.use)
		require.Equal(t, c.by, o.Limiter, "%+v", c.use)
	}
	for _, bad := range []Usage{{}, {Threads: -1}, {Threads: 32, Registers: -1}, {Threads: 32, Shared: -1}, {Threads: 32, Barriers: -1}} {
		_, err := h100.Occupancy(bad)
		require.Error(t, err, "%+v", bad)
	}
}

// More of anything never means more resident blocks, and no input overflows.
func TestOccupancyIsMonotone(t *testing.T) {
	gpus := All()
	rapid.Check(t, func(t *rapid.T) {
		g := gpus[rapid.IntRange(0, len(gpus)-1).Draw(t, "gpu")]
		size := rapid.OneOf(rapid.IntRange(0, 300), rapid.IntRange(0, 1<<18), rapid.SampledFrom([]int{math.MaxInt, math.MaxInt32}))
		a := Usage{Threads: 1 + rapid.IntRange(0, 1100).Draw(t, "threads"), Registers: size.Draw(t, "registers"), Shared: size.Draw(t, "shared"), Barriers: size.Draw(t, "barriers")}
		b := a
		grow := func(n int) int { return n + min(rapid.IntRange(0, 4096).Draw(t, "more"), math.MaxInt-n) }
		b.Registers, b.Shared = grow(a.Registers), grow(a.Shared)
		oa, err := g.Occupancy(a)
		require.NoError(t, err)
		ob, err := g.Occupancy(b)
		require.NoError(t, err)
		require.LessOrEqual(t, ob.CTAs, oa.CTAs)
		require.LessOrEqual(t, oa.Warps, g.MaxWarpsPerSM)
		require.GreaterOrEqual(t, ob.CTAs, 0)
		require.LessOrEqual(t, g.Fraction(oa), 1.0)
	})
}

func FuzzLookup(f *testing.F) {
	for _, s := range []string{"h100", "sm_90a", "NVIDIA H100 PCIe", "", "\xff\xfe", "rtx 5090 ti"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		g, err := Lookup(name)
		if (g == nil) == (err == nil) {
			t.Fatalf("Lookup(%q) = %v, %v", name, g, err)
		}
	})
}

// Clusters stay within a part of the GPU: of an H100's 132 SMs in 8 parts of 16 or 18,
// pairs of blocks find a place on all, fours on 128, unless SMs hold two blocks each.
func TestClustersOnSMs(t *testing.T) {
	for _, test := range []struct{ sms, resident, cluster, want int }{
		{132, 1, 1, 132}, {132, 1, 2, 132}, {132, 1, 4, 128}, {132, 1, 8, 128}, {132, 2, 4, 132},
	} {
		require.Equal(t, test.want, (&GPU{SMs: test.sms}).ClusterSMs(test.resident, test.cluster), "%+v", test)
	}
}
