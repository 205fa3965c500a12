package ir

import "slices"

// binary appends an elementwise operation, after making the operands agree: a
// scalar is splatted, axes of size 1 are broadcast.
func (b *Builder) elementwise(o *Op) *Value {
	o.Args = b.Agree(o.Args...)
	return b.one(o)
}

// Agree gives the values one shape: scalars are splatted, axes of size 1
// broadcast. Values that can't agree come back as they are.
func (b *Builder) Agree(vs ...*Value) []*Value {
	var shape []int
	for _, v := range vs {
		if v == nil || v.Type.Kind != Tile {
			return vs
		}
		joined, ok := joinShapes(shape, v.Type.Shape)
		if !ok {
			return vs
		}
		shape = joined
	}
	out := make([]*Value, len(vs))
	for i, v := range vs {
		out[i] = b.Fit(v, shape...)
	}
	return out
}

func joinShapes(x, y []int) ([]int, bool) {
	if len(x) == 0 || len(y) == 0 {
		return append(slices.Clone(x), y...), true
	}
	if len(x) != len(y) {
		return nil, false
	}
	out := make([]int, len(x))
	for i := range x {
		if x[i] != y[i] && x[i] != 1 && y[i] != 1 {
			return nil, false
		}
		out[i] = max(x[i], y[i])
	}
	return out, true
}

// Fit returns v with the given shape: a scalar splatted, axes of size 1
// broadcast, v itself if it has the shape already.
func (b *Builder) Fit(v *Value, shape ...int) *Value {
	t := v.Type.WithShape(shape...)
	switch {
	case slices.Equal(v.Type.Shape, shape):
		return v
	case v.Type.IsScalar():
		return b.Splat(v, shape...)
	}
	return b.one(&Op{Code: OpBroadcast, Args: []*Value{v}}, t)
}

// Rows returns a vector [N] as the tile [m, N]: every row is v.
func (b *Builder) Rows(v *Value, m int) *Value {
	x := b.Expand(v, 0)
	return b.Fit(x, m, x.Type.Shape[len(x.Type.Shape)-1])
}

// Cols returns a vector [M] as the tile [M, n]: every column is v.
func (b *Builder) Cols(v *Value, n int) *Value {
	x := b.Expand(v, len(v.Type.Shape))
	return b.Fit(x, x.Type.Shape[0], n)
}

// The elementwise operations. Scalars and axes of size 1 fit themselves to the
// other operand's shape.

// Add returns x + y.
func (b *Builder) Add(x, y *Value) *Value {
	return b.elementwise(&Op{Code: OpAdd, Args: []*Value{x, y}})
}

// Sub returns x - y.
func (b *Builder) Sub(x, y *Value) *Value {
	return b.elementwise(&Op{Code: OpSub, Args: []*Value{x, y}})
}

// Mul returns x * y.
func (b *Builder) Mul(x, y *Value) *Value {
	return b.elementwise(&Op{Code: OpMul, Args: []*Value{x, y}})
}

// Div returns x / y; integers round towards 0.
func (b *Builder) Div(x, y *Value) *Value {
	return b.elementwise(&Op{Code: OpDiv, Args: []*Value{x, y}})
}

// Rem returns the remainder of x / y, with the sign of x.
func (b *Builder) Rem(x, y *Value) *Value {
	return b.elementwise(&Op{Code: OpRem, Args: []*Value{x, y}})
}

// CeilDiv returns (x + n-1) / n, for x >= 0.
func (b *Builder) CeilDiv(x *Value, n int) *Value {
	return b.Div(b.Add(x, b.Int(n-1)), b.Int(n))
}

// Min returns the smaller of x and y, of floats the one that is not NaN.
func (b *Builder) Min(x, y *Value) *Value {
	return b.elementwise(&Op{Code: OpMin, Args: []*Value{x, y}})
}

// Max returns the larger of x and y, of floats the one that is not NaN.
func (b *Builder) Max(x, y *Value) *Value {
	return b.elementwise(&Op{Code: OpMax, Args: []*Value{x, y}})
}

// And returns the bitwise and.
func (b *Builder) And(x, y *Value) *Value {
	return b.elementwise(&Op{Code: OpAnd, Args: []*Value{x, y}})
}

// Or returns the bitwise or.
func (b *Builder) Or(x, y *Value) *Value { return b.elementwise(&Op{Code: OpOr, Args: []*Value{x, y}}) }

// Xor returns the bitwise exclusive or.
func (b *Builder) Xor(x, y *Value) *Value {
	return b.elementwise(&Op{Code: OpXor, Args: []*Value{x, y}})
}

// Shl returns x << y.
func (b *Builder) Shl(x, y *Value) *Value {
	return b.elementwise(&Op{Code: OpShl, Args: []*Value{x, y}})
}

// Shr returns x >> y with the sign copied.
func (b *Builder) Shr(x, y *Value) *Value {
	return b.elementwise(&Op{Code: OpShr, Args: []*Value{x, y}})
}

// Ushr returns x >> y with zeros shifted in.
func (b *Builder) Ushr(x, y *Value) *Value {
	return b.elementwise(&Op{Code: OpUshr, Args: []*Value{x, y}})
}

// Fma returns x*y + z, rounded once.
func (b *Builder) Fma(x, y, z *Value) *Value {
	return b.elementwise(&Op{Code: OpFma, Args: []*Value{x, y, z}})
}

// Cmp returns x pred y (i1).
func (b *Builder) Cmp(p Pred, x, y *Value) *Value {
	return b.elementwise(&Op{Code: OpCmp, Args: []*Value{x, y}, Attrs: Attrs{Pred: p}})
}

