#include "textflag.h"

// A signal handler that does nothing: the kernel has put where to return to on the stack.
TEXT caught<>(SB),NOSPLIT|NOFRAME,$0
	RET

// One that leaves it to Go's own, unless somebody sent the signal: si_code is not positive then.
TEXT fault<>(SB),NOSPLIT|NOFRAME,$0
	MOVL 8(SI), AX
	TESTL AX, AX
	JLE sent
	MOVQ ·goes(SB), AX
	JMP AX
sent:
	RET

DATA one<>+0(SB)/8, $1
GLOBL one<>(SB), RODATA, $8

// One that rings the bell: write(bell, &one, 8).
TEXT child<>(SB),NOSPLIT|NOFRAME,$0
	MOVL ·bell(SB), DI
	LEAQ one<>(SB), SI
	MOVL $8, DX
	MOVL $1, AX
	SYSCALL
	RET

// What they return to: rt_sigreturn.
TEXT back<>(SB),NOSPLIT|NOFRAME,$0
	MOVQ $15, AX
	SYSCALL
	INT $3

// func handler() uintptr
TEXT ·handler(SB),NOSPLIT,$0-8
	LEAQ caught<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET

// func returner() uintptr
TEXT ·returner(SB),NOSPLIT,$0-8
	LEAQ back<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET

// func faultHandler() uintptr
TEXT ·faultHandler(SB),NOSPLIT,$0-8
	LEAQ fault<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET

// func childHandler() uintptr
TEXT ·childHandler(SB),NOSPLIT,$0-8
	LEAQ child<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET
