package vm_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// drawnPixels is a random im2col map, with what a copy asks of it.
type drawnPixels struct {
	drawnMap
	mode    string
	offsets []int32
	start   []int // the number of the first base along W, H and D
}

// bases are the places of a filter's base along a dimension from 1 on.
func (m *drawnPixels) bases(dim int) (list []int64) {
	shift := int64(0)
	if m.Im2col.Wide {
		shift = int64(m.offsets[1])
	}
	for p := int64(m.Im2col.Lower[dim-1]); p <= int64(m.Dims[dim])-1+int64(m.Im2col.Upper[dim-1]); p += int64(m.ElementStrides[dim]) {
		list = append(list, p+shift)
	}
	return list
}

// wholeBytes draws a type whose elements are not packed.
func wholeBytes(t *rapid.T) packedType {
	return packedType{typ: rapid.SampledFrom([]ptx.Type{ptx.U8, ptx.F16, ptx.F32, ptx.F64}).Draw(t, "type")}
}

func drawPixels(t *rapid.T, p packedType, modes ...string) *drawnPixels {
	m := &drawnPixels{mode: rapid.SampledFrom(modes).Draw(t, "mode")}
	m.packedType, m.Type = p, p.typ
	unit := m.unit()
	multiple := uint64(unit.multiple)
	swizzles, align := []int{0, 32, 64, 128}, uint64(16)
	if p.held > 64 {
		swizzles, align = []int{0, 128}, 32
	}
	m.Swizzle = rapid.SampledFrom(swizzles).Draw(t, "swizzle")
	channels := rapid.Uint64Range(1, 4).Draw(t, "chunks") * 16 / uint64(unit.shared) * uint64(unit.elements)
	switch {
	case p.held > 64:
		channels = 128
	case m.Swizzle > 0:
		channels = uint64(m.Swizzle/unit.shared) * uint64(unit.elements)
	}
	m.FillNaN = m.Type.Float() && rapid.Bool().Draw(t, "nan")
	wide := strings.HasPrefix(m.mode, "im2col::w")
	rank := rapid.IntRange(3, 5).Draw(t, "rank")
	m.Im2col = &bench.Im2col{Channels: uint32(channels), Pixels: 8 * rapid.Uint32Range(1, 5).Draw(t, "pixels"), Wide: wide}
	if wide {
		m.offsets = []int32{8 * rapid.Int32Range(0, 1).Draw(t, "halo"), rapid.Int32Range(0, 2).Draw(t, "offset")}
	}
	step := uint64(1)
	for i := range rank {
		dim := rapid.Uint64Range(2, 6).Draw(t, "dim")
		m.ElementStrides = append(m.ElementStrides, 1)
		switch {
		case i == 0:
			dim = multiple * rapid.Uint64Range(1, 2*channels/multiple).Draw(t, "channels")
			step = (dim/uint64(unit.elements)*uint64(unit.global) + align - 1) / align * align
		default:
			m.Strides = append(m.Strides, step)
			step *= dim
		}
		m.Dims = append(m.Dims, dim)
		first := int32(0)
		switch {
		case i == 0:
			first = int32(multiple) * rapid.Int32Range(-2, int32(dim/multiple)).Draw(t, "first channel")
		case i == rank-1:
			first = rapid.Int32Range(0, int32(dim)-1).Draw(t, "image")
		case wide && i > 1:
			first = rapid.Int32Range(-1, int32(dim)).Draw(t, "row")
		default:
			m.ElementStrides[i] = rapid.Uint32Range(1, 2).Draw(t, "stride")
			m.Im2col.Lower = append(m.Im2col.Lower, rapid.Int32Range(-2, 1).Draw(t, "lower"))
			m.Im2col.Upper = append(m.Im2col.Upper, rapid.Int32Range(0, 2).Draw(t, "upper"))
			if !wide {
				m.offsets = append(m.offsets, rapid.Int32Range(0, 3).Draw(t, "offset"))
			}
			list := m.bases(i)
			at := rapid.IntRange(0, len(list)-1).Draw(t, "base")
			m.start = append(m.start, at)
			first = int32(list[at])
			if wide {
				first -= m.offsets[1]
			}
		}
		m.at = append(m.at, first)
	}
	if m.mode == "im2col_no_offs" {
		clear(m.offsets)
	}
	m.tensor = make([]byte, step)
	for i := range m.tensor {
		m.tensor[i] = byte(i*7 + i>>8)
	}
	return m
}

// pixel calls f for every channel of a pixel, as each of drawnMap does; n is the
// pixel's number in shared memory.
func (m *drawnPixels) pixel(n int, place []int64, image int64, f func(n int, offset int64)) {
	rank := len(m.Dims)
	unit := m.unit()
	units := int(m.Im2col.Channels) / unit.elements
	for c := range units {
		at := append([]int64{int64(m.at[0]) + int64(c*unit.elements)}, place...)
		at = append(at, image)
		offset, inside := int64(0), true
		for i := range rank {
			inside = inside && at[i] >= 0 && at[i] < int64(m.Dims[i])
			if i == 0 {
				offset += at[i] / int64(unit.elements) * int64(unit.global)
			} else {
				offset += at[i] * int64(m.Strides[i-1])
			}
		}
		if !inside {
			offset = -1
		}
		f(n*units+c, offset)
	}
}

