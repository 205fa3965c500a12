package vm_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// plainMatrix lays rows of bytes out without a swizzle, K-major: eight rows of 16
// bytes are a core matrix; those along K follow one another.
func plainMatrix(image []byte, start int, rows [][]byte) (descriptor uint64, end int) {
	chunks := (len(rows[0]) + 15) / 16
	for r, row := range rows {
		for i, v := range row {
			image[start+r%8*16+r/8*128*chunks+i/16*128+i%16] = v
		}
	}
	return uint64(tensorReserved+start)>>4 | 8<<16 | uint64(8*chunks)<<32 | 1<<46, start + (len(rows)+7)/8*128*chunks
}

// TestTensorCopies holds copies from shared to tensor memory to where PTX says
// that rows go, in one block and in both of a pair.
func TestTensorCopies(t *testing.T) {
	for _, c := range []struct {
		shape       string
		rows, bytes int
		lanes       func(row int) []int
	}{
		{"128x256b", 128, 32, func(r int) []int { return []int{r} }},
		{"128x128b", 128, 16, func(r int) []int { return []int{r} }},
		{"4x256b", 4, 32, func(r int) []int { return []int{31 + 32*r} }},
		{"64x128b.warpx2::02_13", 64, 16, func(r int) []int { return []int{r, 64 + r} }},
		{"64x128b.warpx2::01_23", 64, 16, func(r int) []int { return []int{r/32*64 + r%32, r/32*64 + 32 + r%32} }},
		{"32x128b.warpx4", 32, 16, func(r int) []int { return []int{r, 32 + r, 64 + r, 96 + r} }},
	} {
		for _, format := range []string{"", ".b8x16.b6x16_p32", ".b8x16.b4x16_p64"} {
			for _, pair := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s%s %v", c.shape, format, pair), func(t *testing.T) {
					checkCopy(t, c.shape, format, c.rows, c.bytes, c.lanes, pair)
				})
			}
		}
	}
}

func checkCopy(t *testing.T, shape, format string, rows, bytes int, lanes func(row int) []int, pair bool) {
	const columns = 32
	blocks := 1 + truthOf(pair)
	initial := numbered(128*blocks, columns)
	want := slices.Clone(initial)
	var images []byte
	var desc uint64
	for block := range blocks {
		source := make([][]byte, rows)
		for r := range source {
			source[r] = make([]byte, bytes)
			for i := range source[r] {
				source[r][i] = byte(r*7 + i*13 + block*101)
			}
		}
		image := make([]byte, rows*bytes+1024)
		desc, _ = plainMatrix(image, 0, source)
		images = append(images, image...)
		for r, row := range source {
			out := row
			switch format {
			case ".b8x16.b6x16_p32":
				out = expanded(row, 6, 0)
			case ".b8x16.b4x16_p64":
				out = expanded(row, 4, 2)
			}
			for _, lane := range lanes(r) {
				for i := 0; i < bytes; i += 4 {
					want[(block*128+lane)*columns+2+i/4] = toWords(out[i : i+4])[0]
				}
			}
		}
	}
	first := 2
	if shape == "4x256b" {
		first = 31<<16 + 2
	}
	got, faults := tensorProgram{image: images, columns: columns, initial: initial, pair: pair, regs: ".reg .b64 %da; .reg .b32 %xd;",
		issue: fmt.Sprintf("mov.b64 %%da, %d; add.u32 %%xd, %%tm, %d; @%%p0 tcgen05.cp.cta_group::%d.%s%s [%%xd], %%da;", int64(desc), first, blocks, shape, format)}.run(t)
	require.Empty(t, faults)
	sameWords(t, columns, want, got)
}

// expanded is 16 elements of so many bits, from the first bits of each 16 bytes,
// as bytes with a shift.
func expanded(row []byte, bits, shift int) []byte {
	out := make([]byte, len(row))
	for i := range out {
		v := 0
		for b := range bits {
			at := i%16*bits + b
			v |= int(row[i/16*16+at/8]>>(at%8)&1) << b
		}
		out[i] = byte(v << shift)
	}
	return out
}

