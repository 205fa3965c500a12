package simttest

import (
	"fmt"

	"github.com/kgen-dev/kgen/codegen/simt"
)

func (s *samples) memory() {
	types := []simt.Type{simt.I16, simt.I32, simt.I64, simt.F16, simt.BF16x2, simt.F32, simt.F64, simt.Ptr}
	for _, t := range types {
		for _, n := range []int{1, 2, 4} {
			if n*t.Bits() > 128 {
				continue
			}
			s.add(fmt.Sprintf("access_%s_%d", t, n), func(g *sample) {
				x := g.LdGlobal(t, n, g.at, simt.Access{Cache: simt.CacheNC})
				g.StShared(g.sh, x, simt.Access{})
				g.Bar(g.Const32(0), 0)
				x = g.LdShared(t, n, g.sh, simt.Access{})
				g.StGlobal(g.at, x, simt.Access{Offset: 128})
				g.Guarded(g.load(simt.Pred), func() {
					x = g.LdGlobal(t, n, g.at, simt.Access{Offset: 32})
					y := g.LdGlobal(t, n, g.at, simt.Access{Offset: 48, Default: x})
					g.StGlobal(g.at, y, simt.Access{Offset: 144})
				})
				g.GuardedNot(g.load(simt.Pred), func() { g.StGlobal(g.at, x, simt.Access{Offset: 160}) })
			})
		}
	}
	s.add("bytes", func(g *sample) {
		for _, m := range []simt.Mem{simt.U8, simt.S8} {
			for _, n := range []int{1, 4} {
				x := g.LdMem(simt.Global, simt.I32, m, n, g.at, simt.Access{})
				g.StMem(simt.Shared, simt.U8, g.sh, x, simt.Access{})
				g.StMem(simt.Global, simt.U8, g.at, g.LdMem(simt.Shared, simt.I32, m, n, g.sh, simt.Access{}), simt.Access{Offset: 128})
			}
		}
	})
	s.add("hints", func(g *sample) {
		for _, c := range []simt.Cache{simt.CacheCG, simt.CacheCS, simt.CacheNC | simt.L2Prefetch128, simt.CacheNC | simt.L1NoAllocate | simt.L2Prefetch64,
			simt.L1EvictFirst} {
			g.store(g.LdGlobal(simt.I32, 4, g.at, simt.Access{Cache: c})[2])
		}
		g.StGlobal(g.at, g.loads(simt.I32, 1), simt.Access{Cache: simt.CacheCS, Offset: 128})
		g.StGlobal(g.at, g.loads(simt.I32, 1), simt.Access{Cache: simt.L1NoAllocate, Offset: 128})
		g.store(g.LdGlobal(simt.I32, 1, g.at, simt.Access{Flags: simt.Volatile})[0])
		g.Prefetch(g.at, simt.Access{Offset: 64})
	})
	s.atomics()
}

func (s *samples) atomics() {
	ops := []simt.AtomOp{simt.AtomAdd, simt.AtomMin, simt.AtomMax, simt.AtomMinU, simt.AtomMaxU, simt.AtomAnd, simt.AtomOr, simt.AtomXor, simt.AtomExch}
	for _, t := range intTypes {
		for _, op := range ops {
			s.add(fmt.Sprintf("atom_%s_%s", op, t), func(g *sample) {
				g.store(g.Atom(op, simt.Global, simt.ScopeGPU, g.at, g.loads(t, 1), simt.Access{}))
				g.StShared(g.sh, g.loads(t, 1), simt.Access{})
				g.store(g.Atom(op, simt.Shared, simt.ScopeCTA, g.sh, g.loads(t, 1), simt.Access{}))
				if op != simt.AtomExch {
					g.Red(op, simt.Global, simt.ScopeSys, g.at, g.load(t), simt.Access{Offset: 8})
				}
				g.Guarded(g.load(simt.Pred), func() {
					g.store(g.Atom(op, simt.Global, simt.ScopeGPU, g.at, g.loads(t, 1), simt.Access{}))
				})
			})
		}
		s.add("atom_cas_"+t.String(), func(g *sample) {
			g.store(g.Atom(simt.AtomCAS, simt.Global, simt.ScopeGPU, g.at, g.loads(t, 2), simt.Access{}))
		})
	}
	s.add("atom_inc", func(g *sample) {
		g.store(g.Atom(simt.AtomInc, simt.Global, simt.ScopeGPU, g.at, g.loads(simt.I32, 1), simt.Access{}))
		g.Red(simt.AtomDec, simt.Global, simt.ScopeGPU, g.at, g.load(simt.I32), simt.Access{})
	})
	for _, t := range []simt.Type{simt.F32, simt.F64, simt.F16x2, simt.BF16x2} {
		s.add("atom_add_"+t.String(), func(g *sample) {
			g.store(g.Atom(simt.AtomAdd, simt.Global, simt.ScopeGPU, g.at, g.loads(t, 1), simt.Access{}))
			g.Red(simt.AtomAdd, simt.Global, simt.ScopeGPU, g.at, g.load(t), simt.Access{})
		})
	}
}

