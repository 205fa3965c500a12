package codegen

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/layout"
)

// wgmmaTile is how a dot is cut into wgmma instructions.
type wgmmaTile struct {
	form simt.Wgmma
	n    int // columns of an instruction; the dot has a multiple of them
}

// wgmmaTile picks the warpgroup's instruction for a dot by so many warps; ok is false
// where there is none for its types or its shape.
func (m *machine) wgmmaTile(o *ir.Op, warps int) (t wgmmaTile, ok bool) {
	if !m.wgmma || warps%4 != 0 || len(o.Args) > 3 {
		return t, false
	}
	x, y, acc := o.Args[0].Type, o.Args[1].Type, o.Args[2].Type
	switch {
	case x.Elem != y.Elem:
		return t, false
	case x.Elem == ir.F16 && acc.Elem == ir.F16:
		t.form = simt.WgmmaF16AccF16
	case x.Elem == ir.F16 && acc.Elem == ir.F32:
		t.form = simt.WgmmaF16
	case x.Elem == ir.BF16 && acc.Elem == ir.F32:
		t.form = simt.WgmmaBF16
	case acc.Elem != ir.F32:
		return t, false
	case x.Elem == ir.F32 && o.Precision == ir.TF32:
		t.form = simt.WgmmaTF32
	case x.Elem == ir.E4M3:
		t.form = simt.WgmmaE4M3
	case x.Elem == ir.E5M2:
		t.form = simt.WgmmaE5M2
	default:
		return t, false
	}
	rows, columns, depth := x.Shape[0], y.Shape[1], x.Shape[1]
	for t.n = min(columns, mostColumns(warps)) / simt.WgmmaN * simt.WgmmaN; t.n > 0 && columns%t.n != 0; {
		t.n -= simt.WgmmaN
	}
	_, err := layout.WGMMAAccumulator([]int{rows, columns}, warps*32/simt.WgmmaThreads)
	return t, t.n > 0 && err == nil && rows%(16*warps) == 0 && depth%t.form.Info().K == 0
}

// besideSums are the registers that ptxas wants for an instruction beside those of its sums
// (it refuses 256 columns under 154 registers).
const besideSums = 26

// mostColumns is how many columns an instruction has at most whose sums, of f32, the registers
// hold that threads of so many warps and the role that copies start with: ptxas looks at no
// others, whatever the threads may have later.
func mostColumns(warps int) int {
	start := simt.RegistersPerSM / (32 * (warps + copyWarps)) / 8 * 8
	return min(simt.MaxWgmmaN, 2*(start-besideSums))
}

// tensorLoads finds the loads that a tensor map copies to shared memory, where wgmma, or
// ldmatrix for mma.sync, reads them: for each how its buffers lie. Where there is wgmma, all
// dots of such a load are products of warpgroups, and all of such a product's right operands
// are such loads; where tensor maps can't copy all that a loop loads then, or shall not,
// threads copy it.
func tensorLoads(s *stager, m *machine) map[*ir.Op]*layout.Shared {
	found := map[*ir.Op]*layout.Shared{}
	if !m.maps {
		return found
	}
	f := newFacts(s.k)
	refused := map[*ir.Op]error{}
	s.threads = map[*ir.Op]bool{}
	add := func(r *ir.Region, within map[*ir.Op]bool) {
		loads := s.find(r)
		if within != nil {
			loads = slices.DeleteFunc(loads, func(st *staged) bool { return !within[st.load] })
		}
		byMap := s.k.Hints.Copy == 0
		for _, st := range loads {
			l, err := f.tensorCopied(st.load)
			if found[st.load] = l; err != nil {
				refused[st.load] = err
				byMap = false
			}
		}
		if byMap || !m.wgmma {
			maps.DeleteFunc(found, func(_ *ir.Op, l *layout.Shared) bool { return l == nil })
			return
		}
		for _, st := range loads {
			l, err := f.threadCopied(st.load, m)
			switch {
			case err == nil:
				found[st.load], s.threads[st.load] = l, true
			case refused[st.load] == nil:
				refused[st.load] = err
				fallthrough
			default:
				delete(found, st.load)
			}
		}
	}
	add(s.k.Body, nil)
	for _, o := range s.k.Body.Ops {
		if o.Code == ir.OpFor {
			add(o.Regions[0], s.dependents(o.Regions[0], o.Regions[0].Params[0]))
		}
	}
	if !m.wgmma {
		keepFragments(s.k.Body, found, m)
		return found
	}
	warps := max(s.k.Hints.Warps, 1)
	s.across = s.crossing(found, m, warps)
	s.keepProducts(found, m, warps)
	maps.DeleteFunc(s.across, func(load *ir.Op, _ *layout.Shared) bool { return found[load] == nil })
	if len(s.across) > 0 && !s.transposesAll(found) {
		s.across = nil
		s.keepProducts(found, m, warps)
	}
	for _, o := range dotsIn(s.k.Body, nil) {
		t, ok := m.wgmmaTile(o, warps)
		if !ok {
			m.refuse(o, warps)
			continue
		}
		for i, v := range o.Args[:2] {
			load := loadOf(v)
			err := refused[load]
			if found[load] != nil {
				if err != nil {
					m.note("cp.async copies %s, which no tensor map copies: %v", load.View().Name, err)
				}
				continue
			}
			if i == 1 && load != nil && err == nil && found[load] == nil && !t.form.Info().Trans {
				err = fmt.Errorf("lies along N: wgmma of %s wants it along K", v.Type.Elem)
			}
			if err != nil {
				m.note("mma.sync multiplies %s, which no tensor map copies: %v", load.View().Name, err)
			}
		}
	}
	return found
}

