package vm

import "github.com/kgen-dev/kgen/codegen/ptx"

// execFn executes an instruction for the lanes of w.mask.
type execFn func(w *warp, in *inst)

// mode says how much care a warp's instructions need at the moment.
type mode uint8

const (
	modeFull      mode = iota // every live lane is active, every register is defined
	modePartial               // some lanes are inactive
	modeUndefined             // some register holds an undefined value
	numModes      = 4         // a power of two, so that indexing needs no check
)

// inst is one decoded instruction. Operands are slots: indices into the
// warp's registers of the operand's class. Constants have slots too.
type inst struct {
	fn  [numModes]execFn // by the warp's mode; nil for control instructions
	ctl execFn           // of control instructions: may move w.pc, block, or stop the warp

	d, d2   int32 // destinations
	a, b, c int32 // sources
	run     int32 // how many instructions from here on are no control instructions
	pc      int32 // index in the PTX function's code; -1 for what decoding added

	guard int32  // slot of the guard predicate; -1 is none
	flip  uint32 // all ones where the guard is negated
	neg   uint32 // all ones where source predicate c is negated (selp, setp)
	imm   uint64 // meaning depends on the instruction
	lane  laneFn // one lane's function where there is no loop of its own

	next *inst // what a wrapper (guard, masked destination) runs

	jump *jump
	mem  *memOp
	list *listOp
	mma  *mmaOp
	coll *collOp
	call *callOp

	uses, defs []int32 // every register read and written, as unified slots
	rule       undefRule
}

// jump is where a branch goes and where its lanes meet again.
type jump struct {
	target     int32
	reconverge int32   // -1: nowhere inside the function
	targets    []int32 // of brx.idx
	labels     []*ptx.Label
	label      *ptx.Label
}

// laneFn computes one lane of a pure instruction. Narrow values are passed
// zero-extended, predicates as 0 or 1, an absent operand as 0.
type laneFn func(a, b, c uint64) uint64

// program is a decoded function.
type program struct {
	name string
	fn   *ptx.Function
	mod  *module
	code []inst

	slots   [numClasses]int // registers of each class, constants first
	const32 []uint32
	const64 []uint64
	base    [numClasses]int32 // first unified slot of each class

	undefined []int32    // unified slots that may be read before they are written
	undefName []string   // the names of those registers
	live      [][]uint64 // for each instruction that starts a straight run: live unified slots, nil elsewhere
	memOps    int        // instructions that touch memory, numbered for the race detector

	params     []paramSlot // where parameters lie
	paramBytes int64
	localBytes int64 // .local variables, and .param ones of calls
	usesTid    bool
	callees    []*program
}

// paramSlot is a parameter's place in a parameter block or a frame.
type paramSlot struct {
	v      *ptx.Variable
	offset int64
}

// unified is the unified slot of a register.
func (p *program) unified(c class, slot int32) int32 { return p.base[c] + slot }

// total is the number of unified slots.
func (p *program) total() int { return p.slots[0] + p.slots[1] + p.slots[2] }