// TestTensorShift: 31 of 32 lanes take what the next one holds, in 8 columns.
func TestTensorShift(t *testing.T) {
	const columns = 32
	initial := numbered(128, columns)
	got, faults := tensorProgram{columns: columns, initial: initial, regs: ".reg .b32 %xd;",
		issue: fmt.Sprintf("add.u32 %%xd, %%tm, %d; @%%p0 tcgen05.shift.cta_group::1.down [%%xd];", 64<<16+3)}.run(t)
	require.Empty(t, faults)
	want := slices.Clone(initial)
	for lane := 64; lane < 95; lane++ {
		copy(want[lane*columns+3:lane*columns+11], initial[(lane+1)*columns+3:])
	}
	sameWords(t, columns, want, got)
}

// narrowKind is a kind of product whose elements are given by their codes.
type narrowKind struct {
	name   string
	k      int
	bits   int // of an element in shared memory
	codes  []uint32
	values []float64
	types  uint32 // of A and B in the instruction descriptor
	padded bool   // elements of less than 8 bits, 16 in 16 bytes
}

var (
	e2m1Codes  = []uint32{0, 1, 2, 4, 7, 9, 12, 15}
	e2m1Values = []float64{0, .5, 1, 2, 6, -.5, -2, -6}
	e4m3       = narrowKind{"kind::mxf8f6f4", 32, 8, []uint32{0, 0x38, 0x40, 0xb8, 0x3c}, []float64{0, 1, 2, -1, 1.5}, 0, false}
	e5m2       = narrowKind{"kind::mxf8f6f4", 32, 8, []uint32{0, 0x3c, 0x40, 0xbc, 0x3e}, []float64{0, 1, 2, -1, 1.5}, 1<<7 | 1<<10, false}
	e2m3       = narrowKind{"kind::mxf8f6f4", 32, 6, []uint32{0, 1, 8, 31, 33, 63}, []float64{0, .125, 1, 7.5, -.125, -7.5}, 3<<7 | 3<<10, true}
	e3m2       = narrowKind{"kind::mxf8f6f4", 32, 6, []uint32{0, 12, 16, 44, 18}, []float64{0, 1, 2, -1, 3}, 4<<7 | 4<<10, true}
	e2m1       = narrowKind{"kind::mxf8f6f4", 32, 4, e2m1Codes, e2m1Values, 5<<7 | 5<<10, true}
	mxf4       = narrowKind{"kind::mxf4", 64, 4, e2m1Codes, e2m1Values, 1<<7 | 1<<10, false}
	nvf4       = narrowKind{"kind::mxf4nvf4", 64, 4, e2m1Codes, e2m1Values, 1<<7 | 1<<10, false}
)

// row is elements as bytes of shared memory.
func (k *narrowKind) row(which []int) []byte {
	size := len(which) * k.bits / 8
	if k.padded {
		size = len(which)
	}
	out := make([]byte, size)
	for i, w := range which {
		for b := range k.bits {
			at := i*k.bits + b
			if k.padded {
				at = i/16*128 + i%16*k.bits + b
			}
			out[at/8] |= byte(k.codes[w]>>b&1) << (at % 8)
		}
	}
	return out
}

