package cudac

import (
	"fmt"
	"strings"

	"github.com/kgen-dev/kgen/codegen/simt"
)

// Helpers of what runs by itself: wgmma, copies by tensor maps, mbarriers.

// wgmma prints an instruction of a warpgroup's asynchronous matrix product. What it
// changes in place is first brought into its variables.
func (p *printer) wgmma(in *simt.Instr) {
	if e := p.regs.Edges[in]; e != nil {
		p.copies(e.Enter)
	}
	var a assembled
	a.effects, a.memory = true, true
	var name string
	switch in.Op {
	case simt.OpWgmmaFence:
		name = "wgmma_fence"
		p.inPlace(&a, in.Results, "+")
		a.code = in.Opcode() + ";"
	case simt.OpWgmmaWait:
		name = fmt.Sprintf("wgmma_wait_%d", in.Imm)
		p.inPlace(&a, in.Results, "+")
		for i, x := range in.Args[len(in.Results):] {
			a.asm.in(fmt.Sprintf("a%d", i), x.Type)
			a.args = append(a.args, p.unsigned(x, precCond))
		}
		a.code = fmt.Sprintf("%s %d;", in.Opcode(), in.Imm)
	default:
		name = p.product(&a, in)
	}
	p.line("%s(%s);", p.h.variant(name, a.text), strings.Join(a.args, ", "))
}

// product is the helper that starts one product; its name says how it reads its operands.
func (p *printer) product(a *assembled, in *simt.Instr) (name string) {
	s := in.Wgmma()
	x, y, acc := in.WgmmaOperands()
	name = identifier(strings.Replace(in.Opcode(), "wgmma.mma_async.sync.aligned.", "wgmma_", 1))
	mode, add := "+", 1
	if len(acc) == 0 {
		mode, add = "=", 0
		p.declareResults(in)
		name += "_new"
	}
	n := p.inPlace(a, in.Results, mode)
	for i, v := range x {
		a.asm.in(fmt.Sprintf("a%d", i), v.Type)
		a.args = append(a.args, p.unsigned(v, precCond))
	}
	a.asm.in("b", simt.I64)
	a.args = append(a.args, p.unsigned(y, precCond))
	a.code = fmt.Sprintf("%s %s, %s, %%%d, %d, 1, 1", in.Opcode(), places(0, n, true), places(n, len(x), len(x) > 1), n+len(x), add)
	if s.Form.Info().Trans {
		if len(x) == 1 {
			a.code += fmt.Sprintf(", %d", flagOf(s.TransA))
		} else {
			name += "_ra"
		}
		a.code += fmt.Sprintf(", %d", flagOf(s.TransB))
	}
	if s.TransA {
		name += "_ta"
	}
	if s.TransB {
		name += "_tb"
	}
	a.code += ";"
	return name
}

func flagOf(v bool) int {
	if v {
		return 1
	}
	return 0
}

// inPlace adds variables that an instruction changes: a whole array as one parameter,
// others one by one. It returns how many there are.
func (p *printer) inPlace(a *assembled, vs []*simt.Value, mode string) int {
	for i := 0; i < len(vs); {
		r := p.regs.Reg(vs[i])
		letter, typ := constraint(vs[i].Type)
		name := fmt.Sprintf("d%d", len(a.params))
		base, at := splitElement(p.names[r])
		n := p.sizes[base]
		if !p.array[r] || at != 0 || i+n > len(vs) || !p.isArray(vs[i:i+n], base) {
			a.out(name, vs[i].Type, mode)
			a.args = append(a.args, p.names[r])
			i++
			continue
		}
		a.params = append(a.params, fmt.Sprintf("%s (&%s)[%d]", typ, name, n))
		a.args = append(a.args, base)
		for j := range n {
			a.outs = append(a.outs, fmt.Sprintf("\"%s%s\"(%s[%d])", mode, letter, name, j))
		}
		i += n
	}
	return len(vs)
}

// isArray tells whether values are the elements of an array, in order.
func (p *printer) isArray(vs []*simt.Value, base string) bool {
	for i, v := range vs {
		if p.names[p.regs.Reg(v)] != fmt.Sprintf("%s[%d]", base, i) {
			return false
		}
	}
	return true
}

