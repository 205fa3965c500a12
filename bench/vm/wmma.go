package vm

import (
	"fmt"

	"github.com/kgen-dev/kgen/codegen/ptx"
)

func init() { decoders["wmma"] = (*decoder).wmma }

// wmmaShape is a shape of wmma. PTX leaves open which lane holds what; here
// fragments are those of mma.sync put side by side: two 16x8 products along N
// (m16n16) or M (m32n8), or one of 8x8. An 8x32 product is the transposed one
// of a 32x8.
type wmmaShape struct {
	name    string
	m, n, k int
}

func (s wmmaShape) swapped() bool { return s.m == 8 && s.n == 32 }

// tileRows is the height of a product.
func (s wmmaShape) tileRows() int {
	if s.n == 8 && s.m == 8 {
		return 8
	}
	return 16
}

// tiles is how many products there are.
func (s wmmaShape) tiles() int { return max(s.m*s.n/(16*8), 1) }

// tileRegisters is how many registers of one product's left (A) or right (B)
// operand, or accumulator, a fragment holds.
func (s wmmaShape) tileRegisters(operand byte, t ptx.Type) int {
	size := map[byte]int{'a': s.tileRows() * s.k, 'b': 8 * s.k, 'c': s.tileRows() * 8}[operand]
	bits := heldBits(t)
	return size * bits / max(bits, 32) / warpSize
}

// role is the operand of the products that a matrix is: the other one where
// they are transposed.
func (s wmmaShape) role(matrix byte) byte {
	if s.swapped() && matrix != 'c' {
		return 'a' + 'b' - matrix
	}
	return matrix
}

// distinct is how many registers of a fragment hold elements of their own:
// f16 ones have more, which repeat them.
func (s wmmaShape) distinct(matrix byte, t ptx.Type) int {
	role := s.role(matrix)
	n := s.tileRegisters(role, t)
	many := role == 'c' || role == 'a' && (s.n == 8 || s.swapped()) || role == 'b' && s.n == 16
	if many {
		n *= s.tiles()
	}
	return n
}

// place is where element j of register r of a lane lies in its matrix.
func (s wmmaShape) place(matrix byte, t ptx.Type, lane, r, j int) (row, col int) {
	role := s.role(matrix)
	per := max(32/heldBits(t), 1)
	n := s.tileRegisters(role, t)
	tile, r := r/n, r%n
	g, q := lane>>2, lane&3
	switch role {
	case 'a':
		row, col = g, per*q+j+4*per*r
		if s.tileRows() == 16 {
			row, col = g+8*(r&1), per*q+j+4*per*(r>>1)
		}
		row += 16 * tile
	case 'b':
		row, col = per*q+j+4*per*r, g+8*tile
	default:
		e := per*r + j
		row, col = g+8*(e>>1), 2*q+e&1
		if s.n == 16 {
			col += 8 * tile
		} else {
			row += 16 * tile
		}
	}
	if s.swapped() {
		row, col = col, row
	}
	return row, col
}

func (d *decoder) wmma() {
	what := d.take("load", "store", "mma")
	matrix := d.take("a", "b", "c", "d")
	if !d.has("sync") || !d.has("aligned") {
		d.refuse("want .sync.aligned")
	}
	s := wmmaShape{name: d.take("m16n16k16", "m8n32k16", "m32n8k16", "m16n16k8", "m8n8k4", "m8n8k32", "m8n8k128")}
	if _, err := fmt.Sscanf(s.name, "m%dn%dk%d", &s.m, &s.n, &s.k); err != nil {
		d.refuse("shape %s: %v", s.name, err)
	}
	switch what {
	case "mma":
		d.wmmaMultiply(s)
	case "load":
		d.wmmaMemory(s, matrix[0], true)
	case "store":
		d.wmmaMemory(s, 'c', false)
	default:
		d.refuse("want .load, .store or .mma")
	}
}