// TestTensorScales compares products with block scales with plain sums. Scale
// factors lie as CuTe's traits have them: in every quarter of the lanes, four of a
// row in a word, each 32 rows in a column of their own.
func TestTensorScales(tb *testing.T) {
	rapid.Check(tb, func(t *rapid.T) {
		kind := rapid.SampledFrom([]narrowKind{e4m3, e5m2, e2m3, e3m2, e2m1, mxf4, nvf4}).Draw(t, "kind")
		parts, size := 1, "block32"
		ue4m3 := false
		switch kind.name {
		case "kind::mxf4":
			parts = 2
		case "kind::mxf4nvf4":
			if parts = 2; rapid.Bool().Draw(t, "by 16") {
				parts, size, ue4m3 = 4, "block16", rapid.Bool().Draw(t, "ue4m3")
			}
		}
		if rapid.Bool().Draw(t, "by number") {
			size = fmt.Sprintf("scale_vec::%dX", parts)
		}
		pair := rapid.Bool().Draw(t, "pair")
		blocks := 1 + truthOf(pair)
		m, n := 128, 16*rapid.IntRange(1, 10).Draw(t, "N/16")
		if pair && rapid.Bool().Draw(t, "M of 256") {
			m = 256
		}
		idA, idB := 0, 0
		if parts < 4 {
			idA, idB = parts*rapid.IntRange(0, 4/parts-1).Draw(t, "A's factors"), parts*rapid.IntRange(0, 4/parts-1).Draw(t, "B's factors")
		}
		seed := rapid.IntRange(1, 1000).Draw(t, "values")
		pick := func(i, row, k, of int) int { return (i*17 + row*seed + k*31 + row*k) % of }
		scales := map[bool]struct {
			codes  []uint32
			values []float64
		}{false: {[]uint32{126, 127, 128}, []float64{.5, 1, 2}}, true: {[]uint32{0x30, 0x38, 0x40}, []float64{.5, 1, 2}}}[ue4m3]

		const sfa, sfb, columns = 256, 264, 288
		value := func(i, row, k int) float64 { return kind.values[pick(i, row, k, len(kind.values))] }
		scale := func(i, row, part int) int { return pick(i+5, row, part, 3) }
		initial := make([]uint32, 128*blocks*columns)
		factors := func(block, quarter, at, id, i, local, row int) {
			for p := range parts {
				w := &initial[(block*128+quarter*32+local%32)*columns+at+local/32]
				*w |= scales.codes[scale(i, row, p)] << (8 * (id + p))
			}
		}
		var images []byte
		var da, db uint64
		for block := range blocks {
			image := make([]byte, 48<<10)
			rowsOf := func(i, first, count int) [][]byte {
				rows := make([][]byte, count)
				for r := range rows {
					which := make([]int, kind.k)
					for k := range which {
						which[k] = pick(i, first+r, k, len(kind.codes))
					}
					rows[r] = kind.row(which)
				}
				return rows
			}
			var end int
			da, end = plainMatrix(image, 0, rowsOf(0, block*m/blocks, m/blocks))
			db, _ = plainMatrix(image, end, rowsOf(1, block*n/blocks, n/blocks))
			images = append(images, image...)
			for quarter := range 4 {
				for r := range m / blocks {
					factors(block, quarter, sfa, idA, 0, r, block*m/blocks+r)
				}
				first, count := 0, n
				if pair && m == 128 { // the halves of the lanes have half of the columns each
					first, count = quarter/2*n/2, n/2
				}
				for c := range count {
					factors(block, quarter, sfb, idB, 1, c, first+c)
				}
			}
		}
		idesc := kind.types | uint32(idB)<<4 | uint32(n>>3)<<17 | uint32(truthOf(!ue4m3))<<23 | uint32(m>>7)<<27 | uint32(idA)<<29
		p := tensorProgram{image: images, columns: columns, initial: initial, pair: pair, regs: ".reg .b32 %id, %xa, %xb; .reg .b64 %da, %db; .reg .pred %pk;",
			opt: timings[rapid.IntRange(0, len(timings)-1).Draw(t, "timing")],
			issue: fmt.Sprintf("mov.b64 %%da, %d; mov.b64 %%db, %d; mov.b32 %%id, %d; mov.pred %%pk, 0; add.u32 %%xa, %%tm, %d; add.u32 %%xb, %%tm, %d;\n"+
				"@%%p0 tcgen05.mma.cta_group::%d.%s.block_scale.%s [%%tm], %%da, %%db, %%id, [%%xa], [%%xb], %%pk;", int64(da), int64(db), int32(idesc), sfa, sfb, blocks, kind.name, size)}
		got, faults := p.run(tb)
		require.Empty(t, faults)
		for row := range m {
			for col := range n {
				want := 0.0
				for k := range kind.k {
					part := k / (kind.k / parts)
					want += value(0, row, k) * value(1, col, k) * scales.values[scale(0, row, part)] * scales.values[scale(1, col, part)]
				}
				block, lane, column := sumPlace(m, n, false, pair, row, col)
				sameSum(t, want, got[(block*128+lane)*columns+column], row, col)
			}
		}
	})
}

