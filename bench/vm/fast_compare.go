package vm

import "github.com/kgen-dev/kgen/codegen/ptx"

// fastCompare is the loop of a comparison without a second predicate, or nil.
func fastCompare(cmp string, t ptx.Type, ftz bool) execFn {
	if t == ptx.F32 && !ftz {
		switch cmp {
		case "lt":
			return ltF32
		case "gt":
			return gtF32
		}
	}
	switch {
	case t.Bits() == 32 && !t.Float():
		switch cmp {
		case "eq":
			return eq32
		case "ne":
			return ne32
		}
		if t.Signed() {
			switch cmp {
			case "lt":
				return ltS32
			case "le":
				return leS32
			case "gt":
				return gtS32
			case "ge":
				return geS32
			}
		} else {
			switch cmp {
			case "lt", "lo":
				return ltU32
			case "gt", "hi":
				return gtU32
			}
		}
	}
	return nil
}

func ltF32(w *warp, in *inst) {
	a, b := w.r[in.a].f32(), w.r[in.b].f32()
	var p uint32
	for i := range a {
		if a[i] < b[i] {
			p |= 1 << i
		}
	}
	w.setPredicate(in, p)
}

func gtF32(w *warp, in *inst) {
	a, b := w.r[in.a].f32(), w.r[in.b].f32()
	var p uint32
	for i := range a {
		if a[i] > b[i] {
			p |= 1 << i
		}
	}
	w.setPredicate(in, p)
}

func eq32(w *warp, in *inst) {
	a, b := &w.r[in.a], &w.r[in.b]
	var p uint32
	for i := range a {
		p |= uint32((uint64(a[i]^b[i])-1)>>63) << i
	}
	w.setPredicate(in, p)
}

func ne32(w *warp, in *inst) {
	a, b := &w.r[in.a], &w.r[in.b]
	var p uint32
	for i := range a {
		p |= uint32((uint64(a[i]^b[i])-1)>>63) << i
	}
	w.setPredicate(in, ^p)
}

func ltS32(w *warp, in *inst) {
	a, b := &w.r[in.a], &w.r[in.b]
	var p uint32
	for i := range a {
		p |= uint32(uint64(int64(int32(a[i]))-int64(int32(b[i])))>>63) << i
	}
	w.setPredicate(in, p)
}

func geS32(w *warp, in *inst) {
	a, b := &w.r[in.a], &w.r[in.b]
	var p uint32
	for i := range a {
		p |= uint32(uint64(int64(int32(a[i]))-int64(int32(b[i])))>>63) << i
	}
	w.setPredicate(in, ^p)
}

func gtS32(w *warp, in *inst) {
	a, b := &w.r[in.a], &w.r[in.b]
	var p uint32
	for i := range a {
		p |= uint32(uint64(int64(int32(b[i]))-int64(int32(a[i])))>>63) << i
	}
	w.setPredicate(in, p)
}

func leS32(w *warp, in *inst) {
	a, b := &w.r[in.a], &w.r[in.b]
	var p uint32
	for i := range a {
		p |= uint32(uint64(int64(int32(b[i]))-int64(int32(a[i])))>>63) << i
	}
	w.setPredicate(in, ^p)
}

func ltU32(w *warp, in *inst) {
	a, b := &w.r[in.a], &w.r[in.b]
	var p uint32
	for i := range a {
		p |= uint32((uint64(a[i])-uint64(b[i]))>>63) << i
	}
	w.setPredicate(in, p)
}

func gtU32(w *warp, in *inst) {
	a, b := &w.r[in.a], &w.r[in.b]
	var p uint32
	for i := range a {
		p |= uint32((uint64(b[i])-uint64(a[i]))>>63) << i
	}
	w.setPredicate(in, p)
}
