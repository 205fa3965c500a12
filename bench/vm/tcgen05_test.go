package vm_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
)

// tensorProgram is a program of one block, or a pair, around operations on tensor
// memory. It brings an image to shared memory and words to the first columns of
// tensor memory, does the operations, waits for them and writes the columns out.
type tensorProgram struct {
	image   []byte   // of shared memory, from %sm on
	columns int      // of tensor memory, a multiple of 32
	initial []uint32 // of its lanes one after the other; nil leaves it undefined
	regs    string
	issue   string // by one thread, under @%p0
	all     string // by all threads, before
	after   string // by all threads, when those are waited for
	pair    bool
	opt     vm.Options
	edit    func(text string) string
}

const tensorReserved = 1024 // bytes of shared memory below a program's

// text is the program's body. %sm is the image, %tm the columns, %la the columns
// in the warp's own lanes, %p0 that of the issuing thread.
func (p tensorProgram) text() string {
	end := (len(p.image) + 15) / 16 * 16
	group := 1 + truthOf(p.pair)
	var b strings.Builder
	fmt.Fprintf(&b, `mov.u32 %%sm, sm; shl.b32 %%i, %%t, 2; mov.u32 %%rank, %%cluster_ctarank; mov.b16 %%both, 3; mul.wide.u32 %%g, %%rank, %d; add.u64 %%g, %%g, %%in0;
L: setp.ge.u32 %%p, %%i, %d; @%%p bra FILLED; cvt.u64.u32 %%h, %%i; add.u64 %%h, %%h, %%g; ld.global.u32 %%v, [%%h]; add.u32 %%x, %%sm, %%i; st.shared.u32 [%%x], %%v; add.u32 %%i, %%i, 512; bra L;
FILLED: setp.lt.u32 %%pw, %%t, 32; or.b32 %%x, %%t, %%rank; setp.eq.u32 %%p0, %%x, 0; setp.eq.u32 %%pi, %%t, 0;
@%%pw tcgen05.alloc.cta_group::%d.sync.aligned.shared::cta.b32 [%%sm+%d], 512;
@%%pi mbarrier.init.shared.b64 [%%sm+%d], 1;
fence.mbarrier_init.release.cluster;
fence.proxy.async; %s
ld.shared.u32 %%tm, [%%sm+%d]; and.b32 %%la, %%t, 96; shl.b32 %%la, %%la, 16; add.u32 %%la, %%la, %%tm;
mad.wide.u32 %%g, %%rank, %d, %%in1; mad.wide.u32 %%g, %%t, %d, %%g; mad.wide.u32 %%k, %%rank, %d, %%in2; mad.wide.u32 %%k, %%t, %d, %%k;
`, len(p.image), len(p.image), group, end, end+8, p.sync(), end, 512*p.columns, 4*p.columns, 512*p.columns, 4*p.columns)
	if p.initial != nil {
		for c := 0; c < p.columns; c += 32 {
			for i := range 32 {
				fmt.Fprintf(&b, "ld.global.u32 %%w%d, [%%g+%d];\n", i, 4*(c+i))
			}
			fmt.Fprintf(&b, "tcgen05.st.sync.aligned.32x32b.x32.b32 [%%la+%d], %s;\n", c, registers("%w", 32))
		}
		b.WriteString("tcgen05.wait::st.sync.aligned;\n" + p.sync() + "\n")
	}
	fmt.Fprintf(&b, "%s\n", p.all)
	if p.issue != "" {
		multicast, mask := "", ""
		if p.pair {
			multicast, mask = ".multicast::cluster", ", %both"
		}
		fmt.Fprintf(&b, `%s
add.u32 %%x, %%sm, %d; @%%p0 tcgen05.commit.cta_group::%d.mbarrier::arrive::one.shared::cluster%s.b64 [%%x]%s;
W: mbarrier.try_wait.parity.shared.b64 %%p, [%%sm+%d], 0; @!%%p bra W;
tcgen05.fence::after_thread_sync;
`, p.issue, end+8, group, multicast, mask, end+8)
	}
	fmt.Fprintf(&b, "%s\n", p.after)
	for c := 0; c < p.columns; c += 32 {
		fmt.Fprintf(&b, "tcgen05.ld.sync.aligned.32x32b.x32.b32 %s, [%%la+%d];\ntcgen05.wait::ld.sync.aligned;\n", registers("%w", 32), c)
		for i := range 32 {
			fmt.Fprintf(&b, "st.global.u32 [%%k+%d], %%w%d;\n", 4*(c+i), i)
		}
	}
	fmt.Fprintf(&b, "%s\n@%%pw tcgen05.dealloc.cta_group::%d.sync.aligned.b32 %%tm, 512;", p.sync(), group)
	if p.edit != nil {
		return p.edit(b.String())
	}
	return b.String()
}

