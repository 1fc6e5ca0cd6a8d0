package seccomp

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Install puts this process, all of its threads and whatever they start under the
// filter. It must not be able to gain privileges any more.
func Install() error {
	p := program()
	f := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	_, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&f))) //nolint:gosec // the kernel takes a pointer
	if e != 0 {
		return fmt.Errorf("install the system call filter: %w", e)
	}
	return nil
}
