package vm

import "github.com/kgen-dev/kgen/codegen/ptx"

func init() { decoders["mbarrier"] = (*decoder).mbarrier }

// mbarrierOp is what an mbarrier instruction does.
type mbarrierOp struct {
	kind   mbarrierKind
	count  int32 // slot of the count or of the bytes
	token  int32 // slot of the state token (64 bits), or of the parity
	parity bool
	drop   bool
	expect bool // arrive.expect_tx: count is bytes, one arrival
	strong order
	dst    int32 // of 64 bits, or a predicate; -1 is none
	report int32 // predicate that an operation reported something; -1 is none
	value  int32 // what it reported; -1 is none
	layout uint8 // asked for, or of the object that is initialised

	ignored bool // a test whose answer nothing looks at
}

type mbarrierKind uint8

const (
	mbarrierInit mbarrierKind = iota
	mbarrierInval
	mbarrierArrive
	mbarrierExpect
	mbarrierComplete
	mbarrierTest
	mbarrierTry
	mbarrierLayout
)

const maxArrivals = 1<<20 - 1

func (d *decoder) mbarrier() {
	op := &mbarrierOp{dst: -1, report: -1, value: -1, strong: release}
	what := d.take("init", "inval", "arrive", "arrive_drop", "expect_tx", "complete_tx", "test_wait", "try_wait", "pending_count", "check_layout")
	if d.take("layout::v0", "layout::v1") == "layout::v1" {
		op.layout = 1
	}
	d.take("phase_type::primary", "phase_type::conditional") // nothing is reported that would hold the second back
	if what == "pending_count" {
		d.pendingCount()
		return
	}
	op.expect = (what == "arrive" || what == "arrive_drop") && d.has("expect_tx")
	d.has("noComplete")
	op.parity = d.has("parity")
	switch d.take("release", "acquire", "relaxed") {
	case "relaxed":
		op.strong = relaxed
	}
	d.scopeOf(scopeCTA)
	space := d.space()
	d.scopeOf(scopeCTA)
	d.has("b64")
	ops := d.src.Operands
	in := d.new(kindControl)
	in.mbar = op
	in.ctl = mbarrierControl
	in.mem = d.newMem(space)
	in.mem.size = 8
	d.bind(&op.count, d.constant(class32, 1))
	next := d.taking(&ops)
	switch what {
	case "init":
		op.kind = mbarrierInit
		d.memory(in, in.mem, next())
		d.source(in, &op.count, next(), ptx.U32, exact)
	case "inval":
		op.kind = mbarrierInval
		d.kern.invals = true
		d.memory(in, in.mem, next())
	case "arrive", "arrive_drop":
		op.kind, op.drop = mbarrierArrive, what == "arrive_drop"
		if ops[0].Kind != ptx.OpAddr {
			d.destination(in, &op.dst, next(), ptx.B64, exact)
		}
		d.memory(in, in.mem, next())
		if len(ops) > 0 {
			d.source(in, &op.count, next(), ptx.U32, exact)
		} else if op.expect {
			d.refuse("want the bytes to expect")
		}
	case "expect_tx", "complete_tx":
		op.kind = mbarrierExpect
		if what == "complete_tx" {
			op.kind = mbarrierComplete
		}
		d.memory(in, in.mem, next())
		d.source(in, &op.count, next(), ptx.U32, exact)
	case "test_wait", "try_wait":
		op.kind = mbarrierTest
		if what == "try_wait" {
			op.kind = mbarrierTry
		}
		if op.strong == release {
			op.strong = acquire
		}
		done := next()
		if done.Kind == ptx.OpPair {
			d.predicateDestination(in, &op.report, &done.Elems()[1])
			done = &done.Elems()[0]
		}
		d.predicateDestination(in, &op.dst, done)
		if ops[0].Kind != ptx.OpAddr {
			d.destination(in, &op.value, next(), ptx.B8, exact)
		}
		d.memory(in, in.mem, next())
		if op.parity {
			d.source(in, &op.token, next(), ptx.U32, exact)
		} else {
			d.source(in, &op.token, next(), ptx.B64, exact)
		}
		if len(ops) > 0 { // a hint how long to wait
			var hint int32
			d.source(in, &hint, next(), ptx.U32, exact)
		}
	case "check_layout":
		op.kind = mbarrierLayout
		d.predicateDestination(in, &op.dst, next())
		d.memory(in, in.mem, next())
	default:
		d.refuse("want an operation such as .arrive")
	}
	if len(ops) > 0 {
		d.refuse("%d operands too many", len(ops))
	}
	d.emit(in)
}

// pendingCount reads the pending arrivals out of a state token.
func (d *decoder) pendingCount() {
	d.has("b64")
	d.pure(func(a, _, _ uint64) uint64 { return a >> 40 & (1<<20 - 1) }, nil, ptx.U32, ptx.B64)
}
