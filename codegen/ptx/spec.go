package ptx

// Spec is one form of an instruction in the table: a name, the modifiers that
// may follow it, in order, and its operands.
type Spec struct {
	Name     string
	Mods     string // as the table writes it
	Operands string
	Pipe     Pipe

	groups   []group
	operands []operandSpec
	need     need
}

// group is a place in the order of modifiers where one of some words stands.
type group struct {
	words    []word
	optional bool
}

type word struct {
	text string
	need need
}

// operandSpec is an operand of a form.
type operandSpec struct {
	kind     operandKind
	optional bool
	typ      typeRule
	count    int     // of kindVector: how many elements, negative where modifiers say it
	values   []int64 // numbers allowed; nil is any
}

// operandKind is what an operand may be.
type operandKind uint8

const (
	kindAny           operandKind = iota
	kindDest                      // register
	kindDestSink                  // register, or _
	kindSink                      // _
	kindDestSelect                // register with a selector such as .b0
	kindDestPair                  // d, or d|p
	kindDestBoth                  // d|p
	kindDestBothSink              // d|p where d may be _
	kindPred                      // predicate register, or _
	kindPredPair                  // p, or p|q
	kindPredBoth                  // p|q
	kindSource                    // register or number
	kindReg                       // register
	kindAddress                   // register, number, special register, address of a variable or function
	kindCond                      // predicate, maybe negated, or a number
	kindImm                       // number
	kindMem                       // [address]
	kindMemMore                   // [address, more]
	kindMemTensor                 // [tensor map, what replaces parts of it, {coordinates}]
	kindFabric                    // [endpoint, offset]
	kindFabricCounter             // [endpoint, offset, offset of a counter]
	kindTensorMemory              // [32-bit register]
	kindOffsets                   // {im2col offsets}
	kindLanes                     // {lanes of tensor memory to leave out}
	kindSize                      // register, or a multiple of 16
	kindVectorD                   // registers as many as .vN says, or _
	kindVectorS                   // registers or numbers as many as .vN says
	kindVector                    // {registers}
	kindVectorAny                 // {anything}
	kindAccumulator               // {registers}, as many as shape and type make
	kindPackD                     // {registers} that together have the type's bits
	kindPackS                     // the same, or numbers
	kindDescriptor                // 64-bit register, or [address]
	kindLabel
	kindTargets // a list of labels
	kindCallee  // a function, or a register
	kindList    // (...)
	kindCallTail
)

// typeRule is the type that an operand must have.
type typeRule struct {
	from  typeSource
	typ   Type // of typeFixed
	index int8 // of typeMod: the instruction's nth type
	wider bool // a register may have more bits than the type
	plain bool // a register must be of untyped bits
}

type typeSource uint8

const (
	typeNone        typeSource = iota // not looked at
	typeFixed                         // typ
	typeMod                           // the instruction's type
	typeAccumulator                   // the instruction's type, f16 packed
	typeWide                          // an integer twice as wide as the instruction's type
)
