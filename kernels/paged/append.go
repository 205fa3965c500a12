package paged

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
)

// Append puts the keys and values of the last Query tokens of each sequence into the
// cache, whose lengths and table count them already. A sequence shorter than that has
// only its own: the first of its new keys are left out, as are those beyond the table.
type Append struct{ pool }

const appendName = "paged-append"

// AppendFamily describes appending to a paged cache.
func AppendFamily() *family.Family {
	return &family.Family{
		Name:   appendName,
		Doc:    "append keys and values to a paged cache",
		Prefix: "PagedAppend",
		Sizes: []family.Extent{
			{Symbol: "B", Field: "Batch", Doc: "sequences"},
			{Symbol: "T", Field: "Query", Doc: "new tokens of a sequence"},
			{Symbol: "KVH", Field: "KVHeads", Doc: "heads of keys and values"},
			{Symbol: "E", Field: "Entries", Doc: "pages that a row of the block table lists"},
			{Symbol: "P", Field: "Pages", Doc: "pages of the cache"},
		},
		Flags: []family.Flag{
			family.Size("batch", 64, "sequences"),
			family.Size("query", 1, "new tokens of a sequence, the last of its length"),
			family.Size("context", 4096, "longest length of a sequence, the new tokens included"),
			pageFlag,
			family.Size("kv-heads", 8, "heads of keys and values"),
			headDimFlag,
			layoutFlag,
			raggedFlag,
			typeFlag,
		},
		New: func(v family.Values) (family.Problem, error) {
			p, err := parsePool(v)
			if err != nil {
				return nil, err
			}
			return &Append{*p}, nil
		},
		Awkward: func(r *rand.Rand) family.Problem { return &Append{awkwardPool(r)} },
	}
}

// Settings lists the flags.
func (p *Append) Settings() family.Settings {
	s := family.Settings{
		{Name: "batch", Value: strconv.Itoa(p.Batch)}, {Name: "query", Value: strconv.Itoa(p.Query)}, {Name: "context", Value: strconv.Itoa(p.Context)},
		{Name: "page", Value: strconv.Itoa(p.Page)}, {Name: "kv-heads", Value: strconv.Itoa(p.KVHeads)}, {Name: "head-dim", Value: strconv.Itoa(p.HeadDim)},
		{Name: "layout", Value: p.Layout}, {Name: "ragged", Value: strconv.FormatBool(p.Ragged)}, {Name: "dtype", Value: p.Type},
	}
	return append(s, p.padding()...)
}

// Work counts the new keys and values are read and written once, as are the lengths and the
// table entries of their pages. No arithmetic.
func (p *Append) Work() family.Work {
	w := family.Work{Math: p.math(), Bytes: 4 * float64(p.Batch)}
	for n, sequences := range p.lengths() {
		lo := max(0, n-p.Query)
		each := 2 * 2 * 2 * float64(n-lo) * float64(p.KVHeads) * float64(p.HeadDim)
		each += 4 * float64(family.CeilDiv(n, p.Page)-lo/p.Page)
		w.Bytes += float64(sequences) * each
	}
	return w
}

// Args lists new_k, new_v, table, len, k and v.
func (p *Append) Args() []family.Arg {
	args := []family.Arg{
		p.tensor("new_k", p.Batch, p.Query, p.KVHeads), p.tensor("new_v", p.Batch, p.Query, p.KVHeads),
		p.tableArg(), p.lengthArg(), p.cache("k"), p.cache("v"),
	}
	for i := range args[4:] {
		args[4+i].Out, args[4+i].Partial = true, true
	}
	return args
}

// appendConfig is a configuration: the rows of a tile, of new tokens times heads.
type appendConfig struct{ BM, warps int }

var appendTiles = space.Space{
	Params: []space.Param{
		{Name: "BM", Values: []int{1, 2, 4, 8, 16, 32, 64, 128}, Doc: "rows of a tile: new tokens times heads of keys"},
		{Name: "warps", Values: []int{1, 2, 4, 8}, Doc: "warps of a block"},
	},
	Constraints: []space.Constraint{
		{Name: "registers", Expr: "BM*D <= 32*32*warps", Doc: "a thread keeps 32 keys and as many values at most"},
		{Name: "threads", Expr: "BM*D >= 8*32*warps || warps == 1", Doc: "16 bytes of keys a thread at least"},
		{Name: "oversize", Expr: "BM < 2*rows", Doc: "no tile twice the problem"},
	},
}

// Space returns the configurations to search.
func (p *Append) Space(gpu *target.GPU) (*space.Bound, error) {
	env := family.Env(gpu)
	env["D"], env["rows"] = int64(p.HeadDim), int64(p.Query*p.KVHeads)
	return appendTiles.Bind(env)
}

// Default takes 16 bytes of keys a thread, in four warps where there is as much.
func (p *Append) Default(gpu *target.GPU) (space.Config, error) {
	b, err := p.Space(gpu)
	if err != nil {
		return space.Config{}, err
	}
	var best space.Config
	least := math.MaxInt
	for c := range b.All() {
		cfg, err := decodeAppend(c)
		if err != nil {
			return space.Config{}, err
		}
		each := cfg.BM * p.HeadDim / (32 * cfg.warps)
		if cost := max(each, 8)*8/max(1, min(each, 8)) + max(cfg.warps, 4) - min(cfg.warps, 4); cost < least {
			best, least = c, cost
		}
	}
	if best.Len() == 0 {
		return best, fmt.Errorf("appending rows of %d elements on %s: no configuration: %s", p.HeadDim, gpu.Name, b.Count())
	}
	return best, nil
}

