package vm

import (
	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

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
	fn  [numModes]execFn // by the warp's mode; unset for control instructions
	ctl execFn           // of control instructions: may move w.pc, block, or stop the warp

	d, d2   int32 // destinations; -1 for the sink
	a, b, c int32 // sources
	run     int32 // how many instructions from here on are no control instructions
	pc      int32 // index in the PTX function's code; -1 for what decoding added

	guard int32  // slot of the guard predicate; -1 is none
	flip  uint32 // all ones where the guard is negated
	neg   uint32 // all ones where a source predicate is negated
	imm   uint64 // meaning depends on the instruction

	lane           laneFn // one lane's function where there is no loop of its own
	kd, ka, kb, kc class  // classes of operands, for lane

	kind kind
	flow flow
	next *inst // what a wrapper (guard, masked destination) runs

	jump    *jump
	mem     *memOp
	list    []operand // vector operands: destinations, then sources
	mma     *mmaOp
	tiles   []*mmaOp // of wmma: products of 16x8 tiles
	coll    *collective
	bar     *barrierOp
	cluster *clusterOp
	copy    *copyOp
	atom    *atomOp
	fence   *fenceOp
	mbar    *mbarrierOp
	wg      *wgmmaOp
	bulk    *bulkOp
	tensor  *tensorOp
	call    *callSite

	fragments  []int32 // those of the registers written that wgmma uses
	uses, defs []int32 // every register read and written, as unified slots
	rule       undefinedRule
}

// kind says how an instruction's functions treat inactive lanes.
type kind uint8

const (
	kindPure    kind = iota // computes all lanes of one destination, which may be masked afterwards
	kindMasked              // obeys w.mask itself
	kindControl             // obeys w.mask, and may change which lanes run
)

// flow says where control may go after an instruction.
type flow uint8

const (
	flowNext   flow = iota
	flowBranch      // to inst.jump, and on if guarded
	flowLeave       // out of the function, and on if guarded
)

// operand is a register with its class and width.
type operand struct {
	slot int32
	k    class
	bits uint8
}

// jump is where a branch goes and where its lanes meet again.
type jump struct {
	label      *ptx.Label
	target     int32
	reconverge int32 // -1: nowhere inside the function
	labels     []*ptx.Label
	targets    []int32 // of brx.idx
	uniform    bool
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

	fragments int             // registers that wgmma uses
	slots     [numClasses]int // registers of each class, constants first
	const32   []uint32
	const64   []uint64
	constPred []uint32
	shared    [2][]int32        // slots of constants, of 32 and 64 bits, that are addresses of shared memory
	base      [numClasses]int32 // first unified slot of each class

	undefined []undefinedSlot // registers that may be read before they are written
	timed     []bool          // by unified slot: values that follow from a clock; nil if none do
	live      [][]uint64      // for the first instruction of each block: live unified slots; nil elsewhere

	params     []place // where parameters lie
	paramBytes int64
	locals     map[*ptx.Variable]int64 // offsets of .local variables and of .param ones in bodies
	localBytes int64
	spots      []span                      // of those, sorted
	returns    []place                     // of a device function, in its frame
	counter    []counter                   // by PC
	reductions []string                    // of bulk tensor reductions, whose type is known at run time
	tensor     map[int32]bench.TensorCount // by PC, of one instruction
}

// place is where a variable lies in a parameter block or a frame.
type place struct {
	v      *ptx.Variable
	offset int64
}

// undefinedSlot is a register that may be read before it is written.
type undefinedSlot struct {
	slot int32 // unified
	name string
}

// unified is the unified slot of a register.
func (p *program) unified(k class, slot int32) int32 { return p.base[k] + slot }

// total is the number of unified slots.
func (p *program) total() int { return p.slots[0] + p.slots[1] + p.slots[2] }
