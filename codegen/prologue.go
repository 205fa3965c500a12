package codegen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/layout"
)

// Tensor maps without an encoder. A prologue, a kernel of one block, makes the maps of all
// steps from zeros, field by field, and puts those of each step into a workspace buffer of
// its own. The step's kernel has that buffer as its last parameter, in the place of the maps,
// and each warp that copies acquires the maps before it does.

// madeName is the name of the parameter and the buffers of tensor maps that a prologue makes.
const madeName = "tensor_maps"

// takesMaps tells whether a tensor map copies or stores something in a staged region.
func takesMaps(r *ir.Region) bool {
	return slices.ContainsFunc(r.Ops, func(o *ir.Op) bool {
		return o.Bulk || o.Code == ir.OpCopy && mapped(o.Operand("ring")) || slices.ContainsFunc(o.Regions, takesMaps)
	})
}

// takeMaps gives a kernel the parameter of maps that a prologue makes.
func takeMaps(k *ir.Kernel) *ir.Value {
	name := unusedName(madeName, func(name string) bool { return k.Param(name) != nil })
	v := k.NewValue(name, bufferType(name, ir.I8, 1))
	k.Params = append(k.Params, v)
	k.Assume = append(k.Assume, ir.Assumption{Kind: ir.AssumePointer, Param: v, Lo: simt.MapBytes})
	return v
}

// bufferType is the type of a view of a buffer of so many dimensions, each with a symbol of
// its own.
func bufferType(name string, e ir.Elem, dims int) ir.Type {
	t := ir.ViewOf(e, make([]ir.Dim, dims)...)
	for d := range t.Dims {
		t.Dims[d].Sym = fmt.Sprintf("%s_size%d", name, d)
	}
	return t
}

// unusedName is a name, or that with a number, that is not used.
func unusedName(name string, used func(string) bool) string {
	for n, i := name, 1; ; n, i = fmt.Sprintf("%s%d", name, i), i+1 {
		if !used(n) {
			return n
		}
	}
}

// acquisition is a place that all warps come to before they copy, and the maps that they
// acquire there.
type acquisition struct {
	at   simt.Mark
	maps []int
}

// mapAt is the address of a tensor map: of a parameter, or of what a prologue made, which the
// warps then acquire.
func (l *lowering) mapAt(p Param, name string) *simt.Value {
	if l.m.made == nil {
		return l.passed(p, name)
	}
	i := slices.Index(l.maps, p)
	if i < 0 {
		i = len(l.maps)
		l.maps = append(l.maps, p)
	}
	made := l.passed(Param{Kind: ParamPointer, Arg: len(l.k.Params) - 1, Elem: ir.I8}, l.m.made.Name)
	if a := l.acquiring; !slices.Contains(a.maps, i) {
		a.maps = append(a.maps, i)
		l.b.Insert(&a.at, func() { l.b.MapAcquire(made, i*simt.MapBytes) })
	}
	return l.b.Add(made, l.b.Const64(int64(i*simt.MapBytes)))
}

// prologue is the kernel that makes maps, being built.
type prologue struct {
	b       *simt.Builder
	kernel  *ir.Kernel // what it is passed; it has no tiles
	params  []Param
	assume  []Assumption
	paramAt map[Param]*simt.Value
	args    []string // of the step, as the program names them
}

// mostMapWarps is how many warps make maps side by side.
const mostMapWarps = 32

