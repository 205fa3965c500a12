package vm_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// acrossMatrix lays out pieces of 16 bytes along M or N for each of k: plain, or
// swizzled in 128 bytes by 32. PTX ISA 9.7.16.3.
func acrossMatrix(image []byte, start, pieces, k int, by32 bool, piece func(i, k int) []byte) (descriptor uint64, end int) {
	for i := range pieces {
		for j := range k {
			at := i*16*k + j/8*128 + j%8*16
			if by32 {
				at = i/8*128*k + j/4*512 + j%4*128 + i%8*16
				at ^= at >> 2 & 0x60
			}
			copy(image[start+at:], piece(i, j))
		}
	}
	d := uint64(tensorReserved+start)>>4 | 1<<46
	if by32 {
		return d | uint64(128*k>>4)<<16 | 512>>4<<32 | 1<<61, start + (pieces+7)/8*128*k
	}
	return d | 128>>4<<16 | uint64(16*k>>4)<<32, start + pieces*16*k
}

// TestTensorAcross compares products of matrices that lie along M and N with plain
// sums: of elements of 4 and 6 bits, and of 32, which have a swizzle of their own.
func TestTensorAcross(t *testing.T) {
	const m, n, columns = 128, 32, 32
	tf32 := sparseKinds[1].elements
	for _, kind := range []narrowKind{e2m1, e2m3, e3m2, tf32} {
		kind.name = strings.Replace(kind.name, "mx", "", 1)
		t.Run(fmt.Sprintf("%s of %d bits", kind.name, kind.bits), func(t *testing.T) {
			per := 16 // elements of a piece
			if !kind.padded {
				per = 128 / kind.bits
			}
			pick := func(operand, row, k int) int { return (operand*17 + row*5 + k*31 + row*k) % len(kind.codes) }
			pieces := func(operand int) func(i, k int) []byte {
				return func(i, k int) []byte {
					which := make([]int, per)
					for e := range which {
						which[e] = pick(operand, i*per+e, k)
					}
					return kind.row(which)
				}
			}
			image := make([]byte, 16<<10)
			da, end := acrossMatrix(image, 0, m/per, kind.k, !kind.padded, pieces(0))
			db, _ := acrossMatrix(image, end, n/per, kind.k, !kind.padded, pieces(1))
			for _, opt := range timings {
				p := tensorProgram{
					image: image, columns: columns, opt: opt, regs: ".reg .b32 %id; .reg .b64 %da, %db; .reg .pred %pk;",
					issue: fmt.Sprintf("mov.b64 %%da, %d; mov.b64 %%db, %d; mov.b32 %%id, %d; mov.pred %%pk, 0;\n@%%p0 tcgen05.mma.cta_group::1.%s [%%tm], %%da, %%db, %%id, %%pk;",
						int64(da), int64(db), kind.types|1<<4|1<<15|1<<16|n>>3<<17|m>>4<<24, kind.name),
				}
				got, faults := p.run(t)
				require.Empty(t, faults)
				for row := range m {
					for col := range n {
						want := 0.0
						for k := range kind.k {
							want += kind.values[pick(0, row, k)] * kind.values[pick(1, col, k)]
						}
						sameSum(t, want, got[row*columns+col], row, col)
					}
				}
			}
		})
	}
}

// TestTensorUnpackedA compares products of an A that a copy unpacked into tensor
// memory with plain sums, also of the rows below A's.
func TestTensorUnpackedA(t *testing.T) {
	const m, n, columns, at = 128, 32, 64, 32
	for _, c := range []struct {
		kind   narrowKind
		format string
		shift  string
	}{{e2m1, ".b8x16.b4x16_p64", ""}, {e2m3, ".b8x16.b6x16_p32", ".collector::a::fill"}, {e3m2, ".b8x16.b6x16_p32", ".ashift"}, {e4m3, "", ".ashift.collector::a::lastuse"}} {
		kind := c.kind
		kind.name = strings.Replace(kind.name, "mx", "", 1)
		t.Run(fmt.Sprintf("%d bits%s%s", kind.bits, c.format, c.shift), func(t *testing.T) {
			pick := func(operand, row, k int) int { return (operand*7 + row*3 + k*13 + row*k) % len(kind.codes) }
			rows := func(operand, count int) [][]byte {
				all := make([][]byte, count)
				for r := range all {
					which := make([]int, kind.k)
					for k := range which {
						which[k] = pick(operand, r, k)
					}
					all[r] = kind.row(which)
				}
				return all
			}
			image := make([]byte, 16<<10)
			da, end := plainMatrix(image, 0, rows(0, m))
			db, _ := plainMatrix(image, end, rows(1, n))
			for _, opt := range timings {
				p := tensorProgram{
					image: image, columns: columns, initial: make([]uint32, m*columns), opt: opt, regs: ".reg .b32 %id, %xa; .reg .b64 %da, %db; .reg .pred %pk;",
					issue: fmt.Sprintf("mov.b64 %%da, %d; mov.b64 %%db, %d; mov.b32 %%id, %d; mov.pred %%pk, 0; add.u32 %%xa, %%tm, %d;\n@%%p0 tcgen05.cp.cta_group::1.128x256b%s [%%xa], %%da;\n@%%p0 tcgen05.mma.cta_group::1.%s [%%tm], [%%xa], %%db, %%id, %%pk;",
						int64(da), int64(db), kind.types|1<<4|n>>3<<17|m>>4<<24, at, c.format, kind.name+c.shift),
				}
				got, faults := p.run(t)
				require.Empty(t, faults)
				for row := range m {
					from := row
					if strings.HasPrefix(c.shift, ".ashift") {
						from = min(row+1, m-1)
					}
					for col := range n {
						want := 0.0
						for k := range kind.k {
							want += kind.values[pick(0, from, k)] * kind.values[pick(1, col, k)]
						}
						sameSum(t, want, got[row*columns+col], row, col)
					}
				}
			}
		})
	}
}
