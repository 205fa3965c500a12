package ir

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// printer writes the textual form. It prints broken programs too: a dump is most
// needed when something is wrong.
type printer struct {
	strings.Builder
	names   *namer
	indent  int
	layouts []string // their texts, numbered in order of first use
}

// String returns the textual form, which Parse reads back to an equal program.
func (p *Program) String() string {
	w := &printer{}
	w.program(p)
	for _, k := range p.Kernels {
		w.WriteByte('\n')
		w.kernel(k)
	}
	return w.finish()
}

// String returns the textual form, which Parse reads back as a program of one
// kernel.
func (k *Kernel) String() string {
	w := &printer{}
	w.kernel(k)
	return w.finish()
}

// finish puts the definitions of the layouts before the text.
func (w *printer) finish() string {
	var head strings.Builder
	for i, l := range w.layouts {
		head.WriteString("layout #" + strconv.Itoa(i) + " = " + l + "\n")
	}
	if len(w.layouts) > 0 {
		head.WriteByte('\n')
	}
	return head.String() + w.Builder.String()
}

// typ writes a type with its layouts by number.
func (w *printer) typ(t Type) string {
	return t.text(func(layout string) string {
		i := slices.Index(w.layouts, layout)
		if i < 0 {
			i = len(w.layouts)
			w.layouts = append(w.layouts, layout)
		}
		return "#" + strconv.Itoa(i)
	})
}

func (w *printer) put(parts ...string) {
	for _, s := range parts {
		w.WriteString(s)
	}
}

func (w *printer) line(parts ...string) {
	w.put(strings.Repeat("  ", w.indent))
	w.put(parts...)
	w.WriteByte('\n')
}

func (w *printer) program(p *Program) {
	w.put("program @", p.Name, "(")
	for i, v := range p.Params {
		w.put(comma(i), "%", v.Name, ": ", v.Type.String())
	}
	w.put(") {\n")
	w.indent++
	for _, b := range p.Workspace {
		w.line("workspace %", b.Name, ": ", b.Elem.String(), "[", joinExprs(b.Dims), "]", when(b.Zero, " zero"))
	}
	for _, s := range p.Steps {
		args := make([]string, len(s.Args))
		for i, a := range s.Args {
			args[i] = "%" + a
		}
		w.line("step @", s.Kernel, "(", strings.Join(args, ", "), ")")
	}
	w.indent--
	w.line("}")
}

func (w *printer) kernel(k *Kernel) {
	w.names = newNamer(k)
	w.put("kernel @", k.Name, "(")
	for i, v := range k.Params {
		w.put(comma(i), w.names.of(v), ": ", v.Type.String())
	}
	w.put(") {\n")
	w.indent++
	start := w.Len()
	w.header(k)
	if w.Len() > start {
		w.WriteByte('\n')
	}
	w.region(k.Body)
	w.indent--
	w.line("}")
}

func (w *printer) header(k *Kernel) {
	for _, a := range k.Assume {
		w.line("assume ", a.Of(w.names.of(a.Param)))
	}
	if len(k.Space) > 0 {
		axes := make([]string, len(k.Space))
		for i, a := range k.Space {
			axes[i] = w.names.of(a.Var) + ": " + a.Count.String()
		}
		w.line("over ", strings.Join(axes, ", "))
	}
	var order []string
	if k.Order.Group > 0 {
		order = append(order, "grouped "+strconv.Itoa(k.Order.Group))
	}
	if k.Order.Hilbert > 0 {
		order = append(order, "hilbert "+strconv.Itoa(k.Order.Hilbert))
	}
	for _, axis := range k.Order.Reversed {
		order = append(order, "reversed "+strconv.Itoa(axis))
	}
	if len(order) > 0 {
		w.line("order ", strings.Join(order, ", "))
	}
	var hints []string
	for _, name := range HintNames {
		if v := *k.Hints.Hint(name); v != 0 {
			hints = append(hints, name+"="+strconv.Itoa(v))
		}
	}
	if len(hints) > 0 {
		w.line("hints ", strings.Join(hints, ", "))
	}
}

// Of writes what is assumed of a parameter under the given name, one of: stride(a, 1) = 1,
// stride(a, 0) % 8 = 0, pointer(a) % 16 = 0, dim(a, 0) % 8 = 0, dim(a, 0) in 1 .. 5,
// s % 8 = 0, s in 0 .. 5.
func (a Assumption) Of(what string) string {
	of := func(f string) string { return f + "(" + what + ", " + strconv.Itoa(a.Dim) + ")" }
	multiple := " % " + intText(a.Lo) + " = 0"
	interval := " in " + intText(a.Lo) + " .. " + intText(a.Hi)
	switch a.Kind {
	case AssumeStride:
		return of("stride") + " = " + intText(a.Lo)
	case AssumeStrideMultiple:
		return of("stride") + multiple
	case AssumePointer:
		return "pointer(" + what + ")" + multiple
	case AssumeDimMultiple:
		return of("dim") + multiple
	case AssumeDimRange:
		return of("dim") + interval
	case AssumeMultiple:
		return what + multiple
	case AssumeRange:
		return what + interval
	}
	return what + " ?"
}

func (w *printer) region(r *Region) {
	if r == nil {
		return
	}
	for i, o := range r.Ops {
		if i == len(r.Ops)-1 && o.Code == OpYield && len(o.Args) == 0 && !o.Sched.Set {
			return // understood
		}
		w.op(o)
	}
}

