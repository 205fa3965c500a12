package ir

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// class is a set of element types.
type class struct {
	name string
	has  func(Elem) bool
}

var (
	number  = class{"a number type", func(e Elem) bool { return e >= I8 && e <= F64 }}
	integer = class{"i8, i32 or i64", func(e Elem) bool { return e == I8 || e == I32 || e == I64 }}
	bitwise = class{"i1, i8, i32 or i64", func(e Elem) bool { return e == I1 || integer.has(e) }}
	float   = class{"f16, bf16, f32 or f64", func(e Elem) bool { return e >= F16 && e <= F64 }}
)

func (c class) check(e Elem) error {
	if !c.has(e) {
		return fmt.Errorf("element type %s: want %s", e, c.name)
	}
	return nil
}

func one(t Type) []Type { return []Type{t} }

func ruleInvalid(*Op, []Type) ([]Type, error) { return nil, errors.New("no such operation") }
func ruleNothing(*Op, []Type) ([]Type, error) { return nil, nil }

// sameTypes checks that all of vs have one type.
func sameTypes(vs []*Value) error {
	for _, v := range vs[1:] {
		if !v.Type.Equal(vs[0].Type) {
			return fmt.Errorf("operands of types %s and %s: want the same", vs[0].Type, v.Type)
		}
	}
	return nil
}

func ruleSame(c class) rule {
	return func(o *Op, _ []Type) ([]Type, error) {
		if err := sameTypes(o.Args); err != nil {
			return nil, err
		}
		return one(o.Args[0].Type), c.check(o.Args[0].Type.Elem)
	}
}

func ruleCmp(o *Op, _ []Type) ([]Type, error) {
	if err := sameTypes(o.Args); err != nil {
		return nil, err
	}
	t := o.Args[0].Type
	if !number.has(t.Elem) && t.Elem != I1 {
		return nil, number.check(t.Elem)
	}
	return one(t.WithElem(I1)), nil
}

func ruleSelect(o *Op, _ []Type) ([]Type, error) {
	if err := sameTypes(o.Args[1:]); err != nil {
		return nil, err
	}
	cond, t := o.Args[0].Type, o.Args[1].Type
	if !cond.Equal(t.WithElem(I1)) && !cond.Equal(ScalarOf(I1)) {
		return nil, fmt.Errorf("condition of type %s: want %s or i1", cond, t.WithElem(I1))
	}
	return one(t), nil
}

func ruleConst(o *Op, want []Type) ([]Type, error) {
	t := want[0]
	switch {
	case t.Kind != Tile:
		return nil, fmt.Errorf("a constant of type %s: want a scalar or a tile", t)
	case t.Elem.IsFloat() && o.Int != 0, t.Elem.IsInt() && math.Float64bits(o.Float) != 0:
		return nil, fmt.Errorf("integer %d, float %v for type %s: want only the one that applies", o.Int, o.Float, t.Elem)
	case t.Elem.IsInt() && !fitsInt(o.Int, t.Elem), t.Elem.IsFloat() && !fitsFloat(o.Float, t.Elem):
		return nil, fmt.Errorf("constant %s is no value of %s", ConstString(t.Elem, o.Int, o.Float), t.Elem)
	}
	return want, nil
}

// fitsInt reports whether v is a value of e; i1 has 0 and 1.
func fitsInt(v int64, e Elem) bool {
	if e == I1 {
		return v == 0 || v == 1
	}
	n := e.Bits() - 1
	return v >= math.MinInt64>>(63-n) && v <= math.MaxInt64>>(63-n)
}

func ruleDim(o *Op, _ []Type) ([]Type, error) {
	return one(ScalarOf(I32)), checkAxis(o.Axis, o.Args[0].Type.Rank())
}

func checkAxis(axis, rank int) error {
	if axis < 0 || axis >= rank {
		return fmt.Errorf("axis %d: want 0 to %d", axis, rank-1)
	}
	return nil
}

func ruleCast(o *Op, want []Type) ([]Type, error) {
	x, t := o.Args[0].Type, want[0]
	if !t.Equal(x.WithElem(t.Elem)) {
		return nil, fmt.Errorf("cast from %s to %s: want the same shape", x, t)
	}
	return want, nil
}

