package cudac

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kgen-dev/kgen/codegen/simt"
)

// Helpers: small device functions around one PTX instruction each, declared in
// the source where they are used. Name, parameters and constraints follow from
// the instruction's opcode and operands.

// helpers collects the device functions a module uses, in the order of use.
type helpers struct {
	bodies    map[string]string // by name
	order     []string
	tensorMap bool
}

func newHelpers() *helpers { return &helpers{bodies: map[string]string{}} }

func (h *helpers) print(w *writer) {
	for _, n := range h.order {
		w.line("")
		for _, l := range strings.Split(h.bodies[n], "\n") {
			w.line("%s", l)
		}
	}
}

// add registers a helper. Two that would share a name get their whole opcode
// for one.
func (h *helpers) add(name, opcode string, body func(name string) string) string {
	for _, n := range []string{name, "ptx_" + identifier(opcode)} {
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
	panic(fmt.Sprintf("cudac: two helpers named %s", name))
}

func identifier(opcode string) string {
	return strings.NewReplacer(".", "_", "::", "_").Replace(opcode)
}

// dull are words of an opcode that a helper's name goes without.
var dull = map[string]bool{
	"sync": true, "aligned": true, "approx": true, "ftz": true, "row": true, "col": true, "m8n8": true, "relaxed": true, "rn": true,
	"b32": true, "f32": true, "satfinite": true, "lo": true,
}

// shortName is the helper's name for an opcode: its telling words.
func shortName(in *simt.Instr, opcode string) string {
	if in.Op == simt.OpMma {
		words := strings.Split(opcode, ".")
		return "mma_" + words[3] + "_" + words[7] + "_" + words[6]
	}
	var kept []string
	for _, w := range strings.Split(strings.ReplaceAll(opcode, "::", "_"), ".") {
		if !dull[w] {
			kept = append(kept, w)
		}
	}
	switch in.Op {
	case simt.OpLd, simt.OpSt:
		if in.Type == simt.F32 || in.Type == simt.F64 {
			kept = append(kept, in.Type.String())
		}
	case simt.OpLdMatrix, simt.OpStMatrix:
		kept = slices.DeleteFunc(kept, func(w string) bool { return w == "shared" || w == "b16" })
	case simt.OpCpAsync:
		kept = []string{"cp_async", kept[2], fmt.Sprint(in.CpAsyncBytes())}
		if p := prefetchWord(opcode); p != "" {
			kept = append(kept, p)
		}
	case simt.OpPack, simt.OpUnpack:
		kept = []string{in.Op.String(), in.Type.String()}
	case simt.OpMbarInit, simt.OpMbarArrive, simt.OpMbarExpect, simt.OpMbarWait, simt.OpMbarArriveAt, simt.OpMbarCopied:
		kept = []string{strings.Replace(in.Op.String(), "mbar", "mbarrier", 1)}
	case simt.OpTensorStore:
		if kept = []string{"tensor_store", kept[4]}; in.Has(simt.Adds) {
			kept = []string{"tensor_add", strings.Split(opcode, ".")[5]}
		}
		if in.Has(simt.Hinted) {
			kept = append(kept, "hinted")
		}
	case simt.OpMapSet, simt.OpMapPublish, simt.OpMapAcquire:
		kept = []string{mapWord(in)}
	case simt.OpTensorLoad:
		kept = []string{"tensor_load", kept[4]}
		if in.Imm != 0 {
			kept = append(kept, "multicast")
		}
		if in.Has(simt.Hinted) {
			kept = append(kept, "hinted")
		}
	case simt.OpPolicy:
		kept = []string{"l2", simt.L2Policy(in.Imm).String()}
	}
	return strings.Join(kept, "_")
}

func prefetchWord(opcode string) string {
	if _, p, ok := strings.Cut(opcode, ".L2::"); ok {
		return "L2_" + p
	}
	return ""
}

// constraint is the letter of a type in inline assembly, and its C type.
func constraint(t simt.Type) (letter, typ string) {
	typ = ctype(t)
	switch typ {
	case "u16":
		return "h", typ
	case "u32", "bool":
		return "r", typ
	case "u64":
		return "l", typ
	case "float":
		return "f", typ
	}
	return "d", typ
}

// asm builds the text of one helper.
type asm struct {
	params  []string
	outs    []string // constraints with names
	ins     []string
	code    string
	effects bool // volatile, and ordered with memory
	memory  bool
	returns simt.Type // Void: results by reference
	bits    bool      // the instruction's own result is a u32 with the bits of a float
}

func (a *asm) text(name string) string {
	typ := "void"
	if a.returns != simt.Void {
		typ = ctype(a.returns)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "static __device__ __forceinline__ %s %s(%s) {\n", typ, name, strings.Join(a.params, ", "))
	if a.returns != simt.Void {
		if a.returns == simt.Pred || a.bits {
			typ = "u32"
		}
		fmt.Fprintf(&b, "  %s d;\n", typ)
	}
	volatile := ""
	if a.effects {
		volatile = " volatile"
	}
	fmt.Fprintf(&b, "  asm%s(\"%s\"", volatile, a.code)
	if len(a.outs)+len(a.ins) > 0 || a.memory {
		fmt.Fprintf(&b, " : %s : %s", strings.Join(a.outs, ", "), strings.Join(a.ins, ", "))
	}
	if a.memory {
		b.WriteString(" : \"memory\"")
	}
	b.WriteString(");\n")
	switch {
	case a.returns == simt.Pred:
		b.WriteString("  return d != 0;\n")
	case a.bits:
		b.WriteString("  return __uint_as_float(d);\n")
	case a.returns != simt.Void:
		b.WriteString("  return d;\n")
	}
	b.WriteString("}")
	return b.String()
}

// out adds a result by reference.
func (a *asm) out(name string, t simt.Type, mode string) {
	letter, typ := constraint(t)
	a.params = append(a.params, typ+" &"+name)
	a.outs = append(a.outs, fmt.Sprintf("\"%s%s\"(%s)", mode, letter, name))
}

// in adds an operand.
func (a *asm) in(name string, t simt.Type) {
	letter, typ := constraint(t)
	a.params = append(a.params, typ+" "+name)
	expr := name
	if t == simt.Pred {
		expr = "(u32)" + name
	}
	a.ins = append(a.ins, fmt.Sprintf("\"%s\"(%s)", letter, expr))
}

// places is "%from, %from+1, ..." in braces where there are several or always.
func places(from, n int, braces bool) string {
	var ps []string
	for i := range n {
		ps = append(ps, fmt.Sprintf("%%%d", from+i))
	}
	s := strings.Join(ps, ", ")
	if braces {
		return "{" + s + "}"
	}
	return s
}

// outputs tells whether the instruction's helper gives its results by reference.
func (p *printer) outputs(in *simt.Instr) bool {
	return len(in.Results) > 1 || in.Op == simt.OpLd && in.Guard != nil || in.Op == simt.OpLdMatrix
}

// call is the call of an instruction's helper, which it declares.
func (p *printer) call(in *simt.Instr) string {
	a := p.assembly(in)
	op := in.Opcode()
	name := p.h.add(shortName(in, op)+a.suffix, op, a.text)
	return name + "(" + strings.Join(a.args, ", ") + ")"
}

// assembled is a helper and the arguments of one call.
type assembled struct {
	asm
	suffix string
	args   []string
}

func (p *printer) assembly(in *simt.Instr) assembled {
	switch in.Op {
	case simt.OpLd, simt.OpLdMatrix:
		return p.load(in)
	case simt.OpSt, simt.OpStMatrix, simt.OpAtom, simt.OpRed, simt.OpPrefetch:
		return p.store(in)
	case simt.OpCpAsync:
		return p.copyAsync(in)
	case simt.OpMbarInit, simt.OpMbarArrive, simt.OpMbarExpect, simt.OpMbarWait, simt.OpMbarArriveAt, simt.OpMbarCopied, simt.OpStAt, simt.OpTensorLoad, simt.OpTensorStore:
		return p.barrierObject(in)
	case simt.OpMapSet, simt.OpMapPublish, simt.OpMapAcquire:
		return p.tensorMap(in)
	}
	return p.plain(in)
}

// plain is an instruction of the form: opcode results, operands.
func (p *printer) plain(in *simt.Instr) assembled {
	var a assembled
	a.effects = in.Op.Info().Effect != 0
	n := len(in.Results)
	dst := ""
	switch {
	case n == 1:
		a.returns = in.Results[0].Type
		a.bits = in.Op == simt.OpCvtTF32 && a.returns == simt.F32
		letter, _ := constraint(a.returns)
		if a.bits {
			letter = "r"
		}
		a.outs = append(a.outs, fmt.Sprintf("\"=%s\"(d)", letter))
		dst = "%0"
	case n > 1:
		for i, r := range in.Results {
			a.out(fmt.Sprintf("r%d", i), r.Type, "=")
			a.args = append(a.args, p.names[p.regs.Reg(r)])
		}
		dst = places(0, n, true)
	}
	var src []string
	for i, x := range in.Args {
		a.asm.in(string(rune('a'+i)), x.Type)
		a.args = append(a.args, p.unsigned(x, precCond))
		src = append(src, fmt.Sprintf("%%%d", n+i))
	}
	a.suffix = typeWord(in)
	a.code = plainCode(in, dst, src)
	return a
}

// typeWord tells apart helpers of one opcode word for several types.
func typeWord(in *simt.Instr) string {
	if in.Op == simt.OpCmp || in.Op == simt.OpSelect {
		return "_" + in.Type.String()
	}
	return ""
}

func plainCode(in *simt.Instr, dst string, src []string) string {
	op := in.Opcode()
	switch in.Op {
	case simt.OpCmp:
		return fmt.Sprintf("{ .reg .pred p; %s p, %s; selp.u32 %s, 1, 0, p; }", op, strings.Join(src, ", "), dst)
	case simt.OpElect:
		return fmt.Sprintf("{ .reg .pred p; %s _|p, -1; selp.u32 %s, 1, 0, p; }", op, dst)
	case simt.OpPack:
		return fmt.Sprintf("%s %s, {%s};", op, dst, strings.Join(src, ", "))
	case simt.OpRedux, simt.OpMatch:
		src = append(src, "-1")
	case simt.OpLop3:
		src = append(src, fmt.Sprintf("0x%02x", in.Imm))
	case simt.OpSelect:
		panic("cudac: select has an operator")
	}
	operands := src
	if dst != "" {
		operands = append([]string{dst}, src...)
	}
	return fmt.Sprintf("%s %s;", op, strings.Join(operands, ", "))
}

// addressOf is the address with its offset added.
func (p *printer) addressOf(v *simt.Value, offset int) string {
	switch {
	case offset > 0:
		return fmt.Sprintf("%s + %d", p.unsigned(v, precAdd), offset)
	case offset < 0:
		return fmt.Sprintf("%s - %d", p.unsigned(v, precAdd), -offset)
	}
	return p.unsigned(v, precCond)
}

// load is a load into variables given by reference, or the value itself where
// it is one and not guarded.
func (p *printer) load(in *simt.Instr) assembled {
	var a assembled
	n := len(in.Results)
	a.effects = in.Cache&simt.CacheNC == 0 || in.Op == simt.OpLdMatrix
	a.memory = a.effects
	mode, defaults := "=", len(in.Args) > 1
	if defaults {
		mode = "+"
	}
	byRef := p.outputs(in)
	for i, r := range in.Results {
		if !byRef {
			a.returns = r.Type
			letter, _ := constraint(r.Type)
			a.outs = append(a.outs, fmt.Sprintf("\"=%s\"(d)", letter))
			break
		}
		a.out(fmt.Sprintf("r%d", i), r.Type, mode)
		a.args = append(a.args, p.names[p.regs.Reg(r)])
	}
	a.asm.in("at", in.Args[0].Type)
	a.args = append(a.args, p.addressOf(in.Args[0], int(in.Offset)))
	dst := places(0, n, n > 1 || in.Op == simt.OpLdMatrix)
	a.code = fmt.Sprintf("%s %s, [%%%d];", in.Opcode(), dst, n)
	if in.Guard == nil {
		return a
	}
	a.suffix = "_if"
	if defaults {
		a.suffix = "_if_else"
	}
	zero := ""
	for i, r := range in.Results {
		if !defaults {
			zero += fmt.Sprintf("mov.b%d %%%d, 0; ", r.Type.Bits(), i)
		}
	}
	a.asm.in("p", simt.Pred)
	a.args = append(a.args, p.guard(in))
	a.code = fmt.Sprintf("{ .reg .pred p; setp.ne.b32 p, %%%d, 0; %s@p %s }", n+1, zero, a.code)
	return a
}

func (p *printer) guard(in *simt.Instr) string {
	if in.GuardNot {
		return "!" + p.expr(in.Guard, precUnary)
	}
	return p.expr(in.Guard, precCond)
}

// store is a store, an atomic access or a prefetch.
func (p *printer) store(in *simt.Instr) assembled {
	var a assembled
	a.effects, a.memory = true, true
	first := 0
	dst := ""
	if len(in.Results) == 1 {
		a.returns = in.Type
		letter, _ := constraint(in.Type)
		a.outs = append(a.outs, fmt.Sprintf("\"=%s\"(d)", letter))
		first, dst = 1, "%0, "
	}
	a.asm.in("at", in.Args[0].Type)
	a.args = append(a.args, p.addressOf(in.Args[0], int(in.Offset)))
	for i, x := range in.Args[1:] {
		a.asm.in(fmt.Sprintf("r%d", i), x.Type)
		a.args = append(a.args, p.unsigned(x, precCond))
	}
	n := len(in.Args) - 1
	a.code = fmt.Sprintf("%s %s[%%%d]", in.Opcode(), dst, first)
	if n > 0 {
		vector := in.Op == simt.OpStMatrix || in.Op == simt.OpSt && n > 1
		a.code += ", " + places(first+1, n, vector)
	}
	a.code += ";"
	p.predicate(&a, in, first+1+n)
	return a
}

// predicate adds the guard, as operand number n, of an instruction that takes
// it itself.
func (p *printer) predicate(a *assembled, in *simt.Instr, n int) {
	if !p.predicated(in) {
		return
	}
	a.suffix += "_if"
	a.asm.in("p", simt.Pred)
	a.args = append(a.args, p.guard(in))
	a.code = fmt.Sprintf("{ .reg .pred p; setp.ne.b32 p, %%%d, 0; @p %s }", n, a.code)
}

func (p *printer) copyAsync(in *simt.Instr) assembled {
	var a assembled
	a.effects, a.memory = true, true
	a.asm.in("to", simt.I32)
	a.asm.in("from", simt.Ptr)
	a.args = []string{p.addressOf(in.Args[0], int(in.Offset)), p.addressOf(in.Args[1], in.CpAsyncGlobalOffset())}
	a.code = fmt.Sprintf("%s [%%0], [%%1], %d", in.Opcode(), in.CpAsyncBytes())
	if len(in.Args) > 2 {
		a.asm.in("bytes", simt.I32)
		a.args = append(a.args, p.unsigned(in.Args[2], precCond))
		a.code += ", %2"
		a.suffix = "_part"
	}
	a.code += ";"
	p.predicate(&a, in, len(a.args))
	return a
}

// mma is the helper that adds a product to D in place.
func (h *helpers) mma(in *simt.Instr) string {
	info := in.Mma.Info()
	a := asm{effects: true}
	for i := range info.C {
		a.out(fmt.Sprintf("d%d", i), info.Acc, "+")
	}
	for i := range info.A {
		a.in(fmt.Sprintf("a%d", i), info.AB)
	}
	for i := range info.B {
		a.in(fmt.Sprintf("b%d", i), info.AB)
	}
	d := places(0, info.C, true)
	a.code = fmt.Sprintf("%s %s, %s, %s, %s;", info.PTX, d, places(info.C, info.A, true), places(info.C+info.A, info.B, true), d)
	return h.add(shortName(in, info.PTX), info.PTX, a.text)
}

// special is the helper that reads a special register.
func (h *helpers) special(s simt.Special) string {
	a := asm{returns: simt.I32, outs: []string{"\"=r\"(d)"}, code: "mov.u32 %0, %%" + s.String() + ";"}
	return h.add("read_"+identifier(s.String()), s.String(), a.text)
}

// statement is an instruction without results as one statement; ok is false
// where it is a plain call of a helper.
func (p *printer) statement(in *simt.Instr) (text string, ok bool) {
	switch in.Op {
	case simt.OpReturn:
		return "return", true
	case simt.OpTrap:
		return "__trap()", true
	case simt.OpWarpSync:
		return "__syncwarp()", true
	case simt.OpBar:
		if in.Args[0].IsInt(0) && in.Imm == 0 {
			return "__syncthreads()", true
		}
	case simt.OpCpAsyncCommit, simt.OpBulkCommit, simt.OpFence, simt.OpProxyFence, simt.OpWgmmaCommit, simt.OpClusterArrive, simt.OpClusterWait, simt.OpGridLaunch, simt.OpGridWait:
		a := asm{effects: true, memory: true, code: in.Opcode() + ";"}
		name := identifier(strings.TrimSuffix(strings.Replace(in.Opcode(), ".acq_rel", "", 1), "_group"))
		return p.h.add(name, in.Opcode(), a.text) + "()", true
	case simt.OpMaxRegisters:
		op := in.Opcode()
		body := func(name string) string {
			return "template <int N> static __device__ __forceinline__ void " + name +
				"() {\n  asm volatile(\"" + op + " %0;\" : : \"n\"(N));\n}"
		}
		return fmt.Sprintf("%s<%d>()", p.h.add(identifier(strings.TrimSuffix(op, ".sync.aligned.u32")), op, body), in.Imm), true
	case simt.OpCpAsyncWait, simt.OpBulkWait:
		op := in.Opcode()
		body := func(name string) string {
			return "template <int N> static __device__ __forceinline__ void " + name +
				"() {\n  asm volatile(\"" + op + " %0;\" : : \"n\"(N) : \"memory\");\n}"
		}
		return fmt.Sprintf("%s<%d>()", p.h.add(identifier(strings.Replace(op, "_group", "", 1)), op, body), in.Imm), true
	}
	if in.Op == simt.OpBar || in.Op == simt.OpBarArrive {
		return p.barrier(in), true
	}
	return "", false
}

// barrier is a named barrier.
func (p *printer) barrier(in *simt.Instr) string {
	a := asm{effects: true, memory: true, params: []string{"u32 id"}, ins: []string{"\"r\"(id)"}, code: in.Opcode() + " %0;"}
	args := []string{p.unsigned(in.Args[0], precCond)}
	name := identifier(in.Opcode()) + "_all"
	if in.Imm > 0 {
		a.params, a.ins = append(a.params, "u32 threads"), slices.Concat(a.ins, []string{"\"r\"(threads)"})
		a.code = in.Opcode() + " %0, %1;"
		args = append(args, fmt.Sprint(in.Imm))
		name = identifier(in.Opcode())
	}
	return p.h.add(name, in.Opcode(), a.text) + "(" + strings.Join(args, ", ") + ")"
}
