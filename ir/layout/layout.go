// Package layout describes where the elements of a tile live: which thread's
// register holds which coordinate, and at which byte of shared memory it is
// stored.
//
// A distributed layout is a linear map over GF(2) from hardware bits (register,
// lane, warp) to the bits of the tile's coordinates, beside a plain repeat count
// for the odd factor of each dimension (the 11 of 176 columns). Fragments of
// mma.sync and wgmma, blocked global accesses, slices and broadcasts are all
// instances, so conversions, vector widths and bank conflicts are linear algebra.
//
// After "Linear Layouts: Robust Code Generation of Efficient Tensor Computation
// Using F2" (Zhou et al., 2025).
package layout

import (
	"fmt"
	"math/bits"
	"slices"
)

const (
	// MaxRank is the greatest number of dimensions of a tile.
	MaxRank = 4
	// MaxExtent is the greatest extent of a dimension: coordinates are 16 bits.
	MaxExtent = 1 << 16
	// MaxRegisters bounds the elements a thread may hold.
	MaxRegisters = 1 << 16
	// MaxWarps is the greatest number of warps of a CTA (1024 threads).
	MaxWarps = 32
	// LaneBits is the number of bits of a lane's index in its warp.
	LaneBits = 5
)

// Coord is a tile coordinate of up to four dimensions, packed sixteen bits a
// dimension with dimension 0 lowest. XOR of Coords is XOR of each dimension.
type Coord uint64

// Pack makes a Coord of up to MaxRank values below MaxExtent.
func Pack(values []int) Coord {
	var c Coord
	for d, v := range values {
		c |= Coord(v) << (16 * d)
	}
	return c
}

// At returns the coordinate along dimension d.
func (c Coord) At(d int) int { return int(c>>(16*d)) & 0xffff }

// Unpack returns the first rank dimensions of c.
func (c Coord) Unpack(rank int) []int {
	values := make([]int, rank)
	for d := range values {
		values[d] = c.At(d)
	}
	return values
}

func axis(d, value int) Coord { return Coord(value) << (16 * d) }

// Layout says which tile coordinate each (register, lane, warp) holds.
//
// Of each extent the power-of-two factor (see Sub) is covered linearly: the
// coordinate is the XOR of the bases of the set bits. The odd factor (see
// Repeat) is the outermost part of the register number, row-major over
// dimensions. Every coordinate is held at least once; a zero basis means that
// both values of the bit hold the same element. A Layout never changes.
//
// The odd factor of the number of warps (see Parts) is the outermost part of the
// warp's number: it stands for the odd factor of a dimension, which then is no
// repeat of registers, or all parts hold the same.
type Layout struct {
	shape  []int
	repeat []int
	reg    []Coord
	lane   [LaneBits]Coord
	warp   []Coord
	parts  int   // odd
	part   Coord // from the elements of one part of the warps to those of the next; 0: copies
	copies int   // of the linear part in a thread's registers
}

// New makes a layout from bases given as coordinate vectors, lowest bit first.
// Lane needs exactly five; warp has log2(warps). repeat may be nil, which means
// shape / (what the bases cover); even factors of a repeat count become register
// bits (last dimension lowest), so that Repeat reports odd counts only.
func New(shape []int, reg, lane, warp [][]int, repeat []int) (*Layout, error) {
	if len(shape) > MaxRank {
		return nil, fmt.Errorf("layout of rank %d: want at most %d", len(shape), MaxRank)
	}
	for d, n := range shape {
		if n < 1 || n > MaxExtent {
			return nil, fmt.Errorf("layout extent %d of dimension %d: want 1 to %d", n, d, MaxExtent)
		}
	}
	if len(lane) != LaneBits {
		return nil, fmt.Errorf("layout with %d lane bases: want %d", len(lane), LaneBits)
	}
	l := &Layout{shape: slices.Clone(shape)}
	var err error
	if l.reg, err = packBases("register", reg, shape); err != nil {
		return nil, err
	}
	lanes, err := packBases("lane", lane, shape)
	if err != nil {
		return nil, err
	}
	copy(l.lane[:], lanes)
	if l.warp, err = packBases("warp", warp, shape); err != nil {
		return nil, err
	}
	if repeat != nil {
		if err := l.unfold(repeat); err != nil {
			return nil, err
		}
	}
	return l.finish()
}

