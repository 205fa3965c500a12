package codegen

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kgen-dev/kgen/ir"
)

// The blocks of a cluster may have a tile of the tile space together: where all of its
// work is in loops that keep what they load, each block takes a part of the iterations,
// one after the other, and keeps what is of them, in an order that later loops share.
// Sums that the loops carry are combined where they are reduced, in the order of the
// blocks: a row may then be as long as the shared memory of all of them holds. What stands
// between the loops all blocks do, but one stores.
//
// Nothing about the program's meaning changes: the loops still run over everything, the
// rings hold all of it, and what is said of blocks is only who does it.

// divide decides in how many blocks a kernel's loops, of which the first keeps the tiles,
// are divided; 1 where they are not, and m notes why.
func (k *kept) divide(r *ir.Region, loops []*ir.Op, m *machine) int {
	blocks := k.k.Hints.Cluster
	if blocks < 2 || m.sm < 90 {
		return 1
	}
	if err := k.divisible(r, loops); err != nil {
		m.note("clusters of %d blocks are left out: %v", blocks, err)
		return 1
	}
	return blocks
}

// divisible tells why blocks cannot divide the loops, which are all of the kernel's.
func (k *kept) divisible(r *ir.Region, loops []*ir.Op) error {
	for _, o := range r.Ops {
		switch {
		case o.Code == ir.OpFor:
			if !k.sameRange(loops[0], o) {
				return fmt.Errorf("%s: a loop over another range", o.Pos)
			}
			if err := k.apart(o); err != nil {
				return fmt.Errorf("%s: %w", o.Pos, err)
			}
		case o.Code == ir.OpStore, o.Code == ir.OpLoad && !k.writes(o.View()), o.Code.IsPure():
		default:
			return fmt.Errorf("%s: %s, which blocks cannot divide", o.Pos, o.Code)
		}
	}
	if !slices.ContainsFunc(r.Ops, k.combines) {
		return errors.New("no sum is taken over the range")
	}
	return nil
}

// apart tells why the iterations of a loop are not for different blocks: they must store to
// different places and carry nothing but sums.
func (k *kept) apart(o *ir.Op) error {
	body := o.Regions[0]
	for _, x := range body.Ops {
		switch {
		case x.Code == ir.OpYield, x.Code.IsPure() && len(x.Regions) == 0 && x.Code != ir.OpDot:
		case x.Code == ir.OpLoad && !k.writes(x.View()):
		case x.Code == ir.OpStore && k.steps(x, o):
		default:
			return fmt.Errorf("%s: %s, which the iterations may depend on each other by", x.Pos, x.Code)
		}
	}
	for i, p := range body.Params[1:] {
		if !k.adds(o, i) {
			return fmt.Errorf("%%%s is carried: want sums from 0, reduced behind the loop", p.Name)
		}
	}
	return nil
}

// steps tells whether a store goes to another place in every iteration of a loop.
func (k *kept) steps(store, loop *ir.Op) bool {
	a := accessOf(store, store.Operand("value").Type.Shape)
	for axis, n := range a.shape {
		if d := a.axisDim(axis); d >= 0 && d < len(a.indices) && a.indices[d] == loop.Regions[0].Params[0] {
			return int64(n) <= loop.Args[2].Def.Int
		}
	}
	return false
}

// adds tells whether the i-th carried value of a loop is a sum from 0 that is reduced by
// addition, and used for nothing else.
func (k *kept) adds(o *ir.Op, i int) bool {
	p, next := o.Regions[0].Params[1+i], o.Regions[0].Yield().Args[i].Def
	if !isZero(o.Args[3+i]) || next == nil || len(k.users[p]) != 1 || k.users[p][0] != next {
		return false
	}
	switch next.Code {
	case ir.OpAdd:
	case ir.OpFma:
		if next.Args[2] != p {
			return false
		}
	default:
		return false
	}
	return !slices.ContainsFunc(k.users[o.Results[i]], func(u *ir.Op) bool { return !k.combines(u) })
}

// combines tells whether an operation reduces by addition what a loop carried.
func (k *kept) combines(o *ir.Op) bool {
	return o.Code == ir.OpReduce && o.Combine == ir.Add && o.Args[0].Def != nil && o.Args[0].Def.Code == ir.OpFor
}

// assign says of a kernel's operations that blocks divide them.
func (k *kept) assign(r *ir.Region, blocks int) {
	if blocks < 2 {
		return
	}
	for _, o := range r.Ops {
		if o.Code == ir.OpFor || o.Code == ir.OpStore || k.combines(o) {
			o.Blocks = blocks
		}
	}
}

// exchange is what the parts of combined sums take in each block.
func (k *kept) exchange(r *ir.Region, blocks int) int {
	n := 0
	for _, o := range r.Ops {
		if blocks > 1 && k.combines(o) {
			n += exchangeBytes(o, blocks)
		}
	}
	return n
}

// dividedBy is in how many blocks a kernel's loops are divided; 1 if they are not.
func dividedBy(k *ir.Kernel) int {
	for _, o := range k.Body.Ops {
		if o.Code == ir.OpFor && o.Blocks > 1 {
			return o.Blocks
		}
	}
	return 1
}

// ringDepth is how many of a ring's buffers a block has.
func ringDepth(ring *ir.Value) int {
	if o := ring.Def; o != nil && o.Blocks > 1 {
		return ring.Type.Depth / o.Blocks
	}
	return ring.Type.Depth
}
