package ir

import (
	"errors"
	"fmt"
	"slices"
)

// ruleAccess checks the operands of an access of tile type t.
func ruleAccess(o *Op, t Type) error {
	view := o.Args[0].Type
	if t.Kind != Tile || t.Elem != view.Elem {
		return fmt.Errorf("access of %s as %s: want a tile of %s", view, t, view.Elem)
	}
	axes, err := checkRows(o, t)
	if err != nil {
		return err
	}
	if len(o.Dims) != len(axes) || !areDistinct(o.Dims, len(view.Dims)) {
		return fmt.Errorf("dims %v: want %d different dimensions of %s", o.Dims, len(axes), view)
	}
	for _, d := range o.Dims {
		if o.Args[1+d].Type.IsTile() {
			return fmt.Errorf("dims %v: dimension %d is indexed by row numbers", o.Dims, d)
		}
	}
	if m := o.Operand("mask"); m != nil && !m.Type.Equal(t.WithElem(I1)) {
		return fmt.Errorf("mask of type %s: want %s", m.Type, t.WithElem(I1))
	}
	if f := o.Operand("fill"); f != nil && f.Type.Elem != t.Elem {
		return fmt.Errorf("fill of type %s: want %s", f.Type, t.Elem)
	}
	return nil
}

// checkRows checks the tiles of row numbers of an access and returns the axes of
// t that span dimensions.
func checkRows(o *Op, t Type) ([]int, error) {
	rows := o.Rows()
	if rows == nil {
		if o.Operand("limit") != nil {
			return nil, errors.New("limit without row numbers")
		}
		return t.Shape, nil
	}
	for _, v := range o.Indices() {
		if v.Type.IsTile() && (len(v.Type.Shape) != 1 || len(t.Shape) == 0 || v.Type.Shape[0] != t.Shape[0]) {
			return nil, fmt.Errorf("row numbers of type %s for %s: want rank 1, as long as axis 0", v.Type, t)
		}
	}
	return t.Shape[1:], nil
}

// DefaultDims returns the dimensions an access spans if none are stated: the
// view's last ones, one for each tile axis but the row axis.
func DefaultDims(o *Op, tileRank int) []int {
	if o.Rows() != nil {
		tileRank--
	}
	n := len(o.Args[0].Type.Dims)
	var dims []int
	for d := max(n-tileRank, 0); d < n; d++ {
		dims = append(dims, d)
	}
	return dims
}

func ruleLoad(o *Op, want []Type) ([]Type, error) { return want, ruleAccess(o, want[0]) }
func ruleStore(o *Op, _ []Type) ([]Type, error)   { return nil, ruleAccess(o, o.Operand("value").Type) }
func ruleYield(_ *Op, _ []Type) ([]Type, error)   { return nil, nil }
func ruleConvert(o *Op, w []Type) ([]Type, error) {
	return w, sameTile(o.Args[0].Type, w[0], "convert")
}
func ruleRead(o *Op, want []Type) ([]Type, error) { return inferred(want, bufferType(o.Args[0])), nil }
func ruleWrite(o *Op, _ []Type) ([]Type, error) {
	return nil, sameTile(o.Args[2].Type, bufferType(o.Args[0]), "write")
}
func bufferType(ring *Value) Type               { return TileOf(ring.Type.Elem, ring.Type.Shape...) }
func ruleRings(o *Op, _ []Type) ([]Type, error) { return nil, checkAttr("pending", o.Pending, 64) }

func sameTile(x, t Type, what string) error {
	if !x.SameTile(t) {
		return fmt.Errorf("%s of %s as %s: want the same shape and element type", what, x, t)
	}
	return nil
}

func checkAttr(name string, v, most int) error {
	if v < 0 || v > most {
		return fmt.Errorf("%s %d: want 0 to %d", name, v, most)
	}
	return nil
}

func ruleAtomic(o *Op, _ []Type) ([]Type, error) {
	t := o.Operand("value").Type
	if o.Combine == Mul {
		return nil, errors.New("atomic mul: want add, max, min, and, or, xor or exch")
	}
	if o.Combine != Exchange {
		if err := checkCombine(o.Combine, t.Elem); err != nil {
			return nil, err
		}
	}
	return one(t), ruleAccess(o, t)
}

func ruleSubview(o *Op, _ []Type) ([]Type, error) {
	view := o.Args[0].Type
	if len(o.Dims) == 0 || !areDistinct(o.Dims, len(view.Dims)) {
		return nil, fmt.Errorf("dims %v: want one or more different dimensions of %s", o.Dims, view)
	}
	if o.Rows() != nil {
		return nil, errors.New("indices of a subview: want scalars")
	}
	return one(ViewOf(view.Elem, make([]Dim, len(o.Dims))...)), nil
}

func ruleFlag(o *Op, _ []Type) ([]Type, error) {
	if view := o.Args[0].Type; view.Elem != I32 || o.Rows() != nil {
		return nil, fmt.Errorf("%s on %s: want an element of a view of i32", o.Code, view)
	}
	return nil, nil
}

func ruleFor(o *Op, _ []Type) ([]Type, error) {
	types := make([]Type, 0, len(o.Args)-3)
	for _, v := range o.Args[3:] {
		types = append(types, v.Type)
	}
	return types, errors.Join(checkAttr("stages", o.Stages, 64), checkAttr("unroll", o.Unroll, 256))
}

func ruleIf(o *Op, want []Type) ([]Type, error) {
	if o.Args[0].Type.Elem != I1 {
		return nil, fmt.Errorf("condition of type %s: want i1", o.Args[0].Type)
	}
	for _, t := range want {
		if t.Kind != Tile {
			return nil, fmt.Errorf("a result of type %s: want a scalar or a tile", t)
		}
	}
	return want, nil
}

