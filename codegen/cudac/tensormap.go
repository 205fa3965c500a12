package cudac

import (
	"fmt"

	"github.com/kgen-dev/kgen/codegen/simt"
)

// mapWord is the name of the helper of an instruction on a tensor map in memory.
func mapWord(in *simt.Instr) string {
	if in.Op != simt.OpMapSet {
		return map[simt.Op]string{simt.OpMapPublish: "tensor_map_publish", simt.OpMapAcquire: "tensor_map_acquire"}[in.Op]
	}
	f := in.MapField()
	name := "tensor_map_set_" + f.String()
	if f.Fixed() {
		name += fmt.Sprintf("_%d", in.Args[1].Int())
	}
	return name
}

// tensorMap is an instruction on a tensor map in memory. What must be a constant of its text
// is part of the helper's name.
func (p *printer) tensorMap(in *simt.Instr) assembled {
	var a assembled
	a.effects, a.memory = true, true
	a.asm.in("at", in.Args[0].Type)
	a.args = append(a.args, p.addressOf(in.Args[0], int(in.Offset)))
	switch in.Op {
	case simt.OpMapSet:
		f := in.MapField()
		operands := "[%0]"
		if f.Numbered() {
			operands += fmt.Sprintf(", %d", f.Dim)
		}
		if f.Fixed() {
			operands += fmt.Sprintf(", %d", in.Args[1].Int())
		} else {
			a.asm.in("v", in.Args[1].Type)
			a.args = append(a.args, p.unsigned(in.Args[1], precCond))
			operands += ", %1"
		}
		a.code = in.Opcode() + " " + operands + ";"
	case simt.OpMapPublish:
		a.asm.in("from", simt.I32)
		a.args = append(a.args, p.addressOf(in.Args[1], 0))
		a.code = fmt.Sprintf("%s [%%0], [%%1], %d;", in.Opcode(), simt.MapBytes)
	default:
		a.code = fmt.Sprintf("%s [%%0], %d;", in.Opcode(), simt.MapBytes)
	}
	return a
}