func packBases(what string, bases [][]int, shape []int) ([]Coord, error) {
	packed := make([]Coord, len(bases))
	for i, b := range bases {
		if len(b) != len(shape) {
			return nil, fmt.Errorf("layout %s basis %v: want %d coordinates", what, b, len(shape))
		}
		for d, v := range b {
			if v < 0 || v >= shape[d] {
				return nil, fmt.Errorf("layout %s basis %v: coordinate %d of dimension %d is outside extent %d", what, b, v, d, shape[d])
			}
		}
		packed[i] = Pack(b)
	}
	return packed, nil
}

// unfold turns the even part of explicit repeat counts into register bases.
func (l *Layout) unfold(repeat []int) error {
	if len(repeat) != len(l.shape) {
		return fmt.Errorf("layout repeat %v: want %d counts", repeat, len(l.shape))
	}
	for d := len(repeat) - 1; d >= 0; d-- {
		n := repeat[d]
		if n < 1 || l.shape[d]%n != 0 {
			return fmt.Errorf("layout repeat %d of dimension %d: want a divisor of %d", n, d, l.shape[d])
		}
		for step := l.shape[d] / n; n%2 == 0; n, step = n/2, step*2 {
			l.reg = append(l.reg, axis(d, step))
		}
	}
	return nil
}

// finish derives the repeat counts and checks what New and Parse promise.
func (l *Layout) finish() (*Layout, error) {
	l.parts = max(l.parts, 1)
	l.repeat = make([]int, len(l.shape))
	l.copies = 1
	space := 0
	for d, n := range l.shape {
		sub := pow2Part(n)
		l.repeat[d] = n / sub
		l.copies *= l.repeats(d)
		space += log2(sub)
		if l.copies > MaxRegisters {
			return nil, fmt.Errorf("layout of %s: more than %d registers", shapeText(l.shape), MaxRegisters)
		}
	}
	if len(l.reg) > 16 || l.copies<<len(l.reg) > MaxRegisters {
		return nil, fmt.Errorf("layout of %s: more than %d registers", shapeText(l.shape), MaxRegisters)
	}
	if err := l.checkParts(); err != nil {
		return nil, err
	}
	var s span
	var inside Coord
	for d, n := range l.shape {
		inside |= axis(d, pow2Part(n)-1)
	}
	for i := range l.bits() {
		b := l.basis(i)
		if b&^inside != 0 {
			return nil, fmt.Errorf("layout basis %s: want coordinates below the power-of-two factors of %s", basisText(b, len(l.shape)), shapeText(l.shape))
		}
		s.add(uint64(b), 0)
	}
	if s.rank != space {
		return nil, fmt.Errorf("layout of %s: its bases reach 2^%d of 2^%d elements", shapeText(l.shape), s.rank, space)
	}
	return l, nil
}

// checkParts checks the number of warps, and that their parts stand for the whole odd
// factor of one dimension, or for none.
func (l *Layout) checkParts() error {
	if len(l.warp) > log2(MaxWarps) || l.Warps() > MaxWarps {
		return fmt.Errorf("layout with %d * 2^%d warps: want at most %d", l.parts, len(l.warp), MaxWarps)
	}
	if l.parts%2 == 0 {
		return fmt.Errorf("layout with %d parts of warps: want an odd number", l.parts)
	}
	if l.part == 0 {
		return nil
	}
	for d := range l.shape {
		if l.part == axis(d, l.Sub(d)) && l.repeat[d] == l.parts && l.parts > 1 {
			return nil
		}
	}
	return fmt.Errorf("layout of %s with %d parts of warps at %s: want the odd factor of a dimension", shapeText(l.shape), l.parts, basisText(l.part, len(l.shape)))
}

// repeats is how often the linear part comes again along d in a thread's registers.
func (l *Layout) repeats(d int) int {
	if l.part.At(d) != 0 {
		return 1
	}
	return l.repeat[d]
}

