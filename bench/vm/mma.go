package vm

import (
	"fmt"
	"math"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
	"github.com/kgen-dev/kgen/ir/num"
)

func init() { decoders["mma"] = (*decoder).mma }

// mmaOp is a matrix instruction of one warp: D = A*B + C. Fragments are laid
// out as PTX ISA 9.7.14 has them: with g = lane/4 and t = lane%4, a 32-bit
// register r of A holds consecutive k of row g + 8*(r%2), one of B consecutive
// k of column g, and C's elements lie two by two.
type mmaOp struct {
	m, n, k    int
	at, bt, ct ptx.Type
	dt         ptx.Type
	sat        bool
	per        int // elements in a register of A or B
	a, b, c, d []int32
}

// tile sizes of the largest shape.
const (
	maxTileK = 64
	tileM    = 16
	tileN    = 8
)

func (d *decoder) mma() {
	if !d.has("sync") || !d.has("aligned") {
		d.refuse("want .sync.aligned")
	}
	shape := d.take("m16n8k4", "m16n8k8", "m16n8k16", "m16n8k32", "m16n8k64", "m8n8k4", "m8n8k16", "m8n8k32")
	if shape == "" {
		d.refuse("the virtual machine does not have this shape")
	}
	op := &mmaOp{}
	if _, err := fmt.Sscanf(shape, "m%dn%dk%d", &op.m, &op.n, &op.k); err != nil {
		d.refuse("shape %s: %v", shape, err)
	}
	la, lb := d.take("row", "col"), d.take("row", "col")
	op.sat = d.has("satfinite")
	d.take("kind::f8f6f4")
	op.dt, op.at, op.bt, op.ct = d.typ(), d.typ(), d.typ(), d.typ()
	if shape == "m8n8k4" && op.at != ptx.F64 {
		d.quadMma(op, la == "row", lb == "row")
		d.countTensor("mma", shape, op)
		return
	}
	if la != "row" || lb != "col" {
		d.refuse("want .row.col")
	}
	na, nb, nc, nd := op.registers(d)
	ops := d.operands(4, 4)
	in := d.new(kindMasked)
	in.mma = op
	bind := func(o *ptx.Operand, n int, t ptx.Type, dst bool) []int32 {
		e := elements(o)
		if len(e) != n {
			d.refuse("%d registers: want %d", len(e), n)
		}
		slots := make([]int32, n)
		for i := range e {
			if dst {
				if e[i].Kind == ptx.OpSink {
					d.refuse("want registers to write")
				}
				d.destination(in, &slots[i], &e[i], t, exact)
			} else {
				d.source(in, &slots[i], &e[i], t, exact)
			}
		}
		return slots
	}
	word := ptx.B32
	if op.at == ptx.F64 {
		word = ptx.F64
	}
	op.d = bind(&ops[0], nd, registerType(op.dt), true)
	op.a = bind(&ops[1], na, word, false)
	op.b = bind(&ops[2], nb, word, false)
	op.c = bind(&ops[3], nc, registerType(op.ct), false)
	in.rule = ruleMatrix
	switch {
	case op.at == ptx.F64:
		in.fn[modeFull] = mmaF64
	case op.ct == ptx.S32:
		in.fn[modeFull] = mmaInteger
	default:
		in.fn[modeFull] = mmaFloat
	}
	d.emit(in)
	d.countTensor("mma", shape, op)
}

// countTensor notes what an instruction counts as.
func (d *decoder) countTensor(kind, shape string, op *mmaOp) {
	n := 2 * int64(op.m*op.n*op.k)
	if shape == "m8n8k4" && op.at == ptx.F16 {
		n *= 4
	}
	d.p.tensor[d.src.PC] = bench.TensorCount{
		Kind: kind, Shape: shape, A: op.at.String(), B: op.bt.String(), Accumulator: op.ct.String(), Operations: n,
	}
}

// registerType is how a register of an accumulator is declared.
func registerType(t ptx.Type) ptx.Type {
	switch t {
	case ptx.F64:
		return ptx.F64
	}
	return ptx.B32
}