func (s *samples) copies() {
	s.add("cp_async", func(g *sample) {
		part, p := g.And(g.load(simt.I32), g.Const32(3)), g.load(simt.Pred)
		x := g.loads(simt.I32, 4)
		slot := 0 // each copy has its own kilobyte
		into := func() int {
			g.StShared(g.sh, x, simt.Access{Offset: slot * 1024})
			slot++
			return (slot - 1) * 1024
		}
		for _, n := range []int{4, 8, 16} {
			g.CpAsync(g.sh, g.at, n, into(), nil, simt.Access{Offset: 16})
			g.CpAsync(g.sh, g.at, n, into(), part, simt.Access{Offset: 16})
			g.Guarded(p, func() { g.CpAsync(g.sh, g.at, n, into(), part, simt.Access{}) })
		}
		g.CpAsync(g.sh, g.at, 16, into(), nil, simt.Access{Cache: simt.CacheCG | simt.L2Prefetch128})
		g.CpAsyncCommit()
		g.CpAsyncWait(0)
		for i := range slot {
			g.store(g.LdShared(simt.I32, 2, g.sh, simt.Access{Offset: 1024 * i})[1])
		}
	})
	for _, n := range []int{1, 2, 4} {
		for _, trans := range []bool{false, true} {
			s.add(fmt.Sprintf("ldmatrix_x%d_%t", n, trans), func(g *sample) {
				x := g.loads(simt.I32, 4)
				g.StShared(g.sh, x, simt.Access{})
				g.StShared(g.sh, x, simt.Access{Offset: 1024})
				g.Bar(g.Const32(0), 0)
				g.store(g.LdMatrix(simt.I32, n, trans, g.sh, simt.Access{Offset: 64})...)
			})
			s.add(fmt.Sprintf("stmatrix_x%d_%t", n, trans), func(g *sample) {
				g.StShared(g.sh, g.loads(simt.I32, 4), simt.Access{})
				g.Bar(g.Const32(0), 0)
				g.StMatrix(trans, g.sh, g.loads(simt.F16x2, n), simt.Access{})
				g.Bar(g.Const32(0), 0)
				g.store(g.LdShared(simt.I32, 1, g.sh, simt.Access{})...)
			})
		}
	}
}

func (s *samples) tensor() {
	for m := range simt.Mma(simt.NumMmas) {
		i := m.Info()
		s.add(fmt.Sprintf("mma_%d", m), func(g *sample) {
			a, b := g.loads(i.AB, i.A), g.loads(i.AB, i.B)
			c := g.loads(i.Acc, i.C)
			d := g.Mma(m, a, b, c)
			g.store(g.Mma(m, a, b, d)...)
			zero := make([]*simt.Value, i.C)
			for j := range zero {
				zero[j] = g.Const(i.Acc, 0)
			}
			g.store(g.Mma(m, a, b, zero)...)
		})
	}
}

func (s *samples) order() {
	s.add("arrive", func(g *sample) {
		first := g.Cmp(simt.LT, g.Special(simt.TidX), g.Const32(32))
		g.If(first, func() []*simt.Value { g.BarArrive(g.Const32(2), 64); return nil }, func() []*simt.Value {
			g.Bar(g.Const32(2), 64)
			return nil
		})
	})
	s.add("cluster", func(g *sample) {
		g.k.Cluster = 2
		rank := g.Special(simt.ClusterCtaRank)
		g.at = g.Add(g.at, g.MulWideU(rank, g.Const32(8))) // each block has a place of its own
		g.store(rank)
	})
	s.add("grids", func(g *sample) {
		g.GridLaunch()
		g.GridWait()
		g.store(g.Const32(1))
	})
	s.add("order", func(g *sample) {
		g.Bar(g.Const32(0), 0)
		g.Bar(g.Const32(1), 64)
		g.Bar(g.Add(g.Special(simt.CtaX), g.Const32(3)), 64)
		g.WarpSync()
		for _, c := range []simt.Scope{simt.ScopeCTA, simt.ScopeGPU, simt.ScopeSys} {
			g.Fence(c)
		}
	})
	s.add("control", func(g *sample) {
		n := g.And(g.load(simt.I32), g.Const32(31))
		step := g.Or(g.And(g.load(simt.I32), g.Const32(3)), g.Const32(1))
		x := g.For(g.Const32(0), n, step, []*simt.Value{n, g.Const32(3)}, func(i *simt.Value, c []*simt.Value) []*simt.Value {
			return []*simt.Value{c[1], g.Add(c[0], i)}
		})
		x = g.If(g.Cmp(simt.LT, x[0], n), func() []*simt.Value { return []*simt.Value{x[1], n} }, func() []*simt.Value {
			return []*simt.Value{g.Mul(n, n), x[0]}
		})
		x = g.Loop(x, func(c []*simt.Value) (*simt.Value, []*simt.Value) {
			return g.Cmp(simt.LT, c[0], c[1]), []*simt.Value{g.Shl(c[0], g.Const32(1)), g.Sub(c[1], g.Const32(1))}
		})
		g.If(g.Cmp(simt.EQ, x[0], g.Const32(7)), func() []*simt.Value { g.Return(); return nil }, nil)
		g.If(g.Cmp(simt.EQ, x[0], g.Const32(-12345)), func() []*simt.Value { g.Trap(); return nil }, nil)
		g.store(x...)
	})
}