// keepFragments drops the loads that ldmatrix cannot read as mma.sync wants them: what is
// not of 16 bits.
func keepFragments(r *ir.Region, found map[*ir.Op]*layout.Shared, m *machine) {
	for _, o := range dotsIn(r, nil) {
		_, ok := m.tensorForm(o)
		for _, v := range o.Args[:2] {
			if load := loadOf(v); load != nil && (!ok || v.Type.Elem.Bits() != 16) {
				delete(found, load)
			}
		}
	}
}

// refuse notes why the warpgroup's instruction does not compute a dot of 16-bit floats.
func (m *machine) refuse(o *ir.Op, warps int) {
	x, y := o.Args[0].Type, o.Args[1].Type
	if x.Elem.IsFloat() && x.Elem.Bits() == 16 && y.Elem == x.Elem {
		m.note("mma.sync multiplies %dx%dx%d by %d warps: wgmma wants M a multiple of 64 for each four warps, N of 8 and K of 16", x.Shape[0], y.Shape[1], x.Shape[1], warps)
	}
}

// keepProducts drops loads until all that are left serve products of warpgroups.
func (s *stager) keepProducts(found map[*ir.Op]*layout.Shared, m *machine, warps int) {
	dots := dotsIn(s.k.Body, nil)
	product := map[*ir.Op]bool{}
	for _, o := range dots {
		_, product[o] = m.wgmmaTile(o, warps)
	}
	for again := true; again; {
		again = false
		for _, o := range dots {
			t, _ := m.wgmmaTile(o, warps)
			x, y := loadOf(o.Args[0]), loadOf(o.Args[1])
			if product[o] && (found[y] == nil || !t.reads(found[y], o.Args[1], 0) && s.across[y] == nil) {
				product[o], again = false, true
			}
			for i, load := range []*ir.Op{x, y} {
				if found[load] != nil && (!product[o] || !t.reads(found[load], o.Args[i], 1-i) && s.across[load] == nil) {
					delete(found, load)
					again = true
				}
			}
		}
	}
}

// dotsIn appends the dots of a region to list.
func dotsIn(r *ir.Region, list []*ir.Op) []*ir.Op {
	for _, o := range r.Ops {
		if o.Code == ir.OpDot {
			list = append(list, o)
		}
		for _, in := range o.Regions {
			list = dotsIn(in, list)
		}
	}
	return list
}

// loadOf is the load that an operand of a dot is, perhaps transposed; nil if it is
// something else.
func loadOf(v *ir.Value) *ir.Op {
	for v.Def != nil && v.Def.Code == ir.OpTranspose {
		v = v.Def.Args[0]
	}
	if v.Def == nil || v.Def.Code != ir.OpLoad {
		return nil
	}
	return v.Def
}

// operandShared is how an operand of a dot lies in shared memory, by its own axes: that
// of the buffer it is read from, transposed as the operand is.
func operandShared(s *layout.Shared, v *ir.Value) *layout.Shared {
	if v.Def == nil || v.Def.Code != ir.OpTranspose {
		return s
	}
	t, err := operandShared(s, v.Def.Args[0]).Transpose(v.Def.Perm)
	if err != nil {
		panic(err)
	}
	return t
}

// reads tells whether the instruction reads the operand as it lies; kAxis is its axis
// along K.
func (t wgmmaTile) reads(s *layout.Shared, v *ir.Value, kAxis int) bool {
	s = operandShared(s, v)
	if s.Order()[0] == kAxis {
		return true
	}
	if !t.form.Info().Trans {
		return false
	}
	if kAxis == 1 {
		return simt.WgmmaM%s.Atom() == 0
	}
	return t.n%s.Atom() == 0
}

