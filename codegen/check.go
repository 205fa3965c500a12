package codegen

import (
	"fmt"

	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/layout"
)

// check refuses what later passes have no way to do, so that they may take it for
// granted that it does not occur.
func check(k *ir.Kernel, m *machine) error {
	c := checker{m: m, threads: 32 * max(k.Hints.Warps, 1)}
	if n := k.Hints.Cluster; n < 0 || n > mostCluster || n&(n-1) != 0 {
		c.fail(k.Pos, fmt.Errorf("clusters of %d blocks: want a power of two up to %d", n, mostCluster), ErrUnsupported)
	}
	for _, p := range k.Params {
		c.elem(k.Pos, p)
	}
	c.region(k.Body)
	if c.err != nil {
		return fmt.Errorf("kernel %s: %w", k.Name, c.err)
	}
	return nil
}

type checker struct {
	m       *machine
	threads int
	err     error
}

func (c *checker) fail(pos ir.Pos, err, kind error) {
	if c.err == nil {
		c.err = fmt.Errorf("%s: %w: %w", pos, kind, err)
	}
}

func (c *checker) region(r *ir.Region) {
	for _, v := range r.Params {
		c.value(ir.Pos{}, v)
	}
	for _, o := range r.Ops {
		c.op(o)
		for _, v := range o.Results {
			c.value(o.Pos, v)
		}
		for _, in := range o.Regions {
			c.region(in)
		}
	}
}

func (c *checker) op(o *ir.Op) {
	unsupported := func(format string, args ...any) {
		c.fail(o.Pos, fmt.Errorf("%s: %w", o.Code, fmt.Errorf(format, args...)), ErrUnsupported)
	}
	switch o.Code {
	case ir.OpRoles:
		unsupported("different warps with different code: want the loop's stages only")
	case ir.OpLoad, ir.OpStore, ir.OpAtomic, ir.OpCopy:
		if e := o.View().Type.Elem; e.MemoryBits() < 8 {
			unsupported("elements of %s in memory: want 8 bits or more", e)
		}
	case ir.OpFor:
		if step := o.Args[2]; isConst(step) && step.Def.Int <= 0 {
			unsupported("step %d: want 1 or more", step.Def.Int)
		}
	case ir.OpDot:
		c.dot(o)
	}
}

// mostMultiplications bounds the multiplications of a dot that a thread does one by
// one: each is an instruction of its own.
const mostMultiplications = 1 << 16

func (c *checker) dot(o *ir.Op) {
	if _, ok := c.m.tensorForm(o); ok {
		return
	}
	t := o.Result().Type
	if n := t.Elements() * o.Args[0].Type.Shape[1] / c.threads; n > mostMultiplications {
		c.fail(o.Pos, fmt.Errorf("dot of %s by %s: no tensor-core instruction serves, and a thread would multiply %d times: want at most %d",
			o.Args[0].Type, o.Args[1].Type, n, mostMultiplications), ErrResources)
	}
}

// mostElements bounds a thread's part of a tile. It is far beyond what registers hold;
// programs of that size are mistakes.
const mostElements = 1 << 12

// mostRingBytes bounds a ring; no GPU has as much shared memory.
const mostRingBytes = 1 << 20

func (c *checker) value(pos ir.Pos, v *ir.Value) {
	c.elem(pos, v)
	t := v.Type
	switch {
	case t.Kind == ir.Ring && t.Elem.MemoryBits() < 8:
		c.fail(pos, fmt.Errorf("a ring of %s: want 8 bits or more", t.Elem), ErrUnsupported)
	case t.Kind == ir.Ring && t.Depth*t.Elements() > mostRingBytes/bytesOf(t.Elem):
		c.fail(pos, fmt.Errorf("ring %s: want at most %d bytes", t, mostRingBytes), ErrResources)
	case t.IsTile() && t.Elements()/c.threads > mostElements:
		c.fail(pos, fmt.Errorf("tile %s: %d elements in each of %d threads: want at most %d", t, t.Elements()/c.threads, c.threads, mostElements), ErrResources)
	}
	for _, n := range t.Shape {
		if n > layout.MaxExtent {
			c.fail(pos, fmt.Errorf("type %s: want extents of at most %d", t, layout.MaxExtent), ErrUnsupported)
		}
	}
}

func (c *checker) elem(pos ir.Pos, v *ir.Value) {
	if v.Type.Elem == ir.BF16 && c.m.sm < 80 {
		c.fail(pos, fmt.Errorf("bf16 on sm_%d: want sm_80 or later", c.m.sm), ErrUnsupported)
	}
}
