package codegen

import (
	"errors"
	"fmt"
	"maps"
	"math"

	"github.com/kgen-dev/kgen/ir"
)

// Argument is what a program is run on: for a view its sizes and strides in
// elements, for a scalar its bits. Memory is the caller's: plans refer to it by
// the argument's number.
type Argument struct {
	Dims, Strides []int64
	Bits          uint64
}

// Plan is a program made ready for given sizes: what to launch, in order, and how
// much workspace to have.
type Plan struct {
	Workspace []int64 // bytes of each workspace buffer; all want 256-byte alignment
	Clear     []int   // the workspace buffers that must be zero before every run
	Steps     []PlanStep
	Prologue  int // how many of the steps make ready what the program's own take
}

// PlanStep is one launch. The grid and block are one-dimensional.
type PlanStep struct {
	Kernel      string
	Grid        int64
	Threads     int
	SharedBytes int // dynamic
	Args        []PlanArg
	Early       bool // may start while the step before runs, as the kernel waits for it

	counts     []int64 // tiles of the tile space along each axis, in whole clusters
	blocks     int64   // of a cluster, with a tile each
	perTile    int64   // blocks that have a tile together
	persistent bool    // blocks go on from tile to tile, with the stride of the grid
	snake      bool    // and every other round begins at the last block
	order      ir.Order
}

// PlanArg is an argument of a launch: bits, or the address of memory.
type PlanArg struct {
	Bytes  int // 2, 4 or 8; 128 for a tensor map
	Bits   uint64
	Memory int // number of a program's argument, or that plus Workspace's; -1 for none

	Map *TensorMap // of that memory
}

// TensorMap describes a view to copies by tensor maps: what a driver's
// cuTensorMapEncodeTiled takes beside the address. Elements outside read as zeros.
type TensorMap struct {
	Elem    ir.Elem
	Dims    []int64 // elements, innermost first
	Strides []int64 // bytes from an element to the next, of all dimensions but the first
	Box     []int   // elements that a copy moves of each dimension
	Swizzle int     // bytes of a swizzled row: 32, 64 or 128
}

const tensorMapBytes = 128

// maxGrid is the most blocks a launch has along x (CUDA C Programming Guide,
// compute capabilities).
const maxGrid int64 = math.MaxInt32

// ErrArguments is in every error that says a program cannot be launched with given
// arguments.
var ErrArguments = errors.New("arguments refused")

// refusal is an error of Plan.
type refusal struct{ error }

func (r refusal) Is(target error) bool { return target == ErrArguments }
func (r refusal) Unwrap() error        { return r.error }

// Plan resolves sizes. It refuses arguments that break what the program assumes; the
// error is then an ErrArguments.
func (c *Compiled) Plan(args []Argument) (*Plan, error) {
	plan, err := c.plan(args)
	if err != nil {
		return nil, refusal{err}
	}
	return plan, nil
}

func (c *Compiled) plan(args []Argument) (*Plan, error) {
	p := c.Program
	if len(args) != len(p.Params) {
		return nil, fmt.Errorf("program %s: %d arguments: want %d", p.Name, len(args), len(p.Params))
	}
	sizes := map[string]int64{}
	for i, v := range p.Params {
		if err := bind(v, args[i], sizes); err != nil {
			return nil, err
		}
	}
	env := func(name string) (int64, bool) { n, ok := sizes[name]; return n, ok }
	plan := &Plan{}
	all := args
	names := map[string]int{}
	for i, v := range p.Params {
		names[v.Name] = i
	}
	for i, w := range c.Launched.Workspace {
		a, bytes, err := workspace(w, env)
		if err != nil {
			return nil, err
		}
		names[w.Name] = len(args) + i
		all = append(all[:len(all):len(all)], a)
		plan.Workspace = append(plan.Workspace, bytes)
		if w.Zero {
			plan.Clear = append(plan.Clear, i)
		}
	}
	plan.Prologue = len(c.Launched.Steps) - len(p.Steps)
	for i, s := range c.Launched.Steps {
		step, err := c.step(s, all, names)
		if err != nil {
			return nil, fmt.Errorf("kernel %s: %w", s.Kernel, err)
		}
		step.Early = step.Early && i > 0
		plan.Steps = append(plan.Steps, step)
	}
	return plan, nil
}

