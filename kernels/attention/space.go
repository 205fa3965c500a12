package attention

import (
	"fmt"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
)

// config is a configuration: queries and keys of a step, and how it is run.
type config struct {
	BM, BN        int
	warps, stages int
	order         int
	portable      int
	overlap       int
	persistent    int
	copy          int
}

func (p *Problem) space() *space.Space {
	return &space.Space{
		Params: []space.Param{
			{Name: "BM", Values: []int{64, 128, 256}, Also: []int{16, 32, 192}, Doc: "queries of a tile"},
			{Name: "BN", Values: []int{16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192}, Also: []int{224, 256}, Doc: "keys of a step"},
			{Name: "warps", Values: []int{4, 8}, Also: []int{1, 2}, Doc: "warps of a block"},
			{Name: "stages", Values: []int{1, 2, 3, 4}, Doc: "steps of keys and values in flight"},
			{Name: "order", Values: []int{headByHead, rowByRow, sequenceBySequence}, Doc: "which tiles start first: 0 all of a head, then the next; 1 the longest rows of every head; 2 those of a sequence's heads, then the next sequence"},
			{Name: "portable", Values: []int{0, 1}, Doc: "1: without tensor maps, and the instructions that only the GPU's own architecture has"},
			{Name: "overlap", Values: []int{0, 1, 2}, Doc: "1: the scores of the next step are multiplied under the softmax of this one; 2: and two warpgroups take turns at it"},
			{Name: "persistent", Values: []int{0, 1}, Doc: "1: one wave of blocks goes from tile to tile, and copies the next one's queries and first keys while it ends this one"},
			{Name: "copy", Values: []int{0}, Also: []int{1}, Doc: "1: threads copy for warpgroups (cp.async), as they do where strides allow no tensor maps"},
		},
		Constraints: []space.Constraint{
			{Name: "shared", Expr: "elem*(D*BM + stages*BN*(D + DV)) + persistent*(2048*warps + 1024) <= shared", Doc: "queries and the stages of keys and values fit a block's shared memory, beside 16 rows of 128 bytes a warp of what persistent blocks store"},
			{Name: "transposed", Expr: "elem == 2 || sm != 90 || portable == 1 || D*BM + stages*BN*(D + 2*DV) + persistent*(2048*warps + 1024) <= shared && stages >= 2 && BN % 32 == 0", Doc: "so do values of 8 bits that warps of their own transpose for warpgroups"},
			{Name: "warp rows", Expr: "BM % (16*warps) == 0", Doc: "a warp has whole rows, 16 at a time"},
			{Name: "registers", Expr: "BM*(4*DV + (4 + elem)*BN + 48) <= 4*(regs - 12)*32*warps", Doc: "output, scores, the weights they become, and maximum, sum and factor of each row fit a thread's registers, beside 12 others"},
			{Name: "oversize", Expr: "(BM < 2*Sq || BM <= 64) && (BN < 2*Sk || BN <= 32)", Doc: "no tile twice the problem"},
			{Name: "depth", Expr: "stages <= max(2, ceildiv(Sk, BN))", Doc: "no more stages than steps"},
			{Name: "pipeline", Expr: "sm >= 80 || stages <= 2", Doc: "before 8.0 a stage is prefetched through registers"},
			{Name: "raster", Expr: "order == 0 || causal == 1 && (order == 1 || B > 1)", Doc: "without a mask all rows are as long, and one sequence has no next"},
			{Name: "portable", Expr: "portable == 0 || sm == 90 || sm > 90 && elem == 2", Doc: "portable only where there is another way"},
			{Name: "wide", Expr: "BN <= 128 || sm == 90 && portable == 0 || BM*(DV + BN) <= 160*32*warps", Doc: "more than 128 keys where warpgroups multiply, or registers are left"},
			{Name: "overlap", Expr: "overlap == 0 || sm == 90 && portable == 0 && stages >= 2 && BM == 16*warps", Doc: "products overlap where warpgroups multiply and others copy"},
			{Name: "turns", Expr: "overlap <= 1 || warps == 8", Doc: "two warpgroups take turns"},
			{Name: "overlap registers", Expr: "overlap == 0 || BM*(4*DV + (4 + elem)*BN) <= 4*(regs - 40)*32*warps", Doc: "output, scores and the weights before them fit a thread's registers, beside 40 others"},
			{Name: "persistent", Expr: "persistent == 0 || sm == 90 && portable == 0 && copy == 0 && stages >= 2 && warps % 4 == 0 && ceildiv(Sq, BM)*H*B > sm_count", Doc: "persistent only where warpgroups multiply, others copy, and there is more than one wave of tiles"},
			{Name: "copy", Expr: "copy == 0 || sm == 90 && portable == 0", Doc: "threads copy to where warpgroups multiply from"},
			{Name: "grid", Expr: "ceildiv(Sq, BM)*H*B <= 2147483647", Doc: "blocks of one launch"},
		},
	}
}

// The values of order.
const (
	headByHead = iota
	rowByRow
	sequenceBySequence // the L2 holds the keys and values of more heads at a time
)

// rowAxis is which axis of the tile space the rows are, by order: the others are the
// sequences and the heads.
var rowAxis = [...]int{headByHead: 2, rowByRow: 0, sequenceBySequence: 1}

