package ptx

import "slices"

// redeclared refuses a function that is declared otherwise than before.
func (r *resolver) redeclared(old, f *Function) {
	differ := ""
	switch {
	case old.Body != nil && f.Body != nil:
		r.errorf(f.Pos, "%s: defined before at %s", clip(f.Name), old.Pos)
		return
	case old.Kernel != f.Kernel:
		differ = "a kernel and a function"
	case !sameLinkage(old, f):
		differ = "another linkage"
	case old.NoReturn != f.NoReturn || !slices.EqualFunc(calling(old), calling(f), sameDirective):
		differ = "other directives"
	case !slices.EqualFunc(old.Returns, f.Returns, samePassed):
		differ = "other results"
	case !slices.EqualFunc(old.Params, f.Params, samePassed):
		differ = "other parameters"
	default:
		return
	}
	r.errorf(f.Pos, "%s: declared before at %s with %s", clip(f.Name), old.Pos, differ)
}

// sameLinkage says whether a function may be declared as it is after it was as
// before: what was said once need not be said again.
func sameLinkage(old, f *Function) bool {
	return old.Linkage == f.Linkage || f.Linkage == Private && (old.Linkage == Visible || old.Linkage == Weak)
}

// calling are the directives that callers must know.
func calling(f *Function) []Directive {
	if f.Kernel {
		return nil
	}
	return f.Directives
}

func sameDirective(a, b Directive) bool { return a.Name == b.Name && slices.Equal(a.Values, b.Values) }

// samePassed says whether parameters are passed alike.
func samePassed(a, b *Variable) bool {
	return a.Space == b.Space && a.Type == b.Type && a.Vector == b.Vector && slices.Equal(a.Dims, b.Dims) && a.Alignment() == b.Alignment()
}

// redeclaredVariable refuses a variable that is declared otherwise than before.
func (r *resolver) redeclaredVariable(old, v *Variable) {
	switch {
	case old.Linkage != Extern && v.Linkage != Extern:
		r.errorf(v.Pos, "%s: declared before at %s", clip(v.Name), old.Pos)
	case v.Linkage == Private:
		r.errorf(v.Pos, "%s: declared .extern before at %s: want .visible, .weak or .common here", clip(v.Name), old.Pos)
	case old.Type != v.Type || old.Vector != v.Vector || !sameExtents(old.Dims, v.Dims) && !sameExtents(v.Dims, old.Dims):
		r.errorf(v.Pos, "%s: declared before at %s with another type", clip(v.Name), old.Pos)
	}
}

// sameExtents says whether arrays have the same extents, but for a first one that
// the former leaves open.
func sameExtents(a, b []int64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] && !(i == 0 && a[i] < 0) {
			return false
		}
	}
	return true
}
