package vm_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/ir/num"
)

// cuteLayout is a layout of CuTe as it prints: extents and strides of each mode,
// nested ones flattened, and the bits that a swizzle of bytes XORs.
type cuteLayout struct {
	modes   [][][2]int // extent, stride
	swizzle int
}

// parseCute reads "((_4,_8),_2):((_32,_1),_16)", perhaps after "Sw<3,4,3> o ... o ".
func parseCute(t *testing.T, text string) cuteLayout {
	var l cuteLayout
	if rest, ok := strings.CutPrefix(text, "Sw<"); ok {
		bits, err := strconv.Atoi(rest[:1])
		require.NoError(t, err)
		require.Equal(t, ",4,3>", rest[1:6])
		l.swizzle = (1<<bits - 1) << 4
		text = text[strings.LastIndex(text, " o ")+3:]
	}
	shape, stride, ok := strings.Cut(text, ":")
	require.True(t, ok, text)
	extents, strides := flattened(t, shape), flattened(t, stride)
	require.Len(t, strides, len(extents))
	for i := range extents {
		require.Len(t, strides[i], len(extents[i]))
		var mode [][2]int
		for j, n := range extents[i] {
			mode = append(mode, [2]int{n, strides[i][j]})
		}
		l.modes = append(l.modes, mode)
	}
	return l
}

// flattened are the numbers of each element of a tuple.
func flattened(t *testing.T, tuple string) [][]int {
	var out [][]int
	depth := 0
	if !strings.HasPrefix(tuple, "(") {
		tuple = "(" + tuple + ")"
	}
	for _, word := range strings.FieldsFunc(strings.NewReplacer("(", " ( ", ")", " ) ").Replace(tuple), func(r rune) bool { return r == ' ' || r == ',' }) {
		switch word {
		case "(":
			if depth++; depth == 2 {
				out = append(out, nil)
			}
		case ")":
			depth--
		default:
			n, err := strconv.Atoi(strings.TrimPrefix(word, "_"))
			require.NoError(t, err)
			if depth == 1 {
				out = append(out, nil)
			}
			out[len(out)-1] = append(out[len(out)-1], n)
		}
	}
	return out
}

// size is the extent of a mode.
func (l cuteLayout) size(mode int) int {
	n := 1
	for _, x := range l.modes[mode] {
		n *= x[0]
	}
	return n
}

// at is the layout's value, the first extent of a mode varying fastest.
func (l cuteLayout) at(coordinates ...int) int {
	sum := 0
	for i, c := range coordinates {
		for _, x := range l.modes[i] {
			sum += c % x[0] * x[1]
			c /= x[0]
		}
	}
	return sum
}

// bytes is the value in bytes of an element of so many bits, swizzled.
func (l cuteLayout) bytes(bits int, coordinates ...int) int {
	p := l.at(coordinates...) * bits / 8
	return p ^ p>>3&l.swizzle
}

// cuteRecord is what traits.cpp prints of a trait.
type cuteRecord struct {
	words   []string
	layouts map[string]cuteLayout
}

func cuteRecords(t *testing.T) []cuteRecord {
	text, err := os.ReadFile("testdata/cute/traits.txt")
	require.NoError(t, err)
	var list []cuteRecord
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch name {
		case "mma", "copy", "wgmma", "shared":
			list = append(list, cuteRecord{strings.Fields(line), map[string]cuteLayout{}})
		default:
			list[len(list)-1].layouts[name] = parseCute(t, rest)
		}
	}
	return list
}

// TestCuteTraits holds the virtual machine to CuTe's traits: mma.sync, ldmatrix and
// stmatrix by running them over matrices that CuTe's maps distribute, wgmma and the
// swizzles of tensor maps by the maps that their own tests use.
func TestCuteTraits(t *testing.T) {
	for _, r := range cuteRecords(t) {
		t.Run(strings.Join(r.words, " "), func(t *testing.T) {
			switch r.words[0] {
			case "mma":
				r.mma(t)
			case "copy":
				r.copy(t)
			case "wgmma":
				r.wgmma(t)
			default:
				r.shared(t)
			}
		})
	}
}

