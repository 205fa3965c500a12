package codegen

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
)

// lowering turns a staged kernel with layouts into a thread program. Tiles become
// registers, fully unrolled; views become addresses; rings become shared memory.
type lowering struct {
	k *ir.Kernel
	f *facts
	m *machine
	b *simt.Builder
	s *simt.Kernel

	warps   int
	params  []Param
	paramAt map[Param]*simt.Value
	maps    []Param // tensor maps that a prologue makes

	scalars  map[*ir.Value]*simt.Value
	tiles    map[*ir.Value]*fragment
	reads    map[*ir.Value]*ringRead // reads that dots load piece by piece
	views    map[*ir.Value]*view
	counters map[*ir.Value]counter
	plan     *sharedPlan
	users    users
	in       *ir.Region // being lowered
	pending  unordered

	copies    []*ir.Op // by tensor maps, not committed yet
	acquired  *ir.Op   // what they wait for; nil: nothing
	acquiring *acquisition
	mbarsMade bool
	written   bool        // shared memory by threads, since copies by tensor maps would see it
	role      *int        // being lowered; nil: there are none, or none yet
	tidIn     *simt.Value // the thread's number in the role being lowered; nil: in the block
	gate      *simt.Value // of the releases being lowered; nil: always
	cluster   cluster
	rank      *simt.Value // of the block, among those that divide its tile
	arrived   bool        // at the cluster's barrier, and not waited yet
	space     tileSpace
	tileOps   []*ir.Op // of a persistent kernel: what each role computes for each tile
	at, left  counter  // of a persistent kernel: where the tile finds the rings of the role, and leaves them
	once      counter  // the same of rings that are filled once for each tile
	perTile   bool     // there are such
	late      bool     // in a loop that releases its buffers an iteration later
	flight    []underWay
	turns     *turns // of the loop being lowered; nil: none are taken
}

// lower produces the thread program of a kernel.
func lower(k *ir.Kernel, m *machine) (_ *simt.Kernel, params, maps []Param, err error) {
	warps := max(k.Hints.Warps, 1)
	threads := 32 * warps
	if slices.ContainsFunc(k.Body.Ops, func(o *ir.Op) bool { return o.Code == ir.OpRoles }) {
		threads += 32 * copyWarps
	}
	s := simt.NewKernel(k.Name, threads)
	s.MinBlocks, s.MaxRegs = k.Hints.Blocks, k.Hints.MaxRegisters
	l := &lowering{
		k: k, f: newFacts(k), m: m, s: s, b: simt.NewBuilder(s), warps: warps, paramAt: map[Param]*simt.Value{},
		scalars: map[*ir.Value]*simt.Value{}, tiles: map[*ir.Value]*fragment{}, reads: map[*ir.Value]*ringRead{}, views: map[*ir.Value]*view{},
		counters: map[*ir.Value]counter{},
		users:    usersOf(k.Body),
	}
	var alone, single error
	if s.Persistent, single = persistentOf(k); single != nil && m.wgmma && !errors.Is(single, errNoCopies) {
		m.note("blocks have one tile each: %v", single)
	}
	if l.plan, err = l.planShared(k); err != nil {
		return nil, nil, nil, fmt.Errorf("kernel %s: %w", k.Name, err)
	}
	if s.Pingpong {
		s.Threads = 32 * (l.mainWarps() + copyWarps)
	}
	if l.cluster, alone = clusterOf(k); alone != nil && m.wgmma && (!errors.Is(alone, errNoCopies) || len(m.notes) == 0) { // else staging has said why
		m.notes = append(m.notes, fmt.Sprintf("clusters of %d blocks are left out: %v", k.Hints.Cluster, alone))
	}
	s.Cluster = l.cluster.blocks * l.cluster.perTile
	s.Shared, s.SharedAlign, s.Dynamic = l.plan.size, l.plan.align, l.plan.size > 48<<10
	for _, p := range k.Params {
		l.param(p)
	}
	if m.lets { // at once, as the next kernel waits before it touches memory
		l.b.GridLaunch()
	}
	if m.waits {
		l.b.GridWait()
	}
	l.acquiring = &acquisition{at: l.b.Mark()}
	l.tileSpace()
	if l.cluster.perTile > 1 {
		l.b.ClusterArrive()
		l.arrived = true
	}
	if s.Persistent {
		l.persist(k.Body)
	} else {
		l.tileAt(l.space.first)
		l.region(k.Body)
	}
	l.landAll()
	return s, l.params, l.maps, nil
}