// registers checks shape and types and says how many registers each operand
// takes.
func (op *mmaOp) registers(d *decoder) (a, b, c, dd int) {
	bits := op.at.Bits()
	size := func(t ptx.Type) int { return max(t.Bits(), 1) }
	if op.at == ptx.TF32 {
		bits = 32
	}
	ok := false
	key := fmt.Sprintf("m%dn%dk%d", op.m, op.n, op.k)
	same := op.at == op.bt
	floatAcc := (op.ct == ptx.F32 || op.ct == ptx.F16) && (op.dt == ptx.F32 || op.dt == ptx.F16)
	switch op.at {
	case ptx.F16:
		ok = same && floatAcc && (key == "m16n8k8" || key == "m16n8k16")
	case ptx.BF16:
		ok = same && op.ct == ptx.F32 && op.dt == ptx.F32 && (key == "m16n8k8" || key == "m16n8k16")
	case ptx.TF32:
		ok = same && op.ct == ptx.F32 && op.dt == ptx.F32 && (key == "m16n8k4" || key == "m16n8k8")
	case ptx.E4M3, ptx.E5M2:
		ok = (op.bt == ptx.E4M3 || op.bt == ptx.E5M2) && floatAcc && (key == "m16n8k16" || key == "m16n8k32")
	case ptx.S8, ptx.U8:
		ok = (op.bt == ptx.S8 || op.bt == ptx.U8) && op.ct == ptx.S32 && op.dt == ptx.S32 && (key == "m16n8k16" || key == "m16n8k32" || key == "m8n8k16")
	case ptx.S4, ptx.U4:
		ok = (op.bt == ptx.S4 || op.bt == ptx.U4) && op.ct == ptx.S32 && op.dt == ptx.S32 && (key == "m16n8k32" || key == "m16n8k64" || key == "m8n8k32")
	case ptx.F64:
		ok = same && op.ct == ptx.F64 && op.dt == ptx.F64 && (op.m == 8 && op.k == 4 || op.m == 16 && op.k <= 16)
		bits = 64
	}
	if op.sat && op.ct != ptx.S32 {
		d.refuse("want .satfinite of integers alone")
	}
	if !ok {
		d.refuse("the virtual machine does not have %s of .%s and .%s into .%s", key, op.at, op.bt, op.dt)
	}
	op.per = max(32/bits, 1)
	word := max(bits, 32)
	acc := func(t ptx.Type) int { return op.m * op.n * size(t) / max(size(t), 32) / warpSize }
	return op.m * op.k * bits / word / warpSize, op.n * op.k * bits / word / warpSize, acc(op.ct), acc(op.dt)
}

// together reports a matrix instruction that not all lanes execute.
func (w *warp) together(in *inst) bool {
	if w.mask == allLanes {
		return true
	}
	if w.again(bench.DivergentCollective, in) {
		return false
	}
	what := "have exited"
	if w.mask != w.live {
		what = "are elsewhere"
	}
	w.fault(bench.DivergentCollective, in, firstLane(w.mask), "%s: lanes %08x of the warp %s", opcode(w.source(in)), ^w.mask, what)
	return false
}

// tiles is a warp's room for matrix operands: the ones it decoded last, since
// kernels use each of them several times in a row.
type tiles struct {
	acc  fragments
	a, b [16]decodedTile // by the first register's slot
}

// fragments are the four elements that each lane holds of 16x8 results: rows
// g and g+8, columns 2t and 2t+1.
type fragments [4][warpSize]float32

// decodedTile is an A or B operand as numbers: A row by row, B column by
// column, k numbers each.
type decodedTile struct {
	t   ptx.Type
	n   int // registers
	raw [4]lanes32
	v   [tileM * maxTileK]float32
}

// operandTile decodes an operand, unless it is the one decoded before.
func (w *warp) operandTile(slots []int32, t ptx.Type, op *mmaOp, isB bool) *decodedTile {
	c := &w.scratch().a[uint(slots[0])%16]
	if isB {
		c = &w.scratch().b[uint(slots[0])%16]
	}
	n := len(slots)
	if c.t == t && c.n == n {
		same := true
		for i, s := range slots {
			if w.r[s] != c.raw[i] {
				same = false
				break
			}
		}
		if same {
			return c
		}
	}
	c.t, c.n = t, n
	for i, s := range slots {
		c.raw[i] = w.r[s]
	}
	if isB {
		decodeB(c, n, t, op.k)
	} else {
		decodeA(c, n, t, op.k)
	}
	return c
}

func (w *warp) scratch() *tiles {
	if w.tiles == nil {
		w.tiles = new(tiles)
	}
	return w.tiles
}

func decodeA(c *decodedTile, n int, t ptx.Type, k int) {
	per := perRegister(t)
	for r := range n {
		c.decodeRows(&c.raw[r], t, c.v[8*(r&1)*k+(r>>1)*4*per:], k)
	}
}