func ruleBitcast(o *Op, want []Type) ([]Type, error) {
	x, t := o.Args[0].Type, want[0]
	if !t.Equal(x.WithElem(t.Elem)) || t.Elem.Bits() != x.Elem.Bits() {
		return nil, fmt.Errorf("bitcast from %s to %s: want the same shape and width", x, t)
	}
	return want, nil
}

func ruleIota(o *Op, want []Type) ([]Type, error) {
	t := want[0]
	if !t.IsTile() || t.Elem != I32 && t.Elem != I64 {
		return nil, fmt.Errorf("iota of type %s: want a tile of i32 or i64", t)
	}
	return want, checkAxis(o.Axis, len(t.Shape))
}

func ruleSplat(o *Op, want []Type) ([]Type, error) {
	if t := want[0]; !t.IsTile() || t.Elem != o.Args[0].Type.Elem {
		return nil, fmt.Errorf("splat of %s to %s: want a tile of %s", o.Args[0].Type, t, o.Args[0].Type.Elem)
	}
	return want, nil
}

func ruleBroadcast(o *Op, want []Type) ([]Type, error) {
	x, t := o.Args[0].Type, want[0]
	ok := t.IsTile() && t.Elem == x.Elem && len(t.Shape) == len(x.Shape)
	for i := 0; ok && i < len(t.Shape); i++ {
		ok = x.Shape[i] == t.Shape[i] || x.Shape[i] == 1
	}
	if !ok {
		return nil, fmt.Errorf("broadcast from %s to %s: want the same rank, and only axes of size 1 to grow", x, t)
	}
	return want, nil
}

// inferred returns the types ts, with the layouts stated for them if there are
// any: an operation that moves elements leaves the layout of its result open.
func inferred(want []Type, ts ...Type) []Type {
	for i := range ts {
		if i < len(want) && ts[i].SameTile(want[i]) {
			ts[i].Layout = want[i].Layout
		}
	}
	return ts
}

func ruleExpand(o *Op, want []Type) ([]Type, error) {
	x := o.Args[0].Type
	if err := checkAxis(o.Axis, len(x.Shape)+1); err != nil {
		return nil, err
	}
	return inferred(want, TileOf(x.Elem, slices.Insert(slices.Clone(x.Shape), o.Axis, 1)...)), nil
}

func ruleReshape(o *Op, want []Type) ([]Type, error) {
	x, t := o.Args[0].Type, want[0]
	if t.Kind != Tile || t.Elem != x.Elem || t.Elements() != x.Elements() {
		return nil, fmt.Errorf("reshape from %s to %s: want as many elements, of %s", x, t, x.Elem)
	}
	return want, nil
}

func ruleTranspose(o *Op, want []Type) ([]Type, error) {
	x := o.Args[0].Type
	if !isPermutation(o.Perm, len(x.Shape)) {
		return nil, fmt.Errorf("perm %v: want a permutation of the %d axes", o.Perm, len(x.Shape))
	}
	shape := make([]int, len(o.Perm))
	for i, p := range o.Perm {
		shape[i] = x.Shape[p]
	}
	return inferred(want, TileOf(x.Elem, shape...)), nil
}

func isPermutation(p []int, n int) bool { return len(p) == n && areDistinct(p, n) }

// areDistinct reports whether the elements of p are different and in 0..n-1.
func areDistinct(p []int, n int) bool {
	for i, x := range p {
		if x < 0 || x >= n || slices.Contains(p[:i], x) {
			return false
		}
	}
	return true
}

func ruleJoin(o *Op, want []Type) ([]Type, error) {
	if err := sameTypes(o.Args); err != nil {
		return nil, err
	}
	x := o.Args[0].Type
	return inferred(want, TileOf(x.Elem, append(slices.Clone(x.Shape), 2)...)), nil
}

func ruleSplit(o *Op, want []Type) ([]Type, error) {
	x := o.Args[0].Type
	n := len(x.Shape) - 1
	if n < 0 || x.Shape[n] != 2 {
		return nil, fmt.Errorf("split of %s: want a last axis of size 2", x)
	}
	t := TileOf(x.Elem, x.Shape[:n]...)
	return inferred(want, t, t), nil
}

