package ptx

import "fmt"

// Pos is a place in PTX text: line and column, both from 1, columns in bytes.
// The zero Pos is no place.
type Pos struct {
	Line, Col int32
}

func (p Pos) String() string { return fmt.Sprintf("%d:%d", p.Line, p.Col) }

// Version is a PTX version such as 8.6.
type Version struct {
	Major, Minor int
}

func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// Less says whether v is older than w.
func (v Version) Less(w Version) bool {
	return v.Major < w.Major || v.Major == w.Major && v.Minor < w.Minor
}

// Module is one PTX file.
type Module struct {
	File        string // as given to Parse, for messages
	Version     Version
	Targets     []string // "sm_90a", "debug", "texmode_independent", ...
	AddressSize int      // 32 or 64
	Decls       []Decl   // in the order of the text
}

// Decl is something at a module's top level: *Variable, *Function, *Alias,
// *SourceFile, *Section or *Pragma.
type Decl interface{ decl() }

// Stmt is something in a function's body: *Instruction, *Label, *Variable,
// *Block, *Loc, *Pragma, *Prototype, *TargetList, *SourceFile or *Section.
type Stmt interface{ stmt() }

func (*Variable) decl()   {}
func (*Function) decl()   {}
func (*Alias) decl()      {}
func (*SourceFile) decl() {}
func (*Section) decl()    {}
func (*Pragma) decl()     {}

func (*Instruction) stmt() {}
func (*Label) stmt()       {}
func (*Variable) stmt()    {}
func (*Block) stmt()       {}
func (*Loc) stmt()         {}
func (*Pragma) stmt()      {}
func (*Prototype) stmt()   {}
func (*TargetList) stmt()  {}
func (*SourceFile) stmt()  {}
func (*Section) stmt()     {}

// Linkage is how a name is seen outside its module.
type Linkage uint8

const (
	Private Linkage = iota // no linkage directive
	Visible
	Extern
	Weak
	Common
)

// Attribute is one entry of `.attribute(...)`, such as `.managed` or
// `.unified(1, 2)`; Name is without the dot.
type Attribute struct {
	Name   string
	Values []int64
}

// Variable declares a register, a run of registers, a variable or a parameter.
// A declaration of several names is one Variable per name.
type Variable struct {
	Pos        Pos
	Linkage    Linkage
	Attributes []Attribute
	Space      Space
	Bank       int  // of the old `.const[n]`, else -1
	Align      int  // bytes; 0 is the type's own
	Vector     int  // 2, 4 or 8 components; 0 is a scalar
	Type       Type // element type
	Name       string
	Range      int     // `%r<100>` declares %r0 to %r99: 100; 0 is the one name
	Dims       []int64 // array extents, outermost first; -1 is `[]`
	Init       *Init   // nil is none

	// A kernel parameter's `.ptr`: the space it points to (SpaceGeneric where
	// none is named) and the least alignment of what it points to.
	Ptr      bool
	PtrSpace Space
	PtrAlign int
}

// Size is the variable's size in bytes: element size times vector width times
// extents, a vector of 3 counted as 3. The first extent of `[]` is that of the
// initial values; without them it is 0.
func (v *Variable) Size() int64 {
	n := v.ElementSize()
	for _, d := range v.Dims {
		switch {
		case d >= 0:
			n *= d
		case v.Init != nil:
			n *= int64(len(v.Init.List))
		default:
			return 0
		}
	}
	return n
}

// ElementSize is the size in bytes of one element (a whole vector where the
// variable is of vectors).
func (v *Variable) ElementSize() int64 {
	n := int64(v.Type.Size())
	if v.Vector > 0 {
		n *= int64(v.Vector)
	}
	return n
}

// Alignment is the variable's alignment in bytes.
func (v *Variable) Alignment() int64 {
	if v.Align > 0 {
		return int64(v.Align)
	}
	return max(v.ElementSize(), 1)
}

// Init is an initialiser: a list in braces or one value. The value is an
// immediate or a name with an offset; Generic marks `generic(name)`, Mask is
// the byte mask of `0xFF00(name)` or 0, Field the name in a sampler's or
// texture's `field = value`.
type Init struct {
	List    []Init
	IsList  bool
	Generic bool
	Mask    uint64
	Field   string
	Value   Operand
}

// Function is a kernel or a device function, declared or defined.
type Function struct {
	Pos        Pos
	Linkage    Linkage
	Kernel     bool
	NoReturn   bool
	Attributes []Attribute
	Name       string
	Returns    []*Variable
	Params     []*Variable
	Directives []Directive
	Body       *Block // nil where only declared

	// Set by Resolve.
	Code      []*Instruction // every instruction, in order; its index is its PC
	Registers []Register     // every register; Symbol.Slot is an index
	Variables []*Variable    // every variable of the body that is no register
}

// Directive is a performance directive of a function: its name without the
// dot, its numbers, and its strings (`.pragma`).
type Directive struct {
	Pos    Pos
	Name   string
	Values []int64
	Text   []string
}

// Directive finds the function's first directive of a name.
func (f *Function) Directive(name string) (Directive, bool) {
	for _, d := range f.Directives {
		if d.Name == name {
			return d, true
		}
	}
	return Directive{}, false
}

// Register is one register of a function after Resolve. A register of
// vectors has one Register per component.
type Register struct {
	Name string // "%r12", "v.x"
	Type Type
}

// Block is a `{ ... }` scope.
type Block struct {
	Pos, End Pos
	Stmts    []Stmt
}

