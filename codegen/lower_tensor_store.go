package codegen

import (
	"slices"

	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/layout"
)

// Stores by tensor maps. Each warp puts a slice of its own rows of a warpgroup's
// accumulator into shared memory, as a swizzled atom, and asks for the copy: no other warp
// need wait for it, and what lies outside the view is dropped without a mask.

// storeRows is how many rows a warp has of 64 that a warpgroup multiplies.
const storeRows = 16

// tensorStored tells whether a tensor map stores a tile in layout l: a warpgroup's
// accumulator, to a box whose place is not negative, of a view that nothing else in the
// kernel touches, since the copy ends later than the threads go on.
func (c *chooser) tensorStored(o *ir.Op, l *layout.Layout) bool {
	t := o.Operand("value").Type
	if !c.m.wgmma || c.k.Hints.Copy != 0 || t.Rank() != 2 || c.warps%4 != 0 || t.Shape[0]%simt.WgmmaM != 0 || t.Elem != o.View().Type.Elem || storeSlices(t) == nil {
		return false
	}
	if acc, err := layout.WGMMAAccumulator(t.Shape, c.warps/4); err != nil || !acc.Equal(l) {
		return false
	}
	a, err := c.f.tensorBox(o)
	if err != nil || c.f.contiguous(a) != 1 || slices.ContainsFunc(o.Indices(), func(i *ir.Value) bool { return !c.f.nonNegative(i) }) {
		return false
	}
	param, _ := root(o.View())
	return !slices.ContainsFunc(globalAccesses(c.k.Body, nil), func(x *ir.Op) bool {
		other, _ := root(x.View())
		return x != o && other == param
	}) && !signals(c.k.Body)
}

// tensorAdded tells whether a tensor map adds a tile in layout l to what is there: nobody
// asks what that was. In which order the sums of several blocks come is not fixed, as of all
// atomic operations.
func (c *chooser) tensorAdded(o *ir.Op, l *layout.Layout) bool {
	e := o.View().Type.Elem
	return o.Combine == ir.Add && o.Scope == ir.GPU && (e == ir.F32 || e == ir.F16 || e == ir.BF16) &&
		len(c.users[o.Result()]) == 0 && c.tensorStored(o, l)
}

// signals tells whether a region tells other blocks what it has written.
func signals(r *ir.Region) bool {
	return slices.ContainsFunc(r.Ops, func(o *ir.Op) bool {
		return o.Code == ir.OpSignal || slices.ContainsFunc(o.Regions, signals)
	})
}

// storeSlice is the columns of a tile that a warp stores at a time, and how 16 rows of
// them lie in shared memory.
type storeSlice struct {
	column int
	shared *layout.Shared
}

// storeSlices cuts a tile's columns into atoms, as wide as they come; nil where some
// columns make none.
func storeSlices(t ir.Type) []storeSlice {
	var cut []storeSlice
	size := bytesOf(t.Elem)
	if size != 2 && size != 4 {
		return nil
	}
	for column := 0; column < t.Shape[1]; {
		var s *layout.Shared
		for _, swizzle := range []int{128, 64, 32} {
			if n := swizzle / size; s == nil && n <= t.Shape[1]-column {
				s, _ = layout.Swizzled([]int{storeRows, n}, []int{1, 0}, size, swizzle)
			}
		}
		if s == nil {
			return nil
		}
		cut = append(cut, storeSlice{column, s})
		column += s.Atom()
	}
	return cut
}

// mostStoreBytes bounds the shared memory of a store; with less than all slices a warp
// waits for the oldest to be read.
const mostStoreBytes = 64 << 10

// storeScratch holds as many slices of each warp as fit, each as large as the largest.
func storeScratch(o *ir.Op, warps int) *buffer {
	if !o.Bulk {
		return nil
	}
	t := o.Operand("value").Type
	cut := storeSlices(t)
	n := len(cut) * t.Shape[0] / (storeRows * warps)
	first := cut[0].shared
	n = max(1, min(n, mostStoreBytes/(first.Size()*warps)))
	return &buffer{shared: first, size: first.Size() * n * warps, align: first.Align()}
}

// tensorStore stores a tile by tensor maps, slice after slice.
func (l *lowering) tensorStore(o *ir.Op) {
	b := l.b
	f, buf := l.tile(o.Operand("value")), l.plan.buffers[o]
	if !l.s.Persistent { // else no other warp has been there
		l.meet()
	}
	size := buf.shared.Size()
	depth := buf.size / (size * l.mainWarps())
	warp := b.ShrU(b.Special(simt.TidX), b.Const32(layout.LaneBits))
	base := b.Add(b.Add(b.SharedBase(), b.Const32(buf.offset)), b.Mul(warp, b.Const32(size*depth)))
	first, store := b.Elect(), b.TensorStore
	if o.Code == ir.OpAtomic {
		store = b.TensorAdd
	}
	rows := f.l.ThreadBases(0)
	clear(rows[:layout.LaneBits])
	row := l.index(rows, true) // of the warp
	a := accessOf(o, f.l.Shape())
	at := registersAt(f.l)
	n := 0
	bands, cut := accumulatorRows(f.l), storeSlices(o.Operand("value").Type)
	all := len(bands) * len(cut)
	for _, band := range bands {
		for _, s := range cut {
			if after, used := l.storesSince(n, depth, all); used {
				b.BulkWait(after)
				b.WarpSync()
			}
			slot := b.Add(base, b.Const32(n%depth*size))
			l.spillSlice(f, at, band, s, slot)
			b.ProxyFence()
			b.WarpSync()
			m := l.tensorMap(o, a, s.shared, storeRows)
			tensor, policy := l.mapAt(m, o.View().Name+"_map"), l.storePolicy(o)
			place := l.boxAt(a, m, b.Const32(s.column), b.Add(row, b.Const32(band)))
			// With the commit behind the branch, too, ptxas makes no predicates of it, and
			// so knows that one thread asks: else it makes a loop over threads.
			b.If(first, func() []*simt.Value {
				store(slot, tensor, place, s.shared.Size(), policy)
				b.BulkCommit()
				return nil
			}, nil)
			n++
		}
	}
	if !l.s.Persistent {
		b.BulkWait(0)
	}
	l.pending.shared = true
}

