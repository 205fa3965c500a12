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

var packedTypes = []packedType{{ptx.B4x16, 4, 64}, {ptx.B4x16P64, 4, 128}, {ptx.B6x16P32, 6, 128}}

func drawPacked(t *rapid.T) (*drawnMap, packedType) {
	p := rapid.SampledFrom(packedTypes).Draw(t, "type")
	m := &drawnMap{}
	m.Type = p.typ
	rank := rapid.IntRange(1, 3).Draw(t, "rank")
	box, unit := 128, 128
	if p.held == 64 {
		box, unit = 32*rapid.IntRange(1, 8).Draw(t, "box"), 2
	}
	if rapid.Bool().Draw(t, "swizzled") {
		m.Swizzle, rank, box = 128, max(rank, 2), 128*8*16/p.held // rows of 128 bytes
		m.Atom = rapid.SampledFrom([]int{0, 32}).Draw(t, "atom")
	}
	dim := unit * rapid.IntRange(1, 4*box/unit).Draw(t, "dim")
	step := uint64((dim*p.bits/8+31)/32*32 + 32*rapid.IntRange(0, 2).Draw(t, "gap"))
	m.Dims, m.Box = []uint64{uint64(dim)}, []uint32{uint32(box)}
	m.at = []int32{int32(unit * rapid.IntRange(-box/unit, dim/unit).Draw(t, "at"))}
	for range rank - 1 {
		n := rapid.Uint64Range(1, 5).Draw(t, "dim")
		m.Dims, m.Box = append(m.Dims, n), append(m.Box, rapid.Uint32Range(1, 4).Draw(t, "box"))
		m.Strides = append(m.Strides, step)
		m.at = append(m.at, rapid.Int32Range(-2, int32(n)).Draw(t, "at"))
		step *= n
	}
	m.tensor = make([]byte, max(step, 32))
	for i := range m.tensor {
		m.tensor[i] = byte(i*7 + i>>8 + 1)
	}
	return m, p
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
	unasked, err := vm.ParseChecks("-uninitialised-shared-read")
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		m, p := drawPacked(t)
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
		opt.Checks = unasked
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
		"swizzle of 64 bytes in atoms of 0":                                 func(m *drawnMap) { m.Swizzle = 64 },
		"tensor map of .b6x16_p32 filled with NaN":                          func(m *drawnMap) { m.Type, m.FillNaN = ptx.B6x16P32, true },
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
	m.edit = nil
	_, _, faults = m.launch(t, "cp", make([]byte, 256), vm.Options{})
	require.Equal(t, bench.BadDescriptor, faults[0].Class)
	require.Contains(t, faults[0].Message, "a store by a tensor map of .b4x16_p64: want a load")
}
