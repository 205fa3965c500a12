package launch

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/ir/num"
)

// recorder is a binding that launches nothing.
type recorder struct{ params [][]byte }

func (r *recorder) Load([]byte, string, uint32) (uintptr, error) { return 1, nil }

func (r *recorder) Launch(_ uintptr, _, _, _ [3]uint32, _ uint32, _ uintptr, params []byte, _ []int) error {
	r.params = append(r.params, params)
	return nil
}

// encoder is one that encodes tensor maps, as their number of dimensions and address.
type encoder struct{ recorder }

func (e *encoder) EncodeTensorMap(m *TensorMap, address uint64) (b [128]byte, err error) {
	if m.Swizzle == 0 {
		return b, errors.New("no swizzle")
	}
	b[0] = byte(len(m.Dims))
	binary.LittleEndian.PutUint64(b[120:], address)
	return b, nil
}

// hurried is one that lets kernels start early.
type hurried struct {
	recorder
	early []int // of the launches
}

func (h *hurried) LaunchEarly(f uintptr, grid, block, cluster [3]uint32, shared uint32, stream uintptr, params []byte, offsets []int) error {
	h.early = append(h.early, len(h.params))
	return h.Launch(f, grid, block, cluster, shared, stream, params, offsets)
}

type addresses []uint64

func (a addresses) family() string { return "Test" }

func (a addresses) values() ([]uint64, error) { return a, nil }

func planned(swizzle uint32) *Plan {
	p := newPlanner("Test", 2)
	p.step(nil, "k", 128, 0, 4)
	p.cluster(2)
	p.known(4, 7)
	p.tensorMap(1, 16, "x", TensorMap{Swizzle: swizzle, Dims: []uint64{64, 1}, Strides: []uint64{8}, Box: []uint32{64, 1}})
	plan, err := p.done("k", "", "default")
	if err != nil {
		panic(err)
	}
	return plan
}

func TestRunEncodesTensorMaps(t *testing.T) {
	p := planned(3)
	require.Equal(t, [3]uint32{2, 1, 1}, p.Steps[0].Cluster)
	require.Equal(t, []int{0, 64}, p.Steps[0].Offsets)
	require.Equal(t, []int{4, 128}, p.Steps[0].Sizes)
	require.Equal(t, []uint64{16}, p.Steps[0].TensorMaps[0].Strides)
	args := addresses{0, 4096}

	var e encoder
	require.NoError(t, p.Run(&e, args, nil, 0))
	require.Len(t, e.params, 1)
	require.EqualValues(t, 7, e.params[0][0])
	require.EqualValues(t, 2, e.params[0][64])
	require.EqualValues(t, 4096, binary.LittleEndian.Uint64(e.params[0][64+120:]))

	var r recorder
	require.ErrorIs(t, p.Run(&r, args, nil, 0), ErrUnsupported)
	require.Empty(t, r.params)
	require.EqualError(t, planned(0).Run(&e, args, nil, 0), "k: tensor map 0: no swizzle")
	require.ErrorContains(t, p.Run(&e, addresses{0, 4104}, nil, 0), "x at 0x1008: want an address that is a multiple of 16")
	require.ErrorContains(t, p.Run(&e, addresses{0, 0}, nil, 0), "x: address 0: want one on the device")
}

// Steps that wait for those before are launched early where the launcher can do that.
func TestRunLaunchesEarly(t *testing.T) {
	p := newPlanner("Test", 0)
	p.step(nil, "first", 128, 0, 4)
	p.step(nil, "second", 128, 0, 4)
	p.early()
	p.step(nil, "third", 128, 0, 4)
	plan, err := p.done("k", "", "default")
	require.NoError(t, err)
	var h hurried
	require.NoError(t, plan.Run(&h, addresses{}, nil, 0))
	require.Equal(t, []int{1}, h.early)
	require.Len(t, h.params, 3)
	var r recorder
	require.NoError(t, plan.Run(&r, addresses{}, nil, 0))
	require.Len(t, r.params, 3)
}

