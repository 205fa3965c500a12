package vm

import (
	"math"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
	"github.com/kgen-dev/kgen/ir/num"
)

// How tcgen05.mma computes.

// productTiles is room for the operands and sums of one block's part.
type productTiles struct {
	a    [tensorLanes * 2 * maxTileK]float32 // row by row
	b    [256 * 2 * maxTileK]float32         // column by column
	sums [tensorLanes * 256]float32
	kept [2 * maxTileK]float32

	badRows [tensorLanes]uint32 // origins of undefined values, 0 is none
	badCols [256]uint32

	scaleA [tensorLanes][4]float64
	scaleB [256][4]float64

	fused fusedTiles
}

// tensorProduct counts a product.
func (c *counts) tensorProduct(p *product) {
	if c.products == nil {
		c.products = map[bench.TensorCount]int64{}
	}
	k := bench.TensorCount{
		Kind: "tcgen05", Shape: shapeName(p.m, p.n, p.k), A: typeName(p.at), B: typeName(p.bt), Accumulator: p.dt.String(),
		Sparse: p.op.sparse, Operations: 2 * int64(p.m*p.n*p.k),
	}
	c.products[k]++
}

// typeName is a type's as programs write it.
func typeName(t ptx.Type) string {
	if t == packedE2M1 {
		return ptx.E2M1.String()
	}
	return t.String()
}

// run does a product.
func (p *product) run(x *tensorWork) {
	b := x.w.b
	if b.tensor.tiles == nil {
		b.tensor.tiles = new(productTiles)
	}
	t := b.tensor.tiles
	clear(t.badCols[:])
	inA := len(p.shared) - len(p.ctas) // A's matrices come first
	for i := range p.ctas {
		p.readB(x, t, p.shared[inA+i], i*p.n/len(p.ctas))
	}
	for i, c := range p.ctas {
		clear(t.badRows[:])
		if inA > 0 {
			p.readA(x, t, p.shared[i])
			p.expandA(x, t, c, 0)
		}
		for part := range p.layout.parts {
			if inA == 0 {
				clear(t.badRows[:])
				p.readTensorA(x, t, c, part)
				p.expandA(x, t, c, part)
			}
			if p.op.kind.scaled {
				p.readScales(x, t, c, part)
			}
			p.sum(x, t, i, part)
		}
	}
}

// elementsOf decodes 16 bytes of shared memory. Elements of 4 or 6 bits are
// packed at their beginning, 16 of them (PTX ISA 9.7.16.10.4).
func elementsOf(e *[32]float32, p *[16]byte, t ptx.Type) int {
	data := *p
	if bits := narrowBits(t); bits < 8 && t != packedE2M1 {
		data, _ = expandPacked(p, new([16]uint8), bits)
	}
	return decodeWords(e, &data, t)
}

// readMatrix decodes a matrix in shared memory to rows of k numbers, and notes
// the rows that are undefined.
func readMatrix(x *tensorWork, m *matrix, t ptx.Type, out []float32, k int, bad []uint32) {
	var e [32]float32
	shared := x.w.b.shared
	used := 16 // bytes of a chunk: the rest pads elements of 4 or 6 bits
	if bits := narrowBits(t); bits < 8 && t != packedE2M1 {
		used = 2 * bits
	}
	m.chunks(func(off uint64, row, at int) {
		n := elementsOf(&e, (*[16]byte)(shared[off:]), t)
		from := x.undefinedChunk(off, used)
		if !m.transposed {
			copy(out[row*k+at:], e[:n])
			if from != 0 {
				bad[row] = from
			}
			return
		}
		for i := range n {
			out[(row+i)*k+at] = e[i]
			if from != 0 {
				bad[row+i] = from
			}
		}
	})
}

func (p *product) readB(x *tensorWork, t *productTiles, m *matrix, first int) {
	readMatrix(x, m, p.bt, t.b[first*p.k:], p.k, t.badCols[first:])
	for i := first; i < first+m.n; i++ {
		if p.zeros != nil && p.zeros[i] {
			clear(t.b[i*p.k : (i+1)*p.k])
			t.badCols[i] = 0
		}
	}
}