func ruleRing(o *Op, want []Type) ([]Type, error) {
	switch t := want[0]; {
	case t.Kind != Ring:
		return nil, fmt.Errorf("ring of type %s: want a ring", t)
	case t.Depth%max(o.Blocks, 1) != 0:
		return nil, fmt.Errorf("ring of %d buffers in %d blocks: want a part of the same depth in each", t.Depth, o.Blocks)
	}
	return want, nil
}

func ruleCopy(o *Op, _ []Type) ([]Type, error) {
	if p := o.Operand("pred"); p != nil && p.Type.Elem != I1 {
		return nil, fmt.Errorf("pred of type %s: want i1", p.Type)
	}
	t := bufferType(o.Operand("ring"))
	if m := o.Operand("mask"); m != nil {
		t.Layout = m.Type.Layout // which threads copy what is up to it
	}
	return nil, ruleAccess(o, t)
}

func ruleRoles(o *Op, _ []Type) ([]Type, error) {
	if len(o.Roles) == 0 || len(o.Roles) > 16 || len(o.Roles) != len(o.Regions) {
		return nil, fmt.Errorf("%d roles for %d regions: want as many, 1 to 16", len(o.Roles), len(o.Regions))
	}
	for i, r := range o.Roles {
		if r.Name == "" || r.Warps < 1 || r.Warps > 32 || r.Registers < 0 || r.Registers > 255 {
			return nil, fmt.Errorf("role %d (%s, warps %d, regs %d): want a name, 1 to 32 warps, 0 to 255 registers", i, r.Name, r.Warps, r.Registers)
		}
	}
	return nil, nil
}

// mostBlocks bounds the blocks of a cluster; no GPU has larger ones.
const mostBlocks = 16

// check reports what is wrong with an operation taken alone: number and kinds of
// operands, attributes, types of results.
func (o *Op) infer(want []Type) ([]Type, error) {
	info := o.Code.Info()
	if err := o.checkSlots(info); err != nil {
		return nil, err
	}
	if info.Typed && len(want) != 1 {
		return nil, errors.New("want the type of the result")
	}
	if n := o.Blocks; n < 0 || n > mostBlocks || n&(n-1) != 0 {
		return nil, fmt.Errorf("blocks %d: want a power of two up to %d", n, mostBlocks)
	}
	for _, t := range want {
		if err := t.Check(); err != nil {
			return nil, err
		}
	}
	got, err := info.rule(o, want)
	if err != nil {
		return nil, err
	}
	for _, t := range got {
		if err := t.Check(); err != nil {
			return nil, err
		}
	}
	return got, nil
}

// checkSlots checks the number of operands and the kind of each.
func (o *Op) checkSlots(info *Info) error {
	pos := 0
	for i, s := range info.Slots {
		n := o.slotLen(i, info.Slots)
		if n == 0 && s.Kind == SlotRings || pos+n > len(o.Args) {
			return fmt.Errorf("%d operands: too few", len(o.Args))
		}
		for _, v := range o.Args[pos : pos+n] {
			if err := s.check(v.Type); err != nil {
				return err
			}
		}
		pos += n
	}
	if pos != len(o.Args) {
		return fmt.Errorf("%d operands: want %d", len(o.Args), pos)
	}
	return nil
}

func (s Slot) check(t Type) error {
	ok, what := true, ""
	switch s.Kind {
	case SlotTile, SlotAny:
		ok, what = t.Kind == Tile, "a scalar or a tile"
	case SlotScalar:
		ok, what = t.IsScalar(), "a scalar"
	case SlotIndex, SlotExtents:
		ok, what = t.IsScalar() && t.Elem == I32, "i32"
	case SlotView:
		ok, what = t.Kind == View, "a view"
	case SlotRing, SlotRings:
		ok, what = t.Kind == Ring, "a ring"
	case SlotIndices:
		ok, what = t.Kind == Tile && t.Elem == I32, "i32 or a tile of i32"
	}
	if !ok {
		return fmt.Errorf("operand %s of type %s: want %s", s.Name, t, what)
	}
	return nil
}

// hasDims reports whether an operation has the attribute Dims.
func (o *Op) hasDims() bool { return slices.Contains(o.Code.Info().Attrs, attrDims) }

// defaultDims returns the dimensions the operation spans if none are stated; ok
// is false if it has none or they can't be known. results are its results' types.
func (o *Op) defaultDims(results []Type) (dims []int, ok bool) {
	if !o.hasDims() || len(o.Args) == 0 || o.Args[0] == nil || o.Args[0].Type.Kind != View {
		return nil, false
	}
	tile := o.Operand("value")
	switch {
	case o.Code == OpSubview:
		return DefaultDims(o, len(o.Args[0].Type.Dims)), true
	case o.Code == OpLoad && len(results) == 1:
		return DefaultDims(o, len(results[0].Shape)), true
	case o.Code == OpCopy:
		tile = o.Operand("ring")
	}
	if tile == nil {
		return nil, false
	}
	return DefaultDims(o, len(tile.Type.Shape)), true
}

// setDefaultDims fills in the dimensions of an access that states none.
func (o *Op) setDefaultDims(results []Type) {
	if dims, ok := o.defaultDims(results); ok {
		o.Dims = dims
	}
}

// hasDefaultDims reports whether Dims need not be printed.
func (o *Op) hasDefaultDims() bool {
	var results []Type
	for _, v := range o.Results {
		results = append(results, v.Type)
	}
	dims, ok := o.defaultDims(results)
	return ok && slices.Equal(dims, o.Dims)
}
