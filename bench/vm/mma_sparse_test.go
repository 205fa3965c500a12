package vm_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sparseType is a type of sparse products: its elements, how many are kept
// together, and what the metadata of one thread are of.
type sparseType struct {
	name       string
	bits       int
	codes      []uint32
	values     []int
	group      int // elements of which half are kept
	pairs      int
	unit       int  // elements along K that a thread's metadata are of
	ofOneRow   bool // a thread has those of one row, otherwise of two, 16 bits each
	sums       string
	shapes     []int // K
	target     string
	qualifiers string
}

var sparseTypes = []sparseType{
	{"f16", 16, []uint32{0x3c00, 0x4000, 0xbc00, 0xc000}, []int{1, 2, -1, -2}, 4, 1, 16, false, "f32", []int{16, 32}, "sm_80", ""},
	{"bf16", 16, []uint32{0x3f80, 0x4000, 0xbf80}, []int{1, 2, -1}, 4, 1, 16, false, "f32", []int{16, 32}, "sm_80", ""},
	{"tf32", 32, []uint32{0x3f800000, 0x40000000, 0xbf800000}, []int{1, 2, -1}, 2, 1, 8, false, "f32", []int{8, 16}, "sm_80", ""},
	{"s8", 8, []uint32{1, 100, 0xff, 0x9c}, []int{1, 100, -1, -100}, 4, 1, 32, true, "s32", []int{32, 64}, "sm_80", ""},
	{"u8", 8, []uint32{1, 100, 255}, []int{1, 100, 255}, 4, 1, 32, true, "s32", []int{32, 64}, "sm_80", ""},
	{"s4", 4, []uint32{1, 7, 15, 8}, []int{1, 7, -1, -8}, 8, 2, 64, true, "s32", []int{64, 128}, "sm_80", ""},
	{"e4m3", 8, []uint32{0x38, 0x40, 0xb8}, []int{1, 2, -1}, 4, 1, 32, true, "f32", []int{64}, "sm_89", ""},
	{"e2m1", 4, []uint32{2, 4, 0xa}, []int{1, 2, -1}, 8, 2, 64, true, "f32", []int{128}, "sm_120a", "kind::mxf4.block_scale.scale_vec::2X."},
}

// sparseRows is a matrix of which half of each group's elements are kept.
type sparseRows struct {
	kept  [][]int    // which code
	meta  [][]uint32 // by row, four bits for each group
	dense [][]int    // values
}

func (s *sparseType) draw(r *rand.Rand, rows, k int) (m sparseRows) {
	for range rows {
		dense := make([]int, k)
		var kept []int
		var meta []uint32
		for group := 0; group < k; group += s.group {
			places := s.group / s.pairs // that may be kept, or two bits each of 1:2
			first, second := r.IntN(places-1), 0
			if places > 2 {
				second = first + 1 + r.IntN(places-1-first)
				meta = append(meta, uint32(first|second<<2))
			} else {
				first = r.IntN(2)
				meta = append(meta, []uint32{0b0100, 0b1110}[first])
			}
			for _, at := range []int{first, second}[:places/2] {
				for j := range s.pairs {
					c := r.IntN(len(s.codes))
					kept = append(kept, c)
					dense[group+at*s.pairs+j] = s.values[c]
				}
			}
		}
		m.kept, m.meta, m.dense = append(m.kept, kept), append(m.meta, meta), append(m.dense, dense)
	}
	return m
}

// word is the metadata that a thread of a quad has, of 16 rows from first on.
func (s *sparseType) word(m *sparseRows, first, group, thread int) (v uint32) {
	groups := s.unit / s.group
	if s.ofOneRow {
		for i := range groups {
			v |= m.meta[first+group+8*(thread&1)][thread>>1*groups+i] << (4 * i)
		}
		return v
	}
	for i := range groups {
		v |= m.meta[first+group][thread*groups+i]<<(4*i) | m.meta[first+group+8][thread*groups+i]<<(16+4*i)
	}
	return v
}

