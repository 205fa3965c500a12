package cubin

import "encoding/binary"

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