// bind notes the sizes that an argument gives to symbols.
func bind(v *ir.Value, a Argument, sizes map[string]int64) error {
	if v.Type.IsScalar() {
		sizes[v.Name] = int64(int32(uint32(a.Bits)))
		if v.Type.Elem == ir.I64 {
			sizes[v.Name] = int64(a.Bits)
		}
		return nil
	}
	if n := len(v.Type.Dims); len(a.Dims) != n || len(a.Strides) != n {
		return fmt.Errorf("argument %s: %d sizes and %d strides: want %d of each", v.Name, len(a.Dims), len(a.Strides), n)
	}
	for d, dim := range v.Type.Dims {
		n := a.Dims[d]
		if n < 0 || n > ir.MaxDim {
			return fmt.Errorf("argument %s: size %d in dimension %d: want 0 to %d", v.Name, n, d, ir.MaxDim)
		}
		if a.Strides[d] < 0 {
			return fmt.Errorf("argument %s: stride %d in dimension %d: want 0 or more", v.Name, a.Strides[d], d)
		}
		if dim.Sym == "" {
			if dim.Size > 0 && n != int64(dim.Size) {
				return fmt.Errorf("argument %s: size %d in dimension %d: want %d", v.Name, n, d, dim.Size)
			}
			continue
		}
		if have, ok := sizes[dim.Sym]; ok && have != n {
			return fmt.Errorf("argument %s: size %d in dimension %d: want %s = %d as in the others", v.Name, n, d, dim.Sym, have)
		}
		sizes[dim.Sym] = n
	}
	return nil
}

// workspace sizes a dense buffer.
func workspace(w ir.Buffer, env func(string) (int64, bool)) (Argument, int64, error) {
	a := Argument{Dims: make([]int64, len(w.Dims)), Strides: make([]int64, len(w.Dims))}
	total := int64(1)
	for d := len(w.Dims) - 1; d >= 0; d-- {
		n, err := w.Dims[d].Eval(env)
		if err != nil {
			return a, 0, fmt.Errorf("workspace %s: %w", w.Name, err)
		}
		a.Dims[d], a.Strides[d] = n, total
		if n > 0 && total > math.MaxInt64/16/n {
			return a, 0, fmt.Errorf("workspace %s: more bytes than 64 bits count", w.Name)
		}
		total *= n
	}
	return a, total * int64(w.Elem.MemoryBits()) / 8, nil
}

func (c *Compiled) step(s ir.Step, all []Argument, names map[string]int) (PlanStep, error) {
	var k *Kernel
	for i := range c.Kernels {
		if c.Kernels[i].Name == s.Kernel {
			k = &c.Kernels[i]
		}
	}
	src := c.Launched.Kernel(s.Kernel)
	out := PlanStep{Kernel: k.Name, Threads: k.Threads, SharedBytes: k.SharedBytes, Grid: 1, order: src.Order, blocks: int64(k.Cluster / k.PerTile), perTile: int64(k.PerTile), Early: k.Waits}
	args := make([]Argument, len(s.Args))
	memory := make([]int, len(s.Args))
	sizes := map[string]int64{}
	for i, name := range s.Args {
		memory[i] = names[name]
		args[i] = all[memory[i]]
		if err := bind(src.Params[i], args[i], sizes); err != nil {
			return out, err
		}
	}
	if err := k.check(src, args); err != nil {
		return out, err
	}
	if err := k.bounded(sizes); err != nil {
		return out, err
	}
	env := func(name string) (int64, bool) { n, ok := sizes[name]; return n, ok }
	most := maxGrid - teams*k.Wave // a loop over tiles counts past the last by as many
	for _, e := range k.Space {
		n, err := e.Eval(env)
		if err != nil {
			return out, err
		}
		if n < 0 || n > most || n > 0 && out.Grid > most/n {
			return out, fmt.Errorf("a tile space of more than %d tiles: want fewer or larger tiles", most)
		}
		out.counts = append(out.counts, n)
		out.Grid *= n
	}
	out.counts = out.counts[:len(src.Space)]
	if out.persistent = k.Wave > 0; out.persistent {
		out.Grid, out.snake = min(out.Grid, k.Wave), k.Snake
	}
	for _, p := range k.Params {
		out.Args = append(out.Args, p.pass(args[p.Arg], memory[p.Arg]))
	}
	return out, nil
}

