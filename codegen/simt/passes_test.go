package simt

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const (
	inBytes  = 4096
	outBytes = 1024
)

// generator builds random kernels: integer, predicate and f32 arithmetic,
// loops, branches, loads of an input at addresses within it, stores to an
// output.
type generator struct {
	t     *rapid.T
	b     *Builder
	pools map[Type][]*Value
	in    *Value
	out   *Value
	slots int
	depth int
	// uniform leaves out what the counter cannot know: thread numbers and what
	// comes from memory.
	uniform bool
}

// randomKernel builds a kernel without any folding.
func randomKernel(t *rapid.T, uniform bool) *Kernel {
	k := NewKernel("random", 64)
	k.SharedAlign = 128
	b := NewBuilder(k)
	b.raw = true
	g := generator{t: t, b: b, pools: map[Type][]*Value{}, uniform: uniform}
	g.in = b.Param(b.AddParam(Param{Name: "in", Type: Ptr, Align: 16}))
	g.out = b.Param(b.AddParam(Param{Name: "out", Type: Ptr, Align: 16}))
	n := b.Param(b.AddParam(Param{Name: "n", Type: I32}))
	w := b.Param(b.AddParam(Param{Name: "w", Type: I64}))
	g.put(g.thread(), b.Special(CtaX), n, w, b.Const32(0), b.Const32(1), b.Const32(7), b.Const32(64), b.Const32(-1), b.Const64(0),
		b.Const64(3), b.Const64(1<<40), b.ConstF32(0), b.ConstF32(1.5), b.Cmp(LT, g.thread(), n), b.ConstPred(true))
	g.statements(30)
	for _, typ := range []Type{I32, I64, F32, Pred} {
		for range 3 {
			g.store(g.pick(typ))
		}
	}
	return k
}

// thread is the thread's number, or the block's.
func (g *generator) thread() *Value {
	if g.uniform {
		return g.b.Special(CtaX)
	}
	return g.b.Special(TidX)
}

func (g *generator) put(vs ...*Value) {
	for _, v := range vs {
		g.pools[v.Type] = append(g.pools[v.Type], v)
	}
}

func (g *generator) int(from, to int) int { return rapid.IntRange(from, to).Draw(g.t, "n") }

// pick prefers recent values.
func (g *generator) pick(t Type) *Value {
	p := g.pools[t]
	if g.int(0, 2) > 0 {
		return p[len(p)-1-g.int(0, min(3, len(p)-1))]
	}
	return p[g.int(0, len(p)-1)]
}

func (g *generator) integer() Type {
	if g.int(0, 3) == 0 {
		return I64
	}
	return I32
}

func (g *generator) constant(t Type) *Value {
	c := []int64{0, 1, 2, 3, 8, 15, 31, 32, 48, 64, 96, 127, 255, 1024, -1, -2, -64, 1 << 20, 1 << 31}
	return g.b.Const(t, c[g.int(0, len(c)-1)])
}

func (g *generator) store(v *Value) {
	if v.Type == Pred {
		v = g.b.Select(v, g.b.Const32(1), g.b.Const32(2))
	}
	w := v.Type.Bits() / 8
	g.slots = (g.slots + w - 1) / w * w
	if g.slots+w > outBytes {
		return
	}
	g.b.StGlobal(g.out, []*Value{v}, Access{Offset: g.slots})
	g.slots += w
}

func (g *generator) statements(n int) {
	for range n {
		switch g.int(0, 13) {
		case 0, 1, 2, 3:
			g.arithmetic(g.integer())
		case 4, 5, 6:
			g.withConstant(g.integer())
		case 7:
			g.widen()
		case 8:
			g.predicate()
		case 9:
			g.float()
		case 10:
			g.load()
		case 11:
			g.store(g.pick(g.integer()))
		case 12:
			g.loop()
		case 13:
			g.branch()
		}
	}
}

func (g *generator) arithmetic(t Type) {
	b, x, y := g.b, g.pick(t), g.pick(t)
	ops := []func(x, y *Value) *Value{b.Add, b.Add, b.Add, b.Sub, b.Mul, b.And, b.Or, b.Xor, b.Min, b.Max, b.MinU, b.MaxU, b.MulHi, b.MulHiU}
	switch g.int(0, 3) {
	case 0:
		g.put(b.Mad(x, y, g.pick(t)))
	case 1:
		g.put(b.Select(g.pick(Pred), x, y))
	default:
		g.put(ops[g.int(0, len(ops)-1)](x, y))
	}
}

