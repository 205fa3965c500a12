package vm_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
	_ "github.com/kgen-dev/kgen/internal/fixedseed" // of rapid
	"github.com/kgen-dev/kgen/ir/layout"
)

// drawTile draws a layout of a tile, and how the tile lies in shared memory.
func drawTile(t *rapid.T) (*layout.Layout, *layout.Shared) {
	bits := [2]int{rapid.IntRange(0, 6).Draw(t, "rows"), rapid.IntRange(1, 6).Draw(t, "columns")}
	shape := []int{1 << bits[0], 1 << bits[1]}
	var bases [][]int
	for d, n := range bits {
		for i := range n {
			b := []int{0, 0}
			b[d] = 1 << i
			bases = append(bases, b)
		}
	}
	warps := rapid.IntRange(0, 2).Draw(t, "warp bits")
	for len(bases) < 5+warps+rapid.IntRange(0, 1).Draw(t, "replicas") {
		bases = append(bases, []int{0, 0})
	}
	if rapid.Bool().Draw(t, "any order") {
		bases = rapid.Permutation(bases).Draw(t, "bases")
	}
	split := rapid.IntRange(0, len(bases)-5-warps).Draw(t, "registers before the lanes")
	reg := append(append([][]int{}, bases[:split]...), bases[split+5+warps:]...)
	l, err := layout.New(shape, reg, bases[split:split+5], bases[split+5:split+5+warps], []int{1, 1})
	require.NoError(t, err)
	order := rapid.Permutation([]int{0, 1}).Draw(t, "order")
	elem := rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "bytes of an element")
	s, err := layout.Swizzled(shape, order, elem, rapid.SampledFrom([]int{0, 32, 64, 128}).Draw(t, "swizzle"))
	if err != nil || rapid.IntRange(0, 2).Draw(t, "padded") == 0 {
		s, err = layout.Padded(shape, order, elem, 16*rapid.IntRange(0, 2).Draw(t, "pad"))
	}
	if err != nil {
		t.Skip(err)
	}
	return l, s
}

// accessAll has every thread do an instruction, whose address is in %a, at the
// addresses of a table: for each instruction those of all threads.
func accessAll(tb testing.TB, instruction string, table []uint32, threads, size int) bench.SharedTraffic {
	tb.Helper()
	n := len(table) / threads
	p := small{
		decls: ".extern .shared .align 1024 .b8 sm[];", dynamic: int64(size), block: uint32(threads),
		regs: ".reg .b32 %a, %i, %base, %v<4>; .reg .b16 %h; .reg .b64 %ad; .reg .pred %p;",
		body: fmt.Sprintf(`mov.u32 %%v0, 0; mov.u32 %%v1, 0; mov.u32 %%v2, 0; mov.u32 %%v3, 0; mov.u16 %%h, 0; mov.u32 %%i, 0; mov.u32 %%base, sm;
L: mad.lo.u32 %%a, %%i, %d, %%t; mad.wide.u32 %%ad, %%a, 4, %%in0; ld.global.u32 %%a, [%%ad]; add.u32 %%a, %%a, %%base;
%s add.u32 %%i, %%i, 1; setp.lt.u32 %%p, %%i, %d; @%%p bra L;`, threads, instruction, n),
		opt: vm.Options{Checks: vm.NoChecks(), Workers: 1},
	}
	var data []byte
	for _, x := range table {
		data = binary.LittleEndian.AppendUint32(data, x)
	}
	_, report := p.run(tb, data)
	return report.Counters.Shared
}

