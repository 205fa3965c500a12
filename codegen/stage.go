package codegen

import (
	"slices"

	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/layout"
)

// stage moves what dots multiply into shared memory: a load that only dots use
// (perhaps transposed) becomes an asynchronous copy into a ring of shared
// buffers and a read of the buffer. In a loop the copies run ahead as far as the
// ring is deep.
//
// Loads with the same first consumer share a group. A group is refilled after
// the first wait that follows its release, since a wait is a barrier: of an
// attention loop with rings K and V, the next K is copied while the softmax and
// the second dot run, even with one buffer each. How many later groups a wait may
// leave in flight is found by playing the order of commits through.
//
// What later loops over the same range load again, the first may keep (see keep).
//
// What the kernel itself writes stays where it is: a copy would be done at another time.
//
// Where the machine has tensor maps and wgmma, what tensor maps can copy for products of
// warpgroups goes that way, or by threads what they can't or shall not: the type of its ring
// says how it lies.
func stage(k *ir.Kernel, m *machine) {
	forget(k.Body)
	s := &stager{k: k, roles: m.wgmma, users: usersOf(k.Body), written: map[*ir.Value]bool{}}
	for _, o := range globalAccesses(k.Body, nil) {
		if writesGlobal(o) {
			param, _ := root(o.View())
			s.written[param] = true
		}
	}
	s.keep(k.Body, m)
	s.tensor = tensorLoads(s, m)
	if n := pow2(k.Hints.Warps); n < k.Hints.Warps && (len(s.tensor) == 0 || !m.wgmma) {
		m.note("%d of %d warps work: any number of warpgroups may only multiply as such", n, k.Hints.Warps)
		k.Hints.Warps = n
	}
	s.region(k.Body)
	s.split()
}

// forget drops the layouts that a program came with, how it stores, and what is divided
// among blocks.
func forget(r *ir.Region) {
	for _, v := range r.Params {
		v.Type.Layout = nil
	}
	for _, o := range r.Ops {
		o.Bulk, o.Blocks = false, 0
		for _, v := range o.Results {
			v.Type.Layout, v.Type.Shared = nil, nil
		}
		for _, in := range o.Regions {
			forget(in)
		}
	}
}

type stager struct {
	k       *ir.Kernel
	users   users
	written map[*ir.Value]bool // parameters that the kernel stores to
	tensor  map[*ir.Op]*layout.Shared
	roles   bool                      // warps of their own may copy
	across  map[*ir.Op]*layout.Shared // loads of tensor that a role transposes, and how they then lie
	threads map[*ir.Op]bool           // loads of tensor that threads copy, not tensor maps

	at         *ir.Region // being staged
	producer   *ir.Op     // the loop of a role that copies; nil: there is none
	consumer   *ir.Op     // the loop that reads what it copies
	transposer *ir.Op     // the loop of a role that transposes; nil: there is none
}

// writes tells whether the kernel stores to what a view is part of.
func (s *stager) writes(view *ir.Value) bool {
	param, _ := root(view)
	return s.written[param]
}

// staged is one load on its way through shared memory.
type staged struct {
	load        *ir.Op
	chain       []*ir.Op // transposes of it
	first, last int      // operations of the region that use it first and last
	ring        *ir.Value
	landing     *ir.Value // where the copy goes, if a role transposes it into the ring; else nil
}

// group is loads that are waited for together.
type group struct {
	loads []*staged
	first int
	last  int
	after int // the group whose wait lets this one be refilled
	ahead int // how many iterations ahead it is refilled
	bare  bool
}

func (s *stager) region(r *ir.Region) {
	outer := s.at
	s.at = r
	defer func() { s.at = outer }()
	found := s.find(r)
	e := &editor{k: s.k}
	for i, o := range r.Ops {
		e.pos = o.Pos
		if st := owner(found, o); st != nil {
			if st.load == o {
				s.fill(e, st)
			}
			continue
		}
		for _, st := range found {
			if st.first == i && !s.keptShared(st, o) {
				s.fetch(e, st)
			}
		}
		s.nested(e, o, found, i)
	}
	r.Ops = e.ops
}

// nested emits an operation that stays, and what its regions become.
func (s *stager) nested(e *editor, o *ir.Op, found []*staged, i int) {
	if o.Code != ir.OpFor {
		for _, r := range o.Regions {
			s.region(r)
		}
		e.ops = append(e.ops, o)
		return
	}
	var kept []*staged
	for _, st := range found {
		if st.first == i && s.keptShared(st, o) {
			kept = append(kept, st)
			s.readIn(st, o)
		}
	}
	before := func() {
		for _, st := range kept {
			s.await(e, st)
		}
	}
	s.loop(e, o, before)
}

// find lists the loads of the region's own operations that go through shared
// memory, with their places.
func (s *stager) find(r *ir.Region) []*staged {
	var found []*staged
	for _, o := range r.Ops {
		if o.Code != ir.OpLoad || o.Operand("mask") != nil || o.Operand("fill") != nil || o.Result().Type.Rank() != 2 {
			continue
		}
		if s.writes(o.View()) {
			continue
		}
		st := &staged{load: o, first: -1}
		if !s.feedsDots(o.Result(), st, r) {
			continue
		}
		vs := map[*ir.Value]bool{o.Result(): true}
		for _, t := range st.chain {
			vs[t.Result()] = true
		}
		for i, c := range r.Ops {
			if c != o && !slices.Contains(st.chain, c) && uses(c, vs) {
				if st.first < 0 {
					st.first = i
				}
				st.last = i
			}
		}
		found = append(found, st)
	}
	return found
}

