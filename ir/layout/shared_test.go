package layout

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func mustShared(t require.TestingT) func(*Shared, error) *Shared {
	return func(s *Shared, err error) *Shared {
		require.NoError(t, err)
		return s
	}
}

// each calls f with every coordinate of shape.
func each(shape []int, f func(at []int)) {
	at := make([]int, len(shape))
	for {
		f(at)
		d := len(at) - 1
		for ; d >= 0; d-- {
			if at[d]++; at[d] < shape[d] {
				break
			}
			at[d] = 0
		}
		if d < 0 {
			return
		}
	}
}

func drawShared(t *rapid.T, shape []int) *Shared {
	order := rapid.Permutation(reversed(len(shape))).Draw(t, "order")
	elem := rapid.SampledFrom([]int{1, 2, 2, 4, 8}).Draw(t, "elem")
	var options []*Shared
	for _, swizzle := range []int{32, 64, 128} {
		if s, err := Swizzled(shape, order, elem, swizzle); err == nil {
			options = append(options, s)
			if s, err := s.Interleaved(); err == nil {
				options = append(options, s)
			}
		}
	}
	for _, pad := range []int{0, elem, 16} {
		if s, err := Padded(shape, order, elem, pad); err == nil {
			options = append(options, s)
		}
	}
	return rapid.SampledFrom(options).Draw(t, "shared")
}

// Swizzled offsets are those a TMA copy makes: a dense box of rows by atom for each
// atom, then the XOR of PTX ISA 5.5.7 on byte addresses.
func TestSwizzleIsTMA(t *testing.T) {
	masks := map[int]func(a int) int{
		32:  func(a int) int { return a ^ a>>7&1<<4 },
		64:  func(a int) int { return a ^ a>>7&3<<4 },
		128: func(a int) int { return a ^ a>>7&7<<4 },
	}
	for _, c := range []struct{ rows, cols, elem, swizzle int }{
		{64, 64, 2, 128}, {128, 128, 2, 128}, {64, 32, 4, 128}, {64, 96, 2, 64}, {32, 80, 2, 32},
		{32, 176, 2, 32}, {24, 128, 1, 64}, {8, 256, 2, 128},
	} {
		s := mustShared(t)(Swizzled([]int{c.rows, c.cols}, []int{1, 0}, c.elem, c.swizzle))
		atom := c.swizzle / c.elem
		each(s.Shape(), func(at []int) {
			box := at[1] / atom * c.rows * c.swizzle
			want := masks[c.swizzle](box + at[0]*c.swizzle + at[1]%atom*c.elem)
			if got := s.OffsetAt(at); got != want {
				t.Fatalf("%v at %v: %d, want %d", s, at, got, want)
			}
		})
		require.Equal(t, c.rows*c.cols*c.elem, s.Size())
		require.Equal(t, 8*c.swizzle, s.Align())
	}
}

// wgmma reads a swizzled MN-major operand, rows along K, by the address function of
// PTX ISA 9.7.15.5.1 with a stride offset of one period of the swizzle and a leading
// offset of AtomStride.
func TestSwizzleIsWGMMA(t *testing.T) {
	for _, swizzle := range []int{32, 64, 128} {
		s := mustShared(t)(Swizzled([]int{64, 128}, []int{1, 0}, 2, swizzle)) // K x N
		chunks := swizzle / 16
		stride, leading := 8*s.RowPitch(), s.AtomStride()
		each(s.Shape(), func(at []int) {
			k, m := at[0], at[1]/8
			a := k%8*swizzle + k/8*stride + m%chunks*16 + m/chunks*leading
			a ^= a >> 7 & (chunks - 1) << 4
			if got := s.OffsetAt(at); got != a+at[1]%8*2 {
				t.Fatalf("%v at %v: %d, want %d", s, at, got, a+at[1]%8*2)
			}
		})
	}
}

func TestSharedKeepsElementsApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawShared(t, drawShape(t, rapid.IntRange(1, 4).Draw(t, "rank"), 9))
		used := map[int]bool{}
		each(s.Shape(), func(at []int) {
			o := s.OffsetAt(at)
			if o < 0 || o%s.ElemBytes() != 0 || o+s.ElemBytes() > s.Size() || used[o] {
				t.Fatalf("%v: offset %d of %v overlaps or leaves %d bytes", s, o, at, s.Size())
			}
			used[o] = true
		})
		require.Zero(t, s.Size()%s.Align())
		perm := rapid.Permutation(reversed(len(s.Shape()))).Draw(t, "perm")
		m, err := s.Transpose(perm)
		require.NoError(t, err)
		each(m.Shape(), func(at []int) {
			old := make([]int, len(at))
			for d, p := range perm {
				old[p] = at[d]
			}
			if m.OffsetAt(at) != s.OffsetAt(old) {
				t.Fatalf("%v as %v: %v moved", s, m, old)
			}
		})
		r, err := ParseShared(s.String())
		require.NoError(t, err)
		require.True(t, s.Equal(r))
	})
}

// address evaluates a basis as generated code would, at an aligned base.
func address(base int, thread []Place, index int, reg Place) int {
	xor, add := 0, 0
	for i, p := range thread {
		if index>>i&1 == 1 {
			xor ^= p.Xor
			add += p.Add
		}
	}
	return (base + xor + add) ^ reg.Xor + reg.Add
}

func TestBasis(t *testing.T) {
	answered := 0
	rapid.Check(t, func(t *rapid.T) {
		shape := drawShape(t, rapid.IntRange(1, 4).Draw(t, "rank"), 9)
		s := drawShared(t, shape)
		l := drawLayout(t, shape, 1, "l")
		b, ok := s.Basis(l)
		if !ok {
			require.NotZero(t, l.shared())
			return
		}
		answered++
		base := 3 * s.Align()
		for w := range l.Warps() {
			for lane := range 32 {
				for r := range l.Registers() {
					want := base + s.Offset(l.Coord(r, lane, w))
					if got := address(base, b.Thread, w<<LaneBits|lane, b.Registers[r]); got != want {
						t.Fatalf("%v in %v: register %d lane %d warp %d at %d, want %d", l, s, r, lane, w, got, want)
					}
				}
			}
		}
	})
	require.Greater(t, answered, 20)
}

func TestVector(t *testing.T) {
	widths := map[int]int{}
	rapid.Check(t, func(t *rapid.T) {
		shape := drawShape(t, rapid.IntRange(1, 3).Draw(t, "rank"), 10)
		s := drawShared(t, shape)
		l := drawLayout(t, shape, 1, "l")
		if rapid.Bool().Draw(t, "blocked") {
			l = mustLayout(t)(Blocked(shape, s.Order(), 8, 2))
		}
		v, ok := s.Vector(l, 16)
		if !ok {
			return
		}
		widths[v.Bytes]++
		require.Equal(t, v.Bytes, s.VectorBytes(l))
		seen := make([]bool, l.Registers())
		for _, group := range v.Groups {
			require.Len(t, group, v.Bytes/s.ElemBytes())
			for i, r := range group {
				if seen[r] {
					t.Fatalf("register %d twice", r)
				}
				seen[r] = true
				for _, lane := range []int{0, 1, 6, 31} {
					start := s.Offset(l.Coord(group[0], lane, 1))
					if start%v.Bytes != 0 || s.Offset(l.Coord(r, lane, 1)) != start+i*s.ElemBytes() {
						t.Fatalf("%v in %v: group %v is no aligned run", l, s, group)
					}
				}
			}
		}
		require.NotContains(t, seen, false)
		// No wider access exists: some thread's registers of a repeat lack an aligned run.
		if v.Bytes < 16 && l.Replicas() == 1 {
			require.False(t, hasRuns(s, l, 2*v.Bytes), "%v in %v: wider than %d", l, s, v.Bytes)
		}
	})
	for _, n := range []int{4, 8, 16} {
		require.NotZero(t, widths[n], "no vector of %d bytes drawn", n)
	}
}

