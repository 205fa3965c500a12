package simttest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kgen-dev/kgen/codegen/simt"
)

// Operations is a module for each target that brings new instructions: each
// kernel uses one operation in one form, on values that are no constants.
func Operations() []*simt.Module {
	var all []*simt.Module
	for _, m := range []simt.Module{{Arch: "sm_75", SM: 75}, {Arch: "sm_80", SM: 80}, {Arch: "sm_89", SM: 89}, {Arch: "sm_90", SM: 90}} {
		s := samples{m: &m, seen: map[string]bool{}}
		s.all()
		all = append(all, &m)
	}
	// What an older target has is not repeated for a newer one.
	seen := map[string]bool{}
	for _, m := range all {
		kept := m.Kernels[:0]
		for _, k := range m.Kernels {
			if !seen[k.Name] {
				seen[k.Name] = true
				kept = append(kept, k)
			}
		}
		m.Kernels = kept
	}
	return all
}

type samples struct {
	m    *simt.Module
	seen map[string]bool
}

// add builds a kernel; it is dropped where the target lacks an instruction.
func (s *samples) add(name string, f func(g *sample)) {
	k := simt.NewKernel(name, 64)
	k.Shared = 10 << 10
	g := &sample{Builder: simt.NewBuilder(k), k: k}
	g.ptr = g.Param(g.AddParam(simt.Param{Name: "p", Type: simt.Ptr, Align: 16}))
	g.at = g.Add(g.ptr, g.MulWideU(g.Special(simt.TidX), g.Const32(256)))
	g.sh = g.Add(g.SharedBase(), g.Shl(g.Special(simt.TidX), g.Const32(4)))
	f(g)
	ok := k.Cluster <= 1 || s.m.SM >= 90
	simt.Walk(k.Body, func(in *simt.Instr) {
		if _, sm := in.Requires(); sm > s.m.SM {
			ok = false
		}
	})
	if s.seen[name] {
		panic("simttest: two samples named " + name)
	}
	s.seen[name] = true
	if ok {
		s.m.Kernels = append(s.m.Kernels, k)
	}
}

// sample is one kernel: it loads what it needs from p and stores what it gets.
type sample struct {
	*simt.Builder
	k       *simt.Kernel
	ptr, at *simt.Value
	sh      *simt.Value
	in, out int
}

func (g *sample) load(t simt.Type) *simt.Value {
	g.in += 8
	if t == simt.Pred {
		return g.Cmp(simt.NE, g.load(simt.I32), g.Const32(0))
	}
	return g.LdGlobal(t, 1, g.at, simt.Access{Offset: g.in - 8})[0]
}

func (g *sample) loads(t simt.Type, n int) []*simt.Value {
	vs := make([]*simt.Value, n)
	for i := range vs {
		vs[i] = g.load(t)
	}
	return vs
}

func (g *sample) store(vs ...*simt.Value) {
	for _, v := range vs {
		if v.Type == simt.Pred {
			v = g.Select(v, g.Const32(1), g.Const32(2))
		}
		g.StGlobal(g.at, []*simt.Value{v}, simt.Access{Offset: 128 + g.out})
		g.out += 8
	}
}

var (
	intTypes   = []simt.Type{simt.I32, simt.I64}
	floatTypes = []simt.Type{simt.F32, simt.F64, simt.F16, simt.F16x2, simt.BF16, simt.BF16x2}
)

func (s *samples) all() {
	s.integers()
	s.floats()
	s.comparisons()
	s.conversions()
	s.warp()
	s.memory()
	s.copies()
	s.tensor()
	s.order()
}