func (p *product) readA(x *tensorWork, t *productTiles, m *matrix) {
	readMatrix(x, m, p.at, t.a[:], m.k, t.badRows[:])
}

// readTensorA decodes A in tensor memory, from the lanes of a part of the sums.
func (p *product) readTensorA(x *tensorWork, t *productTiles, c *cta, part int) {
	var e [32]float32
	words := p.columnsOfA()
	per := perRegister(p.at)
	for row := range p.layout.rows {
		from := row
		if p.op.shift && row+1 < p.layout.rows {
			from++
		}
		lane := p.layout.lane(from) + part*p.layout.step() + p.a.lane()
		for i := 0; i < words; i += 4 {
			var data [16]byte
			for j := range min(4, words-i) {
				col := p.a.column() + i + j
				*at[uint32](data[4*j:]) = c.tensor.words[lane][col]
				if c.tensor.undef[lane][col] != 0 && x.w.u != nil {
					t.badRows[row] = x.w.undefinedWord(c.tensor, lane, col, x.from)
				}
			}
			n := decodeWords(&e, &data, p.at)
			copy(t.a[row*words*per+i*per:], e[:n])
		}
	}
}

// readScales reads the scale factors of A's rows and B's columns, from the lanes
// of each row's own warp: PTX ISA 9.7.16.10.7.
func (p *product) readScales(x *tensorWork, t *productTiles, c *cta, part int) {
	factors := func(a tensorAddress, i, id, quarter int, out *[4]float64, bad *uint32) {
		lane, col := quarter*warpSize+i%warpSize, a.column()+i/warpSize
		v := c.tensor.words[lane][col]
		if c.tensor.undef[lane][col] != 0 && x.w.u != nil {
			*bad = x.w.undefinedWord(c.tensor, lane, col, x.from)
		}
		for j := range p.op.parts {
			code := v >> (8 * ((id + j) & 3)) & 0xff
			if p.ue4m3 {
				out[j] = num.E4M3.Decode(code & 0x7f)
			} else {
				out[j] = decodeUE8M0(uint64(code))
			}
		}
	}
	for row := range p.layout.rows {
		quarter := (p.layout.lane(row) + part*p.layout.step()) / warpSize
		factors(p.scaleA, row, p.idA, quarter, &t.scaleA[row], &t.badRows[row])
	}
	n := p.n / p.layout.parts
	for i := range n {
		factors(p.scaleB, i, p.idB, part*p.layout.step()/warpSize, &t.scaleB[part*n+i], &t.badCols[part*n+i])
	}
}

// sum adds one block's part of the product to its sums.
func (p *product) sum(x *tensorWork, t *productTiles, which, part int) {
	cols := p.n / p.layout.parts
	b := t.b[part*cols*p.k:]
	sums := t.sums[:p.layout.rows*cols]
	p.readSums(which, part, sums)
	if p.negate {
		flip(t.a[:p.layout.rows*p.k])
		defer flip(t.a[:p.layout.rows*p.k])
	}
	switch {
	case p.op.kind.scaled:
		p.addScaled(t, sums, b, cols, part)
	case p.fused != nil:
		p.addFused(t, sums, b, cols)
	default:
		addProducts(sums, t.a[:], b, p.layout.rows, cols, p.k)
	}
	p.writeSums(x, t, which, part, sums)
}

// place is the tensor memory and lane of a row of the sums.
func (p *product) place(which, part, row int) (t *tensorMemory, lane int) {
	return p.ctas[which].tensor, p.layout.lane(row) + part*p.layout.step() + p.d.lane()
}

// readSums reads what is added to; integers are added at the end.
func (p *product) readSums(which, part int, sums []float32) {
	if !p.accumulate || p.dt == ptx.S32 {
		clear(sums)
		return
	}
	cols := p.n / p.layout.parts
	scale := float32(math.Ldexp(1, -p.op.scaleD))
	for row := range p.layout.rows {
		m, lane := p.place(which, part, row)
		words := m.words[lane][p.d.column():][:cols]
		out := sums[row*cols:][:cols]
		for i, v := range words {
			if p.dt == ptx.F16 {
				out[i] = num.F16ToF32(uint16(v)) * scale
			} else {
				out[i] = math.Float32frombits(v) * scale
			}
		}
	}
}