func (r cuteRecord) number(t *testing.T, i int) int {
	n, err := strconv.Atoi(r.words[i])
	require.NoError(t, err)
	return n
}

// wholeNumber is a small whole number as an element of a type, and its bits.
func wholeNumber(typ string, v int) (code uint64, bits int) {
	switch typ {
	case "f64":
		return math.Float64bits(float64(v)), 64
	case "f32":
		return uint64(num.F32.Encode(float64(v), num.Even, false)), 32
	case "tf32", "f16", "bf16", "e4m3", "e5m2":
		return uint64(encodeElement(typ, float64(v))), map[string]int{"tf32": 32, "f16": 16, "bf16": 16, "e4m3": 8, "e5m2": 8}[typ]
	}
	bits, _ = strconv.Atoi(typ[1:])
	return uint64(v) & (1<<bits - 1), bits
}

// mma multiplies whole numbers, each group of lanes its own matrices.
func (r cuteRecord) mma(t *testing.T) {
	words := strings.Split(r.words[1], ".")
	types := words[len(words)-4:] // D, A, B, C
	m, n, k := r.number(t, 2), r.number(t, 3), r.number(t, 4)
	lanes := r.layouts["lanes"]
	threads := r.layouts["a"].size(0)
	random := rand.New(rand.NewPCG(uint64(k), uint64(len(r.words[1]))))
	matrix := func(typ string, size int) []int {
		out := make([]int, size)
		for i := range out {
			if out[i] = random.IntN(5) - 2; typ[0] == 'u' {
				out[i] += 2
			}
		}
		return out
	}
	var in [3][]byte
	regs := [4]int{}
	width := 32
	if types[0] == "f64" {
		width = 64
	}
	groups := 32 / threads
	want := make([][]int, groups)
	for group := range groups {
		operands := [3][]int{matrix(types[1], m*k), matrix(types[2], n*k), matrix(types[3], m*n)}
		want[group] = append([]int(nil), operands[2]...)
		for i := range m * n {
			for x := range k {
				want[group][i] += operands[0][i%m+m*x] * operands[1][i/m+n*x]
			}
		}
		for j, name := range []string{"a", "b", "c"} {
			l := r.layouts[name]
			_, bits := wholeNumber(types[j+1], 0)
			regs[j] = l.size(1) * bits / width
			if in[j] == nil {
				in[j] = make([]byte, 32*regs[j]*width/8)
			}
			for thread := range threads {
				lane := flatAt(lanes, thread) + 4*group
				var image []byte
				word, at := uint64(0), 0
				for v := range l.size(1) {
					code, _ := wholeNumber(types[j+1], operands[j][l.at(thread, v)])
					word |= code << at
					if at += bits; at == width {
						image = append(image, binary.LittleEndian.AppendUint64(nil, word)[:width/8]...)
						word, at = 0, 0
					}
				}
				copy(in[j][lane*len(image):], image)
			}
		}
	}
	_, bits := wholeNumber(types[0], 0)
	sums := r.layouts["c"].size(1)
	regs[3] = sums * bits / width
	var body strings.Builder
	for j, name := range []string{"a", "b", "c"} {
		fmt.Fprintf(&body, "mad.wide.u32 %%ad, %%t, %d, %%in%d;\n", regs[j]*width/8, j)
		for i := range regs[j] {
			fmt.Fprintf(&body, "ld.global.b%d %%%s%d, [%%ad+%d];\n", width, name, i, i*width/8)
		}
	}
	fmt.Fprintf(&body, "mma.sync.aligned.%s %s, %s, %s, %s;\nmad.wide.u32 %%ad, %%t, %d, %%in3;\n", r.words[1],
		regList("%z", regs[3]), regList("%a", regs[0]), regList("%b", regs[1]), regList("%c", regs[2]), regs[3]*width/8)
	for i := range regs[3] {
		fmt.Fprintf(&body, "st.global.b%d [%%ad+%d], %%z%d;\n", width, i*width/8, i)
	}
	sum := "b"
	if types[0][0] == 'f' && bits == width {
		sum = "f"
	}
	p := small{
		target: "sm_90", block: 32, body: body.String(),
		regs: fmt.Sprintf(".reg .b64 %%ad; .reg .b%d %%a<8>, %%b<8>; .reg .%s%d %%c<8>, %%z<8>;", width, sum, width),
	}
	out, report := p.run(t, in[0], in[1], in[2], make([]byte, 32*regs[3]*width/8))
	require.Empty(t, report.Faults)
	for group := range groups {
		for thread := range threads {
			lane := flatAt(lanes, thread) + 4*group
			for v := range sums {
				code, _ := wholeNumber(types[0], want[group][r.layouts["c"].at(thread, v)])
				var got [8]byte
				copy(got[:bits/8], out[3][(lane*sums+v)*bits/8:])
				require.Equal(t, code, binary.LittleEndian.Uint64(got[:]), "lane %d element %d", lane, v)
			}
		}
	}
}

