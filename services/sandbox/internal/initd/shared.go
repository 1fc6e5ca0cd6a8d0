package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Requests of shmctl, semctl and msgctl that list objects by index: SHM_INFO, SHM_STAT_ANY and the like.
// SHM_STAT does not show objects that their owner made unreadable.
const (
	shmInfo, shmStat = 14, 15
	semInfo, semStat = 19, 20
	msgInfo, msgStat = 12, 13
)

// kind is one of the three kinds of shared objects.
type kind struct {
	info, stat uintptr
	control    func(id, request, at uintptr) (uintptr, unix.Errno)
}

// kinds are shmctl's, semctl's and msgctl's.
var kinds = [...]kind{
	{shmInfo, shmStat, func(id, request, at uintptr) (uintptr, unix.Errno) {
		r, _, e := unix.RawSyscall(unix.SYS_SHMCTL, id, request, at)
		return r, e
	}},
	{semInfo, semStat, func(id, request, at uintptr) (uintptr, unix.Errno) {
		r, _, e := unix.RawSyscall6(unix.SYS_SEMCTL, id, 0, request, at, 0, 0)
		return r, e
	}},
	{msgInfo, msgStat, func(id, request, at uintptr) (uintptr, unix.Errno) {
		r, _, e := unix.RawSyscall(unix.SYS_MSGCTL, id, request, at)
		return r, e
	}},
}

// scratch receives the kernel's answers and is larger than any of its structures. It is not a local
// variable, because the kernel gets its address and locals may move. Only one thread uses it.
var scratch [512]byte

func scratchAddress() uintptr { return uintptr(unsafe.Pointer(&scratch[0])) } //nolint:gosec // the kernel takes an address

// removeShared removes the sandbox's System V shared memory, semaphores and message queues. They outlive
// all processes and would keep their memory. If there are none, it costs one system call for each kind.
func removeShared() {
	at := scratchAddress()
	for _, k := range kinds {
		last, e := k.control(0, k.info, at)
		for index := uintptr(0); e == 0 && index <= last; index++ {
			if id, e := k.control(index, k.stat, at); e == 0 {
				_, _ = k.control(id, unix.IPC_RMID, at)
			}
		}
	}
}
