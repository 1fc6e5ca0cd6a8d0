package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Requests of shmctl, semctl and msgctl that list what there is, by index: SHM_INFO and
// SHM_STAT_ANY and the like. SHM_STAT does not show what its owner took the right to read from.
const (
	shmInfo, shmStat = 14, 15
	semInfo, semStat = 19, 20
	msgInfo, msgStat = 12, 13
)

// removeShared removes the System V shared memory, semaphores and message queues of
// the sandbox, which outlive every process: their memory would stay taken. It costs
// a system call for each kind when there are none.
func removeShared() {
	var scratch [512]byte                      // larger than any of the kernel's structures
	at := uintptr(unsafe.Pointer(&scratch[0])) //nolint:gosec // the kernel takes an address
	for _, k := range []struct {
		info, stat uintptr
		control    func(id, request uintptr) (uintptr, unix.Errno)
	}{
		{shmInfo, shmStat, func(id, request uintptr) (uintptr, unix.Errno) {
			r, _, e := unix.RawSyscall(unix.SYS_SHMCTL, id, request, at)
			return r, e
		}},
		{semInfo, semStat, func(id, request uintptr) (uintptr, unix.Errno) {
			r, _, e := unix.RawSyscall6(unix.SYS_SEMCTL, id, 0, request, at, 0, 0)
			return r, e
		}},
		{msgInfo, msgStat, func(id, request uintptr) (uintptr, unix.Errno) {
			r, _, e := unix.RawSyscall(unix.SYS_MSGCTL, id, request, at)
			return r, e
		}},
	} {
		last, e := k.control(0, k.info)
		for index := uintptr(0); e == 0 && index <= last; index++ {
			if id, e := k.control(index, k.stat); e == 0 {
				_, _ = k.control(id, unix.IPC_RMID)
			}
		}
	}
}