// pass is the value of a parameter.
func (p Param) pass(a Argument, memory int) PlanArg {
	switch p.Kind {
	case ParamPointer:
		return PlanArg{Bytes: 8, Memory: memory}
	case ParamTensorMap:
		return PlanArg{Bytes: tensorMapBytes, Memory: memory, Map: p.tensorMap(a)}
	case ParamSize:
		return PlanArg{Bytes: 4, Bits: uint64(a.Dims[p.Dim]), Memory: -1}
	case ParamStride:
		return PlanArg{Bytes: 8, Bits: uint64(a.Strides[p.Dim]), Memory: -1}
	}
	bytes := p.Elem.Bits() / 8
	if bytes < 2 {
		bytes = 4
	}
	return PlanArg{Bytes: bytes, Bits: a.Bits, Memory: -1}
}

// tensorMap describes an argument. What a dimension of one element has for a stride does
// not matter to a copy, but must be one that tensor maps allow; a dimension of none is
// never copied from.
func (p Param) tensorMap(a Argument) *TensorMap {
	m := &TensorMap{Elem: p.Elem, Swizzle: p.Swizzle}
	for i, d := range mapOrder(len(a.Dims), p.Dim) {
		m.Dims = append(m.Dims, max(a.Dims[d], 1))
		m.Box = append(m.Box, p.Box[i])
		if i == 0 {
			continue
		}
		stride := a.Strides[d] * int64(bytesOf(p.Elem))
		if a.Dims[d] <= 1 {
			stride = mapAlign
		}
		m.Strides = append(m.Strides, stride)
	}
	return m
}

// maxTileStride is the most bytes from one element of a tile to the next in any
// dimension: addresses inside a tile are computed with 32-bit strides.
const maxTileStride = math.MaxInt32

// bounded holds sizes to what the kernel's indices have room for.
func (k *Kernel) bounded(sizes map[string]int64) error {
	for _, e := range k.Bounds {
		if below(e, sizes) {
			continue
		}
		// Which size to make smaller, and how much, with the others as they are.
		var err error
		e.Symbols(func(name string) {
			if n := largest(e, name, sizes); err == nil && n > 0 {
				err = fmt.Errorf("size %s = %d: want at most %d, as indices have 32 bits", name, sizes[name], n)
			}
		})
		if err == nil {
			err = fmt.Errorf("sizes too large for indices of 32 bits: want %s of at most %d", e, math.MaxInt32)
		}
		return err
	}
	return nil
}

// below tells whether a sum over sizes has 32 bits.
func below(e ir.Expr, sizes map[string]int64) bool {
	v, err := e.Eval(func(name string) (int64, bool) { n, ok := sizes[name]; return n, ok })
	return err == nil && v <= math.MaxInt32
}

// largest is the largest value of a size under which a sum has 32 bits, -1 if none is.
func largest(e ir.Expr, name string, sizes map[string]int64) int64 {
	sizes = maps.Clone(sizes)
	lo, hi := int64(-1), sizes[name] // below(lo), not below(hi)
	for hi-lo > 1 {
		sizes[name] = lo + (hi-lo)/2
		if below(e, sizes) {
			lo = sizes[name]
		} else {
			hi = sizes[name]
		}
	}
	return lo
}