// feedsDots tells whether all uses of v are operands of dots, following transposes.
// Those in the region r go to st; others stay where they are.
func (s *stager) feedsDots(v *ir.Value, st *staged, r *ir.Region) bool {
	if len(s.users[v]) == 0 {
		return false
	}
	for _, u := range s.users[v] {
		switch {
		case u.Code == ir.OpDot && u.Args[2] != v:
		case u.Code == ir.OpTranspose && s.feedsDots(u.Result(), st, r):
			if slices.Contains(r.Ops, u) {
				st.chain = append([]*ir.Op{u}, st.chain...)
			}
		default:
			return false
		}
	}
	return true
}

func owner(found []*staged, o *ir.Op) *staged {
	for _, st := range found {
		if st.load == o || slices.Contains(st.chain, o) {
			return st
		}
	}
	return nil
}

// fill starts the copy of a load that stands outside a pipelined loop.
func (s *stager) fill(e *editor, st *staged) {
	st.ring = s.newRing(e, st, 1)
	zero := e.int(0)
	s.copy(e, st, zero, nil, nil, nil)
	e.add(&ir.Op{Code: ir.OpCommit, Args: []*ir.Value{st.ring, zero}})
}

// fetch waits for such a copy and reads it.
func (s *stager) fetch(e *editor, st *staged) {
	s.await(e, st)
	s.read(e, st, e.int(0))
}

// readIn reads such a copy in each iteration of the loop o.
func (s *stager) readIn(st *staged, o *ir.Op) {
	in := &editor{k: s.k, pos: st.load.Pos}
	s.read(in, st, in.int(0))
	o.Regions[0].Ops = slices.Insert(o.Regions[0].Ops, 0, in.ops...)
}

func (s *stager) await(e *editor, st *staged) {
	o := &ir.Op{Code: ir.OpWait, Args: []*ir.Value{st.ring, e.int(0)}}
	o.Pending = commitsSince(e.ops, st.ring)
	e.add(o)
}

// commitsSince counts the groups committed after the ring's own.
func commitsSince(ops []*ir.Op, ring *ir.Value) int {
	n := 0
	for i := len(ops) - 1; i >= 0; i-- {
		if ops[i].Code != ir.OpCommit {
			continue
		}
		if slices.Contains(ops[i].Args, ring) {
			break
		}
		n++
	}
	return n
}

// keptShared tells whether a tile loaded before a loop is read from shared memory
// in each iteration: when registers would not hold it beside the accumulators.
func (s *stager) keptShared(st *staged, o *ir.Op) bool {
	if o.Code != ir.OpFor {
		return false
	}
	warps := max(s.k.Hints.Warps, 1)
	regs := registersOf(st.load.Result().Type, warps)
	for _, a := range o.Args[3:] {
		regs += registersOf(a.Type, warps)
	}
	for _, b := range o.Regions[0].Ops {
		if b.Code == ir.OpDot && !slices.Contains(o.Regions[0].Params, b.Args[2]) {
			regs += registersOf(b.Result().Type, warps)
		}
	}
	return regs > mostTileRegisters
}

// mostTileRegisters is how many of the 255 registers of a thread tiles may take;
// the rest is for addresses, fragments on their way and temporaries.
const mostTileRegisters = 176

// registersOf is how many registers a tile takes in each thread when it is spread
// over all warps.
func registersOf(t ir.Type, warps int) int {
	return t.Elements() * t.Elem.Bits() / 32 / (32 * warps)
}

func (s *stager) newRing(e *editor, st *staged, depth int) *ir.Value {
	t := st.load.Result().Type
	of := ir.RingOf(depth, t.Elem, t.Shape...)
	of.Shared = s.tensor[st.load]
	o := &ir.Op{Code: ir.OpRing, Pos: st.load.Pos}
	o.Threads = s.threads[st.load]
	ring := e.one(o, of)
	ring.Name = st.load.Result().Name
	return ring
}

// copy starts filling a ring's buffer; subst and within say how the load's
// operands change when it runs ahead.
func (s *stager) copy(e *editor, st *staged, slot, pred *ir.Value, subst map[*ir.Value]*ir.Value, within map[*ir.Op]bool) {
	l := st.load
	o := &ir.Op{Code: ir.OpCopy, Pos: l.Pos}
	o.Dims = l.Dims
	for _, a := range l.Args {
		o.Args = append(o.Args, e.repeat(a, subst, within))
	}
	at := 1 + len(l.Indices())
	o.Args = slices.Insert(o.Args, at, st.filled(), slot)
	const limitSlot, predSlot = 4, 7
	if l.Operand("limit") != nil {
		o.Given |= 1 << limitSlot
	}
	if pred != nil {
		o.Args = append(o.Args, pred)
		o.Given |= 1 << predSlot
	}
	e.add(o)
}

// filled is the ring that the copy fills.
func (st *staged) filled() *ir.Value {
	if st.landing != nil {
		return st.landing
	}
	return st.ring
}

// read reads a ring's buffer in the load's place and repeats the transposes. The
// values keep their identity, so uses need no change.
func (s *stager) read(e *editor, st *staged, slot *ir.Value) {
	r := &ir.Op{Code: ir.OpRead, Args: []*ir.Value{st.ring, slot}, Pos: st.load.Pos, Results: st.load.Results}
	if st.landing != nil {
		r.Results = nil
		t := e.one(r, ir.TileOf(st.ring.Type.Elem, st.ring.Type.Shape...))
		r = &ir.Op{Code: ir.OpTranspose, Args: []*ir.Value{t}, Pos: st.load.Pos, Results: st.load.Results}
		r.Perm = []int{1, 0}
	}
	r.Results[0].Def = r
	e.ops = append(e.ops, r)
	e.ops = append(e.ops, st.chain...)
}