// partBits is how many bits number the parts of the warps: bit i moves by part<<i.
func (l *Layout) partBits() int { return bits.Len(uint(l.parts - 1)) }

// must is for layouts that are right by construction.
func (l *Layout) must() *Layout {
	l, err := l.finish()
	if err != nil {
		panic(err)
	}
	return l
}

// bits is the number of hardware bits: registers, then lanes, then warps.
func (l *Layout) bits() int { return len(l.reg) + LaneBits + len(l.warp) }

func (l *Layout) basis(i int) Coord {
	if i < len(l.reg) {
		return l.reg[i]
	}
	if i -= len(l.reg); i < LaneBits {
		return l.lane[i]
	}
	return l.warp[i-LaneBits]
}

// Shape returns the tile's extents.
func (l *Layout) Shape() []int { return slices.Clone(l.shape) }

// Rank returns the number of dimensions.
func (l *Layout) Rank() int { return len(l.shape) }

// Extent returns the extent of dimension d.
func (l *Layout) Extent(d int) int { return l.shape[d] }

// Sub returns the power-of-two factor of dimension d, which the bases cover.
func (l *Layout) Sub(d int) int { return pow2Part(l.shape[d]) }

// Repeat returns how often the linear part comes again along each dimension in a
// thread's registers: the extent's odd factor, or 1 where parts of the warps have it.
func (l *Layout) Repeat() []int {
	repeat := make([]int, len(l.shape))
	for d := range repeat {
		repeat[d] = l.repeats(d)
	}
	return repeat
}

// Registers returns how many elements a thread holds, repeats included.
func (l *Layout) Registers() int { return l.copies << len(l.reg) }

// RegisterBits returns the number of linear bits of a register number.
func (l *Layout) RegisterBits() int { return len(l.reg) }

// Warps returns the number of warps.
func (l *Layout) Warps() int { return l.parts << len(l.warp) }

// Parts returns the odd factor of the number of warps.
func (l *Layout) Parts() int { return l.parts }

// Coord returns the coordinate that a register of a thread holds.
func (l *Layout) Coord(reg, lane, warp int) Coord {
	return l.Register(reg) ^ l.Thread(lane, warp)
}

// At is Coord as a fresh slice.
func (l *Layout) At(reg, lane, warp int) []int {
	return l.Coord(reg, lane, warp).Unpack(len(l.shape))
}

// Register returns the part of the coordinate that the register number alone
// decides: what lane 0 of warp 0 holds.
func (l *Layout) Register(reg int) Coord {
	c := l.repeatCoord(reg >> len(l.reg))
	for i := range l.reg {
		c ^= l.reg[i] & -Coord(reg>>i&1)
	}
	return c
}

// Thread returns the part of the coordinate that the thread alone decides: its
// register 0.
func (l *Layout) Thread(lane, warp int) Coord {
	var c Coord
	for i := range l.lane {
		c ^= l.lane[i] & -Coord(lane>>i&1)
	}
	for i := range l.warp {
		c ^= l.warp[i] & -Coord(warp>>i&1)
	}
	return c ^ l.part*Coord(warp>>len(l.warp))
}

// repeatCoord places copy number n. Repeats are multiples of the linear part, so
// adding them is XOR.
func (l *Layout) repeatCoord(n int) Coord {
	if l.copies == 1 {
		return 0
	}
	var c Coord
	for d := len(l.shape) - 1; d >= 0; d-- {
		r := l.repeats(d)
		c |= axis(d, n%r*l.Sub(d))
		n /= r
	}
	return c
}

// RegBases returns the basis of each linear register bit, lowest first.
func (l *Layout) RegBases() [][]int { return unpackBases(l.reg, len(l.shape)) }

// LaneBases returns the bases of the five lane bits.
func (l *Layout) LaneBases() [][]int { return unpackBases(l.lane[:], len(l.shape)) }

// WarpBases returns the basis of each bit of the warp's number in its part.
func (l *Layout) WarpBases() [][]int { return unpackBases(l.warp, len(l.shape)) }

func unpackBases(bases []Coord, rank int) [][]int {
	out := make([][]int, len(bases))
	for i, b := range bases {
		out[i] = b.Unpack(rank)
	}
	return out
}