func decodeB(c *decodedTile, n int, t ptx.Type, k int) {
	per := perRegister(t)
	for r := range n {
		c.decodeRows(&c.raw[r], t, c.v[r*4*per:], k)
	}
}

// decodeRows decodes one register of all lanes: consecutive numbers, at 4 places
// in each of 8 rows of k.
func (c *decodedTile) decodeRows(raw *lanes32, t ptx.Type, out []float32, k int) {
	switch t {
	case ptx.F16:
		for g := range 8 {
			row := out[g*k : g*k+8]
			for q := range 4 {
				v := raw[4*g+q]
				if v&0x7c00 == 0x7c00 || v&0x7c000000 == 0x7c000000 {
					row[2*q], row[2*q+1] = half(uint16(v)), half(uint16(v>>16))
					continue
				}
				// As half does, in line.
				row[2*q] = math.Float32frombits(v&0x8000<<16|v&0x7fff<<13) * 0x1p112
				row[2*q+1] = math.Float32frombits(v&0x80000000|v&0x7fff0000>>3) * 0x1p112
			}
		}
	case ptx.BF16:
		for g := range 8 {
			row := out[g*k : g*k+8]
			for q := range 4 {
				v := raw[4*g+q]
				row[2*q], row[2*q+1] = math.Float32frombits(v<<16), math.Float32frombits(v&0xffff0000)
			}
		}
	default:
		var e [8]float32
		per := perRegister(t)
		for lane, v := range raw {
			expand(&e, v, t)
			copy(out[lane>>2*k+(lane&3)*per:], e[:per])
		}
	}
}

// half is num.F16ToF32, small enough to be inlined.
func half(h uint16) float32 {
	if h&0x7c00 == 0x7c00 {
		return num.F16ToF32(h)
	}
	// Scaling by 2^112 moves the bias from 15 to 127, and normalises subnormals.
	return math.Float32frombits(uint32(h&0x8000)<<16|uint32(h&0x7fff)<<13) * 0x1p112
}

func perRegister(t ptx.Type) int {
	if t == ptx.TF32 {
		return 1
	}
	return 32 / t.Bits()
}

// expand turns a register into its elements.
func expand(e *[8]float32, v uint32, t ptx.Type) {
	switch t {
	case ptx.F16:
		e[0], e[1] = half(uint16(v)), half(uint16(v>>16))
	case ptx.BF16:
		e[0], e[1] = math.Float32frombits(v<<16), math.Float32frombits(v&0xffff0000)
	case ptx.TF32:
		e[0] = num.TruncateTF32(math.Float32frombits(v))
	case ptx.E4M3:
		for i := range 4 {
			e[i] = num.E4M3ToF32(uint8(v >> (8 * i)))
		}
	case ptx.E5M2:
		for i := range 4 {
			e[i] = num.E5M2ToF32(uint8(v >> (8 * i)))
		}
	case ptx.S8:
		for i := range 4 {
			e[i] = float32(int8(v >> (8 * i)))
		}
	case ptx.U8:
		for i := range 4 {
			e[i] = float32(uint8(v >> (8 * i)))
		}
	case ptx.S4:
		for i := range 8 {
			e[i] = float32(int8(v>>(4*i)<<4) >> 4)
		}
	case ptx.U4:
		for i := range 8 {
			e[i] = float32(v >> (4 * i) & 15)
		}
	}
}

// multiply adds a*b to the fragments: rows and columns of k numbers. Eight sums
// at a time stay in registers: two rows by four columns. Of an 8-row shape the
// second rows are left alone.
func multiply(f *fragments, a, b []float32, rows, k int) {
	for g := range 8 {
		a0 := a[g*k : g*k+k]
		a1 := a0
		if rows > 8 {
			a1 = a[(g+8)*k : (g+8)*k+k]
		}
		for t := 0; t < 4; t += 2 {
			l := (4*g + t) & (warpSize - 2)
			b0, b1 := b[2*t*k:2*t*k+k], b[(2*t+1)*k:(2*t+1)*k+k]
			b2, b3 := b[(2*t+2)*k:(2*t+2)*k+k], b[(2*t+3)*k:(2*t+3)*k+k]
			c00, c01, c02, c03 := f[0][l], f[1][l], f[0][l+1], f[1][l+1]
			c10, c11, c12, c13 := f[2][l], f[3][l], f[2][l+1], f[3][l+1]
			a1, b0, b1, b2, b3 := a1[:len(a0)], b0[:len(a0)], b1[:len(a0)], b2[:len(a0)], b3[:len(a0)]
			for i, x := range a0 {
				y := a1[i]
				v := b0[i]
				c00 += x * v
				c10 += y * v
				v = b1[i]
				c01 += x * v
				c11 += y * v
				v = b2[i]
				c02 += x * v
				c12 += y * v
				v = b3[i]
				c03 += x * v
				c13 += y * v
			}
			f[0][l], f[1][l], f[0][l+1], f[1][l+1] = c00, c01, c02, c03
			f[2][l], f[3][l], f[2][l+1], f[3][l+1] = c10, c11, c12, c13
		}
	}
}

