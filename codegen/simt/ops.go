package simt

import "fmt"

// Op is an operation of the thread IR: a row of the table below.
type Op uint8

// The operations.
const (
	OpInvalid Op = iota

	// Values that stand in no block.
	OpConst      // Imm: the bits (integers sign-extended)
	OpParam      // Imm: parameter's number
	OpSpecial    // Special: which register
	OpSharedBase // 32-bit shared address of the kernel's shared memory

	// Integers, and floats where the type says so.
	OpAdd
	OpSub
	OpMul    // low half
	OpMulHi  // high half, signed
	OpMulHiU // high half, unsigned
	OpMulWide
	OpMulWideU
	OpMad // a*b+c, low half
	OpMadWide
	OpMadWideU
	OpDiv
	OpDivU
	OpRem
	OpRemU
	OpMin
	OpMax
	OpMinU
	OpMaxU
	OpNeg
	OpAbs
	OpAnd
	OpOr
	OpXor
	OpNot
	OpLop3 // Imm: truth table, a=0xF0 b=0xCC c=0xAA
	OpShl
	OpShr  // arithmetic
	OpShrU // logical
	OpShf  // funnel shift left of hi:lo: (lo, hi, n)
	OpBfe  // unsigned bit field: (a, position, length)
	OpPrmt // byte permutation: (a, b, selector)
	OpPopc
	OpClz
	OpBrev

	// Predicates.
	OpCmp
	OpSelect // (predicate, then, otherwise)

	// Floats.
	OpFma
	OpEx2
	OpLg2
	OpRsqrt
	OpRcp
	OpSqrt
	OpTanh
	OpSin
	OpCos

	// Conversions. Type is the result's type.
	OpSext
	OpZext
	OpTrunc
	OpIntToFloat
	OpFloatToInt
	OpFloatCvt  // between float widths
	OpCvtPack   // (hi, lo) of f32 to f16x2 or bf16x2
	OpCvtTF32   // f32 rounded to tf32, still in 32 bits
	OpPackFP8   // Mem tells which: (hi, lo) of f32, or one f16x2, to two 8-bit floats
	OpUnpackFP8 // two 8-bit floats to f16x2
	OpBitcast   // same width, no instruction
	OpPack      // (lo, hi): halves to a whole
	OpUnpack    // a whole to (lo, hi)

	// Between the lanes of a warp.
	OpShfl // (value, lane or mask)
	OpVote // Atom: and = all, or = any
	OpBallot
	OpRedux // warp reduction of integers: Atom
	OpMatch // lanes with the same value
	OpElect // one lane of the warp

	// Memory.
	OpLd
	OpSt
	OpAtom // returns the old value
	OpRed  // returns nothing
	OpCpAsync
	OpCpAsyncCommit
	OpCpAsyncWait // Imm: groups that may still be in flight
	OpLdMatrix
	OpStMatrix
	OpStAt // (shared address, block of the cluster, value): stores where the address is in that block
	OpPrefetch

	// Tensor cores.
	OpMma
	OpWgmmaFence  // operands and results: registers that wgmma will use
	OpWgmma       // Imm: its WgmmaShape
	OpWgmmaCommit // closes a group
	OpWgmmaWait   // Imm: groups that may still be in flight

	// Copies by a tensor map, and what waits for them.
	OpMbarInit     // Imm: arrivals
	OpMbarArrive   // counts one
	OpMbarExpect   // Imm: bytes
	OpMbarWait     // (mbarrier, parity)
	OpMbarArriveAt // (mbarrier, block of the cluster): counts one there
	OpMbarCopied   // counts one when the thread's copies so far by OpCpAsync have landed
	OpPolicy       // Imm: its L2Policy
	OpTensorLoad   // (shared, tensor map, mbarrier, coordinates..., policy if Hinted); Imm: blocks of the cluster, a bit each, or 0
	OpTensorStore  // (shared, tensor map, coordinates..., policy if Hinted); Imm: bytes of its box
	OpBulkCommit   // closes a group of the thread's tensor stores
	OpBulkWait     // Imm: groups that may still read shared memory
	OpProxyFence
	OpMaxRegisters // Imm: registers of each thread

	// Tensor maps in memory.
	OpMapSet     // (shared, value); Imm: its MapField
	OpMapPublish // (global, shared): copies a tensor map for the warp, and releases it to copies
	OpMapAcquire // (global): copies by the thread see the tensor map there as it was released

	// Between launches of a stream.
	OpGridLaunch // the next grid may start, once all blocks have come here or are over
	OpGridWait   // for all that the grids before have done

	// Order.
	OpBar       // Imm: threads, 0 for all; arg: barrier's number
	OpBarArrive // Imm: threads
	OpWarpSync
	OpFence
	OpClusterArrive
	OpClusterWait

	// Control.
	OpFor  // (lo, hi, step, carried...): while i < hi, signed
	OpLoop // (carried...): do ... while Yield[0]
	OpIf   // (predicate)
	OpReturn
	OpTrap

	numOps
)

