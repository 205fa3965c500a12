package vm_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// packedType is a type of tensor maps whose elements have less than a byte: their
// bits, and the bits of shared memory that 16 of them take.
type packedType struct {
	typ        ptx.Type
	bits, held int
}

// mapUnit is what a copy moves at least: elements, their bytes in global and in shared
// memory, and of how many elements coordinates and sizes are multiples.
type mapUnit struct{ elements, global, shared, multiple int }

func (m *drawnMap) unit() mapUnit {
	switch m.held {
	case 0:
		return mapUnit{1, m.Type.Size(), m.Type.Size(), 1}
	case 64:
		return mapUnit{2, 1, 1, 2}
	}
	return mapUnit{16, 2 * m.bits, 16, 128}
}

// checks are those that a load's result is read with: what lies between padded elements
// is undefined.
func (m *drawnMap) checks(t require.TestingT) vm.Checks {
	list := ""
	if m.held > 64 {
		list = "-uninitialised-shared-read"
	}
	checks, err := vm.ParseChecks(list)
	require.NoError(t, err)
	return checks
}

// lowerBits packs the lower bits of bytes.
func lowerBits(from []byte, bits int) []byte {
	out := make([]byte, len(from)*bits/8)
	for i, v := range from {
		for j := range bits {
			at := i*bits + j
			out[at/8] |= v >> j & 1 << (at % 8)
		}
	}
	return out
}

var packedTypes = []packedType{{ptx.B4x16, 4, 64}, {ptx.B4x16P64, 4, 128}, {ptx.B6x16P32, 6, 128}}

func drawPacked(t *rapid.T, p packedType, load bool) *drawnMap {
	m := &drawnMap{packedType: p}
	m.Type = p.typ
	rank := rapid.IntRange(1, 3).Draw(t, "rank")
	box, unit := 128, 128
	if p.held == 64 {
		box, unit = 32*rapid.IntRange(1, 8).Draw(t, "box"), 2
	}
	if rapid.Bool().Draw(t, "swizzled") {
		m.Swizzle, rank, box = 128, max(rank, 2), 128*8*16/p.held // rows of 128 bytes
		atoms := []int{0, 32}
		if !load {
			atoms = []int{0, 32, 64}
		}
		m.Atom = rapid.SampledFrom(atoms).Draw(t, "atom")
	}
	dim := unit * rapid.IntRange(1, 4*box/unit).Draw(t, "dim")
	step := uint64((dim*p.bits/8+31)/32*32 + 32*rapid.IntRange(0, 2).Draw(t, "gap"))
	m.Dims, m.Box = []uint64{uint64(dim)}, []uint32{uint32(box)}
	least := 0
	if load {
		least = -2
	}
	m.at = []int32{int32(unit * rapid.IntRange(max(least, -1)*(box/unit), dim/unit).Draw(t, "at"))}
	for range rank - 1 {
		n := rapid.Uint64Range(1, 5).Draw(t, "dim")
		m.Dims, m.Box = append(m.Dims, n), append(m.Box, rapid.Uint32Range(1, 4).Draw(t, "box"))
		m.Strides = append(m.Strides, step)
		m.at = append(m.at, rapid.Int32Range(int32(least), int32(n)).Draw(t, "at"))
		step *= n
	}
	m.tensor = make([]byte, max(step, 32))
	for i := range m.tensor {
		m.tensor[i] = byte(i*7 + i>>8 + 1)
	}
	return m
}

// bitsAt reads n bits of bytes from a bit on.
func bitsAt(b []byte, at, n int) (v int) {
	for i := range n {
		v |= int(b[(at+i)/8]>>((at+i)%8)&1) << i
	}
	return v
}

