package codegen

import (
	"slices"

	"github.com/kgen-dev/kgen/ir"
)

// Tiles that all iterations of a loop read, such as Q of attention, where blocks go on from
// tile to tile: the role that copies the loop's own has them to copy, too, as soon as the
// last iteration of the tile before has multiplied them.

// handOver takes the copies out of the main role's operations that the role that copies can
// do ahead of its loop, and has their buffers given back.
func (s *stager) handOver(main []*ir.Op, alone map[*ir.Value]bool) (copies, rest []*ir.Op) {
	loop := main[slices.IndexFunc(main, func(o *ir.Op) bool { return o == s.consumer })]
	rest = slices.Clone(main)
	for _, o := range main {
		if o.Code != ir.OpCopy || !mapped(o.Operand("ring")) || slices.ContainsFunc(o.Args, func(v *ir.Value) bool { return !alone[v] }) {
			continue
		}
		ring := o.Operand("ring")
		last := s.lastRead(rest, loop, ring)
		commit := slices.IndexFunc(rest, func(c *ir.Op) bool { return c.Code == ir.OpCommit && slices.Contains(c.Args, ring) })
		if last == nil || commit < 0 || len(rest[commit].Operands("rings")) != 1 {
			continue
		}
		slot := rest[commit].Args
		copies = append(copies, &ir.Op{Code: ir.OpAcquire, Pos: o.Pos, Args: slot}, o, rest[commit])
		rest = slices.DeleteFunc(rest, func(x *ir.Op) bool { return x == o || x == copies[len(copies)-1] })
		s.freeTile(&rest, loop, last, slot)
	}
	return copies, rest
}

// lastRead is the last operation of a loop's own body that reads a tile which lies in a ring's
// only buffer; nil if others than the loop do, or none.
func (s *stager) lastRead(ops []*ir.Op, loop *ir.Op, ring *ir.Value) *ir.Op {
	of := map[*ir.Value]bool{ring: true}
	var last *ir.Op
	for _, o := range ops {
		switch {
		case !uses(o, of):
		case o.Code == ir.OpCopy || o.Code == ir.OpCommit || o.Code == ir.OpWait:
		case o.Code == ir.OpRead || o.Code == ir.OpTranspose:
			of[o.Result()] = true
		case o == loop:
			for _, in := range o.Regions[0].Ops {
				if uses(in, of) {
					last = in
					if in.Code == ir.OpRead || in.Code == ir.OpTranspose {
						of[in.Result()] = true
					}
				}
			}
		default:
			return nil
		}
	}
	return last
}

// freeTile gives a tile's buffer back behind its last use in a loop's last iteration, or
// behind the loop if it has none.
func (s *stager) freeTile(ops *[]*ir.Op, loop, last *ir.Op, slot []*ir.Value) {
	body := loop.Regions[0]
	in := &editor{k: s.k, pos: last.Pos}
	next := in.binary(ir.OpAdd, body.Params[0], loop.Args[2])
	in.releaseIf(in.cmp(ir.GE, next, loop.Args[1]), slot)
	body.Ops = slices.Insert(body.Ops, slices.Index(body.Ops, last)+1, in.ops...)
	out := &editor{k: s.k, pos: loop.Pos}
	out.releaseIf(out.cmp(ir.GE, loop.Args[0], loop.Args[1]), slot)
	*ops = slices.Insert(*ops, slices.Index(*ops, loop)+1, out.ops...)
}

// releaseIf gives buffers back, rings and index, where a condition holds.
func (e *editor) releaseIf(cond *ir.Value, slot []*ir.Value) {
	yield := func() *ir.Op { return &ir.Op{Code: ir.OpYield, Pos: e.pos} }
	release := &ir.Op{Code: ir.OpRelease, Pos: e.pos, Args: slices.Clone(slot)}
	e.add(&ir.Op{Code: ir.OpIf, Args: []*ir.Value{cond}, Regions: []*ir.Region{{Ops: []*ir.Op{release, yield()}}, {Ops: []*ir.Op{yield()}}}})
}
