package gopkg

import "github.com/dave/jennifer/jen"

// shape writes the type of shapes.
func (w *writer) shape() {
	var fields []jen.Code
	for _, s := range w.Sizes {
		fields = append(fields, jen.Id(s.Field).Int().Comment(s.Symbol+": "+s.Doc))
	}
	w.comment("%sShape is the sizes of a problem of %s.", w.Prefix, w.Doc)
	w.file.Type().Id(w.Prefix + "Shape").Struct(fields...)
	w.file.Line()
	w.check()
}

// check writes the check of what is wrong with a shape on all devices.
func (w *writer) check() {
	p := func() *jen.Statement { return jen.Id("p") }
	body := []jen.Code{p().Op(":=").New(jen.Id("planner"))}
	locals := map[string]expr{}
	for _, s := range w.Sizes {
		local := lowerFirst(s.Field)
		locals[s.Symbol] = variable(local)
		body = append(body, s.hold())
		if s.MultipleOf != "" {
			body = append(body, p().Dot("multiple").Call(jen.Lit(s.Field), jen.Id(local), jen.Id(lowerFirst(s.MultipleOf))))
		}
	}
	for _, v := range w.params {
		t := tensor{name: v.Name, elem: v.Type.Elem}
		for _, d := range v.Type.Dims {
			x, ok := locals[d.Sym]
			if !ok {
				x = number(int64(d.Size)) // variants refuse symbols that are no size
			}
			t.dims = append(t.dims, x)
		}
		if len(t.dims) > 0 {
			body = append(body, t.countable())
		}
	}
	w.file.Func().Params(jen.Id("s").Id(w.Prefix + "Shape")).Id("check").Params().Error().Block(append(body, jen.Return(p().Dot("err")))...)
	w.file.Line()
}

// hold writes a variable of a size, held to its range.
func (s *Size) hold() jen.Code {
	return jen.Id(lowerFirst(s.Field)).Op(":=").Id("p").Dot("size").Call(jen.Lit(s.Field), jen.Id("s").Dot(s.Field), jen.Lit(int(s.Max)))
}

// read writes a variable of a size of a shape that was checked.
func (s *Size) read() jen.Code {
	return jen.Id(lowerFirst(s.Field)).Op(":=").Int64().Call(jen.Id("s").Dot(s.Field))
}
