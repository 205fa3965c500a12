package vm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/ptx"
	"github.com/kgen-dev/kgen/ir/num"
)

// lanesTest is a warp with three registers of operands in each class, and what
// runs instructions on it.
type lanesTest struct {
	w *warp
	r *rand.Rand
}

func newLanesTest() *lanesTest {
	w := &warp{mask: allLanes, live: allLanes, r: make([]lanes32, 5), q: make([]lanes64, 5), p: make([]uint32, 5)}
	return &lanesTest{w, rand.New(rand.NewPCG(3, 1))}
}

// fill puts values in the operands: few, so that they meet, and any.
func (l *lanesTest) fill() {
	special := []uint64{0, 1, 31, 32, 33, 63, 64, 0x80000000, 0x7fffffff, 0xffffffff, 1 << 63, math.MaxUint64, 0x7f800000, 0xff800000, 0x7fc00000, 0x3f800000, 1}
	value := func() uint64 {
		if l.r.IntN(2) == 0 {
			return special[l.r.IntN(len(special))]
		}
		return l.r.Uint64() >> l.r.IntN(60)
	}
	for i := range 4 {
		for lane := range warpSize {
			l.w.r[i][lane] = uint32(value())
			l.w.q[i][lane] = value()
		}
	}
}

// compare runs a fast loop and the lane function it stands for.
func (l *lanesTest) compare(t *testing.T, name string, fast execFn, lane laneFn, in *inst) {
	t.Helper()
	if fast == nil {
		return
	}
	for range 20 {
		l.fill()
		in.d, in.a, in.b, in.c, in.lane = 4, 0, 1, 2, lane
		fast(l.w, in)
		for i := range warpSize {
			want := lane(l.w.valueOf(in.ka, 0, i), l.w.valueOf(in.kb, 1, i), l.w.valueOf(in.kc, 2, i))
			got := l.w.valueOf(in.kd, 4, i)
			if in.kd == class32 {
				want = uint64(uint32(want))
			}
			require.Equal(t, want, got, "%s of %#x, %#x, %#x", name, l.w.valueOf(in.ka, 0, i), l.w.valueOf(in.kb, 1, i), l.w.valueOf(in.kc, 2, i))
		}
	}
}

// TestFastLoops holds every loop to the lane function of its instruction, and the
// vector code that stands for some.
func TestFastLoops(t *testing.T) {
	vectors := vectorLanes
	defer func() { vectorLanes = vectors }()
	for _, vectorLanes = range []bool{vectors, false} {
		testFastLoops(t)
	}
}

func testFastLoops(t *testing.T) {
	t.Helper()
	l := newLanesTest()
	n := 0
	check := func(name string, fast execFn, lane laneFn, in inst) {
		if fast != nil {
			n++
			l.compare(t, name, fast, lane, &in)
		}
	}
	same := func(t ptx.Type) inst {
		k := classOf(t.Bits())
		return inst{kd: k, ka: k, kb: k, kc: k}
	}
	for _, tp := range []ptx.Type{ptx.U32, ptx.S32, ptx.B32, ptx.U64, ptx.S64, ptx.B64} {
		for _, op := range []string{"add", "sub", "mul.lo", "mad.lo", "min", "max", "div", "rem"} {
			check(op+"."+tp.String(), fastBinary(op, tp), integer(op, tp), same(tp))
		}
		for op, f := range map[string]laneFn{
			"and": func(a, b, _ uint64) uint64 { return a & b }, "or": func(a, b, _ uint64) uint64 { return a | b }, "xor": func(a, b, _ uint64) uint64 { return a ^ b },
		} {
			check(op+"."+tp.String(), fastBinary(op, tp), f, same(tp))
		}
		for _, op := range []string{"mul.wide", "mad.wide"} {
			in := inst{kd: class64, ka: class32, kb: class32, kc: class64}
			check(op+"."+tp.String(), fastBinary(op, tp), integer(op, tp), in)
		}
		for _, op := range []string{"neg", "not"} {
			check(op+"."+tp.String(), fastUnary(op, tp), unary(op, tp), same(tp))
		}
		for _, op := range []string{"shl", "shr"} {
			in := same(tp)
			in.kb = class32
			check(op+"."+tp.String(), fastShift(op, tp), shift(op, tp), in)
		}
		for _, cmp := range comparisons {
			in := same(tp)
			in.kd = classPred
			check("setp."+cmp+"."+tp.String(), fastCompare(cmp, tp, false), comparison(cmp, tp, false), in)
		}
	}
	for _, cmp := range comparisons {
		check("setp."+cmp+".f32", fastCompare(cmp, ptx.F32, false), comparison(cmp, ptx.F32, false), inst{kd: classPred})
	}
	for _, tp := range []ptx.Type{ptx.F32, ptx.F64} {
		ft, _ := floatOf(tp)
		for _, op := range []string{"add", "sub", "mul", "fma"} {
			check(op+"."+tp.String(), fastFloat(op, tp, floatMode{}), arithmetic(op, ft, floatMode{}), same(tp))
		}
		for _, op := range []string{"min", "max"} {
			check(op+"."+tp.String(), fastExtreme(op, tp, floatMode{}), extreme(op == "max", ft, floatMode{}), same(tp))
		}
	}
	for table := range uint64(256) {
		check(fmt.Sprintf("lop3 %#x", table), fastLop3, lop3(table), inst{imm: table})
	}
	types := []ptx.Type{ptx.U32, ptx.S32, ptx.B32, ptx.U64, ptx.S64, ptx.F16, ptx.BF16, ptx.F32, ptx.F64}
	for _, dt := range types {
		for _, at := range types {
			m := cvtMode{given: true}
			lane := conversion(m, dt, at)
			if lane == nil {
				continue
			}
			narrow := func(a, b, c uint64) uint64 { return lane(low(a, at.Bits()), b, c) }
			check("cvt."+dt.String()+"."+at.String(), narrowed(fastConvert(m, dt, at), at), narrow, inst{kd: classOf(dt.Bits()), ka: classOf(at.Bits())})
		}
	}
	for _, dt := range []ptx.Type{ptx.F16x2, ptx.BF16x2} {
		ft, _ := floatOf(dt)
		lane := func(a, b, _ uint64) uint64 {
			return uint64(ft.f.Encode(float64(f32(b)), num.Even, false)) | uint64(ft.f.Encode(float64(f32(a)), num.Even, false))<<16
		}
		check("cvt."+dt.String()+".f32", fastPairs(cvtMode{}, dt), lane, inst{})
	}
	require.Greater(t, n, 300)
}

// narrowed keeps the operand's registers to their width, as programs do.
func narrowed(fast execFn, t ptx.Type) execFn {
	if fast == nil || t.Bits() >= 32 {
		return fast
	}
	return func(w *warp, in *inst) {
		for i := range w.r[in.a] {
			w.r[in.a][i] &= 1<<t.Bits() - 1
		}
		fast(w, in)
	}
}
