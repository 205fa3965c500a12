package simt

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// String is the value's name in dumps: %12, or a constant's value.
func (v *Value) String() string {
	if v == nil {
		return "<nil>"
	}
	if v.IsConst() {
		return constString(v.Type, v.Def.Imm)
	}
	return "%" + strconv.Itoa(int(v.ID))
}

func constString(t Type, bits int64) string {
	switch t {
	case Pred:
		return strconv.FormatBool(bits != 0)
	case F32:
		return fmt.Sprintf("%g:f32", math.Float32frombits(uint32(bits)))
	case F64:
		return fmt.Sprintf("%g:f64", math.Float64frombits(uint64(bits)))
	case F16, BF16, F16x2, BF16x2:
		return fmt.Sprintf("0x%x:%s", uint64(bits), t)
	case I32:
		return strconv.FormatInt(bits, 10)
	}
	return fmt.Sprintf("%d:%s", bits, t)
}

// String is the instruction's line in a dump, without its blocks.
func (in *Instr) String() string {
	if in == nil {
		return "yield"
	}
	var d dumper
	d.instr(in, false)
	return strings.TrimSpace(d.String())
}

// String is the kernel as text, for reading and for golden files.
func (k *Kernel) String() string {
	d := dumper{k: k}
	fmt.Fprintf(&d, "kernel @%s threads %d", k.Name, k.Threads)
	if k.Shared > 0 {
		fmt.Fprintf(&d, " shared %d align %d", k.Shared, max(k.SharedAlign, 16))
	}
	d.WriteString(" {\n")
	for _, v := range k.Inputs {
		fmt.Fprintf(&d, "  %s:%s = %s", v, v.Type, v.Def.Op)
		switch v.Def.Op {
		case OpParam:
			fmt.Fprintf(&d, " %s", k.Params[v.Def.Imm].Name)
		case OpSpecial:
			fmt.Fprintf(&d, " %s", v.Def.Special)
		}
		d.WriteByte('\n')
	}
	d.block(k.Body)
	d.WriteString("}\n")
	return d.String()
}

type dumper struct {
	strings.Builder
	k     *Kernel
	depth int
	note  int32
}

func (d *dumper) indent() {
	for range d.depth + 1 {
		d.WriteString("  ")
	}
}

func (d *dumper) values(vs []*Value) {
	for i, v := range vs {
		if i > 0 {
			d.WriteString(", ")
		}
		d.WriteString(v.String())
	}
}

func (d *dumper) block(b *Block) {
	for _, in := range b.Instrs {
		if d.k != nil && in.Note != d.note {
			d.note = in.Note
			if in.Note > 0 {
				d.indent()
				fmt.Fprintf(d, "; %s\n", d.k.Notes[in.Note-1])
			}
		}
		d.instr(in, true)
	}
	if len(b.Yield) > 0 {
		d.indent()
		d.WriteString("yield ")
		d.values(b.Yield)
		d.WriteByte('\n')
	}
}

func (d *dumper) instr(in *Instr, blocks bool) {
	d.indent()
	if in.Guard != nil {
		d.WriteByte('@')
		if in.GuardNot {
			d.WriteByte('!')
		}
		d.WriteString(in.Guard.String() + " ")
	}
	for i, r := range in.Results {
		if i > 0 {
			d.WriteString(", ")
		}
		fmt.Fprintf(d, "%s:%s", r, r.Type)
	}
	if len(in.Results) > 0 {
		d.WriteString(" = ")
	}
	d.WriteString(in.Op.String())
	d.attrs(in)
	if len(in.Args) > 0 {
		d.WriteByte(' ')
		d.values(in.Args)
	}
	if in.Offset != 0 {
		fmt.Fprintf(d, " offset %d", in.Offset)
	}
	if in.Waves != 0 {
		fmt.Fprintf(d, " waves %d", in.Waves)
	}
	if in.Sectors != 0 {
		fmt.Fprintf(d, " sectors %d", in.Sectors)
	}
	if !blocks || in.Body == nil {
		d.WriteByte('\n')
		return
	}
	d.body(in)
}

func (d *dumper) body(in *Instr) {
	if len(in.Body.Params) > 0 {
		d.WriteString(" -> ")
		d.values(in.Body.Params)
	}
	d.WriteString(" {\n")
	d.depth++
	d.block(in.Body)
	d.depth--
	d.indent()
	if in.Else != nil {
		d.WriteString("} else {\n")
		d.depth++
		d.block(in.Else)
		d.depth--
		d.indent()
	}
	d.WriteString("}\n")
}

func (d *dumper) attrs(in *Instr) {
	switch in.Op {
	case OpCmp:
		fmt.Fprintf(d, ".%s.%s", in.Cmp, in.Type)
	case OpLd, OpSt:
		fmt.Fprintf(d, ".%s.%s", in.Space, in.Mem)
		if in.Vec > 1 {
			fmt.Fprintf(d, "x%d", in.Vec)
		}
	case OpAtom, OpRed:
		fmt.Fprintf(d, ".%s.%s.%s.%s", in.Space, in.Scope, in.Atom, in.Type)
	case OpMma:
		info := in.Mma.Info()
		fmt.Fprintf(d, "%s", strings.TrimPrefix(info.PTX, "mma.sync.aligned"))
	case OpWgmma:
		s := in.Wgmma()
		fmt.Fprintf(d, "%s", strings.TrimPrefix(in.wgmmaOpcode(), "wgmma.mma_async.sync.aligned"))
		if s.TransA {
			d.WriteString(".transA")
		}
		if s.TransB {
			d.WriteString(".transB")
		}
	case OpLdMatrix, OpStMatrix:
		fmt.Fprintf(d, ".x%d", in.Vec)
	case OpShfl:
		fmt.Fprintf(d, ".%s.%#x", in.Shfl, in.Imm)
	case OpVote, OpRedux:
		fmt.Fprintf(d, ".%s", in.Atom)
	case OpFence:
		fmt.Fprintf(d, ".%s", in.Scope)
	case OpCpAsync:
		fmt.Fprintf(d, ".%d global_offset %d", in.CpAsyncBytes(), in.CpAsyncGlobalOffset())
	case OpIntToFloat, OpFloatToInt, OpFloatCvt, OpCvtPack, OpCvtTF32:
		if in.Round != RN {
			fmt.Fprintf(d, ".%s", in.Round)
		}
		if in.Imm != 0 {
			d.WriteString(".int")
		}
	default:
		if in.Imm != 0 {
			fmt.Fprintf(d, " #%d", in.Imm)
		}
	}
	d.flags(in)
}

var flagNames = []string{"ftz", "approx", "nan", "trans", "unsigned", "volatile", "fewer", "adds", "hinted"}

func (d *dumper) flags(in *Instr) {
	for i, name := range flagNames {
		if in.Flags>>i&1 != 0 {
			d.WriteString("." + name)
		}
	}
	if in.Cache != 0 {
		fmt.Fprintf(d, ".cache(%#x)", uint8(in.Cache))
	}
}
