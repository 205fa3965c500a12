package codegen

import (
	"reflect"
	"slices"

	"github.com/kgen-dev/kgen/ir"
)

// Loops over the same range often compute the same tiles: those of a row for its mean,
// for its variance and for what is written. Where they are loaded, and a ring as deep as
// the range is long fits into shared memory, the first loop leaves them there and the
// others read them, so that memory is read once. In a cluster each block may do a part of
// it (see divide).

// keep looks for such loops among a region's own; one set of them is served.
func (s *stager) keep(r *ir.Region, m *machine) {
	loops := slices.DeleteFunc(slices.Clone(r.Ops), func(o *ir.Op) bool { return o.Code != ir.OpFor })
	for i, first := range loops {
		trips := s.mostTrips(first)
		if trips < 2 {
			continue
		}
		k := &kept{stager: s, first: first, twins: map[*ir.Value]*ir.Value{}}
		for _, o := range loops[i+1:] {
			if s.sameRange(first, o) {
				k.compare(o)
			}
		}
		k.narrow()
		if len(k.tiles) == 0 {
			continue
		}
		blocks := k.divide(r, loops, m)
		if each := (trips + blocks - 1) / blocks; each*blocks <= ir.MaxDepth && each*k.bytes()+k.scratch()+k.exchange(r, blocks) <= m.shared {
			k.assign(r, blocks)
			k.apply(r, each, blocks)
			return
		}
	}
}

// mostTrips is how often a loop runs at most; 0 where that is not known.
func (s *stager) mostTrips(o *ir.Op) int {
	lo, hi, step := o.Args[0], o.Args[1], o.Args[2]
	if !isConst(lo) || !isConst(step) || step.Def.Int < 1 || hi.Def == nil {
		return 0
	}
	var most int64
	switch hi.Def.Code {
	case ir.OpConst:
		most = hi.Def.Int
	case ir.OpDim:
		dim := hi.Def.Args[0].Type.Dims[hi.Def.Axis]
		for _, a := range s.k.Assume {
			if a.Kind == ir.AssumeDimRange && dim.Sym != "" && a.Param.Type.Dims[a.Dim].Sym == dim.Sym {
				most = a.Hi
			}
		}
	}
	return int(max(0, most-lo.Def.Int+step.Def.Int-1) / step.Def.Int)
}

func (s *stager) sameRange(x, y *ir.Op) bool {
	for i := range 3 {
		if x.Args[i] != y.Args[i] && !(isConst(x.Args[i]) && isConst(y.Args[i]) && x.Args[i].Def.Int == y.Args[i].Def.Int) {
			return false
		}
	}
	return true
}

// kept is a loop and the tiles of it that later loops compute again.
type kept struct {
	*stager
	first *ir.Op
	twins map[*ir.Value]*ir.Value // values of later loops -> those of the first that are the same
	tiles []*ir.Value             // of the first, to keep
	again []*ir.Op                // what computes them in later loops
	loops []*ir.Op                // those later loops
}

// compare finds what a later loop computes as the first one does, and of that the tiles,
// made of loads, that the rest of its body uses.
func (k *kept) compare(o *ir.Op) {
	in := k.first.Regions[0]
	k.twins[o.Regions[0].Params[0]] = in.Params[0]
	loaded := map[*ir.Value]bool{}
	for _, x := range o.Regions[0].Ops {
		if len(x.Results) != 1 || len(x.Regions) > 0 || !x.Code.IsPure() && (x.Code != ir.OpLoad || k.writes(x.View())) {
			continue
		}
		if y := k.twin(x, in); y != nil {
			k.twins[x.Result()] = y.Result()
			loaded[x.Result()] = x.Code == ir.OpLoad || slices.ContainsFunc(x.Args, func(v *ir.Value) bool { return loaded[v] })
		}
	}
	for _, x := range o.Regions[0].Ops {
		if len(x.Results) != 1 || !loaded[x.Result()] || !x.Result().Type.IsTile() {
			continue
		}
		if !slices.ContainsFunc(k.users[x.Result()], func(u *ir.Op) bool { return len(u.Results) != 1 || k.twins[u.Result()] == nil }) {
			continue
		}
		if v := k.twins[x.Result()]; !slices.Contains(k.tiles, v) {
			k.tiles = append(k.tiles, v)
		}
		k.again = append(k.again, x)
		if !slices.Contains(k.loops, o) {
			k.loops = append(k.loops, o)
		}
	}
}