func (g *generator) withConstant(t Type) {
	b, x, c := g.b, g.pick(t), g.constant(t)
	n := b.Const32(g.int(0, t.Bits()-1))
	ops := []func() *Value{
		func() *Value { return b.Add(x, c) }, func() *Value { return b.Add(c, x) }, func() *Value { return b.Sub(x, c) },
		func() *Value { return b.Mul(x, c) }, func() *Value { return b.And(x, c) }, func() *Value { return b.Or(x, c) },
		func() *Value { return b.Xor(x, c) }, func() *Value { return b.Shl(x, n) }, func() *Value { return b.ShrU(x, n) },
		func() *Value { return b.Shr(x, n) }, func() *Value { return b.Mad(x, c, g.pick(t)) }, func() *Value { return b.Not(x) },
		func() *Value { return b.Neg(x) }, func() *Value { return b.DivU(x, b.Const(t, 1<<g.int(0, 20))) },
		func() *Value { return b.RemU(x, b.Const(t, 1<<g.int(0, 20))) }, func() *Value { return b.Div(x, b.Const(t, 3)) },
		func() *Value { return g.lop3(x, c) },
	}
	g.put(ops[g.int(0, len(ops)-1)]())
}

// lop3 is a three-input function of I32, plain exclusive-or otherwise.
func (g *generator) lop3(x, c *Value) *Value {
	b := g.b
	if x.Type != I32 {
		return b.Xor(x, c)
	}
	return b.Lop3(x, c, g.pick(I32), uint8(g.int(0, 255)))
}

func (g *generator) widen() {
	b, x, y := g.b, g.pick(I32), g.pick(I32)
	switch g.int(0, 6) {
	case 0:
		g.put(b.Sext(x, I64))
	case 1:
		g.put(b.Zext(x, I64))
	case 2:
		g.put(b.Trunc(g.pick(I64), I32))
	case 3:
		g.put(b.MulWide(x, y))
	case 4:
		g.put(b.MulWideU(x, g.constant(I32)))
	case 5:
		g.put(b.MadWide(x, g.constant(I32), g.pick(I64)))
	case 6:
		lo, hi := b.Unpack(g.pick(I64), I32)
		g.put(lo, hi, b.Pack(hi, x, I64))
	}
}

func (g *generator) predicate() {
	b, p, q := g.b, g.pick(Pred), g.pick(Pred)
	switch g.int(0, 4) {
	case 0:
		g.put(b.Not(p))
	case 1:
		g.put(b.And(p, q))
	case 2:
		g.put(b.Xor(p, q))
	case 3:
		if g.uniform { // the counter leaves float comparisons alone
			return
		}
		g.put(b.Cmp(Cmp(g.int(0, int(GEU))), g.pick(F32), g.pick(F32)))
	default:
		t := g.integer()
		g.put(b.Cmp(Cmp(g.int(0, int(GEU))), g.pick(t), g.pick(t)))
	}
}

func (g *generator) float() {
	b, x, y := g.b, g.pick(F32), g.pick(F32)
	switch g.int(0, 4) {
	case 0:
		g.put(b.Add(x, y))
	case 1:
		g.put(b.Mul(x, y))
	case 2:
		g.put(b.Fma(x, y, g.pick(F32)))
	case 3:
		g.put(b.Bitcast(g.pick(I32), F32))
	case 4:
		if !g.uniform {
			g.put(b.Bitcast(x, I32))
		}
	}
}

// load reads the input at an address that stays within it.
func (g *generator) load() {
	b := g.b
	i := b.And(g.pick(I32), b.Const32(0xff))
	i = b.Add(b.Mul(i, b.Const32(8)), b.Const32(8*g.int(0, 15)))
	at := b.Add(g.in, b.Zext(i, I64))
	t := []Type{I32, I64, F32}[g.int(0, 2)]
	a := Access{Offset: 8 * g.int(0, 4)}
	if g.int(0, 1) == 0 {
		b.Guarded(g.pick(Pred), func() { g.loaded(b.LdGlobal(t, 1, at, a)) })
		return
	}
	g.loaded(b.LdGlobal(t, 1, at, a))
}

