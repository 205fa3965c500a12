package vm_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

func init() {
	if _, asked := os.LookupEnv("RAPID_CHECKS"); !asked {
		flag.Set("rapid.checks", "60")
	}
}

// tensorKernel is a kernel k(map, buffer of the box, coordinates): it loads a
// box to shared memory and writes what it finds there to the buffer, or the
// other way round as a store or reduction.
func tensorKernel(rank int, bytes int64, store string) string {
	var b strings.Builder
	var coords []string
	fmt.Fprintf(&b, ".version 8.7\n.target sm_100a\n.address_size 64\n.extern .shared .align 1024 .b8 sm[];\n.visible .entry k(.param .align 64 .b8 map[128], .param .u64 box")
	for i := range rank {
		fmt.Fprintf(&b, ", .param .s32 c%d", i)
		coords = append(coords, fmt.Sprintf("%%c%d", i))
	}
	fmt.Fprintf(&b, ") {\n.reg .b32 %%c<5>, %%t, %%a, %%i, %%v; .reg .b64 %%m, %%box, %%g; .reg .pred %%p, %%q;\n")
	for i := range rank {
		fmt.Fprintf(&b, "ld.param.s32 %%c%d, [c%d];\n", i, i)
	}
	copyLoop := func(body string) string {
		return fmt.Sprintf("shl.b32 %%i, %%t, 2;\nL: setp.ge.u32 %%p, %%i, %d; @%%p bra DONE; mov.u32 %%a, sm; add.u32 %%a, %%a, %%i; cvt.u64.u32 %%g, %%i; add.u64 %%g, %%g, %%box; %s add.u32 %%i, %%i, 128; bra L;\nDONE:\n", bytes, body)
	}
	b.WriteString("mov.u32 %t, %tid.x; setp.eq.u32 %q, %t, 0; ld.param.u64 %box, [box]; mov.b64 %m, map; cvta.param.u64 %m, %m;\n")
	at := "[%m, {" + strings.Join(coords, ", ") + "}]"
	bar := fmt.Sprintf("[sm+%d]", (bytes+1023)/1024*1024)
	if store == "" {
		fmt.Fprintf(&b, "@%%q mbarrier.init.shared.b64 %s, 1; bar.sync 0;\n@%%q mbarrier.arrive.expect_tx.shared.b64 _, %s, %d;\n", bar, bar, bytes)
		fmt.Fprintf(&b, "@%%q cp.async.bulk.tensor.%dd.shared::cta.global.tile.mbarrier::complete_tx::bytes [sm], %s, %s;\n", rank, at, bar)
		fmt.Fprintf(&b, "W: mbarrier.try_wait.parity.shared.b64 %%p, %s, 0; @!%%p bra W;\n", bar)
		b.WriteString(copyLoop("ld.shared.u32 %v, [%a]; st.global.u32 [%g], %v;"))
	} else {
		b.WriteString(copyLoop("ld.global.u32 %v, [%g]; st.shared.u32 [%a], %v;"))
		op, kind, _ := strings.Cut(store, " ")
		fmt.Fprintf(&b, "fence.proxy.async; bar.sync 0;\n@%%q %s.async.bulk.tensor.%dd.global.shared::cta%s.tile.bulk_group %s, [sm]; @%%q cp.async.bulk.commit_group; @%%q cp.async.bulk.wait_group 0;\n", op, rank, kind, at)
	}
	b.WriteString("ret;\n}\n")
	return b.String()
}

// drawnMap is a random tensor map with a tensor of random bytes.
type drawnMap struct {
	bench.TensorMap
	packedType // zero of elements of whole bytes
	tensor     []byte
	at         []int32
	edit       func(text string) string // of the kernel; nil is none
}

