package cubin

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
)

// Attributes, under the names of cuobjdump without EIATTR_.
const (
	attrMaxThreads   = 0x05 // x, y, z
	attrReqThreads   = 0x10 // REQNTID: x, y, z
	attrFrameSize    = 0x11 // symbol, bytes
	attrMinStackSize = 0x12 // symbol, bytes: the frame and those below it
	attrParamInfo    = 0x17 // KPARAM_INFO
	attrParamSize    = 0x19 // CBANK_PARAM_SIZE
	attrRegCount     = 0x2f // symbol, registers
	attrNumBarriers  = 0x4c
	attrAnnotations  = 0x55 // pairs of kind and offset
)

// annotationSpill marks the instruction at an offset of the code as one that
// stores or loads a spilled register.
const annotationSpill = 1

// Formats of an attribute: where its value is.
const (
	formatByte  = 2 // in the header's third byte
	formatHalf  = 3 // in the header's last two bytes
	formatSized = 4 // after the header, whose last two bytes are its length
)

// eachAttr calls fn with every attribute of a .nv.info section.
func eachAttr(info []byte, fn func(attr byte, value []byte) error) error {
	for at := 0; at < len(info); {
		if len(info)-at < 4 {
			return fmt.Errorf("attribute at byte %d is cut short", at)
		}
		format, attr, value := info[at], info[at+1], info[at+2:at+4]
		at += 4
		switch format {
		case formatByte:
			value = value[:1]
		case formatHalf:
		case formatSized:
			n := int(binary.LittleEndian.Uint16(value))
			if n > len(info)-at {
				return fmt.Errorf("attribute 0x%02x at byte %d: %d bytes, %d are left", attr, at, n, len(info)-at)
			}
			value = info[at : at+n]
			at += n
		default:
			value = nil
		}
		if err := fn(attr, value); err != nil {
			return err
		}
	}
	return nil
}

// words are the value's 32-bit numbers; fewer than n is an error.
func words(attr byte, value []byte, n int) ([]uint32, error) {
	if len(value) < 4*n {
		return nil, fmt.Errorf("attribute 0x%02x has %d bytes: want %d", attr, len(value), 4*n)
	}
	ws := make([]uint32, len(value)/4)
	for i := range ws {
		ws[i] = binary.LittleEndian.Uint32(value[4*i:])
	}
	return ws, nil
}

// readGlobal reads registers and stack, which stand in one section for all
// functions.
func (r *reader) readGlobal() error {
	r.global = map[uint32]resources{}
	return eachAttr(r.data(r.named[".nv.info"]), func(attr byte, value []byte) error {
		if attr != attrRegCount && attr != attrFrameSize && attr != attrMinStackSize {
			return nil
		}
		ws, err := words(attr, value, 2)
		if err != nil {
			return err
		}
		res := r.global[ws[0]]
		if attr == attrRegCount {
			res.registers = int(ws[1])
		} else {
			res.stack = max(res.stack, int(ws[1]))
		}
		r.global[ws[0]] = res
		return nil
	})
}

// readAttributes reads the section that is the kernel's own.
func (k *Kernel) readAttributes(info, code []byte) error {
	err := eachAttr(info, func(attr byte, value []byte) error {
		switch attr {
		case attrMaxThreads, attrReqThreads:
			ws, err := words(attr, value, 3)
			if err == nil {
				k.MaxThreads = [3]int{int(ws[0]), int(ws[1]), int(ws[2])}
			}
			return err
		case attrParamSize:
			k.ParamBytes = small(value)
		case attrNumBarriers:
			k.Barriers = small(value)
		case attrParamInfo:
			return k.addParam(attr, value)
		case attrAnnotations:
			return k.addSpills(attr, value, code)
		}
		return nil
	})
	slices.SortFunc(k.Params, func(a, b Param) int { return cmp.Compare(a.Offset, b.Offset) })
	return err
}

// small is a value of one or two bytes.
func small(value []byte) int {
	switch len(value) {
	case 0:
		return 0
	case 1:
		return int(value[0])
	}
	return int(binary.LittleEndian.Uint16(value))
}

// addParam reads: index; ordinal and offset, a half each; flags with the size
// in the upper 14 bits.
func (k *Kernel) addParam(attr byte, value []byte) error {
	ws, err := words(attr, value, 3)
	if err == nil {
		k.Params = append(k.Params, Param{Offset: int(ws[1] >> 16), Size: int(ws[2] >> 18)})
	}
	return err
}

func (k *Kernel) addSpills(attr byte, value, code []byte) error {
	ws, err := words(attr, value, 0)
	if err != nil {
		return err
	}
	k.SpillsKnown = true
	for ; len(ws) >= 2 && ws[0] == annotationSpill; ws = ws[2:] {
		offset := uint64(ws[1])
		if offset+instructionBytes > uint64(len(code)) {
			return fmt.Errorf("spill at byte %d of %d of the code", offset, len(code))
		}
		in := code[offset : offset+instructionBytes]
		switch opcode(in) {
		case opSTL:
			k.SpillStoreBytes += accessBytes(in)
		case opLDL:
			k.SpillLoadBytes += accessBytes(in)
		}
	}
	return nil
}
