package codegen

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/layout"
)

// Clusters. Their blocks divide a tile (see divide), or have a tile each: then neighbours
// along the first axis of the tile space run together on neighbouring SMs. What all of
// them read, each copies a part of, to all: a buffer is full when the parts of all blocks
// have come, and free when the warps of all blocks have given it back. The tile space is
// rounded up to whole clusters: a tile outside reads zeros and writes nothing.

// mostCluster is the largest cluster that every GPU with clusters takes (CUDA C
// Programming Guide, thread block clusters).
const mostCluster = 8

// cluster is how a kernel's blocks work together.
type cluster struct {
	blocks  int                // with a tile each, a power of two; 1: each works alone
	perTile int                // that divide a tile, a power of two; 1: none do
	parts   map[*ir.Op]part    // by copy that each block does a part of
	rings   map[*ir.Value]bool // those with mbarriers at which warps of all blocks arrive
}

// part is how a copy is cut into one for each block: by rows, or by the atoms of its
// rows.
type part struct{ rows, atoms int } // of a part

// errNoCopies is of a kernel without warps of their own for the copies.
var errNoCopies = errors.New("no warps of their own copy ahead")

// clusterOf decides what the blocks of a cluster copy for each other. The error says why
// they work alone although the kernel asks for clusters.
func clusterOf(k *ir.Kernel) (cluster, error) {
	c := cluster{blocks: 1, perTile: dividedBy(k)}
	n := k.Hints.Cluster
	if n < 2 || len(k.Space) == 0 || c.perTile > 1 {
		return c, nil
	}
	var roles *ir.Op
	for _, o := range k.Body.Ops {
		if o.Code == ir.OpRoles {
			roles = o
		}
	}
	if roles == nil {
		return c, errNoCopies
	}
	varies := varying(k, k.Space[0])
	found := cluster{blocks: n, perTile: 1, parts: map[*ir.Op]part{}, rings: map[*ir.Value]bool{}}
	for _, loop := range roles.Regions[copyRole].Ops {
		if loop.Code != ir.OpFor {
			continue
		}
		for _, v := range loop.Args {
			if varies[v] {
				return c, fmt.Errorf("%s: the number of steps depends on %s", loop.Pos, k.Space[0].Var.Name)
			}
		}
		found.copies(loop.Regions[0], varies)
	}
	if len(found.parts) == 0 {
		return c, fmt.Errorf("blocks that differ in %s copy nothing that is the same, or nothing that %d blocks can divide", k.Space[0].Var.Name, n)
	}
	return found, nil
}

// copies finds the copies of a loop's body that blocks divide.
func (c *cluster) copies(body *ir.Region, varies map[*ir.Value]bool) {
	divided := false // one since the last commit
	for _, o := range body.Ops {
		switch o.Code {
		case ir.OpCopy:
			if !mapped(o.Operand("ring")) || slices.ContainsFunc(o.Args, func(v *ir.Value) bool { return varies[v] }) {
				continue
			}
			if p, ok := c.divide(o.Operand("ring").Type.Shared); ok {
				c.parts[o], divided = p, true
			}
		case ir.OpCommit:
			if divided {
				c.rings[tensorRing(o.Args)] = true
			}
			divided = false
		}
	}
}

// divide cuts what lies so into a part for each block: whole swizzled atoms of its rows.
func (c *cluster) divide(s *layout.Shared) (part, bool) {
	const swizzled = 8 // rows
	switch {
	case s.Atoms()%c.blocks == 0:
		return part{s.Rows(), s.Atoms() / c.blocks}, true
	case s.Rows()%(c.blocks*swizzled) == 0:
		return part{s.Rows() / c.blocks, s.Atoms()}, true
	}
	return part{}, false
}

// varying are the values of a kernel's top level and of its loops that depend on a tile's
// place along some axes.
func varying(k *ir.Kernel, axes ...ir.Axis) map[*ir.Value]bool {
	varies := map[*ir.Value]bool{}
	for _, a := range axes {
		varies[a.Var] = true
	}
	var walk func(r *ir.Region)
	walk = func(r *ir.Region) {
		for _, o := range r.Ops {
			depends := false
			for _, a := range o.Args {
				depends = depends || varies[a]
			}
			for _, in := range o.Regions {
				for _, p := range in.Params {
					varies[p] = varies[p] || depends
				}
				walk(in)
			}
			for _, x := range o.Results {
				varies[x] = varies[x] || depends
			}
		}
	}
	walk(k.Body)
	return varies
}

// partOf is what a block copies of what lies so; all of it where it copies alone.
func (c *cluster) partOf(o *ir.Op, s *layout.Shared) (p part, divided bool) {
	if p, ok := c.parts[o]; ok {
		return p, true
	}
	return part{s.Rows(), s.Atoms()}, false
}

// together waits until all threads of the block are here, or of the cluster.
func (l *lowering) together() {
	if l.cluster.blocks > 1 {
		l.b.ClusterSync()
		return
	}
	l.barrier()
}