// fragment is consecutive elements of a row as registers hold them: a lane's
// register r has those at 4*per*r + per*(lane mod 4).
func (s *sparseType) fragment(row []int, lane, r int) (v uint32) {
	per := 32 / s.bits
	for i := range per {
		v |= s.codes[row[(4*r+lane&3)*per+i]] << (s.bits * i)
	}
	return v
}

// TestMmaSparse compares products of a sparse A with plain sums: every type and
// shape, each pair or single of the threads that may hold the metadata.
func TestMmaSparse(t *testing.T) {
	for _, s := range sparseTypes {
		for _, k := range s.shapes {
			threads := k / s.unit
			if s.ofOneRow {
				threads *= 2
			}
			for selector := range 4 / threads {
				t.Run(fmt.Sprintf("%s k%d %d", s.name, k, selector), func(t *testing.T) { checkMmaSparse(t, &s, k, threads, selector) })
			}
		}
	}
}

func checkMmaSparse(t *testing.T, s *sparseType, k, threads, selector int) {
	r := rand.New(rand.NewPCG(uint64(k), uint64(selector)))
	a := s.draw(r, 16, k)
	b := make([][]int, 8)
	for col := range b {
		for range k {
			b[col] = append(b[col], r.IntN(len(s.codes)))
		}
	}
	na, nb := 16*k/2*s.bits/1024, 8*k*s.bits/1024
	ra, rb, meta := make([]uint32, 32*na), make([]uint32, 32*nb), make([]uint32, 32)
	for l := range 32 {
		for i := range na {
			ra[na*l+i] = s.fragment(a.kept[l/4+8*(i&1)], l, i>>1)
		}
		for i := range nb {
			rb[nb*l+i] = s.fragment(b[l/4], l, i)
		}
		if meta[l] = 0xdeadbeef; l&3/threads == selector {
			meta[l] = s.word(&a, 0, l/4, l&3%threads)
		}
	}
	mod, decls, rest := "sp::ordered_metadata", "", ""
	if s.target == "sm_80" {
		mod = "sp"
	}
	if s.qualifiers != "" {
		decls, rest = ".reg .b32 %one;", ", %one, {0, 0}, %one, {0, 0}"
	}
	name := fmt.Sprintf("mma.%s.sync.aligned.m16n8k%d.row.col.%s%s.%s.%s.%s", mod, k, s.qualifiers, s.sums, s.name, s.name, s.sums)
	op := ""
	if s.qualifiers != "" {
		name += ".ue8m0"
		op = "mov.b32 %one, 0x7f7f7f7f;"
	}
	op += fmt.Sprintf("%s %s, %s, %s, %s, %%d0, %d%s;", name, regList("%z", 4), regList("%a", na), regList("%b", nb), regList("%c", 4), selector, rest)
	p := warpProgram(s.target, decls, op, []int{na, nb, 4, 1}, 4)
	out, report := p.run(t, words(ra...), words(rb...), make([]byte, 512), words(meta...), make([]byte, 512))
	require.Empty(t, report.Faults)
	require.True(t, report.Counters.Tensor[0].Sparse)
	for i, got := range toWords(out[4]) {
		row, col := accumulatorPlace(i/4, i%4)
		want := 0
		for j := range k {
			want += a.dense[row][j] * s.values[b[col][j]]
		}
		if s.sums == "s32" {
			require.Equal(t, want, int(int32(got)), "row %d, column %d", row, col)
			continue
		}
		require.Equal(t, float32(want), math.Float32frombits(got)+0, "row %d, column %d", row, col)
	}
}

// TestWgmmaSparse is the same of a warpgroup, A in shared memory or registers.
func TestWgmmaSparse(t *testing.T) {
	const n = 16
	for _, s := range sparseTypes {
		if s.bits == 4 {
			continue
		}
		for _, inRegs := range []bool{false, true} {
			k := 512 / s.bits
			selectors := 2
			if s.ofOneRow {
				selectors = 1
			}
			for selector := range selectors {
				t.Run(fmt.Sprintf("%s %v %d", s.name, inRegs, selector), func(t *testing.T) { checkWgmmaSparse(t, &s, k, n, 4/selectors, selector, inRegs) })
			}
		}
	}
}