// sameSum compares a sum of f32.
func sameSum(t require.TestingT, want float64, got uint32, row, col int) {
	if v := math.Float32frombits(got); float64(v) != want {
		require.Failf(t, "sums differ", "row %d, column %d: want %v, got %v", row, col, want, v)
	}
}

// sparseKind is a kind of sparse product: how elements are kept, and in what
// places of a group.
type sparseKind struct {
	elements narrowKind
	group    int // elements of which half are kept
	pairs    int // elements that are kept together
	spread   bool
	dense    int // K of a dense product
}

var sparseKinds = []sparseKind{
	{narrowKind{"kind::f16", 16, 16, []uint32{0x3c00, 0x4000, 0xbc00}, []float64{1, 2, -1}, 0, false}, 4, 1, true, 16},
	{narrowKind{"kind::tf32", 8, 32, []uint32{0x3f800000, 0x40000000, 0xbf800000}, []float64{1, 2, -1}, 2<<7 | 2<<10, false}, 2, 1, true, 8},
	{narrowKind{"kind::f8f6f4", 32, 8, []uint32{0x38, 0x40, 0xb8}, []float64{1, 2, -1}, 0, false}, 4, 1, false, 32},
	{narrowKind{"kind::i8", 32, 8, []uint32{1, 2, 0xff, 0x80}, []float64{1, 2, -1, -128}, 2<<4 | 1<<7 | 1<<10, false}, 4, 1, false, 32},
	{e4m3, 4, 1, false, 32},
	{e2m1, 4, 1, false, 32},
	{mxf4, 8, 2, false, 64},
	{nvf4, 8, 2, false, 64},
}

// TestTensorSparse compares products of a sparse A with plain sums. Metadata lie
// as CuTe's traits have them.
func TestTensorSparse(t *testing.T) {
	for _, kind := range sparseKinds {
		for _, n := range []int{16, 64} {
			t.Run(fmt.Sprintf("%s %d", kind.elements.name, n), func(t *testing.T) { checkSparse(t, &kind, n) })
		}
	}
}

func checkSparse(t *testing.T, kind *sparseKind, n int) {
	const m, columns, metaAt, sfa = 128, 160, 128, 136
	e := &kind.elements
	full := 2 * kind.dense
	initial := make([]uint32, 128*columns)
	dense := make([][]float64, m) // A
	kept := make([][]byte, m)
	for row := range m {
		dense[row] = make([]float64, full)
		which := make([]int, kind.dense)
		var meta uint64
		for i := 0; i < kind.dense; i += kind.pairs {
			half := kind.group / 2
			group, place := i/half, i%half/kind.pairs
			at := (row + group + place) % 2 // in a group of four places: 0 or 1, then 2 or 3
			at += 2 * place
			if kind.group == 2 {
				at = (row + group) % 2
				meta |= []uint64{0b0100, 0b1110}[at] << (4 * group)
			} else {
				meta |= uint64(at) << (4*group + 2*place)
			}
			for j := range kind.pairs {
				which[i+j] = (row*3 + i + j) % len(e.codes)
				dense[row][group*kind.group+at*kind.pairs+j] = e.values[which[i+j]]
			}
		}
		kept[row] = e.row(which)
		if kind.spread { // half of K each in lanes r and r+8 of 16, rows from 8 on in the upper halves
			lane, shift := row/16*16+row%8, 16*(row%16/8)
			initial[lane*columns+metaAt+1] |= uint32(meta&0xffff) << shift
			initial[(lane+8)*columns+metaAt+1] |= uint32(meta>>16) << shift
		} else {
			initial[row*columns+metaAt], initial[row*columns+metaAt+1] = uint32(meta), uint32(meta>>32)
		}
		for i := range 4 {
			initial[row*columns+sfa+i] = 0x7f7f7f7f // scale factors of one
		}
	}
	b := make([][]byte, n)
	bValues := make([][]float64, n)
	for col := range b {
		which := make([]int, full)
		bValues[col] = make([]float64, full)
		for k := range which {
			which[k] = (col*5 + k*k) % len(e.codes)
			bValues[col][k] = e.values[which[k]]
		}
		b[col] = e.row(which)
	}
	image := make([]byte, 32<<10)
	da, end := plainMatrix(image, 0, kept)
	db, _ := plainMatrix(image, end, b)
	idesc := e.types | 1<<2 | 1<<4 | uint32(n>>3)<<17
	scales, block := "", ""
	if strings.HasPrefix(e.name, "kind::mx") {
		idesc = e.types | 1<<2 | uint32(n>>3)<<17 | 1<<23 | 1<<27
		scales, block = " [%xs], [%xs],", ".block_scale.block32"
	} else {
		if e.name == "kind::i8" {
			idesc &^= 1 << 4 // sums of s32
		}
		idesc |= 8 << 24
		if kind.spread {
			idesc |= 1 // the second of the columns from the address on
		}
	}
	p := tensorProgram{image: image, columns: columns, initial: initial, regs: ".reg .b32 %id, %xm, %xs; .reg .b64 %da, %db; .reg .pred %pk;",
		issue: fmt.Sprintf("mov.b64 %%da, %d; mov.b64 %%db, %d; mov.b32 %%id, %d; mov.pred %%pk, 0; add.u32 %%xm, %%tm, %d; add.u32 %%xs, %%tm, %d;\n"+
			"@%%p0 tcgen05.mma.sp.cta_group::1.%s%s [%%tm], %%da, %%db, [%%xm], %%id,%s %%pk;", int64(da), int64(db), int32(idesc), metaAt, sfa, e.name, block, scales)}
	got, faults := p.run(t)
	require.Empty(t, faults)
	for row := range m {
		for col := range n {
			want := 0.0
			for k := range full {
				want += dense[row][k] * bValues[col][k]
			}
			if e.name == "kind::i8" {
				require.Equal(t, int32(want), int32(got[row*columns+col]), "row %d, column %d", row, col)
				continue
			}
			sameSum(t, want, got[row*columns+col], row, col)
		}
	}
}