// Label is a place in code. PC is set by Resolve: the index in Function.Code
// of the instruction after it (len(Code) at the very end).
type Label struct {
	Pos  Pos
	Name string
	PC   int32
}

// Loc is `.loc`: the source line of what follows it.
type Loc struct {
	Pos             Pos
	File, Line, Col int32
	Function        string // `function_name`, a label plus an offset
	FunctionOffset  int64
	Inlined         bool // `inlined_at`
	AtFile, AtLine  int32
	AtCol           int32
}

// SourceFile is `.file`: a number that Loc.File refers to.
type SourceFile struct {
	Pos       Pos
	Index     int32
	Name      string
	Timestamp int64 // of file and size; -1 each where not given
	Size      int64
}

// Section is `.section name { ... }` (or an old `@@DWARF` line), kept as text.
type Section struct {
	Pos  Pos
	Name string
	Text string
}

// Pragma is `.pragma "text", ...;`.
type Pragma struct {
	Pos  Pos
	Text []string
}

// Alias is `.alias name, target;`.
type Alias struct {
	Pos          Pos
	Name, Target string
}

// Prototype is `label: .callprototype ...`.
type Prototype struct {
	Pos        Pos
	Name       string
	NoReturn   bool
	Returns    []*Variable
	Params     []*Variable
	Directives []Directive // .abi_preserve and the like
}

// TargetList is `label: .branchtargets ...` or `.calltargets ...`.
type TargetList struct {
	Pos   Pos
	Call  bool // .calltargets
	Name  string
	Names []Operand // labels or functions
}

// Instruction is one instruction.
type Instruction struct {
	Pos      Pos
	Loc      *Loc     // the `.loc` in force, or nil
	Guard    *Operand // `@p`; Neg for `@!p`; nil where there is none
	*Opcode           // never nil
	Operands []Operand
	Spec     *Spec // the table's entry; nil where the table has none
	PC       int32 // index in Function.Code, set by Resolve
}

// Opcode is an instruction's name and modifiers. The instructions of a module
// that have the same share one: it must not be changed.
type Opcode struct {
	Name string   // as the table names it: "ld", "cp.async.bulk", "mbarrier.init"
	Mods []string // what follows it, without dots: "global", "v4", "b32"
}

// OperandKind says which fields of an Operand mean something.
type OperandKind uint8

const (
	OpNone    OperandKind = iota
	OpName                // Symbol's Name, Member, Value (offset): not resolved yet
	OpReg                 // the same, after Resolve: Slot is an index in Function.Registers
	OpSpecial             // after Resolve: Slot is a Special
	OpSymbol              // after Resolve: address of Decl (*Variable) + Value
	OpFunc                // after Resolve: Decl is a *Function
	OpLabel               // after Resolve: Decl is a *Label, Slot is its PC
	OpTargets             // after Resolve: Decl is a *TargetList
	OpProto               // after Resolve: Decl is a *Prototype
	OpImm                 // Value is the bits, Imm says of what
	OpAddr                // `[...]`: Elems are the parts; Elems[0] is the base with its offset in Value
	OpIndex               // `a[i]`: Symbol is a, Elems[0] the index, in elements of the variable
	OpVector              // `{a, b}`
	OpPair                // `a|b`
	OpList                // `(a, b)`
	OpSink                // `_`
)

// ImmKind is the kind of an immediate. Without a type of its own, an integer
// takes the instruction's type; Value then is its two's complement.
type ImmKind uint8

const (
	ImmInt  ImmKind = iota // signed 64-bit
	ImmUint                // unsigned 64-bit: a U suffix, or above the signed range
	ImmF32                 // 0f...: Value is 32 bits
	ImmF64                 // 0d... or a decimal point or exponent: Value is 64 bits
)

// Operand is one operand. It is a union: Kind says what the rest means. A
// module has several for each instruction, so it is kept small.
type Operand struct {
	Kind   OperandKind
	Neg    bool    // `!p`
	Minus  bool    // `-a` before a register
	Imm    ImmKind // of OpImm
	Radix  uint8   // of OpImm integers: 16, 8, 2, or 0 for decimal
	Member Member  // `.x`, or a selector such as `.b0` or `.h1`
	Pos    Pos
	Value  uint64 // immediate's bits, or the signed offset added to the name
	Symbol *Symbol
	Parts  *[]Operand // of an operand that has parts, see Elems
}

// Symbol is a name and, after Resolve, what it stands for. Operands share it:
// it must not be changed.
type Symbol struct {
	Name string
	Decl any   // *Variable, *Function, *Label, *TargetList or *Prototype
	Slot int32 // see OperandKind
}

// Name is the name an operand stands for or, of OpIndex, begins with.
func (o *Operand) Name() string {
	if o.Symbol == nil {
		return ""
	}
	return o.Symbol.Name
}

// Decl is what declares the name, see OperandKind; nil before Resolve.
func (o *Operand) Decl() any {
	if o.Symbol == nil {
		return nil
	}
	return o.Symbol.Decl
}

// Slot is a number that Resolve gives, see OperandKind.
func (o *Operand) Slot() int32 {
	if o.Symbol == nil {
		return 0
	}
	return o.Symbol.Slot
}

// Elems are the parts of an operand that has parts.
func (o *Operand) Elems() []Operand {
	if o.Parts == nil {
		return nil
	}
	return *o.Parts
}

// Offset is Value as the signed byte offset of a name or an address's base.
func (o *Operand) Offset() int64 { return int64(o.Value) }