// sync is a barrier of all threads.
func (p tensorProgram) sync() string {
	if p.pair {
		return "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
	}
	return "bar.sync 0;"
}

// registers is {%w0, %w1, ...}.
func registers(name string, n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%s%d", name, i)
	}
	return "{" + strings.Join(list, ", ") + "}"
}

// small is the program; of a pair images and columns are two, one after the other.
func (p tensorProgram) small() small {
	blocks := uint32(1 + truthOf(p.pair))
	p.image = p.image[:len(p.image)/int(blocks)]
	return small{
		target: "sm_100a", decls: sharedDecl, dynamic: int64(len(p.image)) + 64, block: 128, grid: blocks, cluster: blocks, opt: p.opt,
		regs: ".reg .b32 %sm, %i, %v, %x, %rank, %tm, %la, %w<32>; .reg .b64 %g, %h, %k; .reg .b16 %both; .reg .pred %p, %pw, %p0, %pi;" + p.regs,
		body: p.text(),
	}
}

// buffers are the image, the initial columns, and room for the final ones.
func (p tensorProgram) buffers() [][]byte {
	n := 128 * p.columns * (1 + truthOf(p.pair))
	initial := p.initial
	if initial == nil {
		initial = make([]uint32, n)
	}
	return [][]byte{append(p.image, 0, 0, 0, 0), words(initial...), make([]byte, 4*n)}
}

// run runs the program. What it gives back is the columns of each lane.
func (p tensorProgram) run(tb testing.TB) ([]uint32, []bench.Fault) {
	tb.Helper()
	out, report := p.small().run(tb, p.buffers()...)
	return toWords(out[2]), report.Faults
}

// numbered is words that tell lanes and columns apart.
func numbered(lanes, columns int) []uint32 {
	v := make([]uint32, lanes*columns)
	for i := range v {
		v[i] = uint32(i/columns)<<16 | uint32(i%columns) | 0x8000_0000
	}
	return v
}

// sameWords compares the columns of all lanes.
func sameWords(t require.TestingT, columns int, want, got []uint32) {
	require.Len(t, got, len(want))
	for i := range want {
		if want[i] != got[i] {
			require.Failf(t, "words differ", "lane %d, column %d: want %#x, got %#x", i/columns, i%columns, want[i], got[i])
		}
	}
}

// moveLayout is where tcgen05.ld and st find a thread's register, by the strides
// that CuTe's traits of these copies have: of the bits of the thread's number and
// of the register's, in lanes and columns.
type moveLayout struct {
	name            string
	lanes, per      int
	most            int
	thread          [5][2]int
	register        [3][2]int // of the lowest bits; further ones follow along columns
	registerColumns int       // columns that the first register bit beyond those moves by
}

var moveLayouts = []moveLayout{
	{"32x32b", 32, 1, 128, [5][2]int{{1, 0}, {2, 0}, {4, 0}, {8, 0}, {16, 0}}, [3][2]int{{0, 1}, {0, 2}, {0, 4}}, 8},
	{"16x64b", 16, 1, 128, [5][2]int{{8, 0}, {0, 1}, {1, 0}, {2, 0}, {4, 0}}, [3][2]int{{0, 2}, {0, 4}, {0, 8}}, 16},
	{"16x128b", 16, 2, 64, [5][2]int{{0, 1}, {0, 2}, {1, 0}, {2, 0}, {4, 0}}, [3][2]int{{8, 0}, {0, 4}, {0, 8}}, 16},
	{"16x256b", 16, 4, 32, [5][2]int{{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}}, [3][2]int{{0, 1}, {8, 0}, {0, 8}}, 16},
}

func (l *moveLayout) at(thread, reg int) (lane, column int) {
	for i, s := range l.thread {
		lane, column = lane+(thread>>i&1)*s[0], column+(thread>>i&1)*s[1]
	}
	for i, s := range l.register {
		lane, column = lane+(reg>>i&1)*s[0], column+(reg>>i&1)*s[1]
	}
	return lane, column + reg>>3*l.registerColumns
}

