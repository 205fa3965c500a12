package vm

import (
	"fmt"
	"math"
	"unsafe"

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
	round      num.Rounding // of f64
	and        bool         // of b1: AND instead of XOR
	per        int          // elements in a register of A or B
	a, b, c, d []int32
	scale      *blockScale // nil: none
	sparse     *metadata   // of A, nil where it is dense
	fused      *fusedSum   // nil: sums in the order of K
}

// packedE2M1 is e2m1 as the kinds mxf4 and mxf4nvf4 have it, two to a byte;
// with the others a byte holds one, in its middle.
const packedE2M1 = ptx.E2M1x2

// tile sizes of the largest shape.
const (
	maxTileK = 64
	tileM    = 16
	tileN    = 8
)

func (d *decoder) mma() {
	sparse := d.take("sp", "sp::ordered_metadata") != ""
	if !d.has("sync") || !d.has("aligned") {
		d.refuse("want .sync.aligned")
	}
	shape := d.take("m16n8k4", "m16n8k8", "m16n8k16", "m16n8k32", "m16n8k64", "m16n8k128", "m16n8k256", "m8n8k4", "m8n8k16", "m8n8k32", "m8n8k128")
	if shape == "" {
		d.refuse("the virtual machine does not have this shape")
	}
	op := &mmaOp{}
	if _, err := fmt.Sscanf(shape, "m%dn%dk%d", &op.m, &op.n, &op.k); err != nil {
		d.refuse("shape %s: %v", shape, err)
	}
	la, lb := d.take("row", "col"), d.take("row", "col")
	op.sat = d.has("satfinite")
	kind := d.take("kind::f8f6f4", "kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4")
	if d.has("block_scale") {
		op.scale = &blockScale{size: d.take("scale_vec::1X", "scale_vec::2X", "scale_vec::4X")}
	}
	op.round = d.rounding().mode
	op.dt, op.at, op.bt, op.ct = d.typ(), d.typ(), d.typ(), d.typ()
	if kind == "kind::mxf4" || kind == "kind::mxf4nvf4" {
		op.at, op.bt = packedE2M1, packedE2M1
	}
	if op.at == ptx.B1 {
		op.and = d.take("and", "xor") == "and"
		d.has("popc")
	}
	if shape == "m8n8k4" && op.at != ptx.F64 {
		d.quadMma(op, la == "row", lb == "row")
		d.countTensor("mma", shape, op)
		return
	}
	if la != "row" || lb != "col" {
		d.refuse("want .row.col")
	}
	in := d.new(kindMasked)
	in.mma = op
	ops := d.operands(4, 10)
	if sparse {
		ops = d.metadata(in, op, ops, 4)
	}
	na, nb, nc, nd := op.registers(d)
	op.d = d.fragmentRegisters(in, &ops[0], nd, registerType(op.dt), true)
	op.a = d.fragmentRegisters(in, &ops[1], na, registerType(op.at), false)
	op.b = d.fragmentRegisters(in, &ops[2], nb, registerType(op.bt), false)
	op.c = d.fragmentRegisters(in, &ops[3], nc, registerType(op.ct), false)
	if op.scale != nil {
		d.blockScale(in, op, ops)
	}
	op.fused = d.mod.fusedSum("mma", op)
	in.rule = ruleMatrix
	in.fn[modeFull] = func(w *warp, in *inst) {
		if w.together(in) {
			w.runMma(in, op)
		}
	}
	d.emit(in)
	d.countTensor("mma", shape, op)
}

// runMma multiplies.
func (w *warp) runMma(in *inst, op *mmaOp) {
	switch {
	case op.scale != nil:
		w.mmaScaled(in, op)
	case op.at == ptx.F64:
		w.mmaF64(op)
	case op.at == ptx.B1:
		w.mmaBits(op)
	case op.ct == ptx.S32:
		w.mmaInteger(in, op)
	default:
		w.mmaFloat(in, op)
	}
}

