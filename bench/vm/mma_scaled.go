package vm

import (
	"math/bits"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
	"github.com/kgen-dev/kgen/ir/num"
)

// blockScale is the scale factors of A's rows and B's columns, each for an equal
// part of K: PTX ISA 9.7.14.3. In each quad, with g its number, the lanes
// 2*thread and 2*thread+1 hold those of A's rows g and g+8, the lane thread
// those of B's column g.
type blockScale struct {
	size      string     // "scale_vec::2X"
	parts     int        // of K
	ue4m3     bool       // else ue8m0
	a, b      int32      // slots of the factors, a byte each
	selectors [4]operand // byte and thread of A, of B
}

// blockScale binds the operands of scale factors: a, {byte, thread}, b, {byte,
// thread}.
func (d *decoder) blockScale(in *inst, op *mmaOp, ops []ptx.Operand) {
	s := op.scale
	s.ue4m3 = d.typ() == ptx.UE4M3
	if len(ops) != 8 {
		d.refuse("%d operands: want 8", len(ops))
	}
	s.parts = map[string]int{"scale_vec::1X": 1, "scale_vec::2X": 2, "scale_vec::4X": 4}[s.size]
	if s.parts == 0 {
		s.parts = 1
		if op.at == packedE2M1 {
			s.parts = 2
		}
	}
	d.source(in, &s.a, &ops[4], ptx.B32, exact)
	d.source(in, &s.b, &ops[6], ptx.B32, exact)
	for i, o := range []*ptx.Operand{&ops[5], &ops[7]} {
		e := elements(o)
		if len(e) != 2 {
			d.refuse("%d numbers that select scale factors: want a byte and a thread", len(e))
		}
		for j := range e {
			p := &s.selectors[2*i+j]
			*p = d.source(in, &p.slot, &e[j], ptx.B16, exact)
		}
	}
}

// scaleFactors are those of a matrix operand's rows or columns, by part of K.
type scaleFactors [tileM][4]float64

// readScales reads the factors of n rows or columns, whose lanes place says.
func (w *warp) readScales(s *blockScale, slot int32, which, n, most int, place func(row, thread int) int) (f scaleFactors, ok bool) {
	at, thread := int(w.r[s.selectors[which].slot][0]), int(w.r[s.selectors[which+1].slot][0])
	if at%s.parts != 0 || at+s.parts > 4 || thread > most {
		return f, false
	}
	for row := range n {
		v := w.r[slot][place(row, thread)] >> (8 * at)
		for i := range s.parts {
			code := v >> (8 * i)
			if s.ue4m3 {
				f[row][i] = num.E4M3.Decode(code & 0x7f)
			} else {
				f[row][i] = decodeUE8M0(uint64(code))
			}
		}
	}
	return f, true
}

// scaledDot returns c and the product of a row and a column with block scales,
// one of each for an equal part. The products of a part are summed exactly, scaled
// and added in float64, and the sum is rounded once.
func scaledDot(c float32, a, b []float32, sa, sb []float64) float32 {
	part := len(a) / len(sa)
	x := float64(c)
	for p := range sa {
		sum := 0.0
		for k := p * part; k < (p+1)*part; k++ {
			sum += float64(a[k]) * float64(b[k])
		}
		x += sum * sa[p] * sb[p]
	}
	return float32(x)
}

// mmaScaled multiplies with block scales.
func (w *warp) mmaScaled(in *inst, op *mmaOp) {
	s := op.scale
	if w.undefs > 0 {
		for _, slot := range []int32{s.a, s.b} {
			w.checkLanes(in, w.fr.prog.unified(class32, slot), w.mask, "as a scale factor")
		}
	}
	sa, okA := w.readScales(s, s.a, 0, tileM, 1, func(row, thread int) int { return 4*(row&7) + 2*thread + row>>3 })
	sb, okB := w.readScales(s, s.b, 2, tileN, 3, func(col, thread int) int { return 4*col + thread })
	if !okA || !okB {
		w.fault(bench.BadDescriptor, in, 0, "%s: want a byte that is a multiple of %d below 4 and a thread up to 1 for A, up to 3 for B", opcode(w.source(in)), s.parts)
	}
	a := w.leftOperand(in, op)
	b := w.operandTile(op.b, op.bt, op, true)
	t := &w.scratch().fused
	if op.fused != nil {
		t.prepareScaled(op.fused, a, b.v[:], sa[:], sb[:tileN], op.k, s.parts)
		if op.fused.group == 0 {
			f := &w.scratch().acc
			w.readAccumulator(f, op.c, op.ct)
			t.addToFragments(op.fused, f, op.m, op.k)
			w.writeAccumulator(f, op.d, op.dt)
			return
		}
	}
	for i, slot := range op.d {
		d, c := w.r[slot].f32(), *w.r[op.c[i]].f32()
		for lane := range d {
			row, col := lane>>2+8*(i>>1), 2*(lane&3)+i&1
			x := c[lane]
			if op.fused != nil {
				x = op.fused.scaled(x, t, row, col, op.k, sa[row][:s.parts], sb[col][:s.parts])
			} else {
				x = scaledDot(x, a[row*op.k:][:op.k], b.v[col*op.k:][:op.k], sa[row][:s.parts], sb[col][:s.parts])
			}
			if x != x {
				x = canonicalNaN
			}
			d[lane] = x
		}
	}
}

// mmaBits adds the number of ones in A xor B, or A and B.
func (w *warp) mmaBits(op *mmaOp) {
	rows := op.m / 8 // registers that hold the same k
	a, b := make([]lanes32, len(op.a)), make([]lanes32, len(op.b))
	for i, s := range op.a {
		a[i] = w.r[s]
	}
	for i, s := range op.b {
		b[i] = w.r[s]
	}
	for i, s := range op.d {
		c := w.r[op.c[i]]
		d := &w.r[s]
		for lane := range d {
			row, col := lane>>2, 2*(lane&3)+i&1
			n := c[lane]
			for r := range b {
				x := &a[rows*r+i>>1]
				for t := range 4 {
					v := x[4*row+t] ^ b[r][4*col+t]
					if op.and {
						v = x[4*row+t] & b[r][4*col+t]
					}
					n += uint32(bits.OnesCount32(v))
				}
			}
			d[lane] = n
		}
	}
}
