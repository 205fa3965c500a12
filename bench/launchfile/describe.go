package launchfile

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/ir"
)

// Describe writes down a plan for arguments, of which some are written. What no plan
// knows (family, GPU, files, ...) is left to the caller. A launch of no blocks is left out.
func Describe(c *codegen.Compiled, p *codegen.Plan, args []codegen.Argument, written []bool) (*File, error) {
	f := &File{Version: Version, Tensors: []Tensor{}, Workspace: []Workspace{}, Launches: []Launch{}}
	f.GPU.Arch = c.Module.Arch
	for i, v := range c.Program.Params {
		if v.Type.IsScalar() {
			continue
		}
		bits := int64(v.Type.Elem.MemoryBits())
		f.Tensors = append(f.Tensors, Tensor{
			Name: v.Name, Type: v.Type.Elem.String(), Dims: args[i].Dims, Strides: args[i].Strides,
			Bytes: spanned(args[i]) * bits / 8, Align: int(bits / 8), Written: written[i],
		})
	}
	for i, w := range c.Launched.Workspace {
		f.Workspace = append(f.Workspace, Workspace{Name: w.Name, Type: w.Elem.String(), Bytes: p.Workspace[i], Align: workspaceAlign, Zero: w.Zero})
	}
	for i := range p.Steps {
		if p.Steps[i].Grid == 0 {
			continue
		}
		l, err := f.launch(c, i, &p.Steps[i])
		if err != nil {
			return nil, fmt.Errorf("kernel %s: %w", p.Steps[i].Kernel, err)
		}
		f.Launches = append(f.Launches, *l)
	}
	return f, nil
}

// workspaceAlign is what plans want, in bytes.
const workspaceAlign = 256

// mapAlign is what cuTensorMapEncodeTiled wants of an address that is not interleaved, in
// bytes.
const mapAlign = 16

// FreeShared is the dynamic shared memory that a launch has without asking for more (CUDA
// C++ Programming Guide, technical specifications per compute capability), in bytes.
const FreeShared = 48 << 10

// spanned is how many elements the memory of an argument spans.
func spanned(a codegen.Argument) int64 {
	last := int64(0)
	for d, n := range a.Dims {
		if n == 0 {
			return 0
		}
		last += (n - 1) * a.Strides[d]
	}
	return last + 1
}

func (f *File) launch(c *codegen.Compiled, i int, s *codegen.PlanStep) (*Launch, error) {
	at := slices.IndexFunc(c.Kernels, func(k codegen.Kernel) bool { return k.Name == s.Kernel })
	k, thread := &c.Kernels[at], c.Module.Kernels[at]
	l := &Launch{
		Kernel: s.Kernel, Grid: [3]int64{s.Grid, 1, 1}, Block: [3]int64{int64(s.Threads), 1, 1}, Cluster: [3]int64{max(1, int64(k.Cluster)), 1, 1},
		DynamicShared: int64(s.SharedBytes), Early: s.Early, Tiles: []string{}, Requires: []string{}, Params: []Param{},
	}
	if l.DynamicShared > FreeShared {
		l.MaxDynamicShared = l.DynamicShared
	}
	for _, e := range k.Space {
		l.Tiles = append(l.Tiles, e.String())
	}
	names := c.Launched.Steps[i].Args // by the kernel's own parameters
	tile := c.Launched.Kernel(s.Kernel)
	for _, a := range tile.Assume {
		for j, v := range tile.Params {
			if v == a.Param {
				l.Requires = append(l.Requires, a.Of(names[j]))
			}
		}
	}
	l.Requires = append(l.Requires, f.sizes(tile, names)...)
	for j, a := range s.Args {
		q := k.Params[j]
		p := Param{Name: thread.Params[j].Name, Bytes: a.Bytes}
		if q.Kind != codegen.ParamScalar {
			p.Of = names[q.Arg]
		}
		if err := f.param(&p, q, a); err != nil {
			return nil, fmt.Errorf("parameter %s: %w", p.Name, err)
		}
		if q.Kind == codegen.ParamPointer {
			f.align(p.Of, thread.Params[j].Align)
		}
		l.Params = append(l.Params, p)
	}
	return l, nil
}