// addPrologue adds the kernel that makes the maps of all steps, its launch, and the buffers.
func (c *Compiled) addPrologue() error {
	p := c.Program.Clone()
	c.Launched = p
	name := prologueName(p)
	types := map[string]ir.Type{}
	for _, v := range p.Params {
		types[v.Name] = v.Type
	}
	for _, w := range p.Workspace {
		types[w.Name] = bufferType(w.Name, w.Elem, len(w.Dims))
	}
	for _, k := range c.Kernels {
		if len(k.Maps) > 0 {
			takeMaps(p.Kernel(k.Name))
		}
	}
	all := 0
	for i := range p.Steps {
		all += len(c.kernelOf(p.Steps[i].Kernel).Maps)
	}
	s := simt.NewKernel(name, 32*min(all, mostMapWarps))
	s.Shared, s.SharedAlign = all*simt.MapBytes, simt.MapBytes
	m := &prologue{b: simt.NewBuilder(s), kernel: &ir.Kernel{Name: name, Body: &ir.Region{}}, paramAt: map[Param]*simt.Value{}}
	m.b.GridLaunch()
	n := 0
	for i := range p.Steps {
		step := &p.Steps[i]
		maps := c.kernelOf(step.Kernel).Maps
		if len(maps) == 0 {
			continue
		}
		made := unusedName(madeName, func(name string) bool { _, ok := types[name]; return ok })
		types[made] = bufferType(made, ir.I8, 1)
		p.Workspace = append(p.Workspace, ir.Buffer{Name: made, Elem: ir.I8, Dims: []ir.Expr{ir.Lit(int64(len(maps) * simt.MapBytes))}})
		to := m.pointer(m.arg(made, types), ir.I8, simt.MapBytes)
		for j, t := range maps {
			m.make(n, t, m.arg(step.Args[t.Arg], types), m.b.Add(to, m.b.Const64(int64(j*simt.MapBytes))))
			n++
		}
		step.Args = append(slices.Clip(step.Args), made)
	}
	p.Kernels = append(p.Kernels, m.kernel)
	p.Steps = slices.Insert(p.Steps, 0, ir.Step{Kernel: name, Args: m.args})
	if err := ir.Verify(p); err != nil {
		return &InternalError{Pass: "prologue", Kernel: name, Cause: err}
	}
	for _, pass := range simt.Passes {
		pass.Run(s)
	}
	if err := simt.Verify(s); err != nil {
		return &InternalError{Pass: "prologue", Kernel: name, Cause: err}
	}
	c.Module.Kernels = append(c.Module.Kernels, s)
	c.Kernels = append(c.Kernels, Kernel{Name: name, Params: m.params, Assume: m.assume, Threads: s.Threads, Cluster: 1, PerTile: 1})
	return nil
}

// prologueName is a name for the kernel that is neither another's nor that of a parameter in
// PTX, of which ptxas 13.0 dies.
func prologueName(p *ir.Program) string {
	return unusedName(p.Name+"_prologue", func(name string) bool {
		return slices.ContainsFunc(p.Kernels, func(k *ir.Kernel) bool {
			param, of := strings.CutPrefix(name, k.Name+"_")
			return k.Name == name || of && k.Param(param) != nil
		})
	})
}

// kernelOf is the compiled kernel of a name.
func (c *Compiled) kernelOf(name string) *Kernel {
	return &c.Kernels[slices.IndexFunc(c.Kernels, func(k Kernel) bool { return k.Name == name })]
}

// arg is the number of the prologue's parameter for a view of the program.
func (m *prologue) arg(name string, types map[string]ir.Type) int {
	if i := slices.Index(m.args, name); i >= 0 {
		return i
	}
	m.args = append(m.args, name)
	m.kernel.Params = append(m.kernel.Params, m.kernel.NewValue(name, types[name]))
	return len(m.args) - 1
}

// pointer is the address of a parameter, of a multiple of so many bytes.
func (m *prologue) pointer(arg int, e ir.Elem, align int) *simt.Value {
	p := Param{Kind: ParamPointer, Arg: arg, Elem: e}
	if _, ok := m.paramAt[p]; !ok {
		m.kernel.Assume = append(m.kernel.Assume, ir.Assumption{Kind: ir.AssumePointer, Param: m.kernel.Params[arg], Lo: int64(align)})
		m.assume = append(m.assume, Assumption{Kind: ir.AssumePointer, Arg: arg, Lo: int64(align)})
	}
	return m.passed(p, simt.Param{Name: m.args[arg], Type: simt.Ptr, Elem: elementType(e), Align: align})
}

