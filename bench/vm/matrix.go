package vm

import (
	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

func init() {
	decoders["ldmatrix"] = (*decoder).ldmatrix
	decoders["stmatrix"] = (*decoder).stmatrix
	decoders["movmatrix"] = (*decoder).movmatrix
}

// matrixOp takes the modifiers of ldmatrix and stmatrix, and says how many
// registers a lane holds.
func (d *decoder) matrixOp() (n int, form matrixForm) {
	shape := d.take("m8n8", "m8n16", "m16n16", "m16n8")
	if !d.has("sync") || !d.has("aligned") || shape == "" {
		d.refuse("want .sync.aligned and a shape such as .m8n8")
	}
	switch d.take("x1", "x2", "x4") {
	case "x1":
		n = 1
	case "x2":
		n = 2
	case "x4":
		n = 4
	default:
		d.refuse("want .x1, .x2 or .x4")
	}
	trans := d.has("trans")
	if s := d.space(); s != ptx.SpaceShared && s != ptx.SpaceGeneric {
		d.refuse("want shared memory")
	}
	switch {
	case shape == "m16n16":
		return 2 * n, d.byteMatrix(shape, trans)
	case shape != "m8n8":
		return n, d.byteMatrix(shape, trans)
	}
	if t := d.typ(); t != ptx.B16 {
		d.refuse("type .%s: want .b16", t)
	}
	if trans {
		return n, matrixTransposed
	}
	return n, matrixHalves
}

func (d *decoder) ldmatrix() {
	n, form := d.matrixOp()
	ops := d.operands(2, 2)
	in := d.new(kindMasked)
	in.mem = d.newMem(d.matrixSpace())
	in.mem.size = 16
	d.memory(in, in.mem, &ops[1])
	in.list = d.matrixRegisters(in, &ops[0], n, true)
	in.fn[modeFull] = ldmatrix
	if form > matrixTransposed {
		in.fn[modeFull] = loadBytes
	}
	in.imm = uint64(form)
	in.rule = ruleLoadMatrix
	d.emit(in)
}

func (d *decoder) stmatrix() {
	n, form := d.matrixOp()
	ops := d.operands(2, 2)
	in := d.new(kindMasked)
	in.mem = d.newMem(d.matrixSpace())
	in.mem.size = 16
	d.memory(in, in.mem, &ops[0])
	in.list = d.matrixRegisters(in, &ops[1], n, false)
	in.fn[modeFull] = stmatrix
	in.imm = uint64(form)
	in.rule = ruleStoreMatrix
	d.emit(in)
}

// matrixSpace is shared, or generic where the instruction names none.
func (d *decoder) matrixSpace() ptx.Space {
	for _, w := range d.words {
		if w == "shared" || w == "shared::cta" {
			return ptx.SpaceShared
		}
	}
	return ptx.SpaceGeneric
}

func (d *decoder) matrixRegisters(in *inst, o *ptx.Operand, n int, dst bool) []operand {
	e := elements(o)
	if len(e) != n {
		d.refuse("%d registers: want %d", len(e), n)
	}
	list := make([]operand, n)
	for i := range e {
		if dst {
			d.destination(in, &list[i].slot, &e[i], ptx.B32, exact)
		} else {
			d.source(in, &list[i].slot, &e[i], ptx.B32, exact)
		}
	}
	return list
}

// rows are the offsets of the matrices' rows, whose addresses the first lanes
// give: row r of matrix j is lane 8*j + r's. ok is the lanes whose rows lie in
// shared memory.
func (w *warp) rows(in *inst, off *lanes64) (ok uint32) {
	m := in.mem
	w.addresses(m, off)
	lanes := allLanes >> (warpSize - 8*len(in.list))
	if m.space == ptx.SpaceGeneric {
		for i := range off {
			off[i] -= sharedWindow
		}
	}
	saved := w.mask
	w.mask &= lanes
	ok = w.sharedOffsets(in, off, 16)
	w.mask = saved
	return ok
}

func ldmatrix(w *warp, in *inst) {
	if !w.together(in) {
		return
	}
	var off lanes64
	ok := w.rows(in, &off)
	w.countShared(in.mem, &off, 16, ok, sharedMatrix)
	mem := w.b.shared
	if r := w.b.race; r != nil {
		r.loadsRows(w, in, &off, ok)
	}
	if w.u != nil {
		defer w.loadedMatrix(in, &off, ok)
	}
	for j := range in.list {
		if in.list[j].slot < 0 {
			continue
		}
		d := &w.r[in.list[j].slot]
		var row [8][]byte
		for r := range row {
			row[r] = zeroRow[:]
			if ok>>(8*j+r)&1 != 0 {
				row[r] = mem[off[8*j+r]:][:16]
			}
		}
		if in.imm == 0 {
			for r := range row {
				p := (*[16]byte)(row[r])
				d[4*r] = *at[uint32](p[0:])
				d[4*r+1] = *at[uint32](p[4:])
				d[4*r+2] = *at[uint32](p[8:])
				d[4*r+3] = *at[uint32](p[12:])
			}
			continue
		}
		for lane := range d {
			g, t := lane>>2, lane&3
			d[lane] = uint32(*at[uint16](row[2*t][2*g:])) | uint32(*at[uint16](row[2*t+1][2*g:]))<<16
		}
	}
}

// loadsRows notes the rows that ldmatrix reads.
func (r *raceState) loadsRows(w *warp, in *inst, off *lanes64, lanes uint32) {
	if r.off || lanes == 0 {
		return
	}
	at := side{w: w, in: in, space: ptx.SpaceShared, id: r.eventFor(w, in, in.mem, 0), several: severalLanes}
	for l := lanes; l != 0; l &= l - 1 {
		at.row = firstLane(l)
		r.matrixRow(&at, off[at.row])
	}
}

// matrixRow notes an access to a row of a matrix: by all lanes, since at least four have
// a part of it, whoever gives its address. Two of them speak for these.
func (r *raceState) matrixRow(at *side, off uint64) {
	first, step := 4*(at.row&7), 1
	if at.in.imm != 0 {
		first, step = at.row&7>>1, 4
	}
	me := stamp(at.id)<<eventShift | severalLanes | stamp(at.row)
	at.addr, at.lane = r.b.address(off), at.row
	if at.write && len(r.flights) > 0 {
		r.againstReads(at, off, 16)
	}
	cells := r.cells(off, 16)
	for j := range cells {
		c := &cells[j]
		switch {
		case c.w < r.floor && c.r < r.floor:
		case c.w >= r.floor && c.w.event() == at.id && c.w&specialStamp == 0: // rows of one instruction
			at.lane, at.bytes = at.row, r.b.shared[off:]
			r.checkWrite(c, at)
		default:
			at.bytes = r.b.shared[off:]
			for at.lane = first; at.lane <= first+step; at.lane += step {
				if c.w >= r.floor {
					r.checkWrite(c, at)
				}
				if at.write && c.r >= r.floor {
					r.checkReads(c, at)
				}
			}
			at.lane = first
		}
		switch {
		case at.write:
			c.w, c.r = me, 0
		case c.r < r.floor:
			c.r = me
		case c.r.event() == at.id && c.r&specialStamp == 0:
			c.r |= severalLanes
		default:
			r.addReader(c, me, at)
		}
	}
}

// loadedMatrix marks what was read from bytes that were never written.
func (w *warp) loadedMatrix(in *inst, off *lanes64, ok uint32) {
	u := w.b.undef
	for l := ok; l != 0; l &= l - 1 {
		i := firstLane(l)
		if !u.any(off[i], 16) {
			continue
		}
		j, row := i>>3, i&7
		if in.list[j].slot < 0 {
			continue
		}
		s := w.fr.prog.unified(class32, in.list[j].slot)
		for col := range 8 {
			bits := u.bits(off[i]+uint64(2*col), 2)
			if bits == 0 {
				continue
			}
			lane, h := 4*row+col>>1, col&1
			if in.imm != 0 {
				lane, h = 4*col+row>>1, row&1
			}
			from, known := u.origins[off[i]+uint64(2*col)]
			if !known {
				from = w.b.addOrigin(origin{class: bench.UninitialisedSharedRead, src: w.source(in), space: ptx.SpaceShared, addr: w.b.address(off[i]), size: 16, warp: w.index, lane: i})
			}
			w.undefine(s, lane, w.bitsOf(s, lane)|bits<<(16*h), from)
		}
	}
}

var zeroRow [16]byte // read only

func stmatrix(w *warp, in *inst) {
	if !w.together(in) {
		return
	}
	var off lanes64
	ok := w.rows(in, &off)
	w.countShared(in.mem, &off, 16, ok, sharedMatrix)
	if u := w.b.undef; u != nil {
		storedTo(u, &off, 16, ok)
	}
	r := w.b.race
	var watched side
	if r != nil && !r.off {
		watched = side{w: w, in: in, space: ptx.SpaceShared, write: true, id: r.eventFor(w, in, in.mem, 0)}
	} else {
		r = nil
	}
	for l := ok; l != 0; l &= l - 1 {
		i := firstLane(l)
		if r != nil { // row by row: rows at one address may hold the same
			watched.row = i
			r.matrixRow(&watched, off[i])
		}
		row := w.matrixRow(in, i)
		copy(w.b.shared[off[i]:], row[:])
	}
}

// matrixRow is what stmatrix stores at a lane's address.
func (w *warp) matrixRow(in *inst, lane int) [16]byte {
	if matrixForm(in.imm) == matrixTall {
		return w.byteRow(in, lane)
	}
	v, r := &w.r[in.list[lane>>3].slot], lane&7
	var row [16]byte
	for t := range 4 {
		if in.imm == 0 {
			*at[uint32](row[4*t:]) = v[4*r+t]
			continue
		}
		// Column r of the registers' matrix: its rows 2t and 2t+1.
		*at[uint16](row[4*t:]) = transposed(v, r, 2*t)
		*at[uint16](row[4*t+2:]) = transposed(v, r, 2*t+1)
	}
	return row
}

// transposed is the element in row c, column k of a fragment: a lane holds two
// neighbouring columns of one row.
func transposed(v *lanes32, k, c int) uint16 { return uint16(v[4*c+k>>1] >> (16 * (k & 1))) }

// movmatrix transposes a fragment.
func (d *decoder) movmatrix() {
	if !d.has("sync") || !d.has("aligned") || !d.has("m8n8") || !d.has("trans") {
		d.refuse("want .sync.aligned.m8n8.trans")
	}
	d.typ()
	ops := d.operands(2, 2)
	in := d.new(kindMasked)
	d.destination(in, &in.d, &ops[0], ptx.B32, exact)
	d.source(in, &in.a, &ops[1], ptx.B32, exact)
	in.fn[modeFull] = func(w *warp, in *inst) {
		if !w.together(in) {
			return
		}
		a := w.r[in.a]
		d := &w.r[in.d]
		for lane := range d {
			g, t := lane>>2, lane&3
			lo := uint16(a[4*(2*t)+g>>1] >> (16 * (g & 1)))
			hi := uint16(a[4*(2*t+1)+g>>1] >> (16 * (g & 1)))
			d[lane] = uint32(lo) | uint32(hi)<<16
		}
	}
	d.emit(in)
}
