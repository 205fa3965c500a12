package cudac

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/kgen-dev/kgen/codegen/simt"
)

// Statements.

// printBlock prints a block's instructions. Those under the same guard share
// an if, and what is computed between them goes before it.
func (p *printer) printBlock(b *simt.Block) {
	p.blocks++
	for i := 0; i < len(b.Instrs); {
		in := b.Instrs[i]
		if !p.branches(in) {
			p.one(in)
			i++
			continue
		}
		n := p.run(b.Instrs[i:])
		p.guarded(b.Instrs[i : i+n])
		i += n
	}
}

// one prints an instruction unless it prints nothing itself.
func (p *printer) one(in *simt.Instr) {
	if p.dead(in) || len(in.Results) == 1 && p.inline[in.Results[0].ID] {
		return
	}
	p.explain(in)
	p.instr(in)
}

// branches tells whether an instruction's guard is printed as an if. Loads
// carry their guard themselves, and so do all within loops: there a branch
// would keep the compiler from computing addresses ahead.
func (p *printer) branches(in *simt.Instr) bool {
	return in.Guard != nil && !p.predicated(in)
}

// predicated tells whether an instruction's helper takes its guard.
func (p *printer) predicated(in *simt.Instr) bool {
	if in.Guard == nil {
		return false
	}
	switch in.Op {
	case simt.OpLd, simt.OpCpAsync:
		return true
	case simt.OpSt, simt.OpRed:
		return p.loops > 0
	}
	return false
}

// run is how many instructions the first one's if can hold, with the pure
// ones between them.
func (p *printer) run(ins []*simt.Instr) int {
	n := 1
	for i, in := range ins {
		switch {
		case p.branches(in) && in.Guard == ins[0].Guard && in.GuardNot == ins[0].GuardNot && len(in.Results) == 0:
			n = i + 1
		case i == 0:
			return 1
		case !in.Pure() || in.Body != nil:
			return n
		}
	}
	return n
}

func (p *printer) guarded(ins []*simt.Instr) {
	for _, in := range ins {
		if !p.branches(in) {
			p.one(in)
		}
	}
	first := ins[0]
	for _, r := range first.Results { // an atomic access not made gives 0
		n := p.regs.Reg(r)
		if p.known[n] {
			p.line("%s = %s;", p.names[n], literal(r.Type, 0).text)
			continue
		}
		p.line("%s %s = %s;", ctype(r.Type), p.names[n], literal(r.Type, 0).text)
		p.known[n] = true
	}
	p.explain(first)
	cond := p.expr(first.Guard, precLowest)
	if first.GuardNot {
		cond = "!" + p.expr(first.Guard, precUnary)
	}
	p.line("if (%s) {", cond)
	p.depth++
	for _, in := range ins {
		if p.branches(in) {
			p.one(in)
		}
	}
	p.close()
}

func (p *printer) close() {
	p.depth--
	p.line("}")
}

// explain prints the note of a group of instructions where it begins.
func (p *printer) explain(in *simt.Instr) {
	if in.Note == p.note || in.Note == 0 {
		return
	}
	p.note = in.Note
	p.origin.Note = p.k.Notes[in.Note-1]
	for _, l := range strings.Split(p.origin.Note, "\n") {
		p.line("// %s", strings.TrimRight(l, "\\ "))
	}
}

func (p *printer) instr(in *simt.Instr) {
	switch in.Op {
	case simt.OpFor:
		p.forLoop(in)
	case simt.OpLoop:
		p.doLoop(in)
	case simt.OpIf:
		p.branch(in)
	case simt.OpMma:
		p.mma(in)
	case simt.OpWgmma, simt.OpWgmmaFence, simt.OpWgmmaWait:
		p.wgmma(in)
	default:
		p.simple(in)
	}
}

// declare declares registers without a value.
func (p *printer) declare(rs []int32) {
	for _, r := range rs {
		if !p.known[r] {
			p.known[r] = true
			p.line("%s %s;", ctype(p.regs.First[r].Type), p.names[r])
		}
	}
}

// assign prints reg = expression, with a declaration the first time.
func (p *printer) assign(r int32, expr string) {
	switch {
	case p.known[r]:
		p.line("%s = %s;", p.names[r], expr)
	case p.regs.Many[r]:
		p.line("%s %s = %s;", ctype(p.regs.First[r].Type), p.names[r], expr)
	default:
		p.line("const %s %s = %s;", ctype(p.regs.First[r].Type), p.names[r], expr)
	}
	p.known[r] = true
}

// simple prints an instruction that is one statement: an expression's value,
// or a helper's call.
func (p *printer) simple(in *simt.Instr) {
	if len(in.Results) == 1 {
		if e, ok := p.operation(in); ok {
			p.assign(p.regs.Reg(in.Results[0]), e.at(precLowest))
			return
		}
	}
	if s, ok := p.statement(in); ok {
		p.line("%s;", s)
		return
	}
	if len(in.Results) == 1 && !p.outputs(in) {
		p.assign(p.regs.Reg(in.Results[0]), p.call(in))
		return
	}
	p.declareResults(in)
	p.line("%s;", p.call(in))
}

// declareResults declares what an instruction writes by reference.
func (p *printer) declareResults(in *simt.Instr) {
	var names []string
	var typ string
	for i, x := range in.Results {
		r := p.regs.Reg(x)
		if !p.known[r] {
			names = append(names, p.names[r])
			typ = ctype(x.Type)
			p.known[r] = true
		}
		if in.Op == simt.OpLd && len(in.Args) > 1 {
			defer p.line("%s = %s;", p.names[r], p.expr(in.Args[1+i], precLowest))
		}
	}
	if len(names) > 0 {
		p.line("%s %s;", typ, strings.Join(names, ", "))
	}
}