// planShared plans the shared memory, and whether warpgroups have tiles in turns: what
// they share but the copies and stores, they could not.
func (l *lowering) planShared(k *ir.Kernel) (*sharedPlan, error) {
	if !l.s.Persistent {
		return planShared(k, l.f, l.warps, room{})
	}
	plan, err := planShared(k, l.f, l.warps, room{l.m.shared, 1})
	if err != nil || k.Hints.Persistent < 2 {
		return plan, err
	}
	if alone := pingpongOf(k, plan); alone != nil {
		l.m.note("all warps have one tile at a time: %v", alone)
		return plan, nil
	}
	l.s.Pingpong = true
	return planShared(k, l.f, l.warps, room{l.m.shared, teams})
}

// region lowers a region's operations up to its yield and returns that.
func (l *lowering) region(r *ir.Region) *ir.Op {
	outer := l.in
	l.in = r
	defer func() { l.in = outer }()
	for _, o := range r.Ops {
		if o.Code == ir.OpYield {
			return o
		}
		l.op(o)
	}
	return nil
}

// op lowers one operation.
func (l *lowering) op(o *ir.Op) {
	l.b.Note(noteOf(o))
	if accessesGlobal(o) {
		l.orderGlobal(o)
	}
	switch o.Code {
	case ir.OpDim:
		l.scalars[o.Result()] = l.viewOf(o.Args[0]).size[o.Axis]()
	case ir.OpSubview:
		l.subview(o)
	case ir.OpFor:
		if o.Pingpong {
			l.takeTurns(o, func() { l.loop(o) })
			return
		}
		l.loop(o)
	case ir.OpIf:
		if onlyReleases(o) {
			l.releaseIf(o)
			return
		}
		l.branch(o)
	case ir.OpLoad:
		l.load(o)
	case ir.OpStore:
		if o.Bulk {
			l.tensorStore(o)
			return
		}
		if o.Blocks > 1 {
			l.storeOnce(o)
			return
		}
		l.store(o)
	case ir.OpDot:
		l.dot(o)
	case ir.OpReduce:
		l.reduce(o)
	case ir.OpScan:
		l.scan(o)
	case ir.OpSplit:
		l.split(o)
	case ir.OpRandom16:
		l.random16(o)
	case ir.OpAtomic:
		if o.Bulk {
			l.tensorStore(o)
			return
		}
		l.atomic(o)
	case ir.OpAwait:
		l.awaitFlag(o)
	case ir.OpSignal:
		l.signal(o)
	case ir.OpRing:
		if l.plan.signalledOf(o.Results) != nil {
			l.tensorStart()
		}
		l.meet() // others may still be reading what lay there before
	case ir.OpCopy:
		l.copy(o)
	case ir.OpCommit:
		l.commit(o)
	case ir.OpAcquire:
		l.acquire(o)
	case ir.OpWait:
		l.await(o)
	case ir.OpRelease:
		l.release(o)
	case ir.OpRoles:
		l.roles(o)
	case ir.OpRead:
		l.read(o)
	case ir.OpWrite:
		l.write(o)
	case ir.OpBarrier:
		l.barrier()
	case ir.OpConvert:
		l.convert(o)
	case ir.OpTranspose:
		l.transpose(o)
	default:
		l.value(o)
	}
}

// noteOf is the comment that goes with an operation's instructions.
func noteOf(o *ir.Op) string {
	switch o.Code {
	case ir.OpLoad, ir.OpStore, ir.OpDot, ir.OpReduce, ir.OpCopy, ir.OpConvert, ir.OpSelect, ir.OpExp2:
	default:
		return ""
	}
	name := ""
	if r := o.Result(); r != nil && r.Name != "" {
		name = r.Name + " = "
	}
	text := name + o.Code.String()
	switch o.Code {
	case ir.OpLoad, ir.OpStore, ir.OpCopy:
		text += " " + o.View().Name
	}
	return text
}

