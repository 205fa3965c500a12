package gemm

import (
	"fmt"
	"math"
	"slices"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
)

// config is a configuration: the tile of C, its step along K, and how it is run.
type config struct {
	BM, BN, BK           int
	warps, stages, group int
	split, cluster       int
	portable, persistent int
	copy, hilbert        int
	atomic               int
}

// reduceRows is the tile height of the kernel that adds up the splits; it divides BM.
const reduceRows = 16

func (p *Problem) space() *space.Space {
	return &space.Space{
		Params: []space.Param{
			{Name: "BM", Values: []int{32, 64, 128, 192, 256}, Also: []int{16, 48, 80, 96, 112, 160}, Doc: "rows of a tile of C"},
			{Name: "BN", Values: []int{32, 64, 128, 160, 176, 192, 208, 224, 240, 256}, Also: []int{16, 48, 80, 96, 112, 144}, Doc: "columns of a tile of C"},
			{Name: "BK", Values: []int{16, 32, 64, 128}, Doc: "step along K"},
			{Name: "warps", Values: []int{4, 8, 12}, Also: []int{1, 2}, Doc: "warps of a block that multiply"},
			{Name: "stages", Values: []int{2, 3, 4, 5}, Also: []int{1}, Doc: "K steps in flight"},
			{Name: "group", Values: []int{1, 8}, Also: []int{4, 16}, Doc: "tile rows walked together, so that tiles in flight share columns of B"},
			{Name: "split", Values: []int{1, 2, 4, 8}, Doc: "parts that K is cut into, added up by a second launch"},
			{Name: "cluster", Values: []int{1, 2, 4}, Doc: "tile rows that run together and copy their columns of B once, each a part"},
			{Name: "persistent", Values: []int{0, 1, 2}, Doc: "1: one wave of blocks goes from tile to tile, and copies the next one's first steps while it stores; 2: and two warpgroups have tiles in turns"},
			{Name: "hilbert", Values: []int{0, 8}, Also: []int{4, 16, 32}, Doc: "clusters along a side of the squares that are walked along Hilbert's curve; 0: groups of tile rows instead"},
			{Name: "portable", Values: []int{0, 1}, Doc: "1: without tensor maps, and the instructions that only the GPU's own architecture has"},
			{Name: "copy", Values: []int{0}, Also: []int{1}, Doc: "1: threads copy for warpgroups (cp.async), as they do where strides allow no tensor maps"},
			{Name: "atomic", Values: []int{0}, Also: []int{1}, Doc: "1: parts of K are added to C itself, in no fixed order, so that results may differ in rounding from run to run"},
		},
		Constraints: []space.Constraint{
			{Name: "shared", Expr: "stages*BK*((BM+BN)*elem + 32*padded + (1-portable)*(turned_a*BM + turned_b*BN)) + persistent*(2048*warps + 1024) <= shared", Doc: "the stages of A and B fit a block's shared memory, with the padding of those that aren't along K and what is transposed of 8 bits, beside 16 rows of 128 bytes a warp of what persistent blocks store"},
			{Name: "accumulators", Expr: "BM*BN <= acc*32*warps || persistent == 2 && BM*BN <= turn*32*warps", Doc: "acc sums a thread at most, and turn of them where warpgroups have tiles in turns"},
			{Name: "warp tile", Expr: "BM*BN >= 256*warps", Doc: "a warp has a 16x16 piece of C at least"},
			{Name: "copy", Expr: "min(BM, BN)*BK*elem >= 256*warps", Doc: "every other thread copies 16 bytes of each operand at least"},
			{Name: "rows", Expr: "BK*elem >= 32 && BK*elem <= 256", Doc: "a row of a stage has 32 to 256 bytes"},
			{Name: "oversize", Expr: "(BM < 2*M || BM <= 32) && (BN < 2*N || BN <= 32) && (BK < 2*K || BK <= 16 || BK*elem <= 32)", Doc: "no tile twice the problem"},
			{Name: "columns", Expr: "BN % 64 == 0 || BN == 32 || wgmma == 1 && portable == 0 && split == 1 && BM % 64 == 0 && (BM == 16*warps || persistent == 2 && BM == 32*warps) && BK*elem == 128", Doc: "as many columns as warpgroups take, but no power of two, only for their products"},
			{Name: "warpgroups", Expr: "BM != 192 && warps != 12 || BM == 192 && warps == 12 && wgmma == 1 && portable == 0 && split == 1 && BK*elem == 128 && (BN <= 192 || BN == 256)", Doc: "192 rows are for three warpgroups, which multiply only as such, up to 192 columns an instruction"},
			{Name: "depth", Expr: "stages <= max(2, ceildiv(ceildiv(K, BK), split))", Doc: "no more stages than steps"},
			{Name: "raster", Expr: "group == 1 || ceildiv(M, BM) > group", Doc: "groups only where there are several"},
			{Name: "split", Expr: "split == 1 || ceildiv(K, BK) >= split && ceildiv(M, BM)*ceildiv(N, BN)*split <= 2*sm_count", Doc: "K is cut only to fill idle SMs"},
			{Name: "cluster", Expr: "cluster == 1 || wgmma == 1 && group % cluster == 0 && BM % (16*warps) == 0 && BN >= 64 && ceildiv(M, BM) > 1", Doc: "clusters only where warpgroups multiply, and walk columns together"},
			{Name: "portable", Expr: "portable == 0 || wgmma == 1 && cluster == 1 && split == 1 && group == 8 && BM % (16*warps) == 0 && BK*elem <= 128 && BM*BN >= 64*128 && stages <= 4 || maps == 1 && split == 1 && group == 8", Doc: "portable only where there is another way"},
			{Name: "persistent", Expr: "persistent == 0 || wgmma == 1 && portable == 0 && split == 1 && BM*BN >= 64*256 && (persistent < 2 || warps == 4) && BK*elem == 128 && stages >= 3 && (group > 1 || ceildiv(M, BM) <= 8) && BM % (16*warps) == 0 && ceildiv(M, BM)*ceildiv(N, BN) > sm_count", Doc: "persistent only where warpgroups multiply large tiles, and there is more than one wave of them"},
			{Name: "hilbert", Expr: "hilbert == 0 || persistent > 0 && group == 8 && ceildiv(M, BM) >= hilbert*cluster && ceildiv(N, BN) >= hilbert", Doc: "Hilbert's curve only for persistent blocks, in whole squares, and with no other groups"},
			{Name: "transposed", Expr: "turned_a + turned_b == 0 || portable == 1 || stages >= 2 && (turned_b == 0 || BN % 32 == 0)", Doc: "warps of their own transpose operands of 8 bits across K for warpgroups"},
			{Name: "copy", Expr: "copy == 0 || wgmma == 1 && cluster == 1 && portable == 0 && persistent == 0", Doc: "threads copy to where warpgroups multiply from, each block for itself"},
			{Name: "atomic", Expr: "atomic == 0 || split > 1 && linear == 1", Doc: "parts are added to C itself where it is of f32, with no activation"},
			{Name: "pipeline", Expr: "sm >= 80 || stages <= 2", Doc: "before 8.0 a stage is prefetched through registers"},
			{Name: "grid", Expr: "ceildiv(M, BM)*ceildiv(N, BN)*split <= 2147483647", Doc: "blocks of one launch"},
			{Name: "epilogue", Expr: "sums == 0 || sums == 1 && split == 1 || BM*(4*BN + 32) <= shared", Doc: "sums that are stored in f32 pass through padded rows of shared memory"},
		},
	}
}