func drawMap(t *rapid.T, load bool) *drawnMap {
	types := []ptx.Type{ptx.U8, ptx.U16, ptx.S32, ptx.U64, ptx.F16, ptx.F32, ptx.F64, ptx.BF16, ptx.TF32}
	m := &drawnMap{}
	m.Type = rapid.SampledFrom(types).Draw(t, "type")
	size := uint64(m.Type.Size())
	rank := rapid.IntRange(1, 5).Draw(t, "rank")
	m.Swizzle = rapid.SampledFrom([]int{0, 32, 64, 128}).Draw(t, "swizzle")
	if m.Swizzle == 128 {
		m.Atom = rapid.SampledFrom([]int{0, 32, 64}).Draw(t, "atom")
		m.Flip = m.Atom == 32 && rapid.Bool().Draw(t, "flip")
	}
	inner := rapid.Uint64Range(1, 4).Draw(t, "chunks") * 16 / size
	if m.Swizzle > 0 { // whole lines of 128 bytes, so that no byte between is left out
		inner, rank = uint64(m.Swizzle)/size, max(rank, 2)
	}
	m.FillNaN = m.Type.Float() && rapid.Bool().Draw(t, "nan")
	step := uint64(1)
	for i := range rank {
		box := uint32(inner)
		if i > 0 {
			box = rapid.Uint32Range(1, 4).Draw(t, "box")
		}
		if i == 1 && m.Swizzle > 0 {
			box *= uint32(128 / m.Swizzle)
		}
		es := uint32(1)
		if i > 0 && (i > 1 || m.Swizzle == 0) && rapid.IntRange(0, 3).Draw(t, "strided") == 0 {
			es = rapid.Uint32Range(1, 3).Draw(t, "element stride")
		}
		dim := rapid.Uint64Range(1, 9).Draw(t, "dim")
		if i == 0 {
			dim = rapid.Uint64Range(1, 2*inner+3).Draw(t, "dim")
			step = (dim*size+15)/16*16 + 16*rapid.Uint64Range(0, 2).Draw(t, "gap")
		} else {
			m.Strides = append(m.Strides, step)
			step *= dim
		}
		m.Box, m.Dims, m.ElementStrides = append(m.Box, box), append(m.Dims, dim), append(m.ElementStrides, es)
		low := int32(0)
		if load {
			low = -int32(box) - 2
		}
		m.at = append(m.at, rapid.Int32Range(low, int32(dim)+2).Draw(t, "at"))
	}
	m.tensor = make([]byte, max(step, 16))
	for i := range m.tensor {
		m.tensor[i] = byte(i*7 + i>>8)
	}
	return m
}

// each calls f for every element of the box: its number in the dense box, and
// its offset in the tensor, -1 outside. The last dimension varies slowest.
func (m *drawnMap) each(f func(n int, offset int64)) int {
	counts := make([]int, len(m.Box))
	total := 1
	for i := range m.Box {
		counts[i] = int((m.Box[i] + m.ElementStrides[i] - 1) / m.ElementStrides[i])
		total *= counts[i]
	}
	for n := range total {
		rest, offset := n, int64(0)
		for i, c := range counts {
			x := int64(m.at[i]) + int64(rest%c)*int64(m.ElementStrides[i])
			rest /= c
			stride := int64(m.Type.Size())
			if i > 0 {
				stride = int64(m.Strides[i-1])
			}
			if x < 0 || x >= int64(m.Dims[i]) {
				offset = math.MinInt64
			} else if offset >= 0 {
				offset += x * stride
			}
		}
		f(n, max(offset, -1))
	}
	return total * m.Type.Size()
}

// place is where byte i of a dense box lies in shared memory that begins at a
// multiple of 1024: lines of 128 bytes, in which pieces trade places.
func (m *drawnMap) place(i int) int {
	line := i / 128
	switch {
	case m.Swizzle == 0:
		return i
	case m.Atom == 32:
		piece := i % 128 / 32
		i = line*128 + (piece^line%4)*32 + i%32
		if m.Flip && line%2 == 1 {
			i ^= 8
		}
		return i
	case m.Atom == 64:
		return line*128 + (i%128/64^line%2)*64 + i%64
	}
	pieces := m.Swizzle / 16 // of 16 bytes, that trade places
	piece := i % 128 / 16
	return line*128 + (piece^line%pieces)*16 + i%16
}

