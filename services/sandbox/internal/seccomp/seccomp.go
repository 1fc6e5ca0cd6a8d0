// Package seccomp makes the system call filter of a sandboxed command, as a program for the kernel's
// classic BPF machine. It needs neither libseccomp nor cgo: the filter is short, and all its instructions
// are here.
//
// The filter refuses calls that commands do not need and that container escapes often use: other
// architectures' calls, mounts, new namespaces, keys, io_uring, tracing, kernel modules, and sockets that
// no network namespace bounds. Init is filtered like commands, so the calls that init needs are allowed
// only with init's arguments. No process may set the limits or the scheduling of init, which is process 1:
// later commands inherit them. The namespaces handle the rest.
package seccomp

import (
	"encoding/binary"
	"sort"

	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data.
const (
	offsetNumber   = 0
	offsetArch     = 4
	offsetArgument = 16 // low half of the first argument, on little-endian machines
)

// Answers of a filter.
const (
	allow  = uint32(unix.SECCOMP_RET_ALLOW)
	kill   = uint32(unix.SECCOMP_RET_KILL_PROCESS)
	denied = uint32(unix.SECCOMP_RET_ERRNO) | uint32(unix.EPERM)
	absent = uint32(unix.SECCOMP_RET_ERRNO) | uint32(unix.ENOSYS)
	// exhausted is the kernel's answer if there are no huge pages.
	exhausted = uint32(unix.SECCOMP_RET_ERRNO) | uint32(unix.ENOMEM)
	family    = uint32(unix.SECCOMP_RET_ERRNO) | uint32(unix.EAFNOSUPPORT)
	// unsupported is a file system's answer to an unsupported operation.
	unsupported = uint32(unix.SECCOMP_RET_ERRNO) | uint32(unix.EOPNOTSUPP)
	// pretended does nothing and reports success.
	pretended = uint32(unix.SECCOMP_RET_ERRNO)
)

const cloneNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// terminalInjections are the ioctl requests that put input into a terminal or
// reprogram it.
var terminalInjections = []uint32{unix.TIOCSTI, 0x541C /* TIOCLINUX */, unix.TIOCSETD}

// leases are the fcntl requests that make the opener of a file wait up to 45 seconds for the lease's
// holder. The service opens files for snapshots and reads.
var leases = []uint32{unix.F_SETLEASE, 0x410 /* F_SETDELEG */}

// reservations are the ioctl requests that do what fallocate does: RESVSP, RESVSP64 and ZERO_RANGE of any
// file system, and ALLOCSP and ALLOCSP64 of XFS on older kernels. FSSETXATTR lets one written byte take
// gigabytes (FS_XFLAG_EXTSIZE).
var reservations = []uint32{0x40305828, 0x4030582A, 0x40305839, 0x4030580A, 0x40305824, 0x401c5820 /* FS_IOC_FSSETXATTR */}

// volumeTypes are the request types of file systems that let the owner of a folder make volumes, also
// read-only ones. Even root cannot delete files in a read-only volume. The types are btrfs's and
// bcachefs's; all their requests are refused except clonings.
var volumeTypes = []uint32{0x94 << 8, 0xbc << 8}

// clonings are requests of btrfs's type that other file systems have as well: files share their contents.
var clonings = []uint32{unix.FICLONE, unix.FICLONERANGE, unix.FIDEDUPERANGE}

// personalities are those that a command may take: its own, a query, and one without address randomisation,
// which the race detector needs.
var personalities = []uint32{0, 0xffffffff, 0x0040000}

// Filter returns the filter for this machine's architecture as an array of
// struct sock_filter, as bubblewrap's --seccomp reads it.
func Filter() []byte {
	p := program()
	raw := make([]byte, 0, 8*len(p))
	for _, in := range p {
		raw = binary.NativeEndian.AppendUint16(raw, in.Code)
		raw = append(raw, in.Jt, in.Jf)
		raw = binary.NativeEndian.AppendUint32(raw, in.K)
	}
	return raw
}

func program() []unix.SockFilter {
	p := []unix.SockFilter{
		load(offsetArch),
		jumpEqual(auditArch, 1, 0),
		answer(kill),
		load(offsetNumber),
	}
	p = append(p, foreignABI()...)
	// The rule for mmap comes before all others: programs map memory often. Huge pages are refused. The
	// machine has a fixed number of them, reserved for other programs, and no group counts them as memory.
	// Programs fall back to normal pages.
	p = append(p, onCall(unix.SYS_MMAP, without(offsetArgument+24, unix.MAP_HUGETLB, exhausted))...)
	for _, number := range sortedDenied() {
		p = append(p, jumpEqual(number, 0, 1), answer(denied))
	}
	// clone3 keeps its flags in memory, where a filter cannot look: libraries
	// fall back to clone when it is absent.
	p = append(p, jumpEqual(unix.SYS_CLONE3, 0, 1), answer(absent))
	// The machine has a fixed number of slots for asynchronous input and output, and one sandbox could take
	// all of them. Programs work without.
	p = append(p, jumpEqual(unix.SYS_IO_SETUP, 0, 1), answer(absent))
	// A Landlock ruleset keeps deleted files on the disk, and these cannot be found.
	p = append(p, jumpEqual(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 1), answer(absent))
	// A named message queue outlives its maker and would reach later commands. The queues of a namespace
	// can be listed only through a mount. System V queues are allowed: init removes them.
	p = append(p, jumpEqual(unix.SYS_MQ_OPEN, 0, 1), answer(absent))
	// Only writing may take room on a disk. Gigabytes could be reserved between two counts of a workspace,
	// and the bytes written bound the files of unreadable size. Programs write zeroes instead, or go
	// without. Clones (FICLONE, copy_file_range) share the room of their originals.
	p = append(p, jumpEqual(unix.SYS_FALLOCATE, 0, 1), answer(unsupported))
	// The call form of FS_IOC_FSSETXATTR.
	p = append(p, jumpEqual(unix.SYS_FILE_SETATTR, 0, 1), answer(absent))
	// The addresses of a program's parts identify a process between two looks.
	p = append(p, onCall(unix.SYS_PRCTL, oneOf(offsetArgument, []uint32{unix.PR_SET_MM}, denied, allow))...)
	p = append(p, onCall(unix.SYS_MEMFD_CREATE, without(offsetArgument+8, unix.MFD_HUGETLB, exhausted))...)
	p = append(p, onCall(unix.SYS_SHMGET, without(offsetArgument+16, hugeSegment, exhausted))...)
	p = append(p, onCall(unix.SYS_CLONE, cloneRules())...)
	p = append(p, onCall(unix.SYS_CLOSE_RANGE, without(offsetArgument+16, unix.CLOSE_RANGE_UNSHARE, denied))...)
	p = append(p, onCall(unix.SYS_SOCKET, socketRules())...)
	p = append(p, onCall(unix.SYS_SOCKETPAIR, socketpairRules())...)
	p = append(p, onCall(unix.SYS_IOCTL, ioctlRules())...)
	p = append(p, onCall(unix.SYS_FCNTL, oneOf(offsetArgument+8, leases, denied, allow))...)
	p = append(p, onCall(unix.SYS_PERSONALITY, personalityRules())...)
	p = append(p, onCall(unix.SYS_PRLIMIT64, limitRules())...)
	for _, number := range []uint32{unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR} {
		p = append(p, onCall(number, oneOf(offsetArgument, []uint32{first}, denied, allow))...)
	}
	p = append(p, onCall(unix.SYS_SETPRIORITY, priorityRules(unix.PRIO_USER))...)
	p = append(p, onCall(unix.SYS_IOPRIO_SET, priorityRules(inputUser))...)
	p = append(p, onCall(unix.SYS_SETRLIMIT, oneOf(offsetArgument, []uint32{unix.RLIMIT_CORE}, pretended, allow))...)
	return append(p, answer(allow))
}

func sortedDenied() []uint32 {
	all := make([]uint32, 0, len(deniedEverywhere)+len(deniedHere))
	all = append(append(all, deniedEverywhere...), deniedHere...)
	sort.Slice(all, func(i, j int) bool { return all[i] < all[j] })
	return all
}

// onCall runs rules for one system call only. Rules end with an answer on every path, so the number stays
// loaded for the rules that follow.
func onCall(number uint32, rules []unix.SockFilter) []unix.SockFilter {
	return append([]unix.SockFilter{jumpEqual(number, 0, uint8(len(rules)))}, rules...)
}

// hugeSegment is SHM_HUGETLB.
const hugeSegment = 0o4000

// without gives an answer to calls that have a flag set in the word at an offset.
func without(offset, flag, otherwise uint32) []unix.SockFilter {
	return []unix.SockFilter{
		load(offset),
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: flag, Jt: 0, Jf: 1},
		answer(otherwise),
		answer(allow),
	}
}

