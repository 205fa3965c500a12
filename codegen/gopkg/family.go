package gopkg

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/ir"
)

// writer writes a family's file.
type writer struct {
	*Family
	file   *jen.File
	params []*ir.Value
	images map[string]string // variables that hold them, by PTX
}

func (w *writer) write(files map[string][]byte) error {
	var err error
	if w.params, err = w.Family.params(); err != nil {
		return err
	}
	w.shape()
	w.args()
	for _, c := range w.Counts {
		if err := w.count(c); err != nil {
			return fmt.Errorf("argument %s: %w", c.Name, err)
		}
	}
	w.planFunc()
	w.dispatches()
	w.images = map[string]string{}
	for i := range w.Variants {
		v := &w.Variants[i]
		if _, same := w.images[v.PTX]; !same {
			w.images[v.PTX] = imageOf(v)
			image := v.Name + ".ptx"
			files[image] = append([]byte(v.PTX), 0)
			w.file.Comment("//go:embed " + image)
			w.file.Var().Id(imageOf(v)).Index().Byte()
			w.file.Line()
		}
		if err := w.variant(v); err != nil {
			return fmt.Errorf("variant %s: %w", v.Name, err)
		}
	}
	w.file.Anon("embed")
	return nil
}

// comment adds a comment of lines.
func (w *writer) comment(format string, args ...any) {
	for line := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
		w.file.Comment(line)
	}
}

func imageOf(v *Variant) string { return lowerFirst(exported(v.Name)) + "Image" }

// arguments are the fields of a family's arguments, and how kernels get them.
type arguments struct {
	fields, values []jen.Code
	dropped        jen.Code // the statement that makes what kernels take of a probability; nil without one
	numbers        bool     // some of the values are checked
}

// arguments finds the fields and values of the parameters.
func (w *writer) arguments() (a arguments) {
	for _, p := range w.params {
		field := exported(p.Name)
		s := w.Scalars[p.Name]
		switch {
		case !p.Type.IsScalar():
			a.fields = append(a.fields, jen.Id(field).Uint64().Comment("address of "+viewDoc(p.Type)))
			a.values = append(a.values, jen.Id("a").Dot(field))
		case s.Unread:
			a.values = append(a.values, jen.Lit(0))
		case s.Dropout > 0:
			if a.dropped == nil {
				var field jen.Code
				field, a.dropped = dropout(s.Dropout)
				a.fields = append(a.fields, field)
			}
			if p.Type.Elem.IsFloat() {
				a.values = append(a.values, jen.Uint64().Call(jen.Qual("math", "Float32bits").Call(jen.Id("scale"))))
			} else {
				a.values = append(a.values, jen.Uint64().Call(jen.Id("threshold")))
			}
		default:
			value := jen.Id("a").Dot(field)
			if text := s.value(p.Type.Elem); text != "0" {
				value = jen.Qual("cmp", "Or").Call(value, jen.Id(text))
				s.Doc += "; 0: " + text
			}
			kind, bits, checked := s.bits(field, p.Type.Elem, value)
			a.fields = append(a.fields, jen.Id(field).Add(kind).Comment(s.Doc))
			a.values = append(a.values, bits)
			a.numbers = a.numbers || checked
		}
	}
	return a
}