// Limits of tensor maps (cuTensorMapEncodeTiled in the CUDA driver API).
const (
	mostMapDims = 5
	mostBox     = 256 // elements along a dimension
	mapAlign    = 16  // bytes, of the first element and of all strides
)

// tensorBox finds what a tensor map asks of an access: a box of a whole view whose rows
// start on 16 bytes. The error says what is amiss.
func (f *facts) tensorBox(o *ir.Op) (access, error) {
	view, t := o.View(), accessType(o)
	a := accessOf(o, t.Shape)
	size := int64(bytesOf(t.Elem))
	axis := f.contiguous(a)
	switch align := f.pointerAlign(view); {
	case view.Def != nil:
		return a, errors.New("a part of a view: want a whole one")
	case a.rows != nil || o.Operand("limit") != nil || o.Operand("mask") != nil || o.Operand("fill") != nil:
		return a, errors.New("rows by number, a mask or a fill: want a plain box")
	case len(view.Type.Dims) > mostMapDims:
		return a, fmt.Errorf("%d dimensions: want at most %d", len(view.Type.Dims), mostMapDims)
	case axis < 0:
		return a, errors.New("no dimension of the tile has stride 1")
	case align%mapAlign != 0:
		return a, fmt.Errorf("a pointer to a multiple of %d bytes: want one of %d", align, mapAlign)
	}
	for d := range view.Type.Dims {
		if n := product(f.strideMultiple(view, d), size); d != a.axisDim(axis) && n%mapAlign != 0 {
			return a, fmt.Errorf("a stride of a multiple of %d bytes in dimension %d: want one of %d", n, d, mapAlign)
		}
	}
	return a, nil
}

// tensorCopied is how the buffers lie to which a tensor map copies what a load loads, with
// zeros outside, in atoms as wide as its rows allow. The error says why it can't.
func (f *facts) tensorCopied(o *ir.Op) (*layout.Shared, error) {
	a, err := f.tensorBox(o)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(a.shape, func(n int) bool { return n > mostBox }); i >= 0 {
		return nil, fmt.Errorf("a tile of %d elements along an axis: want at most %d", a.shape[i], mostBox)
	}
	return f.atoms(o, a)
}

// atoms is how a tile lies in swizzled atoms as wide as its rows allow.
func (f *facts) atoms(o *ir.Op, a access) (*layout.Shared, error) {
	order := orderOf(f, a)
	for _, swizzle := range []int{128, 64, 32} {
		if s, err := layout.Swizzled(a.shape, order, bytesOf(o.View().Type.Elem), swizzle); err == nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("a tile %v: want rows of a multiple of 32 bytes, in eights", a.shape)
}

// threadCopied is how the buffers lie to which threads copy what a load loads, without
// registers. The error says why they can't.
func (f *facts) threadCopied(o *ir.Op, m *machine) (*layout.Shared, error) {
	a := accessOf(o, o.Result().Type.Shape)
	if n := f.vector(a, 16) * bytesOf(o.View().Type.Elem); n < leastAsync {
		return nil, fmt.Errorf("%d bytes at once: cp.async wants %d", n, leastAsync)
	}
	return f.atoms(o, a)
}

// leastAsync is how many bytes a thread copies at least without registers (PTX ISA, cp.async).
const leastAsync = 4

// mapped tells whether tensor maps fill a ring, or a role that transposes what they filled.
func mapped(ring *ir.Value) bool {
	return ring.Type.Kind == ir.Ring && ring.Type.Shared != nil && !ring.Def.Threads
}

// tensorRing is the first of the rings that tensor maps fill; nil if none is.
func tensorRing(rings []*ir.Value) *ir.Value {
	if i := slices.IndexFunc(rings, mapped); i >= 0 {
		return rings[i]
	}
	return nil
}

// ringOf is the ring that a tile is read from, perhaps transposed; nil if it is not.
func ringOf(v *ir.Value) *ir.Value {
	for v.Def != nil && v.Def.Code == ir.OpTranspose {
		v = v.Def.Args[0]
	}
	if v.Def == nil || v.Def.Code != ir.OpRead {
		return nil
	}
	return v.Def.Args[0]
}

// staysShared tells whether an operand of a warpgroup's product is read where it lies.
func staysShared(v *ir.Value) bool {
	r := ringOf(v)
	return r != nil && r.Type.Shared != nil && v.Type.Layout == nil
}
