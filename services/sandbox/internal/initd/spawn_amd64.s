#include "textflag.h"

// func spawn(calls *call, n int, failed *failure, flags uintptr, stack uintptr, masks *[2]uint64) (pid int)
TEXT ·spawn(SB),NOSPLIT,$0-56
	MOVQ calls+0(FP), R12
	MOVQ n+8(FP), R13
	MOVQ failed+16(FP), R15
	MOVQ masks+40(FP), BX

	// rt_sigprocmask(SIG_SETMASK, &masks[0], &masks[1], 8)
	MOVQ $2, DI
	MOVQ BX, SI
	LEAQ 8(BX), DX
	MOVQ $8, R10
	MOVQ $14, AX
	SYSCALL

	// clone(flags, stack, 0, 0, 0)
	MOVQ flags+24(FP), DI
	MOVQ stack+32(FP), SI
	XORQ DX, DX
	XORQ R10, R10
	XORQ R8, R8
	MOVQ $56, AX
	SYSCALL
	TESTQ AX, AX
	JZ child
	MOVQ AX, R12

	// rt_sigprocmask(SIG_SETMASK, &masks[1], 0, 8)
	MOVQ $2, DI
	LEAQ 8(BX), SI
	XORQ DX, DX
	MOVQ $8, R10
	MOVQ $14, AX
	SYSCALL
	MOVQ R12, pid+48(FP)
	RET

child:
	MOVQ 0(R12), AX
	MOVQ 8(R12), DI
	MOVQ 16(R12), SI
	MOVQ 24(R12), DX
	MOVQ 32(R12), R10
	SYSCALL
	TESTQ AX, AX
	JS fail
	MOVQ 40(R12), CX
	TESTQ CX, CX
	JZ next
	CMPQ AX, CX
	JNE exit
next:
	ADDQ $48, R12
	DECQ R13
	JNZ child
	JMP exit
fail:
	NEGQ AX
	CMPQ AX, $8 // ENOEXEC, and there is a shell to try
	JNE give
	CMPQ R13, $1
	JHI next
give:
	MOVQ AX, 0(R15)
	MOVQ R13, 8(R15)
exit:
	MOVQ $127, DI
	MOVQ $231, AX // exit_group
	SYSCALL
	INT $3
