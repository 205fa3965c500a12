package vm

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/kgen-dev/kgen/bench"
)

// An im2col copy brings pixels: runs of channels of an NDHWC tensor, at places that a
// filter's base takes one after the other in a box of the D, H and W of each image,
// innermost W. PTX ISA 5.5.4; the modes along W alone 5.5.5.

// im2colMode is how a copy goes through a tensor's pixels.
type im2colMode uint8

const (
	tileMode      im2colMode = iota // by boxes, not by pixels
	im2colLoad                      // with offsets of a filter's element
	im2colStore                     // without
	im2colWide                      // along W and from image to image, halo pixels at the end
	im2colWide128                   // 128 pixels so, halo pixels after every 32
)

var im2colModes = map[string]im2colMode{
	"im2col": im2colLoad, "im2col_no_offs": im2colStore, "im2col::w": im2colWide, "im2col::w::128": im2colWide128,
}

func (m im2colMode) wide() bool { return m >= im2colWide }

func (m im2colMode) String() string {
	for name, mode := range im2colModes {
		if mode == m {
			return name
		}
	}
	return "tile"
}

// Fields of an im2col map, behind those that all have.
const (
	mapKind     = 14              // 0 tile, 1 im2col, 2 along W alone
	mapLower    = mapLast         // int16 each; 3 of them
	mapUpper    = mapLower + 6    // int16 each; 3 of them
	mapChannels = mapUpper + 6    // uint16
	mapPixels   = mapChannels + 2 // uint16
)

const (
	maxChannels = 256  // of a pixel, as of a box: the driver's cuTensorMapEncodeIm2col
	maxPixels   = 1024 // the same
	widePixels  = 128
	wideGroup   = 32
)

// cornerBits and offsetBits are how many bits a map has for a corner and a copy for an
// offset, by dimensions of the tensor from 3 on. PTX ISA 5.5.4.1.
var (
	cornerBits = [3]uint{16, 8, 5}
	offsetBits = [3]uint{16, 8, 5}
)

// encodeIm2col writes a map's fields of im2col.
func (t *TensorMap) encodeIm2col(b []byte) {
	m := t.Im2col
	if m == nil {
		return
	}
	b[mapKind] = 1
	if m.Wide {
		b[mapKind] = 2
	}
	for i := range m.Lower {
		binary.LittleEndian.PutUint16(b[mapLower+2*i:], uint16(m.Lower[i]))
		binary.LittleEndian.PutUint16(b[mapUpper+2*i:], uint16(m.Upper[i]))
	}
	binary.LittleEndian.PutUint16(b[mapChannels:], uint16(m.Channels))
	binary.LittleEndian.PutUint16(b[mapPixels:], uint16(m.Pixels))
}

// decodeIm2col reads them.
func (t *TensorMap) decodeIm2col(b []byte) {
	if b[mapKind] == 0 {
		return
	}
	m := &bench.Im2col{
		Channels: uint32(binary.LittleEndian.Uint16(b[mapChannels:])), Pixels: uint32(binary.LittleEndian.Uint16(b[mapPixels:])), Wide: b[mapKind] == 2,
	}
	for i := range m.Corners(len(t.Dims)) {
		m.Lower = append(m.Lower, int32(int16(binary.LittleEndian.Uint16(b[mapLower+2*i:]))))
		m.Upper = append(m.Upper, int32(int16(binary.LittleEndian.Uint16(b[mapUpper+2*i:]))))
	}
	t.Im2col = m
}

// validIm2col checks the rules of im2col maps.
func (t *TensorMap) validIm2col() error {
	m, rank := t.Im2col, len(t.Dims)
	if rank < 3 {
		return fmt.Errorf("im2col map of %d dimensions: want 3 to 5", rank)
	}
	if n := m.Corners(rank); len(m.Lower) != n || len(m.Upper) != n {
		return fmt.Errorf("im2col map of %d dimensions with %d lower and %d upper corners: want %d of both", rank, len(m.Lower), len(m.Upper), n)
	}
	if m.Channels < 1 || m.Channels > maxChannels || m.Pixels < 1 || m.Pixels > maxPixels {
		return fmt.Errorf("im2col map of %d pixels of %d channels: want 1 to %d of 1 to %d", m.Pixels, m.Channels, maxPixels, maxChannels)
	}
	bits := cornerBits[rank-3]
	if m.Wide {
		bits = cornerBits[0]
	}
	limit := int32(1) << (bits - 1)
	for i := range m.Lower {
		for _, v := range []int32{m.Lower[i], m.Upper[i]} {
			if v < -limit || v >= limit {
				return fmt.Errorf("im2col map of %d dimensions with a corner at %d in dimension %d: want %d to %d", rank, v, i+1, -limit, limit-1)
			}
		}
		if last := int64(t.Dims[i+1]) - 1 + int64(m.Upper[i]); last < int64(m.Lower[i]) {
			return fmt.Errorf("im2col map whose box in dimension %d goes from %d to %d: want at least one place", i+1, m.Lower[i], last)
		}
	}
	return nil
}