// hasRuns tells by enumeration whether every thread's elements of a repeat fall into
// aligned runs of n bytes.
func hasRuns(s *Shared, l *Layout, n int) bool {
	for w := range l.Warps() {
		for lane := range 32 {
			bytes := map[[2]int]int{}
			for r := range l.Registers() {
				bytes[[2]int{r >> l.RegisterBits(), s.Offset(l.Coord(r, lane, w)) / n}] += s.ElemBytes()
			}
			for _, have := range bytes {
				if have != n {
					return false
				}
			}
		}
	}
	return true
}

// ldmatrix as the PTX ISA has it (9.7.14.5.15): matrix j takes its eight 16-byte
// rows at the addresses of lanes 8j to 8j+7; lane L gets in register j row L/4,
// 16-bit columns 2(L%4) and the next, or with .trans their transpose. memory holds
// bytes; the result is each lane's bytes, register by register.
func ldmatrix(memory []byte, address [32]int, count int, trans bool) (out [32][]byte) {
	for j := range count {
		var m [8][8][2]byte
		for row := range 8 {
			a := address[8*j+row]
			for col := range 8 {
				m[row][col] = [2]byte{memory[a+2*col], memory[a+2*col+1]}
			}
		}
		for lane := range out {
			g, t := lane/4, lane%4
			low, high := m[g][2*t], m[g][2*t+1]
			if trans {
				low, high = m[2*t][g], m[2*t+1][g]
			}
			out[lane] = append(out[lane], low[0], low[1], high[0], high[1])
		}
	}
	return out
}

// checkLdmatrix runs a plan on a memory of random-looking bytes and compares every
// register with what the layouts say.
func checkLdmatrix(t *testing.T, s *Shared, l *Layout, plan Matrices) {
	t.Helper()
	memory := make([]byte, s.Size())
	state := uint32(12345)
	for i := range memory {
		state = state*1664525 + 1013904223
		memory[i] = byte(state >> 24)
	}
	filled := make([]bool, l.Registers())
	pack := 4 / s.ElemBytes()
	for w := range l.Warps() {
		for _, move := range plan.Moves {
			var addresses [32]int
			for lane := range addresses {
				addresses[lane] = address(0, plan.Thread, w<<LaneBits|lane, move.Place)
				if addresses[lane]%16 != 0 {
					t.Fatalf("row address %d is not aligned", addresses[lane])
				}
			}
			got := ldmatrix(memory, addresses, plan.Count, plan.Trans)
			for lane := range got {
				for j, first := range move.Registers {
					for e := range pack {
						filled[first+e] = true
						o := s.Offset(l.Coord(first+e, lane, w))
						want := memory[o : o+s.ElemBytes()]
						at := 4*j + e*s.ElemBytes()
						if !bytes.Equal(want, got[lane][at:at+s.ElemBytes()]) {
							t.Fatalf("register %d lane %d warp %d: %v, want %v", first+e, lane, w, got[lane][at:at+s.ElemBytes()], want)
						}
					}
				}
			}
		}
	}
	require.NotContains(t, filled, false)
}