// run runs a tensor kernel over the map.
func (m *drawnMap) run(t require.TestingT, store string, box []byte, opt vm.Options) (tensor, out []byte) {
	tensor, out, faults := m.launch(t, store, box, opt)
	require.Empty(t, faults)
	return tensor, out
}

// faults are those of a load of so many bytes.
func (m *drawnMap) faults(t require.TestingT, bytes int) []bench.Fault {
	_, _, faults := m.launch(t, "", make([]byte, bytes), vm.Options{})
	return faults
}

func (m *drawnMap) launch(t require.TestingT, store string, box []byte, opt vm.Options) (tensor, out []byte, faults []bench.Fault) {
	ctx := context.Background()
	dev, err := vm.New(opt)
	require.NoError(t, err)
	defer dev.Close()
	text := tensorKernel(len(m.Dims), int64(len(box)), store)
	if m.edit != nil {
		text = m.edit(text)
	}
	mod, err := dev.Load(ctx, "tensor.ptx", []byte(text))
	require.NoError(t, err)
	g, err := dev.Alloc(int64(len(m.tensor)), 256)
	require.NoError(t, err)
	require.NoError(t, dev.Write(g, 0, m.tensor))
	o, err := dev.Alloc(int64(len(box)), 256)
	require.NoError(t, err)
	require.NoError(t, dev.Write(o, 0, box))
	m.Address = g.Address
	arg, err := dev.TensorMap(&m.TensorMap)
	require.NoError(t, err)
	args := []bench.Arg{arg, bench.Pointer(o)}
	for _, c := range m.at {
		args = append(args, bench.I32(c))
	}
	report, err := dev.Launch(ctx, mod, "k", bench.Launch{Grid: [3]uint32{1}, Block: [3]uint32{32}, SharedBytes: int64(len(box)) + 2048, Args: args})
	require.NoError(t, err)
	tensor, out = make([]byte, len(m.tensor)), make([]byte, len(box))
	require.NoError(t, dev.Read(g, 0, tensor))
	require.NoError(t, dev.Read(o, 0, out))
	return tensor, out, report.Faults
}

// TestTensorLoads compares boxes that random maps describe with what stands in
// the tensor, element by element.
func TestTensorLoads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMap(t, true)
		m.checkLoad(t, m.each)
	})
}

// checkLoad compares what a load brings with the tensor, whose elements each lists.
func (m *drawnMap) checkLoad(t *rapid.T, each func(f func(n int, offset int64)) int) {
	unit := m.unit()
	n := each(func(int, int64) {})
	want := bytes.Repeat([]byte{0xee}, n)
	each(func(i int, offset int64) {
		e := make([]byte, unit.global)
		switch {
		case offset >= 0:
			copy(e, m.tensor[offset:])
		case m.FillNaN:
			copy(e, nanBytes(m.Type))
		}
		for k := range e {
			want[m.place(i*unit.shared+k)] = e[k]
		}
	})
	opt := timings[rapid.IntRange(0, len(timings)-1).Draw(t, "timing")]
	opt.Checks = m.checks(t)
	_, got := m.run(t, "", bytes.Repeat([]byte{0xee}, n), opt)
	require.Equal(t, want, got)
}

// checkStore compares what a store leaves of the tensor with what it is to write.
func (m *drawnMap) checkStore(t *rapid.T, each func(f func(n int, offset int64)) int) {
	unit := m.unit()
	box := make([]byte, each(func(int, int64) {}))
	for i := range box {
		box[i] = byte(i*13 + i>>7 + 1)
	}
	want := bytes.Clone(m.tensor)
	each(func(i int, offset int64) {
		if offset < 0 {
			return
		}
		e := make([]byte, unit.shared)
		for k := range e {
			e[k] = box[m.place(i*unit.shared+k)]
		}
		if unit.shared > unit.global {
			e = lowerBits(e, m.bits)
		}
		copy(want[offset:], e)
	})
	got, _ := m.run(t, "cp", box, timings[rapid.IntRange(0, len(timings)-1).Draw(t, "timing")])
	require.Equal(t, want, got)
}

