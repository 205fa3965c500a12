package paged

import (
	"fmt"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
)

// config is a configuration: rows of queries and keys of a step, the piece of the
// context that a block takes, and how it is run.
type config struct {
	BM, BN, chunk, warps, stages int
}

var tiles = space.Space{
	Params: []space.Param{
		{Name: "BM", Values: []int{16, 32, 64, 128}, Doc: "rows of a tile: the query tokens of a sequence times the heads that share keys"},
		{Name: "BN", Values: []int{16, 32, 64, 128}, Doc: "keys of a step"},
		{Name: "chunk", Values: chunks, Doc: "tokens of the context that a block takes, joined by a second launch; 0: all"},
		{Name: "warps", Values: []int{1, 2, 4, 8}, Doc: "warps of a block"},
		{Name: "stages", Values: []int{1, 2, 3, 4}, Doc: "steps of keys and values in flight"},
	},
	Constraints: []space.Constraint{
		{Name: "shared", Expr: "2*D*(BM + stages*2*BN) <= shared", Doc: "queries and the stages of keys and values fit a block's shared memory"},
		{Name: "warp rows", Expr: "BM % (16*warps) == 0", Doc: "a warp has whole rows, 16 at a time"},
		{Name: "registers", Expr: "BM*(D + BN) <= 224*32*warps", Doc: "output and scores take 224 registers a thread at most"},
		{Name: "oversize", Expr: "(BM < 2*rows || BM == 16) && (BN < 2*context || BN == 16)", Doc: "no tile twice the problem"},
		{Name: "chunk", Expr: "fixed == 0 && chunk < context || fixed != 0 && chunk == fixed", Doc: "a piece is shorter than the context, or as long as asked for"},
		{Name: "step", Expr: "chunk % BN == 0", Doc: "a piece is whole steps"},
		{Name: "depth", Expr: "stages <= max(2, ceildiv(min(context, max(chunk, context*(1-min(chunk,1)))), BN))", Doc: "no more stages than steps"},
		{Name: "pipeline", Expr: "sm >= 80 || stages <= 2", Doc: "before 8.0 a stage is prefetched through registers"},
		{Name: "grid", Expr: "ceildiv(rows, BM)*KVH*B*ceildiv(entries*page, max(chunk, 128)) <= 2147483647", Doc: "blocks of one launch"},
	},
}

// Space returns the configurations to search.
func (p *Problem) Space(gpu *target.GPU) (*space.Bound, error) {
	env := family.Env(gpu)
	env["B"], env["KVH"], env["D"] = int64(p.Batch), int64(p.KVHeads), int64(p.HeadDim)
	env["rows"], env["context"], env["fixed"] = int64(p.rows()), int64(p.Context), int64(p.Chunk)
	env["entries"], env["page"] = int64(p.entries()), int64(p.Page)
	return tiles.Bind(env)
}

// rows is how many rows of queries share a head of keys of a sequence.
func (p *Problem) rows() int { return p.Query * p.group() }

// preferred lists configurations from the most rows down. Blocks with one stage, of which
// an SM holds more, hide the memory's latency better than stages do, whose addresses take
// registers: two or three spill on an A100 (predicted 1055 us for the default problem, one
// stage 652).
var preferred = []config{
	{BM: 64, BN: 64, warps: 4, stages: 1},
	{BM: 32, BN: 64, warps: 2, stages: 1},
	{BM: 16, BN: 64, warps: 1, stages: 1},
	{BM: 16, BN: 32, warps: 1, stages: 1},
	{BM: 16, BN: 16, warps: 1, stages: 1},
}

// preferred75 is the same for GPUs of compute capability 7.5, where 64 keys spill and 32
// take all registers (T4: predicted 25960, 8476 and, with 16, 5299 us).
var preferred75 = []config{
	{BM: 64, BN: 16, warps: 4, stages: 1},
	{BM: 32, BN: 16, warps: 2, stages: 1},
	{BM: 16, BN: 16, warps: 1, stages: 1},
}

// blocksPerSM is how many blocks pieces give every SM at least, where the context is as
// long: the SMs are then done at about the same time. The default problem in pieces of 256
// is predicted at 652 us on an A100 (whole: 729), 205 on a B200 (213), 753 on an RTX 5090 (927), but
// 416 on an H100 (386) and 1263 on an RTX 4090 (1228).
const blocksPerSM = 40

// Default returns the first preferred configuration that fits, in the longest pieces
// that give every SM so many blocks.
func (p *Problem) Default(gpu *target.GPU) (space.Config, error) {
	b, err := p.Space(gpu)
	if err != nil {
		return space.Config{}, err
	}
	list := preferred
	if gpu.CC.Major == 7 {
		list = preferred75
	}
	for _, want := range list {
		var last space.Config
		for i := range chunks {
			want.chunk = chunks[(len(chunks)-i)%len(chunks)] // whole, then the longest first
			c := want.encode()
			if b.Check(c) != nil {
				continue
			}
			last = c
			pieces := 1
			if want.chunk > 0 {
				pieces = family.CeilDiv(p.Context, want.chunk)
			}
			if family.CeilDiv(p.rows(), want.BM)*p.KVHeads*p.Batch*pieces >= blocksPerSM*gpu.SMs {
				break
			}
		}
		if last.Len() > 0 {
			return last, nil
		}
	}
	return space.Config{}, fmt.Errorf("paged attention with head dimension %d on %s: no configuration: %s", p.HeadDim, gpu.Name, b.Count())
}

func (c config) encode() space.Config {
	return space.Of("BM", c.BM, "BN", c.BN, "chunk", c.chunk, "warps", c.warps, "stages", c.stages)
}

// decode reads a configuration whose values the parameters allow.
func decode(c space.Config) (config, error) {
	if err := tiles.Check(c); err != nil {
		return config{}, err
	}
	r := c.Read()
	return config{BM: r.Int("BM"), BN: r.Int("BN"), chunk: r.Int("chunk"), warps: r.Int("warps"), stages: r.Int("stages")}, r.Err()
}