// A device gets the first variant that it runs, one made for it before others.
func TestChoose(t *testing.T) {
	plan := func(name string) func(int) (*Plan, error) {
		return func(n int) (*Plan, error) {
			if n < 0 {
				return nil, errors.New("negative")
			}
			return &Plan{Kernel: name}, nil
		}
	}
	variants := []variant[int]{
		{name: "own", gpus: []string{"h100"}, major: 9, only: true, maps: true, driver: 12000, plan: plan("own")},
		{name: "nine", gpus: []string{"h100"}, major: 9, shared: 120000, plan: plan("nine")},
		{name: "eight", gpus: []string{"a100"}, major: 8, plan: plan("eight")},
		{name: "ada", gpus: []string{"l40"}, major: 8, minor: 0, plan: plan("ada")},
	}
	for _, tt := range []struct {
		device Device
		want   string
	}{
		{Device{Major: 9, TensorMaps: true}, "own"},
		{Device{Major: 9}, "nine"},
		{Device{Major: 9, TensorMaps: true, Driver: 11080}, "nine"},
		{Device{Major: 9, SharedOptin: 99999}, "eight"},
		{Device{Major: 12, SharedOptin: 200000}, "nine"},
		{Device{Major: 12}, "eight"},
		{Device{Major: 10, TensorMaps: true}, "nine"},
		{Device{Major: 8, Minor: 9}, "eight"},
		{Device{Major: 8, Minor: 9, Name: "nvidia-l40"}, "ada"},
	} {
		p, err := choose(tt.device, 1, variants)
		require.NoError(t, err)
		require.Equal(t, tt.want, p.Kernel, "%+v", tt.device)
	}
	_, err := choose(Device{Major: 7, Minor: 5}, 1, variants)
	require.ErrorIs(t, err, ErrUnsupported)
	require.ErrorContains(t, err, "eight: compute capability 7.5: want 8.0 or newer")
	_, err = choose(Device{Major: 9}, -1, variants)
	require.ErrorIs(t, err, ErrUnsupported)
	require.ErrorContains(t, err, "negative")
}

// Where no variant serves, the reason is that of the one that suits the device best: its
// own, of the same architecture, one that runs there, the nearest; of several that suit it
// alike each, unless it is the same.
func TestChooseSaysWhy(t *testing.T) {
	plan := func(int) (*Plan, error) { return nil, errors.New("too large") }
	variants := []variant[int]{
		{name: "hopper", gpus: []string{"h100"}, major: 9, only: true, maps: true, plan: plan},
		{name: "nine", gpus: []string{"h100"}, major: 9, driver: 12040, plan: plan},
		{name: "h200", gpus: []string{"h200"}, major: 9, shared: 1 << 20, plan: plan},
		{name: "ada", gpus: []string{"l4"}, major: 8, minor: 9, plan: plan},
		{name: "eight", gpus: []string{"a100"}, major: 8, plan: plan},
	}
	for _, tt := range []struct {
		device Device
		want   string
	}{
		{Device{Name: "NVIDIA A100-SXM4-80GB", Major: 8}, "eight: too large"},
		{Device{Name: "NVIDIA H200", Major: 9, TensorMaps: true}, "h200: 232448 bytes of shared memory for a block: want 1048576"},
		{Device{Name: "NVIDIA H100", Major: 9, TensorMaps: true}, "hopper: too large"},
		{Device{Name: "NVIDIA H100", Major: 9}, "nine: too large"},
		{Device{Name: "NVIDIA H100", Major: 9, Driver: 12000}, "hopper: tensor maps: the device has no way to encode them; nine: a driver for CUDA 12.0: want one for 12.4 or newer"},
		{Device{Major: 9}, "nine: too large"},
		{Device{Major: 8, Minor: 9}, "ada: too large"},
		{Device{Major: 8, Minor: 6}, "eight: too large"},
		{Device{Major: 10, TensorMaps: true}, "nine: too large"},
		{Device{Major: 7, Minor: 5}, "eight: compute capability 7.5: want 8.0 or newer"},
	} {
		_, err := choose(tt.device, 1, variants)
		require.ErrorIs(t, err, ErrUnsupported)
		require.EqualError(t, err, "not supported: "+tt.want, "%+v", tt.device)
	}
}

