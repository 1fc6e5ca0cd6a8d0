package main

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// Requests of shmctl, semctl and msgctl that list objects by index: SHM_INFO, SHM_STAT_ANY and the like.
// SHM_STAT does not show objects that their owner made unreadable.
const (
	shmInfo, shmStat = 14, 15
	semInfo, semStat = 19, 20
	msgInfo, msgStat = 12, 13
)

// Approximate bytes that the kernel takes for each object besides its contents: a set, a queue or a
// segment; a semaphore, which has its own cache line; and a message.
const (
	eachShared    = 512
	eachSemaphore = 64
	eachMessage   = 64
)

// kind is one of the three kinds of shared objects.
type kind struct {
	info, stat uintptr
	control    func(id, request, at uintptr) (uintptr, unix.Errno)
	// memory returns the bytes in use, from the kernel's answer to info.
	memory func(info []byte) uint64
}

// kinds are shmctl's, semctl's and msgctl's, with the fields of struct shm_info, seminfo and msginfo.
var kinds = [...]kind{
	{shmInfo, shmStat, func(id, request, at uintptr) (uintptr, unix.Errno) {
		r, _, e := unix.RawSyscall(unix.SYS_SHMCTL, id, request, at)
		return r, e
	}, func(info []byte) uint64 {
		resident, swapped := binary.NativeEndian.Uint64(info[16:]), binary.NativeEndian.Uint64(info[24:])
		return number(info, 0)*eachShared + (resident+swapped)*uint64(unix.Getpagesize())
	}},
	{semInfo, semStat, func(id, request, at uintptr) (uintptr, unix.Errno) {
		r, _, e := unix.RawSyscall6(unix.SYS_SEMCTL, id, 0, request, at, 0, 0)
		return r, e
	}, func(info []byte) uint64 {
		return number(info, 7)*eachShared + number(info, 9)*eachSemaphore
	}},
	{msgInfo, msgStat, func(id, request, at uintptr) (uintptr, unix.Errno) {
		r, _, e := unix.RawSyscall(unix.SYS_MSGCTL, id, request, at)
		return r, e
	}, func(info []byte) uint64 {
		return number(info, 0)*eachShared + number(info, 1)*eachMessage + number(info, 6)
	}},
}

// number returns one element of a kernel answer that is an array of int.
func number(info []byte, index int) uint64 {
	return uint64(binary.NativeEndian.Uint32(info[4*index:]))
}

// scratch receives the kernel's answers and is larger than any of its structures. It is not a local
// variable, because the kernel gets its address and locals may move. Only one thread uses it.
var scratch [512]byte

func scratchAddress() uintptr { return uintptr(unsafe.Pointer(&scratch[0])) } //nolint:gosec // the kernel takes an address

// tellWeight reports how much memory the shared objects take.
func tellWeight(question []byte) error {
	id, err := wire.DecodeID(question)
	if err != nil {
		return err
	}
	p := wire.Reply{Kind: wire.Weight, ID: id}
	for _, k := range kinds {
		if _, e := k.control(0, k.info, scratchAddress()); e == 0 {
			p.Shared += k.memory(scratch[:])
		}
	}
	return send(p)
}

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