// Widths that are and are not multiples of an atom, for each kind of operand:
// ldmatrix must serve, without conflicts.
func TestLdmatrix(t *testing.T) {
	for _, c := range []struct {
		name  string
		shape []int // of the tile in shared memory, as the fragment sees it
		order []int
		elem  int
		layer func(shape []int) (*Layout, error)
		trans bool
		count int
	}{
		{"A row-major", []int{64, 64}, []int{1, 0}, 2, operand(MMAOperandA, 16, 4, 1), false, 4},
		{"A of 80 columns", []int{64, 80}, []int{1, 0}, 2, operand(MMAOperandA, 16, 4, 1), false, 4},
		{"A of 176 columns", []int{64, 176}, []int{1, 0}, 2, operand(MMAOperandA, 16, 2, 2), false, 4},
		{"A of 112 columns", []int{32, 112}, []int{1, 0}, 2, operand(MMAOperandA, 16, 2, 1), false, 4},
		{"A of 48 columns", []int{32, 48}, []int{1, 0}, 2, operand(MMAOperandA, 16, 2, 1), false, 4},
		{"A of 24 columns", []int{32, 24}, []int{1, 0}, 2, operand(MMAOperandA, 16, 2, 1), false, 2},
		{"B of 24 columns", []int{32, 24}, []int{1, 0}, 2, operand(MMAOperandB, 16, 1, 1), true, 4},
		{"B of 40 columns", []int{64, 40}, []int{1, 0}, 2, operand(MMAOperandB, 16, 4, 1), true, 4},
		{"A column-major", []int{64, 32}, []int{0, 1}, 2, operand(MMAOperandA, 16, 2, 1), true, 4},
		{"B row-major", []int{32, 128}, []int{1, 0}, 2, operand(MMAOperandB, 16, 2, 2), true, 4},
		{"B of 80 columns", []int{32, 80}, []int{1, 0}, 2, operand(MMAOperandB, 16, 4, 1), true, 4},
		{"B of 8 columns", []int{16, 8}, []int{1, 0}, 2, operand(MMAOperandB, 16, 1, 1), true, 2},
		{"B of 8 rows", []int{8, 8}, []int{1, 0}, 2, operand(MMAOperandB, 16, 1, 1), true, 1},
		{"B column-major", []int{64, 64}, []int{0, 1}, 2, operand(MMAOperandB, 16, 2, 2), false, 4},
		{"B of 176 deep", []int{176, 64}, []int{0, 1}, 2, operand(MMAOperandB, 16, 1, 2), false, 4},
		{"8-bit A", []int{32, 128}, []int{1, 0}, 1, operand(MMAOperandA, 8, 2, 1), false, 4},
		{"8-bit B column-major", []int{64, 64}, []int{0, 1}, 1, operand(MMAOperandB, 8, 1, 2), false, 4},
		{"tf32 A", []int{32, 32}, []int{1, 0}, 4, operand(MMAOperandA, 32, 2, 1), false, 4},
		{"tf32 A of 80 columns", []int{32, 80}, []int{1, 0}, 4, operand(MMAOperandA, 32, 2, 1), false, 4},
		{"accumulator by stmatrix", []int{64, 80}, []int{1, 0}, 2, func(shape []int) (*Layout, error) { return MMAAccumulator(shape, 4, 1) }, false, 4},
		{"wgmma accumulator by stmatrix", []int{128, 176}, []int{1, 0}, 2, func(shape []int) (*Layout, error) { return WGMMAAccumulator(shape, 2) }, false, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := mustLayout(t)(c.layer(c.shape))
			writer := mustLayout(t)(Blocked(c.shape, c.order, 16/c.elem, l.Warps()))
			s := mustShared(t)(Choose(c.shape, c.order, c.elem, Use{Layout: l, Matrix: true}, Use{Layout: writer}))
			plan, ok := s.Ldmatrix(l)
			require.True(t, ok, "%v", s)
			require.Equal(t, c.trans, plan.Trans)
			require.Equal(t, c.count, plan.Count)
			checkLdmatrix(t, s, l, plan)
			traffic := plan.MatrixTraffic(l.Warps())
			require.Equal(t, traffic.Ideal, traffic.Actual, "%v", s)
			written, ok := s.VectorTraffic(writer, 16)
			require.True(t, ok)
			require.Equal(t, written.Ideal, written.Actual, "%v written as %v", s, writer)
			require.Equal(t, 16, s.VectorBytes(writer))

			// The padded forms serve the same fragments.
			padded := mustShared(t)(Padded(c.shape, c.order, c.elem, 16))
			plan, ok = padded.Ldmatrix(l)
			require.True(t, ok)
			checkLdmatrix(t, padded, l, plan)
		})
	}
	// 8-bit and tf32 operands whose rows run across lanes need another way.
	for _, bits := range []int{8, 32} {
		l := mustLayout(t)(MMAOperandB([]int{64, 64}, bits, 1, 1))
		s := mustShared(t)(Choose([]int{64, 64}, []int{1, 0}, bits/8))
		_, ok := s.Ldmatrix(l)
		require.False(t, ok)
	}
}