// TestTensorMoves holds loads and stores of every shape to CuTe's layouts.
func TestTensorMoves(t *testing.T) {
	for _, l := range moveLayouts {
		for _, halves := range []bool{false, true} {
			for _, times := range []int{1, 8} {
				for _, half := range []int{0, 16}[:33/(l.lanes+1)] {
					t.Run(fmt.Sprintf("%s.x%d %v %d", l.name, times, halves, half), func(t *testing.T) {
						checkMove(t, &l, times, halves, half)
					})
				}
			}
		}
	}
}

// checkMove stores by one shape, and loads by the same what was stored plainly.
func checkMove(t *testing.T, l *moveLayout, times int, halves bool, half int) {
	const columns = 160
	n := times * l.per
	pack, unpack := "", ""
	if halves {
		pack, unpack = ".pack::16b", ".unpack::16b"
	}
	place := func(thread, reg int) (at [2]int) { // of both halves, or of the whole twice
		lane, column := l.at(thread%32, reg)
		lane += thread/32*32 + half
		if halves {
			return [2]int{lane*columns + 2*column + 3, lane*columns + 2*column + 4}
		}
		return [2]int{lane*columns + column + 3, lane*columns + column + 3}
	}
	initial := numbered(128, columns)
	var values strings.Builder
	for i := range n {
		fmt.Fprintf(&values, "mad.lo.u32 %%z%d, %%t, 65536, %d;\n", i, 0x4000_0000+i)
	}
	base := fmt.Sprintf("[%%la+%d]", half<<16+3)
	store := tensorProgram{columns: columns, initial: initial, regs: fmt.Sprintf(".reg .b32 %%z<%d>;", n),
		all: values.String() + fmt.Sprintf("tcgen05.st.sync.aligned.%s.x%d%s.b32 %s, %s;\ntcgen05.wait::st.sync.aligned;\n", l.name, times, unpack, base, registers("%z", n))}
	got, faults := store.run(t)
	require.Empty(t, faults)
	want := append([]uint32(nil), initial...)
	for thread := range 128 {
		for i := range n {
			v := uint32(thread)<<16 + 0x4000_0000 + uint32(i)
			at := place(thread, i)
			if halves {
				want[at[0]], want[at[1]] = v&0xffff, v>>16
			} else {
				want[at[0]] = v
			}
		}
	}
	sameWords(t, columns, want, got)

	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "st.global.u32 [%%q+%d], %%z%d;\n", 4*i, i)
	}
	load := tensorProgram{columns: columns, initial: initial, regs: fmt.Sprintf(".reg .b32 %%z<%d>; .reg .b64 %%q;", n), all: fmt.Sprintf(
		"tcgen05.ld.sync.aligned.%s.x%d%s.b32 %s, %s;\ntcgen05.wait::ld.sync.aligned;\nmad.wide.u32 %%q, %%t, %d, %%in0;\n%s", l.name, times, pack, registers("%z", n), base, 4*n, out.String())}
	loaded := load.loaded(t, 128*n)
	for thread := range 128 {
		for i := range n {
			at := place(thread, i)
			v := initial[at[0]]
			if halves {
				v = v&0xffff | initial[at[1]]<<16
			}
			require.Equal(t, v, loaded[thread*n+i], "thread %d, register %d", thread, i)
		}
	}
}

// loaded runs a program that writes n words to its first buffer.
func (p tensorProgram) loaded(tb testing.TB, n int) []uint32 {
	tb.Helper()
	s := small{
		target: "sm_100a", decls: sharedDecl, dynamic: 64, block: 128, opt: p.opt,
		regs: ".reg .b32 %sm, %i, %v, %x, %rank, %tm, %la, %w<32>; .reg .b64 %g, %h, %k; .reg .b16 %both; .reg .pred %p, %pw, %p0, %pi;" + p.regs,
		body: p.text(),
	}
	out, report := s.run(tb, make([]byte, 4*n), words(p.initial...), make([]byte, 4*128*p.columns))
	require.Empty(tb, report.Faults)
	return toWords(out[0])
}

