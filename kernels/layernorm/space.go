package layernorm

import (
	"fmt"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
)

// config is a configuration: the tile, how often a row is gone over, how many tiles of one
// stay in a block's shared memory meanwhile, and how many blocks divide it.
type config struct {
	BM, BN, warps, passes, keep, cluster int
}

var tiles = space.Space{
	Params: []space.Param{
		{Name: "BM", Values: []int{1, 2, 4, 8, 16, 32}, Doc: "rows of a tile"},
		{
			Name: "BN", Values: []int{128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768},
			Also: []int{384, 640, 768, 1280, 1536, 2560, 3072, 5120, 6144, 10240, 12288, 20480, 24576}, Doc: "columns of a tile",
		},
		{Name: "warps", Values: []int{1, 2, 4, 8, 16, 32}, Doc: "warps of a block"},
		{Name: "passes", Values: []int{1, 2}, Doc: "times a row is read: once where a tile holds it, else for its moments and again for y"},
		{
			Name: "keep", Values: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
			Doc: "tiles of a row at most that the second pass reads from a block's shared memory; 0: any number, from memory",
		},
		{Name: "cluster", Values: []int{1, 2, 4, 8}, Doc: "blocks of a cluster that divide each row"},
	},
	Constraints: []space.Constraint{
		{Name: "registers", Expr: "BM*BN <= 64*32*warps && BM*BN <= registers - (8 + 16*passes)*32*warps", Doc: "a thread keeps its elements of t, 64 at most, beside 24 other registers, 40 in two passes"},
		{Name: "threads", Expr: "BM*BN >= 4*32*warps", Doc: "4 elements a thread at least"},
		{Name: "row", Expr: "passes == 2 || BN >= cols", Doc: "one pass holds whole rows"},
		{Name: "passes", Expr: "passes == 1 || BN < cols", Doc: "no second pass over what a tile holds"},
		{Name: "keep", Expr: "keep == 0 || passes == 2 && keep*cluster > 1 && cols > 4096 && keep*cluster*BN >= cols && (keep - 1)*cluster*BN < cols", Doc: "a row that is kept is as many tiles, and too long for few registers"},
		{Name: "cluster", Expr: "cluster == 1 || sm >= 90 && keep > 0 && cols >= 2048*cluster", Doc: "blocks divide rows that they keep, and that are long enough"},
		{Name: "shared", Expr: "keep == 0 || BM*(kept*keep*BN + 4*warps + 8*cluster) <= shared", Doc: "the kept rows, and sums of warps and blocks, fit a block's shared memory"},
		{Name: "sums", Expr: "keep == 0 || BM*BN <= 16*32*warps", Doc: "a thread has as many sums as elements of a kept row's tile, 16 at most"},
		{Name: "oversize", Expr: "(BM < 2*rows || BM == 1) && (BN < 2*cols || BN == 128)", Doc: "no tile twice the problem"},
	},
}

// Space returns the configurations to search.
func (p *Problem) Space(gpu *target.GPU) (*space.Bound, error) {
	env := family.Env(gpu)
	env["rows"], env["cols"], env["kept"] = int64(p.Rows), int64(p.Cols), int64(p.keptBytes())
	return tiles.Bind(env)
}

// keptBytes is what an element of a kept row takes: t, or what it is made of.
func (p *Problem) keptBytes() int {
	n := elem(p.Type).Bits() / 8
	if p.Residual != none {
		n += elem(p.Residual).Bits() / 8
	}
	return min(n, ir.F32.Bits()/8)
}

// Default reads rows once if a block can hold one. Of the tiles that may, the smallest
// in warps of 16 elements a thread or nearest to that.
func (p *Problem) Default(gpu *target.GPU) (space.Config, error) {
	b, err := p.Space(gpu)
	if err != nil {
		return space.Config{}, err
	}
	var best space.Config
	least := 0
	for c := range b.All() {
		cfg, err := decode(c)
		if err != nil {
			return space.Config{}, err
		}
		if cost := cfg.cost(); least == 0 || cost < least {
			best, least = c, cost
		}
	}
	if least == 0 {
		return space.Config{}, fmt.Errorf("layernorm of %d columns on %s: no configuration: %s", p.Cols, gpu.Name, b.Count())
	}
	return best, nil
}

// cost orders configurations for Default: reads of a row, then the size of clusters, then
// how far a thread's elements are from 16, then the size of the tile, then odd column
// counts last.
func (c config) cost() int {
	elements := c.BM * c.BN / (32 * c.warps)
	away := max(elements, 16) / max(1, min(elements, 16))
	tile := c.BM * c.BN / 128
	if c.passes == 2 {
		tile = 1 << 10 / tile // long rows in wide tiles
	}
	passes := 2 * c.passes
	if c.keep > 0 {
		passes--
	}
	return passes<<28 + c.cluster<<24 + away<<18 + tile<<1 + 1
}

func decode(c space.Config) (config, error) {
	if err := tiles.Check(c); err != nil {
		return config{}, err
	}
	r := c.Read()
	return config{BM: r.Int("BM"), BN: r.Int("BN"), warps: r.Int("warps"), passes: r.Int("passes"), keep: r.Int("keep"), cluster: r.Int("cluster")}, r.Err()
}

// mostTiles is how many tiles a row has at most; 0: any number.
func (c config) mostTiles() int {
	if c.passes == 1 {
		return 1
	}
	return c.keep * c.cluster
}