func (s *samples) integers() {
	type b = *simt.Builder
	type v = *simt.Value
	two := map[string]func(b, v, v) v{
		"add": b.Add, "sub": b.Sub, "mul": b.Mul, "mulhi": b.MulHi, "mulhiu": b.MulHiU, "div": b.Div, "divu": b.DivU, "rem": b.Rem, "remu": b.RemU,
		"min": b.Min, "max": b.Max, "minu": b.MinU, "maxu": b.MaxU, "and": b.And, "or": b.Or, "xor": b.Xor,
	}
	one := map[string]func(b, v) v{"neg": b.Neg, "abs": b.Abs, "not": b.Not, "popc": b.Popc, "clz": b.Clz, "brev": b.Brev}
	shifts := map[string]func(b, v, v) v{"shl": b.Shl, "shr": b.Shr, "shru": b.ShrU}
	for _, t := range intTypes {
		for _, n := range names(two) {
			s.add(fmt.Sprintf("%s_%s", n, t), func(g *sample) { g.store(two[n](g.Builder, g.load(t), g.load(t))) })
		}
		for _, n := range names(one) {
			s.add(fmt.Sprintf("%s_%s", n, t), func(g *sample) { g.store(one[n](g.Builder, g.load(t))) })
		}
		for _, n := range names(shifts) {
			s.add(fmt.Sprintf("%s_%s", n, t), func(g *sample) {
				x := g.load(t)
				g.store(shifts[n](g.Builder, x, g.load(simt.I32)), shifts[n](g.Builder, x, g.Const32(3)))
			})
		}
		s.add("mad_"+t.String(), func(g *sample) { g.store(g.Mad(g.load(t), g.load(t), g.load(t))) })
		s.add("bfe_"+t.String(), func(g *sample) { g.store(g.Bfe(g.load(t), g.Const32(3), g.Const32(5))) })
		s.add("constants_"+t.String(), func(g *sample) {
			x := g.load(t)
			c := func(n int64) *simt.Value { return g.Const(t, n) }
			g.store(g.Sub(c(5), x), g.Add(x, c(-7)), g.Mul(x, c(-3)), g.Xor(x, c(-1<<30)), g.Min(x, c(-2)), g.MaxU(x, c(-2)), g.Div(c(100), x))
		})
	}
	s.add("wide", func(g *sample) {
		x, y := g.load(simt.I32), g.load(simt.I32)
		g.store(g.MulWide(x, y), g.MulWideU(x, y), g.MadWide(x, y, g.load(simt.I64)), g.MadWideU(x, y, g.load(simt.I64)))
	})
	s.add("logic3", func(g *sample) {
		v := g.loads(simt.I32, 3)
		g.store(g.Lop3(v[0], v[1], v[2], 0x6a), g.Shf(v[0], v[1], v[2]), g.Prmt(v[0], v[1], v[2]), g.Prmt(v[0], v[1], g.Const32(0x5410)))
	})
}

func names[T any](m map[string]T) []string {
	return slices.Sorted(maps.Keys(m))
}

func (s *samples) floats() {
	type b = *simt.Builder
	type v = *simt.Value
	two := map[string]func(b, v, v) v{"add": b.Add, "sub": b.Sub, "mul": b.Mul, "min": b.Min, "max": b.Max}
	for _, t := range floatTypes {
		for _, n := range names(two) {
			s.add(fmt.Sprintf("%s_%s", n, t), func(g *sample) { g.store(two[n](g.Builder, g.load(t), g.load(t))) })
		}
		s.add("fma_"+t.String(), func(g *sample) { g.store(g.Fma(g.load(t), g.load(t), g.load(t))) })
		s.add("neg_"+t.String(), func(g *sample) { g.store(g.Neg(g.load(t)), g.Abs(g.load(t))) })
		s.add("constant_"+t.String(), func(g *sample) {
			g.store(g.Fma(g.load(t), g.Const(t, 0x3c003c00), g.Const(t, 0x40004000)), g.Const(t, 0x3c003c00))
		})
		if t != simt.F64 {
			s.add("nan_"+t.String(), func(g *sample) { g.store(g.MinNaN(g.load(t), g.load(t)), g.MaxNaN(g.load(t), g.load(t))) })
			s.add("ex2_"+t.String(), func(g *sample) { g.store(g.Ex2(g.load(t))) })
			s.add("tanh_"+t.String(), func(g *sample) { g.store(g.Tanh(g.load(t))) })
		}
		s.add("select_"+t.String(), func(g *sample) { g.store(g.Select(g.load(simt.Pred), g.load(t), g.load(t))) })
	}
	for _, t := range []simt.Type{simt.F32, simt.F64} {
		s.add("exact_"+t.String(), func(g *sample) {
			g.store(g.Div(g.load(t), g.load(t)), g.Rcp(g.load(t)), g.Sqrt(g.load(t)))
		})
	}
	s.add("approximate", func(g *sample) {
		x := g.load(simt.F32)
		g.store(g.DivApprox(x, g.load(simt.F32)), g.RcpApprox(x), g.SqrtApprox(x), g.Rsqrt(x), g.Lg2(x), g.Sin(x), g.Cos(x))
	})
}

func (s *samples) comparisons() {
	for _, t := range []simt.Type{simt.I32, simt.I64, simt.Ptr, simt.F32, simt.F64, simt.F16, simt.BF16} {
		s.add("cmp_"+t.String(), func(g *sample) {
			x, y := g.load(t), g.load(t)
			for c := simt.EQ; c <= simt.GEU; c++ {
				g.store(g.Cmp(c, x, y))
			}
		})
	}
	s.add("predicates", func(g *sample) {
		p, q := g.load(simt.Pred), g.load(simt.Pred)
		g.store(g.And(p, q), g.Or(p, q), g.Xor(p, q), g.Not(p), g.Select(p, q, g.Not(q)), g.ConstPred(true))
	})
}

