package target

import (
	"encoding/json"
	"fmt"
	"strings"
)

// GPU is one record of gpus.json. Zero means "not published" for every number.
// Records are shared and must not be changed.
type GPU struct {
	ID   string `json:"id"`
	Name string `json:"name"`

	CC      CC     `json:"compute_capability"`
	RateKey string `json:"rate_key"`
	SMs     int    `json:"sm_count"`

	ClockMHz        float64 `json:"clock_mhz"`            // behind the fp64 and fp32 peaks
	TensorClockMHz  float64 `json:"tensor_clock_mhz"`     // behind the tensor peaks
	TensorClockKind string  `json:"tensor_clock_kind"`    // published, nvidia-software or implied (computed back from the peak)
	MaxClockMHz     float64 `json:"max_clock_mhz_device"` // what the driver reports

	MemoryType      string  `json:"memory_type"`
	MemoryGB        float64 `json:"memory_gb"`            // marketed, decimal
	MemoryGiB       float64 `json:"memory_gib_device"`    // what the driver reports
	BandwidthGBs    float64 `json:"bandwidth_gbs"`        // marketed, decimal
	BandwidthDevice float64 `json:"bandwidth_device_gbs"` // 2 x memory clock x bus / 8, GB/s

	L2MiB       float64       `json:"l2_mib"`
	L2Bandwidth []L2Bandwidth `json:"l2_bandwidth"`

	NVLinkGBs float64 `json:"nvlink_gbs"` // both directions together
	TDPWatts  float64 `json:"tdp_w"`

	PublishedTFLOPS map[Math]float64    `json:"peak_dense_tflops"` // as printed by the vendor, for comparison; see Peak
	Measured        map[string]Measured `json:"measured"`

	FieldSources map[string][]string `json:"sources"` // field of gpus.json -> names in Sources()
	Status       map[string]string   `json:"status"`  // field -> A, B or C as gpus.json explains
	Conflicts    []string            `json:"conflicts"`
	Notes        []string            `json:"notes"`

	SharedPerSMKiB    int `json:"smem_per_sm_kib"`
	SharedPerBlockKiB int `json:"smem_per_block_optin_kib"`
	RegistersPerSM    int `json:"registers_per_sm"`
	MaxWarpsPerSM     int `json:"max_warps_per_sm"`
	MaxBlocksPerSM    int `json:"max_blocks_per_sm"`

	arch  *Arch
	rates map[Math]float64
	l2    Figure
	raw   json.RawMessage
}

// L2Bandwidth is one statement about the L2's bandwidth. NVIDIA publishes
// almost none and it depends on the working set, so Kind says what was done.
type L2Bandwidth struct {
	GBs    float64 `json:"gbs"`
	Kind   string  `json:"kind"`
	Source string  `json:"source"`
}

// Measured is a ceiling somebody measured; its key names unit and pattern
// ("dram_triad_gbs", "mamf_bf16_tflops").
type Measured struct {
	Value  float64 `json:"value"`
	Source string  `json:"source"`
}

// Basis says what kind of statement a figure is.
type Basis string

// What a figure rests on.
const (
	Published Basis = "published" // the vendor prints it
	Device    Basis = "device"    // from clocks and widths the driver reports
	Probed    Basis = "measured"  // a benchmark's result
	Derived   Basis = "derived"   // from another GPU of the same kind
)

// Figure is a number with what it rests on.
type Figure struct {
	Value   float64
	Basis   Basis
	Note    string
	Sources []string // names in Sources()
}

// JSON returns the GPU's record exactly as gpus.json holds it.
func (g *GPU) JSON() json.RawMessage { return append(json.RawMessage(nil), g.raw...) }

// HBM returns the bandwidth of the device's memory in GB/s: by the driver's
// clock and bus width where they were seen, else as marketed.
func (g *GPU) HBM() Figure {
	if g.BandwidthDevice > 0 {
		return Figure{g.BandwidthDevice, Device, "2 x memory clock x bus width", g.FieldSources["memory_clock_mhz"]}
	}
	return g.MarketedHBM()
}

