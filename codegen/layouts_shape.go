package codegen

import (
	"slices"

	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/layout"
)

// Layouts of operations that move elements among coordinates.

// moves tells whether an operation's result holds its operands' elements at other
// coordinates, in the same threads where the layouts match.
func moves(o *ir.Op) bool {
	return o.Code == ir.OpTranspose || o.Code == ir.OpReshape || o.Code == ir.OpJoin
}

// moved is the layout that the result of such an operation has when its operands have
// l, nil if there is none.
func moved(o *ir.Op, l *layout.Layout) *layout.Layout {
	var m *layout.Layout
	var err error
	switch t := o.Result().Type; o.Code {
	case ir.OpTranspose:
		m, err = l.Transpose(o.Perm)
	case ir.OpReshape:
		m, err = l.Reshape(t.Shape)
	case ir.OpJoin:
		m, err = l.Expand(l.Rank()).Broadcast(t.Shape)
	}
	if err != nil {
		return nil
	}
	return m
}

// inRegisters tells whether a thread has all elements along an axis that differ in no
// other coordinate.
func inRegisters(l *layout.Layout, axis int) bool {
	return !slices.ContainsFunc(l.ThreadBases(axis), func(n int) bool { return n != 0 })
}

// pairsInRegisters is l with its last axis, of size 2, in registers.
func pairsInRegisters(l *layout.Layout) *layout.Layout {
	last := l.Rank() - 1
	m, err := l.Slice(last).Expand(last).Broadcast(l.Shape())
	if err != nil {
		panic(err)
	}
	return m
}

// split gives both halves to the threads that have the pairs.
func (c *chooser) split(o *ir.Op, s *slot) {
	l := c.anyLayout(o.Args[0])
	last := l.Rank() - 1
	if !inRegisters(l, last) {
		l = pairsInRegisters(l)
	}
	o.Args[0] = c.want(o.Args[0], l)
	s.ops = append(s.ops, o)
	for _, r := range o.Results {
		if r.Type.IsTile() {
			c.define(r, l.Slice(last), s)
		}
	}
}

// scan wants each step along its axis made by one bit of register, lane or warp.
func (c *chooser) scan(o *ir.Op, s *slot) {
	l := c.anyLayout(o.Args[0])
	if _, ok := scanSteps(l, o.Axis); !ok {
		l = c.blocked(o.Args[0].Type.Shape, rowMajor(l.Rank()), 1)
	}
	o.Args[0] = c.want(o.Args[0], l)
	s.ops = append(s.ops, o)
	c.define(o.Result(), l, s)
}