// TestTensorHalves is of the shape whose lower and upper threads are apart.
func TestTensorHalves(t *testing.T) {
	initial := numbered(128, 128)
	p := tensorProgram{columns: 128, initial: initial, regs: ".reg .b32 %z<8>; .reg .b64 %q;",
		all: "tcgen05.ld.sync.aligned.16x32bx2.x8.b32 " + registers("%z", 8) + ", [%la+1048578], 40;\ntcgen05.wait::ld.sync.aligned;\nmad.wide.u32 %q, %t, 32, %in0;\n" +
			"st.global.v4.u32 [%q], {%z0, %z1, %z2, %z3}; st.global.v4.u32 [%q+16], {%z4, %z5, %z6, %z7};"}
	got := p.loaded(t, 128*8)
	for thread := range 128 {
		for i := range 8 {
			lane := thread/32*32 + 16 + thread%16
			column := 2 + i + thread%32/16*40
			require.Equal(t, initial[lane*128+column], got[thread*8+i], "thread %d, register %d", thread, i)
		}
	}
}

// TestTensorLoadReduction: ld.red gives the least or greatest of what it loads.
func TestTensorLoadReduction(t *testing.T) {
	initial := make([]uint32, 128*32)
	for i := range initial {
		initial[i] = math.Float32bits(float32((i*37)%101-50) / 4)
	}
	for _, c := range []struct {
		op   string
		want func(v []float32) float32
	}{
		{"max", func(v []float32) float32 {
			m := v[0]
			for _, x := range v {
				m = max(m, x)
			}
			return m
		}},
		{"min.abs", func(v []float32) float32 {
			m := float32(math.Inf(1))
			for _, x := range v {
				m = min(m, max(x, -x))
			}
			return m
		}},
	} {
		p := tensorProgram{columns: 32, initial: initial, regs: ".reg .b32 %z<9>; .reg .b64 %q;",
			all: "tcgen05.ld.red.sync.aligned.32x32b.x8." + c.op + ".f32 " + registers("%z", 8) + ", %z8, [%la+4];\ntcgen05.wait::ld.sync.aligned;\nmad.wide.u32 %q, %t, 4, %in0; st.global.u32 [%q], %z8;"}
		s := small{target: "sm_103a", decls: sharedDecl, dynamic: 64, block: 128,
			regs: ".reg .b32 %sm, %i, %v, %x, %rank, %tm, %la, %w<32>; .reg .b64 %g, %h, %k; .reg .b16 %both; .reg .pred %p, %pw, %p0, %pi;" + p.regs, body: p.text()}
		out, report := s.run(t, make([]byte, 512), words(initial...), make([]byte, 4*len(initial)))
		require.Empty(t, report.Faults)
		for thread, got := range toWords(out[0])[:128] {
			var v []float32
			for _, x := range initial[thread*32+4 : thread*32+12] {
				v = append(v, math.Float32frombits(x))
			}
			require.Equal(t, c.want(v), math.Float32frombits(got), "%s, thread %d", c.op, thread)
		}
	}
}

// tensorKind is a kind of product with the codes of its types.
type tensorKind struct {
	name  string
	types []wgmmaType
	codes []uint32
	sums  map[string]uint32
	order []string // of sums
}

var tensorKinds = []tensorKind{
	{"kind::f16", []wgmmaType{{"f16", 16, 16, 0x3c00, 0x4000, false, true}, {"bf16", 16, 16, 0x3f80, 0x4000, false, true}}, []uint32{0, 1}, map[string]uint32{"f16": 0, "f32": 1}, []string{"f32", "f16"}},
	{"kind::tf32", []wgmmaType{{"tf32", 8, 32, 0x3f800000, 0x40000000, false, false}}, []uint32{2}, map[string]uint32{"f32": 1}, []string{"f32"}},
	{"kind::f8f6f4", []wgmmaType{{"e4m3", 32, 8, 0x38, 0x40, false, true}, {"e5m2", 32, 8, 0x3c, 0x40, false, true}}, []uint32{0, 1}, map[string]uint32{"f16": 0, "f32": 1}, []string{"f32", "f16"}},
	{"kind::i8", []wgmmaType{{"u8", 32, 8, 1, 2, true, true}, {"s8", 32, 8, 1, 2, true, true}}, []uint32{0, 1}, map[string]uint32{"s32": 2}, []string{"s32"}},
}

