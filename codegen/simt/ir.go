package simt

import (
	"fmt"
	"strings"
)

// Module is a set of kernels for one target.
type Module struct {
	Arch    string // target name, such as "sm_80" or "sm_90a"
	SM      int    // compute capability times ten: 80, 90, 120
	Kernels []*Kernel
}

// Virtual is the target as compilers from C to PTX name it: "compute_90a".
func (m *Module) Virtual() string { return "compute_" + strings.TrimPrefix(m.Arch, "sm_") }

// Param is a parameter of a kernel.
type Param struct {
	Name  string
	Type  Type
	Elem  Type // for Ptr: what it points to, where known (a hint for CUDA C)
	Align int  // for Ptr: known alignment in bytes, 0 when unknown
	Const bool // for Ptr: the kernel only reads through it
	Bytes int  // for a block of bytes passed by value (a tensor map); Type is then Ptr
}

// Kernel is one entry point.
type Kernel struct {
	Name        string
	Params      []Param
	Shared      int  // bytes of shared memory
	SharedAlign int  // 16 to 1024; 0 means 16
	Dynamic     bool // the bytes are given at launch (extern), as more than 48 KiB must be
	Threads     int  // threads in a block, along x
	MinBlocks   int  // least blocks on a multiprocessor, 0 when not asked for
	MaxRegs     int  // most registers a thread, 0 when not asked for
	Cluster     int  // blocks in a cluster along x, 0 or 1 for none
	Persistent  bool // a block goes on from tile to tile, with the stride of the grid
	Snake       bool // and every other round of tiles begins at the last block
	Pingpong    bool // and two warpgroups have tiles in turns
	Body        *Block
	// Inputs are the values that exist at entry (parameters, special registers,
	// the base of shared memory) in order of first use; they stand in no block.
	Inputs []*Value
	Notes  []string // texts that Instr.Note refers to, from 1

	roots     map[rootKey]*Value // constants and inputs
	values    [][]Value          // slabs of valueSlab; an ID is a slab and a place in it
	numValues int
	instrSlab []Instr
	argSlab   []*Value
}

// Value is a virtual register, defined once: by an instruction, or as a
// parameter of a loop's block.
type Value struct {
	ID    int32
	Type  Type
	Index int32  // which result of Def, or which parameter of Block
	Sub   int32  // index within Name's group, -1 when it stands alone
	Name  string // a hint for the printers: "acc"
	Def   *Instr // defining instruction; for a block's parameter, the loop
	Block *Block // the block whose parameter it is, or nil
}

// Block is a sequence of instructions. A loop's block has parameters; Yield
// holds the values handed to the next iteration or out of an If.
type Block struct {
	Params []*Value
	Instrs []*Instr
	Yield  []*Value
}

// Instr is an instruction. Which of the attributes apply is up to its Op.
type Instr struct {
	Op       Op
	Type     Type // the type it works in
	Cmp      Cmp
	Special  Special
	Round    Round
	Mma      Mma
	Space    Space
	Mem      Mem // memory element
	Vec      uint8
	Cache    Cache
	Shfl     ShflMode
	Atom     AtomOp
	Scope    Scope
	Flags    Flags
	GuardNot bool
	Note     int32 // index into Kernel.Notes, 0 for none
	Waves    int16 // shared-memory wavefronts this access takes, by the layout algebra; 0 when unknown
	Sectors  int16 // 32-byte sectors a warp's access touches, by the layout algebra; 0 when unknown
	Offset   int32 // bytes added to the address
	Imm      int64 // constant's bits, group count, byte count, unroll hint, truth table
	Args     []*Value
	Results  []*Value
	Guard    *Value // executes only where this predicate holds (or, GuardNot, does not)
	Body     *Block // For, Loop: the body; If: the then branch
	Else     *Block // If: the other branch, or nil
}

// Flags are yes-or-no attributes of an instruction.
type Flags uint16

// The flags.
const (
	FTZ      Flags = 1 << iota // subnormals count as zero
	Approx                     // the fast, approximate form
	NaN                        // min and max give NaN if an operand is NaN
	Trans                      // transposed (ldmatrix, stmatrix)
	Unsigned                   // conversion from or to an unsigned integer
	Volatile                   // memory is shared with other threads beyond barriers
	Fewer                      // registers are given up (max_registers)
	Adds                       // to what is there (tensor_store)
	Hinted                     // with a policy for L2 (tensor_load, tensor_store)
)

// Result is the instruction's only result.
func (in *Instr) Result() *Value { return in.Results[0] }

// Has tells whether all flags f are set.
func (in *Instr) Has(f Flags) bool { return in.Flags&f == f }

// NewKernel returns an empty kernel.
func NewKernel(name string, threads int) *Kernel {
	return &Kernel{Name: name, Threads: threads, Body: &Block{}}
}

// valueSlab is how many values lie together.
const valueSlab = 256

// NumValues is one more than the largest value ID.
func (k *Kernel) NumValues() int { return k.numValues }

// Value returns the value with the given ID.
func (k *Kernel) Value(id int32) *Value { return &k.values[id/valueSlab][id%valueSlab] }

func (k *Kernel) newValue(t Type, def *Instr, index int) *Value {
	id := int32(k.numValues)
	if id%valueSlab == 0 {
		k.values = append(k.values, make([]Value, valueSlab))
	}
	k.numValues++
	v := k.Value(id)
	*v = Value{ID: id, Type: t, Index: int32(index), Sub: -1, Def: def}
	return v
}

func (k *Kernel) newInstr() *Instr {
	if len(k.instrSlab) == 0 {
		k.instrSlab = make([]Instr, 128)
	}
	in := &k.instrSlab[0]
	k.instrSlab = k.instrSlab[1:]
	return in
}

// list returns a slice of n values with no room to grow into its neighbours.
func (k *Kernel) list(n int) []*Value {
	if n == 0 {
		return nil
	}
	if len(k.argSlab) < n {
		k.argSlab = make([]*Value, max(n, 1024))
	}
	s := k.argSlab[:n:n]
	k.argSlab = k.argSlab[n:]
	return s
}

func (k *Kernel) copyList(vs []*Value) []*Value {
	s := k.list(len(vs))
	copy(s, vs)
	return s
}

// IsConst tells whether v is a constant.
func (v *Value) IsConst() bool { return v.Def != nil && v.Def.Op == OpConst }

// Int is the value of an integer constant, sign-extended.
func (v *Value) Int() int64 {
	if !v.IsConst() {
		panic(fmt.Sprintf("simt: %s is no constant", v))
	}
	return v.Def.Imm
}

// IsInt tells whether v is the integer constant n.
func (v *Value) IsInt(n int64) bool { return v.IsConst() && !v.Type.IsFloat() && v.Def.Imm == n }

// Floating tells whether v stands in no block: a constant or an input.
func (v *Value) Floating() bool {
	if v.Def == nil || v.Block != nil {
		return false
	}
	switch v.Def.Op {
	case OpConst, OpParam, OpSpecial, OpSharedBase:
		return true
	}
	return false
}

// Named gives the value a hint for the printers and returns it.
func (v *Value) Named(name string) *Value {
	v.Name, v.Sub = name, -1
	return v
}

// Elem gives the value a hint as element i of a group and returns it.
func (v *Value) Elem(name string, i int) *Value {
	v.Name, v.Sub = name, int32(i)
	return v
}

// NameGroup names the values as elements 0, 1, 2... of a group.
func NameGroup(name string, vs []*Value) {
	for i, v := range vs {
		v.Elem(name, i)
	}
}
