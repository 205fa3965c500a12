package ir

import "slices"

// Opcode names an operation.
type Opcode uint8

// The operations. What each takes and gives is said in opTable.
const (
	OpInvalid Opcode = iota

	OpConst
	OpDim

	OpAdd
	OpSub
	OpMul
	OpDiv
	OpRem
	OpMin
	OpMax
	OpAnd
	OpOr
	OpXor
	OpShl
	OpShr
	OpUshr
	OpFma
	OpCmp
	OpSelect
	OpNeg
	OpAbs
	OpNot
	OpExp2
	OpLog2
	OpRsqrt
	OpSqrt
	OpRcp
	OpTanh
	OpErf
	OpSin
	OpCos
	OpFloor
	OpCeil
	OpRound
	OpCast
	OpBitcast

	OpIota
	OpSplat
	OpBroadcast
	OpExpand
	OpReshape
	OpTranspose
	OpJoin
	OpSplit

	OpReduce
	OpScan
	OpDot
	OpRandom16

	OpLoad
	OpStore
	OpAtomic
	OpSubview
	OpAwait
	OpSignal

	OpFor
	OpIf
	OpYield

	OpRing
	OpAcquire
	OpCopy
	OpWrite
	OpCommit
	OpWait
	OpRead
	OpRelease
	OpBarrier
	OpConvert
	OpRoles

	numOpcodes
)

// Effect says what an operation does beside giving its results.
type Effect uint8

// The effects; an operation without any is pure.
const (
	ReadsGlobal Effect = 1 << iota
	WritesGlobal
	ReadsShared
	WritesShared
	Synchronises // orders what comes before it against what comes after it
	Control      // holds regions or ends one
)

// SlotKind says what stands in an operand slot.
type SlotKind uint8

// The kinds of slots.
const (
	SlotTile    SlotKind = iota // a tile of any rank
	SlotScalar                  // a scalar of any type
	SlotIndex                   // a scalar of type i32
	SlotView                    // a view
	SlotRing                    // a ring
	SlotIndices                 // for each dimension of the view in slot 0 a scalar i32, or a tile of row numbers
	SlotExtents                 // for each of the dimensions kept (Dims) a scalar i32
	SlotRings                   // one or more rings
	SlotAny                     // any number of tiles
)

// Slot is one operand, or one list of operands, of an operation.
type Slot struct {
	Name     string
	Kind     SlotKind
	Lead     string // text between the slot before and this one
	Tail     string // text after
	Optional bool
}

// Info is the table's row for an operation.
type Info struct {
	Name        string
	Doc         string // one line: what it means
	Slots       []Slot
	Attrs       []attrID
	Effect      Effect
	Results     int  // number of results; -1: by regions or attributes
	Typed       bool // the result's type is part of the operation, not inferred
	Elementwise bool // operands and results agree in shape and layout
	Commutative bool // the first two operands may be swapped
	Regions     int  // number of regions; -1: by attributes
	rule        rule
}

// rule checks an operation's operands and attributes and gives the types of its
// results; want holds the types stated for them, nil if none are.
type rule func(o *Op, want []Type) ([]Type, error)

// Info returns the table's row; the zero row for an unknown code.
func (c Opcode) Info() *Info {
	if c >= numOpcodes {
		c = OpInvalid
	}
	return &opTable[c]
}

// String returns the operation's name.
func (c Opcode) String() string { return c.Info().Name }

// Opcodes returns all operations in the order of the table.
func Opcodes() []Opcode {
	all := make([]Opcode, 0, numOpcodes-1)
	for c := OpInvalid + 1; c < numOpcodes; c++ {
		all = append(all, c)
	}
	return all
}

// OpcodeByName returns the operation of that name.
func OpcodeByName(name string) (Opcode, bool) {
	c, ok := opByName[name]
	return c, ok
}

// opByName is filled beside opTable.
var opByName = make(map[string]Opcode, numOpcodes)

// IsPure reports whether the operation has no effect: it may be removed,
// repeated and moved.
func (c Opcode) IsPure() bool { return c.Info().Effect == 0 }

// optional returns the bits of Op.Given the operation may have.
func (i *Info) optional() uint16 {
	var bits uint16
	for j, s := range i.Slots {
		if s.Optional {
			bits |= 1 << j
		}
	}
	return bits
}

// slotRange returns which operands stand in slot i.
func (o *Op) slotRange(i int) (lo, hi int) {
	slots := o.Code.Info().Slots
	for j := range slots {
		hi = lo + o.slotLen(j, slots)
		if j == i {
			return lo, hi
		}
		lo = hi
	}
	return 0, 0
}

func (o *Op) slotLen(i int, slots []Slot) int {
	switch slots[i].Kind {
	case SlotIndices:
		if len(o.Args) == 0 || o.Args[0] == nil {
			return 0
		}
		return len(o.Args[0].Type.Dims)
	case SlotExtents:
		return len(o.Dims)
	case SlotRings, SlotAny:
		rest := len(o.Args)
		for j := range slots {
			if j != i {
				rest -= o.slotLen(j, slots)
			}
		}
		return max(rest, 0)
	}
	if slots[i].Optional && o.Given>>i&1 == 0 {
		return 0
	}
	return 1
}

// Operands returns the operands in the slot called name: none if it is empty.
func (o *Op) Operands(name string) []*Value {
	for i, s := range o.Code.Info().Slots {
		if s.Name == name {
			if lo, hi := o.slotRange(i); hi <= len(o.Args) {
				return o.Args[lo:hi]
			}
		}
	}
	return nil
}

// Operand returns the operand in the slot called name, nil if it is absent.
func (o *Op) Operand(name string) *Value {
	if vs := o.Operands(name); len(vs) > 0 {
		return vs[0]
	}
	return nil
}

// SetOperand puts v into the slot called name of one operand, in place of what is
// there; an optional slot may have been empty, and nil empties it. It reports
// whether the operation has such a slot.
func (o *Op) SetOperand(name string, v *Value) bool {
	for i, s := range o.Code.Info().Slots {
		if s.Name != name || s.Kind == SlotRings || s.Kind == SlotAny {
			continue
		}
		lo, hi := o.slotRange(i)
		if v == nil {
			o.Args = slices.Delete(o.Args, lo, hi)
		} else {
			o.Args = slices.Replace(o.Args, lo, hi, v)
		}
		if s.Optional {
			o.Given &^= 1 << i
		}
		if s.Optional && v != nil {
			o.Given |= 1 << i
		}
		return true
	}
	return false
}

// View returns the view an access or subview works on, nil if o is neither.
func (o *Op) View() *Value { return o.Operand("view") }

// Indices returns the index operands of an access or subview, one for each
// dimension of the view.
func (o *Op) Indices() []*Value { return o.Operands("indices") }

// Rows returns the first index operand that is a tile of row numbers; nil if the
// access is a plain one.
func (o *Op) Rows() *Value {
	for _, v := range o.Indices() {
		if v != nil && v.Type.IsTile() {
			return v
		}
	}
	return nil
}