// args writes the type of arguments with Check, Pack and values.
func (w *writer) args() {
	name := w.Prefix + "Args"
	a := w.arguments()
	w.comment("%s are the arguments of a launch. Tensors are dense, the last dimension innermost;\noutputs must not overlap inputs. A number left at 0 is that of the package's options.", name)
	w.file.Type().Id(name).Struct(a.fields...)
	w.file.Line()
	w.file.Func().Params(jen.Op("*").Id(name)).Id("family").Params().String().Block(jen.Return(jen.Lit(w.Prefix)))
	w.file.Line()
	w.file.Func().Params(jen.Id("a").Op("*").Id(name)).Id("values").Params().Params(jen.Index().Uint64(), jen.Error()).Block(a.body(name)...)
	w.file.Line()
	w.comment("Check tells whether a plan can run on the arguments: no address is 0 and all are aligned, and numbers\nare in their range.")
	w.file.Func().Params(jen.Id("a").Op("*").Id(name)).Id("Check").Params(jen.Id("p").Op("*").Id("Plan"), jen.Id("workspace").Index().Uint64()).Error().Block(
		jen.List(jen.Id("_"), jen.Err()).Op(":=").Id("p").Dot("packAll").Call(jen.Id("a"), jen.Id("workspace")), jen.Return(jen.Err()))
	w.file.Line()
	w.file.Comment("Pack lays out the parameters of a plan's step.")
	w.file.Func().Params(jen.Id("a").Op("*").Id(name)).Id("Pack").Params(jen.Id("p").Op("*").Id("Plan"), jen.Id("step").Int(), jen.Id("workspace").Index().Uint64()).Params(jen.Index().Byte(), jen.Error()).Block(
		jen.Return(jen.Id("p").Dot("pack").Call(jen.Id("step"), jen.Id("a"), jen.Id("workspace"))))
	w.file.Line()
}

// body is the statements of the method values of the type called name.
func (a *arguments) body(name string) []jen.Code {
	body := []jen.Code{jen.If(jen.Id("a").Op("==").Nil()).Block(
		jen.Return(jen.Nil(), jen.Qual("errors", "New").Call(jen.Lit(name+" nil: want arguments"))))}
	wrong := jen.Nil()
	if a.numbers || a.dropped != nil {
		body = append(body, jen.Id("n").Op(":=").New(jen.Id("numbers")))
		wrong = jen.Id("n").Dot("err")
	}
	if a.dropped != nil {
		body = append(body, a.dropped)
	}
	if a.numbers { // checked before the error is looked at, in whatever order Go evaluates a return
		return append(body, jen.Id("v").Op(":=").Index().Uint64().Values(a.values...), jen.Return(jen.Id("v"), wrong))
	}
	return append(body, jen.Return(jen.Index().Uint64().Values(a.values...), wrong))
}

// count writes the check of numbers that a kernel reads from memory.
func (w *writer) count(c Count) error {
	at := slices.IndexFunc(w.params, func(p *ir.Value) bool { return p.Name == c.Name })
	if at < 0 || len(w.params[at].Type.Dims) != 1 {
		return fmt.Errorf("want a tensor of one dimension")
	}
	env := map[string]expr{}
	used := map[string]bool{w.params[at].Type.Dims[0].Sym: true}
	c.Most.Symbols(func(name string) { used[name] = true })
	body := []jen.Code{jen.Id("p").Op(":=").New(jen.Id("planner"))}
	for _, s := range w.Sizes {
		env[s.Symbol] = variable(lowerFirst(s.Field))
		if used[s.Symbol] {
			body = append(body, s.hold())
		}
	}
	n, ok := env[w.params[at].Type.Dims[0].Sym]
	if !ok {
		return fmt.Errorf("its size is no field of the shape")
	}
	most, err := exprOf(c.Most, env)
	if err != nil {
		return err
	}
	field := exported(c.Name)
	w.comment("Check%[1]s tells whether numbers are what the memory at %[2]sArgs.%[1]s may hold: %[3]s\nof them, each from 0 to %[4]s. Plans know its address alone, so that only callers can tell.",
		field, w.Prefix, w.params[at].Type.Dims[0].Sym, c.Most.String())
	w.file.Func().Params(jen.Id("s").Id(w.Prefix + "Shape")).Id("Check" + field).Params(jen.Id("numbers").Index().Int32()).Error().Block(
		append(body, jen.Return(jen.Id("p").Dot("counts").Call(jen.Lit(field), jen.Id("numbers"), n.code(), most.code())))...)
	w.file.Line()
	return nil
}

// dropout is the field of a probability of dropout that the options make p, and the
// statement that makes what kernels take of it.
func dropout(p float64) (field, code jen.Code) {
	text := strconv.FormatFloat(p, 'g', -1, 64)
	value := jen.Qual("cmp", "Or").Call(jen.Id("a").Dot("Dropout"), jen.Id(text))
	return jen.Id("Dropout").Float64().Comment("probability that an element is dropped, below 1; -1: none; 0: " + text),
		jen.List(jen.Id("threshold"), jen.Id("scale")).Op(":=").Id("n").Dot("dropout").Call(value)
}

