package cubin

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// Instructions of Volta and later: 128 bits, the opcode in the lowest 12, the
// width of a memory access in bits 73 to 75.
const (
	instructionBytes = 16
	opSTL            = 0x387
	opLDL            = 0x983
)

func opcode(in []byte) uint16 { return binary.LittleEndian.Uint16(in) & 0xfff }

// accessBytes is the width of a load or store: u8, s8, u16, s16, 32, 64 and
// 128 bits.
func accessBytes(in []byte) int {
	return [8]int{1, 1, 2, 2, 4, 8, 16, 16}[in[9]>>1&7]
}

// countLocal counts the instructions that store to and load from local memory.
func countLocal(code []byte) (stores, loads int) {
	for ; len(code) >= instructionBytes; code = code[instructionBytes:] {
		switch opcode(code) {
		case opSTL:
			stores++
		case opLDL:
			loads++
		}
	}
	return stores, loads
}

// units are the instructions that tell which units code uses: tensor cores, and copies
// that run beside it. They are found by the lowest 9 bits of the opcode: the next 3 say
// where the operands come from.
var units = map[uint16]string{
	0x03b: "LDSM", 0x03c: "HMMA",
	0x1ae: "LDGSTS",
	0x1b4: "UTMALDG", 0x1b5: "UTMASTG", 0x1b6: "UTMAREDG",
	0x1f0: "HGMMA", 0x1f1: "IGMMA", 0x1f3: "QGMMA",
}

// countUnits counts those instructions, the most frequent first.
func countUnits(code []byte) []OpCount {
	counts := map[string]int{}
	for ; len(code) >= instructionBytes; code = code[instructionBytes:] {
		if name := units[opcode(code)&0x1ff]; name != "" {
			counts[name]++
		}
	}
	return sorted(counts)
}

// sorted lists counts, the most frequent first.
func sorted(counts map[string]int) []OpCount {
	var mix []OpCount
	for op, n := range counts {
		mix = append(mix, OpCount{op, n})
	}
	slices.SortFunc(mix, func(a, b OpCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Op, b.Op))
	})
	return mix
}