// flatAt is the value of a layout at a number that all its modes make together.
func flatAt(l cuteLayout, i int) int {
	sum := 0
	for m := range l.modes {
		sum += cuteLayout{modes: l.modes[m : m+1]}.at(i % l.size(m))
		i /= l.size(m)
	}
	return sum
}

// copy moves elements of 16 bits between a row of 16 bytes a lane and registers.
func (r cuteRecord) copy(t *testing.T) {
	load := strings.HasPrefix(r.words[1], "ldmatrix")
	rows, registers := r.layouts["source"], r.layouts["destination"]
	if !load {
		rows, registers = registers, rows
	}
	n := registers.size(1) / 32
	place := map[int]int{} // of an element, in memory
	for lane := range 32 {
		for e := range 8 {
			if at := rows.at(lane, 16*e); lane < 8*n {
				place[at] = 8*lane + e
			}
		}
	}
	list := regList("%r", n)
	op := fmt.Sprintf("%s.shared.b16 %s, [%%a];", r.words[1], list)
	if !load {
		op = fmt.Sprintf("%s.shared.b16 [%%a], %s;", r.words[1], list)
	}
	p := small{
		target: "sm_90", block: 32, decls: ".shared .align 16 .b8 sm[512];", regs: ".reg .b64 %ad, %x, %y; .reg .b32 %a, %r<4>;",
		body: `mad.wide.u32 %ad, %t, 16, %in0; ld.global.v2.b64 {%x, %y}, [%ad]; mov.u32 %a, sm; mad.lo.u32 %a, %t, 16, %a; st.shared.v2.b64 [%a], {%x, %y};
mad.wide.u32 %ad, %t, 16, %in1; ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%ad]; bar.sync 0;
` + op + ` bar.sync 0; st.global.v4.b32 [%ad], {%r0, %r1, %r2, %r3};
ld.shared.v2.b64 {%x, %y}, [%a]; mad.wide.u32 %ad, %t, 16, %in0; st.global.v2.b64 [%ad], {%x, %y};`,
	}
	random := rand.New(rand.NewPCG(3, uint64(n)))
	memory, held := randomBytes(random, 512), randomBytes(random, 512)
	wantMemory, wantHeld := bytes.Clone(memory), bytes.Clone(held)
	for lane := range 32 {
		for e := range 2 * n {
			m, ok := place[registers.at(lane, 16*e)]
			require.True(t, ok)
			if load {
				copy(wantHeld[16*lane+2*e:][:2], memory[2*m:])
			} else {
				copy(wantMemory[2*m:][:2], held[16*lane+2*e:])
			}
		}
	}
	out, report := p.run(t, memory, held)
	require.Empty(t, report.Faults)
	require.Equal(t, wantMemory, out[0])
	require.Equal(t, wantHeld, out[1])
}