func (w *printer) op(o *Op) {
	w.put(strings.Repeat("  ", w.indent))
	for i, v := range o.Results {
		w.put(comma(i), w.names.of(v))
	}
	w.put(when(len(o.Results) > 0, " = "), o.Code.String())
	w.words(o)
	switch o.Code {
	case OpFor:
		w.loopHeader(o)
	case OpConst:
		w.put(" ", w.constant(o))
	default:
		w.operands(o)
	}
	w.attrs(o)
	for i, v := range o.Results {
		w.put(when(i == 0, " : "), comma(i), w.typ(v.Type))
	}
	w.regions(o)
	w.WriteByte('\n')
}

// words writes the attributes that print bare after the mnemonic.
func (w *printer) words(o *Op) {
	for _, id := range o.Code.Info().Attrs {
		if a := attrTable[id]; a.bare {
			f := a.field(&o.Attrs).(word)
			w.put(" ", wordAt(f.names, *f.p))
		}
	}
}

// operands writes the operands slot by slot.
func (w *printer) operands(o *Op) {
	info := o.Code.Info()
	pos := 0
	for i, s := range info.Slots {
		n := min(o.slotLen(i, info.Slots), len(o.Args)-pos)
		if n == 0 && (s.Optional || s.Kind == SlotAny) {
			continue
		}
		w.put(s.lead(i))
		for j, v := range o.Args[pos : pos+n] {
			w.put(comma(j), w.names.of(v))
		}
		w.put(s.Tail)
		pos += n
	}
}

// lead returns the text before slot i.
func (s Slot) lead(i int) string {
	switch {
	case s.Lead != "":
		return s.Lead
	case i == 0:
		return " "
	}
	return ", "
}

func (w *printer) loopHeader(o *Op) {
	at := func(i int) string {
		if i < len(o.Args) {
			return w.names.of(o.Args[i])
		}
		return "%<none>"
	}
	var params []*Value
	if len(o.Regions) > 0 && o.Regions[0] != nil {
		params = o.Regions[0].Params
	}
	param := func(i int) string {
		if i < len(params) {
			return w.names.of(params[i])
		}
		return "%<none>"
	}
	w.put(" ", param(0), " = ", at(0), " to ", at(1), " step ", at(2))
	for i := 3; i < len(o.Args); i++ {
		w.put(when(i == 3, " carry ("), comma(i-3), param(i-2), " = ", at(i))
	}
	w.put(when(len(o.Args) > 3, ")"))
}

func (w *printer) constant(o *Op) string {
	if len(o.Results) == 0 {
		return "?"
	}
	return ConstString(o.Results[0].Type.Elem, o.Int, o.Float)
}

// ConstString returns the text of a constant of type e.
func ConstString(e Elem, i int64, f float64) string {
	switch {
	case e == I1 && i == 1:
		return "true"
	case e == I1 && i == 0:
		return "false"
	case !e.IsFloat():
		return intText(i)
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case e == F64:
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return strconv.FormatFloat(f, 'g', -1, 32)
}

func (w *printer) attrs(o *Op) {
	for _, id := range o.Code.Info().Attrs {
		a := &attrTable[id]
		if a.bare || a.field == nil || id == attrDims && o.hasDefaultDims() {
			continue
		}
		w.attr(a.name, a.always, a.field(&o.Attrs))
	}
	if o.Sched.Set {
		w.put(" sched=[", strconv.Itoa(o.Sched.Stage), ", ", strconv.Itoa(o.Sched.Order), "]")
	}
}

func (w *printer) attr(name string, always bool, field any) {
	switch f := field.(type) {
	case *int:
		if always || *f != 0 {
			w.put(" ", name, "=", strconv.Itoa(*f))
		}
	case *bool:
		w.put(when(*f, " "+name))
	case *[]int:
		w.put(" ", name, "=[", joinInts(*f), "]")
	case word:
		if *f.p != 0 {
			w.put(" ", name, "=", wordAt(f.names, *f.p))
		}
	}
}

func (w *printer) regions(o *Op) {
	switch {
	case o.Code == OpRoles:
		w.put(" {\n")
		w.indent++
		for i, r := range o.Regions {
			w.put(strings.Repeat("  ", w.indent), w.role(o, i))
			w.block(r)
			w.WriteByte('\n')
		}
		w.indent--
		w.put(strings.Repeat("  ", w.indent), "}")
	case o.Code == OpIf && len(o.Regions) == 2:
		w.block(o.Regions[0])
		if !isEmpty(o.Regions[1]) {
			w.put(" else")
			w.block(o.Regions[1])
		}
	default:
		for _, r := range o.Regions {
			w.block(r)
		}
	}
}

// isEmpty reports whether a region is an understood yield alone.
func isEmpty(r *Region) bool {
	y := r.Yield()
	return y != nil && len(r.Ops) == 1 && len(y.Args) == 0 && !y.Sched.Set
}

func (w *printer) role(o *Op, i int) string {
	if i >= len(o.Roles) {
		return "?"
	}
	r := o.Roles[i]
	s := r.Name + "(warps=" + strconv.Itoa(r.Warps)
	if r.Registers != 0 {
		s += ", regs=" + strconv.Itoa(r.Registers)
	}
	return s + ")"
}

func (w *printer) block(r *Region) {
	w.put(" {\n")
	w.indent++
	w.region(r)
	w.indent--
	w.put(strings.Repeat("  ", w.indent), "}")
}

func comma(i int) string { return when(i > 0, ", ") }

func when(c bool, s string) string {
	if c {
		return s
	}
	return ""
}

func joinInts(xs []int) string {
	parts := make([]string, len(xs))
	for i, x := range xs {
		parts[i] = strconv.Itoa(x)
	}
	return strings.Join(parts, ", ")
}

func intText(n int64) string { return strconv.FormatInt(n, 10) }

func joinExprs(xs []Expr) string {
	parts := make([]string, len(xs))
	for i, x := range xs {
		parts[i] = x.String()
	}
	return strings.Join(parts, ", ")
}