// A device gets what was made for it by any name that drivers report and kgen knows: keys
// are those of the table, and a name has the key that finds its GPU.
func TestDeviceNames(t *testing.T) {
	var variants []variant[int]
	for _, g := range target.All() {
		variants = append(variants, variant[int]{name: g.ID, gpus: g.Keys(), plan: func(int) (*Plan, error) { return &Plan{Kernel: g.ID}, nil }})
	}
	chosen := func(g *target.GPU, name string) {
		p, err := choose(Device{Name: name, Major: g.CC.Major, Minor: g.CC.Minor}, 1, variants)
		require.NoError(t, err)
		require.Equal(t, g.ID, p.Kernel, name)
	}
	for _, g := range target.All() {
		chosen(g, g.Name)
		chosen(g, g.ID)
		for _, a := range g.Aliases() {
			if !strings.HasPrefix(a, "sm_") {
				chosen(g, a)
				chosen(g, "NVIDIA "+strings.ToUpper(a))
			}
		}
	}
	for _, name := range []string{
		"Tesla T4", "Tesla V100-SXM2-16GB", "Tesla V100-PCIE-16GB", "NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-80GB", "NVIDIA A100 80GB PCIe",
		"NVIDIA A100-PCIE-40GB", "NVIDIA A30", "NVIDIA A10", "NVIDIA A40", "NVIDIA RTX A6000", "NVIDIA GeForce RTX 3090", "NVIDIA L4", "NVIDIA L40", "NVIDIA L40S",
		"NVIDIA GeForce RTX 4090", "NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe", "NVIDIA H100 NVL", "NVIDIA H200", "NVIDIA GH200 480GB",
		"NVIDIA GH200 120GB", "NVIDIA B200", "NVIDIA GB200", "NVIDIA GeForce RTX 5090", "NVIDIA GB10", "Orin", "NVIDIA Thor",
	} {
		g, err := target.Lookup(name)
		require.NoError(t, err)
		chosen(g, name)
	}
	require.Empty(t, key(""))
	require.Equal(t, "rtx4090d", key("NVIDIA GeForce RTX 4090 D"))
	require.Len(t, key(strings.Repeat("x", 1000)), 64)
}

// A rule's variant comes before the others of the rule, which serve where it does not.
func TestChooseByRule(t *testing.T) {
	rule := func(s int) int { return s / 100 }
	plan := func(name string, most int) func(int) (*Plan, error) {
		return func(s int) (*Plan, error) {
			if s%100 > most {
				return nil, errors.New("too large")
			}
			return &Plan{Kernel: name}, nil
		}
	}
	variants := []variant[int]{
		{name: "small", gpus: []string{"a"}, major: 8, rule: rule, leaf: 0, plan: plan("small", 50)},
		{name: "large", gpus: []string{"a"}, major: 8, rule: rule, leaf: 1, plan: plan("large", 80)},
		{name: "any", gpus: []string{"b"}, major: 8, plan: plan("any", 60)},
	}
	for s, want := range map[int]string{10: "small", 110: "large", 55: "any", 155: "large", 70: "large"} {
		p, err := choose(Device{Major: 8, Name: "A"}, s, variants)
		require.NoError(t, err)
		require.Equal(t, want, p.Kernel, s)
	}
	p, err := choose(Device{Major: 8, Name: "B"}, 10, variants)
	require.NoError(t, err)
	require.Equal(t, "any", p.Kernel)
	_, err = choose(Device{Major: 8}, 90, variants)
	require.ErrorIs(t, err, ErrUnsupported)
}

// Where a device does not say how much shared memory a block may have, no kernel gets
// more than there is, on any GPU that is known.
func TestSharedByComputeCapability(t *testing.T) {
	for _, g := range target.All() {
		d := Device{Major: g.CC.Major, Minor: g.CC.Minor}
		if g.CC.AtLeast(7, 5) {
			require.Equal(t, g.Limits().SharedPerBlock, d.shared(), g.ID)
		}
	}
}

// Kernels get of a probability what the tile language defines for it.
func TestDropout(t *testing.T) {
	for _, p := range []float64{0, 1e-9, 0.1, 0.25, 0.5, 0.9, 0.999, math.Nextafter(1, 0)} {
		var n numbers
		threshold, scale := n.dropout(p)
		require.NoError(t, n.err)
		require.Equal(t, num.DropoutThreshold(p), threshold, p)
		require.Equal(t, float32(num.DropoutScale(threshold)), scale, p)
	}
	var none numbers
	threshold, scale := none.dropout(-1)
	require.NoError(t, none.err)
	require.Zero(t, threshold)
	require.EqualValues(t, 1, scale)
	for _, p := range []float64{-0.1, -2, 1, 2, math.NaN(), math.Inf(1), math.Inf(-1)} {
		var n numbers
		n.dropout(p)
		require.ErrorContains(t, n.err, "want a probability from 0 up to, but not including, 1", p)
	}
}