// writeSums writes the results.
func (p *product) writeSums(x *tensorWork, t *productTiles, which, part int, sums []float32) {
	cols := p.n / p.layout.parts
	for row := range p.layout.rows {
		m, lane := p.place(which, part, row)
		if p.disabled(which, lane) {
			continue
		}
		words := m.words[lane][p.d.column():][:cols]
		for i, v := range sums[row*cols:][:cols] {
			words[i] = p.result(v, words[i])
		}
		p.defineSums(x, t, m, lane, row, part)
	}
}

// disabled says whether a lane is one that keeps what it holds.
func (p *product) disabled(which, lane int) bool {
	at := which*tensorLanes + lane
	return p.disable[at/32]>>(at%32)&1 != 0
}

// result is a sum as tensor memory holds it; was is what it held.
func (p *product) result(v float32, was uint32) uint32 {
	switch p.dt {
	case ptx.F16:
		return uint32(num.F16FromF32(v))
	case ptx.S32:
		sum := int64(v)
		if p.accumulate {
			sum += int64(int32(was))
		}
		if p.sat {
			sum = max(min(sum, math.MaxInt32), math.MinInt32)
		}
		return uint32(sum)
	}
	if v != v {
		v = canonicalNaN
	}
	return math.Float32bits(v)
}

// defineSums says which of a row's sums are defined.
func (p *product) defineSums(x *tensorWork, t *productTiles, m *tensorMemory, lane, row, part int) {
	cols := p.n / p.layout.parts
	if x.w.u == nil {
		return
	}
	undef := m.undef[lane][p.d.column():][:cols]
	for i := range undef {
		from := t.badRows[row]
		if from == 0 {
			from = t.badCols[part*cols+i]
		}
		if from != 0 {
			m.set(lane, p.d.column()+i, m.words[lane][p.d.column()+i], 0xf, 0xf, from)
		} else if !p.accumulate {
			undef[i] = 0
		}
	}
}

// addProducts adds a*b to sums: rows and columns of k numbers, of both a multiple
// of eight.
func addProducts(sums, a, b []float32, rows, cols, k int) {
	var sided [eightColumns * 2 * maxTileK]float32
	for c := 0; c < cols; c += eightColumns {
		sideBySide(sided[:], b[c*k:], k, &inOrder)
		for r := 0; r < rows; r += 8 {
			at := sums[r*cols+c:]
			addRows(at, at[4:], cols, a[r*k:], sided[:], k)
		}
	}
}

func flip(a []float32) {
	for i := range a {
		a[i] = -a[i]
	}
}

// addFused adds a*b to sums as tensor cores do.
func (p *product) addFused(t *productTiles, sums, b []float32, cols int) {
	t.fused.prepare(p.fused, t.a[:], b, p.layout.rows, cols, p.k)
	t.fused.addTo(p.fused, sums, cols, p.k)
}

// addScaled adds products with block scales.
func (p *product) addScaled(t *productTiles, sums, b []float32, cols, part int) {
	if p.fused != nil {
		t.fused.prepareScaled(p.fused, t.a[:], b, t.scaleA[:p.layout.rows], t.scaleB[part*cols:][:cols], p.k, p.op.parts)
		if p.fused.group == 0 {
			t.fused.addTo(p.fused, sums, cols, p.k)
			return
		}
	}
	for i, c := range sums {
		row, col := i/cols, i%cols
		sa, sb := t.scaleA[row][:p.op.parts], t.scaleB[part*cols+col][:p.op.parts]
		if p.fused != nil {
			sums[i] = p.fused.scaled(c, &t.fused, row, col, p.k, sa, sb)
		} else {
			sums[i] = scaledDot(c, t.a[row*p.k:][:p.k], b[col*p.k:][:p.k], sa, sb)
		}
	}
}
