package vm

import (
	"fmt"
)

func shapeName(m, n, k int) string { return fmt.Sprintf("m%dn%dk%d", m, n, k) }

// metaColumns is the columns that the metadata of a sparse A take: a bit for each
// element that A stands for, or for each two where elements are kept in pairs.
func (p *product) metaColumns() int {
	if p.k > 32 {
		return 2
	}
	return 1
}

// expandA puts the elements of a sparse A where the metadata say: PTX ISA
// 9.7.16.10.8. Dense ones stay as they are.
func (p *product) expandA(x *tensorWork, t *productTiles, c *cta, part int) {
	if !p.op.sparse {
		return
	}
	half := p.k / 2
	for row := p.layout.rows - 1; row >= 0; row-- { // in place: from the end
		kept := t.kept[:half]
		copy(kept, t.a[row*half:])
		out := t.a[row*p.k:][:p.k]
		clear(out)
		meta := p.metadata(x, t, c, part, row)
		expandRow(out, kept, meta, p.at)
	}
}

// metadata is a row's: two bits for each place of four, low bits first. Those of
// 16 and 32 bits are in two lanes, half of K each.
func (p *product) metadata(x *tensorWork, t *productTiles, c *cta, part, row int) (v uint64) {
	col := p.meta.column() + p.selector
	word := func(lane, col int) uint64 {
		if c.tensor.undef[lane][col] != 0 && x.w.u != nil {
			t.badRows[row] = x.w.undefinedWord(c.tensor, lane, col, x.from)
		}
		return uint64(c.tensor.words[lane][col])
	}
	base := part*p.layout.step() + p.meta.lane()
	if p.metaColumns() == 2 {
		lane := base + p.layout.lane(row)
		return word(lane, col) | word(lane, col+1)<<32
	}
	shift := 16 * (row / 8 % 2)
	lane := base + p.layout.lane(row/16*16) + row%8
	return word(lane, col)>>shift&0xffff | word(lane+8, col)>>shift&0xffff<<16
}
