package ptx

// Type is a PTX element type.
type Type uint8

const (
	NoType Type = iota
	B1
	B4
	B8
	B16
	B32
	B64
	B128
	B1024
	U2
	U4
	U8
	U16
	U32
	U64
	U16x2
	S2
	S4
	S8
	S16
	S32
	S64
	S16x2
	F16
	F16x2
	BF16
	BF16x2
	TF32
	F32
	F32x2
	F64
	E4M3
	E5M2
	E4M3x2
	E5M2x2
	E4M3x4
	E5M2x4
	E2M3
	E3M2
	E2M1
	E2M3x2
	E3M2x2
	E2M1x2
	E2M3x4
	E3M2x4
	E2M1x4
	UE8M0
	UE8M0x2
	UE4M3
	UE5M3x2
	UE4M3x2
	S2F6x2
	U8x4
	S8x4
	B4x16
	B4x16P64
	B6x16P32
	B6P2x16
	Pred
	TexRef
	SamplerRef
	SurfRef
	numTypes
)

// typeInfo is what a type is called and how many bits it has.
var typeInfo = [numTypes]struct {
	name string
	bits int
}{
	NoType: {"", 0},
	B1:     {"b1", 1}, B4: {"b4", 4}, B8: {"b8", 8}, B16: {"b16", 16}, B32: {"b32", 32}, B64: {"b64", 64}, B128: {"b128", 128}, B1024: {"b1024", 1024},
	U2: {"u2", 2}, U4: {"u4", 4}, U8: {"u8", 8}, U16: {"u16", 16}, U32: {"u32", 32}, U64: {"u64", 64}, U16x2: {"u16x2", 32},
	S2: {"s2", 2}, S4: {"s4", 4}, S8: {"s8", 8}, S16: {"s16", 16}, S32: {"s32", 32}, S64: {"s64", 64}, S16x2: {"s16x2", 32},
	F16: {"f16", 16}, F16x2: {"f16x2", 32}, BF16: {"bf16", 16}, BF16x2: {"bf16x2", 32}, TF32: {"tf32", 32},
	F32: {"f32", 32}, F32x2: {"f32x2", 64}, F64: {"f64", 64},
	E4M3: {"e4m3", 8}, E5M2: {"e5m2", 8}, E4M3x2: {"e4m3x2", 16}, E5M2x2: {"e5m2x2", 16}, E4M3x4: {"e4m3x4", 32}, E5M2x4: {"e5m2x4", 32},
	E2M3: {"e2m3", 6}, E3M2: {"e3m2", 6}, E2M1: {"e2m1", 4}, E2M3x2: {"e2m3x2", 16}, E3M2x2: {"e3m2x2", 16}, E2M1x2: {"e2m1x2", 8},
	E2M3x4: {"e2m3x4", 32}, E3M2x4: {"e3m2x4", 32}, E2M1x4: {"e2m1x4", 16},
	UE8M0: {"ue8m0", 8}, UE8M0x2: {"ue8m0x2", 16}, UE4M3: {"ue4m3", 8}, UE4M3x2: {"ue4m3x2", 16}, UE5M3x2: {"ue5m3x2", 16}, S2F6x2: {"s2f6x2", 16},
	U8x4: {"u8x4", 32}, S8x4: {"s8x4", 32},
	B4x16: {"b4x16", 64}, B4x16P64: {"b4x16_p64", 128}, B6x16P32: {"b6x16_p32", 128}, B6P2x16: {"b6p2x16", 128},
	Pred:   {"pred", 1},
	TexRef: {"texref", 64}, SamplerRef: {"samplerref", 64}, SurfRef: {"surfref", 64},
}

var typeByName = func() map[string]Type {
	m := make(map[string]Type, numTypes)
	for t := NoType + 1; t < numTypes; t++ {
		m[typeInfo[t].name] = t
	}
	return m
}()

// String is the type's name without the dot.
func (t Type) String() string { return typeInfo[t].name }

// Bits is the number of bits a value of the type has.
func (t Type) Bits() int { return typeInfo[t].bits }

// Size is Bits in whole bytes.
func (t Type) Size() int { return (typeInfo[t].bits + 7) / 8 }

// ParseType finds a type by its name without the dot.
func ParseType(name string) (Type, bool) {
	t, ok := typeByName[name]
	return t, ok
}

// Signed says whether the type is a signed integer.
func (t Type) Signed() bool { return t >= S2 && t <= S16x2 }

// Unsigned says whether the type is an unsigned integer.
func (t Type) Unsigned() bool { return t >= U2 && t <= U16x2 }

// Float says whether the type is a floating-point one, packed ones included.
func (t Type) Float() bool { return t >= F16 && t <= UE4M3x2 }

// Space is a state space.
type Space uint8

const (
	SpaceGeneric Space = iota
	SpaceReg
	SpaceSReg
	SpaceConst
	SpaceGlobal
	SpaceLocal
	SpaceParam
	SpaceShared
	SpaceTex
	numSpaces
)

var spaceNames = [numSpaces]string{"generic", "reg", "sreg", "const", "global", "local", "param", "shared", "tex"}

// String is the space's name without the dot.
func (s Space) String() string { return spaceNames[s] }