// inner is the elements of a row in shared memory.
func (t *TensorMap) inner() uint64 {
	if t.Im2col != nil {
		return uint64(t.Im2col.Channels)
	}
	return uint64(t.Box[0])
}

// pixelWalk is where the next pixel of a copy is.
type pixelWalk struct {
	t         *TensorMap
	place     []int64 // of the filter's base, innermost first
	low, high []int64 // that it takes, both inclusive
	image     int64
	shift     []int64 // from there to the pixel
	moving    int     // dimensions that it goes through
}

// pixels lists the rows of an im2col copy at some coordinates, innermost first.
// offsets are those of the instruction: one for each of W, H and D, or the number of
// halo pixels and what is added to W.
func (t *TensorMap) pixels(mode im2colMode, at, offsets []int32) ([]rowCopy, error) {
	w, err := t.walk(mode, at, offsets)
	if err != nil {
		return nil, err
	}
	count, group, halo := int(t.Im2col.Pixels), math.MaxInt, 0
	if mode.wide() {
		halo, group = int(offsets[0]), count
	}
	if mode == im2colWide128 {
		count, group = widePixels, wideGroup
	}
	var rows []rowCopy
	for i := range count {
		rows = w.row(rows, at[0], 0)
		if (i+1)%group == 0 {
			for h := range halo {
				rows = w.row(rows, at[0], int64(h+1)*int64(t.ElementStrides[1]))
			}
		}
		w.next()
	}
	return rows, nil
}

// walk is where a copy begins.
func (t *TensorMap) walk(mode im2colMode, at, offsets []int32) (*pixelWalk, error) {
	m, rank := t.Im2col, len(t.Dims)
	w := &pixelWalk{t: t, image: int64(at[rank-1]), moving: rank - 2, shift: make([]int64, rank-2)}
	if mode.wide() {
		w.moving = 1
	}
	for i, o := range offsets {
		if bits := offsetBits[rank-3]; !mode.wide() && o>>bits != 0 {
			return nil, fmt.Errorf("an im2col offset of %d in a tensor of %d dimensions: want 0 to %d", o, rank, 1<<bits-1)
		}
		if !mode.wide() {
			w.shift[i] = int64(o)
		}
	}
	for i := range rank - 2 {
		w.place = append(w.place, int64(at[1+i]))
		if i >= w.moving {
			w.low, w.high = append(w.low, w.place[i]), append(w.high, w.place[i])
			continue
		}
		w.low, w.high = append(w.low, int64(m.Lower[i])), append(w.high, int64(t.Dims[1+i])-1+int64(m.Upper[i]))
		if w.place[i] > w.high[i] || w.place[i] < w.low[i] && !mode.wide() {
			return nil, fmt.Errorf("a filter's base at %d in dimension %d: want it in the map's box, %d to %d", at[1+i], 1+i, w.low[i], w.high[i])
		}
	}
	if mode.wide() {
		w.shift[0] = int64(int16(offsets[1]))
	}
	return w, nil
}

// row lists the pixel at the walk's place, moved along W: channels from first on.
func (w *pixelWalk) row(rows []rowCopy, first int32, along int64) []rowCopy {
	t := w.t
	rank := len(t.Dims)
	inside := w.image >= 0 && uint64(w.image) < t.Dims[rank-1]
	addr := t.Address + uint64(w.image)*t.Strides[rank-2]
	for i, p := range w.place {
		p += w.shift[i]
		if i == 0 {
			p += along
		}
		inside = inside && p >= 0 && uint64(p) < t.Dims[1+i]
		addr += uint64(p) * t.Strides[i]
	}
	return t.appendRuns(rows, addr, inside, first)
}

// next goes to the next place: along W, then H and D, then to the next image.
func (w *pixelWalk) next() {
	for i := range w.moving {
		w.place[i] += int64(w.t.ElementStrides[1+i])
		if w.place[i] <= w.high[i] {
			return
		}
		w.place[i] = w.low[i]
	}
	w.image++
}
