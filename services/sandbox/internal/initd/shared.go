package main

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// Requests of shmctl, semctl and msgctl that list what there is, by index: SHM_INFO and
// SHM_STAT_ANY and the like. SHM_STAT does not show what its owner took the right to read from.
const (
	shmInfo, shmStat = 14, 15
	semInfo, semStat = 19, 20
	msgInfo, msgStat = 12, 13
)

// What the kernel takes for each of them besides what is in them, about, in bytes: a set or a queue or a segment, a
// semaphore, which has a line of the processor's cache to itself, and a message.
const (
	eachShared    = 512
	eachSemaphore = 64
	eachMessage   = 64
)

// kind is one of the three kinds of what is shared.
type kind struct {
	info, stat uintptr
	control    func(id, request, at uintptr) (uintptr, unix.Errno)
	// memory is how much of it there is, in bytes, as the kernel's answer to info says.
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

// number is one of the kernel's answer that is an array of int.
func number(info []byte, index int) uint64 {
	return uint64(binary.NativeEndian.Uint32(info[4*index:]))
}

// scratch is what the kernel answers, larger than any of its structures. It is no variable of a function: the kernel is
// told where it is, and those may be moved. One thread does all of this.
var scratch [512]byte

func scratchAddress() uintptr { return uintptr(unsafe.Pointer(&scratch[0])) } //nolint:gosec // the kernel takes an address

// tellWeight says how much memory what is shared takes.
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

// removeShared removes the System V shared memory, semaphores and message queues of
// the sandbox, which outlive every process: their memory would stay taken. It costs
// a system call for each kind when there are none.
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
