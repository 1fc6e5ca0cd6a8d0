#include "textflag.h"

// A signal handler that does nothing: the kernel has put where to return to on the stack.
TEXT caught<>(SB),NOSPLIT|NOFRAME,$0
	RET

// What it returns to: rt_sigreturn.
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
