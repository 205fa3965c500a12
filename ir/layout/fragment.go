package layout

import "fmt"

// Fragments of the tensor cores' instructions (PTX ISA 9.7.14.5 for mma.sync and
// 9.7.15.5 for wgmma). In all of them lane = 4*g + t: g walks the rows of A, the
// columns of B and the rows of the accumulator, t walks the other dimension.
//
// Warps are arranged warpsM along M (the low bits of the warp's index, as wgmma
// has it) by warpsN along N. A warp's part of a dimension is one run of rows or
// columns, except that an odd factor of the extent is outermost. Warps that find
// no rows or columns left hold copies. An odd factor of the number of warpgroups is the odd
// factor of M.

// MMAAccumulator is the m16n8 C and D fragment tiled over an MxN tile. Registers:
// column pair, row + 8, then the n tiles of the warp, then its m tiles.
func MMAAccumulator(shape []int, warpsM, warpsN int) (*Layout, error) {
	f, err := fragment("accumulator", shape, 16, 8, warpsM, warpsN)
	if err != nil {
		return nil, err
	}
	f.register(f.take(1))
	f.lanes(1, 2)
	f.lanes(0, 3)
	f.register(f.take(0))
	f.registersUpTo(1, warpsN)
	f.registersUpTo(0, warpsM)
	f.warps(0, warpsM)
	f.warps(1, warpsN)
	return f.l.finish()
}

// MMAOperandA is the A fragment of an MxK tile of elements of `bits` bits: 32
// (tf32, m16n8k8), 16 (m16n8k16), 8 (m16n8k32) or 4 (m16n8k64). Registers: the
// elements of a 32-bit register, row + 8, the upper half of k, then m tiles, then
// k tiles. The half-depth instructions (m16n8k8 of 16-bit elements, m16n8k4 of
// tf32, m16n8k16 of 8-bit ones) take the same layout: their k is one half.
func MMAOperandA(shape []int, bits, warpsM, warpsN int) (*Layout, error) {
	pack, err := packing(bits)
	if err != nil {
		return nil, err
	}
	f, err := fragment("operand A", shape, 16, 4*pack, warpsM, warpsN)
	if err != nil {
		return nil, err
	}
	for range log2(pack) {
		f.register(f.take(1))
	}
	f.lanes(1, 2)
	f.lanes(0, 3)
	f.register(f.take(0))
	f.register(f.take(1))
	f.registersUpTo(0, warpsM)
	f.fill([]int{1})
	f.warps(0, warpsM)
	f.l.warp = append(f.l.warp, make([]Coord, log2(warpsN))...)
	return f.l.finish()
}

// MMAOperandB is the B fragment of a KxN tile; bits as for MMAOperandA. Registers:
// the elements of a 32-bit register, the upper half of k, then n tiles, then k
// tiles.
func MMAOperandB(shape []int, bits, warpsM, warpsN int) (*Layout, error) {
	pack, err := packing(bits)
	if err != nil {
		return nil, err
	}
	f, err := fragment("operand B", shape, 4*pack, 8, warpsM, warpsN)
	if err != nil {
		return nil, err
	}
	for range log2(pack) {
		f.register(f.take(0))
	}
	f.lanes(0, 2)
	f.lanes(1, 3)
	f.register(f.take(0))
	f.registersUpTo(1, warpsN)
	f.fill([]int{0})
	f.l.warp = append(f.l.warp, make([]Coord, log2(warpsM))...)
	f.warps(1, warpsN)
	return f.l.finish()
}

// WGMMAAccumulator is the D fragment of wgmma m64nN tiled over an MxN tile, with
// warpgroups of four warps along M: registers are column pair, row + 8, n tiles of
// eight, then further 64-row tiles. Warpgroup w owns one run of rows.
func WGMMAAccumulator(shape []int, warpgroups int) (*Layout, error) {
	f, err := wgmma("wgmma accumulator", shape, 8, warpgroups)
	if err != nil {
		return nil, err
	}
	f.register(f.take(1))
	f.lanes(1, 2)
	f.lanes(0, 3)
	f.register(f.take(0))
	f.fill([]int{1})
	f.warps(0, 4)
	f.registersUpTo(0, pow2Part(warpgroups))
	f.warps(0, pow2Part(warpgroups))
	return f.l.finish()
}