// Effect says what an operation does beyond computing its results.
type Effect uint8

// The effects. Without any, an operation is pure.
const (
	Reads      Effect = 1 << iota // reads memory that may change
	Writes                        // writes memory
	Orders                        // orders memory accesses of threads
	Convergent                    // all lanes of the warp must execute it together
	Control                       // holds blocks, or leaves the kernel
)

// Pipe is the unit that executes an operation, for counting.
type Pipe uint8

// The units.
const (
	PipeNone   Pipe = iota
	PipeALU         // integer and logic, min, max, compare, select
	PipeFMA         // float add, mul, fma, and integer multiply
	PipeMUFU        // ex2, lg2, rsqrt, rcp, tanh, sin, cos
	PipeCvt         // conversions at a quarter rate
	PipeFP64        // f64
	PipeTensor      // mma
	PipeLSU         // memory, shuffles
	PipeCtrl        // barriers, branches

	// NumPipes is how many units there are.
	NumPipes = int(PipeCtrl) + 1
)

// OpInfo is a row of the table of operations.
type OpInfo struct {
	Name   string
	Args   string  // a letter an operand, see checkArg; "*" ends an open list
	Result string  // a letter a result; "" none
	Types  TypeSet // what Type may be
	Effect Effect
	Pipe   Pipe
	PTX    string // opcode with $-marks, see Instr.Opcode
	C      string // CUDA C's operator or function, for the types it has one; else a helper wraps the PTX
	Ver    int    // least PTX version times ten, 0 for any
	SM     int    // least target, 0 for any
}

// Specific tells whether an operation needs a target whose name ends in an a, which no
// other GPU runs.
func (op Op) Specific() bool {
	switch op {
	case OpWgmmaFence, OpWgmma, OpWgmmaCommit, OpWgmmaWait, OpMaxRegisters, OpMapSet:
		return true
	}
	return false
}

// Lacks names the target that an operation needs where the module's has not got it; ""
// where it has.
func (m *Module) Lacks(op Op) string {
	switch own := fmt.Sprintf("sm_%da", m.SM); {
	case !op.Specific() || m.Arch == "sm_90a" || op == OpMapSet && m.Arch == own:
		return ""
	case op == OpMapSet && m.SM >= 90:
		return own
	}
	return "sm_90a"
}

// Specific tells whether the kernel needs a target whose name ends in an a.
func (k *Kernel) Specific() bool {
	found := false
	Walk(k.Body, func(in *Instr) { found = found || in.Op.Specific() })
	return found
}