// passed is the value of a parameter, declared at first use.
func (m *prologue) passed(p Param, q simt.Param) *simt.Value {
	v, ok := m.paramAt[p]
	if !ok {
		m.params = append(m.params, p)
		v = m.b.Param(m.b.AddParam(q))
		m.paramAt[p] = v
	}
	return v
}

// size is a view's size in a dimension, I32.
func (m *prologue) size(arg, d int) *simt.Value {
	if n := m.kernel.Params[arg].Type.Dims[d].Size; n > 0 {
		return m.b.Const32(n)
	}
	return m.passed(Param{Kind: ParamSize, Arg: arg, Dim: d}, simt.Param{Name: fmt.Sprintf("%s_size%d", m.args[arg], d), Type: simt.I32})
}

// stride is a view's stride in a dimension, in elements, I64.
func (m *prologue) stride(arg, d int, e ir.Elem) *simt.Value {
	return m.passed(Param{Kind: ParamStride, Arg: arg, Dim: d, Elem: e}, simt.Param{Name: fmt.Sprintf("%s_stride%d", m.args[arg], d), Type: simt.I64})
}

// mapElems are the types of elements by their numbers in tensormap.replace (PTX ISA), where
// an element of 8 bits is an unsigned number.
var mapElems = map[ir.Elem]int{ir.F16: 6, ir.F32: 7, ir.BF16: 10}

// mapSwizzles are the swizzles there, by bytes of a row.
var mapSwizzles = map[int]int{32: 1, 64: 2, 128: 3}

// make makes the map of number n, of a view, and publishes it to an address.
func (m *prologue) make(n int, p Param, arg int, to *simt.Value) {
	b := m.b
	warp, lane := b.ShrU(b.Special(simt.TidX), b.Const32(layout.LaneBits)), b.And(b.Special(simt.TidX), b.Const32(31))
	at := b.Add(b.SharedBase(), b.Const32(n*simt.MapBytes))
	b.If(b.Cmp(simt.EQ, warp, b.Const32(n%mostMapWarps)), func() []*simt.Value {
		b.StShared(b.Add(at, b.Mul(lane, b.Const32(simt.MapBytes/32))), []*simt.Value{b.Const32(0)}, simt.Access{})
		b.WarpSync()
		b.If(b.Elect(), func() []*simt.Value { m.fields(p, arg, at); return nil }, nil)
		b.WarpSync()
		b.MapPublish(to, at)
		return nil
	}, nil)
}

// fields sets all fields of a map to what Param.tensorMap describes.
func (m *prologue) fields(p Param, arg int, at *simt.Value) {
	b := m.b
	set := func(of simt.MapFieldKind, dim int, v *simt.Value) { b.MapSet(at, simt.MapField{Of: of, Dim: dim}, v) }
	order := mapOrder(len(m.kernel.Params[arg].Type.Dims), p.Dim)
	set(simt.MapAddress, 0, m.pointer(arg, p.Elem, mapAlign))
	set(simt.MapRank, 0, b.Const32(len(order)-1))
	set(simt.MapElem, 0, b.Const32(mapElems[p.Elem]))
	set(simt.MapInterleave, 0, b.Const32(0))
	set(simt.MapSwizzle, 0, b.Const32(mapSwizzles[p.Swizzle]))
	set(simt.MapFill, 0, b.Const32(0))
	for i, d := range order {
		size := m.size(arg, d)
		set(simt.MapDim, i, b.Max(size, b.Const32(1)))
		set(simt.MapBox, i, b.Const32(p.Box[i]))
		set(simt.MapElementStride, i, b.Const32(1))
		if i == 0 {
			continue
		}
		bytes := b.Mul(m.stride(arg, d, p.Elem), b.Const64(int64(bytesOf(p.Elem))))
		set(simt.MapStride, i-1, b.Select(b.Cmp(simt.LE, size, b.Const32(1)), b.Const64(mapAlign), bytes))
	}
}
