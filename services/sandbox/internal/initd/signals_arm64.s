#include "textflag.h"

// A signal handler that does nothing: the kernel has put where to return to into R30.
TEXT caught<>(SB),NOSPLIT|NOFRAME,$0
	RET

// What it returns to: rt_sigreturn.
TEXT back<>(SB),NOSPLIT|NOFRAME,$0
	MOVD $139, R8
	SVC
	BRK

// func handler() uintptr
TEXT ·handler(SB),NOSPLIT,$0-8
	MOVD $caught<>(SB), R0
	MOVD R0, ret+0(FP)
	RET

// func returner() uintptr
TEXT ·returner(SB),NOSPLIT,$0-8
	MOVD $back<>(SB), R0
	MOVD R0, ret+0(FP)
	RET