// each is that of drawnMap: by the numbers of all places that the base takes, image
// by image.
func (m *drawnPixels) each(f func(n int, offset int64)) int {
	lists := make([][]int64, len(m.start))
	number, total := 0, 1
	for i := range lists {
		lists[i] = m.bases(1 + i)
		number += m.start[i] * total
		total *= len(lists[i])
	}
	count, group, halo := int(m.Im2col.Pixels), 0, 0
	switch m.mode {
	case "im2col::w":
		group, halo = count, int(m.offsets[0])
	case "im2col::w::128":
		count, group, halo = 128, 32, int(m.offsets[0])
	}
	n := 0
	for k := range count {
		image := int64(m.at[len(m.at)-1]) + int64((number+k)/total)
		rest := (number + k) % total
		var place []int64
		for i := range len(m.Dims) - 2 {
			if i >= len(lists) {
				place = append(place, int64(m.at[1+i]))
				continue
			}
			p := lists[i][rest%len(lists[i])]
			rest /= len(lists[i])
			if !m.Im2col.Wide {
				p += int64(m.offsets[i])
			}
			place = append(place, p)
		}
		m.pixel(n, place, image, f)
		n++
		if group > 0 && (k+1)%group == 0 {
			for range halo {
				place[0] += int64(m.ElementStrides[1])
				m.pixel(n, place, image, f)
				n++
			}
		}
	}
	return n * int(m.Im2col.Channels) / m.unit().elements * m.unit().shared
}

// copied is the kernel's text with the copy in the map's mode.
func (m *drawnPixels) copied(text string) string {
	text = strings.Replace(text, ".tile.", "."+m.mode+".", 1)
	if m.mode == "im2col_no_offs" {
		return text
	}
	var list []string
	for _, o := range m.offsets {
		list = append(list, fmt.Sprint(o))
	}
	before, after, _ := strings.Cut(text, "complete_tx::bytes [sm]")
	after = strings.Replace(after, ";", ", {"+strings.Join(list, ", ")+"};", 1)
	return before + "complete_tx::bytes [sm]" + after
}

// TestIm2colLoads compares what random im2col maps bring with the tensor, pixel by
// pixel.
func TestIm2colLoads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawPixels(t, wholeBytes(t), "im2col", "im2col::w", "im2col::w::128")
		m.edit = m.copied
		m.checkLoad(t, m.each)
	})
}

// TestIm2colStores: stores write the pixels inside the tensor and nothing else.
func TestIm2colStores(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawPixels(t, wholeBytes(t), "im2col_no_offs")
		m.at[0] = max(m.at[0], 0)
		m.edit = m.copied
		m.checkStore(t, m.each)
	})
}

// TestIm2colRefuses: maps that no driver makes.
func TestIm2colRefuses(t *testing.T) {
	dev, err := vm.New(vm.Options{})
	require.NoError(t, err)
	defer dev.Close()
	for _, c := range []struct {
		edit func(m *bench.TensorMap)
		want string
	}{
		{func(*bench.TensorMap) {}, ""},
		{func(m *bench.TensorMap) { m.Dims, m.Strides = m.Dims[:2], m.Strides[:1] }, "2 dimensions: want 3 to 5"},
		{func(m *bench.TensorMap) { m.Im2col.Lower = nil }, "0 lower and 2 upper corners: want 2 of both"},
		{func(m *bench.TensorMap) { m.Im2col.Wide = true }, "2 lower and 2 upper corners: want 1 of both"},
		{func(m *bench.TensorMap) { m.Im2col.Lower[1] = -129 }, "a corner at -129 in dimension 2: want -128 to 127"},
		{func(m *bench.TensorMap) { m.Im2col.Upper[0] = -9 }, "from 0 to -1: want at least one place"},
		{func(m *bench.TensorMap) { m.Im2col.Pixels = 1025 }, "1025 pixels"},
		{func(m *bench.TensorMap) { m.Im2col.Channels = 257 }, "257 channels"},
		{func(m *bench.TensorMap) { m.Im2col.Channels = 4 }, "inner box of 8 bytes"},
	} {
		m := bench.TensorMap{
			Type: ptx.F16, Dims: []uint64{64, 9, 9, 2}, Strides: []uint64{128, 1152, 10368},
			Im2col: &bench.Im2col{Lower: []int32{0, 0}, Upper: []int32{0, 0}, Channels: 64, Pixels: 64},
		}
		c.edit(&m)
		if _, err := dev.TensorMap(&m); c.want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, c.want)
		}
	}
}

// TestIm2colFaults: copies that no map serves.
func TestIm2colFaults(t *testing.T) {
	for _, c := range []struct {
		edit func(m *drawnPixels)
		want string
	}{
		{func(m *drawnPixels) { m.at[1] = 7 }, "a filter's base at 7 in dimension 1: want it in the map's box, -1 to 6"},
		{func(m *drawnPixels) { m.at[2] = -2 }, "a filter's base at -2 in dimension 2: want it in the map's box, -1 to 6"},
		{func(m *drawnPixels) { m.offsets[1] = 256 }, "an im2col offset of 256 in a tensor of 4 dimensions: want 0 to 255"},
		{func(m *drawnPixels) { m.mode = "im2col::w" }, "a copy in mode .im2col::w by a tensor map of another mode"},
		{func(m *drawnPixels) { m.edit = nil }, "a copy in mode .tile by a tensor map of another mode"},
	} {
		m := &drawnPixels{mode: "im2col", offsets: []int32{0, 0}}
		m.TensorMap = bench.TensorMap{
			Type: ptx.F16, Dims: []uint64{16, 8, 8, 2}, Strides: []uint64{32, 256, 2048},
			Im2col: &bench.Im2col{Lower: []int32{-1, -1}, Upper: []int32{-1, -1}, Channels: 16, Pixels: 16},
		}
		m.tensor, m.at = make([]byte, 4096), []int32{0, 0, 0, 0}
		m.edit = m.copied
		c.edit(m)
		faults := m.faults(t, 512)
		require.NotEmpty(t, faults, c.want)
		require.Equal(t, bench.BadDescriptor, faults[0].Class)
		require.Contains(t, faults[0].Message, c.want)
	}
}