// wgmma compares the maps that TestWgmma uses.
func (r cuteRecord) wgmma(t *testing.T) {
	n, bits := r.number(t, 1), r.number(t, 2)
	a, c := r.layouts["a"], r.layouts["c"]
	require.Equal(t, 128, a.size(0))
	require.Equal(t, 128/bits, a.size(1))
	require.Equal(t, n/2, c.size(1))
	for thread := range 128 {
		for i := range a.size(1) {
			row, k := wgmmaFragment(bits, thread, i)
			require.Equal(t, a.at(thread, i), row+64*k)
		}
		for i := range c.size(1) {
			row, col := wgmmaSum(thread, i)
			require.Equal(t, c.at(thread, i), row+64*col)
		}
	}
}

// shared compares the canonical layouts that TestWgmma uses, and the swizzles of
// TestTensorLoads.
func (r cuteRecord) shared(t *testing.T) {
	l := r.layouts["offsets"]
	swizzle, bits, k := r.number(t, 2), r.number(t, 3), r.number(t, 4)
	o := &wgmmaOperand{rows: 64, k: k, t: wgmmaType{bits: bits}, mnMajor: r.words[1] == "MN", swizzle: swizzle}
	outer := func(mode int) int { return l.modes[mode][1][1] * bits / 8 }
	o.stride, o.leading = outer(0), outer(1)
	if o.mnMajor && swizzle > 0 {
		o.stride, o.leading = o.leading, o.stride
	}
	for row := range 64 {
		for i := range k {
			require.Equal(t, l.bytes(bits, row, i), o.offset(row, i), "row %d, k %d", row, i)
		}
	}
	if swizzle == 0 || o.mnMajor {
		return
	}
	m := &drawnMap{TensorMap: bench.TensorMap{Swizzle: swizzle}}
	for i := range 64 * swizzle {
		require.Equal(t, i^i>>3&l.swizzle, m.place(i))
	}
}

// TestCuteTraitsCurrent prints the traits again where the packages of the Python
// index nvidia-cutlass, nvidia-cuda-runtime and nvidia-cuda-cccl are at hand, in
// Python's folder of packages or in one that KGEN_CUTLASS names, and g++ is.
func TestCuteTraitsCurrent(t *testing.T) {
	folder := os.Getenv("KGEN_CUTLASS")
	if folder == "" {
		out, err := exec.Command("python3", "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])").Output()
		if err != nil {
			t.Skip("no python3 to ask for nvidia-cutlass: KGEN_CUTLASS names a folder of packages")
		}
		folder = strings.TrimSpace(string(out))
	}
	cutlass := filepath.Join(folder, "cutlass_library", "source", "include")
	runtime := filepath.Join(folder, "nvidia", "cu13", "include")
	for _, needed := range []string{filepath.Join(cutlass, "cute", "layout.hpp"), filepath.Join(runtime, "cuda_runtime_api.h"), filepath.Join(runtime, "cccl", "cuda", "std", "utility")} {
		if _, err := os.Stat(needed); err != nil {
			t.Skipf("no nvidia-cutlass, nvidia-cuda-runtime and nvidia-cuda-cccl in %s: KGEN_CUTLASS names a folder that has them", folder)
		}
	}
	program := filepath.Join(t.TempDir(), "traits")
	out, err := exec.Command("g++", "-std=c++17", "-w", "-I", cutlass, "-I", runtime, "-I", filepath.Join(runtime, "cccl"), "testdata/cute/traits.cpp", "-o", program).CombinedOutput()
	require.NoError(t, err, "%s", out)
	got, err := exec.Command(program).Output()
	require.NoError(t, err)
	want, err := os.ReadFile("testdata/cute/traits.txt")
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}