// Space returns the configurations to search.
func (p *Problem) Space(gpu *target.GPU) (*space.Bound, error) {
	env := family.Env(gpu)
	env["M"], env["N"], env["K"] = int64(p.M), int64(p.N), int64(p.K)
	env["elem"] = int64(p.elem().Bits() / 8)
	env["acc"] = 128
	switch {
	case !p.math().Tensor():
		env["acc"] = 64 // the fragments of A and B take registers too
	case p.small():
		env["acc"] = 96 // so do the products of a step, which are added to the sums
	}
	env["turn"] = env["acc"]
	if !p.small() {
		env["turn"] = 208 // of the 240 registers that such a warpgroup's threads have at most
	}
	env["padded"], env["sums"], env["linear"] = p.padded(), p.sums(), 0
	if p.linear() {
		env["linear"] = 1
	}
	env["wgmma"], env["maps"], env["turned_a"], env["turned_b"] = 0, 0, 0, 0
	switch {
	case p.warpgroups(gpu):
		env["wgmma"] = 1
		if p.small() && p.transposedA() {
			env["turned_a"] = 1
		}
		if p.small() && !p.transposedB() {
			env["turned_b"] = 1
		}
	case gpu.CC.AtLeast(10, 0) && p.math().Tensor() && p.elem().Bits() == 16:
		env["maps"] = 1
	}
	return p.space().Bind(env)
}