func checkCombine(c Combine, e Elem) error {
	switch c {
	case Add, Mul, Max, Min:
		return number.check(e)
	case And, Or, Xor:
		return bitwise.check(e)
	}
	return fmt.Errorf("combination %s: want add, mul, max, min, and, or or xor", c)
}

func ruleReduce(o *Op, want []Type) ([]Type, error) {
	x := o.Args[0].Type
	if err := errors.Join(checkAxis(o.Axis, len(x.Shape)), checkCombine(o.Combine, x.Elem)); err != nil {
		return nil, err
	}
	return inferred(want, TileOf(x.Elem, slices.Delete(slices.Clone(x.Shape), o.Axis, o.Axis+1)...)), nil
}

func ruleScan(o *Op, _ []Type) ([]Type, error) {
	x := o.Args[0].Type
	return one(x), errors.Join(checkAxis(o.Axis, len(x.Shape)), checkCombine(o.Combine, x.Elem))
}

func ruleDot(o *Op, _ []Type) ([]Type, error) {
	x, y, acc := o.Args[0].Type, o.Args[1].Type, o.Args[2].Type
	if len(x.Shape) != 2 || len(y.Shape) != 2 || len(acc.Shape) != 2 ||
		x.Shape[1] != y.Shape[0] || acc.Shape[0] != x.Shape[0] || acc.Shape[1] != y.Shape[1] {
		return nil, fmt.Errorf("dot of %s, %s and %s: want <MxK>, <KxN> and <MxN>", x, y, acc)
	}
	if !dotElems(x.Elem, y.Elem, acc.Elem) {
		return nil, fmt.Errorf("dot of %s by %s into %s: want f16, bf16, f32, e4m3, e5m2 or e2m1 into f32, f16 into f16, f64 into f64, i8 or i4 into i32", x.Elem, y.Elem, acc.Elem)
	}
	if o.Precision == TF32 && x.Elem != F32 {
		return nil, fmt.Errorf("precision tf32 of %s operands: want f32", x.Elem)
	}
	sx, sy := o.Operand("scale_x"), o.Operand("scale_y")
	if sx != nil && sy != nil && len(sx.Type.Shape) == 2 && len(sy.Type.Shape) == 2 && sx.Type.Shape[1] != sy.Type.Shape[0] {
		return nil, fmt.Errorf("scales of types %s and %s: want as many groups", sx.Type, sy.Type)
	}
	return one(acc), errors.Join(checkScale(sx, x.Shape[0], x.Shape[1], 0), checkScale(sy, y.Shape[1], y.Shape[0], 1))
}

func dotElems(x, y, acc Elem) bool {
	small := func(e Elem) bool { return e == E4M3 || e == E5M2 || e == E2M1 }
	switch acc {
	case F32:
		return x == y && (x == F16 || x == BF16 || x == F32) || small(x) && small(y)
	case F16:
		return x == F16 && y == F16
	case F64:
		return x == F64 && y == F64
	case I32:
		return x == y && (x == I8 || x == I4)
	}
	return false
}

// checkScale checks a scale tile: rows (at axis) by a number of groups that
// divides k.
func checkScale(v *Value, rows, k, axis int) error {
	if v == nil {
		return nil
	}
	t := v.Type
	if t.Elem != F32 || len(t.Shape) != 2 || t.Shape[axis] != rows || k%max(t.Shape[1-axis], 1) != 0 {
		return fmt.Errorf("scales of type %s: want f32, %d along axis %d and a divisor of %d along the other", t, rows, axis, k)
	}
	return nil
}

func ruleRandom16(o *Op, _ []Type) ([]Type, error) {
	if o.Args[0].Type.Elem != I64 {
		return nil, fmt.Errorf("seed of type %s: want i64", o.Args[0].Type)
	}
	row, col := o.Args[3].Type, o.Args[4].Type
	if row.Elem != I32 || !row.Equal(col) {
		return nil, fmt.Errorf("row and col of types %s and %s: want the same, of i32", row, col)
	}
	return one(row), nil
}