// nanBytes is what an element outside reads as: all ones but the sign.
func nanBytes(t ptx.Type) []byte {
	switch t {
	case ptx.F16, ptx.BF16:
		return []byte{0xff, 0x7f}
	case ptx.F64:
		return binary.LittleEndian.AppendUint64(nil, 0x7fffffffffffffff)
	}
	return []byte{0xff, 0xff, 0xff, 0x7f}
}

// TestTensorStores: stores and reductions of random boxes into tensors.
func TestTensorStores(t *testing.T) {
	integer := func(v, b uint64, op string, bits int) uint64 {
		mask := ^uint64(0) >> (64 - bits)
		switch op {
		case "add":
			return (v + b) & mask
		case "min":
			return min(v, b)
		case "max":
			return max(v, b)
		case "and":
			return v & b
		case "or":
			return v | b
		case "xor":
			return v ^ b
		case "inc":
			if v >= b {
				return 0
			}
			return v + 1
		case "dec":
			if v == 0 || v > b {
				return b
			}
			return v - 1
		}
		return b
	}
	rapid.Check(t, func(t *rapid.T) {
		m := drawMap(t, false)
		op := rapid.SampledFrom([]string{"", "add", "min", "max", "and", "or", "xor", "inc", "dec"}).Draw(t, "op")
		store := "cp"
		if op != "" {
			m.Type = []ptx.Type{1: ptx.U8, 2: ptx.U16, 4: ptx.U32, 8: ptx.U64}[m.Type.Size()]
			if m.Type == ptx.U8 || m.Type == ptx.U16 || (op == "inc" || op == "dec") && m.Type != ptx.U32 {
				t.Skip("no such reduction")
			}
			m.FillNaN = false
			store = "cp.reduce ." + op
		}
		size := m.Type.Size()
		n := m.each(func(int, int64) {})
		box := make([]byte, n)
		for i := range box {
			box[i] = byte(i*11 + 5)
		}
		want := bytes.Clone(m.tensor)
		m.each(func(i int, offset int64) {
			if offset < 0 {
				return
			}
			var e, old [8]byte
			for k := range size {
				e[k] = box[m.place(i*size+k)]
			}
			copy(old[:size], want[offset:])
			v := integer(binary.LittleEndian.Uint64(old[:]), binary.LittleEndian.Uint64(e[:]), op, 8*size)
			copy(want[offset:][:size], binary.LittleEndian.AppendUint64(nil, v))
		})
		opt := timings[rapid.IntRange(0, len(timings)-1).Draw(t, "timing")]
		got, _ := m.run(t, store, box, opt)
		require.Equal(t, want, got)
	})
}

func TestTensorMapErrors(t *testing.T) {
	good := func() bench.TensorMap {
		return bench.TensorMap{Type: ptx.F16, Address: 1 << 20, Dims: []uint64{64, 8}, Strides: []uint64{128}, Box: []uint32{64, 8}}
	}
	dev, err := vm.New(vm.Options{})
	require.NoError(t, err)
	m := good()
	_, err = dev.TensorMap(&m)
	require.NoError(t, err)
	for want, damage := range map[string]func(*bench.TensorMap){
		"address 0x100008: want a multiple of 16": func(m *bench.TensorMap) { m.Address += 8 },
		"stride 130":                                      func(m *bench.TensorMap) { m.Strides[0] = 130 },
		"a box of 257 elements":                           func(m *bench.TensorMap) { m.Box[1] = 257 },
		"a box of 65544 elements":                         func(m *bench.TensorMap) { m.Box[1] = 65544 },
		"inner box of 6 bytes: want a multiple of 16":     func(m *bench.TensorMap) { m.Box[0] = 3 },
		"inner box of 128 bytes: want at most the 64":     func(m *bench.TensorMap) { m.Swizzle = 64 },
		"a swizzle of 16 bytes":                           func(m *bench.TensorMap) { m.Swizzle = 16 },
		"a swizzle of 0 bytes in atoms of 32":             func(m *bench.TensorMap) { m.Atom = 32 },
		"element stride 257 in dimension 1":               func(m *bench.TensorMap) { m.ElementStrides = []uint32{1, 257} },
		"1 element strides: want as many":                 func(m *bench.TensorMap) { m.ElementStrides = []uint32{1} },
		"filled with NaN: want a floating-point type":     func(m *bench.TensorMap) { m.Type, m.FillNaN = ptx.U16, true },
		"0 elements in dimension 1":                       func(m *bench.TensorMap) { m.Dims[1] = 0 },
		"2 dimensions, 1 box extents":                     func(m *bench.TensorMap) { m.Box = m.Box[:1] },
		"tensor map of .e4m3: want a type of tensor maps": func(m *bench.TensorMap) { m.Type = ptx.E4M3 },
	} {
		m := good()
		damage(&m)
		_, err := dev.TensorMap(&m)
		require.ErrorContains(t, err, want)
	}
}