// WGMMAOperandA is the A fragment of wgmma in registers over an MxK tile; bits is
// 32 (k8), 16 (k16) or 8 (k32). Registers: the elements of a 32-bit register, row
// + 8, the upper half of k, then k tiles, then further 64-row tiles.
func WGMMAOperandA(shape []int, bits, warpgroups int) (*Layout, error) {
	pack, err := packing(bits)
	if err != nil {
		return nil, err
	}
	if pack == 8 {
		return nil, fmt.Errorf("wgmma operand A of 4-bit elements: want 8, 16 or 32 bits")
	}
	f, err := wgmma("wgmma operand A", shape, 8*pack, warpgroups)
	if err != nil {
		return nil, err
	}
	for range log2(pack) {
		f.register(f.take(1))
	}
	f.lanes(1, 2)
	f.lanes(0, 3)
	f.register(f.take(0))
	f.fill([]int{1})
	f.warps(0, 4)
	f.registersUpTo(0, pow2Part(warpgroups))
	f.warps(0, pow2Part(warpgroups))
	return f.l.finish()
}

// AccumulatorOperandA is the A fragment of wgmma in registers over an MxK tile of 8-bit
// elements whose columns are interleaved (see Shared.Interleaved): then each thread has the
// elements that it has of an accumulator.
func AccumulatorOperandA(shape []int, warpgroups int) (*Layout, error) {
	l, err := WGMMAOperandA(shape, 8, warpgroups)
	if err != nil {
		return nil, err
	}
	return l.mapped(l.shape, func(c Coord) Coord { return axis(0, c.At(0)) | axis(1, deinterleave(c.At(1))) }).must(), nil
}

// deinterleave is the column that an interleaved layout has in the place of col.
func deinterleave(col int) int { return col&^14 | col>>1&6 | col&2<<2 }

// packing returns how many elements share a 32-bit register.
func packing(bits int) (int, error) {
	switch bits {
	case 4, 8, 16, 32:
		return 32 / bits, nil
	}
	return 0, fmt.Errorf("fragment of %d-bit elements: want 4, 8, 16 or 32", bits)
}

func fragment(what string, shape []int, granule0, granule1, warpsM, warpsN int) (*filler, error) {
	f, err := newFiller(shape)
	if err != nil {
		return nil, err
	}
	if len(shape) != 2 {
		return nil, fmt.Errorf("%s fragment of rank %d: want 2", what, len(shape))
	}
	if shape[0]%granule0 != 0 || shape[1]%granule1 != 0 {
		return nil, fmt.Errorf("%s fragment of %s: want multiples of %dx%d", what, shapeText(shape), granule0, granule1)
	}
	for _, n := range []int{warpsM, warpsN} {
		if err := checkWarps(n); err != nil {
			return nil, err
		}
		if n != pow2Part(n) {
			return nil, fmt.Errorf("%s fragment over %d warps: want a power of two", what, n)
		}
	}
	return f, nil
}

func wgmma(what string, shape []int, granule, warpgroups int) (*filler, error) {
	if warpgroups < 1 || warpgroups > MaxWarps/4 {
		return nil, fmt.Errorf("%s over %d warpgroups: want 1 to %d", what, warpgroups, MaxWarps/4)
	}
	f, err := fragment(what, shape, 64, granule, 4*pow2Part(warpgroups), 1)
	if err != nil {
		return nil, err
	}
	if f.parts(warpgroups, []int{0}); f.l.parts > 1 && f.l.part == 0 {
		return nil, fmt.Errorf("%s of %s over %d warpgroups: want %d times a power of two of rows", what, shapeText(shape), warpgroups, f.l.parts)
	}
	return f, nil
}

// lanes gives the next n lane bits dimension d. The granule check ensured that it
// has as many.
func (f *filler) lanes(d, n int) {
	for range n {
		for i := range f.l.lane {
			if f.l.lane[i] == 0 {
				f.l.lane[i] = f.take(d)
				break
			}
		}
	}
}

func (f *filler) warps(d, n int) {
	for ; n > 1; n /= 2 {
		f.l.warp = append(f.l.warp, f.take(d))
	}
}
