package ptx

// declarationNeeds is what directives, attributes and types outside
// instructions need: PTX ISA 11.
var declarationNeeds = map[string]need{
	".b128":              parseNeed("8.3/70"),
	".noreturn":          parseNeed("6.4/30"),
	".alias":             parseNeed("6.3/30"),
	".managed":           parseNeed("4.0/30"),
	".unified":           parseNeed("9.0/90"),
	".abi_preserve":      parseNeed("9.0/80"),
	".explicitcluster":   parseNeed("7.8/90"),
	".reqnctapercluster": parseNeed("7.8/90"),
	".maxclusterrank":    parseNeed("7.8/90"),
	".blocksareclusters": parseNeed("9.0/90"),

	".abi_preserve_control": parseNeed("9.0/80"),
}

// needs refuses something that version or target lack.
func (c *checker) needs(pos Pos, what string) {
	if n := declarationNeeds[what]; !n.met(c.m.Version, c.target) {
		c.errorf(pos, "%s needs %s: the module is PTX %s for %s", what, n, c.m.Version, c.target)
	}
}

func (c *checker) declaration(d Decl) {
	switch d := d.(type) {
	case *Variable:
		c.variable(d, inModule)
	case *Alias:
		c.needs(d.Pos, ".alias")
		if _, ok := c.functions[d.Name]; !ok {
			c.errorf(d.Pos, "alias %s: want it declared as a function before", clip(d.Name))
		}
		c.functions[d.Name] = true
	case *Section:
		if d.Name == "@@" && !c.m.Version.Less(Version{2, 0}) {
			c.errorf(d.Pos, "@@DWARF: want .section since PTX 2.0")
		}
	case *Function:
		c.function(d)
	}
}

func (c *checker) function(f *Function) {
	if c.functions[f.Name] && f.Body == nil {
		c.errorf(f.Pos, "%s: defined before: want no declaration after that", clip(f.Name))
	}
	c.functions[f.Name] = c.functions[f.Name] || f.Body != nil
	if f.NoReturn {
		c.needs(f.Pos, ".noreturn")
	}
	for _, d := range f.Directives {
		c.needs(d.Pos, "."+d.Name)
	}
	if why := c.wrongFunction(f); why != "" {
		c.errorf(f.Pos, "%s: %s", clip(f.Name), why)
	}
	at := inFunctionParams
	if f.Kernel {
		at = inKernelParams
	}
	for _, v := range f.Params {
		c.variable(v, at)
	}
	for _, v := range f.Returns {
		c.variable(v, inFunctionParams)
	}
	if f.Body != nil {
		c.block(f.Body)
	}
}

// together are directives of which a kernel may have one.
var together = [][2]string{{"maxntid", "reqntid"}, {"maxclusterrank", "reqnctapercluster"}}

func (c *checker) wrongFunction(f *Function) string {
	switch {
	case f.Kernel && f.NoReturn:
		return ".noreturn of a kernel: want it of functions alone"
	case f.Kernel && f.Body == nil && len(f.Directives) > 0:
		return "." + f.Directives[0].Name + " of a declaration: want it where the kernel is defined"
	case f.Linkage == Extern && f.Body != nil:
		return ".extern of a definition: want a declaration"
	case f.NoReturn && len(f.Returns) > 0:
		return ".noreturn of a function with results"
	case f.Linkage == Common:
		return ".common of a function: want .visible, .weak or .extern"
	case len(f.Returns) > 1 && f.Returns[0].Space == SpaceParam:
		return "several results: want one"
	}
	for _, pair := range together {
		if _, ok := f.Directive(pair[0]); !ok {
			continue
		}
		if _, ok := f.Directive(pair[1]); ok {
			return "." + pair[0] + " and ." + pair[1] + ": want one of them"
		}
	}
	if _, ok := f.Directive("maxnctapersm"); ok && !c.m.Version.Less(Version{2, 1}) {
		return ".maxnctapersm: want .minnctapersm since PTX 2.1"
	}
	for _, name := range []string{"maxntid", "reqntid", "reqnctapercluster", "maxnreg", "minnctapersm"} {
		d, _ := f.Directive(name)
		for _, v := range d.Values {
			if v == 0 {
				return "." + name + " of 0: want 1 or more"
			}
		}
	}
	return ""
}

