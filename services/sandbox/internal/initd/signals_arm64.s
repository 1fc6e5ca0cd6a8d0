#include "textflag.h"

// A signal handler that does nothing: the kernel has put where to return to into R30.
TEXT caught<>(SB),NOSPLIT|NOFRAME,$0
	RET

// One that leaves it to Go's own, unless somebody sent the signal: si_code is not positive then.
TEXT fault<>(SB),NOSPLIT|NOFRAME,$0
	MOVW 8(R1), R3
	CMPW $0, R3
	BLE sent
	MOVD ·goes(SB), R3
	JMP (R3)
sent:
	RET

DATA one<>+0(SB)/8, $1
GLOBL one<>(SB), RODATA, $8

// One that rings the bell: write(bell, &one, 8).
TEXT child<>(SB),NOSPLIT|NOFRAME,$0
	MOVW ·bell(SB), R0
	MOVD $one<>(SB), R1
	MOVD $8, R2
	MOVD $64, R8
	SVC
	RET

// What they return to: rt_sigreturn.
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

// func faultHandler() uintptr
TEXT ·faultHandler(SB),NOSPLIT,$0-8
	MOVD $fault<>(SB), R0
	MOVD R0, ret+0(FP)
	RET

// func childHandler() uintptr
TEXT ·childHandler(SB),NOSPLIT,$0-8
	MOVD $child<>(SB), R0
	MOVD R0, ret+0(FP)
	RET