// cloneRules keep a new process from getting namespaces of its own. With the rule for close_range they also
// keep a thread from getting its own files or working folder: an inspection looks at one thread of each
// process.
func cloneRules() []unix.SockFilter {
	return []unix.SockFilter{
		load(offsetArgument),
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: cloneNamespaces, Jt: 3, Jf: 0},
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: unix.CLONE_THREAD, Jt: 0, Jf: 3},
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: unix.CLONE_FILES, Jt: 0, Jf: 1},
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: unix.CLONE_FS, Jt: 1, Jf: 0},
		answer(denied),
		answer(allow),
	}
}

// socketRules allow local sockets, IP (which the network namespace bounds) and
// the routing part of netlink, which resolvers and runtimes read at start.
func socketRules() []unix.SockFilter {
	const allowAt = 7 // the index of the first answer
	return []unix.SockFilter{
		load(offsetArgument),
		jumpEqual(unix.AF_UNIX, allowAt-2, 0),
		jumpEqual(unix.AF_INET, allowAt-3, 0),
		jumpEqual(unix.AF_INET6, allowAt-4, 0),
		jumpEqual(unix.AF_NETLINK, 0, 3),
		load(offsetArgument + 16),
		jumpEqual(unix.NETLINK_ROUTE, 0, 1),
		answer(allow),
		answer(family),
	}
}