// TestTensorZeroColumns: a descriptor leaves columns of B out, as in the examples
// of PTX ISA 9.7.16.4.3.
func TestTensorZeroColumns(t *testing.T) {
	for _, c := range []struct {
		m, n  int
		mask  uint64
		zeros []string // of the lowest columns of each part, from column 0 on
	}{
		{128, 64, 1<<39 | 2<<40 | 3<<48, []string{"00001110000111"}},
		{64, 64, 1<<39 | 2<<40 | 3<<48 | 1<<32, []string{"1110000111", "0000111"}},
		{32, 64, 1<<39 | 2<<40 | 3<<48 | 1<<32 | 1<<33 | 1<<8 | 2<<16 | 1<<24, []string{"1110000111", "110000111", "00111000", "00011100"}},
	} {
		const columns = 64
		rows := func(count int) [][]byte {
			all := make([][]byte, count)
			for r := range all {
				all[r] = make([]byte, 32)
				all[r][1] = 0x3c // one, at k of 0
			}
			return all
		}
		image := make([]byte, 16<<10)
		da, end := plainMatrix(image, 0, rows(c.m))
		db, _ := plainMatrix(image, end, rows(c.n))
		idesc := 1<<4 | uint32(c.n>>3)<<17 | uint32(c.m>>4)<<24
		got, faults := tensorProgram{image: image, columns: columns, initial: make([]uint32, 128*columns), regs: ".reg .b32 %id; .reg .b64 %da, %db, %dz; .reg .pred %pk;",
			issue: fmt.Sprintf("mov.b64 %%da, %d; mov.b64 %%db, %d; mov.b64 %%dz, %d; mov.b32 %%id, %d; mov.pred %%pk, 0;\n@%%p0 tcgen05.mma.ws.cta_group::1.kind::f16 [%%tm], %%da, %%db, %%id, %%pk, %%dz;",
				int64(da), int64(db), int64(c.mask), int32(idesc))}.run(t)
		require.Empty(t, faults)
		for part, zeros := range c.zeros {
			var text strings.Builder
			for i := range len(zeros) {
				_, lane, column := sumPlace(c.m, c.n, true, false, 0, part*c.n/len(c.zeros)+i)
				text.WriteByte("10"[truthOf(got[lane*columns+column] == math.Float32bits(1))])
			}
			require.Equal(t, zeros, text.String(), "M of %d, part %d", c.m, part)
		}
	}
}