// wmmaMultiply is wmma.mma. How the matrices lay in memory is no matter to
// their fragments.
func (d *decoder) wmmaMultiply(s wmmaShape) {
	d.take("row", "col")
	d.take("row", "col")
	whole := mmaOp{m: s.tileRows(), n: 8, k: s.k, sat: d.has("satfinite"), round: d.rounding().mode}
	if whole.and = d.take("and", "xor") == "and"; d.has("popc") && s.k != 128 {
		d.refuse("want .popc of single bits alone")
	}
	whole.dt = d.typ()
	whole.at, whole.bt, whole.ct = ptx.F16, ptx.F16, d.typ()
	if t := d.optionalType(); t != ptx.NoType {
		whole.at, whole.bt, whole.ct = whole.ct, t, d.typ()
	}
	ops := d.operands(4, 4)
	in := d.new(kindMasked)
	dst := d.fragmentRegisters(in, &ops[0], s.distinct('c', whole.dt), registerType(whole.dt), true)
	a := d.fragmentRegisters(in, &ops[1], len(elements(&ops[1])), registerType(whole.at), false)
	b := d.fragmentRegisters(in, &ops[2], len(elements(&ops[2])), registerType(whole.bt), false)
	c := d.fragmentRegisters(in, &ops[3], s.distinct('c', whole.ct), registerType(whole.ct), false)
	if len(a) < s.distinct('a', whole.at) || len(b) < s.distinct('b', whole.bt) {
		d.refuse("%d and %d registers of A and B: want at least %d and %d", len(a), len(b), s.distinct('a', whole.at), s.distinct('b', whole.bt))
	}
	left, right := a, b
	if s.swapped() {
		left, right = b, a
		whole.at, whole.bt = whole.bt, whole.at
	}
	whole.fused = d.mod.fusedSum("wmma", &whole)
	part := func(all []int32, operand byte, t ptx.Type, tile int) []int32 {
		n := s.tileRegisters(operand, t)
		return all[tile*n : (tile+1)*n]
	}
	for i := range s.tiles() {
		op := whole
		row, col := i, 0 // of the tile
		if s.n == 16 {
			row, col = 0, i
		}
		op.a, op.b = part(left, 'a', op.at, row), part(right, 'b', op.bt, col)
		op.c, op.d = part(c, 'c', op.ct, i), part(dst, 'c', op.dt, i)
		in.tiles = append(in.tiles, &op)
	}
	in.rule = ruleMatrix
	in.fn[modeFull] = func(w *warp, in *inst) {
		if !w.together(in) {
			return
		}
		for _, op := range in.tiles {
			w.runMma(in, op)
		}
	}
	d.emit(in)
	whole.m, whole.n = s.m, s.n
	if s.swapped() {
		whole.at, whole.bt = whole.bt, whole.at
	}
	d.countTensor("wmma", s.name, &whole)
}

// wmmaMemory is wmma.load and wmma.store: loads or stores of each register,
// which count one by one.
func (d *decoder) wmmaMemory(s wmmaShape, matrix byte, load bool) {
	rowMajor := d.take("row", "col") == "row"
	space := d.take("global", "shared", "shared::cta")
	t := d.typ()
	ops := d.operands(2, 3)
	fragment, address := &ops[0], &ops[1]
	if !load {
		fragment, address = address, fragment
	}
	if address.Kind != ptx.OpAddr || len(address.Elems()) != 1 {
		d.refuse("operand %s: want an address", describe(address))
	}
	d.wmmaTogether()
	base := &address.Elems()[0]
	if v, ok := base.Decl().(*ptx.Variable); ok && base.Kind == ptx.OpSymbol && space == "" {
		space = v.Space.String()
	}
	m := matrixMemory{s: s, matrix: matrix, t: t, rowMajor: rowMajor, load: load, space: space, base: base}
	if len(ops) == 3 {
		m.stride = &ops[2]
	}
	regs := elements(fragment)
	own := s.distinct(matrix, t)
	if len(regs) < own {
		d.refuse("%d registers: want at least %d", len(regs), own)
	}
	for r := range regs {
		if r >= own {
			d.within("mov", []string{"b32"}, regs[r], regs[r%own])
			continue
		}
		d.matrixRegister(&m, r, regs[r])
	}
}

// wmmaTogether emits the check that all lanes are there.
func (d *decoder) wmmaTogether() {
	in := d.new(kindMasked)
	in.fn[modeFull] = func(w *warp, in *inst) { w.together(in) }
	d.emit(in)
}

// matrixPart is what reports call a register that holds part of a matrix.
const matrixPart = "a part of a matrix"

