#include "textflag.h"

// Instructions on all 32 lanes of a warp: eight at a time, or four of 64 bits.

// BINARY is an instruction op of two operands.
#define BINARY(op) \
	MOVQ d+0(FP), DI    \
	MOVQ a+8(FP), SI    \
	MOVQ b+16(FP), DX   \
	VMOVUPS (SI), Y0    \
	VMOVUPS 32(SI), Y1  \
	VMOVUPS 64(SI), Y2  \
	VMOVUPS 96(SI), Y3  \
	op      (DX), Y0, Y0   \
	op      32(DX), Y1, Y1 \
	op      64(DX), Y2, Y2 \
	op      96(DX), Y3, Y3

#define STORE \
	VMOVUPS Y0, (DI)   \
	VMOVUPS Y1, 32(DI) \
	VMOVUPS Y2, 64(DI) \
	VMOVUPS Y3, 96(DI) \
	VZEROUPPER         \
	RET

// CANONICAL makes every NaN of Y0 to Y3 the one of arithmetic, 0x7fffffff.
#define CANONICAL \
	VPCMPEQD  Y15, Y15, Y15     \
	VPSRLD    $1, Y15, Y15      \
	VCMPPS    $3, Y0, Y0, Y4    \
	VCMPPS    $3, Y1, Y1, Y5    \
	VCMPPS    $3, Y2, Y2, Y6    \
	VCMPPS    $3, Y3, Y3, Y7    \
	VBLENDVPS Y4, Y15, Y0, Y0   \
	VBLENDVPS Y5, Y15, Y1, Y1   \
	VBLENDVPS Y6, Y15, Y2, Y2   \
	VBLENDVPS Y7, Y15, Y3, Y3

// func fmaF32Vector(d, a, b, c *[32]float32)
TEXT ·fmaF32Vector(SB), NOSPLIT, $0-32
	MOVQ d+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ c+24(FP), CX
	VMOVUPS (SI), Y0
	VMOVUPS 32(SI), Y1
	VMOVUPS 64(SI), Y2
	VMOVUPS 96(SI), Y3
	VMOVUPS (CX), Y8
	VMOVUPS 32(CX), Y9
	VMOVUPS 64(CX), Y10
	VMOVUPS 96(CX), Y11
	VFMADD132PS (DX), Y8, Y0
	VFMADD132PS 32(DX), Y9, Y1
	VFMADD132PS 64(DX), Y10, Y2
	VFMADD132PS 96(DX), Y11, Y3
	CANONICAL
	STORE

// func addF32Vector(d, a, b *[32]float32)
TEXT ·addF32Vector(SB), NOSPLIT, $0-24
	BINARY(VADDPS)
	CANONICAL
	STORE

// func subF32Vector(d, a, b *[32]float32)
TEXT ·subF32Vector(SB), NOSPLIT, $0-24
	BINARY(VSUBPS)
	CANONICAL
	STORE

// func mulF32Vector(d, a, b *[32]float32)
TEXT ·mulF32Vector(SB), NOSPLIT, $0-24
	BINARY(VMULPS)
	CANONICAL
	STORE

// func canonicalF32Vector(d, a *[32]float32)
TEXT ·canonicalF32Vector(SB), NOSPLIT, $0-16
	MOVQ d+0(FP), DI
	MOVQ a+8(FP), SI
	VMOVUPS (SI), Y0
	VMOVUPS 32(SI), Y1
	VMOVUPS 64(SI), Y2
	VMOVUPS 96(SI), Y3
	CANONICAL
	STORE

// func add32Vector(d, a, b *lanes32)
TEXT ·add32Vector(SB), NOSPLIT, $0-24
	BINARY(VPADDD)
	STORE

// func sub32Vector(d, a, b *lanes32)
TEXT ·sub32Vector(SB), NOSPLIT, $0-24
	BINARY(VPSUBD)
	STORE

// func mul32Vector(d, a, b *lanes32)
TEXT ·mul32Vector(SB), NOSPLIT, $0-24
	BINARY(VPMULLD)
	STORE

// func and32Vector(d, a, b *lanes32)
TEXT ·and32Vector(SB), NOSPLIT, $0-24
	BINARY(VPAND)
	STORE

// func or32Vector(d, a, b *lanes32)
TEXT ·or32Vector(SB), NOSPLIT, $0-24
	BINARY(VPOR)
	STORE

// func xor32Vector(d, a, b *lanes32)
TEXT ·xor32Vector(SB), NOSPLIT, $0-24
	BINARY(VPXOR)
	STORE

// func shl32Vector(d, a, b *lanes32)
TEXT ·shl32Vector(SB), NOSPLIT, $0-24
	BINARY(VPSLLVD)
	STORE

// func shrU32Vector(d, a, b *lanes32)
TEXT ·shrU32Vector(SB), NOSPLIT, $0-24
	BINARY(VPSRLVD)
	STORE

