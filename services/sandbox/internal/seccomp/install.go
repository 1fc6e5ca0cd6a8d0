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

// visible is an additional filter.
var visible = [...]unix.SockFilter{
	load(offsetNumber),
	jumpEqual(unix.SYS_PRCTL, 0, 3),
	load(offsetArgument),
	jumpEqual(unix.PR_SET_DUMPABLE, 0, 1),
	answer(pretended),
	answer(allow),
}

// StayVisible keeps this process, its threads and its children from changing which processes may inspect
// them: the filter answers such calls with success. Programs become uninspectable to keep secrets from
// other processes of their user. Here all processes of that user are in one sandbox, and the inspection of
// open files may have only that user's rights. Init makes itself uninspectable first, so that commands
// cannot inspect it.
func StayVisible() error {
	if err := install(visible[:]); err != nil {
		return fmt.Errorf("keep processes visible: %w", err)
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
