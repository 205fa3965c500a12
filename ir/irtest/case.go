package irtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/eval"
)

// Case is a random program with arguments, to be run in two ways whose results must
// agree. It computes only with values that are the same however it is run: results of
// approximated functions, and of sums in another order, go straight to an output, which
// says how far off they may be.
type Case struct {
	Prog *ir.Program
	Args []eval.Arg  // for each parameter; outputs are poisoned
	Tol  []Tolerance // for each parameter
	Skew int         // bytes that tensors may lie off an allocation's start
}

// Tolerance is how far an element may be off: Rel times the wanted number, plus Abs.
// Zero means the same number; any NaN stands for any.
type Tolerance struct{ Rel, Abs float64 }

// Allows tells whether got will do where want is right.
func (t Tolerance) Allows(want, got float64) bool {
	switch {
	case math.IsNaN(want) || math.IsNaN(got):
		return math.IsNaN(want) && math.IsNaN(got)
	case want == got:
		return t != Tolerance{} || math.Signbit(want) == math.Signbit(got)
	case math.IsInf(want, 0) || math.IsInf(got, 0):
		return false
	}
	return math.Abs(want-got) <= t.Rel*math.Abs(want)+t.Abs
}

// contents says what is known of a tile's elements.
type contents uint8

const (
	anything contents = iota
	counts            // integers of a magnitude that sums of few tiles keep exact in f32
	small             // integers from -2 to 2
	positive          // from 0.5 to 2
)

// tile is a value with what is known of it.
type tile struct {
	*ir.Value
	holds contents
}

// maker draws a case.
type maker struct {
	*rand.Rand
	b      *ir.Builder
	c      *Case
	rows   int // extents of most tiles
	cols   int
	tiles  int // extent of the tile space's first axis
	at     *ir.Value
	counts []int       // extents of all axes
	ats    []*ir.Value // their variables
	n      *ir.Value   // a scalar parameter
	pool   []tile      // in scope
	loops  []*ir.Value // indices of the loops we are in
	depth  int
	inputs []input
	names  int
	lacks  []ir.Elem
}

// input is a view that is only read.
type input struct {
	view  *ir.Value
	sizes []int
	holds contents
}

// extents are awkward as often as not.
var extents = []int{1, 2, 3, 5, 8, 16, 16, 24, 32, 32, 48, 64, 64, 80, 96, 112, 128, 176}

// NewCase draws a case that uses no elements of the types it shall lack; everything
// about it follows from the arguments.
func NewCase(seed uint64, lacks ...ir.Elem) (*Case, error) {
	m := &maker{Rand: rand.New(rand.NewPCG(seed, 1)), b: ir.NewKernel("random"), c: &Case{}, lacks: lacks}
	if m.chance(6) {
		m.c.Skew = 8
	}
	m.rows, m.cols = pick(m, extents), pick(m, extents)
	for m.rows*m.cols > 4096 {
		m.rows, m.cols = pick(m, extents), pick(m, extents)
	}
	m.n = m.scalar("n", ir.I32, eval.Int(int64(m.IntN(7)-1)))
	m.space()
	m.b.SetHints(ir.Hints{Warps: pick(m, []int{1, 1, 2, 2, 4, 4, 8, 8, 16, 32}), Stages: m.IntN(4)})
	m.ops(4 + m.IntN(10))
	for range 3 {
		if len(m.pool) > 0 {
			m.output(m.pool[len(m.pool)-1-m.IntN(min(4, len(m.pool)))].Value, Tolerance{})
		}
	}
	k, err := m.b.Finish()
	if err != nil {
		return nil, fmt.Errorf("seed %d: %w", seed, err)
	}
	m.c.Prog = ir.Single(k)
	return m.c, nil
}

