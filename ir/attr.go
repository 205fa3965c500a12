package ir

// Attrs are the attributes of operations, one flat struct: which of them an
// operation has, opcode.go says. The zero value of an attribute is its default
// and is not printed.
type Attrs struct {
	Int   int64   // const of an integer type
	Float float64 // const of a floating-point type, already rounded to it

	Pred    Pred    // cmp
	Combine Combine // reduce, scan, atomic

	Axis    int   // iota, expand, reduce, scan; dim: the dimension
	Perm    []int // transpose: axis i of the result is axis Perm[i] of the operand
	Dims    []int // memory access, subview: the view's dimension of each axis
	Reverse bool  // scan from the end

	Precision Precision // dot
	Saturate  bool      // cast: clamp to the largest finite value
	Fast      bool      // the hardware's approximation is good enough
	Scope     Scope     // atomic, await, signal

	Stages     int  // for: depth of the pipeline asked for
	Unroll     int  // for: bodies per iteration asked for
	Specialise bool // for: producer and consumer warps asked for
	Pingpong   bool // for: two warpgroups take turns at multiplying

	Bulk    bool // store: by a tensor map, through shared memory
	Threads bool // ring: threads fill it, though its buffers lie as tensor maps fill them

	// Blocks of a cluster that have a part each, 0: the block is alone. for: of the
	// iterations, one after the other; ring: of the buffers, which each counts from 0;
	// reduce: of what is combined; store: one of them does it.
	Blocks int

	Pending int    // wait: groups committed later that may stay in flight
	Roles   []Role // roles: one for each region

	Sched Sched
}

// Role describes the warps that run one region of a roles operation.
type Role struct {
	Name      string
	Warps     int
	Registers int // registers a thread, 0: unset
}

// Sched places an operation of a pipelined loop: in iteration i it belongs to
// loop index i - Stage, and operations run by ascending Order.
type Sched struct {
	Set          bool
	Stage, Order int
}

// Pred is the predicate of cmp: signed for integers; for floats every predicate
// but ne is false when an operand is NaN.
type Pred uint8

// The predicates.
const (
	EQ Pred = iota
	NE
	LT
	LE
	GT
	GE
)

var predNames = []string{EQ: "eq", NE: "ne", LT: "lt", LE: "le", GT: "gt", GE: "ge"}

func (p Pred) String() string { return wordAt(predNames, uint8(p)) }

// Combine is how reduce, scan and atomic join two elements. Max and min of
// floats ignore NaN unless both are.
type Combine uint8

// The combinations.
const (
	Add Combine = iota
	Mul
	Max
	Min
	And
	Or
	Xor
	Exchange // atomic only
)

var combineNames = []string{
	Add: "add", Mul: "mul", Max: "max", Min: "min", And: "and", Or: "or", Xor: "xor", Exchange: "exch",
}

func (c Combine) String() string { return wordAt(combineNames, uint8(c)) }

// Precision says what a dot does with its operands before multiplying.
type Precision uint8

// The precisions of dot.
const (
	Exact Precision = iota // products of the operands as they are
	TF32                   // f32 operands rounded to tf32 first; wgmma cuts them to it
)

var precisionNames = []string{Exact: "exact", TF32: "tf32"}

func (p Precision) String() string { return wordAt(precisionNames, uint8(p)) }

// Scope says who sees an atomic operation as one.
type Scope uint8

// The scopes.
const (
	GPU Scope = iota
	Block
	Cluster
	System
)

var scopeNames = []string{GPU: "gpu", Block: "block", Cluster: "cluster", System: "system"}

func (s Scope) String() string { return wordAt(scopeNames, uint8(s)) }

func wordAt(names []string, i uint8) string {
	if int(i) >= len(names) {
		return "?"
	}
	return names[i]
}

// attrID names an attribute in the table of operations.
type attrID uint8

const (
	attrValue attrID = iota
	attrPred
	attrCombine
	attrAxis
	attrPerm
	attrDims
	attrReverse
	attrPrecision
	attrSaturate
	attrFast
	attrScope
	attrStages
	attrUnroll
	attrSpecialise
	attrBulk
	attrThreads
	attrPingpong
	attrBlocks
	attrPending
	attrRoles
	attrSched
	numAttrs
)

// word is an attribute with a fixed set of names.
type word struct {
	p     *uint8
	names []string
}

// attrTable says how attributes print: bare words directly after the mnemonic,
// the rest as name=value after the operands. field gives *int, *bool, *[]int or
// word; those without one print in a way of their own.
var attrTable = [numAttrs]struct {
	name   string
	bare   bool // printed without its name, always
	always bool // printed though it is zero
	field  func(a *Attrs) any
}{
	attrValue:      {name: "value"},
	attrPred:       {name: "pred", bare: true, field: func(a *Attrs) any { return word{(*uint8)(&a.Pred), predNames} }},
	attrCombine:    {name: "combine", bare: true, field: func(a *Attrs) any { return word{(*uint8)(&a.Combine), combineNames} }},
	attrAxis:       {name: "axis", always: true, field: func(a *Attrs) any { return &a.Axis }},
	attrPerm:       {name: "perm", always: true, field: func(a *Attrs) any { return &a.Perm }},
	attrDims:       {name: "dims", field: func(a *Attrs) any { return &a.Dims }},
	attrReverse:    {name: "reverse", field: func(a *Attrs) any { return &a.Reverse }},
	attrPrecision:  {name: "precision", field: func(a *Attrs) any { return word{(*uint8)(&a.Precision), precisionNames} }},
	attrSaturate:   {name: "saturate", field: func(a *Attrs) any { return &a.Saturate }},
	attrFast:       {name: "fast", field: func(a *Attrs) any { return &a.Fast }},
	attrScope:      {name: "scope", field: func(a *Attrs) any { return word{(*uint8)(&a.Scope), scopeNames} }},
	attrStages:     {name: "stages", field: func(a *Attrs) any { return &a.Stages }},
	attrUnroll:     {name: "unroll", field: func(a *Attrs) any { return &a.Unroll }},
	attrSpecialise: {name: "specialise", field: func(a *Attrs) any { return &a.Specialise }},
	attrBulk:       {name: "bulk", field: func(a *Attrs) any { return &a.Bulk }},
	attrThreads:    {name: "threads", field: func(a *Attrs) any { return &a.Threads }},
	attrPingpong:   {name: "pingpong", field: func(a *Attrs) any { return &a.Pingpong }},
	attrBlocks:     {name: "blocks", field: func(a *Attrs) any { return &a.Blocks }},
	attrPending:    {name: "pending", field: func(a *Attrs) any { return &a.Pending }},
	attrRoles:      {name: "roles"},
	attrSched:      {name: "sched"},
}