var ops = [numOps]OpInfo{
	OpConst:      {Name: "const", Result: "T", Types: anyVal},
	OpParam:      {Name: "param", Result: "T", Types: anyVal},
	OpSpecial:    {Name: "special", Result: "T", Types: setOf(I32, I64)},
	OpSharedBase: {Name: "shared_base", Result: "T", Types: setOf(I32)},

	OpAdd:      {Name: "add", Args: "To", Result: "T", Types: intsPtr | floats, Pipe: PipeALU, PTX: "add$r$z.$s", C: "+"},
	OpSub:      {Name: "sub", Args: "To", Result: "T", Types: intsPtr | floats, Pipe: PipeALU, PTX: "sub$r$z.$s", C: "-"},
	OpMul:      {Name: "mul", Args: "TT", Result: "T", Types: ints | floats, Pipe: PipeFMA, PTX: "mul$l$z.$s", C: "*"},
	OpMulHi:    {Name: "mulhi", Args: "TT", Result: "T", Types: ints, Pipe: PipeFMA, PTX: "mul.hi.$s", C: "__mulhi"},
	OpMulHiU:   {Name: "mulhiu", Args: "TT", Result: "T", Types: ints, Pipe: PipeFMA, PTX: "mul.hi.$u", C: "__umulhi"},
	OpMulWide:  {Name: "mulwide", Args: "ii", Result: "T", Types: setOf(I64), Pipe: PipeFMA, PTX: "mul.wide.s32"},
	OpMulWideU: {Name: "mulwideu", Args: "ii", Result: "T", Types: setOf(I64), Pipe: PipeFMA, PTX: "mul.wide.u32"},
	OpMad:      {Name: "mad", Args: "TTT", Result: "T", Types: ints, Pipe: PipeFMA, PTX: "mad.lo.$s"},
	OpMadWide:  {Name: "madwide", Args: "iiT", Result: "T", Types: setOf(I64, Ptr), Pipe: PipeFMA, PTX: "mad.wide.s32"},
	OpMadWideU: {Name: "madwideu", Args: "iiT", Result: "T", Types: setOf(I64, Ptr), Pipe: PipeFMA, PTX: "mad.wide.u32"},
	OpDiv:      {Name: "div", Args: "TT", Result: "T", Types: ints | f32f64, Pipe: PipeALU, PTX: "div$d$z.$s", C: "/"},
	OpDivU:     {Name: "divu", Args: "TT", Result: "T", Types: ints, Pipe: PipeALU, PTX: "div.$u", C: "/"},
	OpRem:      {Name: "rem", Args: "TT", Result: "T", Types: ints, Pipe: PipeALU, PTX: "rem.$s", C: "%"},
	OpRemU:     {Name: "remu", Args: "TT", Result: "T", Types: ints, Pipe: PipeALU, PTX: "rem.$u", C: "%"},
	OpMin:      {Name: "min", Args: "TT", Result: "T", Types: ints | floats, Pipe: PipeALU, PTX: "min$z$n.$s", C: "min"},
	OpMax:      {Name: "max", Args: "TT", Result: "T", Types: ints | floats, Pipe: PipeALU, PTX: "max$z$n.$s", C: "max"},
	OpMinU:     {Name: "minu", Args: "TT", Result: "T", Types: ints, Pipe: PipeALU, PTX: "min.$u", C: "min"},
	OpMaxU:     {Name: "maxu", Args: "TT", Result: "T", Types: ints, Pipe: PipeALU, PTX: "max.$u", C: "max"},
	OpNeg:      {Name: "neg", Args: "T", Result: "T", Types: ints | floats, Pipe: PipeALU, PTX: "neg.$s", C: "-"},
	OpAbs:      {Name: "abs", Args: "T", Result: "T", Types: ints | floats, Pipe: PipeALU, PTX: "abs.$s", C: "fabs"},
	OpAnd:      {Name: "and", Args: "TT", Result: "T", Types: bitsTypes, Pipe: PipeALU, PTX: "and.$b", C: "&"},
	OpOr:       {Name: "or", Args: "TT", Result: "T", Types: bitsTypes, Pipe: PipeALU, PTX: "or.$b", C: "|"},
	OpXor:      {Name: "xor", Args: "TT", Result: "T", Types: bitsTypes, Pipe: PipeALU, PTX: "xor.$b", C: "^"},
	OpNot:      {Name: "not", Args: "T", Result: "T", Types: bitsTypes, Pipe: PipeALU, PTX: "not.$b", C: "~"},
	OpLop3:     {Name: "lop3", Args: "TTT", Result: "T", Types: setOf(I32), Pipe: PipeALU, PTX: "lop3.b32"},
	OpShl:      {Name: "shl", Args: "Ti", Result: "T", Types: ints, Pipe: PipeALU, PTX: "shl.$b", C: "<<"},
	OpShr:      {Name: "shr", Args: "Ti", Result: "T", Types: ints, Pipe: PipeALU, PTX: "shr.$s", C: ">>"},
	OpShrU:     {Name: "shru", Args: "Ti", Result: "T", Types: ints, Pipe: PipeALU, PTX: "shr.$u", C: ">>"},
	OpShf:      {Name: "shf", Args: "iii", Result: "T", Types: setOf(I32), Pipe: PipeALU, PTX: "shf.l.wrap.b32"},
	OpBfe:      {Name: "bfe", Args: "Tii", Result: "T", Types: ints, Pipe: PipeALU, PTX: "bfe.$u"},
	OpPrmt:     {Name: "prmt", Args: "iii", Result: "T", Types: setOf(I32), Pipe: PipeALU, PTX: "prmt.b32"},
	OpPopc:     {Name: "popc", Args: "n", Result: "i", Types: ints, Pipe: PipeMUFU, PTX: "popc.$b"},
	OpClz:      {Name: "clz", Args: "n", Result: "i", Types: ints, Pipe: PipeMUFU, PTX: "clz.$b"},
	OpBrev:     {Name: "brev", Args: "T", Result: "T", Types: ints, Pipe: PipeMUFU, PTX: "brev.$b"},

	OpCmp:    {Name: "cmp", Args: "TT", Result: "p", Types: anyReg, Pipe: PipeALU, PTX: "setp.$c$z.$k"},
	OpSelect: {Name: "select", Args: "pTT", Result: "T", Types: anyReg, Pipe: PipeALU, PTX: "selp.$b"},

	OpFma:   {Name: "fma", Args: "TTT", Result: "T", Types: floats, Pipe: PipeFMA, PTX: "fma.rn$z.$s", C: "fma"},
	OpEx2:   {Name: "ex2", Args: "T", Result: "T", Types: setOf(F32, F16, F16x2, BF16, BF16x2), Pipe: PipeMUFU, PTX: "ex2.approx$z.$s"},
	OpLg2:   {Name: "lg2", Args: "T", Result: "T", Types: setOf(F32), Pipe: PipeMUFU, PTX: "lg2.approx$z.$s"},
	OpRsqrt: {Name: "rsqrt", Args: "T", Result: "T", Types: setOf(F32), Pipe: PipeMUFU, PTX: "rsqrt.approx$z.$s"},
	OpRcp:   {Name: "rcp", Args: "T", Result: "T", Types: f32f64, Pipe: PipeMUFU, PTX: "rcp$q$z.$s"},
	OpSqrt:  {Name: "sqrt", Args: "T", Result: "T", Types: f32f64, Pipe: PipeMUFU, PTX: "sqrt$q$z.$s"},
	OpTanh:  {Name: "tanh", Args: "T", Result: "T", Types: setOf(F32, F16, F16x2, BF16, BF16x2), Pipe: PipeMUFU, PTX: "tanh.approx.$s", Ver: 70, SM: 75},
	OpSin:   {Name: "sin", Args: "T", Result: "T", Types: setOf(F32), Pipe: PipeMUFU, PTX: "sin.approx$z.$s"},
	OpCos:   {Name: "cos", Args: "T", Result: "T", Types: setOf(F32), Pipe: PipeMUFU, PTX: "cos.approx$z.$s"},

	OpSext:       {Name: "sext", Args: "n", Result: "T", Types: ints, Pipe: PipeALU, PTX: "cvt.$s.$1s"},
	OpZext:       {Name: "zext", Args: "n", Result: "T", Types: ints, Pipe: PipeALU, PTX: "cvt.$u.$1u"},
	OpTrunc:      {Name: "trunc", Args: "n", Result: "T", Types: setOf(I16, I32), Pipe: PipeALU, PTX: "cvt.$u.$1u"},
	OpIntToFloat: {Name: "itof", Args: "n", Result: "T", Types: floats, Pipe: PipeCvt, PTX: "cvt.$m.$s.$1j"},
	OpFloatToInt: {Name: "ftoi", Args: "f", Result: "T", Types: setOf(I16, I32, I64), Pipe: PipeCvt, PTX: "cvt.$mi.$j.$1s"},
	OpFloatCvt:   {Name: "fcvt", Args: "f", Result: "T", Types: floats, Pipe: PipeCvt, PTX: "cvt$v$z.$s.$1s"},
	OpCvtPack:    {Name: "cvtpack", Args: "ff", Result: "T", Types: setOf(F16x2, BF16x2), Pipe: PipeCvt, PTX: "cvt.$m.$s.f32", Ver: 70, SM: 80},
	OpCvtTF32:    {Name: "tf32", Args: "f", Result: "T", Types: setOf(F32, I32), Pipe: PipeALU, PTX: "cvt.$m.tf32.f32", Ver: 70, SM: 80},
	OpPackFP8:    {Name: "packfp8", Args: "*", Result: "T", Types: setOf(I16), Pipe: PipeCvt, PTX: "cvt.rn.satfinite.$8.$1s", Ver: 81, SM: 89},
	OpUnpackFP8:  {Name: "unpackfp8", Args: "h", Result: "T", Types: setOf(F16x2), Pipe: PipeCvt, PTX: "cvt.rn.f16x2.$8", Ver: 81, SM: 89},
	OpBitcast:    {Name: "bitcast", Args: "b", Result: "T", Types: anyReg},
	OpPack:       {Name: "pack", Args: "uu", Result: "T", Types: setOf(I32, I64, F16x2, BF16x2, F64), Pipe: PipeALU, PTX: "mov.$b"},
	OpUnpack:     {Name: "unpack", Args: "T", Result: "uu", Types: setOf(I32, I64, F16x2, BF16x2, F64), Pipe: PipeALU, PTX: "mov.$b"},

	OpShfl:   {Name: "shfl", Args: "Ti", Result: "T", Types: any32, Effect: Convergent, Pipe: PipeLSU, PTX: "shfl.sync.$h.b32"},
	OpVote:   {Name: "vote", Args: "p", Result: "p", Types: setOf(Pred), Effect: Convergent, Pipe: PipeALU, PTX: "vote.sync.$V.pred"},
	OpBallot: {Name: "ballot", Args: "p", Result: "T", Types: setOf(I32), Effect: Convergent, Pipe: PipeALU, PTX: "vote.sync.ballot.b32"},
	OpRedux:  {Name: "redux", Args: "T", Result: "T", Types: setOf(I32), Effect: Convergent, Pipe: PipeALU, PTX: "redux.sync.$o.$a", Ver: 70, SM: 80},
	OpMatch:  {Name: "match", Args: "n", Result: "i", Types: ints, Effect: Convergent, Pipe: PipeALU, PTX: "match.any.sync.$b", SM: 70},
	OpElect:  {Name: "elect", Result: "p", Types: setOf(Pred), Effect: Convergent, Pipe: PipeALU, PTX: "elect.sync", Ver: 80, SM: 90},

	OpLd:            {Name: "ld", Args: "a*", Result: "*", Types: anyReg, Effect: Reads, Pipe: PipeLSU},
	OpSt:            {Name: "st", Args: "a*", Types: anyReg, Effect: Writes, Pipe: PipeLSU},
	OpAtom:          {Name: "atom", Args: "a*", Result: "T", Types: anyReg, Effect: Reads | Writes, Pipe: PipeLSU},
	OpRed:           {Name: "red", Args: "a*", Types: anyReg, Effect: Writes, Pipe: PipeLSU},
	OpCpAsync:       {Name: "cpasync", Args: "sg*", Types: setOf(I32), Effect: Reads | Writes, Pipe: PipeLSU, Ver: 70, SM: 80},
	OpCpAsyncCommit: {Name: "cpasync_commit", Types: setOf(Void), Effect: Orders, Pipe: PipeLSU, PTX: "cp.async.commit_group", Ver: 70, SM: 80},
	OpCpAsyncWait:   {Name: "cpasync_wait", Types: setOf(Void), Effect: Orders, Pipe: PipeLSU, PTX: "cp.async.wait_group", Ver: 70, SM: 80},
	OpLdMatrix:      {Name: "ldmatrix", Args: "s", Result: "*", Types: any32, Effect: Reads | Convergent, Pipe: PipeLSU, Ver: 65, SM: 75},
	OpStMatrix:      {Name: "stmatrix", Args: "s*", Types: any32, Effect: Writes | Convergent, Pipe: PipeLSU, Ver: 78, SM: 90},
	OpStAt:          {Name: "st_at", Args: "siT", Types: anyReg, Effect: Writes, Pipe: PipeLSU, PTX: "st.shared::cluster.$b", Ver: 78, SM: 90},
	OpPrefetch:      {Name: "prefetch", Args: "g", Types: setOf(Ptr), Effect: Orders, Pipe: PipeLSU, PTX: "prefetch.global.L2"},

	OpMma:         {Name: "mma", Args: "*", Result: "*", Types: anyReg, Effect: Convergent, Pipe: PipeTensor},
	OpWgmmaFence:  {Name: "wgmma_fence", Args: "*", Result: "*", Types: setOf(Void), Effect: Orders | Convergent, Pipe: PipeTensor, PTX: "wgmma.fence.sync.aligned", Ver: 80, SM: 90},
	OpWgmma:       {Name: "wgmma", Args: "*", Result: "*", Types: anyReg, Effect: Reads | Orders | Convergent, Pipe: PipeTensor, Ver: 80, SM: 90},
	OpWgmmaCommit: {Name: "wgmma_commit", Types: setOf(Void), Effect: Orders | Convergent, Pipe: PipeTensor, PTX: "wgmma.commit_group.sync.aligned", Ver: 80, SM: 90},
	OpWgmmaWait:   {Name: "wgmma_wait", Args: "*", Result: "*", Types: setOf(Void), Effect: Orders | Convergent, Pipe: PipeTensor, PTX: "wgmma.wait_group.sync.aligned", Ver: 80, SM: 90},

	OpMbarInit:     {Name: "mbar_init", Args: "s", Types: setOf(Void), Effect: Writes | Orders, Pipe: PipeLSU, PTX: "mbarrier.init.shared.b64", Ver: 70, SM: 80},
	OpMbarArrive:   {Name: "mbar_arrive", Args: "s", Types: setOf(Void), Effect: Orders, Pipe: PipeLSU, PTX: "mbarrier.arrive.shared.b64", Ver: 70, SM: 80},
	OpMbarExpect:   {Name: "mbar_expect", Args: "s", Types: setOf(Void), Effect: Orders, Pipe: PipeLSU, PTX: "mbarrier.arrive.expect_tx.shared.b64", Ver: 80, SM: 90},
	OpMbarWait:     {Name: "mbar_wait", Args: "si", Types: setOf(Void), Effect: Orders, Pipe: PipeLSU, PTX: "mbarrier.try_wait.parity.shared.b64", Ver: 78, SM: 90},
	OpMbarArriveAt: {Name: "mbar_arrive_at", Args: "si", Types: setOf(Void), Effect: Orders, Pipe: PipeLSU, PTX: "mbarrier.arrive.release.cluster.shared::cluster.b64", Ver: 80, SM: 90},
	OpMbarCopied:   {Name: "mbar_copied", Args: "s", Types: setOf(Void), Effect: Orders, Pipe: PipeLSU, PTX: "cp.async.mbarrier.arrive.noinc.shared.b64", Ver: 70, SM: 80},
	OpPolicy:       {Name: "policy", Result: "T", Types: setOf(I64), Pipe: PipeALU, PTX: "createpolicy.fractional.L2::$e.b64", Ver: 74, SM: 80},
	OpTensorLoad:   {Name: "tensor_load", Args: "sgsi*", Types: setOf(Void), Effect: Reads | Writes, Pipe: PipeLSU, Ver: 80, SM: 90},
	OpTensorStore:  {Name: "tensor_store", Args: "sgi*", Types: setOf(Void), Effect: Reads | Writes, Pipe: PipeLSU, Ver: 80, SM: 90},
	OpBulkCommit:   {Name: "bulk_commit", Types: setOf(Void), Effect: Orders, Pipe: PipeLSU, PTX: "cp.async.bulk.commit_group", Ver: 80, SM: 90},
	OpBulkWait:     {Name: "bulk_wait", Types: setOf(Void), Effect: Orders, Pipe: PipeLSU, PTX: "cp.async.bulk.wait_group.read", Ver: 80, SM: 90},
	OpProxyFence:   {Name: "proxy_fence", Types: setOf(Void), Effect: Orders, Pipe: PipeLSU, PTX: "fence.proxy.async.shared::cta", Ver: 80, SM: 90},
	OpMaxRegisters: {Name: "max_registers", Types: setOf(Void), Effect: Orders | Convergent, Pipe: PipeCtrl, PTX: "setmaxnreg.$R.sync.aligned.u32", Ver: 80, SM: 90},

	OpMapSet:     {Name: "map_set", Args: "sT", Types: setOf(I32, I64, Ptr), Effect: Reads | Writes, Pipe: PipeLSU, Ver: 85, SM: 90},
	OpMapPublish: {Name: "map_publish", Args: "gs", Types: setOf(Void), Effect: Reads | Writes | Orders | Convergent, Pipe: PipeLSU, PTX: "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned", Ver: 83, SM: 90},
	OpMapAcquire: {Name: "map_acquire", Args: "g", Types: setOf(Void), Effect: Orders, Pipe: PipeLSU, PTX: "fence.proxy.tensormap::generic.acquire.gpu", Ver: 83, SM: 90},

	OpGridLaunch: {Name: "grid_launch", Types: setOf(Void), Effect: Orders, Pipe: PipeCtrl, PTX: "griddepcontrol.launch_dependents", Ver: 78, SM: 90},
	OpGridWait:   {Name: "grid_wait", Types: setOf(Void), Effect: Orders, Pipe: PipeCtrl, PTX: "griddepcontrol.wait", Ver: 78, SM: 90},

	OpBar:           {Name: "bar", Args: "i", Types: setOf(Void), Effect: Orders | Convergent, Pipe: PipeCtrl, PTX: "bar.sync"},
	OpBarArrive:     {Name: "bar_arrive", Args: "i", Types: setOf(Void), Effect: Orders | Convergent, Pipe: PipeCtrl, PTX: "bar.arrive"},
	OpWarpSync:      {Name: "warpsync", Types: setOf(Void), Effect: Orders | Convergent, Pipe: PipeCtrl, PTX: "bar.warp.sync"},
	OpClusterArrive: {Name: "cluster_arrive", Types: setOf(Void), Effect: Orders | Convergent, Pipe: PipeCtrl, PTX: "barrier.cluster.arrive.release", Ver: 80, SM: 90},
	OpClusterWait:   {Name: "cluster_wait", Types: setOf(Void), Effect: Orders | Convergent, Pipe: PipeCtrl, PTX: "barrier.cluster.wait.acquire", Ver: 80, SM: 90},

	OpFence: {Name: "fence", Types: setOf(Void), Effect: Orders, Pipe: PipeCtrl, PTX: "fence.acq_rel.$S", SM: 70},

	OpFor:    {Name: "for", Args: "iii*", Result: "*", Types: setOf(Void), Effect: Control, Pipe: PipeCtrl},
	OpLoop:   {Name: "loop", Args: "*", Result: "*", Types: setOf(Void), Effect: Control, Pipe: PipeCtrl},
	OpIf:     {Name: "if", Args: "p", Result: "*", Types: setOf(Void), Effect: Control, Pipe: PipeCtrl},
	OpReturn: {Name: "return", Types: setOf(Void), Effect: Control, Pipe: PipeCtrl, PTX: "ret"},
	OpTrap:   {Name: "trap", Types: setOf(Void), Effect: Control, Pipe: PipeCtrl, PTX: "trap"},
}

func (p Pipe) String() string {
	return [...]string{"none", "alu", "fma", "mufu", "cvt", "fp64", "tensor", "lsu", "ctrl"}[p]
}

// Info returns the operation's row.
func (op Op) Info() *OpInfo { return &ops[op] }

func (op Op) String() string {
	if op < numOps && ops[op].Name != "" {
		return ops[op].Name
	}
	return "op?"
}

// Pure tells whether the instruction may be removed, repeated, merged with an
// equal one and moved wherever its operands exist. A load through the
// read-only path counts as pure unless it is guarded.
func (in *Instr) Pure() bool {
	if in.Guard != nil {
		return false
	}
	return ops[in.Op].Effect == 0
}

// Removable tells whether the instruction has no effect but its results.
func (in *Instr) Removable() bool {
	e := ops[in.Op].Effect
	return e&(Writes|Orders|Control) == 0 && in.Flags&Volatile == 0 && in.Op != OpElect
}
