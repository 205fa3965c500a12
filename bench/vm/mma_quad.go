package vm

import (
	"github.com/kgen-dev/kgen/codegen/ptx"
	"github.com/kgen-dev/kgen/ir/num"
)

// quadMma is mma.m8n8k4 of f16: four products of 8x8x4 at once, each by eight
// lanes, four from each half of the warp. PTX ISA 9.7.14.5.1.
func (d *decoder) quadMma(op *mmaOp, rowA, rowB bool) {
	if op.at != ptx.F16 || op.bt != ptx.F16 || op.ct != ptx.F32 && op.ct != ptx.F16 || op.dt != ptx.F32 && op.dt != ptx.F16 {
		d.refuse("the virtual machine does not have m8n8k4 of .%s and .%s into .%s", op.at, op.bt, op.dt)
	}
	count := func(t ptx.Type) int { return t.Bits() / 4 } // 8 elements
	ops := d.operands(4, 4)
	op.fused = d.mod.fusedSum("mma", op)
	in := d.new(kindMasked)
	in.mma = op
	op.d = d.fragmentRegisters(in, &ops[0], count(op.dt), ptx.B32, true)
	op.a = d.fragmentRegisters(in, &ops[1], 2, ptx.B32, false)
	op.b = d.fragmentRegisters(in, &ops[2], 2, ptx.B32, false)
	op.c = d.fragmentRegisters(in, &ops[3], count(op.ct), ptx.B32, false)
	in.fn[modeFull] = func(w *warp, in *inst) {
		if w.together(in) {
			w.quads(op, rowA, rowB)
		}
	}
	d.emit(in)
}

// quads multiplies.
func (w *warp) quads(op *mmaOp, rowA, rowB bool) {
	var a [4][8][4]float32
	var b [4][4][8]float32
	var c [4][8][8]float32
	// place is where element i of a lane's accumulator lies.
	place := func(lane, i int, t ptx.Type) (row, col int) {
		h := lane >> 4
		if t == ptx.F16 {
			return lane&3 + 4*h, i
		}
		return lane&1 + i&2 + 4*h, i&4 + lane&2 + i&1
	}
	element := func(slots []int32, lane, i int) float32 {
		return num.F16ToF32(uint16(w.r[slots[i/2]][lane] >> (16 * (i % 2))))
	}
	for lane := range warpSize {
		q, t, h := lane>>2&3, lane&3, lane>>4
		for i := range 4 {
			if rowA {
				a[q][t+4*h][i] = element(op.a, lane, i)
			} else {
				a[q][i+4*h][t] = element(op.a, lane, i)
			}
			if rowB {
				b[q][t][i+4*h] = element(op.b, lane, i)
			} else {
				b[q][i][t+4*h] = element(op.b, lane, i)
			}
		}
		for i := range 8 {
			row, col := place(lane, i, op.ct)
			if op.ct == ptx.F16 {
				c[q][row][col] = element(op.c, lane, i)
			} else {
				c[q][row][col] = w.r[op.c[i]].f32()[lane]
			}
		}
	}
	for q := range c {
		w.multiplyQuad(op, &a[q], &b[q], &c[q])
	}
	for lane := range warpSize {
		for i := range 8 {
			row, col := place(lane, i, op.dt)
			x := c[lane>>2&3][row][col]
			if op.dt == ptx.F32 {
				if x != x {
					x = canonicalNaN
				}
				w.r[op.d[i]].f32()[lane] = x
				continue
			}
			v, s := uint32(num.F16FromF32(x)), &w.r[op.d[i/2]][lane]
			if i%2 == 0 {
				*s = v
			} else {
				*s |= v << 16
			}
		}
	}
}

// multiplyQuad adds a*b to c.
func (w *warp) multiplyQuad(op *mmaOp, a *[8][4]float32, b *[4][8]float32, c *[8][8]float32) {
	var rows, cols [8 * 4]float32
	for i := range 8 {
		for k := range 4 {
			rows[4*i+k], cols[4*i+k] = a[i][k], b[k][i]
		}
	}
	if s := op.fused; s != nil {
		t := &w.scratch().fused
		t.prepare(s, rows[:], cols[:], 8, 8, 4)
		for i := range 8 {
			for j := range 8 {
				c[i][j] = t.dot(s, c[i][j], i, j, 4)
			}
		}
		return
	}
	for i := range 8 {
		for j := range 8 {
			for k := range 4 {
				c[i][j] += rows[4*i+k] * cols[4*j+k]
			}
		}
	}
}