// loop lowers a for. Tiles and scalars it carries become the registers it carries.
func (l *lowering) loop(o *ir.Op) {
	l.landBefore(o)
	body := o.Regions[0]
	init := make([]*simt.Value, 0, 64)
	for _, v := range o.Args[3:] {
		init = append(init, l.registers(v)...)
	}
	count, depth := counted(o)
	phased := count != nil && slices.ContainsFunc(body.Ops, func(in *ir.Op) bool {
		return (in.Code == ir.OpWait || in.Code == ir.OpAcquire) && l.plan.signalledOf(in.Args) != nil
	})
	if count != nil {
		from := o.Args[3+slices.Index(body.Params, count)-1]
		if phased {
			init = append(init, l.phase(from, depth))
		}
		init = append(init, l.modulo(from, depth))
	}
	before, outerLate := l.pending, l.late
	l.late = releasesLate(o)
	l.enterLoop(o)
	lo, hi := l.rangeOf(o)
	turn := l.turns != nil && l.s.Pingpong && phased
	if turn {
		l.b.Bar(l.turns.own, l.turns.threads)
	}
	results := l.b.For(lo, hi, l.scalar(o.Args[2]), init, func(i *simt.Value, c []*simt.Value) []*simt.Value {
		l.scalars[body.Params[0]] = i.Named(nameOr(body.Params[0], "i"))
		for _, p := range body.Params[1:] {
			c = l.define(p, c)
		}
		if count != nil {
			n := counter{depth: depth, remainder: c[len(c)-1].Named("slot")}
			if phased {
				n.phase = c[0].Named("phase")
			}
			l.counters[count] = n
		}
		yield := l.region(body)
		l.landAll()
		next := make([]*simt.Value, 0, len(init))
		for _, v := range yield.Args {
			next = append(next, l.registers(v)...)
		}
		if count != nil {
			n := l.counters[count]
			if phased {
				last := l.b.Cmp(simt.EQ, n.remainder, l.b.Const32(depth-1))
				next = append(next, l.b.Xor(n.phase, l.b.Select(last, l.b.Const32(1), l.b.Const32(0))))
			}
			next = append(next, l.wrap(l.b.Add(n.remainder, l.b.Const32(1)), depth))
		}
		return next
	})
	if phased { // NVRTC would unroll it, which waits at mbarriers gain nothing by
		l.b.Unroll(1)
	}
	l.pending = l.pending.or(before)
	if turn {
		l.b.BarArrive(l.turns.other, l.turns.threads)
	}
	if phased {
		l.left = counter{depth: depth, phase: results[len(results)-2], remainder: results[len(results)-1]}
	}
	if l.late {
		results = l.landLate(o, results)
	}
	l.late = outerLate
	for i, r := range o.Results {
		if count == body.Params[1+i] {
			l.counters[r] = counter{depth: depth, remainder: results[len(results)-1]}
			if phased {
				l.counters[r] = l.left
			}
		}
		results = l.define(r, results)
	}
}

func nameOr(v *ir.Value, name string) string {
	if v.Name != "" {
		return v.Name
	}
	return name
}

func (l *lowering) branch(o *ir.Op) {
	l.landBefore(o)
	flight := l.flight
	before := l.pending
	var after []unordered
	goesOn := l.s.Persistent && len(ringLoops(&ir.Region{Ops: []*ir.Op{o}}, nil)) > 0
	side := func(r *ir.Region) func() []*simt.Value {
		return func() []*simt.Value {
			l.pending = before
			if goesOn {
				l.left = l.at
			}
			yield := l.region(r)
			if len(flight) == 0 {
				l.landAll()
			}
			after = append(after, l.pending)
			var vs []*simt.Value
			for _, v := range yield.Args {
				vs = append(vs, l.registers(v)...)
			}
			if goesOn {
				vs = append(vs, l.left.phase, l.left.remainder)
			}
			return vs
		}
	}
	results := l.b.If(l.scalar(o.Args[0]), side(o.Regions[0]), side(o.Regions[1]))
	l.pending = after[0]
	for _, u := range after[1:] {
		l.pending = l.pending.or(u)
	}
	for _, r := range o.Results {
		results = l.define(r, results)
	}
	if goesOn {
		l.left.phase, l.left.remainder = results[0], results[1]
	}
}

// registers are the registers that hold a scalar or a tile.
func (l *lowering) registers(v *ir.Value) []*simt.Value {
	if v.Type.IsScalar() {
		return []*simt.Value{l.scalar(v)}
	}
	return l.tile(v).regs
}

// define takes v's registers from the front of regs and returns the rest.
func (l *lowering) define(v *ir.Value, regs []*simt.Value) []*simt.Value {
	if v.Type.IsScalar() {
		l.scalars[v] = regs[0]
		if v.Name != "" {
			regs[0].Named(v.Name)
		}
		return regs[1:]
	}
	f := newFragment(v.Type)
	n := f.count()
	f.regs = slices.Clip(regs[:n])
	if v.Name != "" {
		simt.NameGroup(v.Name, f.regs)
	}
	l.tiles[v] = f
	return regs[n:]
}

func (l *lowering) scalar(v *ir.Value) *simt.Value {
	if s, ok := l.scalars[v]; ok {
		return s
	}
	panic(fmt.Sprintf("scalar %%%s (%d) is used before it is lowered", v.Name, v.ID))
}

func (l *lowering) tile(v *ir.Value) *fragment {
	l.landIf(func(p underWay) bool { return p.o.Result() == v })
	if f, ok := l.tiles[v]; ok {
		return f
	}
	if r, ok := l.reads[v]; ok {
		f := l.loadAll(r)
		l.tiles[v] = f
		l.pending.shared = true
		return f
	}
	panic(fmt.Sprintf("tile %%%s (%d) is used before it is lowered", v.Name, v.ID))
}