// Select returns x where cond is true, else y.
func (b *Builder) Select(cond, x, y *Value) *Value {
	return b.elementwise(&Op{Code: OpSelect, Args: []*Value{cond, x, y}})
}

// Neg returns -x.
func (b *Builder) Neg(x *Value) *Value { return b.Emit(OpNeg, x) }

// Not returns the bitwise not.
func (b *Builder) Not(x *Value) *Value { return b.Emit(OpNot, x) }

// Unary returns one of the float functions of x: OpExp2, OpLog2, OpRsqrt,
// OpSqrt, OpRcp, OpTanh, OpErf, OpSin, OpCos, OpFloor, OpCeil, OpRound, OpAbs.
func (b *Builder) Unary(code Opcode, x *Value) *Value { return b.Emit(code, x) }

// Fast returns code of the operands, by the hardware's approximation.
func (b *Builder) Fast(code Opcode, args ...*Value) *Value {
	return b.elementwise(&Op{Code: code, Args: args, Attrs: Attrs{Fast: true}})
}

// Cast converts to another element type; v itself if it has it already.
func (b *Builder) Cast(v *Value, e Elem) *Value { return b.cast(v, e, false) }

// CastSat converts to another element type, clamping to its finite range.
func (b *Builder) CastSat(v *Value, e Elem) *Value { return b.cast(v, e, true) }

func (b *Builder) cast(v *Value, e Elem, saturate bool) *Value {
	if v != nil && v.Type.Elem == e {
		return v
	}
	o := &Op{Code: OpCast, Args: []*Value{v}, Attrs: Attrs{Saturate: saturate}}
	return b.one(o, typeOf(v).WithElem(e))
}

func typeOf(v *Value) Type {
	if v == nil {
		return ScalarOf(F32)
	}
	return v.Type
}

// Bitcast takes the bits as another element type of the same width.
func (b *Builder) Bitcast(v *Value, e Elem) *Value {
	return b.one(&Op{Code: OpBitcast, Args: []*Value{v}}, typeOf(v).WithElem(e))
}

// Iota returns the i32 tile whose elements are their index along axis.
func (b *Builder) Iota(axis int, shape ...int) *Value {
	return b.one(&Op{Code: OpIota, Attrs: Attrs{Axis: axis}}, TileOf(I32, shape...))
}

// Splat returns a tile with a scalar in every element.
func (b *Builder) Splat(v *Value, shape ...int) *Value {
	return b.one(&Op{Code: OpSplat, Args: []*Value{v}}, typeOf(v).WithShape(shape...))
}

// Expand inserts an axis of size 1 before axis.
func (b *Builder) Expand(v *Value, axis int) *Value {
	return b.one(&Op{Code: OpExpand, Args: []*Value{v}, Attrs: Attrs{Axis: axis}})
}

// Reshape returns the same elements, in row-major order, in another shape.
func (b *Builder) Reshape(v *Value, shape ...int) *Value {
	return b.one(&Op{Code: OpReshape, Args: []*Value{v}}, typeOf(v).WithShape(shape...))
}

// Transpose permutes axes: axis i of the result is axis perm[i] of v; without
// perm the last two axes are swapped.
func (b *Builder) Transpose(v *Value, perm ...int) *Value {
	if len(perm) == 0 {
		n := typeOf(v).Rank()
		for i := range n {
			perm = append(perm, i)
		}
		if n >= 2 {
			perm[n-1], perm[n-2] = n-2, n-1
		}
	}
	return b.one(&Op{Code: OpTranspose, Args: []*Value{v}, Attrs: Attrs{Perm: perm}})
}

// Join puts x and y side by side in a new last axis of size 2.
func (b *Builder) Join(x, y *Value) *Value { return b.Emit(OpJoin, x, y) }

// Split returns the two halves of a last axis of size 2.
func (b *Builder) Split(v *Value) (x, y *Value) {
	rs := b.Append(&Op{Code: OpSplit, Args: []*Value{v}})
	return rs[0], rs[1]
}

// Reduce combines the elements along an axis; the axis goes.
func (b *Builder) Reduce(c Combine, v *Value, axis int) *Value {
	return b.one(&Op{Code: OpReduce, Args: []*Value{v}, Attrs: Attrs{Combine: c, Axis: axis}})
}

// Scan returns the inclusive running combination along an axis.
func (b *Builder) Scan(c Combine, v *Value, axis int) *Value {
	return b.one(&Op{Code: OpScan, Args: []*Value{v}, Attrs: Attrs{Combine: c, Axis: axis}})
}

// Dot returns x[M,K] y[K,N] + acc[M,N].
func (b *Builder) Dot(x, y, acc *Value, p Precision) *Value {
	return b.one(&Op{Code: OpDot, Args: []*Value{x, y, acc}, Attrs: Attrs{Precision: p}})
}

// DotScaled returns a dot whose G groups of K are scaled by scaleX[M,G] and
// scaleY[G,N] (f32); either may be nil.
func (b *Builder) DotScaled(x, y, acc, scaleX, scaleY *Value) *Value {
	o := &Op{Code: OpDot, Args: []*Value{x, y, acc}}
	o.SetOperand("scale_x", scaleX)
	o.SetOperand("scale_y", scaleY)
	return b.one(o)
}

// Random16 returns the draws, 0 to 65535, of the elements with the given
// coordinates (i32 tiles of one shape).
func (b *Builder) Random16(seed, offset, plane, row, col *Value) *Value {
	rc := b.Agree(row, col)
	return b.Emit(OpRandom16, seed, offset, plane, rc[0], rc[1])
}
