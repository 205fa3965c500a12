package ir

import "fmt"

// Program is kernels, the workspace they share, and the order they run in.
type Program struct {
	Name      string
	Params    []*Value // views and scalars
	Workspace []Buffer
	Kernels   []*Kernel
	Steps     []Step
	Pos       Pos
}

// Buffer is global memory that lives for one run of a program: dense, row-major.
type Buffer struct {
	Name string
	Elem Elem
	Dims []Expr
	Zero bool // cleared before the run; otherwise its content is undefined
	Pos  Pos
}

// Step launches a kernel. Args name, for each of the kernel's parameters, a
// parameter of the program or a workspace buffer.
type Step struct {
	Kernel string
	Args   []string
	Pos    Pos
}

// Kernel is a program for one point of a tile space.
type Kernel struct {
	Name   string
	Params []*Value // views and scalars; their names are unique
	Assume []Assumption
	Space  []Axis
	Order  Order
	Hints  Hints
	Body   *Region
	Pos    Pos

	values int // number of IDs given out
}

// Axis is one axis of a tile space: Var (i32) runs from 0 to Count-1.
type Axis struct {
	Var   *Value
	Count Expr
}

// Order says in which order the points of a tile space are started. It never
// changes a result. The zero value is row-major, the last axis fastest.
type Order struct {
	Group    int   // > 1: axis 0 advances by groups of this many, under axis 1
	Hilbert  int   // > 1: axes 0 and 1 advance along Hilbert's curve in squares of so many by so many clusters, a power of two
	Reversed []int // axes walked from their end (longest first)
}

// Hints are requests to the code generator. They never change a result beyond
// the order of a reduction. 0 leaves the choice to the code generator.
type Hints struct {
	Warps        int
	Stages       int // default depth of a pipelined loop
	MaxRegisters int
	Blocks       int // resident blocks per SM to aim for
	Swizzle      int // bytes of the shared-memory swizzle: 32, 64 or 128
	Cluster      int // blocks per cluster: neighbours along axis 0, or parts of a tile whose loops they divide
	Persistent   int // 1: one wave of blocks walks the tile space; 2: and two warpgroups of each have tiles in turns
	Portable     int // 1: nothing that only the GPU's own architecture has
	Copy         int // 1: threads copy to shared memory, no tensor maps
	L2           int // 1: tensor maps copy what other blocks copy too to stay in L2, the rest to leave it first
	Overlap      int // 1: products of a loop's next iteration start before its own are over; 2: and two warpgroups take turns
}

// HintNames lists the names of hints in the order they print.
var HintNames = []string{"warps", "stages", "maxregs", "blocks", "swizzle", "cluster", "persistent", "portable", "copy", "overlap", "l2"}

// Hint returns the field called name, nil if there is none.
func (h *Hints) Hint(name string) *int {
	switch name {
	case "warps":
		return &h.Warps
	case "stages":
		return &h.Stages
	case "maxregs":
		return &h.MaxRegisters
	case "blocks":
		return &h.Blocks
	case "swizzle":
		return &h.Swizzle
	case "cluster":
		return &h.Cluster
	case "persistent":
		return &h.Persistent
	case "portable":
		return &h.Portable
	case "copy":
		return &h.Copy
	case "overlap":
		return &h.Overlap
	case "l2":
		return &h.L2
	}
	return nil
}

// AssumeKind says what an assumption is about.
type AssumeKind uint8

// The kinds of assumptions.
const (
	AssumeStride         AssumeKind = iota // stride of dimension Dim (elements) = Lo
	AssumeStrideMultiple                   // stride of dimension Dim (elements) % Lo = 0
	AssumePointer                          // address (bytes) % Lo = 0
	AssumeDimMultiple                      // size of dimension Dim % Lo = 0
	AssumeDimRange                         // Lo <= size of dimension Dim <= Hi
	AssumeMultiple                         // integer scalar % Lo = 0
	AssumeRange                            // Lo <= integer scalar <= Hi
)

// Assumption is what a kernel may rely on about a parameter; whoever launches it
// must check.
type Assumption struct {
	Kind   AssumeKind
	Param  *Value
	Dim    int
	Lo, Hi int64
}

// Region is a list of operations with parameters. The body of a for, if or role
// ends in a yield; the body of a kernel does not.
type Region struct {
	Params []*Value // for: the induction variable, then the carried values
	Ops    []*Op
}

// Value is a result of an operation, a parameter of a region or a kernel, or a
// variable of a tile space.
type Value struct {
	ID    int    // dense within its kernel
	Name  string // for people; may be empty, need not be unique
	Type  Type
	Def   *Op // nil for parameters and tile-space variables
	Index int // which of Def's results
}

// Op is an operation.
type Op struct {
	Code    Opcode
	Given   uint16   // bit i: the optional operand of slot i is present
	Args    []*Value // all operands, in the order of the slots; no nils
	Results []*Value
	Attrs
	Regions []*Region
	Pos     Pos
}

// Pos is a place in a text or in the Go source that built an operation.
type Pos struct {
	File      string
	Line, Col int
}

// IsZero reports whether the position is unknown.
func (p Pos) IsZero() bool { return p.Line == 0 }

// String returns file:line:col, as much of it as is known.
func (p Pos) String() string {
	switch {
	case p.Line == 0:
		return "?"
	case p.Col == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// Kernel returns the kernel called name, nil if there is none.
func (p *Program) Kernel(name string) *Kernel {
	for _, k := range p.Kernels {
		if k.Name == name {
			return k
		}
	}
	return nil
}

// Single wraps a kernel as a program with the kernel's name, its parameters and
// one step.
func Single(k *Kernel) *Program {
	p := &Program{Name: k.Name, Kernels: []*Kernel{k}, Pos: k.Pos}
	step := Step{Kernel: k.Name, Pos: k.Pos}
	for i, v := range k.Params {
		p.Params = append(p.Params, &Value{ID: i, Name: v.Name, Type: v.Type})
		step.Args = append(step.Args, v.Name)
	}
	p.Steps = []Step{step}
	return p
}

// NumValues returns a number above every value's ID; tables over the values of a
// kernel have this length.
func (k *Kernel) NumValues() int { return k.values }

// NewValue returns a fresh value without a definition.
func (k *Kernel) NewValue(name string, t Type) *Value {
	v := &Value{ID: k.values, Name: name, Type: t}
	k.values++
	return v
}

// Param returns the parameter called name, nil if there is none.
func (k *Kernel) Param(name string) *Value {
	for _, v := range k.Params {
		if v.Name == name {
			return v
		}
	}
	return nil
}

// Result returns the only result, nil if there is none.
func (o *Op) Result() *Value {
	if len(o.Results) == 0 {
		return nil
	}
	return o.Results[0]
}

// Yield returns the region's last operation if it is a yield, nil otherwise.
func (r *Region) Yield() *Op {
	if r == nil {
		return nil
	}
	if n := len(r.Ops); n > 0 && r.Ops[n-1].Code == OpYield {
		return r.Ops[n-1]
	}
	return nil
}