func (c *checker) block(b *Block) {
	for _, s := range b.Stmts {
		switch s := s.(type) {
		case *Block:
			c.block(s)
		case *Variable:
			c.variable(s, inBody)
		case *Prototype:
			if s.NoReturn && len(s.Returns) > 0 {
				c.errorf(s.Pos, "prototype %s: .noreturn with results", clip(s.Name))
			}
		case *Loc:
			c.location(s)
		case *Section:
			c.errorf(s.Pos, "section %s inside a function: want it outside", clip(s.Name))
		}
	}
}

// location is a place in a source file.
type location struct{ file, line, col int32 }

// location refuses code that is said to be inlined where no code before it is.
func (c *checker) location(l *Loc) {
	if at := (location{l.AtFile, l.AtLine, l.AtCol}); l.Inlined && !c.locations[at] {
		c.errorf(l.Pos, ".loc inlined at %d %d %d: want a .loc of that place before", at.file, at.line, at.col)
	}
	c.locations[location{l.File, l.Line, l.Col}] = true
}

// ofTheRuntime are functions that every module has.
var ofTheRuntime = map[string]bool{"vprintf": true, "malloc": true, "free": true, "__assertfail": true}

// undefined refuses functions that are declared as the module's own and defined
// nowhere in it.
func (c *checker) undefined() {
	for _, d := range c.m.Decls {
		f, ok := d.(*Function)
		if !ok || f.Linkage == Extern || c.functions[f.Name] || ofTheRuntime[f.Name] {
			continue
		}
		c.errorf(f.Pos, "%s: declared and not defined: want a body, or .extern", clip(f.Name))
		c.functions[f.Name] = true // once
	}
}

// maxConstants is how much constant memory a module has: CUDA C++ Programming
// Guide, technical specifications.
const maxConstants = 64 << 10

// constants refuses more constants than there is memory for.
func (c *checker) constants() {
	end := int64(0)
	for _, d := range c.m.Decls {
		v, ok := d.(*Variable)
		if !ok || v.Space != SpaceConst || v.Linkage == Extern || v.Bank >= 0 {
			continue
		}
		a := v.Alignment()
		end = (end+a-1)&^(a-1) + v.Size()
		if end > maxConstants || end < 0 {
			c.errorf(v.Pos, "variable %s: constants up to it have %d bytes: want at most %d", clip(v.Name), end, maxConstants)
			return
		}
	}
}

// maxParameters is how many bytes of parameters a kernel has at most: PTX ISA,
// parameter state space.
const maxParameters = 32764

// parameters refuses more parameters of a kernel than can be passed.
func (c *checker) parameters(f *Function) {
	end := int64(0)
	for _, p := range f.Params {
		a := p.Alignment()
		end = (end+a-1)&^(a-1) + p.Size()
		if end > maxParameters || end < 0 {
			c.errorf(p.Pos, "parameter %s: the kernel's parameters up to it have %d bytes: want at most %d", clip(p.Name), end, maxParameters)
			return
		}
	}
}

// specials refuses special registers that version or target lack.
func (c *checker) specials(ops []Operand) {
	for i := range ops {
		o := &ops[i]
		if o.Kind == OpVector {
			c.specials(o.Elems())
		}
		if o.Kind != OpSpecial {
			continue
		}
		if n := Special(o.Slot()).need(); !n.met(c.m.Version, c.target) {
			c.errorf(o.Pos, "%s needs %s: the module is PTX %s for %s", Special(o.Slot()), n, c.m.Version, c.target)
			return
		}
	}
}

// need is the version and target that brought the register.
func (s Special) need() need {
	e := specialByName[s.String()]
	if e.special == nil {
		return nil
	}
	return need{{version: e.special.version, targets: []targetNeed{{sm: max(e.special.sm, 10)}}}}
}