// space draws one to three axes of the tile space, and the order of its tiles.
func (m *maker) space() {
	for i := range 1 + m.IntN(5)/2 {
		n := 1 + m.IntN(3)
		count := ir.Lit(int64(n))
		switch e := pick(m, []ir.Elem{ir.I32, ir.I64}); m.IntN(5) {
		case 0:
			name := m.name("count")
			m.scalar(name, e, eval.Int(int64(n)))
			count = ir.Sym(name)
		case 1:
			name, by := m.name("size"), 1+m.IntN(9)
			m.scalar(name, e, eval.Int(int64(n*by-m.IntN(by))))
			count = ir.Sym(name).CeilDiv(ir.Lit(int64(by)))
		case 2:
			name := m.name("size")
			m.scalar(name, e, eval.Int(int64(2*n+7)))
			count = ir.MaxOf(ir.MinOf(ir.Sym(name).Minus(ir.Lit(7)), ir.Sym(name)).Times(ir.Lit(3)).Div(ir.Lit(6)), ir.Lit(1))
		}
		m.counts = append(m.counts, n)
		m.ats = append(m.ats, m.b.Over(fmt.Sprintf("tile%d", i), count))
	}
	var o ir.Order
	if len(m.counts) > 1 && m.chance(2) {
		switch n := m.IntN(4); n {
		case 2:
			o.Hilbert = n
		default:
			o.Group = n
		}
	}
	if m.chance(3) {
		o.Reversed = []int{m.IntN(len(m.counts))}
	}
	m.b.SetOrder(o)
	m.tiles, m.at = m.counts[0], m.ats[0]
}

func pick[T any](m *maker, xs []T) T { return xs[m.IntN(len(xs))] }

// elem draws an element type.
func (m *maker) elem(from []ir.Elem) ir.Elem {
	for {
		if e := pick(m, from); !slices.Contains(m.lacks, e) {
			return e
		}
	}
}

// operands draws the types of a dot.
func (m *maker) operands() [3]ir.Elem {
	for {
		if t := pick(m, dots); !slices.Contains(m.lacks, t[0]) {
			return t
		}
	}
}

// chance is true once in n.
func (m *maker) chance(n int) bool { return m.IntN(n) == 0 }

func (m *maker) name(prefix string) string {
	m.names++
	return fmt.Sprintf("%s%d", prefix, m.names)
}

func (m *maker) param(v *ir.Value, a eval.Arg, t Tolerance) *ir.Value {
	m.c.Args = append(m.c.Args, a)
	m.c.Tol = append(m.c.Tol, t)
	return v
}

func (m *maker) scalar(name string, e ir.Elem, a eval.Arg) *ir.Value {
	return m.param(m.b.Scalar(name, e), a, Tolerance{})
}

// argument draws a scalar parameter of any type.
func (m *maker) argument(e ir.Elem) tile {
	a := eval.Float(m.NormFloat64())
	if e.IsInt() {
		a = eval.Int(int64(m.Uint64()) >> (64 - e.Bits()))
	}
	if e == ir.I1 {
		a = eval.Int(int64(m.IntN(2)))
	}
	return m.keep(m.scalar(m.name("arg"), e, a), anything)
}

// keep makes a value available to later operations.
func (m *maker) keep(v *ir.Value, holds contents) tile {
	t := tile{v, holds}
	m.pool = append(m.pool, t)
	return t
}

// tensor draws memory for a view of the given sizes: rows may be padded, and
// dimensions may lie in another order. The view assumes of it what is true.
func (m *maker) tensor(name string, e ir.Elem, sizes []int) (*ir.Value, *eval.Tensor) {
	order := m.Perm(len(sizes))
	if !m.chance(3) {
		for i := range order {
			order[i] = len(order) - 1 - i
		}
	}
	t := &eval.Tensor{Elem: e, Shape: sizes, Strides: make([]int, len(sizes))}
	room := 1
	for i, d := range order {
		t.Strides[d] = room
		room *= max(sizes[d], 1)
		if i == 0 && m.chance(3) {
			room += pick(m, []int{1, 3, 8, 16})
		}
	}
	t.Data = make([]byte, (room*e.MemoryBits()+7)/8)
	dims := make([]any, len(sizes))
	for d, n := range sizes {
		dims[d] = m.name("D")
		if m.chance(3) && n > 0 {
			dims[d] = n
		}
	}
	v := m.b.View(name, e, dims...)
	m.assume(v, t)
	return v, t
}