// TestPackedTensorLoads compares boxes of 4- and 6-bit elements with what stands in
// the tensor. What lies between them is undefined, which nobody asks for here.
func TestPackedTensorLoads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SampledFrom(packedTypes).Draw(t, "type")
		m := drawPacked(t, p, true)
		row := int(m.Box[0]) / 16 * p.held / 8 // bytes
		rows := 1
		for _, n := range m.Box[1:] {
			rows *= int(n)
		}
		dense := bytes.Repeat([]byte{0xee}, row*rows)
		for r := range rows {
			offset, inside, rest := 0, true, r
			for i, n := range m.Box[1:] {
				x := int(m.at[1+i]) + rest%int(n)
				rest /= int(n)
				inside = inside && x >= 0 && x < int(m.Dims[1+i])
				offset += x * int(m.Strides[i])
			}
			for e := range int(m.Box[0]) {
				x, v := int(m.at[0])+e, 0
				if inside && x >= 0 && x < int(m.Dims[0]) {
					v = bitsAt(m.tensor[offset:], x*p.bits, p.bits)
				}
				for i := range p.bits {
					bit := r*row*8 + e/16*p.held + e%16*p.bits + i
					dense[bit/8] = dense[bit/8]&^(1<<(bit%8)) | byte(v>>i&1)<<(bit%8)
				}
			}
		}
		want := make([]byte, len(dense))
		for i, v := range dense {
			want[m.place(i)] = v
		}
		m.edit = m.packedKernel(len(dense), len(dense)*16*p.bits/p.held)
		opt := timings[rapid.IntRange(0, len(timings)-1).Draw(t, "timing")]
		opt.Checks = m.checks(t)
		_, got := m.run(t, "", bytes.Repeat([]byte{0xaa}, len(dense)), opt)
		require.Equal(t, want, got)
	})
}

// packedKernel fills shared memory before the copy, and expects the bytes that it
// brings.
func (m *drawnMap) packedKernel(held, brought int) func(text string) string {
	return func(text string) string {
		text = replace(text, "@%q mbarrier.init", fmt.Sprintf("mov.u32 %%v, 0xeeeeeeee; shl.b32 %%i, %%t, 2;\nF: setp.ge.u32 %%p, %%i, %d; @%%p bra FILLED; mov.u32 %%a, sm; add.u32 %%a, %%a, %%i; st.shared.u32 [%%a], %%v; add.u32 %%i, %%i, 128; bra F;\nFILLED: fence.proxy.async; bar.sync 0;\n@%%q mbarrier.init", held))
		return replace(text, fmt.Sprintf(", %d;\n@%%q cp.async", held), fmt.Sprintf(", %d;\n@%%q cp.async", brought))
	}
}

// eachUnit is each for packed elements: it calls f for every unit of the box.
func (m *drawnMap) eachUnit(f func(n int, offset int64)) int {
	unit, total := m.unit(), 1
	for _, n := range m.Box {
		total *= int(n)
	}
	total /= unit.elements
	for i := range total {
		row := int(m.Box[0]) / unit.elements
		x := int64(int(m.at[0])/unit.elements + i%row)
		offset, inside, rest := x*int64(unit.global), x >= 0 && x < int64(m.Dims[0])/int64(unit.elements), i/row
		for j, n := range m.Box[1:] {
			y := int64(m.at[1+j]) + int64(rest%int(n))
			rest /= int(n)
			inside = inside && y >= 0 && y < int64(m.Dims[1+j])
			offset += y * int64(m.Strides[j])
		}
		if !inside {
			offset = -1
		}
		f(i, offset)
	}
	return total * unit.shared
}

// storedTypes are those of stores: 4-bit elements lie packed, 6-bit ones in a byte each.
var storedTypes = []packedType{packedTypes[0], packedTypes[2]}

// TestPackedTensorStores: stores write the elements inside the tensor and nothing else.
func TestPackedTensorStores(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawPacked(t, rapid.SampledFrom(storedTypes).Draw(t, "type"), false)
		m.checkStore(t, m.eachUnit)
	})
}

// TestPackedIm2col: pixels of 4- and 6-bit channels.
func TestPackedIm2col(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawPixels(t, rapid.SampledFrom(packedTypes).Draw(t, "type"), "im2col", "im2col::w", "im2col::w::128")
		held, unit := m.each(func(int, int64) {}), m.unit()
		m.edit = func(text string) string {
			return m.packedKernel(held, held/unit.shared*unit.global)(m.copied(text))
		}
		m.checkLoad(t, m.each)
	})
	rapid.Check(t, func(t *rapid.T) {
		m := drawPixels(t, rapid.SampledFrom(storedTypes).Draw(t, "type"), "im2col_no_offs")
		m.at[0] = max(m.at[0], 0)
		m.edit = m.copied
		m.checkStore(t, m.each)
	})
}