// TestPredictedConflicts: what a layout predicts of a tile's loads and stores is what
// is counted of them.
func TestPredictedConflicts(t *testing.T) {
	vectors := map[int]string{1: "u8 [%a], %h", 2: "u16 [%a], %h", 4: "u32 [%a], %v0", 8: "v2.u32 [%a], {%v0, %v1}", 16: "v4.u32 [%a], {%v0, %v1, %v2, %v3}"}
	loads := map[int]string{1: "u8 %h, [%a]", 2: "u16 %h, [%a]", 4: "u32 %v0, [%a]", 8: "v2.u32 {%v0, %v1}, [%a]", 16: "v4.u32 {%v0, %v1, %v2, %v3}, [%a]"}
	conflicts := 0
	rapid.Check(t, func(rt *rapid.T) {
		l, s := drawTile(rt)
		most := rapid.SampledFrom([]int{4, 8, 16}).Draw(rt, "most bytes")
		v, ok := s.Vector(l, most)
		if !ok {
			return
		}
		want, ok := s.VectorTraffic(l, most)
		require.True(rt, ok)
		threads := 32 * l.Warps()
		var table []uint32
		for _, g := range v.Groups {
			for thread := range threads {
				table = append(table, uint32(s.Offset(l.Coord(g[0], thread%32, thread/32))))
			}
		}
		read := accessAll(t, "ld.shared."+loads[v.Bytes]+";", table, threads, s.Size()).Loads
		write := accessAll(t, "st.shared."+vectors[v.Bytes]+";", table, threads, s.Size()).Stores
		for _, got := range []bench.SharedCount{read, write} {
			require.EqualValues(rt, want.Instructions, got.Requests, "%v in %v", l, s)
			require.EqualValues(rt, want.Actual, got.Wavefronts, "%v in %v", l, s)
			require.LessOrEqual(rt, got.Ideal, int64(want.Ideal))
		}
		conflicts += want.Actual - want.Ideal
	})
	require.Positive(t, conflicts, "some draws conflict")
}

// TestPredictedMatrixConflicts is the same for ldmatrix of the operands of mma.
func TestPredictedMatrixConflicts(t *testing.T) {
	conflicts := 0
	rapid.Check(t, func(rt *rapid.T) {
		shape := []int{16 << rapid.IntRange(0, 2).Draw(rt, "rows"), 16 << rapid.IntRange(0, 2).Draw(rt, "columns")}
		fragment := layout.MMAOperandA
		if rapid.Bool().Draw(rt, "B") {
			fragment = layout.MMAOperandB
		}
		l, err := fragment(shape, 16, 1, 1)
		require.NoError(rt, err)
		order := rapid.Permutation([]int{0, 1}).Draw(rt, "order")
		s, err := layout.Swizzled(shape, order, 2, rapid.SampledFrom([]int{0, 32, 64, 128}).Draw(rt, "swizzle"))
		if err != nil {
			s, err = layout.Padded(shape, order, 2, 16*rapid.IntRange(0, 1).Draw(rt, "pad"))
		}
		require.NoError(rt, err)
		m, ok := s.Ldmatrix(l)
		if !ok {
			return
		}
		var table []uint32
		for _, move := range m.Moves {
			for lane := range 32 {
				var xor, add int
				for i, p := range m.Thread[:layout.LaneBits] {
					if lane>>i&1 != 0 {
						xor, add = xor^p.Xor, add+p.Add
					}
				}
				table = append(table, uint32((xor+add)^move.Xor+move.Add))
			}
		}
		trans := ""
		if m.Trans {
			trans = ".trans"
		}
		names := []string{"%v0", "%v0, %v1", "", "%v0, %v1, %v2, %v3"}[m.Count-1]
		got := accessAll(t, fmt.Sprintf("ldmatrix.sync.aligned.m8n8.x%d%s.shared.b16 {%s}, [%%a];", m.Count, trans, names), table, 32, s.Size()).Matrix
		want := m.MatrixTraffic(1)
		require.EqualValues(rt, want.Instructions, got.Requests, "%v in %v", l, s)
		require.EqualValues(rt, want.Actual, got.Wavefronts, "%v in %v", l, s)
		require.EqualValues(rt, want.Ideal, got.Ideal, "%v in %v", l, s)
		conflicts += want.Actual - want.Ideal
	})
	require.Positive(t, conflicts, "some draws conflict")
}