// Space returns the configurations to search.
func (p *Problem) Space(gpu *target.GPU) (*space.Bound, error) {
	env := family.Env(gpu)
	env["B"], env["H"], env["D"] = int64(p.Batch), int64(p.Heads), int64(p.HeadDim)
	env["DV"], env["elem"] = int64(p.HeadDimV), int64(bytesOf(p.elem()))
	env["regs"] = 255
	switch { // those of warpgroups that multiply: less where others transpose values of 8 bits
	case gpu.CC.SM() == 90 && p.small():
		env["regs"] = 224
	case gpu.CC.SM() == 90:
		env["regs"] = 240
	}
	env["Sq"], env["Sk"] = int64(p.Seq), int64(p.SeqKV)
	env["causal"] = 0
	if p.Causal {
		env["causal"] = 1
	}
	return p.space().Bind(env)
}

// preferred lists configurations from the largest down, then what fits less shared memory
// and shorter rows. At head dimension 128 two blocks of 128x64 share an SM of an A100 if
// each has one stage: predicted 3394 us for the default problem, where two stages take 4780.
var preferred = []config{
	{BM: 128, BN: 128, warps: 4, stages: 2},
	{BM: 128, BN: 64, warps: 4, stages: 1},
	{BM: 128, BN: 64, warps: 8, stages: 2},
	{BM: 128, BN: 64, warps: 8, stages: 1},
	{BM: 64, BN: 64, warps: 4, stages: 2},
	{BM: 64, BN: 64, warps: 4, stages: 1},
	{BM: 64, BN: 32, warps: 4, stages: 2},
	{BM: 64, BN: 32, warps: 4, stages: 1},
	{BM: 64, BN: 16, warps: 4, stages: 1},
}

// preferred75 is the same for GPUs of compute capability 7.5, where a warp with 32 rows
// spills, and preferred100 for data-centre Blackwell, where it does with more than 48 keys
// (predicted 1287 us; the best, with a few bytes of spills, 1200).
var (
	preferred75  = preferred[2:]
	preferred100 = append([]config{{BM: 128, BN: 48, warps: 4, stages: 2}}, preferred[2:]...)
)

// preferredSmall is the same for SMs with 100 KB of shared memory (8.6, 8.9, 12.x), which
// hold two or three blocks of 64x32: predicted 4547 us on an RTX 4090 (128x64: 6144) and
// 3848 on an RTX 5090 (best 3666).
var preferredSmall = append([]config{{BM: 64, BN: 32, warps: 4, stages: 2}}, preferred[3:]...)

// preferred90 is the same for GPUs of compute capability 9.0, where warpgroups multiply:
// FlashAttention-3's choices, with two warpgroups of 64 queries each, as long as the
// registers of every head dimension hold it.
var preferred90 = []config{
	{BM: 128, BN: 128, warps: 8, stages: 2, overlap: 2},
	{BM: 128, BN: 96, warps: 8, stages: 2, overlap: 2},
	{BM: 128, BN: 64, warps: 8, stages: 2, overlap: 2},
	{BM: 64, BN: 128, warps: 4, stages: 2, overlap: 1},
	{BM: 64, BN: 96, warps: 4, stages: 2, overlap: 1},
	{BM: 64, BN: 64, warps: 4, stages: 2, overlap: 1},
	{BM: 64, BN: 32, warps: 4, stages: 2},
	{BM: 64, BN: 16, warps: 4, stages: 1},
}

// preferredOn lists what is preferred on a GPU.
func preferredOn(gpu *target.GPU) []config {
	switch {
	case gpu.CC.Major == 9:
		return preferred90
	case gpu.CC.Major == 10:
		return preferred100
	case gpu.CC.Major == 7:
		return preferred75
	case gpu.Limits().SharedPerSM <= 100<<10:
		return preferredSmall
	}
	return preferred
}

// raster is the order in which tiles start where rows differ in length: the longest first,
// of a sequence's heads after another where there are several, so that the L2 holds what
// they share (H100, the default problem: predicted 1122 us and 0.37 GB; rows of all heads
// 1130 and 1.28 GB; heads one after the other 1155). On data-centre Blackwell that spills.
func (p *Problem) raster(gpu *target.GPU) int {
	switch {
	case !p.Causal:
		return headByHead
	case p.Batch > 1 && gpu.CC.Major != 10:
		return sequenceBySequence
	}
	return rowByRow
}

// Default returns the first preferred configuration that fits and has a tile for every
// SM, or failing that the last that fits.
func (p *Problem) Default(gpu *target.GPU) (space.Config, error) {
	b, err := p.Space(gpu)
	if err != nil {
		return space.Config{}, err
	}
	var last space.Config
	for _, want := range preferredOn(gpu) {
		want.order = p.raster(gpu)
		c := want.encode()
		if b.Check(c) != nil {
			continue
		}
		last = c
		if tiles := p.Batch * p.Heads * family.CeilDiv(p.Seq, want.BM); tiles >= gpu.SMs {
			return c, nil
		}
	}
	if last.Len() > 0 {
		return last, nil
	}
	return space.Config{}, fmt.Errorf("attention with head dimensions %d and %d on %s: no configuration: %s", p.HeadDim, p.HeadDimV, gpu.Name, b.Count())
}

func (c config) encode() space.Config {
	return space.Of("BM", c.BM, "BN", c.BN, "warps", c.warps, "stages", c.stages, "order", c.order, "portable", c.portable, "overlap", c.overlap, "persistent", c.persistent, "copy", c.copy)
}

// decode reads a configuration whose values the parameters allow.
func (p *Problem) decode(c space.Config) (config, error) {
	if err := p.space().Check(c); err != nil {
		return config{}, err
	}
	r := c.Read()
	return config{BM: r.Int("BM"), BN: r.Int("BN"), warps: r.Int("warps"), stages: r.Int("stages"), order: r.Int("order"), portable: r.Int("portable"), overlap: r.Int("overlap"), persistent: r.Int("persistent"), copy: r.Int("copy")}, r.Err()
}
