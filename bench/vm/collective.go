package vm

import (
	"math/bits"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

func init() {
	decoders["shfl"] = (*decoder).shfl
	decoders["vote"] = (*decoder).vote
	decoders["match"] = (*decoder).match
	decoders["redux"] = (*decoder).redux
	decoders["elect"] = (*decoder).elect
	decoders["activemask"] = func(d *decoder) {
		d.typ()
		ops := d.operands(1, 1)
		in := d.new(kindMasked)
		d.destination(in, &in.d, &ops[0], ptx.B32, exact)
		in.fn[modeFull] = func(w *warp, in *inst) {
			for m := w.mask; m != 0; m &= m - 1 {
				w.r[in.d][firstLane(m)] = w.mask
			}
		}
		d.emit(in)
	}
}

// collective is an instruction that lanes of a warp execute together: those
// that its member mask names wait for one another.
type collective struct {
	name    string // opcode: lanes that wait together must have the same
	members int32  // slot of the member mask
	mask    int32  // its value, while decoding
	wide    bool   // the value has 64 bits
	value   int32  // slot of the value; of a predicate for vote
	pred    bool   // the value is a predicate
	b, c    int32
	dst     int32 // of 32 bits, -1 is none
	dstPred int32
	orders  bool // memory: bar.warp.sync

	shuffles, ballot bool
	run              func(g *gathered)
}

// undefinedValues is what a collective carries over of undefined operands.
type undefinedValues struct {
	lanes uint32 // with some
	bits  lanes64
	from  lanes32
}

// gathered is a collective's operands and results, in all lanes.
type gathered struct {
	lanes   uint32 // that execute it
	members uint32
	value   lanes64
	p       uint32
	b, c    lanes32

	out  lanes32
	outP uint32
	from lanes32 // lane that a result comes from, for shuffles
	lost uint32  // results that no lane gave

	undef undefinedValues
}

// meeting is a collective that waits for more lanes.
type meeting struct {
	in *inst
	g  gathered
}

func (d *decoder) newCollective(run func(*gathered)) (*inst, *collective) {
	in := d.new(kindControl)
	in.ctl = collect
	c := &collective{name: d.opcode(), dst: -1, dstPred: -1, run: run}
	in.coll = c
	zero := d.constant(class32, 0)
	for _, f := range []*int32{&c.value, &c.b, &c.c} {
		d.bind(f, zero)
	}
	return in, c
}

// memberMask binds the member mask.
func (d *decoder) memberMask(in *inst, c *collective, o *ptx.Operand) {
	c.mask = d.sourceValue(o, ptx.B32, exact)
	d.bind(&c.members, c.mask)
	in.uses = append(in.uses, c.mask)
}

// membersOf binds the member mask of a .sync form. The older forms without one
// are of the lanes that are active, no others are waited for.
func (d *decoder) membersOf(in *inst, c *collective, sync bool, rest []ptx.Operand) {
	if sync {
		d.memberMask(in, c, &rest[0])
		return
	}
	in.kind, in.ctl = kindMasked, nil
	in.fn[modeFull] = func(w *warp, in *inst) {
		g := gathered{members: w.mask}
		w.gather(in, &g, w.mask)
		in.coll.run(&g)
		w.scatter(in, &g, w.mask)
	}
}

// pair binds the destinations `d|p`, either of which may be missing.
func (d *decoder) pair(in *inst, c *collective, o *ptx.Operand) {
	dst := []ptx.Operand{*o}
	if o.Kind == ptx.OpPair {
		dst = o.Elems()
		d.predicateDestination(in, &c.dstPred, &dst[1])
	}
	d.destination(in, &c.dst, &dst[0], ptx.B32, exact)
}

func (d *decoder) shfl() {
	sync := d.has("sync")
	mode := d.take("up", "down", "bfly", "idx")
	d.typ()
	ops := d.operands(4, 5)
	in, c := d.newCollective(shuffle(mode))
	c.shuffles = true
	d.pair(in, c, &ops[0])
	d.source(in, &c.value, &ops[1], ptx.B32, exact)
	d.source(in, &c.b, &ops[2], ptx.B32, exact)
	d.source(in, &c.c, &ops[3], ptx.B32, exact)
	d.membersOf(in, c, sync, ops[4:])
	d.emit(in)
	d.meetAfterCollective(in)
}

// shuffle moves values between lanes. PTX ISA, shfl.sync.
func shuffle(mode string) func(*gathered) {
	return func(g *gathered) {
		for m := g.lanes; m != 0; m &= m - 1 {
			i := uint32(firstLane(m))
			seg := g.c[i] >> 8 & 31
			last := i&seg | g.c[i]&31&^seg
			b := g.b[i] & 31
			var j uint32
			var ok bool
			switch mode {
			case "up":
				j = i - b
				ok = int32(j) >= int32(last)
			case "down":
				j = i + b
				ok = j <= last
			case "bfly":
				j = i ^ b
				ok = j <= last
			default:
				j = i&seg | b&^seg
				ok = j <= last
			}
			if !ok {
				j = i
			} else {
				g.outP |= 1 << i
			}
			if g.lanes>>j&1 == 0 {
				g.lost |= 1 << i
				j = i
			}
			g.out[i] = uint32(g.value[j])
			g.from[i] = j
		}
	}
}

func (d *decoder) vote() {
	sync := d.has("sync")
	mode := d.take("all", "any", "uni", "ballot")
	d.typ()
	ops := d.operands(2, 3)
	in, c := d.newCollective(func(g *gathered) {
		p := g.p & g.lanes
		yes := false
		switch mode {
		case "all":
			yes = p == g.lanes
		case "any":
			yes = p != 0
		case "uni":
			yes = p == 0 || p == g.lanes
		}
		if yes {
			g.outP = allLanes
		}
		for i := range g.out {
			g.out[i] = p
		}
	})
	if mode == "ballot" {
		c.ballot = true
		d.destination(in, &c.dst, &ops[0], ptx.B32, exact)
	} else {
		d.predicateDestination(in, &c.dstPred, &ops[0])
	}
	c.pred = true
	in.neg = d.predicate(in, &c.value, &ops[1])
	d.membersOf(in, c, sync, ops[2:])
	d.emit(in)
	d.meetAfterCollective(in)
}

func (d *decoder) match() {
	mode := d.take("any", "all")
	if !d.has("sync") {
		d.refuse("want .sync")
	}
	t := d.typ()
	ops := d.operands(3, 3)
	in, c := d.newCollective(func(g *gathered) {
		for m := g.lanes; m != 0; m &= m - 1 {
			i := firstLane(m)
			var same uint32
			for o := g.lanes; o != 0; o &= o - 1 {
				if j := firstLane(o); g.value[j] == g.value[i] {
					same |= 1 << j
				}
			}
			if mode == "all" && same != g.lanes {
				same = 0
			}
			g.out[i] = same
			if same != 0 {
				g.outP |= 1 << i
			}
		}
	})
	d.pair(in, c, &ops[0])
	c.wide = d.source(in, &c.value, &ops[1], t, exact).k == class64
	d.memberMask(in, c, &ops[2])
	d.emit(in)
	d.meetAfterCollective(in)
}

func (d *decoder) redux() {
	if !d.has("sync") {
		d.refuse("want .sync")
	}
	op := d.take("add", "min", "max", "and", "or", "xor")
	m := floatMode{abs: d.has("abs"), nan: d.has("NaN")}
	t := d.typ()
	ops := d.operands(3, 3)
	f := reducing(op, t)
	if ft, ok := floatOf(t); ok {
		f = extreme(op == "max", ft, m)
	}
	in, c := d.newCollective(func(g *gathered) {
		acc := g.value[firstLane(g.lanes)]
		if t.Float() {
			acc = f(acc, acc, 0) // |x|, or the canonical NaN
		}
		for m := g.lanes & (g.lanes - 1); m != 0; m &= m - 1 {
			acc = f(acc, g.value[firstLane(m)], 0)
		}
		for i := range g.out {
			g.out[i] = uint32(acc)
		}
	})
	d.destination(in, &c.dst, &ops[0], t, exact)
	d.source(in, &c.value, &ops[1], t, exact)
	d.memberMask(in, c, &ops[2])
	d.emit(in)
	d.meetAfterCollective(in)
}

// reducing is the lane function of a reduction.
func reducing(op string, t ptx.Type) laneFn {
	switch op {
	case "and":
		return func(a, b, _ uint64) uint64 { return a & b }
	case "or":
		return func(a, b, _ uint64) uint64 { return a | b }
	case "xor":
		return func(a, b, _ uint64) uint64 { return a ^ b }
	}
	return integer(op, t)
}

func (d *decoder) elect() {
	if !d.has("sync") {
		d.refuse("want .sync")
	}
	ops := d.operands(2, 2)
	in, c := d.newCollective(func(g *gathered) {
		lead := firstLane(g.lanes)
		g.outP = 1 << lead
		for i := range g.out {
			g.out[i] = uint32(lead)
		}
	})
	d.pair(in, c, &ops[0])
	d.memberMask(in, c, &ops[1])
	d.emit(in)
	d.meetAfterCollective(in)
}

// meetAfterCollective lets lanes meet again after a collective that not all of
// a path's lanes may execute together.
func (d *decoder) meetAfterCollective(in *inst) {
	if in.kind != kindControl {
		return
	}
	if in.guard >= 0 || !d.values[in.coll.mask].constant {
		d.meetAfter()
	}
}

// collect runs a collective for each group of lanes with the same member mask,
// once all its lanes are there.
func collect(w *warp, in *inst) {
	m := w.condition(in)
	if m == 0 {
		w.pc++
		return
	}
	if w.undefs > 0 {
		w.checkOperand(in, class32, in.coll.members, m)
	}
	masks := &w.r[in.coll.members]
	for rest := m; rest != 0; {
		members := masks[firstLane(rest)]
		var same uint32
		for l := rest; l != 0; l &= l - 1 {
			if i := firstLane(l); masks[i] == members {
				same |= 1 << i
			}
		}
		rest &^= same
		if missing := members & w.live &^ same; missing&^w.mask != 0 {
			if same != m {
				w.apart(m, same)
			}
			w.meetOthers(in, same, members)
			return
		}
	}
	for rest := m; rest != 0; {
		members := masks[firstLane(rest)]
		var same uint32
		for l := rest; l != 0; l &= l - 1 {
			if i := firstLane(l); masks[i] == members {
				same |= 1 << i
			}
		}
		rest &^= same
		w.collectGroup(in, same, members)
	}
	w.pc++
}

// collectGroup runs a collective for lanes that are all there.
func (w *warp) collectGroup(in *inst, lanes, members uint32) {
	if outside := lanes &^ members; outside != 0 && !w.again(bench.DivergentCollective, in) {
		w.fault(bench.DivergentCollective, in, firstLane(outside), "%s: lane %d executes it and its member mask %08x does not name it", in.coll.name, firstLane(outside), members)
	}
	missing := members & w.live &^ lanes
	if missing != 0 && !w.again(bench.DivergentCollective, in) {
		w.fault(bench.DivergentCollective, in, firstLane(lanes), "%s: lanes %08x of the member mask %08x skip it", in.coll.name, missing, members)
	}
	g := gathered{members: members}
	w.gather(in, &g, lanes)
	in.coll.run(&g)
	if missing != 0 {
		g.lost = 0 // the report says why results are lost
	}
	w.scatter(in, &g, lanes)
	w.meet(in.coll, lanes)
}

// gather reads a collective's operands in some lanes.
func (w *warp) gather(in *inst, g *gathered, lanes uint32) {
	c := in.coll
	g.lanes |= lanes
	if w.undefs > 0 {
		w.gatherUndefined(in, g, lanes)
	}
	if c.pred {
		g.p = g.p&^lanes | (w.p[c.value]^in.neg)&lanes
		return
	}
	b, cc := &w.r[c.b], &w.r[c.c]
	if c.wide {
		v := &w.q[c.value]
		for m := lanes; m != 0; m &= m - 1 {
			i := firstLane(m)
			g.value[i], g.b[i], g.c[i] = v[i], b[i], cc[i]
		}
		return
	}
	v := &w.r[c.value]
	for m := lanes; m != 0; m &= m - 1 {
		i := firstLane(m)
		g.value[i], g.b[i], g.c[i] = uint64(v[i]), b[i], cc[i]
	}
}

// scatter writes a collective's results to some lanes.
func (w *warp) scatter(in *inst, g *gathered, lanes uint32) {
	c := in.coll
	if w.u != nil {
		w.collectiveDefined(in, g, lanes)
	}
	if c.dst >= 0 {
		d := &w.r[c.dst]
		for m := lanes; m != 0; m &= m - 1 {
			i := firstLane(m)
			d[i] = g.out[i]
		}
	}
	if c.dstPred >= 0 {
		w.p[c.dstPred] = w.p[c.dstPred]&^lanes | g.outP&lanes
	}
}

// meetOthers lets lanes of other paths come to a like collective first.
func (w *warp) meetOthers(in *inst, m, members uint32) {
	var mt *meeting
	for _, x := range w.meetings {
		if x.in.coll.name == in.coll.name && x.g.members == members && x.g.lanes&m == 0 {
			mt = x
		}
	}
	if mt == nil {
		mt = &meeting{in: in}
		mt.g.members = members
		w.meetings = append(w.meetings, mt)
	}
	w.gather(in, &mt.g, m)
	w.leaveBehind(m)
	w.park(wait{kind: waitCollective, in: in, meet: mt})
	if members&w.live&^mt.g.lanes == 0 {
		w.finishMeeting(mt, false)
	}
}

// finishMeeting runs a collective that lanes wait in. If a report has said that
// lanes are missing, results lost for that are not a second defect.
func (w *warp) finishMeeting(mt *meeting, blamed bool) {
	mt.in.coll.run(&mt.g)
	if blamed {
		mt.g.lost = 0
	}
	w.meet(mt.in.coll, mt.g.lanes)
	for i := range w.paths {
		p := &w.paths[i]
		if p.wait.kind != waitCollective || p.wait.meet != mt {
			continue
		}
		current := w.fr
		w.enter(p.fr)
		w.scatter(p.wait.in, &mt.g, p.mask)
		if current != nil {
			w.enter(current)
		}
		p.wait = wait{}
		p.pc++
	}
	for i, x := range w.meetings {
		if x == mt {
			w.meetings = append(w.meetings[:i], w.meetings[i+1:]...)
			break
		}
	}
}

// forceCollective reports a collective whose missing lanes can't come, and
// runs it without them; false if there is none.
func (w *warp) forceCollective() bool {
	if len(w.meetings) == 0 {
		return false
	}
	mt := w.meetings[0]
	missing := mt.g.members & w.live &^ mt.g.lanes
	if missing != 0 {
		for i := range w.paths {
			if p := &w.paths[i]; p.wait.kind == waitCollective && p.wait.meet == mt {
				current := w.fr
				w.enter(p.fr)
				if w.again(bench.DivergentCollective, p.wait.in) {
					w.enter(current)
					break
				}
				w.fault(bench.DivergentCollective, p.wait.in, firstLane(p.mask), "%s: the member mask %08x names lanes %08x, which do not come: %s",
					mt.in.coll.name, mt.g.members, missing, w.whereabouts(missing))
				w.enter(current)
				break
			}
		}
	}
	w.finishMeeting(mt, missing != 0)
	return true
}

// whereabouts says what keeps lanes.
func (w *warp) whereabouts(lanes uint32) string {
	if lanes&^w.waitingAtJoins() == 0 {
		return "they wait past the branch"
	}
	for i := range w.paths {
		if p := &w.paths[i]; p.mask&lanes != 0 && p.wait.in != nil {
			return "they wait at " + opcode(w.sourceIn(p.fr, p.wait.in))
		}
	}
	return "they run elsewhere"
}

// sourceIn is the PTX instruction of one of a frame's function.
func (w *warp) sourceIn(fr *frame, in *inst) *ptx.Instruction {
	if in.pc < 0 {
		return &ptx.Instruction{Opcode: &ptx.Opcode{Name: "?"}}
	}
	return fr.prog.fn.Code[in.pc]
}

// lanesOf counts lanes.
func lanesOf(m uint32) int { return bits.OnesCount32(m) }

// gatherUndefined notes undefined values, and reports undefined lane numbers.
func (w *warp) gatherUndefined(in *inst, g *gathered, lanes uint32) {
	c := in.coll
	k := class32
	switch {
	case c.pred:
		k = classPred
	case c.wide:
		k = class64
	}
	w.checkOperand(in, class32, c.b, lanes)
	w.checkOperand(in, class32, c.c, lanes)
	s := w.fr.prog.unified(k, c.value)
	for l := w.u[s] & lanes; l != 0; l &= l - 1 {
		i := firstLane(l)
		g.undef.lanes |= 1 << i
		g.undef.bits[i], g.undef.from[i] = w.fr.undef.bits[s][i], w.fr.undef.origin[s][i]
	}
}

// collectiveDefined says which bits of a collective's results are defined: a
// shuffle's are those of the lane they come from; other results depend on all
// lanes.
func (w *warp) collectiveDefined(in *inst, g *gathered, lanes uint32) {
	c := in.coll
	p := w.fr.prog
	if c.dst >= 0 {
		w.define(p.unified(class32, c.dst), lanes)
	}
	if c.dstPred >= 0 {
		w.define(p.unified(classPred, c.dstPred), lanes)
	}
	if g.lost != 0 && w.b.faults.has(bench.DivergentCollective) {
		g.lost = 0 // of masks that are wrong since then
	}
	if g.undef.lanes|g.lost == 0 {
		return
	}
	lost := uint32(0)
	if g.lost != 0 {
		lost = w.b.addOrigin(origin{class: bench.UninitialisedRegister, name: "the result of " + c.name + " from a lane that does not take part"})
	}
	for l := lanes; l != 0; l &= l - 1 {
		i := firstLane(l)
		var bits uint64
		var from uint32
		switch {
		case c.shuffles && g.lost>>i&1 != 0:
			bits, from = ^uint64(0), lost
		case c.shuffles:
			j := g.from[i]
			bits, from = g.undef.bits[j], g.undef.from[j]
			if g.undef.lanes>>j&1 == 0 {
				bits = 0
			}
		case c.ballot:
			bits = uint64(g.undef.lanes)
			from = g.undef.from[firstLane(g.undef.lanes)]
		case g.undef.lanes != 0:
			bits, from = ^uint64(0), g.undef.from[firstLane(g.undef.lanes)]
		}
		if bits == 0 {
			continue
		}
		if c.dst >= 0 {
			w.undefine(p.unified(class32, c.dst), i, bits, from)
		}
		if c.dstPred >= 0 && !c.shuffles {
			w.undefine(p.unified(classPred, c.dstPred), i, 1, from)
		}
	}
}