// bits is the Go type of a number and how kernels get it as 64 bits, checked where not all
// that the type holds are right.
func (s Scalar) bits(field string, e ir.Elem, value jen.Code) (kind, code jen.Code, checked bool) {
	check := func(method string, value jen.Code) jen.Code {
		return jen.Id("n").Dot(method).Call(jen.Lit(field), value)
	}
	kind = jen.Int32()
	if e == ir.I64 {
		kind = jen.Int64()
	}
	switch {
	case e == ir.F32 && s.From0:
		return jen.Float32(), check("floatFrom0", value), true
	case e == ir.F32:
		return jen.Float32(), check("float", value), true
	case s.From0:
		return kind, check("intFrom0", jen.Int64().Call(value)), true
	case e == ir.I64:
		return kind, jen.Uint64().Call(value), false
	}
	return kind, jen.Uint64().Call(jen.Uint32().Call(value)), false
}

// value writes what the options make of a number.
func (s Scalar) value(e ir.Elem) string {
	if e == ir.F32 {
		return strconv.FormatFloat(s.Float, 'g', -1, 32)
	}
	return strconv.FormatInt(s.Int, 10)
}

// viewDoc writes "bf16 [B, 4, 128]".
func viewDoc(t ir.Type) string {
	dims := make([]string, len(t.Dims))
	for i, d := range t.Dims {
		if dims[i] = d.Sym; d.Sym == "" {
			dims[i] = fmt.Sprint(d.Size)
		}
	}
	return fmt.Sprintf("%s [%s]", t.Elem, strings.Join(dims, ", "))
}

// planFunc writes the function that chooses.
func (w *writer) planFunc() {
	shape := w.Prefix + "Shape"
	var table []jen.Code
	for i := range w.Variants {
		v := &w.Variants[i]
		sm := v.Compiled.Module.SM
		shared := 0
		for _, k := range v.Compiled.Module.Kernels {
			shared = max(shared, k.Shared)
		}
		row := jen.Dict{
			jen.Id("name"): jen.Lit(v.Name), jen.Id("gpus"): literals(v.Keys), jen.Id("major"): jen.Lit(sm / 10), jen.Id("minor"): jen.Lit(sm % 10),
			jen.Id("only"): jen.Lit(v.only()), jen.Id("maps"): jen.Lit(v.Compiled.TensorMaps()),
			jen.Id("driver"): jen.Lit(v.Driver), jen.Id("shared"): jen.Lit(shared), jen.Id("plan"): jen.Id(planOf(v)),
		}
		if v.Dispatch != nil {
			row[jen.Id("rule")], row[jen.Id("leaf")] = jen.Id(v.Dispatch.Name), jen.Lit(v.Leaf)
		}
		table = append(table, jen.Values(row))
	}
	list := lowerFirst(w.Prefix) + "Variants"
	w.file.Commentf("%s are tried in order.", list)
	w.file.Var().Id(list).Op("=").Index().Id("variant").Types(jen.Id(shape)).Custom(jen.Options{Open: "{", Close: "}", Separator: ",", Multi: true}, table...)
	w.file.Line()
	w.comment("Plan%s plans a launch on a device. The error wraps ErrUnsupported where no kernel of the\npackage serves there, but not where the shape is none: a size below 1 or too large on all devices.", w.Prefix)
	w.file.Func().Id("Plan"+w.Prefix).Params(jen.Id("d").Id("Device"), jen.Id("s").Id(shape)).Params(jen.Op("*").Id("Plan"), jen.Error()).Block(
		jen.If(jen.Err().Op(":=").Id("s").Dot("check").Call(), jen.Err().Op("!=").Nil()).Block(jen.Return(jen.Nil(), jen.Err())),
		jen.Return(jen.Id("choose").Call(jen.Id("d"), jen.Id("s"), jen.Id(list))))
	w.file.Line()
}

// literals writes a list of texts.
func literals(texts []string) jen.Code {
	return jen.Index().String().ValuesFunc(func(g *jen.Group) {
		for _, s := range texts {
			g.Lit(s)
		}
	})
}