// TestTensorMapCase: a case file whose kernel takes a tensor map of one of its
// buffers.
func TestTensorMapCase(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o644))
	}
	npy := func(name string, rows, cols int, at func(r, c int) float32) {
		header := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", rows, cols)
		header += strings.Repeat(" ", 117-len(header)) + "\n"
		b := append([]byte("\x93NUMPY\x01\x00v\x00"), header...)
		for r := range rows {
			for c := range cols {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(at(r, c)))
			}
		}
		write(name, b)
	}
	write("k.ptx", []byte(tensorKernel(2, 4*8*4, "")))
	npy("x.npy", 5, 12, func(r, c int) float32 { return float32(100*r + c) })
	npy("y0.npy", 4, 8, func(int, int) float32 { return -1 })
	npy("y.npy", 4, 8, func(r, c int) float32 {
		if r == 0 || c+6 >= 12 { // rows -1 to 2, columns 6 to 13
			return float32(math.NaN())
		}
		return float32(100*(r-1) + c + 6)
	})
	text := func(tensor string) string {
		return `{"ptx": "k.ptx", "kernel": "k", "grid": [1], "block": [32], "dynamic_shared": 2048, "args": [
` + tensor + `, {"buffer": "y0.npy", "type": "f32", "want": "y.npy"}, {"i32": 6}, {"i32": -1}]}`
	}
	named := `{"buffers": [{"name": "x", "buffer": "x.npy", "type": "f32"}, {"name": "y", "buffer": "y0.npy", "type": "f32", "want": "y.npy"}], "ptx": "k.ptx", "launches": [
{"kernel": "k", "grid": [1], "block": [32], "dynamic_shared": 2048, "args": [{"tensor_map": "x", "type": "f32", "dims": [12, 5], "box": [8, 4], "fill": "nan"}, {"ref": "y"}, {"i32": 6}, {"i32": -1}]}]}`
	write("case.json", []byte(named))
	r := runCase(t, filepath.Join(dir, "case.json"), vm.Options{})
	require.True(t, r.OK, "%+v", r)
	for want, tensor := range map[string]string{
		`no such buffer`:                        `{"tensor_map": "z", "type": "f32", "dims": [12], "box": [8]}`,
		`want 1 to 5 numbers`:                   `{"tensor_map": "arg1", "type": "f32", "dims": [12], "box": [8, 2]}`,
		`strides [48]: want 0 numbers`:          `{"tensor_map": "arg1", "type": "f32", "dims": [12], "strides": [48], "box": [8]}`,
		`type "f8": want one of`:                `{"tensor_map": "arg1", "type": "f8", "dims": [12], "box": [8]}`,
		`fill "one": want zero or nan`:          `{"tensor_map": "arg1", "type": "f32", "dims": [12], "box": [8], "fill": "one"}`,
		`interleaved layouts are not supported`: `{"tensor_map": "arg1", "type": "f32", "dims": [12], "box": [8], "interleave": 16}`,
		`unknown field "boxes"`:                 `{"tensor_map": "arg1", "boxes": 1}`,
	} {
		write("bad.json", []byte(text(tensor)))
		_, err := bench.ReadCase(filepath.Join(dir, "bad.json"))
		require.ErrorContains(t, err, want)
	}
	write("bad.json", []byte(text(`{"tensor_map": "arg1", "type": "f32", "dims": [12, 5], "box": [8, 400]}`)))
	c, err := bench.ReadCase(filepath.Join(dir, "bad.json"))
	require.NoError(t, err)
	dev, err := vm.New(vm.Options{})
	require.NoError(t, err)
	_, err = bench.RunCase(context.Background(), dev, c, bench.RunOptions{})
	var input *bench.InputError
	require.ErrorAs(t, err, &input)
	require.ErrorContains(t, err, "a box of 400 elements")
}

