package ir

import "strconv"

// namer gives every value of a kernel a unique printable name.
type namer struct {
	names []string // by ID
	taken map[string]bool
	next  int
}

func newNamer(k *Kernel) *namer {
	n := &namer{names: make([]string, k.values), taken: make(map[string]bool, k.values)}
	for _, v := range k.Params {
		n.name(v)
	}
	for _, a := range k.Space {
		n.name(a.Var)
	}
	n.region(k.Body)
	return n
}

func (n *namer) region(r *Region) {
	if r == nil {
		return
	}
	for _, v := range r.Params {
		n.name(v)
	}
	for _, o := range r.Ops {
		for _, v := range o.Results {
			n.name(v)
		}
		for _, r := range o.Regions {
			n.region(r)
		}
	}
}

// name chooses the value's own name if it is free, that with a number if not, a
// number alone if it has none.
func (n *namer) name(v *Value) {
	if v == nil || v.ID < 0 || v.ID >= len(n.names) {
		return
	}
	name := v.Name
	if !isName(name) {
		name = strconv.Itoa(n.next)
		n.next++
	}
	for i := 1; n.taken[name]; i++ {
		name = v.Name + "_" + strconv.Itoa(i)
	}
	n.taken[name] = true
	n.names[v.ID] = name
}

// of returns "%" and the value's name, whatever state the kernel is in.
func (n *namer) of(v *Value) string {
	switch {
	case v == nil:
		return "%<nil>"
	case v.ID < 0 || v.ID >= len(n.names) || n.names[v.ID] == "":
		return "%<" + strconv.Itoa(v.ID) + ">"
	}
	return "%" + n.names[v.ID]
}

// isName reports whether s is a letter or underscore, then letters, digits,
// underscores and dots: what names of values, symbols and kernels look like.
func isName(s string) bool {
	for i := range len(s) {
		if !isNameByte(s[i]) || i == 0 && (s[0] == '.' || s[0] >= '0' && s[0] <= '9') {
			return false
		}
	}
	return s != ""
}

func isNameByte(c byte) bool {
	return c == '_' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