// check holds arguments to the kernel's assumptions.
func (k *Kernel) check(src *ir.Kernel, args []Argument) error {
	for _, p := range k.Params {
		if !p.Narrow {
			continue
		}
		if s := args[p.Arg].Strides[p.Dim]; s > maxTileStride/int64(bytesOf(p.Elem)) && args[p.Arg].Dims[p.Dim] > 1 {
			return fmt.Errorf("argument %s: stride %d in dimension %d: want at most %d, which is %d bytes",
				src.Params[p.Arg].Name, s, p.Dim, maxTileStride/int64(bytesOf(p.Elem)), maxTileStride)
		}
	}
	for _, a := range k.Assume {
		v, arg := src.Params[a.Arg], args[a.Arg]
		var got int64
		what := ""
		ok := true
		switch a.Kind {
		case ir.AssumeStride:
			got, what = arg.Strides[a.Dim], fmt.Sprintf("stride %d of dimension %d: want %d", arg.Strides[a.Dim], a.Dim, a.Lo)
			ok = got == a.Lo
		case ir.AssumeStrideMultiple:
			got, what = arg.Strides[a.Dim], fmt.Sprintf("stride %d of dimension %d: want a multiple of %d", arg.Strides[a.Dim], a.Dim, a.Lo)
			ok = got%a.Lo == 0
		case ir.AssumeDimMultiple:
			got, what = arg.Dims[a.Dim], fmt.Sprintf("size %d of dimension %d: want a multiple of %d", arg.Dims[a.Dim], a.Dim, a.Lo)
			ok = got%a.Lo == 0
		case ir.AssumeDimRange:
			got, what = arg.Dims[a.Dim], fmt.Sprintf("size %d of dimension %d: want %d to %d", arg.Dims[a.Dim], a.Dim, a.Lo, a.Hi)
			ok = got >= a.Lo && got <= a.Hi
		case ir.AssumeMultiple:
			got = scalarInt(v, arg)
			ok, what = got%a.Lo == 0, fmt.Sprintf("%d: want a multiple of %d", got, a.Lo)
		case ir.AssumeRange:
			got = scalarInt(v, arg)
			ok, what = got >= a.Lo && got <= a.Hi, fmt.Sprintf("%d: want %d to %d", got, a.Lo, a.Hi)
		}
		if !ok {
			return fmt.Errorf("argument %s: %s", v.Name, what)
		}
	}
	return nil
}

func scalarInt(v *ir.Value, a Argument) int64 {
	if v.Type.Elem == ir.I64 {
		return int64(a.Bits)
	}
	return int64(int32(uint32(a.Bits)))
}

// Block returns which block of the grid computes a point of the tile space, alone or
// among others: the inverse of what the kernel does with its block number. Where several
// blocks have a tile together, a further coordinate says which of them; without it it is
// the first.
func (s *PlanStep) Block(point []int) (int64, error) {
	if s.perTile < 2 {
		return s.blockOf(point)
	}
	which, n := int64(0), len(s.counts)
	if len(point) > n {
		point, which = point[:n], int64(point[n])
	}
	if which < 0 || which >= s.perTile {
		return 0, fmt.Errorf("kernel %s: block %d of a tile: want 0 to %d", s.Kernel, which, s.perTile-1)
	}
	block, err := s.blockOf(point)
	return block*s.perTile + which, err
}

func (s *PlanStep) blockOf(point []int) (int64, error) {
	if len(point) != len(s.counts) {
		return 0, fmt.Errorf("kernel %s: point %v: want %d coordinates", s.Kernel, point, len(s.counts))
	}
	at := make([]int64, len(point))
	for i, v := range point {
		at[i] = int64(v)
		if at[i] < 0 || at[i] >= s.counts[i] {
			return 0, fmt.Errorf("kernel %s: point %v: coordinate %d is outside 0 to %d", s.Kernel, point, i, s.counts[i]-1)
		}
	}
	for _, r := range s.order.Reversed {
		at[r] = s.counts[r] - 1 - at[r]
	}
	return s.Owner(s.tile(at)), nil
}