// tensorDescriptor is an operand's descriptor as tcgen05 has it.
func tensorDescriptor(o *wgmmaOperand) uint64 {
	mode := map[int]uint64{0: 0, 32: 6, 64: 4, 128: 2}[o.swizzle]
	return uint64(tensorReserved+o.start+o.advanced)>>4 | uint64(o.leading>>4)<<16 | uint64(o.stride>>4)<<32 | 1<<46 | uint64(o.base)<<49 | mode<<61
}

// sumPlace is where an element of the sums lies: PTX ISA 9.7.16.10.5.
func sumPlace(m, n int, ws, pair bool, row, col int) (block, lane, column int) {
	switch {
	case pair && m == 256: // layout A
		return row / 128, row % 128, col
	case pair: // layout B
		return row / 64, row%64 + 64*(col/(n/2)), col % (n / 2)
	case m == 128: // layout D
		return 0, row, col
	case m == 64 && ws: // layout E
		return 0, row + 64*(col/(n/2)), col % (n / 2)
	case m == 64: // layout F
		return 0, row/16*32 + row%16, col
	}
	return 0, row + 32*(col/(n/4)), col % (n / 4) // layout G
}

// bitsOfSum is a small integer as tensor memory holds it.
func bitsOfSum(t string, v int) uint32 {
	switch t {
	case "f16":
		return uint32(halfOf(v))
	case "f32":
		return math.Float32bits(float32(v))
	}
	return uint32(v)
}

// TestTensorProducts compares random products with plain sums: every kind of
// dense product without scales, every canonical layout, shape and place of the
// sums, A in shared or tensor memory, in one block or two, signs and disabled
// lanes.
func TestTensorProducts(tb *testing.T) {
	rapid.Check(tb, func(t *rapid.T) {
		kind := rapid.SampledFrom(tensorKinds).Draw(t, "kind")
		ia := rapid.IntRange(0, len(kind.types)-1).Draw(t, "A's type")
		ib := rapid.IntRange(0, len(kind.types)-1).Draw(t, "B's type")
		dt := rapid.SampledFrom(kind.order).Draw(t, "sums")
		if kind.name == "kind::f16" {
			ib = ia
			if ia == 1 {
				dt = "f32"
			}
		}
		at, bt := kind.types[ia], kind.types[ib]
		form := rapid.SampledFrom([]string{"one", "ws", "pair"}).Draw(t, "form")
		pair, ws := form == "pair", form == "ws"
		var m, n int
		switch form {
		case "one":
			m, n = rapid.SampledFrom([]int{64, 128}).Draw(t, "M"), 16*rapid.IntRange(1, 16).Draw(t, "N/16")
		case "ws":
			m, n = rapid.SampledFrom([]int{32, 64, 128}).Draw(t, "M"), rapid.SampledFrom([]int{64, 128, 256}).Draw(t, "N")
		default:
			m, n = rapid.SampledFrom([]int{128, 256}).Draw(t, "M"), 32*rapid.IntRange(1, 8).Draw(t, "N/32")
		}
		inTensor := rapid.Bool().Draw(t, "A in tensor memory")
		blocks := 1 + truthOf(pair)
		a := drawOperand(t, at, m/blocks, 0)
		b := drawOperand(t, bt, n/blocks, (a.size+1023)/1024*1024)
		inShared := []*wgmmaOperand{a, b}
		if inTensor {
			inShared = inShared[1:]
		}
		images, as, bs := drawImages(t, a, b, blocks, inShared)
		negA, negB := truthOf(!at.integer && rapid.Bool().Draw(t, "-A")), truthOf(!at.integer && rapid.Bool().Draw(t, "-B"))
		keep := rapid.Bool().Draw(t, "accumulate")
		var off [8]uint32
		if !ws {
			off[rapid.IntRange(0, 4*blocks-1).Draw(t, "word")] = rapid.Uint32().Draw(t, "disabled lanes")
		}
		idesc := kind.sums[dt]<<4 | kind.codes[ia]<<7 | kind.codes[ib]<<10 | uint32(negA)<<13 | uint32(negB)<<14 |
			uint32(truthOf(a.mnMajor && !inTensor))<<15 | uint32(truthOf(b.mnMajor))<<16 | uint32(n>>3)<<17 | uint32(m>>4)<<24

		const first, aAt, columns = 8, 288, 320
		initial := make([]uint32, 128*columns*blocks)
		for i := range initial {
			initial[i] = bitsOfSum(dt, i%7-3)
		}
		if inTensor {
			for block := range blocks {
				fillTensorA(initial[block*128*columns:], columns, aAt, a, as[block], m, ws, pair)
			}
		}
		left, mask, form2 := "%da", "", ""
		if inTensor {
			left = "[%xa]"
		}
		if ws {
			form2 = ".ws"
		} else {
			var list []string
			for i := range 4 * blocks {
				list = append(list, fmt.Sprintf("%%m%d", i))
			}
			mask = " {" + strings.Join(list, ", ") + "},"
		}
		var issue strings.Builder
		for i := range 4 * blocks {
			fmt.Fprintf(&issue, "mov.b32 %%m%d, %d;\n", i, int32(off[i]))
		}
		fmt.Fprintf(&issue, "mov.b64 %%da, %d; mov.b64 %%db, %d; mov.b32 %%id, %d; setp.eq.u32 %%pk, %d, 1; add.u32 %%xa, %%tm, %d; add.u32 %%xd, %%tm, %d;\n",
			int64(tensorDescriptor(a)), int64(tensorDescriptor(b)), int32(idesc), truthOf(keep), aAt, first)
		fmt.Fprintf(&issue, "@%%p0 tcgen05.mma%s.cta_group::%d.%s [%%xd], %s, %%db, %%id,%s %%pk;", form2, blocks, kind.name, left, mask)
		p := tensorProgram{image: images, columns: columns, initial: initial, pair: pair, issue: issue.String(),
			regs: ".reg .b32 %m<8>, %id, %xa, %xd; .reg .b64 %da, %db; .reg .pred %pk;",
			opt:  timings[rapid.IntRange(0, len(timings)-1).Draw(t, "timing")]}
		got, faults := p.run(tb)
		require.Empty(t, faults)

		want := append([]uint32(nil), initial...)
		sign := 1 - 2*(negA^negB)
		for row := range m {
			for col := range n {
				block, lane, column := sumPlace(m, n, ws, pair, row, col)
				if off[block*4+lane/32]>>(lane%32)&1 != 0 {
					continue
				}
				i := (block*128+lane)*columns + first + column
				v := 0
				if keep {
					v = i%7 - 3
				}
				ao, bo := as[row/a.rows], bs[col/b.rows]
				for k := range at.k {
					v += sign * ao[row%a.rows*at.k+k] * bo[col%b.rows*at.k+k]
				}
				want[i] = bitsOfSum(dt, v)
				if dt == "f16" && v == 0 || dt == "f32" && v == 0 {
					want[i] = got[i] & 0x8000_8000 // either zero
				}
			}
		}
		sameWords(t, columns, want, got)
	})
}

