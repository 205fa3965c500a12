#include "textflag.h"

// func addRowsVector(lo, hi *float32, step int, a, b *float32, k int)
//
// Eight sums of a row are in one register: Y0 to Y7, those of lo in its lower half.
TEXT ·addRowsVector(SB), NOSPLIT, $0-48
	MOVQ lo+0(FP), AX
	MOVQ hi+8(FP), BX
	MOVQ step+16(FP), CX
	MOVQ a+24(FP), SI
	MOVQ b+32(FP), DX
	MOVQ k+40(FP), R9
	SHLQ $2, CX
	LEAQ (CX)(CX*2), R10   // three rows of sums
	LEAQ (AX)(CX*4), R11
	LEAQ (BX)(CX*4), R12
	MOVQ R9, R8
	SHLQ $2, R8            // bytes of a row of A
	LEAQ (R8)(R8*2), R13   // three rows of A
	LEAQ (SI)(R8*4), DI    // the fifth row

	VMOVUPS (AX), X0
	VINSERTF128 $1, (BX), Y0, Y0
	VMOVUPS (AX)(CX*1), X1
	VINSERTF128 $1, (BX)(CX*1), Y1, Y1
	VMOVUPS (AX)(CX*2), X2
	VINSERTF128 $1, (BX)(CX*2), Y2, Y2
	VMOVUPS (AX)(R10*1), X3
	VINSERTF128 $1, (BX)(R10*1), Y3, Y3
	VMOVUPS (R11), X4
	VINSERTF128 $1, (R12), Y4, Y4
	VMOVUPS (R11)(CX*1), X5
	VINSERTF128 $1, (R12)(CX*1), Y5, Y5
	VMOVUPS (R11)(CX*2), X6
	VINSERTF128 $1, (R12)(CX*2), Y6, Y6
	VMOVUPS (R11)(R10*1), X7
	VINSERTF128 $1, (R12)(R10*1), Y7, Y7

	TESTQ R9, R9
	JZ done

loop:
	VMOVUPS (DX), Y8
	VBROADCASTSS (SI), Y9
	VBROADCASTSS (SI)(R8*1), Y10
	VBROADCASTSS (SI)(R8*2), Y11
	VBROADCASTSS (SI)(R13*1), Y12
	VMULPS Y8, Y9, Y9
	VMULPS Y8, Y10, Y10
	VMULPS Y8, Y11, Y11
	VMULPS Y8, Y12, Y12
	VADDPS Y9, Y0, Y0
	VADDPS Y10, Y1, Y1
	VADDPS Y11, Y2, Y2
	VADDPS Y12, Y3, Y3
	VBROADCASTSS (DI), Y9
	VBROADCASTSS (DI)(R8*1), Y10
	VBROADCASTSS (DI)(R8*2), Y11
	VBROADCASTSS (DI)(R13*1), Y12
	VMULPS Y8, Y9, Y9
	VMULPS Y8, Y10, Y10
	VMULPS Y8, Y11, Y11
	VMULPS Y8, Y12, Y12
	VADDPS Y9, Y4, Y4
	VADDPS Y10, Y5, Y5
	VADDPS Y11, Y6, Y6
	VADDPS Y12, Y7, Y7
	ADDQ $4, SI
	ADDQ $4, DI
	ADDQ $32, DX
	DECQ R9
	JNZ loop

done:
	VMOVUPS X0, (AX)
	VEXTRACTF128 $1, Y0, (BX)
	VMOVUPS X1, (AX)(CX*1)
	VEXTRACTF128 $1, Y1, (BX)(CX*1)
	VMOVUPS X2, (AX)(CX*2)
	VEXTRACTF128 $1, Y2, (BX)(CX*2)
	VMOVUPS X3, (AX)(R10*1)
	VEXTRACTF128 $1, Y3, (BX)(R10*1)
	VMOVUPS X4, (R11)
	VEXTRACTF128 $1, Y4, (R12)
	VMOVUPS X5, (R11)(CX*1)
	VEXTRACTF128 $1, Y5, (R12)(CX*1)
	VMOVUPS X6, (R11)(CX*2)
	VEXTRACTF128 $1, Y6, (R12)(CX*2)
	VMOVUPS X7, (R11)(R10*1)
	VEXTRACTF128 $1, Y7, (R12)(R10*1)
	VZEROUPPER
	RET

// func decodeHalvesVector(out *float32, raw *uint32, rows, step int)
//
// Each round widens eight f16: the exponent's bias changes by a product with 2^112,
// which normalises subnormals too; what comes to 65536 or more was infinite or no number.
TEXT ·decodeHalvesVector(SB), NOSPLIT, $0-32
	MOVQ out+0(FP), AX
	MOVQ raw+8(FP), BX
	MOVQ rows+16(FP), CX
	MOVQ step+24(FP), DX
	SHLQ $2, DX
	VPCMPEQD Y15, Y15, Y15
	VPSLLD $31, Y15, Y14   // the sign
	VPSRLD $17, Y15, Y13
	VPSLLD $13, Y13, Y13   // exponent and mantissa, where f32 has them
	MOVL $0x77800000, R8   // 2^112
	VMOVD R8, X12
	VPBROADCASTD X12, Y12
	MOVL $0x477fffff, R8   // the largest number below 65536
	VMOVD R8, X11
	VPBROADCASTD X11, Y11
	MOVL $0x7f800000, R8
	VMOVD R8, X10
	VPBROADCASTD X10, Y10

half:
	VPMOVZXWD (BX), Y0
	VPSLLD $16, Y0, Y1
	VPAND Y14, Y1, Y1
	VPSLLD $13, Y0, Y2
	VPAND Y13, Y2, Y2
	VMULPS Y12, Y2, Y2
	VPCMPGTD Y11, Y2, Y3   // as integers: neither is negative
	VPAND Y10, Y3, Y3
	VPOR Y3, Y2, Y2
	VPOR Y1, Y2, Y2
	VMOVDQU Y2, (AX)
	ADDQ $16, BX
	ADDQ DX, AX
	DECQ CX
	JNZ half
	VZEROUPPER
	RET
