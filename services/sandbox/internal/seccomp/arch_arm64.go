package seccomp

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// deniedHere are the refused calls that only this architecture has.
var deniedHere = []uint32{}

// foreignABI has nothing to refuse: this architecture has one set of numbers.
func foreignABI() []unix.SockFilter { return nil }
