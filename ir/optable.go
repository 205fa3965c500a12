package ir

// Slots shared by several operations.
var (
	slotsX   = []Slot{{Name: "x"}}
	slotsXY  = []Slot{{Name: "x"}, {Name: "y"}}
	slotsXYZ = []Slot{{Name: "x"}, {Name: "y"}, {Name: "z"}}

	slotView    = Slot{Name: "view", Kind: SlotView}
	slotIndices = Slot{Name: "indices", Kind: SlotIndices, Lead: "[", Tail: "]"}
	slotLimit   = Slot{Name: "limit", Kind: SlotIndex, Lead: " limit ", Optional: true}
	slotMask    = Slot{Name: "mask", Kind: SlotTile, Lead: " mask ", Optional: true}
	slotFill    = Slot{Name: "fill", Kind: SlotScalar, Lead: " fill ", Optional: true}
	slotPred    = Slot{Name: "pred", Kind: SlotScalar, Lead: " pred ", Optional: true}
	slotValue   = Slot{Name: "value", Kind: SlotTile, Lead: " = "}
	slotRing    = Slot{Name: "ring", Kind: SlotRing}
	slotSlot    = Slot{Name: "slot", Kind: SlotIndex, Lead: "[", Tail: "]"}

	slotsRings = []Slot{{Name: "rings", Kind: SlotRings}, {Name: "slot", Kind: SlotIndex, Lead: " at "}}
	slotsFlag  = []Slot{slotView, slotIndices, {Name: "value", Kind: SlotIndex, Lead: " = "}}
)

var (
	attrsFast   = []attrID{attrFast}
	attrsAxis   = []attrID{attrAxis}
	attrsReduce = []attrID{attrCombine, attrAxis, attrBlocks}
)

// opTable is the one description of the operations. An access is a view, an
// index for each of its dimensions and Dims, the dimension each tile axis spans:
// element (t0, t1, ..) of the tile is the view's element at the indices, with
// t added in the dimensions of Dims. If indices are tiles (all of one length,
// rank 1), tile axis 0 is the row axis: row r uses their element r, and Dims
// are the dimensions of the axes after it. Elements outside the view, rows from
// limit on, and those where mask is false are not touched: a load gives fill (0
// without one), a store drops.
//
// It is filled by init because rules look into it, which the compiler would call
// a cycle.
var opTable [numOpcodes]Info