// Numbers are refused that kernels would make nothing right of; of several the first is said.
func TestNumbers(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, tt := range []struct {
		take func(*numbers) uint64
		bits uint64
		want string
	}{
		{func(n *numbers) uint64 { return n.float("Alpha", -2) }, uint64(math.Float32bits(-2)), ""},
		{func(n *numbers) uint64 { return n.float("Alpha", nan) }, 0, "Alpha NaN: want a finite number"},
		{func(n *numbers) uint64 { return n.float("Alpha", -inf) }, 0, "Alpha -Inf: want a finite number"},
		{func(n *numbers) uint64 { return n.floatFrom0("Eps", 0.5) }, uint64(math.Float32bits(0.5)), ""},
		{func(n *numbers) uint64 { return n.floatFrom0("Eps", -0.5) }, 0, "Eps -0.5: want a finite number, 0 or more"},
		{func(n *numbers) uint64 { return n.floatFrom0("Eps", inf) }, 0, "Eps +Inf: want a finite number, 0 or more"},
		{func(n *numbers) uint64 { return n.intFrom0("Window", 7) }, 7, ""},
		{func(n *numbers) uint64 { return n.intFrom0("Window", -1) | n.float("Alpha", nan) }, 0, "Window -1: want 0 or more"},
	} {
		var n numbers
		bits := tt.take(&n)
		if tt.want == "" {
			require.NoError(t, n.err)
			require.Equal(t, tt.bits, bits)
		} else {
			require.EqualError(t, n.err, tt.want)
		}
	}
}

// What no kernel counts to is refused before it is multiplied out.
func TestSizesThatOverflow(t *testing.T) {
	const large = math.MaxInt32
	for _, tt := range []struct {
		plan func(*planner)
		want string
	}{
		{func(p *planner) { p.dense("x", 2, large, 1<<20) }, ""},
		{func(p *planner) { p.dense("x", 2, 1<<20, large, 1<<20) }, "x of [1048576 2147483647 1048576] elements: more bytes than 64 bits count"},
		{func(p *planner) { p.dense("x", 2, large, large, large, large) }, "more bytes than 64 bits count"},
		{func(p *planner) { p.step(nil, "k", 32, 0, large) }, ""},
		{func(p *planner) { p.step(nil, "k", 32, 0, 1<<16, 1<<16) }, "k over [65536 65536] tiles: want at most 2147483647"},
		{func(p *planner) { p.step(nil, "k", 32, 0, large, large, large, large) }, "tiles: want at most 2147483647"},
		{func(p *planner) { p.below("M * N", large) }, ""},
		{func(p *planner) { p.below("M * N", large*large) }, "sizes too large for indices of 32 bits: M * N is 4611686014132420609, want at most 2147483647"},
	} {
		var p planner
		tt.plan(&p)
		if tt.want == "" {
			require.NoError(t, p.err)
		} else {
			require.ErrorContains(t, p.err, tt.want)
		}
	}
}

func TestSize(t *testing.T) {
	var p planner
	require.EqualValues(t, 1<<20, p.size("Cols", 1<<20, 1<<20))
	require.NoError(t, p.err)
	p.size("Cols", 1<<20+1, 1<<20)
	require.EqualError(t, p.err, "Cols 1048577: want 1 to 1048576")
}

// A kernel for some shapes alone does not hide what keeps the one for all from serving.
func TestChooseSaysWhyOfAll(t *testing.T) {
	refuse := func(why string) func(int) (*Plan, error) {
		return func(int) (*Plan, error) { return nil, errors.New(why) }
	}
	variants := []variant[int]{
		{name: "own", gpus: []string{"h100"}, major: 9, only: true, plan: refuse("N 7: want a multiple of 8")},
		{name: "portable", gpus: []string{"h100"}, major: 9, plan: refuse("N 7: want a multiple of 8")},
		{name: "any", gpus: []string{"h100"}, major: 9, plan: refuse("M 9: too large")},
	}
	_, err := choose(Device{Name: "NVIDIA H100", Major: 9}, 1, variants)
	require.EqualError(t, err, "not supported: own: N 7: want a multiple of 8; any: M 9: too large")
	_, err = choose(Device{Name: "NVIDIA A100", Major: 8}, 1, variants[:2])
	require.EqualError(t, err, "not supported: own: compute capability 8.0: want 9.0 or newer")
}
