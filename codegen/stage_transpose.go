package codegen

import (
	"fmt"
	"slices"

	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/layout"
)

// wgmma reads 8-bit operands along K alone. Where they lie across, as values of attention do,
// a role of its own takes each buffer that a tensor map has filled, and writes it transposed
// into a second ring for the main role. A left operand of registers, such as the weights of
// attention, stays in the threads where the accumulator of the scores has it: the depth of
// both operands is then interleaved (see layout.Shared.Interleaved).

// transposeWarps is how many warps the role that transposes has: half of the four that do
// not multiply.
const transposeWarps = copyWarps / 2

// crossing finds the loads that a role can transpose, and how they then lie: bytes across the
// depth of a product, their only use. found tells how copies lie.
func (s *stager) crossing(found map[*ir.Op]*layout.Shared, m *machine, warps int) map[*ir.Op]*layout.Shared {
	across := map[*ir.Op]*layout.Shared{}
	for _, o := range dotsIn(s.k.Body, nil) {
		t, ok := m.wgmmaTile(o, warps)
		x := loadOf(o.Args[0])
		if !ok || t.form.Info().Bits != 8 || x != nil && found[x] == nil {
			continue
		}
		for i, v := range o.Args[:2] {
			load := loadOf(v)
			if found[load] == nil || t.reads(found[load], v, 1-i) || !s.onlyUse(v) {
				continue
			}
			of := load.Result().Type
			if ring := transposedShared(of, x == nil); ring != nil && transposePlan(of.Shape, ring.IsInterleaved()) != nil {
				across[load] = ring
			}
		}
	}
	return across
}

// onlyUse tells whether one operation uses what a load, perhaps transposed, gives.
func (s *stager) onlyUse(v *ir.Value) bool {
	for len(s.users[v]) == 1 {
		if v.Def.Code == ir.OpLoad {
			return true
		}
		v = v.Def.Args[0]
	}
	return false
}

// transposesAll tells whether the first loop with copies gives them to a role, and has all
// of the loads across, each waited for by itself.
func (s *stager) transposesAll(found map[*ir.Op]*layout.Shared) bool {
	s.tensor, s.at = found, s.k.Body
	defer func() { s.tensor, s.at = nil, nil }()
	for _, o := range s.k.Body.Ops {
		if o.Code != ir.OpFor {
			continue
		}
		p := s.pipeliner(o)
		if p == nil {
			continue
		}
		n := 0
		for _, g := range p.groups {
			for _, st := range g.loads {
				if s.across[st.load] != nil && len(g.loads) == 1 {
					n++
				}
			}
		}
		return n == len(s.across) && p.specialises()
	}
	return false
}

// transposedShared is how a tile of bytes lies when it is transposed, with its depth
// interleaved or not; nil where its columns make no atoms.
func transposedShared(t ir.Type, interleaved bool) *layout.Shared {
	for _, swizzle := range []int{128, 64, 32} {
		if s, err := layout.Swizzled([]int{t.Shape[1], t.Shape[0]}, []int{1, 0}, 1, swizzle); err == nil {
			if interleaved {
				s, _ = s.Interleaved()
			}
			return s
		}
	}
	return nil
}

// newRings makes a load's rings.
func (s *stager) newRings(e *editor, st *staged, depth int) {
	st.ring = s.newRing(e, st, depth)
	if s.across[st.load] == nil {
		return
	}
	st.landing = st.ring
	t := st.load.Result().Type
	of := ir.RingOf(depth, t.Elem, t.Shape[1], t.Shape[0])
	of.Shared = s.across[st.load]
	st.ring = e.one(&ir.Op{Code: ir.OpRing, Pos: st.load.Pos}, of)
	st.ring.Name = fmt.Sprint(st.landing.Name, "_t")
}

// transposes is the loop of the role that transposes; nil where there is nothing for it.
func (p *pipeliner) transposes(outer *editor) *ir.Op {
	if !slices.ContainsFunc(p.found, func(st *staged) bool { return st.landing != nil }) {
		return nil
	}
	k, it := p.k.NewValue(p.loop.Regions[0].Params[0].Name, scalarI32), p.k.NewValue("it", scalarI32)
	e := &editor{k: p.k, pos: p.loop.Pos}
	for _, st := range p.found {
		if st.landing == nil {
			continue
		}
		t := st.load.Result().Type
		e.add(&ir.Op{Code: ir.OpWait, Args: []*ir.Value{st.landing, it}})
		x := e.one(&ir.Op{Code: ir.OpRead, Args: []*ir.Value{st.landing, it}, Pos: p.loop.Pos}, t.WithLayout(nil))
		turn := &ir.Op{Code: ir.OpTranspose, Args: []*ir.Value{x}, Pos: p.loop.Pos}
		turn.Perm = []int{1, 0}
		y := e.one(turn, ir.TileOf(t.Elem, t.Shape[1], t.Shape[0]))
		e.add(&ir.Op{Code: ir.OpAcquire, Args: []*ir.Value{st.ring, it}})
		e.add(&ir.Op{Code: ir.OpWrite, Args: []*ir.Value{st.ring, it, y}})
		e.add(&ir.Op{Code: ir.OpCommit, Args: []*ir.Value{st.ring, it}})
		e.add(&ir.Op{Code: ir.OpRelease, Args: []*ir.Value{st.landing, it}}) // after the fence of the commit
	}
	return p.beside(outer, k, it, e)
}

// transposing is how the threads of a role move a tile of bytes from a ring into its
// transpose: 32 rows by 16 columns at a time, by ldmatrix that transposes pairs of bytes and
// stmatrix, with the bytes sorted between them. A lane's address is that of the first of 16
// bytes. from has, for each such part, where ldmatrix reads; to where stmatrix writes. Their
// registers 0 to 15 are those bytes.
type transposing struct{ from, to *layout.Layout }

// transposePlan shares the parts of a tile out; nil where there are too few.
func transposePlan(shape []int, interleaved bool) *transposing {
	f := fillOf(shape)
	if f.end[0] < 5 || f.end[1] < 4 {
		return nil
	}
	bytes, rows := f.take(1, 4), f.take(0, 5)
	warp := f.rest(log2(transposeWarps))
	if len(warp) < log2(transposeWarps) {
		return nil
	}
	rest := f.rest(f.left())
	// Lanes of a group with the number q in their four get the rows 2q and 2q+1 of each
	// matrix, and make a word of two of them. Where its bytes are 4q to 4q+3 of sixteen, lanes
	// address the rows so: of the first matrix 0 1 4 5 10 11 14 15, of the second 2 3 6 7 8 9
	// 12 13, since eight rows that differ modulo 8 lie in different banks.
	lanes := rows
	if !interleaved {
		lanes = [][]int{{1, 0}, {4, 0}, {10, 0}, {2, 0}, {16, 0}}
	}
	from, err := layout.New(shape, slices.Concat(bytes, rest), lanes, warp, nil)
	if err != nil {
		panic(err)
	}
	// Lanes of a group of four have the columns 2g and 2g+1 of what they read. The first
	// matrix that they write has the former where g < 4 and else the latter, so that its
	// eight rows lie in different banks.
	swap := func(bs [][]int) [][]int {
		var out [][]int
		for _, b := range bs {
			out = append(out, []int{b[1], b[0]})
		}
		return out
	}
	columns := [][]int{{2, 0}, {4, 0}, {9, 0}, {1, 0}, {0, 16}}
	to, err := layout.New([]int{shape[1], shape[0]}, slices.Concat(swap(rows[:4]), swap(rest)), columns, swap(warp), nil)
	if err != nil {
		panic(err)
	}
	return &transposing{from, to}
}
