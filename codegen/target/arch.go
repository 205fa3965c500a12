package target

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// CC is a compute capability.
type CC struct{ Major, Minor int }

// ParseCC reads "9.0".
func ParseCC(s string) (CC, error) {
	v, err := parseDotted(s)
	if err != nil {
		return CC{}, &CCError{s}
	}
	return CC(v), nil
}

// CCError is a text that is no compute capability.
type CCError struct{ Text string }

func (e *CCError) Error() string {
	return fmt.Sprintf("compute capability %q: want major.minor, like 9.0", e.Text)
}

func (c CC) String() string { return fmt.Sprintf("%d.%d", c.Major, c.Minor) }

// AtLeast reports whether c is major.minor or newer.
func (c CC) AtLeast(major, minor int) bool {
	return c.Major > major || c.Major == major && c.Minor >= minor
}

// SM returns the number that PTX and compilers use: 90 for 9.0, 120 for 12.0.
func (c CC) SM() int { return c.Major*10 + c.Minor }

// MarshalJSON writes "9.0".
func (c CC) MarshalJSON() ([]byte, error) { return json.Marshal(c.String()) }

// UnmarshalJSON reads "9.0".
func (c *CC) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	v, err := ParseCC(s)
	*c = v
	return err
}

type dotted struct{ Major, Minor int }

func parseDotted(s string) (dotted, error) {
	major, minor, ok := strings.Cut(s, ".")
	a, err1 := strconv.ParseUint(major, 10, 16)
	b, err2 := strconv.ParseUint(minor, 10, 16)
	if !ok || err1 != nil || err2 != nil {
		return dotted{}, fmt.Errorf("%q is not of the form major.minor", s)
	}
	return dotted{int(a), int(b)}, nil
}

// WarpSize is the number of threads of a warp on every NVIDIA GPU.
const WarpSize = 32

// Arch is one record of arch.json: what is the same for all GPUs of a compute
// capability.
type Arch struct {
	CC          CC         `json:"cc"`
	Target      string     `json:"target"`       // "sm_90": runs on this and later GPUs as PTX
	TargetPTX   PTXVersion `json:"target_ptx"`   // first PTX version that knows Target
	Specific    string     `json:"specific"`     // "sm_90a": all instructions, this GPU alone; "" before 9.0
	SpecificPTX PTXVersion `json:"specific_ptx"` // first PTX version that knows Specific

	RegistersPerThread   int `json:"registers_per_thread"`
	RegisterUnit         int `json:"register_unit"` // a warp gets a multiple of this many registers
	SharedUnit           int `json:"shared_unit"`   // a block gets a multiple of this many bytes
	SharedReserved       int `json:"shared_reserved"`
	SharedDefault        int `json:"shared_default"` // bytes a block may use without opting in
	Partitions           int `json:"partitions"`
	ThreadsPerBlock      int `json:"threads_per_block"`
	BarriersPerBlock     int `json:"barriers_per_block"`
	BarriersPerBlockSlot int `json:"barriers_per_block_slot"`

	Pipes         Pipes   `json:"pipes"`
	MMASyncOfPeak float64 `json:"mma_sync_of_peak"` // 0: not known
	LaunchUS      float64 `json:"launch_us"`        // least time of one launch, microseconds
	BoostClock    []Math  `json:"boost_clock"`      // tensor kinds that NVIDIA states at the GPU's ordinary clock
	L2Like        string  `json:"l2_like"`

	FieldSources map[string][]string `json:"sources"`
}

// Pipes are the rates of an SM's ordinary pipes in thread results per clock
// (32 = one warp instruction per clock), shared memory in bytes per clock.
type Pipes struct {
	Issue       float64 `json:"issue"`
	FMA         float64 `json:"fma"` // f32 add, multiply, FMA: the fp32 rate of the GPU
	ALU         float64 `json:"alu"` // 32-bit integer add, logic, compare, minimum
	MUFU        float64 `json:"mufu"`
	Shuffle     float64 `json:"shuffle"`
	SharedBytes float64 `json:"shared_bytes"`
}

// Limits are what bounds a kernel and its residency. Sizes are in bytes.
type Limits struct {
	RegistersPerSM     int
	RegistersPerThread int
	WarpsPerSM         int
	BlocksPerSM        int
	ThreadsPerBlock    int
	SharedPerSM        int
	SharedPerBlock     int // after opting in; without, SharedDefault
	SharedDefault      int
	SharedReserved     int // of every block, beside what it asks for
	BarriersPerBlock   int // named barriers
}

// Arch returns the compiler's target for this GPU alone: "sm_80", "sm_90a".
func (g *GPU) Arch() string {
	if g.arch.Specific != "" {
		return g.arch.Specific
	}
	return g.arch.Target
}

// Architecture returns the record of the GPU's compute capability.
func (g *GPU) Architecture() *Arch { return g.arch }

// Pipes returns the rates of the SM's ordinary pipes.
func (g *GPU) Pipes() Pipes {
	p := g.arch.Pipes
	p.FMA = g.rates[F32]
	return p
}

// Limits returns the limits of a kernel on this GPU.
func (g *GPU) Limits() Limits {
	return Limits{
		RegistersPerSM:     g.RegistersPerSM,
		RegistersPerThread: g.arch.RegistersPerThread,
		WarpsPerSM:         g.MaxWarpsPerSM,
		BlocksPerSM:        g.MaxBlocksPerSM,
		ThreadsPerBlock:    g.arch.ThreadsPerBlock,
		SharedPerSM:        g.SharedPerSMKiB << 10,
		SharedPerBlock:     g.SharedPerBlockKiB << 10,
		SharedDefault:      g.arch.SharedDefault,
		SharedReserved:     g.arch.SharedReserved,
		BarriersPerBlock:   g.arch.BarriersPerBlock,
	}
}

// MMASyncOfPeak returns the share of the tensor peak that mma.sync can reach
// (Hopper and later keep the full rate for wgmma and tcgen05); false where
// nobody measured it.
func (g *GPU) MMASyncOfPeak() (float64, bool) {
	return g.arch.MMASyncOfPeak, g.arch.MMASyncOfPeak > 0
}