// func shrS32Vector(d, a, b *lanes32)
TEXT ·shrS32Vector(SB), NOSPLIT, $0-24
	BINARY(VPSRAVD)
	STORE

// func mad32Vector(d, a, b, c *lanes32)
TEXT ·mad32Vector(SB), NOSPLIT, $0-32
	BINARY(VPMULLD)
	MOVQ c+24(FP), CX
	VPADDD (CX), Y0, Y0
	VPADDD 32(CX), Y1, Y1
	VPADDD 64(CX), Y2, Y2
	VPADDD 96(CX), Y3, Y3
	STORE

// func add64Vector(d, a, b *lanes64)
TEXT ·add64Vector(SB), NOSPLIT, $0-24
	MOVQ d+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	VMOVUPS (SI), Y0
	VMOVUPS 32(SI), Y1
	VMOVUPS 64(SI), Y2
	VMOVUPS 96(SI), Y3
	VMOVUPS 128(SI), Y4
	VMOVUPS 160(SI), Y5
	VMOVUPS 192(SI), Y6
	VMOVUPS 224(SI), Y7
	VPADDQ (DX), Y0, Y0
	VPADDQ 32(DX), Y1, Y1
	VPADDQ 64(DX), Y2, Y2
	VPADDQ 96(DX), Y3, Y3
	VPADDQ 128(DX), Y4, Y4
	VPADDQ 160(DX), Y5, Y5
	VPADDQ 192(DX), Y6, Y6
	VPADDQ 224(DX), Y7, Y7
	VMOVUPS Y4, 128(DI)
	VMOVUPS Y5, 160(DI)
	VMOVUPS Y6, 192(DI)
	VMOVUPS Y7, 224(DI)
	STORE

// WIDE multiplies four lanes from a byte offset on: extend makes 64 bits of 32,
// of which mul takes the lower halves.
#define WIDE(extend, mul, at) \
	extend  at(SI), Y0      \
	extend  at(DX), Y1      \
	mul     Y1, Y0, Y0      \
	VMOVUPS Y0, 2*at(DI)

#define WIDES(extend, mul) \
	MOVQ d+0(FP), DI        \
	MOVQ a+8(FP), SI        \
	MOVQ b+16(FP), DX       \
	WIDE(extend, mul, 0)    \
	WIDE(extend, mul, 16)   \
	WIDE(extend, mul, 32)   \
	WIDE(extend, mul, 48)   \
	WIDE(extend, mul, 64)   \
	WIDE(extend, mul, 80)   \
	WIDE(extend, mul, 96)   \
	WIDE(extend, mul, 112)  \
	VZEROUPPER              \
	RET

// func mulWideS32Vector(d *lanes64, a, b *lanes32)
TEXT ·mulWideS32Vector(SB), NOSPLIT, $0-24
	WIDES(VPMOVSXDQ, VPMULDQ)

// func mulWideU32Vector(d *lanes64, a, b *lanes32)
TEXT ·mulWideU32Vector(SB), NOSPLIT, $0-24
	WIDES(VPMOVZXDQ, VPMULUDQ)

// func sameSteps32Vector(a, rel *lanes32) bool
TEXT ·sameSteps32Vector(SB), NOSPLIT, $0-17
	MOVQ a+0(FP), SI
	MOVQ rel+8(FP), DX
	VPBROADCASTD (SI), Y4
	VPADDD (DX), Y4, Y0
	VPADDD 32(DX), Y4, Y1
	VPADDD 64(DX), Y4, Y2
	VPADDD 96(DX), Y4, Y3
	VPXOR (SI), Y0, Y0
	VPXOR 32(SI), Y1, Y1
	VPXOR 64(SI), Y2, Y2
	VPXOR 96(SI), Y3, Y3
	VPOR Y1, Y0, Y0
	VPOR Y3, Y2, Y2
	VPOR Y2, Y0, Y0
	VPTEST Y0, Y0
	SETEQ ret+16(FP)
	VZEROUPPER
	RET

// STEPS gathers in Y0 how four lanes' addresses differ from what is expected.
#define STEPS(at) \
	VPMOVSXDQ at(DX), Y1      \
	VPADDQ    Y1, Y4, Y1      \
	VPXOR     2*at(SI), Y1, Y1 \
	VPOR      Y1, Y0, Y0

// func sameSteps64Vector(a *lanes64, rel *lanes32) bool
TEXT ·sameSteps64Vector(SB), NOSPLIT, $0-17
	MOVQ a+0(FP), SI
	MOVQ rel+8(FP), DX
	VPBROADCASTQ (SI), Y4
	VPXOR Y0, Y0, Y0
	STEPS(0)
	STEPS(16)
	STEPS(32)
	STEPS(48)
	STEPS(64)
	STEPS(80)
	STEPS(96)
	STEPS(112)
	VPTEST Y0, Y0
	SETEQ ret+16(FP)
	VZEROUPPER
	RET
