package simt

// Cmp is a comparison. The plain ones are signed for integers (not for Ptr) and
// ordered (false on NaN) for floats; those ending in U are unsigned for
// integers and unordered (true on NaN) for floats.
type Cmp uint8

// The comparisons.
const (
	EQ Cmp = iota
	NE
	LT
	LE
	GT
	GE
	LTU
	LEU
	GTU
	GEU
)

var cmpNames = [...]string{"eq", "ne", "lt", "le", "gt", "ge", "ltu", "leu", "gtu", "geu"}

func (c Cmp) String() string { return cmpNames[c] }

// Swapped is the comparison with its operands exchanged.
func (c Cmp) Swapped() Cmp {
	return [...]Cmp{EQ, NE, GT, GE, LT, LE, GTU, GEU, LTU, LEU}[c]
}

// Negated is the opposite comparison of integers.
func (c Cmp) Negated() Cmp {
	return [...]Cmp{NE, EQ, GE, GT, LE, LT, GEU, GTU, LEU, LTU}[c]
}

// Special is a special register.
type Special uint8

// The special registers.
const (
	TidX Special = iota
	CtaX
	CtaY
	CtaZ
	NCtaX
	NCtaY
	NCtaZ
	LaneID
	ClusterCtaRank
	numSpecials
)

var specialNames = [numSpecials]string{
	"tid.x", "ctaid.x", "ctaid.y", "ctaid.z", "nctaid.x", "nctaid.y", "nctaid.z", "laneid", "cluster_ctarank",
}

func (s Special) String() string { return specialNames[s] }

// Round is a rounding mode of a conversion.
type Round uint8

// The rounding modes.
const (
	RN  Round = iota // to nearest, ties to even
	RZ               // towards zero
	RM               // towards minus infinity
	RP               // towards plus infinity
	RNA              // to nearest, ties away from zero (tf32)
)

var roundNames = [...]string{"rn", "rz", "rm", "rp", "rna"}

func (r Round) String() string { return roundNames[r] }

// Space is a memory space.
type Space uint8

// The spaces.
const (
	Global Space = iota // 64-bit address
	Shared              // 32-bit address
)

func (s Space) String() string {
	if s == Shared {
		return "shared"
	}
	return "global"
}

// Mem is the element of a memory access; 8-bit elements are held in I32 (or
// I16), all others in a register of their own width.
type Mem uint8

// The memory elements.
const (
	B32 Mem = iota
	B64
	B16
	U8 // zero-extended
	S8 // sign-extended
)

var memNames = [...]string{"b32", "b64", "b16", "u8", "s8"}

func (m Mem) String() string { return memNames[m] }

// Bytes is the element's size.
func (m Mem) Bytes() int { return [...]int{4, 8, 2, 1, 1}[m] }

// MemOf is the element that holds a register of type t whole.
func MemOf(t Type) Mem {
	switch t.Bits() {
	case 64:
		return B64
	case 16:
		return B16
	}
	return B32
}

// Cache is a hint for the caches.
type Cache uint8

// The cache hints; they may be combined.
const (
	CacheNC      Cache = 1 << iota // read-only for the whole kernel: the non-coherent path
	CacheCG                        // keep in L2 only
	CacheCS                        // streaming, likely used once
	L2Prefetch64                   // fetch 64, 128 or 256 bytes into L2
	L2Prefetch128
	L2Prefetch256
	L1NoAllocate
	L1EvictFirst
)

// ShflMode is how a shuffle picks its source lane.
type ShflMode uint8

// The shuffle modes.
const (
	Bfly ShflMode = iota
	Idx
	Up
	Down
)

var shflNames = [...]string{"bfly", "idx", "up", "down"}

func (m ShflMode) String() string { return shflNames[m] }

// AtomOp is the operation of an atomic access, or of a vote or warp reduction.
type AtomOp uint8

// The atomic operations. For votes: AtomAnd is all, AtomOr is any.
const (
	AtomAdd AtomOp = iota
	AtomMin
	AtomMax
	AtomAnd
	AtomOr
	AtomXor
	AtomExch
	AtomCAS
	AtomInc
	AtomDec
	AtomMinU
	AtomMaxU
)

var atomNames = [...]string{"add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec", "minu", "maxu"}

func (a AtomOp) String() string { return atomNames[a] }

// Scope is the set of threads an ordering or atomic access reaches.
type Scope uint8

// The scopes.
const (
	ScopeGPU Scope = iota
	ScopeCTA
	ScopeCluster
	ScopeSys
)

var scopeNames = [...]string{"gpu", "cta", "cluster", "sys"}

func (s Scope) String() string { return scopeNames[s] }