// storesSince is how many slices a warp may have stored after the last that lay where
// slice i of a tile's n will; used is false where none has. A persistent kernel has stored
// another tile's before.
func (l *lowering) storesSince(i, depth, n int) (after int, used bool) {
	switch {
	case i >= depth:
		return depth - 1, true
	case !l.s.Persistent:
		return 0, false
	}
	last := (n-1-i)/depth*depth + i // of the tile before
	return n - 1 - last + i, true
}

// boxAt is the coordinates of a box that begins at a column and a row of a tile.
func (l *lowering) boxAt(a access, m Param, column, row *simt.Value) []*simt.Value {
	var at []*simt.Value
	for _, d := range mapOrder(len(a.indices), m.Dim) {
		x := l.scalar(a.indices[d])
		switch d {
		case a.axisDim(1):
			x = l.b.Add(x, column)
		case a.axisDim(0):
			x = l.b.Add(x, row)
		}
		at = append(at, x)
	}
	return at
}

// accumulatorRows are the first rows of the 64-row parts that a warpgroup's first thread
// holds.
func accumulatorRows(l *layout.Layout) []int {
	var rows []int
	for r := range l.Registers() {
		if c := l.Register(r); c.At(1) == 0 && c.At(0)%simt.WgmmaM == 0 {
			rows = append(rows, c.At(0))
		}
	}
	slices.Sort(rows)
	return rows
}

// spillSlice writes a warp's 16 rows from a band on, and a slice's columns, to shared
// memory: by stmatrix where elements have 16 bits.
func (l *lowering) spillSlice(f *fragment, at map[layout.Coord]int, band int, s storeSlice, slot *simt.Value) {
	lay, err := layout.MMAAccumulator(s.shared.Shape(), 1, 1)
	if err != nil {
		panic(err)
	}
	part := newFragment(ir.TileOf(f.elem, s.shared.Shape()...).WithLayout(lay))
	for r := 0; r < lay.Registers(); r += part.pack {
		c := lay.Register(r)
		part.regs = append(part.regs, f.regs[at[layout.Pack([]int{c.At(0) + band, c.At(1) + s.column})]/f.pack])
	}
	m, ok := s.shared.Ldmatrix(lay)
	if !ok || part.pack != 2 {
		if stored := quieter(s.shared, lay); stored != lay {
			x := layout.Convert(lay, stored).Exchange
			part = l.packed(ir.TileOf(f.elem, s.shared.Shape()...).WithLayout(stored), l.exchange(x, l.elements(part), stored))
		}
		l.spill(part, s.shared, slot)
		return
	}
	place := l.threadPlace(slot, m.Thread)
	traffic := m.MatrixTraffic(1)
	waves := traffic.Actual / max(traffic.Instructions, 1)
	for _, mv := range m.Moves {
		var vs []*simt.Value
		for _, r := range mv.Registers {
			vs = append(vs, part.regs[r/part.pack])
		}
		addr, off := place.at(mv.Place)
		l.b.StMatrix(m.Trans, addr, vs, simt.Access{Offset: off, Waves: waves})
	}
}

// quieter is the layout in which threads store what they have of a tile with the fewest
// wavefronts: lay, or one in which some lanes store their registers in another order, for a
// select each. Of an accumulator of f32 neighbouring rows come to the same banks of a swizzled
// atom, unless one stores the columns first that the other stores last.
func quieter(s *layout.Shared, lay *layout.Layout) *layout.Layout {
	best := lay
	least, ok := s.VectorTraffic(lay, 16)
	if !ok || least.Actual == least.Ideal {
		return lay
	}
	for i := range layout.LaneBits {
		for _, b := range lay.RegBases() {
			lanes := lay.LaneBases()
			for d := range lanes[i] {
				lanes[i][d] ^= b[d]
			}
			other, err := layout.New(lay.Shape(), lay.RegBases(), lanes, lay.WarpBases(), nil)
			if err != nil {
				continue
			}
			if t, ok := s.VectorTraffic(other, 16); ok && (t.Actual < least.Actual || t.Actual == least.Actual && t.Instructions < least.Instructions) {
				best, least = other, t
			}
		}
	}
	return best
}