// MarketedHBM returns the bandwidth of the device's memory in GB/s as the vendor prints
// it.
func (g *GPU) MarketedHBM() Figure {
	return Figure{g.BandwidthGBs, Published, "marketed", g.FieldSources["bandwidth_gbs"]}
}

// Memory names the kind of the device's memory: HBM of whatever generation, GDDR6X,
// LPDDR5; DRAM, which all is, where the record does not say.
func (g *GPU) Memory() string {
	switch {
	case g.MemoryType == "":
		return "DRAM"
	case strings.HasPrefix(g.MemoryType, "HBM"):
		return "HBM"
	}
	return g.MemoryType
}

// L2 returns the L2 read bandwidth in GB/s: measured on this GPU where
// somebody did, else that of a measured GPU of like architecture, scaled by
// SMs and clock.
func (g *GPU) L2() Figure { return g.l2 }

// L2Bytes returns the size of L2 in bytes.
func (g *GPU) L2Bytes() int64 { return int64(g.L2MiB * (1 << 20)) }

// SharedBandwidth returns the bandwidth of shared memory of all SMs in GB/s.
func (g *GPU) SharedBandwidth() float64 {
	return float64(g.SMs) * g.Pipes().SharedBytes * g.Clock() / 1e3
}

// Clock returns the clock in MHz behind everything but the tensor cores.
func (g *GPU) Clock() float64 {
	if g.ClockMHz > 0 {
		return g.ClockMHz
	}
	// No clock is published for this part: compute it back from the fp32 peak.
	if r := g.rates[F32]; r > 0 {
		return g.PublishedTFLOPS[F32] * 1e6 / (2 * r * float64(g.SMs))
	}
	return 0
}

func (g *GPU) join(archs []*Arch, rates map[Math]float64) error {
	for _, a := range archs {
		if a.CC == g.CC {
			g.arch = a
		}
	}
	if g.arch == nil {
		return fmt.Errorf("gpus.json: %s: compute capability %s is not in arch.json", g.ID, g.CC)
	}
	if len(rates) == 0 {
		return fmt.Errorf("gpus.json: %s: no rates under %q", g.ID, g.RateKey)
	}
	g.rates = rates
	return nil
}

// findL2 fills in every GPU's L2 bandwidth.
func (t *table) findL2() error {
	for _, g := range t.gpus {
		if err := t.giveL2(g); err != nil {
			return err
		}
	}
	return nil
}

// giveL2 fills in a GPU's L2 bandwidth: its own, or that of the GPU that its
// architecture is like.
func (t *table) giveL2(g *GPU) error {
	like, ok := t.byKey[normalise(g.arch.L2Like)]
	if !ok {
		return fmt.Errorf("arch.json: %s: l2_like names no GPU: %q", g.CC, g.arch.L2Like)
	}
	if f, ok := g.probedL2(); ok {
		g.l2 = f
		return nil
	}
	f, ok := like.probedL2()
	if !ok {
		return fmt.Errorf("arch.json: %s: l2_like %s has no measured L2 bandwidth", g.CC, like.ID)
	}
	scale := float64(g.SMs) * g.Clock() / (float64(like.SMs) * like.Clock())
	g.l2 = Figure{f.Value * scale, Derived, "by SMs and clock from " + like.ID, f.Sources}
	return nil
}

// probedL2 returns the first measured figure; gpus.json lists the most
// trustworthy one of a kind first.
func (g *GPU) probedL2() (Figure, bool) {
	for _, b := range g.L2Bandwidth {
		if len(b.Kind) >= 8 && b.Kind[:8] == "measured" {
			return Figure{b.GBs, Probed, b.Kind, []string{b.Source}}, true
		}
	}
	return Figure{}, false
}