// loaded makes use of what a load gave, or stores it.
func (g *generator) loaded(vs []*Value) {
	if g.uniform {
		g.store(vs[0])
		return
	}
	g.put(vs...)
}

// scope restores the pools after f.
func (g *generator) scope(f func()) {
	g.depth++
	old := map[Type][]*Value{}
	for t, p := range g.pools {
		old[t] = slices.Clone(p)
	}
	f()
	g.pools = old
	g.depth--
}

func (g *generator) loop() {
	if g.depth >= 2 {
		return
	}
	b := g.b
	lo, hi, step := g.int(-3, 4), g.int(0, 8), g.int(1, 3)
	carried := []*Value{g.pick(I32), g.pick(I64), g.pick(F32)}
	stride := g.int(0, 5)
	out := b.For(b.Const32(lo), b.Const32(hi), b.Const32(step), carried, func(i *Value, c []*Value) (next []*Value) {
		g.scope(func() {
			g.put(i)
			g.put(c...)
			g.statements(g.int(1, 8))
			// An address that rises with the counter.
			row := b.Add(i, b.And(g.thread(), b.Const32(15)))
			at := b.MadWide(row, b.Const32(8*stride), b.Add(g.in, b.Const64(256)))
			at = b.Add(at, b.Sext(b.Shl(b.Add(i, b.Const32(g.int(0, 3))), b.Const32(3)), I64))
			g.loaded(b.LdGlobal(I32, 1, at, Access{Offset: 4 * g.int(0, 3)}))
			next = []*Value{g.pick(I32), g.pick(I64), g.pick(F32)}
			if g.int(0, 1) == 0 {
				next[1] = b.Add(c[1], g.constant(I64))
			}
			if g.int(0, 3) == 0 { // a swap
				next[0] = c[0]
			}
		})
		return next
	})
	g.put(out...)
}

func (g *generator) branch() {
	if g.depth >= 2 {
		return
	}
	arm := func() (out []*Value) {
		g.scope(func() {
			g.statements(g.int(0, 5))
			out = []*Value{g.pick(I32), g.pick(F32)}
		})
		return out
	}
	g.put(g.b.If(g.pick(Pred), arm, arm)...)
}

// results runs a kernel on a few threads and returns what they stored.
func results(k *Kernel, seed uint64) ([]byte, error) {
	r := rand.New(rand.NewPCG(seed, 1))
	var all []byte
	for _, tid := range []uint64{0, 5, 33, 63} {
		m := machine{global: make([]byte, inBytes+outBytes), tid: tid, cta: uint64(r.IntN(1 << 16))}
		for i := range m.global {
			m.global[i] = byte(r.Uint32())
		}
		m.params = []uint64{0, inBytes, uint64(r.IntN(70)), r.Uint64()}
		if err := m.run(k); err != nil {
			return nil, err
		}
		all = append(all, m.global[inBytes:]...)
	}
	return all, nil
}

// TestPassesKeepMeaning runs random kernels before and after each pass.
func TestPassesKeepMeaning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := randomKernel(t, false)
		require.NoError(t, Verify(k))
		want, err := results(k, 7)
		require.NoError(t, err)
		for i, p := range Passes {
			before := k.String()
			p.Run(k)
			require.NoError(t, Verify(k), "pass %d, %s, before:\n%s\nafter:\n%s", i, p.Name, before, k)
			got, err := results(k, 7)
			require.NoError(t, err)
			if !bytes.Equal(want, got) {
				t.Fatalf("pass %d, %s, changes the result: %s\nbefore:\n%s\nafter:\n%s", i, p.Name, firstDifference(want, got), before, k)
			}
		}
	})
}

func firstDifference(x, y []byte) string {
	for i := range x {
		if x[i] != y[i] {
			return fmt.Sprintf("byte %d is %#x, want %#x", i, y[i], x[i])
		}
	}
	return "none"
}

// TestPassesSettle runs the passes again: nothing may be left for them.
func TestPassesSettle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := randomKernel(t, false)
		Clean(k)
		Clean(k)
		once := k.String()
		Clean(k)
		require.Equal(t, once, k.String())
	})
}