// dispatches writes the functions that choose among variants by sizes.
func (w *writer) dispatches() {
	var written []*Dispatch
	for i := range w.Variants {
		v := &w.Variants[i]
		d := v.Dispatch
		if d == nil || slices.Contains(written, d) {
			continue
		}
		written = append(written, d)
		w.comment("%s chooses among the configurations for %s:\n%s.", d.Name, v.GPU, d.Doc)
		w.file.Func().Id(d.Name).Params(jen.Id("s").Id(w.Prefix + "Shape")).Int().Block(d.Rule.code()...)
		w.file.Line()
	}
}

// code is a rule's statements, the last of which returns.
func (r *Rule) code() []jen.Code {
	if r.Field == "" {
		return []jen.Code{jen.Return(jen.Lit(r.Leaf))}
	}
	return append([]jen.Code{
		jen.If(jen.Id("s").Dot(r.Field).Op("<=").Lit(int(r.Most))).Block(r.Below.code()...),
	}, r.Above.code()...)
}

func planOf(v *Variant) string { return "plan" + exported(v.Name) }

// variant writes the function that plans with one variant.
func (w *writer) variant(v *Variant) error {
	f := &variantWriter{writer: w, v: v, symbols: map[string]expr{}}
	if err := f.body(); err != nil {
		return err
	}
	w.file.Func().Id(planOf(v)).Params(jen.Id("s").Id(w.Prefix+"Shape")).Params(jen.Op("*").Id("Plan"), jen.Error()).Block(f.code...)
	w.file.Line()
	return nil
}

// variantWriter writes one plan function.
type variantWriter struct {
	*writer
	v       *Variant
	code    []jen.Code
	symbols map[string]expr // of the program
	views   []tensor        // of the program's arguments, then its workspace
}

// tensor is a dense tensor: its sizes and strides in elements. A scalar has none.
type tensor struct {
	name          string
	elem          ir.Elem
	dims, strides []expr
}

func (f *variantWriter) add(c ...jen.Code) { f.code = append(f.code, c...) }

func (f *variantWriter) body() error {
	f.add(jen.Id("p").Op(":=").Id("newPlanner").Call(jen.Lit(f.Prefix), jen.Lit(len(f.params))))
	for _, s := range f.Sizes {
		f.add(s.read())
		f.symbols[s.Symbol] = variable(lowerFirst(s.Field))
	}
	p := f.v.Compiled.Launched
	for _, v := range p.Params {
		t := tensor{name: v.Name, elem: v.Type.Elem}
		for _, d := range v.Type.Dims {
			if d.Sym == "" {
				t.dims = append(t.dims, number(int64(d.Size)))
				continue
			}
			x, ok := f.symbols[d.Sym]
			if !ok {
				return fmt.Errorf("argument %s: size %s is no field of the shape", v.Name, d.Sym)
			}
			t.dims = append(t.dims, x)
		}
		f.view(&t)
	}
	for _, b := range p.Workspace {
		t := tensor{name: b.Name, elem: b.Elem}
		for i, e := range b.Dims {
			x, err := f.local(fmt.Sprintf("%s%d", b.Name, i), e, f.symbols)
			if err != nil {
				return fmt.Errorf("workspace %s: %w", b.Name, err)
			}
			t.dims = append(t.dims, x)
		}
		f.add(t.countable())
		f.view(&t)
		bytes := product(append([]expr{number(int64(b.Elem.MemoryBits() / 8))}, t.dims...)...)
		f.add(jen.Id("p").Dot("workspace").Call(bytes.code(), jen.Lit(b.Zero)))
	}
	for i, s := range p.Steps {
		if err := f.step(s, i == 0); err != nil {
			return fmt.Errorf("kernel %s: %w", s.Kernel, err)
		}
	}
	f.add(jen.Return(jen.Id("p").Dot("done").Call(jen.Lit(f.v.Name), jen.Lit(f.v.Config), jen.Lit(f.v.Provenance))))
	return nil
}

