package num

import "math"

// Philox4x32 is the counter-based generator of Salmon, Moraes, Dror and Shaw,
// "Parallel Random Numbers: As Easy as 1, 2, 3" (2011): 128 random bits for each
// counter under a key. Ten rounds is its authors' choice, seven the least that
// passed their tests.
func Philox4x32(counter [4]uint32, key [2]uint32, rounds int) [4]uint32 {
	for range rounds {
		p := uint64(counter[0]) * 0xd2511f53
		q := uint64(counter[2]) * 0xcd9e8d57
		counter = [4]uint32{
			uint32(q>>32) ^ counter[1] ^ key[0], uint32(q),
			uint32(p>>32) ^ counter[3] ^ key[1], uint32(p),
		}
		key[0] += 0x9e3779b9
		key[1] += 0xbb67ae85
	}
	return counter
}

// DropoutRounds is the number of Philox rounds behind Random16.
const DropoutRounds = 7

// Random16 is the project's only source of dropout: the draw for one element in
// terms of logical coordinates alone, so that every tiling, architecture and pass
// sees the same mask. Plane is batch*heads + head, or 0. Eight neighbouring columns
// share one Philox4x32-7 call with key = seed (low word first) and counter = (col
// >> 3, row, plane, offset); column 2i + h of the eight takes half h of word i, low
// half first.
func Random16(seed uint64, offset, plane, row, col uint32) uint16 {
	return Random16x8(seed, offset, plane, row, col>>3)[col&7]
}

// Random16x8 returns the draws of columns 8*group to 8*group + 7.
func Random16x8(seed uint64, offset, plane, row, group uint32) [8]uint16 {
	words := Philox4x32([4]uint32{group, row, plane, offset}, [2]uint32{uint32(seed), uint32(seed >> 32)}, DropoutRounds)
	var draws [8]uint16
	for i, w := range words {
		draws[2*i], draws[2*i+1] = uint16(w), uint16(w>>16)
	}
	return draws
}

// DropoutThreshold returns T for a drop probability p: an element is kept if and
// only if its draw is at least T = min(65535, round(p * 65536)). Negative p and NaN
// drop nothing.
func DropoutThreshold(p float64) uint32 {
	if !(p > 0) {
		return 0
	}
	return uint32(math.Min(65535, math.Round(p*65536)))
}

// DropoutScale is what kept elements are multiplied with, so that the mean stays:
// 65536 / (65536 - T).
func DropoutScale(threshold uint32) float64 { return 65536 / (65536 - float64(min(threshold, 65535))) }