// ThreadBases returns, for dimension d, what each bit of the thread's index
// (lane bits, then warp bits, those of the part last) XORs into the coordinate.
func (l *Layout) ThreadBases(d int) []int {
	out := make([]int, 0, LaneBits+len(l.warp)+l.partBits())
	for _, b := range l.lane {
		out = append(out, b.At(d))
	}
	for _, b := range l.warp {
		out = append(out, b.At(d))
	}
	for i := range l.partBits() {
		out = append(out, l.part.At(d)<<i)
	}
	return out
}

// Equal reports whether both layouts place every element alike.
func (l *Layout) Equal(m *Layout) bool {
	return l == m || slices.Equal(l.shape, m.shape) && slices.Equal(l.reg, m.reg) && l.lane == m.lane && l.sameWarps(m)
}

// sameWarps reports whether both layouts have the same bases of warps.
func (l *Layout) sameWarps(m *Layout) bool {
	return slices.Equal(l.warp, m.warp) && l.parts == m.parts && l.part == m.part
}

// Additive reports whether, along dimension d, no coordinate bit comes from two
// hardware bits: then a coordinate is the thread's part plus the register's.
func (l *Layout) Additive(d int) bool {
	used := 0
	for i := range l.bits() {
		v := l.basis(i).At(d)
		if used&v != 0 {
			return false
		}
		used |= v
	}
	return true
}

// Contiguous returns how many consecutive registers, from any multiple of that
// number, run up by one along dimension d (1 if none do).
func (l *Layout) Contiguous(d int) int {
	n := 0
	for n < len(l.reg) && l.reg[n] == axis(d, 1<<n) {
		n++
	}
	for ; n > 0; n-- {
		if !l.touches(d, 1<<n-1, n) {
			break
		}
	}
	return 1 << n
}

// touches reports whether a basis from hardware bit `from` on has bits of mask
// along dimension d.
func (l *Layout) touches(d, mask, from int) bool {
	for i := from; i < l.bits(); i++ {
		if l.basis(i).At(d)&mask != 0 {
			return true
		}
	}
	return false
}

// Replicas returns how many (register, lane, warp) places hold each element.
func (l *Layout) Replicas() int {
	total := 0
	for d := range l.shape {
		total += log2(l.Sub(d))
	}
	n := 1 << (l.bits() - total)
	if l.part == 0 {
		n *= l.parts
	}
	return n
}

// FreeLanes returns the mask of lane bits, and FreeWarps of warp bits, that do not
// change which elements are held: only threads with those bits zero need to
// store.
func (l *Layout) FreeLanes() int { return freeBits(l.lane[:]) }

// FreeWarps is FreeLanes for warp bits, those of the part last.
func (l *Layout) FreeWarps() int {
	mask := freeBits(l.warp)
	if l.part == 0 {
		mask |= (1<<l.partBits() - 1) << len(l.warp)
	}
	return mask
}

func freeBits(bases []Coord) int {
	mask := 0
	for i, b := range bases {
		if b == 0 {
			mask |= 1 << i
		}
	}
	return mask
}

// Find returns one place that holds c, preferring low warps, then low lanes; ok
// is false outside the tile.
func (l *Layout) Find(c Coord) (reg, lane, warp int, ok bool) {
	part := 0
	var linear Coord
	for d, n := range l.shape {
		v, sub := c.At(d), pow2Part(n)
		if v >= n {
			return 0, 0, 0, false
		}
		if l.part.At(d) != 0 {
			part = v / sub
		}
		linear |= axis(d, v%sub)
	}
	var s span
	for i := range l.bits() {
		s.add(uint64(l.basis(i)), 1<<i)
	}
	_, hw := s.reduce(uint64(linear))
	n := len(l.reg)
	reg = l.copyOf(c)<<n | int(hw&(1<<n-1))
	return reg, int(hw >> n & 31), part<<len(l.warp) | int(hw>>(n+LaneBits)), true
}

func pow2Part(n int) int { return n & -n }

func log2(n int) int { return bits.TrailingZeros(uint(n)) }
