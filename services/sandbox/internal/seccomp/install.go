package seccomp

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Install applies the filter to this process, its threads and their children. The process must no longer be
// able to gain privileges.
func Install() error {
	if err := install(program()); err != nil {
		return fmt.Errorf("install the system call filter: %w", err)
	}
	return nil
}

func install(p []unix.SockFilter) error {
	f := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	_, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&f))) //nolint:gosec // the kernel takes a pointer
	if e != 0 {
		return e
	}
	return nil
}