// matrixMemory is a matrix in memory that a fragment is loaded from or stored
// to.
type matrixMemory struct {
	s              wmmaShape
	matrix         byte
	t              ptx.Type
	rowMajor, load bool
	space          string // "" is generic
	base, stride   *ptx.Operand
}

// matrixRegister loads or stores one register of a fragment: at once where its
// elements lie side by side, else one by one.
func (d *decoder) matrixRegister(m *matrixMemory, r int, reg ptx.Operand) {
	bits := heldBits(m.t)
	per := max(32/bits, 1)
	row0, col0 := m.s.place(m.matrix, m.t, 0, r, 0)
	row1, col1 := m.s.place(m.matrix, m.t, 0, r, min(1, per-1))
	along := row1 == row0 && m.rowMajor || col1 == col0 && !m.rowMajor
	if along || per == 1 {
		d.matrixAccess(m, r, 0, max(bits, 32), reg)
		return
	}
	if bits < 8 {
		d.refuse("elements of %d bits: want them side by side", bits)
	}
	parts := make([]ptx.Operand, per)
	for j := range parts {
		parts[j] = d.temporary(matrixPart, map[int]ptx.Type{8: ptx.B8, 16: ptx.B16}[bits])
	}
	all := ptx.Operand{Kind: ptx.OpVector, Parts: &parts}
	if !m.load {
		d.within("mov", []string{"b32"}, all, reg)
	}
	for j := range parts {
		d.matrixAccess(m, r, j, bits, parts[j])
	}
	if m.load {
		d.within("mov", []string{"b32"}, reg, all)
	}
}

// matrixAccess loads or stores so many bits at element j of register r.
func (d *decoder) matrixAccess(m *matrixMemory, r, j, bits int, reg ptx.Operand) {
	at := ptx.Operand{Kind: ptx.OpAddr, Parts: &[]ptx.Operand{d.matrixAddress(m, r, j)}}
	mods := []string{fmt.Sprint("b", bits)}
	if m.space != "" {
		mods = []string{m.space, mods[0]}
	}
	if m.load {
		d.within("ld", mods, reg, at)
	} else {
		d.within("st", mods, at, reg)
	}
}

// matrixAddress computes the address of each lane's element j of register r.
func (d *decoder) matrixAddress(m *matrixMemory, r, j int) ptx.Operand {
	var lines, along [warpSize]uint64 // of a line, and the place in it
	for lane := range warpSize {
		row, col := m.s.place(m.matrix, m.t, lane, r, j)
		if !m.rowMajor {
			row, col = col, row
		}
		lines[lane], along[lane] = uint64(row), uint64(col)
	}
	bits := uint64(heldBits(m.t))
	to := d.temporary(matrixPart, ptx.B64)
	in := d.new(kindPure)
	in.pc = -1
	in.kd = d.destination(in, &in.d, &to, ptx.B64, exact).k
	base := *m.base
	offset := uint64(0)
	bt := ptx.B64
	if base.Kind == ptx.OpReg {
		offset, base.Value = base.Value, 0
		if d.registerInfo(base.Slot()).Type.Bits() == 32 {
			bt = ptx.B32
		}
	}
	in.ka = d.source(in, &in.a, &base, bt, exact).k
	stride := ptx.Operand{Kind: ptx.OpImm, Value: uint64(m.s.leading(m.matrix, m.rowMajor))}
	if m.stride != nil {
		stride = *m.stride
	}
	in.kb = d.source(in, &in.b, &stride, ptx.U32, exact).k
	in.fn[modeFull] = func(w *warp, in *inst) {
		var a, b lanes64
		w.widen(&a, in.ka, in.a)
		w.widen(&b, in.kb, in.b)
		out := &w.q[in.d]
		for i := range out {
			out[i] = a[i] + offset + (lines[i]*b[i]+along[i])*bits/8
		}
	}
	d.insts = append(d.insts, in)
	return to
}

// leading is the stride of a matrix without gaps.
func (s wmmaShape) leading(matrix byte, rowMajor bool) int {
	rows, cols := s.m, s.n
	switch matrix {
	case 'a':
		cols = s.k
	case 'b':
		rows = s.k
	}
	if rowMajor {
		return cols
	}
	return rows
}
