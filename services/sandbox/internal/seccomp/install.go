package seccomp

import (
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Install puts this process, all of its threads and whatever they start under the
// filter. It must not be able to gain privileges any more.
func Install() error {
	if err := install(program()); err != nil {
		return fmt.Errorf("install the system call filter: %w", err)
	}
	return nil
}

// visible is a filter beside the other one.
var visible = [...]unix.SockFilter{
	load(offsetNumber),
	jumpEqual(unix.SYS_PRCTL, 0, 3),
	load(offsetArgument),
	jumpEqual(unix.PR_SET_DUMPABLE, 0, 1),
	answer(pretended),
	answer(allow),
}

// StayVisible keeps this process, all of its threads and whatever they start from changing who may
// look at them: they are told that it is done. Programs that let nobody look do so to keep
// secrets from others of their user. Here all of that user are of one sandbox, and who looks at what processes
// have open may have no other rights than that user's. Init comes first: commands are not to look at it.
func StayVisible() error {
	if err := install(visible[:]); err != nil {
		return fmt.Errorf("keep processes visible: %w", err)
	}
	return nil
}

// reservations are the ioctl requests that do what fallocate does: RESVSP, RESVSP64 and ZERO_RANGE of any file system,
// and XFS's ALLOCSP and ALLOCSP64, of older kernels.
var reservations = []uint32{0x40305828, 0x4030582A, 0x40305839, 0x4030580A, 0x40305824}

// unreserved is a filter beside the others.
var unreserved = slices.Concat(
	[]unix.SockFilter{load(offsetNumber), jumpEqual(unix.SYS_FALLOCATE, 0, 1), answer(unsupported)},
	onCall(unix.SYS_IOCTL, oneOf(offsetArgument+8, reservations, unsupported, allow)),
	[]unix.SockFilter{answer(allow)},
)

// NoReserving keeps this process, all of its threads and whatever they start from taking room on a disk without
// writing there, as where a file system cannot do that: programs write zeroes, or go without. It is for where
// what they have written is what bounds the files that nobody may see the size of. Clones of files
// (FICLONE, copy_file_range) share room with what they are of, which is counted: they stay.
func NoReserving() error {
	if err := install(unreserved); err != nil {
		return fmt.Errorf("keep room from being reserved: %w", err)
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
