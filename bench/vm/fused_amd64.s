#include "textflag.h"

// func fusedTops(tops *[8]int32, a, b *int32, n int)
TEXT ·fusedTops(SB), NOSPLIT, $0-32
	MOVQ tops+0(FP), AX
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ n+24(FP), CX
	VMOVDQU (AX), Y0

tops:
	VPBROADCASTD (SI), Y1
	VPADDD (DX), Y1, Y1
	VPMAXSD Y1, Y0, Y0
	ADDQ $4, SI
	ADDQ $32, DX
	DECQ CX
	JNZ tops
	VMOVDQU Y0, (AX)
	VZEROUPPER
	RET

// func fusedTerms(sums, units *[8]float64, x, y *float64, n int)
TEXT ·fusedTerms(SB), NOSPLIT, $0-40
	MOVQ sums+0(FP), AX
	MOVQ units+8(FP), BX
	MOVQ x+16(FP), SI
	MOVQ y+24(FP), DX
	MOVQ n+32(FP), CX
	VMOVUPD (AX), Y0
	VMOVUPD 32(AX), Y1
	VMOVUPD (BX), Y2
	VMOVUPD 32(BX), Y3

terms:
	VBROADCASTSD (SI), Y4
	VMULPD (DX), Y4, Y5
	VMULPD 32(DX), Y4, Y6
	VMULPD Y2, Y5, Y5
	VMULPD Y3, Y6, Y6
	VROUNDPD $11, Y5, Y5
	VROUNDPD $11, Y6, Y6
	VADDPD Y5, Y0, Y0
	VADDPD Y6, Y1, Y1
	ADDQ $8, SI
	ADDQ $64, DX
	DECQ CX
	JNZ terms
	VMOVUPD Y0, (AX)
	VMOVUPD Y1, 32(AX)
	VZEROUPPER
	RET