// TestPackedTensorMaps: what drivers and copies refuse of packed elements.
func TestPackedTensorMaps(t *testing.T) {
	dev, err := vm.New(vm.Options{})
	require.NoError(t, err)
	defer dev.Close()
	good := func() *drawnMap {
		m := &drawnMap{tensor: make([]byte, 512), at: []int32{0, 0}}
		m.TensorMap = bench.TensorMap{Type: ptx.B4x16P64, Dims: []uint64{256, 4}, Strides: []uint64{128}, Box: []uint32{128, 2}}
		m.edit = m.packedKernel(256, 128)
		return m
	}
	for _, f := range good().faults(t, 256) {
		require.Equal(t, bench.UninitialisedSharedRead, f.Class)
		require.Contains(t, f.Message, "8 bytes at shared address 0x408, never written")
	}
	for want, damage := range map[string]func(m *drawnMap){
		"200 elements of .b4x16_p64 in dimension 0: want a multiple of 128": func(m *drawnMap) { m.Dims[0] = 200 },
		"3 elements of .b4x16 in dimension 0: want a multiple of 2":         func(m *drawnMap) { m.Type, m.Dims[0] = ptx.B4x16, 3 },
		"a box of 64 elements of .b4x16_p64 in dimension 0: want 128":       func(m *drawnMap) { m.Box[0] = 64 },
		"stride 144 of dimension 1: want a multiple of 32":                  func(m *drawnMap) { m.Strides[0] = 144 },
		"a box of 64 elements of .b6x16_p32 in dimension 0: want 128": func(m *drawnMap) {
			m.Type, m.Dims, m.Strides, m.Box = ptx.B6x16P32, []uint64{128, 4, 2}, []uint64{96, 384}, nil
			m.Im2col = &bench.Im2col{Lower: []int32{0}, Upper: []int32{0}, Channels: 64, Pixels: 8}
		},
		"swizzle of 64 bytes in atoms of 0":        func(m *drawnMap) { m.Swizzle = 64 },
		"tensor map of .b6x16_p32 filled with NaN": func(m *drawnMap) { m.Type, m.FillNaN = ptx.B6x16P32, true },
	} {
		m := good()
		damage(m)
		_, err := dev.TensorMap(&m.TensorMap)
		require.ErrorContains(t, err, want)
	}
	m := good()
	m.at[0] = 64
	faults := m.faults(t, 256)
	require.Equal(t, bench.BadDescriptor, faults[0].Class)
	require.Contains(t, faults[0].Message, "coordinate 64 of dimension 0 of a tensor map of .b4x16_p64: want a multiple of 128")
	m = good()
	m.Type, m.Strides[0], m.Swizzle, m.Atom, m.edit = ptx.B6x16P32, 192, 128, 64, nil
	faults = m.faults(t, 256)
	require.Contains(t, faults[0].Message, "a load by a tensor map of .b6x16_p32 with a swizzle in atoms of 64 bytes: want a store")
	m = good()
	m.Type, m.Strides[0] = ptx.B6x16P32, 192
	m.edit = func(text string) string { // 12 bytes of each 16
		return replace(text, "st.shared.u32 [%a], %v;", "and.b32 %c4, %i, 12; setp.ne.u32 %p, %c4, 12; @%p st.shared.u32 [%a], %v;")
	}
	m.tensor = make([]byte, 1024)
	_, _, faults = m.launch(t, "cp", make([]byte, 256), vm.Options{})
	require.Len(t, faults, 1)
	require.Equal(t, bench.UninitialisedSharedRead, faults[0].Class)
	for dst, want := range map[string]int{"shared::cta": 0, "shared::cluster": 1} {
		m = good()
		fill := m.edit
		m.edit = func(text string) string {
			return replace(replace(fill(text), "sm_100a", "sm_120a"), "shared::cta.global", dst+".global")
		}
		_, _, faults = m.launch(t, "", make([]byte, 256), vm.Options{Checks: m.checks(t)})
		for _, f := range faults {
			if f.Class == bench.BadDescriptor {
				want--
				require.Contains(t, f.Message, "a load to .shared::cluster by a tensor map of .b4x16_p64 with a swizzle in atoms of 16 bytes: sm_120")
			}
		}
		require.Zero(t, want, dst)
	}
	m = good()
	m.edit = nil
	_, _, faults = m.launch(t, "cp", make([]byte, 256), vm.Options{})
	require.Equal(t, bench.BadDescriptor, faults[0].Class)
	require.Contains(t, faults[0].Message, "a store by a tensor map of .b4x16_p64: want a load")
}