// linear tells whether C is of f32 and the sum of what its parts give, so that they may be
// added to it.
func (p *Problem) linear() bool { return p.out().Bits() == 32 && p.Act == "none" }

// padded counts the operands whose rows in shared memory are padded by 32 bytes: those of
// 32-bit tensor instructions that aren't stored along K.
func (p *Problem) padded() int64 {
	n := int64(0)
	if p.math().Tensor() && p.elem().Bits() == 32 {
		for _, across := range []bool{p.transposedA(), !p.transposedB()} {
			if across {
				n++
			}
		}
	}
	return n
}

// sums tells when tensor instructions' sums are stored in f32: 0 never, 1 where K is split,
// 2 always.
func (p *Problem) sums() int64 {
	switch {
	case !p.math().Tensor():
		return 0
	case p.out().Bits() == 32:
		return 2
	}
	return 1
}

// warpgroups tells whether warpgroups may multiply the problem's types as its matrices are
// stored: tf32 wants B along K, all want B's rows to be copied by 4 bytes at least, and
// where 8-bit values of B are transposed on the way, A's too.
func (p *Problem) warpgroups(gpu *target.GPU) bool {
	if gpu.CC.SM() != 90 || !p.math().Tensor() || p.elem().Bits() == 32 && !p.transposedB() {
		return false
	}
	args := p.Args()
	return copied(args[1]) && (copied(args[0]) || !p.small() || p.transposedB())
}

// copied tells whether a matrix's rows allow copies of 4 bytes to shared memory.
func copied(a family.Arg) bool {
	return a.Elem.Bits() == 32 || family.Granule(a.Elem, a.Dims[1], a.Strides[0]) > 1
}

// preferred lists configurations that do well on large problems of 16-bit types,
// larger tiles first: the shapes that public tensor-core kernels for these GPUs settle
// on.
var preferred = []config{
	{BM: 128, BN: 256, BK: 32, warps: 8, stages: 3, group: 8, split: 1, cluster: 1},
	{BM: 128, BN: 128, BK: 32, warps: 4, stages: 4, group: 8, split: 1, cluster: 1},
	{BM: 128, BN: 128, BK: 32, warps: 8, stages: 3, group: 8, split: 1, cluster: 1},
	{BM: 128, BN: 64, BK: 32, warps: 4, stages: 4, group: 8, split: 1, cluster: 1},
	{BM: 64, BN: 64, BK: 32, warps: 4, stages: 4, group: 8, split: 1, cluster: 1},
	{BM: 64, BN: 32, BK: 32, warps: 4, stages: 4, group: 8, split: 1, cluster: 1},
	{BM: 32, BN: 32, BK: 32, warps: 4, stages: 4, group: 1, split: 1, cluster: 1},
}

// preferredSmall is the same for GPUs whose SMs have little shared memory (64 KB of 7.5,
// 100 of 8.6, 8.9 and 12.x): two blocks of 128x128 beside each other hide what one of
// 128x256 waits for. Predicted for 4096 in 16 bits, in us: T4 5134 in place of 6536,
// RTX 4090 1049 of 1113, RTX 5090 968 of 1155.
var preferredSmall = []config{
	{BM: 128, BN: 128, BK: 32, warps: 8, stages: 3, group: 8, split: 1, cluster: 1},
	{BM: 128, BN: 64, BK: 32, warps: 4, stages: 4, group: 8, split: 1, cluster: 1},
	{BM: 64, BN: 64, BK: 32, warps: 4, stages: 4, group: 8, split: 1, cluster: 1},
	{BM: 64, BN: 32, BK: 32, warps: 4, stages: 4, group: 8, split: 1, cluster: 1},
	{BM: 32, BN: 32, BK: 32, warps: 4, stages: 4, group: 1, split: 1, cluster: 1},
}

