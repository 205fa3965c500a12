package vm

import (
	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// matrixForm is what ldmatrix and stmatrix take for an element, and how.
type matrixForm uint64

const (
	matrixHalves     matrixForm = iota // 8x8 matrices of 16-bit elements
	matrixTransposed                   // the same, transposed
	matrixWide                         // 8 rows of 16 bytes
	matrixSquare                       // 16 rows of 16 bytes, transposed
	matrixTall                         // 16x8 bytes in registers, stored transposed: 8 rows of 16 bytes

	// In memory the 16 elements of a row may be of 6 or 4 bits, packed at its start.
	matrixSixes matrixForm = 8
	matrixFours matrixForm = 16
)

// packed is a form without how its elements are packed, and with how many bits
// each has in memory.
func (f matrixForm) packed() (matrixForm, int) {
	switch {
	case f&matrixSixes != 0:
		return f &^ matrixSixes, 6
	case f&matrixFours != 0:
		return f &^ matrixFours, 4
	}
	return f, 8
}

// byteMatrix takes the modifiers of matrices of bytes.
func (d *decoder) byteMatrix(shape string, trans bool) matrixForm {
	form := map[string]matrixForm{"m8n16": matrixWide, "m16n16": matrixSquare, "m16n8": matrixTall}[shape]
	if trans != (form != matrixWide) {
		d.refuse("want .trans with .m16n16 and .m16n8 alone")
	}
	switch {
	case d.has("b8"):
	case !d.has("b8x16"):
		d.refuse("want .b8 or .b8x16")
	case d.has("b6x16_p32"):
		form |= matrixSixes
	case d.has("b4x16_p64"):
		form |= matrixFours
	default:
		d.refuse("want .b6x16_p32 or .b4x16_p64")
	}
	return form
}

// place is where byte i of a lane's register j lies: the lane that gives the
// row's address, and the element of the row.
func (f matrixForm) place(lane, j, i int) (row, element int) {
	g, t := lane>>2, lane&3
	switch f {
	case matrixWide:
		return 8*j + g, 4*t + i
	case matrixSquare:
		return 16*(j>>1) + 4*t + 2*(j&1) + i&1, g + 8*(i>>1)
	}
	return 8*j + 2*t + i&1, g + 8*(i>>1)
}

// loadBytes is ldmatrix of bytes. Elements of 6 bits come to lie in the low bits
// of their byte, those of 4 bits in its middle.
func loadBytes(w *warp, in *inst) {
	if !w.together(in) {
		return
	}
	form, bits := matrixForm(in.imm).packed()
	var off lanes64
	ok := w.rows(in, &off)
	w.countShared(in.mem, &off, 16, ok, sharedMatrix)
	if r := w.b.race; r != nil {
		r.sharedAccess(w, in, in.mem, &off, 2*bits, ok, false, 0)
	}
	if w.u != nil {
		defer w.loadedBytes(in, &off, ok)
	}
	mem := w.b.shared
	for j := range in.list {
		if in.list[j].slot < 0 {
			continue
		}
		d := &w.r[in.list[j].slot]
		for lane := range d {
			d[lane] = 0
			for i := range 4 {
				row, e := form.place(lane, j, i)
				if ok>>row&1 == 0 {
					continue
				}
				at, shift := bits*e>>3, bits*e&7
				v := uint32(mem[off[row]+uint64(at)]) >> shift
				if shift+bits > 8 {
					v |= uint32(mem[off[row]+uint64(at+1)]) << (8 - shift)
				}
				v &= 1<<bits - 1
				if bits == 4 {
					v <<= 2
				}
				d[lane] |= v << (8 * i)
			}
		}
	}
}

// loadedBytes marks what was read from bytes that were never written.
func (w *warp) loadedBytes(in *inst, off *lanes64, ok uint32) {
	u := w.b.undef
	form, bits := matrixForm(in.imm).packed()
	for j := range in.list {
		if in.list[j].slot < 0 {
			continue
		}
		s := w.fr.prog.unified(class32, in.list[j].slot)
		for lane := range warpSize {
			for i := range 4 {
				row, e := form.place(lane, j, i)
				at := off[row] + uint64(bits*e>>3)
				if ok>>row&1 == 0 || !u.any(at, 1+(bits*e&7+bits-1)>>3) {
					continue
				}
				from, known := u.origins[at]
				if !known {
					from = w.b.addOrigin(origin{class: bench.UninitialisedSharedRead, src: w.source(in), space: ptx.SpaceShared, addr: w.b.address(off[row]), size: 16, warp: w.index, lane: row})
				}
				w.undefine(s, lane, w.bitsOf(s, lane)|0xff<<(8*i), from)
			}
		}
	}
}

// byteRow is the row of bytes that stmatrix stores at a lane's address.
func (w *warp) byteRow(in *inst, lane int) (row [16]byte) {
	j, r := lane>>3, lane&7
	v := &w.r[in.list[j].slot]
	for e := range row {
		// The holder of row r = 2t + i&1, element e = g + 8*(i>>1).
		i := r&1 | e>>3<<1
		row[e] = byte(v[4*(e&7)+r>>1] >> (8 * i))
	}
	return row
}