func socketpairRules() []unix.SockFilter {
	return []unix.SockFilter{
		load(offsetArgument),
		jumpEqual(unix.AF_UNIX, 0, 1),
		answer(allow),
		answer(family),
	}
}

// ioctlRules compare the low 32 bits, as the kernel does: a request with high
// bits set would otherwise slip through.
func ioctlRules() []unix.SockFilter {
	p := []unix.SockFilter{load(offsetArgument + 8)}
	for _, request := range terminalInjections {
		p = append(p, jumpEqual(request, 0, 1), answer(denied))
	}
	for _, request := range reservations {
		p = append(p, jumpEqual(request, 0, 1), answer(unsupported))
	}
	for _, request := range clonings {
		p = append(p, jumpEqual(request, 0, 1), answer(allow))
	}
	p = append(p, unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: 0xff << 8})
	for _, kind := range volumeTypes {
		p = append(p, jumpEqual(kind, 0, 1), answer(denied))
	}
	return append(p, answer(allow))
}

// first is the pid of init, and of its process group.
const first = 1

// inputUser is IOPRIO_WHO_USER: all processes of a user.
const inputUser = 3

// limitRules protect the limits of other processes and the limit of core files. Each thread of init has an
// id by which its limits can be set, and these ids are unknown here. The limit of core files is one byte,
// at which the kernel dumps no memory of a crashed process. At zero it would still start the host's
// core-dump program, outside the sandbox. Programs set the limit to zero to keep secrets and may fail if
// refused, so the filter answers with success.
func limitRules() []unix.SockFilter {
	return []unix.SockFilter{
		load(offsetArgument + 16), // the new limit; without one it is a question
		jumpEqual(0, 0, 2),
		load(offsetArgument + 20),
		jumpEqual(0, 5, 0),
		load(offsetArgument),
		jumpEqual(0, 0, 2),
		load(offsetArgument + 8),
		jumpEqual(unix.RLIMIT_CORE, 2, 1),
		answer(denied),
		answer(allow),
		answer(pretended),
	}
}

// priorityRules protect the priority of init, by its pid, its group or its user.
func priorityRules(user uint32) []unix.SockFilter {
	return []unix.SockFilter{
		load(offsetArgument),
		jumpEqual(user, 3, 0),
		load(offsetArgument + 8),
		jumpEqual(first, 1, 0),
		answer(allow),
		answer(denied),
	}
}

func personalityRules() []unix.SockFilter {
	return oneOf(offsetArgument, personalities, allow, denied)
}

// oneOf answers match if the word at an offset is one of the values, and otherwise if not.
func oneOf(offset uint32, values []uint32, match, otherwise uint32) []unix.SockFilter {
	p := []unix.SockFilter{load(offset)}
	for i, v := range values {
		p = append(p, jumpEqual(v, uint8(len(values)-i), 0))
	}
	return append(p, answer(otherwise), answer(match))
}

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

func jumpEqual(k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jt: yes, Jf: no}
}

func answer(k uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k}
}