func init() {
	opTable = [numOpcodes]Info{
		OpInvalid: {Name: "invalid", rule: ruleInvalid},

		OpConst: {Name: "const", Doc: "the attribute's value, in every element", Attrs: []attrID{attrValue}, Results: 1, Typed: true, rule: ruleConst},
		OpDim:   {Name: "dim", Doc: "size of a view's dimension", Slots: []Slot{slotView}, Attrs: attrsAxis, Results: 1, rule: ruleDim},

		OpAdd:  {Name: "add", Doc: "x + y", Slots: slotsXY, Results: 1, Elementwise: true, Commutative: true, rule: ruleSame(number)},
		OpSub:  {Name: "sub", Doc: "x - y", Slots: slotsXY, Results: 1, Elementwise: true, rule: ruleSame(number)},
		OpMul:  {Name: "mul", Doc: "x * y", Slots: slotsXY, Results: 1, Elementwise: true, Commutative: true, rule: ruleSame(number)},
		OpDiv:  {Name: "div", Doc: "x / y; integers round towards 0", Slots: slotsXY, Attrs: attrsFast, Results: 1, Elementwise: true, rule: ruleSame(number)},
		OpRem:  {Name: "rem", Doc: "x - y*(x / y), sign of x", Slots: slotsXY, Results: 1, Elementwise: true, rule: ruleSame(integer)},
		OpMin:  {Name: "min", Doc: "the smaller; of floats the one that is not NaN", Slots: slotsXY, Results: 1, Elementwise: true, Commutative: true, rule: ruleSame(number)},
		OpMax:  {Name: "max", Doc: "the larger; of floats the one that is not NaN", Slots: slotsXY, Results: 1, Elementwise: true, Commutative: true, rule: ruleSame(number)},
		OpAnd:  {Name: "and", Doc: "bitwise and", Slots: slotsXY, Results: 1, Elementwise: true, Commutative: true, rule: ruleSame(bitwise)},
		OpOr:   {Name: "or", Doc: "bitwise or", Slots: slotsXY, Results: 1, Elementwise: true, Commutative: true, rule: ruleSame(bitwise)},
		OpXor:  {Name: "xor", Doc: "bitwise exclusive or", Slots: slotsXY, Results: 1, Elementwise: true, Commutative: true, rule: ruleSame(bitwise)},
		OpShl:  {Name: "shl", Doc: "x << y; y taken as unsigned, from the width on 0", Slots: slotsXY, Results: 1, Elementwise: true, rule: ruleSame(integer)},
		OpShr:  {Name: "shr", Doc: "x >> y, sign copied; y taken as unsigned", Slots: slotsXY, Results: 1, Elementwise: true, rule: ruleSame(integer)},
		OpUshr: {Name: "ushr", Doc: "x >> y, zeros shifted in; y taken as unsigned", Slots: slotsXY, Results: 1, Elementwise: true, rule: ruleSame(integer)},
		OpFma:  {Name: "fma", Doc: "x*y + z, rounded once", Slots: slotsXYZ, Results: 1, Elementwise: true, Commutative: true, rule: ruleSame(float)},
		OpCmp:  {Name: "cmp", Doc: "x pred y", Slots: slotsXY, Attrs: []attrID{attrPred}, Results: 1, Elementwise: true, rule: ruleCmp},
		OpSelect: {Name: "select", Doc: "x where cond, else y", Slots: []Slot{{Name: "cond"}, {Name: "x"}, {Name: "y"}},
			Results: 1, Elementwise: true, rule: ruleSelect},
		OpNeg:   {Name: "neg", Doc: "-x", Slots: slotsX, Results: 1, Elementwise: true, rule: ruleSame(number)},
		OpAbs:   {Name: "abs", Doc: "|x|", Slots: slotsX, Results: 1, Elementwise: true, rule: ruleSame(number)},
		OpNot:   {Name: "not", Doc: "bitwise not", Slots: slotsX, Results: 1, Elementwise: true, rule: ruleSame(bitwise)},
		OpExp2:  {Name: "exp2", Doc: "2 to the x", Slots: slotsX, Attrs: attrsFast, Results: 1, Elementwise: true, rule: ruleSame(float)},
		OpLog2:  {Name: "log2", Doc: "logarithm to base 2", Slots: slotsX, Attrs: attrsFast, Results: 1, Elementwise: true, rule: ruleSame(float)},
		OpRsqrt: {Name: "rsqrt", Doc: "1 / square root", Slots: slotsX, Attrs: attrsFast, Results: 1, Elementwise: true, rule: ruleSame(float)},
		OpSqrt:  {Name: "sqrt", Doc: "square root", Slots: slotsX, Attrs: attrsFast, Results: 1, Elementwise: true, rule: ruleSame(float)},
		OpRcp:   {Name: "rcp", Doc: "1 / x", Slots: slotsX, Attrs: attrsFast, Results: 1, Elementwise: true, rule: ruleSame(float)},
		OpTanh:  {Name: "tanh", Doc: "hyperbolic tangent", Slots: slotsX, Attrs: attrsFast, Results: 1, Elementwise: true, rule: ruleSame(float)},
		OpErf:   {Name: "erf", Doc: "error function", Slots: slotsX, Results: 1, Elementwise: true, rule: ruleSame(float)},
		OpSin:   {Name: "sin", Doc: "sine of x radians", Slots: slotsX, Attrs: attrsFast, Results: 1, Elementwise: true, rule: ruleSame(float)},
		OpCos:   {Name: "cos", Doc: "cosine of x radians", Slots: slotsX, Attrs: attrsFast, Results: 1, Elementwise: true, rule: ruleSame(float)},
		OpFloor: {Name: "floor", Doc: "rounded down to an integer", Slots: slotsX, Results: 1, Elementwise: true, rule: ruleSame(float)},
		OpCeil:  {Name: "ceil", Doc: "rounded up to an integer", Slots: slotsX, Results: 1, Elementwise: true, rule: ruleSame(float)},
		OpRound: {Name: "round", Doc: "rounded to the nearest integer, ties to even", Slots: slotsX, Results: 1, Elementwise: true, rule: ruleSame(float)},
		OpCast: {Name: "cast", Doc: "value as another type: floats to nearest even, float to integer towards 0 and clamped (NaN is 0), integers wrap; saturate clamps",
			Slots: slotsX, Attrs: []attrID{attrSaturate}, Results: 1, Typed: true, Elementwise: true, rule: ruleCast},
		OpBitcast: {Name: "bitcast", Doc: "the bits as another type of the same width", Slots: slotsX, Results: 1, Typed: true, Elementwise: true, rule: ruleBitcast},

		OpIota:      {Name: "iota", Doc: "index along an axis", Attrs: attrsAxis, Results: 1, Typed: true, rule: ruleIota},
		OpSplat:     {Name: "splat", Doc: "a scalar in every element", Slots: []Slot{{Name: "x", Kind: SlotScalar}}, Results: 1, Typed: true, rule: ruleSplat},
		OpBroadcast: {Name: "broadcast", Doc: "axes of size 1 repeated", Slots: slotsX, Results: 1, Typed: true, rule: ruleBroadcast},
		OpExpand:    {Name: "expand", Doc: "a new axis of size 1 before axis", Slots: slotsX, Attrs: attrsAxis, Results: 1, rule: ruleExpand},
		OpReshape:   {Name: "reshape", Doc: "the same elements in row-major order", Slots: slotsX, Results: 1, Typed: true, rule: ruleReshape},
		OpTranspose: {Name: "transpose", Doc: "axes permuted", Slots: slotsX, Attrs: []attrID{attrPerm}, Results: 1, rule: ruleTranspose},
		OpJoin:      {Name: "join", Doc: "x and y side by side in a new last axis of size 2", Slots: slotsXY, Results: 1, rule: ruleJoin},
		OpSplit:     {Name: "split", Doc: "the two halves of a last axis of size 2", Slots: slotsX, Results: 2, rule: ruleSplit},

		OpReduce: {Name: "reduce", Doc: "elements along an axis combined; the axis goes", Slots: slotsX, Attrs: attrsReduce, Results: 1, rule: ruleReduce},
		OpScan:   {Name: "scan", Doc: "inclusive running combination along an axis", Slots: slotsX, Attrs: []attrID{attrCombine, attrAxis, attrReverse}, Results: 1, rule: ruleScan},
		OpDot: {Name: "dot", Doc: "x[M,K] y[K,N] + acc[M,N]; scale_x[M,G] and scale_y[G,N] scale the G groups of K",
			Slots: []Slot{{Name: "x"}, {Name: "y"}, {Name: "acc"},
				{Name: "scale_x", Lead: " scale_x ", Optional: true}, {Name: "scale_y", Lead: " scale_y ", Optional: true}},
			Attrs: []attrID{attrPrecision}, Results: 1, rule: ruleDot},
		OpRandom16: {Name: "random16", Doc: "Philox4x32-7 draw in 0..65535 of key seed, counter (col>>3, row, plane, offset), number col&7",
			Slots:   []Slot{{Name: "seed", Kind: SlotScalar}, {Name: "offset", Kind: SlotIndex}, {Name: "plane", Kind: SlotIndex}, {Name: "row"}, {Name: "col"}},
			Results: 1, rule: ruleRandom16},

		OpLoad: {Name: "load", Doc: "elements of a view",
			Slots: []Slot{slotView, slotIndices, slotLimit, slotMask, slotFill}, Attrs: []attrID{attrDims},
			Effect: ReadsGlobal, Results: 1, Typed: true, rule: ruleLoad},
		OpStore: {Name: "store", Doc: "elements of a view set",
			Slots: []Slot{slotView, slotIndices, slotValue, slotLimit, slotMask}, Attrs: []attrID{attrDims, attrBulk, attrBlocks},
			Effect: WritesGlobal, rule: ruleStore},
		OpAtomic: {Name: "atomic", Doc: "elements of a view combined with the value's, each atomically; gives what was there (0 where not touched)",
			Slots: []Slot{slotView, slotIndices, slotValue, slotLimit, slotMask}, Attrs: []attrID{attrCombine, attrDims, attrScope, attrBulk},
			Effect: ReadsGlobal | WritesGlobal, Results: 1, rule: ruleAtomic},
		OpSubview: {Name: "subview", Doc: "the part of a view from the indices on, extents long, cut to the view; indices are in 0..size, and in 0..size-1 for dimensions not kept",
			Slots: []Slot{slotView, slotIndices, {Name: "extents", Kind: SlotExtents, Lead: " extent [", Tail: "]"}}, Attrs: []attrID{attrDims},
			Results: 1, rule: ruleSubview},
		OpAwait: {Name: "await", Doc: "waits until the element equals value; what its signaller wrote before is then visible",
			Slots: slotsFlag, Attrs: []attrID{attrScope}, Effect: ReadsGlobal | Synchronises, rule: ruleFlag},
		OpSignal: {Name: "signal", Doc: "sets the element to value after everything written before",
			Slots: slotsFlag, Attrs: []attrID{attrScope}, Effect: WritesGlobal | Synchronises, rule: ruleFlag},

		OpFor: {Name: "for", Doc: "body for index lo, lo+step, .. below hi, with carried values",
			Slots: []Slot{{Name: "lo", Kind: SlotIndex}, {Name: "hi", Kind: SlotIndex}, {Name: "step", Kind: SlotIndex}, {Name: "init", Kind: SlotAny}},
			Attrs: []attrID{attrStages, attrUnroll, attrSpecialise, attrPingpong, attrBlocks}, Effect: Control, Results: -1, Regions: 1, rule: ruleFor},
		OpIf: {Name: "if", Doc: "the first region if cond, else the second", Slots: []Slot{{Name: "cond", Kind: SlotScalar}},
			Effect: Control, Results: -1, Regions: 2, rule: ruleIf},
		OpYield: {Name: "yield", Doc: "ends a region with its values", Slots: []Slot{{Name: "values", Kind: SlotAny}}, Effect: Control, rule: ruleYield},

		OpRing: {Name: "ring", Doc: "a ring of shared buffers, undefined at first; index k means buffer k mod depth", Attrs: []attrID{attrBlocks, attrThreads}, Results: 1, Typed: true, rule: ruleRing},
		OpAcquire: {Name: "acquire", Doc: "waits until the buffers are free for index slot", Slots: slotsRings,
			Effect: Synchronises | WritesShared, rule: ruleRings},
		OpCopy: {Name: "copy", Doc: "starts an asynchronous copy into a buffer; with pred false none",
			Slots: []Slot{slotView, slotIndices, {Name: "ring", Kind: SlotRing, Lead: " -> "}, slotSlot, slotLimit, slotMask, slotFill, slotPred}, Attrs: []attrID{attrDims},
			Effect: ReadsGlobal | WritesShared, rule: ruleCopy},
		OpWrite: {Name: "write", Doc: "a buffer set to a tile", Slots: []Slot{slotRing, slotSlot, slotValue}, Effect: WritesShared, rule: ruleWrite},
		OpCommit: {Name: "commit", Doc: "closes a group of the copies started since the last commit, index slot of the rings", Slots: slotsRings,
			Effect: WritesShared, rule: ruleRings},
		OpWait: {Name: "wait", Doc: "waits until all groups but the last pending have landed, which must cover index slot of the rings", Slots: slotsRings,
			Attrs: []attrID{attrPending}, Effect: Synchronises | WritesShared, rule: ruleRings},
		OpRead: {Name: "read", Doc: "a buffer as a tile", Slots: []Slot{slotRing, slotSlot}, Effect: ReadsShared, Results: 1, rule: ruleRead},
		OpRelease: {Name: "release", Doc: "index slot of the rings will not be read any more", Slots: slotsRings,
			Effect: Synchronises | WritesShared, rule: ruleRings},
		OpBarrier: {Name: "barrier", Doc: "all warps of the block meet", Effect: Synchronises, rule: ruleNothing},
		OpConvert: {Name: "convert", Doc: "the same tile in another layout", Slots: slotsX, Results: 1, Typed: true, rule: ruleConvert},
		OpRoles: {Name: "roles", Doc: "regions run at the same time by different warps, talking through rings only", Attrs: []attrID{attrRoles},
			Effect: Control | Synchronises, Regions: -1, rule: ruleRoles},
	}
	for _, c := range Opcodes() {
		opByName[c.String()] = c
	}
}
