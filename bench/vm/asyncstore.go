package vm

import "github.com/kgen-dev/kgen/codegen/ptx"

// asyncStore is st.async and red.async to the cluster's shared memory: a copy
// of a few bytes out of registers.
func (d *decoder) asyncStore(reduces bool) {
	op := &bulkOp{told: true, mask: -1, bytes: -1, ends: [2]int32{-1, -1}}
	d.take("weak", "relaxed")
	d.scopeOf(scopeCluster)
	d.has("shared::cluster")
	if !d.has("mbarrier::complete_tx::bytes") {
		d.refuse("want .mbarrier::complete_tx::bytes")
	}
	name := ""
	if reduces {
		name = d.take("inc", "dec", "min", "max", "and", "or", "xor", "add")
	}
	n := d.vector()
	t := d.typ()
	if reduces {
		op.typ = t
		op.reduce = d.atomicFunction(name, t, ptx.SpaceShared, true)
	}
	ops := d.operands(3, 3)
	in := d.new(kindMasked)
	in.bulk = op
	op.shared, op.mbar = d.newMem(ptx.SpaceShared), d.newMem(ptx.SpaceShared)
	op.shared.cluster, op.mbar.cluster = true, true
	e := elements(&ops[1])
	if len(e) != n {
		d.refuse("%d values: want %d", len(e), n)
	}
	e, t, _ = d.narrow(e, t)
	op.each = t.Size()
	op.shared.size = op.each
	d.memory(in, op.shared, &ops[0])
	op.data = make([]operand, len(e))
	for i := range e {
		o := d.source(in, &op.data[i].slot, &e[i], t, exact)
		op.data[i].k, op.data[i].bits = o.k, o.bits
	}
	d.memory(in, op.mbar, &ops[2])
	d.access(op.shared)
	in.mem = op.shared
	in.fn[modeFull] = issueBulk
	in.rule = ruleAsyncCopy
	d.emit(in)
}