// local gives a size expression that is not a number or a variable a name.
func (f *variantWriter) local(name string, e ir.Expr, env map[string]expr) (expr, error) {
	x, err := exprOf(e, env)
	if err != nil || x.simple() {
		return x, err
	}
	f.add(jen.Id(name).Op(":=").Add(x.code()))
	return variable(name), nil
}

// view adds a dense tensor.
func (f *variantWriter) view(t *tensor) {
	for i := range t.dims {
		t.strides = append(t.strides, product(t.dims[i+1:]...))
	}
	f.views = append(f.views, *t)
}

// countable writes the check of a dense tensor's size.
func (t *tensor) countable() jen.Code {
	args := []jen.Code{jen.Lit(t.name), jen.Lit(t.elem.MemoryBits() / 8)}
	for _, d := range t.dims {
		args = append(args, d.code())
	}
	return jen.Id("p").Dot("dense").Call(args...)
}

// step writes the checks, the tile space and the parameters of a launch.
func (f *variantWriter) step(s ir.Step, first bool) error {
	c := f.v.Compiled
	var k *codegen.Kernel
	for i := range c.Kernels {
		if c.Kernels[i].Name == s.Kernel {
			k = &c.Kernels[i]
		}
	}
	src := c.Launched.Kernel(s.Kernel)
	names := map[string]int{}
	for i, v := range f.views {
		names[v.name] = i
	}
	env := map[string]expr{}
	args := make([]int, len(s.Args))
	for i, name := range s.Args {
		args[i] = names[name]
		for d, dim := range src.Params[i].Type.Dims {
			if dim.Sym != "" {
				env[dim.Sym] = f.views[args[i]].dims[d]
			}
		}
	}
	if err := f.checks(k, args, env); err != nil {
		return err
	}
	launch := []jen.Code{jen.Id(f.images[f.v.PTX]), jen.Lit(k.Name), jen.Lit(k.Threads), jen.Lit(k.SharedBytes)}
	for _, e := range k.Space {
		x, err := exprOf(e, env)
		if err != nil {
			return err
		}
		launch = append(launch, x.code())
	}
	f.add(jen.Id("p").Dot("step").Call(launch...))
	if k.Wave > 0 {
		f.add(jen.Id("p").Dot("wave").Call(jen.Lit(int(k.Wave))))
	}
	if k.Cluster > 1 {
		f.add(jen.Id("p").Dot("cluster").Call(jen.Lit(k.Cluster)))
	}
	if k.Waits && !first {
		f.add(jen.Id("p").Dot("early").Call())
	}
	for _, p := range k.Params {
		f.param(p, args[p.Arg], f.alignOf(k, p.Arg, args[p.Arg]))
	}
	return nil
}

// workspaceAlign is what plans say that workspace buffers want, in bytes: what the driver
// gives.
const workspaceAlign = 256

// alignOf is the alignment of an address: what a kernel assumes, and no less than one
// element, which every access wants.
func (f *variantWriter) alignOf(k *codegen.Kernel, arg, view int) int64 {
	align := max(1, int64(f.views[view].elem.MemoryBits()/8))
	if view >= len(f.params) {
		align = workspaceAlign
	}
	for _, a := range k.Assume {
		if a.Kind == ir.AssumePointer && a.Arg == arg {
			align = max(align, a.Lo)
		}
	}
	return align
}

// checks writes what a launch assumes of sizes and strides. What is so by construction
// is left out.
func (f *variantWriter) checks(k *codegen.Kernel, args []int, env map[string]expr) error {
	for _, p := range k.Params {
		if p.Narrow {
			t := f.views[args[p.Arg]]
			f.bounded(fmt.Sprintf("stride %d of %s", p.Dim, t.name), t.strides[p.Dim], 0, (1<<31-1)/int64(max(t.elem.MemoryBits()/8, 1)))
		}
	}
	for _, a := range k.Assume {
		t := f.views[args[a.Arg]]
		switch a.Kind {
		case ir.AssumePointer:
		case ir.AssumeStride:
			f.bounded(fmt.Sprintf("stride %d of %s", a.Dim, t.name), t.strides[a.Dim], a.Lo, a.Lo)
		case ir.AssumeStrideMultiple:
			f.multiple(fmt.Sprintf("stride %d of %s", a.Dim, t.name), t.strides[a.Dim], a.Lo)
		case ir.AssumeDimMultiple:
			f.multiple(fmt.Sprintf("size %d of %s", a.Dim, t.name), t.dims[a.Dim], a.Lo)
		case ir.AssumeDimRange:
			f.bounded(fmt.Sprintf("size %d of %s", a.Dim, t.name), t.dims[a.Dim], a.Lo, a.Hi)
		default:
			return fmt.Errorf("argument %s: assumptions of scalars are not carried to packages", t.name)
		}
	}
	for _, e := range k.Bounds {
		x, err := exprOf(e, env)
		if err != nil {
			return fmt.Errorf("bound: %w", err)
		}
		f.add(jen.Id("p").Dot("below").Call(jen.Lit(e.String()), x.code()))
	}
	return nil
}

