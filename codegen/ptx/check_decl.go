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
		c.variable(d)
	case *Alias:
		c.needs(d.Pos, ".alias")
	case *Function:
		if d.NoReturn {
			c.needs(d.Pos, ".noreturn")
		}
		for _, dir := range d.Directives {
			c.needs(dir.Pos, "."+dir.Name)
		}
		if d.Body != nil {
			c.block(d.Body)
		}
	}
}

func (c *checker) variable(v *Variable) {
	c.needs(v.Pos, "."+v.Type.String())
	for _, a := range v.Attributes {
		c.needs(v.Pos, "."+a.Name)
	}
}

func (c *checker) block(b *Block) {
	for _, s := range b.Stmts {
		switch s := s.(type) {
		case *Block:
			c.block(s)
		case *Variable:
			c.variable(s)
		}
	}
}

// specials refuses special registers that version or target lack.
func (c *checker) specials(in *Instruction) {
	for i := range in.Operands {
		o := &in.Operands[i]
		if o.Kind != OpSpecial {
			continue
		}
		if n := Special(o.Slot()).need(); !n.met(c.m.Version, c.target) {
			c.errorf(o.Pos, "%s needs %s: the module is PTX %s for %s", Special(o.Slot()), n, c.m.Version, c.target)
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