func checkWgmmaSparse(t *testing.T, s *sparseType, k, n, threads, selector int, inRegs bool) {
	r := rand.New(rand.NewPCG(uint64(k), uint64(selector)))
	a := s.draw(r, 64, k)
	b := make([][]int, n)
	for col := range b {
		for range k {
			b[col] = append(b[col], r.IntN(len(s.codes)))
		}
	}
	e := narrowKind{bits: s.bits, codes: s.codes}
	rowsOf := func(rows [][]int) (all [][]byte) {
		for _, row := range rows {
			all = append(all, e.row(row))
		}
		return all
	}
	image := make([]byte, 8<<10)
	da, end := plainMatrix(image, 0, rowsOf(a.kept))
	db, _ := plainMatrix(image, end, rowsOf(b))
	da, db = da&^(1<<46), db&^(1<<46)
	regs := make([]uint32, 128*5) // four of A, then the metadata
	for thread := range 128 {
		warp, l := thread/32, thread%32
		for i := range 4 {
			regs[5*thread+i] = s.fragment(a.kept[16*warp+l/4+8*(i&1)], l, i>>1)
		}
		if regs[5*thread+4] = 0xdeadbeef; l&3/threads == selector {
			regs[5*thread+4] = s.word(&a, 16*warp, l/4, l&3%threads)
		}
	}
	left, constants := "%da", ""
	if inRegs {
		left = regList("%a", 4)
	}
	if s.sums == "f32" {
		constants = ", 1, 1"
		if s.bits == 16 {
			constants += strings.Repeat(", 0", 2-truthOf(inRegs))
		}
	}
	p := small{
		target: "sm_90a", decls: sharedDecl, dynamic: int64(len(image)), block: 128,
		regs: ".reg .b32 %z<8>, %a<5>, %i, %v, %x; .reg .b64 %h, %da, %db; .reg .pred %p;",
		body: fmt.Sprintf(`shl.b32 %%i, %%t, 2;
L: setp.ge.u32 %%p, %%i, %d; @%%p bra DONE; cvt.u64.u32 %%h, %%i; add.u64 %%h, %%h, %%in0; ld.global.u32 %%v, [%%h]; mov.u32 %%x, sm; add.u32 %%x, %%x, %%i; st.shared.u32 [%%x], %%v; add.u32 %%i, %%i, 512; bra L;
DONE: fence.proxy.async; bar.sync 0; setp.ne.u32 %%p, %%i, %%i; mov.b64 %%da, %d; mov.b64 %%db, %d;
mad.wide.u32 %%h, %%t, 20, %%in1; ld.global.u32 %%a0, [%%h]; ld.global.u32 %%a1, [%%h+4]; ld.global.u32 %%a2, [%%h+8]; ld.global.u32 %%a3, [%%h+12]; ld.global.u32 %%a4, [%%h+16];
wgmma.fence.sync.aligned;
wgmma.mma_async.sp.sync.aligned.m64n%dk%d.%s.%s.%s %s, %s, %%db, %%a4, %d, %%p%s;
wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
mad.wide.u32 %%h, %%t, 32, %%in2; st.global.v4.b32 [%%h], {%%z0, %%z1, %%z2, %%z3}; st.global.v4.b32 [%%h+16], {%%z4, %%z5, %%z6, %%z7};`,
			len(image), int64(da), int64(db), n, k, s.sums, s.name, s.name, regList("%z", 8), left, selector, constants),
	}
	out, report := p.run(t, image, words(regs...), make([]byte, 4096))
	require.Empty(t, report.Faults)
	for i, got := range toWords(out[2]) {
		thread, j := i/8, i%8
		row, col := 16*(thread/32)+thread%32/4+8*(j>>1&1), 8*(j>>2)+2*(thread&3)+j&1
		want := 0
		for x := range k {
			want += a.dense[row][x] * s.values[b[col][x]]
		}
		if s.sums == "s32" {
			require.Equal(t, want, int(int32(got)), "row %d, column %d", row, col)
			continue
		}
		require.Equal(t, float32(want), math.Float32frombits(got)+0, "row %d, column %d", row, col)
	}
}