// TestBulkReductionsBetweenBlocks: reductions of many blocks at one place do not
// race, and none is lost; copies there, or plain writes, do race with them.
func TestBulkReductionsBetweenBlocks(t *testing.T) {
	p := small{
		target: "sm_90", decls: sharedDecl, dynamic: 256,
		regs: ".reg .b32 %a, %b; .reg .pred %p;",
		body: `mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; mov.u32 %b, %ctaid.x; add.u32 %b, %b, %t;
 st.shared.u32 [%a], %b; fence.proxy.async.shared::cta; bar.sync 0;
 setp.ne.u32 %p, %t, 0; @%p bra END;
 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%in0], [sm], 256;
 cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
END:`,
		grid: 9, block: 64,
	}
	p.everywhere(t, func(out [][]byte, rep *bench.Report) {
		require.Empty(t, rep.Faults)
		for i, v := range toWords(out[0]) {
			require.EqualValues(t, 36+9*i, v)
		}
	}, make([]byte, 256))

	unwaited := p
	unwaited.body = strings.ReplaceAll(p.body, "cp.async.bulk.wait_group 0", "cp.async.bulk.wait_group.read 0")
	unwaited.everywhere(t, func(out [][]byte, rep *bench.Report) {
		require.Empty(t, rep.Faults)
		require.EqualValues(t, 36, toWords(out[0])[0])
	}, make([]byte, 256))

	copies := p
	copies.body = strings.ReplaceAll(p.body, "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32", "cp.async.bulk.global.shared::cta.bulk_group")
	copies.everywhere(t, func(_ [][]byte, rep *bench.Report) {
		require.NotEmpty(t, rep.Faults)
		for _, f := range rep.Faults {
			require.Equal(t, bench.AsyncCopyRace, f.Class)
		}
	}, make([]byte, 256))
}

// TestBulkCopiesOfTheSame: copies that write the same to one place are silent,
// like stores of the same value; those that differ race.
func TestBulkCopiesOfTheSame(t *testing.T) {
	for _, grid := range []uint32{1, 3} {
		for _, same := range []bool{true, false} {
			p := small{
				target: "sm_90", decls: sharedDecl, dynamic: 512,
				regs: ".reg .b64 %ad; .reg .b32 %a, %b, %w; .reg .pred %p;",
				body: `mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; shr.u32 %b, %t, 5; mov.u32 %w, %ctaid.x; add.u32 %b, %b, %w; and.b32 %b, %b, MASK;
 st.shared.u32 [%a], %b; fence.proxy.async.shared::cta; bar.warp.sync -1;
 and.b32 %b, %t, 31; setp.ne.u32 %p, %b, 0; @%p bra END;
 shr.u32 %b, %t, 1; mad.wide.u32 %ad, %b, 4, %in0; // halves lie over one another
 cp.async.bulk.global.shared::cta.bulk_group [%ad], [%a], 128;
 cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
END:`,
				grid: grid, block: 64,
			}
			mask := "7"
			if same {
				mask = "0"
			}
			p.body = strings.ReplaceAll(p.body, "MASK", mask)
			p.everywhere(t, func(_ [][]byte, rep *bench.Report) {
				if same {
					require.Empty(t, rep.Faults)
					return
				}
				require.NotEmpty(t, rep.Faults)
				for _, f := range rep.Faults {
					require.Equal(t, bench.AsyncCopyRace, f.Class)
				}
			}, bytes.Repeat([]byte{9}, 192))
		}
	}
}