// preferred90 is the same where warpgroups multiply 16-bit types: a step along K is a row
// of 128 bytes.
var preferred90 = []config{
	{BM: 128, BN: 256, BK: 64, warps: 8, stages: 4, group: 8, split: 1, cluster: 4, persistent: 1},
	{BM: 128, BN: 256, BK: 64, warps: 8, stages: 4, group: 8, split: 1, cluster: 2},
	{BM: 128, BN: 128, BK: 64, warps: 8, stages: 4, group: 8, split: 1, cluster: 2},
	{BM: 128, BN: 64, BK: 64, warps: 8, stages: 4, group: 8, split: 1, cluster: 1},
	{BM: 64, BN: 64, BK: 64, warps: 4, stages: 4, group: 8, split: 1, cluster: 1},
	{BM: 64, BN: 32, BK: 64, warps: 4, stages: 4, group: 8, split: 1, cluster: 1},
	{BM: 32, BN: 32, BK: 32, warps: 4, stages: 4, group: 1, split: 1, cluster: 1},
}

// preferredOn lists what is preferred on a GPU.
func (p *Problem) preferredOn(gpu *target.GPU) []config {
	switch bytes := p.elem().Bits() / 8; {
	case !p.warpgroups(gpu) && gpu.Limits().SharedPerSM <= 100<<10:
		return preferredSmall
	case !p.warpgroups(gpu):
		return preferred
	case bytes == 2:
		return preferred90
	default:
		list := slices.Clone(preferred90)
		for i := range list {
			list[i].BK = list[i].BK * 2 / bytes // as many bytes
			if p.small() {
				list[i].BN = min(list[i].BN, 192) // the sums that fit beside a step's products
			}
		}
		return list
	}
}

// smallerPays is how much less the SMs must do in smaller tiles, which load more for what
// they multiply, to be preferred.
const smallerPays = 0.85

// Default returns the preferred configuration under which the SM with the most tiles has
// the least of C to multiply, the first of those that are about as good, with fewer stages
// or no groups where those don't fit. So 512 rows of 4096 columns are cut into 128 tiles of
// 128x128 for the 132 SMs of an H100 (predicted 40 us), not into 64 or 256 (63 and 55).
func (p *Problem) Default(gpu *target.GPU) (space.Config, error) {
	b, err := p.Space(gpu)
	if err != nil {
		return space.Config{}, err
	}
	var best space.Config
	least := math.Inf(1)
	for _, want := range p.preferredOn(gpu) {
		c, ok := nearest(b, want)
		if !ok {
			continue
		}
		tiles := family.CeilDiv(p.M, want.BM) * family.CeilDiv(p.N, want.BN)
		if most := float64(family.CeilDiv(tiles, gpu.SMs) * want.BM * want.BN); most < smallerPays*least {
			best, least = c, most
		}
	}
	if best.Len() > 0 {
		return best, nil
	}
	for c := range b.All() {
		return c, nil
	}
	return space.Config{}, fmt.Errorf("gemm %dx%dx%d on %s: no configuration: %s", p.M, p.N, p.K, gpu.Name, b.Count())
}

// nearest finds a valid configuration with want's tile and warps.
func nearest(b *space.Bound, want config) (space.Config, bool) {
	for _, group := range []int{want.group, 1} {
		if group == 1 {
			want.cluster = 1
		}
		for stages := want.stages; stages >= 2; stages-- {
			want.group, want.stages = group, stages
			if c := want.encode(); b.Check(c) == nil {
				return c, true
			}
		}
	}
	return space.Config{}, false
}

func (c config) encode() space.Config {
	return space.Of("BM", c.BM, "BN", c.BN, "BK", c.BK, "warps", c.warps, "stages", c.stages, "group", c.group, "split", c.split, "cluster", c.cluster, "persistent", c.persistent, "hilbert", c.hilbert, "portable", c.portable, "copy", c.copy, "atomic", c.atomic)
}

// decode reads a configuration whose values the parameters allow.
func (p *Problem) decode(c space.Config) (config, error) {
	if err := p.space().Check(c); err != nil {
		return config{}, err
	}
	r := c.Read()
	return config{
		BM: r.Int("BM"), BN: r.Int("BN"), BK: r.Int("BK"), warps: r.Int("warps"),
		stages: r.Int("stages"), group: r.Int("group"), split: r.Int("split"), cluster: r.Int("cluster"), persistent: r.Int("persistent"), hilbert: r.Int("hilbert"), portable: r.Int("portable"), copy: r.Int("copy"), atomic: r.Int("atomic"),
	}, r.Err()
}
