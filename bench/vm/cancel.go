package vm

import (
	"encoding/binary"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// Blocks take over the work of others that have not begun: clusterlaunchcontrol
// (PTX ISA 9.0, 9.7.13.17).

func init() { decoders["clusterlaunchcontrol"] = (*decoder).launchControl }

// A request's answer is the machine's own affair. Here its low half has the first
// block's x in bits 0 to 31, its y from 32 and its z from 48 on, and its high half
// says whether there is one; if not, the low half is undefined.
const (
	answerBytes = 16
	answerHalf  = 8

	answerYes = 1
	answerNo  = 2
)

func (d *decoder) launchControl() {
	if d.take("try_cancel", "query_cancel") == "try_cancel" {
		d.tryCancel()
		return
	}
	d.queryCancel()
}

// tryCancel is a copy of the answer to shared memory, made up when it is issued.
func (d *decoder) tryCancel() {
	op := &bulkOp{told: true, mask: -1, bytes: -1}
	d.has("async")
	space := d.space()
	d.has("mbarrier::complete_tx::bytes")
	op.all = d.has("multicast::cluster::all")
	d.has("b128")
	ops := d.operands(2, 2)
	in := d.new(kindControl)
	in.bulk, in.ctl = op, issueReduction
	op.shared, op.mbar = d.newMem(ptx.SpaceShared), d.newMem(ptx.SpaceShared)
	d.memory(in, op.shared, &ops[0])
	d.memory(in, op.mbar, &ops[1])
	if space == ptx.SpaceGeneric {
		in.imm = sharedWindow
	}
	in.mem = op.shared
	in.rule = ruleAsyncCopy
	in.fn[modeFull] = tryCancel
	d.kern.cancels = true
	d.emit(in)
}

// tryCancel answers the active lanes. The block has its turn, so that what
// has not begun does not depend on the number of workers.
func tryCancel(w *warp, in *inst) {
	op, b := in.bulk, w.b
	var shared, mbar lanes64
	w.addresses(op.shared, &shared)
	w.addresses(op.mbar, &mbar)
	for l := w.mask; l != 0; l &= l - 1 {
		lane := firstLane(l)
		if w.cta.noneLeft {
			w.fault(bench.BadDescriptor, in, lane, "the block has seen an earlier request come to nothing: want none after that")
			continue
		}
		c := &bulkCopy{op: op, in: in, fr: w.fr, from: w.source(in), w: w, lane: lane, mask: 0xffff, bytes: answerBytes}
		if !w.bulkShared(c, shared[lane]-in.imm) || !w.bulkTold(c, mbar[lane]-in.imm) {
			b.refused = true
			continue
		}
		c.data = make([]byte, answerBytes)
		if id, ok := b.l.cancel(); ok {
			binary.LittleEndian.PutUint64(c.data, uint64(id[0])|uint64(id[1])<<32|uint64(id[2])<<48)
			c.data[answerHalf] = answerYes
		} else {
			c.data[answerHalf], c.nothing = answerNo, true
		}
		if op.all {
			w.multicast(c, 1<<len(b.ctas)-1)
		} else {
			b.issue(c)
		}
	}
}

// cancel takes the next block, or cluster, out of those that have not begun; false
// if there is none.
func (l *launch) cancel() (first [3]uint32, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == l.total {
		return first, false
	}
	first = l.blockID(l.next)
	l.l2.done(l.next, &lineTrace{})
	l.next++
	return first, true
}

// forgetAnswer marks what an answer leaves undefined where nothing was cancelled.
func (b *block) forgetAnswer(c *bulkCopy) {
	if b.undef == nil {
		return
	}
	from := b.addOrigin(origin{class: bench.UninitialisedRegister, name: "the first block of a cluster that was not cancelled"})
	b.undef.undefine(c.shared, answerHalf, ^uint64(0), from)
}

// queryCancel reads an answer.
func (d *decoder) queryCancel() {
	what := d.take("is_canceled", "get_first_ctaid", "get_first_ctaid::x", "get_first_ctaid::y", "get_first_ctaid::z")
	d.take("pred", "v4")
	d.has("b32")
	d.has("b128")
	ops := d.operands(2, 2)
	answer := d.halves(&ops[1])
	switch what {
	case "is_canceled":
		in := d.testing(func(a, _, _ uint64) uint64 { return a & answerYes }, &ops[0], answer[1:], ptx.B64)
		in.fn[modeFull] = isCanceled
		d.emit(in)
	case "get_first_ctaid":
		pc := d.src.PC
		e := elements(&ops[0])
		for i := range e[:3] {
			if e[i].Kind != ptx.OpSink {
				d.firstBlock(&e[i], &answer[0], i).pc = pc
				pc = -1 // the instruction counts once
			}
		}
		if pc >= 0 {
			d.refuse("want a register to write")
		}
	default:
		d.firstBlock(&ops[0], &answer[0], int(what[len(what)-1]-'x'))
	}
}

// isCanceled notes that the block has seen that nothing was left to cancel.
func isCanceled(w *warp, in *inst) {
	eachPredicate(w, in)
	for l := w.mask; l != 0; l &= l - 1 {
		if w.q[in.a][firstLane(l)] == answerNo {
			w.cta.noneLeft = true
		}
	}
}

// firstBlock reads a coordinate of the first block of the cluster.
func (d *decoder) firstBlock(dst, low *ptx.Operand, dim int) *inst {
	at, bits := [3]uint{0, 32, 48}[dim], [3]uint{32, 16, 16}[dim]
	in := d.new(kindPure)
	in.lane = func(a, _, _ uint64) uint64 { return a >> at & (1<<bits - 1) }
	in.kd = d.destination(in, &in.d, dst, ptx.B32, exact).k
	in.ka = d.source(in, &in.a, low, ptx.B64, exact).k
	in.fn[modeFull] = lanewise(in.kd, false, 1)
	d.emit(in)
	return in
}