// assume states some of what is true of a view.
func (m *maker) assume(v *ir.Value, t *eval.Tensor) {
	for d, s := range t.Strides {
		if m.chance(4) {
			continue
		}
		if s == 1 {
			m.b.AssumeStride(v, d, 1)
		} else if n := s & -s; n > 1 {
			m.b.AssumeStrideMultiple(v, d, int64(n))
		}
		if n := t.Shape[d]; n > 0 && m.chance(2) {
			m.b.AssumeDimMultiple(v, d, int64(n&-n))
		}
	}
	switch {
	case m.chance(4):
	case m.c.Skew > 0:
		m.b.AssumePointer(v, 8)
	default:
		m.b.AssumePointer(v, 16)
	}
}

// source returns a view to read tiles of the given type from, new or not.
func (m *maker) source(t ir.Type, holds contents) input {
	for _, in := range m.inputs {
		if in.view.Type.Elem == t.Elem && in.holds == holds && in.view.Type.Rank() >= t.Rank() && m.chance(2) {
			return in
		}
	}
	sizes := make([]int, max(t.Rank(), 1+m.IntN(3)))
	for d := range sizes {
		sizes[d] = 1 + m.IntN(4)
	}
	for i, n := range t.Shape {
		d := len(sizes) - t.Rank() + i
		sizes[d] = n
		if i == 0 {
			sizes[d] *= m.tiles
		}
		if m.chance(2) {
			sizes[d] = max(sizes[d]-m.IntN(n+1), 0)
		}
	}
	v, x := m.tensor(m.name("in"), t.Elem, sizes)
	m.fill(x, holds)
	m.param(v, eval.View(x), Tolerance{})
	in := input{v, sizes, holds}
	m.inputs = append(m.inputs, in)
	return in
}

// fill draws all of a tensor's memory, also what no element covers.
func (m *maker) fill(x *eval.Tensor, holds contents) {
	all := &eval.Tensor{Elem: x.Elem, Shape: []int{len(x.Data) * 8 / x.Elem.MemoryBits()}, Strides: []int{1}, Data: x.Data}
	for i := range all.Shape[0] {
		switch {
		case holds == small:
			all.SetFloat(i, float64(m.IntN(5)-2))
		case holds == positive:
			all.SetFloat(i, 0.5+1.5*m.Float64())
		case x.Elem == ir.I1:
			x.Data[i] = byte(m.IntN(2))
		case x.Elem.IsFloat() && m.chance(12):
			all.SetFloat(i, pick(m, []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), 1e-40, -3e38, 70000}))
		case x.Elem.IsFloat():
			all.SetFloat(i, m.NormFloat64()*math.Exp2(float64(m.IntN(12)-4)))
		default:
			for b := range x.Elem.MemoryBits() / 8 {
				x.Data[i*x.Elem.MemoryBits()/8+b] = byte(m.Uint32())
			}
		}
	}
}

// output stores a value for every tile of the space, poisoned where it is not stored.
func (m *maker) output(v *ir.Value, tol Tolerance) {
	if len(m.c.Args) >= ir.MaxParams-2 {
		return
	}
	t := v.Type
	sizes := append(slices.Clone(m.counts), t.Shape...)
	if t.Elem.MemoryBits() < 8 {
		v = m.b.Cast(v, map[bool]ir.Elem{true: ir.F32, false: ir.I32}[t.Elem.IsFloat()])
		t = v.Type
	}
	for d := len(m.counts); d < len(sizes); d++ {
		if m.chance(4) {
			sizes[d] = max(sizes[d]-m.IntN(3), 1)
		}
	}
	view, x := m.tensor(m.name("out"), t.Elem, sizes)
	x.Poison()
	m.param(view, eval.View(x), tol)
	at := slices.Clone(m.ats)
	var a ir.Access
	for d := range t.Shape {
		at = append(at, m.b.Int(0))
		a.Dims = append(a.Dims, d+len(m.counts))
	}
	if m.chance(4) {
		a.Mask = m.get(ir.I1, t.Shape, anything).Value
	}
	m.b.Store(view, at, v, a)
}
