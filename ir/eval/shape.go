package eval

// stridesOf returns row-major strides.
func stridesOf(shape []int) []int {
	s := make([]int, len(shape))
	n := 1
	for d := len(shape) - 1; d >= 0; d-- {
		s[d] = n
		n *= shape[d]
	}
	return s
}

// around splits a shape at an axis: the number of elements before it, along it
// and after it.
func around(shape []int, axis int) (outer, n, inner int) {
	outer, inner = 1, 1
	for _, s := range shape[:axis] {
		outer *= s
	}
	for _, s := range shape[axis+1:] {
		inner *= s
	}
	return outer, shape[axis], inner
}

// indexAlong sets every element to its index along an axis.
func indexAlong(dst *store, shape []int, axis int) {
	outer, n, inner := around(shape, axis)
	for o := range outer {
		for k := range n {
			at := (o*n + k) * inner
			if dst.class == inI32 {
				fill(dst.i[at:at+inner], int32(k))
			} else {
				fill(dst.l[at:at+inner], int64(k))
			}
		}
	}
}

// gatherRuns calls run for every run along the last axis of shape: it starts at
// element to of the result and at element from of a source with the given
// strides.
func gatherRuns(shape, strides []int, run func(to, from, n, stride int)) {
	if len(shape) == 0 {
		run(0, 0, 1, 0)
		return
	}
	last := len(shape) - 1
	at := make([]int, last)
	for to := 0; ; to += shape[last] {
		from := 0
		for d, x := range at {
			from += x * strides[d]
		}
		run(to, from, shape[last], strides[last])
		if !next(at, shape[:last]) {
			return
		}
	}
}

func broadcast(dst *store, shape []int, src *store, from []int) {
	strides := stridesOf(from)
	for d := range from {
		if from[d] == 1 {
			strides[d] = 0
		}
	}
	gatherRuns(shape, strides, func(to, at, n, stride int) {
		if stride == 0 {
			dst.fillRun(to, n, src, at)
		} else {
			dst.copyRun(to, src, at, n)
		}
	})
}

func transpose(dst, src *store, shape, perm []int) {
	strides := stridesOf(shape)
	out, by := make([]int, len(perm)), make([]int, len(perm))
	for i, p := range perm {
		out[i], by[i] = shape[p], strides[p]
	}
	gatherRuns(out, by, func(to, from, n, stride int) {
		if stride == 1 {
			dst.copyRun(to, src, from, n)
			return
		}
		switch dst.class {
		case inF32:
			spread(dst.f[to:to+n], src.f[from:], stride)
		case inF64:
			spread(dst.d[to:to+n], src.d[from:], stride)
		case inI32:
			spread(dst.i[to:to+n], src.i[from:], stride)
		case inI64:
			spread(dst.l[to:to+n], src.l[from:], stride)
		}
	})
}

func spread[T any](dst, src []T, stride int) {
	for i := range dst {
		dst[i] = src[i*stride]
	}
}