// twin is the operation of a region that computes what x does; nil if there is none.
func (k *kept) twin(x *ir.Op, in *ir.Region) *ir.Op {
	i := slices.IndexFunc(in.Ops, func(y *ir.Op) bool {
		return x.Code == y.Code && x.Given == y.Given && len(y.Results) == 1 && x.Result().Type.Equal(y.Result().Type) &&
			reflect.DeepEqual(x.Attrs, y.Attrs) &&
			slices.EqualFunc(x.Args, y.Args, func(a, b *ir.Value) bool { return a == b || k.twins[a] == b })
	})
	if i < 0 {
		return nil
	}
	return in.Ops[i]
}

// narrow keeps what the tiles are loaded from where that takes less space.
func (k *kept) narrow() {
	n := *k
	n.tiles, n.again = nil, nil
	var walk func(o *ir.Op)
	walk = func(o *ir.Op) {
		if o == nil || k.twins[o.Result()] == nil || slices.Contains(n.again, o) {
			return
		}
		if o.Code != ir.OpLoad {
			for _, v := range o.Args {
				walk(v.Def)
			}
			return
		}
		n.again = append(n.again, o)
		if v := k.twins[o.Result()]; !slices.Contains(n.tiles, v) {
			n.tiles = append(n.tiles, v)
		}
	}
	for _, o := range k.again {
		walk(o)
	}
	if n.bytes() < k.bytes() {
		*k = n
	}
}

// bytes is what one round's tiles take.
func (k *kept) bytes() int {
	n := 0
	for _, v := range k.tiles {
		n += v.Type.Elements() * bytesOf(v.Type.Elem)
	}
	return n
}

// scratch is what reductions of the tiles' rows over the warps take, one at a time.
func (k *kept) scratch() int {
	n := 0
	for _, v := range k.tiles {
		n = max(n, v.Type.Elements()/v.Type.Shape[v.Type.Rank()-1]*max(k.k.Hints.Warps, 1)*wordBytes(v.Type.Elem))
	}
	return n
}

// apply makes the first loop write the tiles into rings, which hold as many in each block,
// and the later ones read them.
func (k *kept) apply(r *ir.Region, each, blocks int) {
	rings := map[*ir.Value]*ir.Value{}
	e := &editor{k: k.k, pos: k.first.Pos}
	for _, v := range k.tiles {
		ring := e.one(&ir.Op{Code: ir.OpRing, Pos: v.Def.Pos}, ir.RingOf(each*blocks, v.Type.Elem, v.Type.Shape...))
		ring.Name = v.Name
		if blocks > 1 {
			ring.Def.Blocks = blocks
		}
		rings[v] = ring
	}
	it := k.number(e, k.first)
	body := k.first.Regions[0]
	for _, v := range k.tiles {
		at := slices.Index(body.Ops, v.Def) + 1
		body.Ops = slices.Insert(body.Ops, at, &ir.Op{Code: ir.OpWrite, Args: []*ir.Value{rings[v], it, v}, Pos: v.Def.Pos})
	}
	for _, o := range k.loops {
		it := k.number(e, o)
		for _, x := range k.again {
			if at := slices.Index(o.Regions[0].Ops, x); at >= 0 {
				read := &ir.Op{Code: ir.OpRead, Args: []*ir.Value{rings[k.twins[x.Result()]], it}, Results: x.Results, Pos: x.Pos}
				read.Result().Def = read
				o.Regions[0].Ops[at] = read
			}
		}
	}
	at := slices.Index(r.Ops, k.first)
	r.Ops = slices.Insert(r.Ops, at+1, &ir.Op{Code: ir.OpBarrier, Pos: k.first.Pos})
	r.Ops = slices.Insert(r.Ops, at, e.ops...)
}

// number makes a loop carry the number of its round.
func (k *kept) number(outer *editor, o *ir.Op) *ir.Value {
	body := o.Regions[0]
	it := k.k.NewValue("it", scalarI32)
	yield := body.Yield()
	in := &editor{k: k.k, pos: o.Pos}
	yield.Args = append(yield.Args, in.plus(it, 1))
	ops := slices.Insert(body.Ops, slices.Index(body.Ops, yield), in.ops...)
	k.carry(o, outer, ops, it)
	return it
}