// drawImages draws other values for the second block of a pair.
func drawImages(t *rapid.T, a, b *wgmmaOperand, blocks int, inShared []*wgmmaOperand) (images []byte, as, bs [][]int) {
	for range blocks {
		image := make([]byte, (b.start+b.size+15)/16*16)
		for _, o := range []*wgmmaOperand{a, b} {
			seed := rapid.IntRange(0, 1000).Draw(t, "values")
			values := make([]int, len(o.values))
			for i := range values {
				values[i] = (i*seed+i/7)%5 - 2
				if o.t.name == "u8" {
					values[i] = max(values[i], -values[i])
				}
			}
			o.values = values
		}
		for _, o := range inShared {
			o.fill(image)
		}
		as, bs = append(as, a.values), append(bs, b.values)
		images = append(images, image...)
	}
	return images, as, bs
}

// fillTensorA puts a block's rows of A where the product looks for them: in the
// lanes of the sums, once for each part that those have.
func fillTensorA(words []uint32, columns, at int, o *wgmmaOperand, values []int, m int, ws, pair bool) {
	per := 32 / o.t.bits
	for row := range o.rows {
		for part := range 4 {
			_, lane, _ := sumPlace(m, 4, ws, pair, row, part) // each column of four is a part's, or all are one's
			for k := 0; k < o.k; k += per {
				w := uint32(0)
				for i := range per {
					w |= o.t.encode(values[row*o.k+k+i]) << (o.t.bits * i)
				}
				words[lane*columns+at+k/per] = w
			}
		}
	}
}