func decodeAppend(c space.Config) (appendConfig, error) {
	if err := appendTiles.Check(c); err != nil {
		return appendConfig{}, err
	}
	r := c.Read()
	return appendConfig{BM: r.Int("BM"), warps: r.Int("warps")}, r.Err()
}

// Program builds one launch. A block copies BM rows of one sequence's new tokens and
// their heads.
func (p *Append) Program(c space.Config) (*ir.Program, error) {
	cfg, err := decodeAppend(c)
	if err != nil {
		return nil, err
	}
	b := ir.NewKernel("paged_append")
	from := []*ir.Value{p.added(b, "new_k"), p.added(b, "new_v")}
	table, length := tableAndLength(b)
	to := []*ir.Value{p.view(b, "k"), p.view(b, "v")}
	m := b.Over("m", ir.Sym("T").Times(ir.Sym("KVH")).CeilDiv(ir.Lit(int64(cfg.BM))))
	batch := b.Over("b", ir.Sym("B"))
	b.SetHints(ir.Hints{Warps: cfg.warps})

	first := family.Named("first", b.Mul(m, b.Int(cfg.BM)))
	tokens, heads := b.Dim(from[0], 1), b.Dim(from[0], 2)
	row := b.Add(b.Iota(0, cfg.BM), first)
	added := family.Named("added", b.Div(row, heads))
	head := family.Named("head", b.Rem(row, heads))
	n := family.Named("n", b.Load(length, []*ir.Value{batch}, ir.ScalarOf(ir.I32)))
	token := family.Named("token", b.Add(added, b.Sub(n, tokens)))
	left := b.Sub(b.Mul(tokens, heads), first)
	own := b.Cmp(ir.GE, token, b.Int(0))
	// Page -1 lies outside the cache, where stores are dropped.
	at := p.place(b, table, batch, token, head, cfg.BM, ir.Access{Limit: left, Mask: own, Fill: b.Int(-1)})
	for i, v := range from {
		rows := b.Load(v, []*ir.Value{batch, added, head, b.Int(0)}, ir.TileOf(p.elem(), cfg.BM, p.HeadDim), ir.Access{Limit: left})
		b.Store(to[i], at, rows, ir.Access{Limit: left})
	}
	kernel, err := b.Finish()
	if err != nil {
		return nil, err
	}
	return ir.Single(kernel), nil
}

// added adds the keys or values of new tokens.
func (p *Append) added(b *ir.Builder, name string) *ir.Value {
	return p.aligned(b, b.View(name, p.elem(), "B", "T", "KVH", p.HeadDim))
}

// Parts draws tiles that have rows of the cache.
func (p *Append) Parts(c space.Config, r *rand.Rand, n int) ([]family.Part, error) {
	cfg, err := decodeAppend(c)
	if err != nil {
		return nil, err
	}
	rows := p.Query * p.KVHeads
	tiles := family.CeilDiv(rows, cfg.BM)
	var parts []family.Part
	table := p.table()
	add := func(at []int) {
		part := family.Part{Tiles: [][][]int{{at}}}
		for row := at[0] * cfg.BM; row < min(rows, (at[0]+1)*cfg.BM); row++ {
			part.Regions = append(part.Regions, p.written(table, at[1], row/p.KVHeads, row%p.KVHeads)...)
		}
		if part.Regions != nil {
			parts = append(parts, part)
		}
	}
	for _, at := range family.Points(r, n, tiles, p.Batch) {
		add(at)
	}
	for b := 0; b < p.Batch && len(parts) == 0; b++ { // none of those has a token to add
		add([]int{tiles - 1, b})
	}
	return parts, nil
}

// written are the boxes of k and v that a new token's head fills; none where the
// sequence is too short for the token.
func (p *Append) written(table *blockTable, b, added, head int) []family.Region {
	token := p.length(b) - p.Query + added
	if token < 0 {
		return nil
	}
	page := table.page(b, token/p.Page)
	lo := p.at(int(page), token%p.Page, head, 0)
	hi := []int{lo[0] + 1, lo[1] + 1, lo[2] + 1, p.HeadDim}
	return []family.Region{{Out: "k", Lo: lo, Hi: hi}, {Out: "v", Lo: lo, Hi: hi}}
}

// Expect copies what is appended to a region of k or v; elsewhere nothing is written.
func (p *Append) Expect(d family.Data, r family.Region) (family.Expected, error) {
	var e family.Expected
	if r.Out != "k" && r.Out != "v" {
		return e, fmt.Errorf("%s has no output %q: want k or v", appendName, r.Out)
	}
	from := d["new_"+r.Out]
	table := p.table()
	for page := r.Lo[0]; page < r.Hi[0]; page++ {
		b, entry, used := table.owner(page)
		for y := r.Lo[1]; y < r.Hi[1]; y++ {
			for z := r.Lo[2]; z < r.Hi[2]; z++ {
				slot, head := y, z
				if p.Layout == "hnd" {
					slot, head = z, y
				}
				token := entry*p.Page + slot
				added := token - p.length(b) + p.Query
				for j := r.Lo[3]; j < r.Hi[3]; j++ {
					want := math.NaN()
					if used && added >= 0 && added < p.Query {
						want = from.At(b, added, head, j)
					}
					e.Want, e.Tol = append(e.Want, want), append(e.Tol, 0)
				}
			}
		}
	}
	return e, nil
}