// mma prints D = A*B + C with D in C's place, which is copied first where they
// are different variables.
func (p *printer) mma(in *simt.Instr) {
	info := in.Mma.Info()
	var fills []fill
	for i, d := range in.Results {
		c, r := in.Args[info.A+info.B+i], p.regs.Reg(d)
		switch {
		case !c.IsConst() && p.regs.Reg(c) == r:
		case p.array[r] && c.IsConst():
			fills = append(fills, fill{p.names[r], p.expr(c, precLowest)})
		case p.known[r]:
			p.line("%s = %s;", p.names[r], p.expr(c, precLowest))
		default:
			p.line("%s %s = %s;", ctype(d.Type), p.names[r], p.expr(c, precLowest))
			p.known[r] = true
		}
	}
	p.fill(fills)
	var args []string
	for _, d := range in.Results {
		args = append(args, p.names[p.regs.Reg(d)])
	}
	for _, x := range in.Args[:info.A+info.B] {
		args = append(args, p.as(x, info.AB))
	}
	p.line("%s(%s);", p.h.mma(in), strings.Join(args, ", "))
}

// copies prints the copies of an edge. Elements of an array that get the same
// constant are set by a loop.
func (p *printer) copies(cs []simt.Copy) {
	save := func(r int32) int32 {
		n := fmt.Sprintf("old%d", len(p.names))
		p.line("const %s %s = %s;", ctype(p.regs.First[r].Type), n, p.names[r])
		p.names = append(p.names, n)
		p.signed = append(p.signed, false)
		return int32(len(p.names) - 1)
	}
	var fills []fill
	p.regs.Sequence(cs, save, func(to, from int32, v *simt.Value) {
		expr := ""
		if from < 0 {
			expr = p.expr(v, precLowest)
			if p.array[to] {
				fills = append(fills, fill{p.names[to], expr})
				return
			}
		} else {
			expr = p.names[from]
		}
		if p.known[to] {
			p.line("%s = %s;", p.names[to], expr)
			return
		}
		p.known[to] = true
		p.line("%s %s = %s;", ctype(p.regs.First[to].Type), p.names[to], expr)
	})
	p.fill(fills)
}

// fill is an array's element set to a constant.
type fill struct{ element, value string }

// fill prints assignments to array elements, runs of at least three as a loop.
func (p *printer) fill(fs []fill) {
	for i := 0; i < len(fs); {
		base, from := splitElement(fs[i].element)
		n := 1
		for i+n < len(fs) && fs[i+n].value == fs[i].value && fs[i+n].element == fmt.Sprintf("%s[%d]", base, from+n) {
			n++
		}
		if n < 3 {
			p.line("%s = %s;", fs[i].element, fs[i].value)
			i++
			continue
		}
		p.line("#pragma unroll")
		p.line("for (int e = %d; e < %d; ++e) {", from, from+n)
		p.line("  %s[e] = %s;", base, fs[i].value)
		p.line("}")
		i += n
	}
}

// splitElement is an array element's array and index.
func splitElement(name string) (base string, index int) {
	base, rest, _ := strings.Cut(name, "[")
	index, _ = strconv.Atoi(strings.TrimSuffix(rest, "]")) // 0 for a name without one
	return base, index
}

func (p *printer) forLoop(in *simt.Instr) {
	p.declare(p.outside[in])
	lo, hi, step := in.Args[0], in.Args[1], in.Args[2]
	i := p.regs.Reg(in.Body.Params[0])
	from := p.asInt(lo)
	var enter []simt.Copy
	clash := false
	for _, c := range p.regs.Edges[in].Enter {
		if c.To == i {
			continue
		}
		enter = append(enter, c)
		clash = clash || !lo.IsConst() && c.To == p.regs.Reg(lo)
	}
	if clash {
		p.line("const int %s_from = %s;", p.names[i], from)
		from = p.names[i] + "_from"
	}
	p.copies(enter)
	p.signed[i], p.known[i] = true, true
	switch {
	case in.Imm == 1:
		p.line("#pragma unroll 1")
	case in.Imm > 1:
		p.line("#pragma unroll %d", in.Imm)
	}
	n := p.names[i]
	inc := n + " += " + p.asInt(step)
	if step.IsInt(1) {
		inc = "++" + n
	}
	p.line("for (int %s = %s; %s < %s; %s) {", n, from, n, p.asInt(hi), inc)
	p.depth++
	p.loops++
	p.printBlock(in.Body)
	p.loops--
	p.copies(p.regs.Edges[in].Next)
	p.close()
}

func (p *printer) doLoop(in *simt.Instr) {
	p.declare(p.outside[in])
	p.copies(p.regs.Edges[in].Enter)
	// The condition is looked at outside the braces.
	n := fmt.Sprintf("again%d", p.blocks)
	p.line("bool %s;", n)
	p.line("do {")
	p.depth++
	p.loops++
	p.printBlock(in.Body)
	p.loops--
	p.line("%s = %s;", n, p.expr(in.Body.Yield[0], precLowest))
	p.copies(p.regs.Edges[in].Next)
	p.depth--
	p.line("} while (%s);", n)
}

func (p *printer) branch(in *simt.Instr) {
	p.declare(p.outside[in])
	p.line("if (%s) {", p.expr(in.Args[0], precLowest))
	p.depth++
	p.printBlock(in.Body)
	p.copies(p.regs.Edges[in].Then)
	if in.Else != nil {
		p.depth--
		p.line("} else {")
		p.depth++
		p.printBlock(in.Else)
		p.copies(p.regs.Edges[in].Else)
	}
	p.close()
}