// variant registers a helper under the name, or that with a number where another has it.
func (h *helpers) variant(name string, body func(name string) string) string {
	for n, i := name, 2; ; n, i = fmt.Sprintf("%s_%d", name, i), i+1 {
		text := body(n)
		old, ok := h.bodies[n]
		if !ok {
			h.bodies[n] = text
			h.order = append(h.order, n)
		}
		if !ok || old == text {
			return n
		}
	}
}

// barrierObject is an instruction on an mbarrier, or a copy by a tensor map. A wait
// asks again until the phase is over.
func (p *printer) barrierObject(in *simt.Instr) assembled {
	var a assembled
	a.effects, a.memory = true, true
	at := func(name string, v *simt.Value, offset int) {
		a.asm.in(name, simt.I32)
		a.args = append(a.args, p.addressOf(v, offset))
	}
	op := in.Opcode()
	switch in.Op {
	case simt.OpMbarWait:
		at("at", in.Args[0], int(in.Offset))
		at("parity", in.Args[1], 0)
		a.code = "{ .reg .pred p; again: " + op + " p, [%0], %1; @!p bra again; }"
	case simt.OpMbarInit, simt.OpMbarExpect:
		at("at", in.Args[0], int(in.Offset))
		a.asm.in("n", simt.I32)
		a.args = append(a.args, fmt.Sprint(in.Imm))
		sink := ""
		if in.Op == simt.OpMbarExpect {
			sink = "_, "
		}
		a.code = op + " " + sink + "[%0], %1;"
	case simt.OpMbarArrive:
		at("at", in.Args[0], int(in.Offset))
		a.code = op + " _, [%0];"
	case simt.OpMbarCopied:
		at("at", in.Args[0], int(in.Offset))
		a.code = op + " [%0];"
	case simt.OpMbarArriveAt, simt.OpStAt:
		at("at", in.Args[0], 0)
		a.asm.in("block", simt.I32)
		a.args = append(a.args, p.unsigned(in.Args[1], precCond))
		operands := " _, [there]"
		if in.Op == simt.OpStAt {
			a.asm.in("v", in.Args[2].Type)
			a.args = append(a.args, p.unsigned(in.Args[2], precCond))
			operands = " [there], %2"
		}
		a.code = "{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; " + op + operands + "; }"
	case simt.OpTensorStore:
		at("from", in.Args[0], int(in.Offset))
		a.asm.in("map", simt.I64)
		a.args = append(a.args, p.unsigned(in.Args[1], precCond))
		coordinates, policy := in.Box()
		for i, c := range coordinates {
			a.asm.in(fmt.Sprintf("c%d", i), simt.I32)
			a.args = append(a.args, p.unsigned(c, precCond))
		}
		a.code = fmt.Sprintf("%s [%%1, %s], [%%0]", op, places(2, len(coordinates), true))
		p.policy(&a, policy)
	case simt.OpTensorLoad:
		at("to", in.Args[0], int(in.Offset))
		a.asm.in("map", simt.I64)
		a.args = append(a.args, p.unsigned(in.Args[1], precCond))
		at("mbar", in.Args[2], 0)
		coordinates, policy := in.Box()
		for i, c := range coordinates {
			a.asm.in(fmt.Sprintf("c%d", i), simt.I32)
			a.args = append(a.args, p.unsigned(c, precCond))
		}
		a.code = fmt.Sprintf("%s [%%0], [%%1, %s], [%%2]", op, places(3, len(coordinates), true))
		if in.Imm != 0 {
			a.asm.in("blocks", simt.I16)
			a.args = append(a.args, fmt.Sprint(in.Imm))
			a.code += fmt.Sprintf(", %%%d", len(a.args)-1)
		}
		p.policy(&a, policy)
	}
	return a
}

// policy ends a copy's code with its policy for L2, unless that is nil.
func (p *printer) policy(a *assembled, policy *simt.Value) {
	if policy != nil {
		a.asm.in("policy", simt.I64)
		a.args = append(a.args, p.unsigned(policy, precCond))
		a.code += fmt.Sprintf(", %%%d", len(a.args)-1)
	}
	a.code += ";"
}