// sizes are what a kernel takes for granted of the sizes of the tensors that it is given
// by names: the constants that it was compiled with, and which are the same.
func (f *File) sizes(k *ir.Kernel, names []string) []string {
	var all []string
	first := map[string]string{} // of a symbol: the dimension that has it
	for i, v := range k.Params {
		if !slices.ContainsFunc(f.Tensors, func(t Tensor) bool { return t.Name == names[i] }) {
			continue
		}
		for d, n := range v.Type.Dims {
			of := fmt.Sprintf("dim(%s, %d)", names[i], d)
			switch {
			case n.Size > 0:
				all = append(all, fmt.Sprintf("%s = %d", of, n.Size))
			case n.Sym == "":
			case first[n.Sym] == "":
				first[n.Sym] = of
			default:
				all = append(all, of+" = "+first[n.Sym])
			}
		}
	}
	return all
}

// RequireMultiple states that kernels take the size of one symbol for a multiple of
// another's, in every launch.
func (f *File) RequireMultiple(c *codegen.Compiled, symbol, of string) {
	dim := map[string]string{} // of a symbol of the program, by the first tensor that has it
	for _, v := range c.Program.Params {
		for d, n := range v.Type.Dims {
			if n.Sym != "" && dim[n.Sym] == "" {
				dim[n.Sym] = fmt.Sprintf("dim(%s, %d)", v.Name, d)
			}
		}
	}
	if dim[symbol] == "" || dim[of] == "" {
		return
	}
	for i := range f.Launches {
		l := &f.Launches[i]
		l.Requires = append(l.Requires, fmt.Sprintf("%s %% %s = 0", dim[symbol], dim[of]))
	}
}

// param fills in what the kinds differ in.
func (f *File) param(p *Param, q codegen.Param, a codegen.PlanArg) (err error) {
	switch q.Kind {
	case codegen.ParamPointer:
		p.Kind, p.Type = Pointer, "u64"
		return nil
	case codegen.ParamTensorMap:
		p.Kind, p.Type, p.GridConstant = TensorMap, "CUtensorMap", true
		p.Map = describeMap(bench.PlanTensorMap(a.Map, 0))
		f.align(p.Of, mapAlign)
		return nil
	case codegen.ParamSize:
		p.Kind, p.Type, p.Dim = Size, "i32", &q.Dim
	case codegen.ParamStride:
		p.Kind, p.Type, p.Dim = Stride, "i64", &q.Dim
	default:
		p.Kind, p.Type = Scalar, q.Elem.String()
		if q.Elem.Bits() < 16 { // which come in 32 bits
			p.Type = "i32"
		}
	}
	p.Value, err = value(p.Type, a)
	return err
}

// align raises what the address of a tensor must be a multiple of.
func (f *File) align(of string, bytes int) {
	for i := range f.Tensors {
		if t := &f.Tensors[i]; t.Name == of {
			t.Align = max(t.Align, bytes)
		}
	}
}

// value is an argument's bits as a number.
func value(kind string, a codegen.PlanArg) (json.RawMessage, error) {
	switch kind {
	case "f32":
		v := math.Float32frombits(uint32(a.Bits))
		if text := notFinite(float64(v)); text != "" {
			return json.Marshal(text)
		}
		return json.Marshal(v)
	case "f64":
		v := math.Float64frombits(a.Bits)
		if text := notFinite(v); text != "" {
			return json.Marshal(text)
		}
		return json.Marshal(v)
	case "i64":
		return json.Marshal(int64(a.Bits))
	case "i32", "i16":
		return json.Marshal(int32(uint32(a.Bits)))
	}
	return nil, fmt.Errorf("a scalar of %s: no number for it", kind)
}

func notFinite(v float64) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "Infinity"
	case math.IsInf(v, -1):
		return "-Infinity"
	}
	return ""
}

func describeMap(t *bench.TensorMap) *Map {
	m := &Map{Type: t.Type.String(), Dims: t.Dims, Strides: t.Strides, Box: t.Box, Swizzle: t.Swizzle, Fill: "zero", L2Promotion: 256}
	if m.Strides == nil {
		m.Strides = []uint64{}
	}
	for range t.Dims {
		m.ElementStrides = append(m.ElementStrides, 1)
	}
	return m
}