func (s *samples) conversions() {
	s.add("integer_widths", func(g *sample) {
		x, y, z := g.load(simt.I16), g.load(simt.I32), g.load(simt.I64)
		g.store(g.Sext(x, simt.I32), g.Zext(x, simt.I32), g.Sext(x, simt.I64), g.Zext(x, simt.I64), g.Sext(y, simt.I64), g.Zext(y, simt.I64),
			g.Trunc(y, simt.I16), g.Trunc(z, simt.I32))
	})
	for _, t := range floatTypes {
		if t == simt.F16x2 || t == simt.BF16x2 {
			continue
		}
		s.add("from_int_"+t.String(), func(g *sample) {
			x := g.load(simt.I32)
			g.store(g.IntToFloat(x, t), g.UintToFloat(x, t), g.IntToFloat(g.load(simt.I64), t))
		})
		s.add("to_int_"+t.String(), func(g *sample) {
			x := g.load(t)
			for _, r := range []simt.Round{simt.RN, simt.RZ, simt.RM, simt.RP} {
				g.store(g.FloatToInt(x, simt.I32, r), g.FloatToUint(x, simt.I32, r))
			}
			g.store(g.FloatToInt(x, simt.I64, simt.RZ))
		})
		for _, u := range []simt.Type{simt.F32, simt.F64, simt.F16, simt.BF16} {
			if u != t {
				s.add(fmt.Sprintf("%s_to_%s", t, u), func(g *sample) { g.store(g.FloatCvt(g.load(t), u)) })
			}
		}
	}
	s.add("rounding", func(g *sample) {
		x := g.load(simt.F32)
		g.store(g.Round(x, simt.RN), g.Round(x, simt.RM), g.Round(g.load(simt.F64), simt.RZ))
	})
	s.add("cvt_pack", func(g *sample) {
		x, y := g.load(simt.F32), g.load(simt.F32)
		g.store(g.CvtPack(x, y, simt.F16x2), g.CvtPack(x, y, simt.BF16x2), g.CvtTF32(x, simt.F32), g.CvtTF32(x, simt.I32))
	})
	s.add("fp8", func(g *sample) {
		x, y := g.load(simt.F32), g.load(simt.F32)
		for _, f := range []simt.Mem{simt.E4M3, simt.E5M2} {
			p := g.PackFP8(x, y, f)
			g.store(p, g.PackFP8x2(g.load(simt.F16x2), f), g.UnpackFP8(p, f))
		}
	})
	s.add("bits", func(g *sample) {
		lo, hi := g.Unpack(g.load(simt.F16x2), simt.F16)
		a, c := g.Unpack(g.load(simt.I64), simt.I32)
		g.store(g.Pack(hi, lo, simt.BF16x2), g.Pack(c, a, simt.F64), g.Bitcast(g.load(simt.F32), simt.I32), g.Bitcast(g.load(simt.I32), simt.F32),
			g.Bitcast(g.load(simt.F64), simt.I64), g.Bitcast(g.load(simt.I64), simt.F64), g.Bitcast(g.load(simt.F16), simt.I16))
	})
}

func (s *samples) warp() {
	for _, t := range []simt.Type{simt.I32, simt.F32, simt.F16x2} {
		s.add("shuffle_"+t.String(), func(g *sample) {
			x := g.load(t)
			g.store(g.Shfl(simt.Bfly, x, g.Const32(16), 32), g.Shfl(simt.Idx, x, g.load(simt.I32), 32), g.Shfl(simt.Up, x, g.Const32(1), 8),
				g.Shfl(simt.Down, x, g.Const32(2), 16))
		})
	}
	s.add("vote", func(g *sample) {
		p := g.load(simt.Pred)
		g.store(g.Vote(simt.AtomAnd, p), g.Vote(simt.AtomOr, p), g.Ballot(p))
	})
	s.add("redux", func(g *sample) {
		x := g.load(simt.I32)
		for _, op := range []simt.AtomOp{simt.AtomAdd, simt.AtomMin, simt.AtomMax, simt.AtomMinU, simt.AtomMaxU, simt.AtomAnd, simt.AtomOr, simt.AtomXor} {
			g.store(g.Redux(op, x))
		}
	})
	s.add("elect", func(g *sample) { g.store(g.Elect()) })
	s.add("special", func(g *sample) {
		for r := simt.TidX; r <= simt.LaneID; r++ {
			g.store(g.Special(r))
		}
	})
}