func operand(f func([]int, int, int, int) (*Layout, error), bits, warpsM, warpsN int) func([]int) (*Layout, error) {
	return func(shape []int) (*Layout, error) { return f(shape, bits, warpsM, warpsN) }
}

// Predicted traffic is what counting every access bank by bank gives.
func TestTraffic(t *testing.T) {
	conflicts := 0
	rapid.Check(t, func(t *rapid.T) {
		shape := drawShape(t, rapid.IntRange(1, 3).Draw(t, "rank"), 10)
		s := drawShared(t, shape)
		l := drawLayout(t, shape, 2, "l")
		if rapid.Bool().Draw(t, "blocked") {
			l = mustLayout(t)(Blocked(shape, rapid.Permutation(s.Order()).Draw(t, "lanes"), 4, 4))
		}
		got, ok := s.VectorTraffic(l, 16)
		if !ok {
			return
		}
		v, _ := s.Vector(l, 16)
		var want Traffic
		for w := range l.Warps() {
			for _, group := range v.Groups {
				want.Instructions++
				perPhase := min(32, 128/v.Bytes)
				for first := 0; first < 32; first += perPhase {
					banks := map[int]map[int]bool{}
					for lane := first; lane < first+perPhase; lane++ {
						start := s.Offset(l.Coord(group[0], lane, w))
						for b := start; b < start+v.Bytes; b++ {
							word := b / 4
							if banks[word%32] == nil {
								banks[word%32] = map[int]bool{}
							}
							banks[word%32][word] = true
						}
					}
					worst := 0
					for _, words := range banks {
						worst = max(worst, len(words))
					}
					want.Actual += worst
					want.Ideal++
				}
			}
		}
		require.Equal(t, want, got, "%v in %v", l, s)
		if got.Actual > got.Ideal {
			conflicts++
		}
	})
	require.NotZero(t, conflicts)
}

func TestFields(t *testing.T) {
	require.Equal(t, []Field{{Shift: 0, Bits: 3, Scale: 16}, {Shift: 3, Bits: 2, Scale: 144}},
		Fields([]int{16, 32, 64, 144, 288}, false))
	require.Equal(t, []Field{{Shift: 0, Bits: 1, Scale: 3}, {Shift: 1, Bits: 1, Scale: 6}}, Fields([]int{3, 6}, true))
	rapid.Check(t, func(t *rapid.T) {
		columns := rapid.SliceOfN(rapid.SampledFrom([]int{0, 1, 2, 4, 8, 16, 3, 6, 144, 288, 576}), 0, 8).Draw(t, "columns")
		for n := range 1 << len(columns) {
			xor, sum := 0, 0
			for i, c := range columns {
				xor ^= c * (n >> i & 1)
				sum += c * (n >> i & 1)
			}
			for _, f := range Fields(columns, true) {
				xor ^= n >> f.Shift & (1<<f.Bits - 1) * f.Scale
			}
			for _, f := range Fields(columns, false) {
				sum -= n >> f.Shift & (1<<f.Bits - 1) * f.Scale
			}
			require.Zero(t, xor)
			require.Zero(t, sum)
		}
	})
}