func (f *variantWriter) multiple(what string, x expr, of int64) {
	if x.factor()%of != 0 {
		f.add(jen.Id("p").Dot("multiple").Call(jen.Lit(what), x.code(), jen.Lit(int(of))))
	}
}

func (f *variantWriter) bounded(what string, x expr, lo, hi int64) {
	if n, ok := x.number(); ok && n >= lo && n <= hi {
		return
	}
	f.add(jen.Id("p").Dot("within").Call(jen.Lit(what), x.code(), jen.Lit(int(lo)), jen.Lit(int(hi))))
}

// param writes a parameter.
func (f *variantWriter) param(p codegen.Param, view int, align int64) {
	t := f.views[view]
	switch p.Kind {
	case codegen.ParamPointer:
		f.add(jen.Id("p").Dot("passed").Call(jen.Lit(8), jen.Lit(view), jen.Lit(int(align)), jen.Lit(t.name)))
	case codegen.ParamTensorMap:
		f.tensorMap(p, view, align)
	case codegen.ParamSize:
		f.add(jen.Id("p").Dot("known").Call(jen.Lit(4), t.dims[p.Dim].code()))
	case codegen.ParamStride:
		f.add(jen.Id("p").Dot("known").Call(jen.Lit(8), t.strides[p.Dim].code()))
	default:
		f.add(jen.Id("p").Dot("passed").Call(jen.Lit(max(4, t.elem.MemoryBits()/8)), jen.Lit(view), jen.Lit(0), jen.Lit(t.name)))
	}
}

// Numbers of the driver: CUtensorMapDataType by type of elements, but for those of 8 bits,
// which are its 0, UINT8; CUtensorMapSwizzle by bytes.
var (
	mapTypes = map[ir.Elem]int{ir.F16: 6, ir.F32: 7, ir.BF16: 9}
	swizzles = map[int]int{32: 1, 64: 2, 128: 3}
)

// tensorMap writes a parameter that is a tensor map.
func (f *variantWriter) tensorMap(p codegen.Param, view int, align int64) {
	t := f.views[view]
	var dims, strides, box []jen.Code
	for i, d := range p.MapOrder(len(t.dims)) {
		dims = append(dims, jen.Uint64().Call(t.dims[d].code()))
		box = append(box, jen.Lit(p.Box[i]))
		if i > 0 {
			strides = append(strides, jen.Uint64().Call(product(t.strides[d], number(int64(p.Elem.MemoryBits()/8))).code()))
		}
	}
	f.add(jen.Id("p").Dot("tensorMap").Call(jen.Lit(view), jen.Lit(int(align)), jen.Lit(t.name), jen.Id("TensorMap").Values(jen.Dict{
		jen.Id("DataType"): jen.Lit(mapTypes[p.Elem]), jen.Id("Swizzle"): jen.Lit(swizzles[p.Swizzle]),
		jen.Id("Dims"): jen.Index().Uint64().Values(dims...), jen.Id("Strides"): jen.Index().Uint64().Values(strides...), jen.Id("Box"): jen.Index().Uint32().Values(box...),
	})))
}

// exported makes a Go name of a snake-case one: "gemm_sm80" is "GemmSm80".
func exported(name string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

func lowerFirst(name string) string { return strings.ToLower(name[:1]) + name[1:] }