// mmaFloat multiplies f16, bf16, tf32, e4m3 and e5m2. Products are exact in
// f32; sums are rounded to f32 one after the other, the accumulator first.
func mmaFloat(w *warp, in *inst) {
	if !w.together(in) {
		return
	}
	op := in.mma
	a := w.operandTile(op.a, op.at, op, false)
	b := w.operandTile(op.b, op.bt, op, true)
	f := &w.scratch().acc
	w.readAccumulator(f, op.c, op.ct)
	multiply(f, a.v[:], b.v[:], op.m, op.k)
	w.writeAccumulator(f, op.d, op.dt)
}

// readAccumulator reads C.
func (w *warp) readAccumulator(f *fragments, slots []int32, t ptx.Type) {
	if t == ptx.F32 {
		for i, s := range slots {
			f[i&3] = *w.r[s].f32()
		}
		return
	}
	for i, s := range slots {
		lo, hi := &f[2*i&3], &f[(2*i+1)&3]
		for lane, v := range &w.r[s] {
			lo[lane], hi[lane] = num.F16ToF32(uint16(v)), num.F16ToF32(uint16(v>>16))
		}
	}
}

// writeAccumulator writes D. Results that are NaN are the canonical one.
func (w *warp) writeAccumulator(f *fragments, slots []int32, t ptx.Type) {
	if t == ptx.F32 {
		for i, s := range slots {
			d := w.r[s].f32()
			for lane, x := range &f[i&3] {
				if x != x {
					x = canonicalNaN
				}
				d[lane] = x
			}
		}
		return
	}
	for i, s := range slots {
		d := &w.r[s]
		lo, hi := &f[2*i&3], &f[(2*i+1)&3]
		for lane := range d {
			d[lane] = uint32(num.F16FromF32(lo[lane])) | uint32(num.F16FromF32(hi[lane]))<<16
		}
	}
}

// mmaInteger multiplies s8, u8, s4 and u4. Sums wrap, or saturate at the end.
// All products and their sums are small enough to be exact in float32.
func mmaInteger(w *warp, in *inst) {
	if !w.together(in) {
		return
	}
	op := in.mma
	a := w.operandTile(op.a, op.at, op, false)
	b := w.operandTile(op.b, op.bt, op, true)
	f := &w.scratch().acc
	*f = fragments{}
	multiply(f, a.v[:], b.v[:], op.m, op.k)
	for i, s := range op.d {
		d, acc := &w.r[s], &w.r[op.c[i]]
		for lane := range d {
			sum := int64(int32(acc[lane])) + int64(f[i&3][lane])
			if op.sat {
				sum = max(min(sum, math.MaxInt32), math.MinInt32)
			}
			d[lane] = uint32(sum)
		}
	}
}

// mmaF64 is a chain of fused multiply-adds in the order of k.
func mmaF64(w *warp, in *inst) {
	if !w.together(in) {
		return
	}
	op := in.mma
	var a [16][16]float64
	var b [16][8]float64
	for r, s := range op.a {
		row, k := 0, 4*r
		if op.m == 16 {
			row, k = 8*(r&1), 4*(r>>1)
		}
		for lane, x := range w.q[s].f64() {
			a[row+lane>>2][k+lane&3] = x
		}
	}
	for r, s := range op.b {
		for lane, x := range w.q[s].f64() {
			b[4*r+lane&3][lane>>2] = x
		}
	}
	for i, s := range op.d {
		row, col := 8*(i>>1), i&1
		d, c := w.q[s].f64(), w.q[op.c[i]].f64()
		for lane := range d {
			x := c[lane]
			for k := range op.k {
				x = math.FMA(a[row+lane>>2][k], b[k][2*(lane&3)+col], x)
			}
			if x != x {
				x = f64(nan64)
			}
			d[lane] = x
		}
	}
}