// fragmentRegisters binds the registers of a matrix operand.
func (d *decoder) fragmentRegisters(in *inst, o *ptx.Operand, n int, t ptx.Type, dst bool) []int32 {
	e := elements(o)
	if len(e) != n {
		d.refuse("%d registers: want %d", len(e), n)
	}
	slots := make([]int32, n)
	for i := range e {
		switch {
		case !dst:
			d.source(in, &slots[i], &e[i], t, exact)
		case e[i].Kind == ptx.OpSink:
			d.refuse("want registers to write")
		default:
			d.destination(in, &slots[i], &e[i], t, exact)
		}
	}
	return slots
}

// countTensor notes what an instruction counts as.
func (d *decoder) countTensor(kind, shape string, op *mmaOp) {
	n := 2 * int64(op.m*op.n*op.k)
	if shape == "m8n8k4" && op.at == ptx.F16 {
		n *= 4
	}
	d.p.tensor[d.src.PC] = bench.TensorCount{
		Kind: kind, Shape: shape, A: op.at.String(), B: op.bt.String(), Accumulator: op.ct.String(),
		Sparse: op.sparse != nil, Operations: n,
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

// heldBits is what an element of A or B takes in a register.
func heldBits(t ptx.Type) int {
	switch t {
	case ptx.TF32:
		return 32
	case ptx.E3M2, ptx.E2M3, ptx.E2M1:
		return 8
	case packedE2M1:
		return 4
	}
	return t.Bits()
}

// narrowFloats are the types of the kind f8f6f4.
func narrowFloats(t ptx.Type) bool {
	switch t {
	case ptx.E4M3, ptx.E5M2, ptx.E3M2, ptx.E2M3, ptx.E2M1:
		return true
	}
	return false
}

// registers checks shape and types and says how many registers each operand
// takes.
func (op *mmaOp) registers(d *decoder) (a, b, c, dd int) {
	bits := heldBits(op.at)
	ok := false
	key := fmt.Sprintf("m%dn%dk%d", op.m, op.n, op.k)
	same := op.at == op.bt
	floatAcc := (op.ct == ptx.F32 || op.ct == ptx.F16) && (op.dt == ptx.F32 || op.dt == ptx.F16)
	integer := op.ct == ptx.S32 && op.dt == ptx.S32
	switch {
	case op.sparse != nil:
		key += " with a sparse A"
		ok = op.sparseShape() && (same || op.at != ptx.F16 && op.at != ptx.BF16 && op.at != ptx.TF32)
	default:
		ok = op.denseShape(key, same, floatAcc, integer)
	}
	if op.sat && op.ct != ptx.S32 {
		d.refuse("want .satfinite of integers alone")
	}
	if !ok {
		d.refuse("the virtual machine does not have %s of .%s and .%s into .%s", key, op.at, op.bt, op.dt)
	}
	op.per = max(32/bits, 1)
	word := max(bits, 32)
	acc := func(t ptx.Type) int { return op.m * op.n * t.Bits() / max(t.Bits(), 32) / warpSize }
	return op.m * op.keptK() * bits / word / warpSize, op.n * op.k * bits / word / warpSize, acc(op.ct), acc(op.dt)
}

// denseShape says whether there is a product of a shape, whose name is key.
func (op *mmaOp) denseShape(key string, same, floatAcc, integer bool) (ok bool) {
	switch op.at {
	case ptx.F16:
		ok = same && floatAcc && (key == "m16n8k8" || key == "m16n8k16")
	case ptx.BF16:
		ok = same && op.ct == ptx.F32 && op.dt == ptx.F32 && (key == "m16n8k8" || key == "m16n8k16")
	case ptx.TF32:
		ok = same && op.ct == ptx.F32 && op.dt == ptx.F32 && (key == "m16n8k4" || key == "m16n8k8")
	case ptx.E4M3, ptx.E5M2, ptx.E3M2, ptx.E2M3, ptx.E2M1:
		ok = narrowFloats(op.bt) && floatAcc && (key == "m16n8k16" || key == "m16n8k32")
	case packedE2M1:
		ok = op.scale != nil && key == "m16n8k64"
	case ptx.S8, ptx.U8:
		ok = (op.bt == ptx.S8 || op.bt == ptx.U8) && integer && (key == "m16n8k16" || key == "m16n8k32" || key == "m8n8k16")
	case ptx.S4, ptx.U4:
		ok = (op.bt == ptx.S4 || op.bt == ptx.U4) && integer && (key == "m16n8k32" || key == "m16n8k64" || key == "m8n8k32")
	case ptx.B1:
		ok = same && integer && (key == "m16n8k128" || key == "m16n8k256" || key == "m8n8k128")
	case ptx.F64:
		ok = same && op.ct == ptx.F64 && op.dt == ptx.F64 && (op.m == 8 && op.k == 4 || op.m == 16 && op.k <= 16)
	}
	return ok
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
	acc      fragments
	expanded [2 * tileM * maxTileK]float32 // a sparse A
	a, b     [16]decodedTile               // by the first register's slot
	fused    fusedTiles
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

	sided [tileM * maxTileK]float32 // of B: its columns side by side
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
		decodeB(c.v[:], &c.raw, n, t, op.k)
		sideBySide(c.sided[:], c.v[:], op.k, &evenFirst)
	} else {
		decodeA(c.v[:], &c.raw, n, t, op.k)
	}
	return c
}

func (w *warp) scratch() *tiles {
	if w.tiles == nil {
		w.tiles = new(tiles)
	}
	return w.tiles
}

func decodeA(out []float32, raw *[4]lanes32, n int, t ptx.Type, k int) {
	per := perRegister(t)
	for r := range n {
		decodeRows(out[8*(r&1)*k+(r>>1)*4*per:], &raw[r], t, k)
	}
}

func decodeB(out []float32, raw *[4]lanes32, n int, t ptx.Type, k int) {
	per := perRegister(t)
	for r := range n {
		decodeRows(out[r*4*per:], &raw[r], t, k)
	}
}

// decodeRows decodes one register of all lanes: consecutive numbers, at 4 places
// in each of 8 rows of k.
func decodeRows(out []float32, raw *lanes32, t ptx.Type, k int) {
	switch t {
	case ptx.F16:
		decodeHalves(out, raw[:], k)
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

// decodeHalves decodes rows of eight f16 each, to places step numbers apart.
func decodeHalves(out []float32, raw []uint32, step int) {
	rows := len(raw) / 4
	if vectorLanes {
		_ = out[(rows-1)*step+7]
		decodeHalvesVector(&out[0], &raw[0], rows, step)
		return
	}
	decodeHalvesPortable(out, raw, step)
}

func decodeHalvesPortable(out []float32, raw []uint32, step int) {
	for g := range len(raw) / 4 {
		row := out[g*step : g*step+8]
		for q := range 4 {
			row[2*q], row[2*q+1] = twoHalves(raw[4*g+q])
		}
	}
}

// twoHalves are the two f16 of a word.
func twoHalves(v uint32) (lo, hi float32) {
	if v&0x7c00 == 0x7c00 || v&0x7c000000 == 0x7c000000 {
		return half(uint16(v)), half(uint16(v >> 16))
	}
	// As half does.
	return math.Float32frombits(v&0x8000<<16|v&0x7fff<<13) * 0x1p112, math.Float32frombits(v&0x80000000|v&0x7fff0000>>3) * 0x1p112
}

// half is num.F16ToF32, small enough to be inlined.
func half(h uint16) float32 {
	if h&0x7c00 == 0x7c00 {
		return num.F16ToF32(h)
	}
	// Scaling by 2^112 moves the bias from 15 to 127, and normalises subnormals.
	return math.Float32frombits(uint32(h&0x8000)<<16|uint32(h&0x7fff)<<13) * 0x1p112
}

func perRegister(t ptx.Type) int { return 32 / heldBits(t) }

// expand turns a register into its elements.
func expand(e *[8]float32, v uint32, t ptx.Type) {
	switch t {
	case ptx.F16:
		e[0], e[1] = twoHalves(v)
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
	case ptx.E3M2:
		for i := range 4 {
			e[i] = float32(num.E3M2.Decode(v >> (8 * i)))
		}
	case ptx.E2M3:
		for i := range 4 {
			e[i] = float32(num.E2M3.Decode(v >> (8 * i)))
		}
	case ptx.E2M1:
		for i := range 4 {
			e[i] = num.E2M1ToF32(uint8(v >> (8*i + 2) & 15))
		}
	case packedE2M1:
		for i := range 8 {
			e[i] = num.E2M1ToF32(uint8(v >> (4 * i) & 15))
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

// decodeWords decodes 16 bytes as registers hold elements.
func decodeWords(e *[32]float32, data *[16]byte, t ptx.Type) int {
	switch t {
	case ptx.F16:
		decodeHalves(e[:], (*[4]uint32)(unsafe.Pointer(data))[:], 8)
		return 8
	case ptx.BF16:
		for i := range 4 {
			v := *at[uint32](data[4*i:])
			e[2*i], e[2*i+1] = math.Float32frombits(v<<16), math.Float32frombits(v&0xffff0000)
		}
		return 8
	}
	var part [8]float32
	per := perRegister(t)
	for i := range 4 {
		expand(&part, *at[uint32](data[4*i:]), t)
		copy(e[i*per:], part[:per])
	}
	return 4 * per
}

// multiply adds a*b to the fragments: rows of A, k numbers each, and the columns
// of B side by side, the even ones first. Of an 8-row shape the second rows are
// left alone.
func multiply(f *fragments, a, b []float32, rows, k int) {
	for i := 0; i < rows/4; i += 2 {
		addRows(f[i][:], f[i+1][:], 4, a[4*i*k:], b, k)
	}
}

// mmaFloat multiplies f16, bf16, tf32, e4m3 and e5m2. Products are exact in
// f32; sums are rounded to f32 one after the other, the accumulator first.
func (w *warp) mmaFloat(in *inst, op *mmaOp) {
	a := w.leftOperand(in, op)
	b := w.operandTile(op.b, op.bt, op, true)
	f := &w.scratch().acc
	w.readAccumulator(f, op.c, op.ct)
	if op.fused == nil {
		multiply(f, a, b.sided[:], op.m, op.k)
	} else {
		t := &w.scratch().fused
		t.prepareRows(op.fused, a, op.m, op.k)
		op.fused.multiply(t, f, b.v[:], op.m, op.k)
	}
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
			canonicalF32(w.r[s].f32(), &f[i&3])
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
func (w *warp) mmaInteger(in *inst, op *mmaOp) {
	a := w.leftOperand(in, op)
	b := w.operandTile(op.b, op.bt, op, true)
	f := &w.scratch().acc
	*f = fragments{}
	multiply(f, a, b.sided[:], op.m, op.k)
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

// mmaF64 is a chain of fused multiply-adds in the order of k. Four lanes in a row
// hold four elements along k, of A's row or B's column.
func (w *warp) mmaF64(op *mmaOp) {
	chain := fmaChain
	if op.round != num.Even {
		step := directed64("fma", op.round)
		chain = func(a, b *[4]float64, x float64) float64 {
			for k := range a {
				x = f64(step(bits64(a[k]), bits64(b[k]), bits64(x)))
			}
			return x
		}
	}
	var sums [4][32]float64 // D may be where A and B are
	for i := range op.d {
		sum, c := &sums[i], w.q[op.c[i]].f64()
		for lane := range sum {
			x := c[lane]
			for q := range op.b {
				a, b := w.q[op.a[q*op.m/8+i>>1]].f64(), w.q[op.b[q]].f64()
				x = chain((*[4]float64)(a[lane&^3:]), (*[4]float64)(b[8*(lane&3)+4*(i&1):]), x)
			}
			if x != x {
				x = f64(nan64)
			}
			sum[lane] = x
		}
	}
	for i, s := range op.d {
		*w.q[s].f64() = sums[i]
	}
}

// fmaChain adds four products to x one after the other. math.FMA as a value would
// be the one in software.
func fmaChain(a, b *[4]float64, x float64) float64 {
	for k, v := range a {
		x = math.FMA(v, b[k], x)
	}
	return x
}
