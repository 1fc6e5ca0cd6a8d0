#include "textflag.h"

// func spawn(calls *call, n int, failed *failure, flags uintptr, stack uintptr, masks *[2]uint64) (pid int)
TEXT ·spawn(SB),NOSPLIT,$0-56
	MOVD calls+0(FP), R19
	MOVD n+8(FP), R20
	MOVD failed+16(FP), R21
	MOVD masks+40(FP), R22

	// rt_sigprocmask(SIG_SETMASK, &masks[0], &masks[1], 8)
	MOVD $2, R0
	MOVD R22, R1
	ADD $8, R22, R2
	MOVD $8, R3
	MOVD $135, R8
	SVC

	// clone(flags, stack, 0, 0, 0)
	MOVD flags+24(FP), R0
	MOVD stack+32(FP), R1
	MOVD $0, R2
	MOVD $0, R3
	MOVD $0, R4
	MOVD $220, R8
	SVC
	CBZ R0, child
	MOVD R0, R19

	// rt_sigprocmask(SIG_SETMASK, &masks[1], 0, 8)
	MOVD $2, R0
	ADD $8, R22, R1
	MOVD $0, R2
	MOVD $8, R3
	MOVD $135, R8
	SVC
	MOVD R19, pid+48(FP)
	RET

child:
	MOVD 0(R19), R8
	MOVD 8(R19), R0
	MOVD 16(R19), R1
	MOVD 24(R19), R2
	MOVD 32(R19), R3
	SVC
	CMP $0, R0
	BLT fail
	MOVD 40(R19), R5
	CBZ R5, next
	CMP R5, R0
	BNE exit
next:
	ADD $48, R19
	SUB $1, R20
	CBNZ R20, child
	B exit
fail:
	NEG R0, R0
	CMP $8, R0 // ENOEXEC, and there is a shell to try
	BNE give
	CMP $1, R20
	BHI next
give:
	MOVD R0, 0(R21)
	MOVD R20, 8(R21)
exit:
	MOVD $127, R0
	MOVD $94, R8 // exit_group
	SVC
	BRK
