package seccomp

import (
	"testing"

	"golang.org/x/sys/unix"
)

// call is what the kernel would show to the filter.
type call struct {
	arch, number uint32
	args         [6]uint64
}

// run interprets a filter as the kernel does.
func run(t *testing.T, p []unix.SockFilter, c call) uint32 {
	t.Helper()
	word := func(offset uint32) uint32 {
		switch {
		case offset == offsetNumber:
			return c.number
		case offset == offsetArch:
			return c.arch
		case offset >= 16:
			arg := c.args[(offset-16)/8]
			if offset%8 == 4 {
				return uint32(arg >> 32)
			}
			return uint32(arg)
		}
		t.Fatalf("the filter reads at offset %d", offset)
		return 0
	}
	var acc uint32
	for pc := 0; pc < len(p); pc++ {
		in := p[pc]
		yes := false
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			acc = word(in.K)
			continue
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			acc &= in.K
			continue
		case unix.BPF_RET | unix.BPF_K:
			return in.K
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			yes = acc == in.K
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			yes = acc >= in.K
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			yes = acc&in.K != 0
		default:
			t.Fatalf("instruction %d has code %#x", pc, in.Code)
		}
		if yes {
			pc += int(in.Jt)
		} else {
			pc += int(in.Jf)
		}
	}
	t.Fatal("the filter ends without an answer")
	return 0
}

func TestFilterAnswers(t *testing.T) {
	t.Parallel()
	here := func(number uint32, args ...uint64) call {
		c := call{arch: auditArch, number: number}
		copy(c.args[:], args)
		return c
	}
	const thread = unix.CLONE_VM | unix.CLONE_SIGHAND | unix.CLONE_THREAD | unix.CLONE_FILES | unix.CLONE_FS
	for _, tc := range []struct {
		name string
		call call
		want uint32
	}{
		{"a call of another architecture ends the process", call{arch: auditArch ^ 1, number: unix.SYS_READ}, kill},
		{"reading is allowed", here(unix.SYS_READ), allow},
		{"keys are refused", here(unix.SYS_KEYCTL), denied},
		{"io_uring is refused", here(unix.SYS_IO_URING_SETUP), denied},
		{"mounting is refused", here(unix.SYS_MOUNT), denied},
		{"clone3 is absent", here(unix.SYS_CLONE3), absent},
		{"a thread may be made", here(unix.SYS_CLONE, thread), allow},
		{"as Go makes it", here(unix.SYS_CLONE, thread|unix.CLONE_SYSVSEM|unix.CLONE_SETTLS), allow},
		{"as glibc and musl make it", here(unix.SYS_CLONE, thread|unix.CLONE_SYSVSEM|unix.CLONE_SETTLS|unix.CLONE_PARENT_SETTID|unix.CLONE_CHILD_CLEARTID), allow},
		{"one that has files of its own is refused", here(unix.SYS_CLONE, thread&^unix.CLONE_FILES), denied},
		{"one that has a folder of its own is refused", here(unix.SYS_CLONE, thread&^unix.CLONE_FS), denied},
		{"one that has both is refused", here(unix.SYS_CLONE, thread&^(unix.CLONE_FILES|unix.CLONE_FS)), denied},
		{"a thread in a namespace is refused", here(unix.SYS_CLONE, thread|unix.CLONE_NEWUSER), denied},
		{"a process may be made", here(unix.SYS_CLONE, uint64(unix.SIGCHLD)), allow},
		{"one that shares memory, as vfork makes it", here(unix.SYS_CLONE, unix.CLONE_VM|unix.CLONE_VFORK|uint64(unix.SIGCHLD)), allow},
		{"descriptors may be closed", here(unix.SYS_CLOSE_RANGE, 3, 1<<32-1, unix.CLOSE_RANGE_CLOEXEC), allow},
		{"a thread does not get files of its own so", here(unix.SYS_CLOSE_RANGE, 3, 1<<32-1, unix.CLOSE_RANGE_UNSHARE), denied},
		{"a user namespace is refused", here(unix.SYS_CLONE, unix.CLONE_NEWUSER), denied},
		{"a network namespace is refused", here(unix.SYS_CLONE, unix.CLONE_NEWNET), denied},
		{"memory may be mapped", here(unix.SYS_MMAP, 0, 4096, 3, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE), allow},
		{"huge pages are refused", here(unix.SYS_MMAP, 0, 4096, 3, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_HUGETLB), exhausted},
		{"a file in memory may be made", here(unix.SYS_MEMFD_CREATE, 0, unix.MFD_CLOEXEC), allow},
		{"one of huge pages is refused", here(unix.SYS_MEMFD_CREATE, 0, unix.MFD_HUGETLB), exhausted},
		{"a shared segment may be made", here(unix.SYS_SHMGET, 0, 4096, unix.IPC_CREAT), allow},
		{"one of huge pages is refused", here(unix.SYS_SHMGET, 0, 4096, unix.IPC_CREAT|hugeSegment), exhausted},
		{"local sockets are allowed", here(unix.SYS_SOCKET, unix.AF_UNIX), allow},
		{"IPv4 is allowed", here(unix.SYS_SOCKET, unix.AF_INET), allow},
		{"IPv6 is allowed", here(unix.SYS_SOCKET, unix.AF_INET6), allow},
		{"routes may be read", here(unix.SYS_SOCKET, unix.AF_NETLINK, 0, unix.NETLINK_ROUTE), allow},
		{"netfilter is refused", here(unix.SYS_SOCKET, unix.AF_NETLINK, 0, unix.NETLINK_NETFILTER), family},
		{"the hypervisor's sockets are refused", here(unix.SYS_SOCKET, unix.AF_VSOCK), family},
		{"packets are refused", here(unix.SYS_SOCKET, unix.AF_PACKET), family},
		{"a local pair is allowed", here(unix.SYS_SOCKETPAIR, unix.AF_UNIX), allow},
		{"another pair is refused", here(unix.SYS_SOCKETPAIR, unix.AF_TIPC), family},
		{"reading a terminal's size is allowed", here(unix.SYS_IOCTL, 0, unix.TIOCGWINSZ), allow},
		{"putting input into a terminal is refused", here(unix.SYS_IOCTL, 0, unix.TIOCSTI), denied},
		{"high bits do not hide it", here(unix.SYS_IOCTL, 0, unix.TIOCSTI|1<<40), denied},
		{"another line discipline is refused", here(unix.SYS_IOCTL, 0, unix.TIOCSETD), denied},
		{"room on a disk cannot be reserved", here(unix.SYS_FALLOCATE), unsupported},
		{"nor by a request", here(unix.SYS_IOCTL, 0, 0x40305828), unsupported},
		{"high bits do not hide the request", here(unix.SYS_IOCTL, 0, 0x4030582A|1<<40), unsupported},
		{"nor by zeroes that no process writes", here(unix.SYS_IOCTL, 0, 0x40305839), unsupported},
		{"nor by what one byte takes", here(unix.SYS_IOCTL, 0, 0x401c5820), unsupported},
		{"nor by that as a call", here(unix.SYS_FILE_SETATTR), absent},
		{"what a byte takes may be asked for", here(unix.SYS_IOCTL, 0, 0x801c581f), allow},
		{"files may be cloned", here(unix.SYS_IOCTL, 0, unix.FICLONE), allow},
		{"parts of files, too", here(unix.SYS_IOCTL, 0, unix.FICLONERANGE), allow},
		{"files that are the same may be one", here(unix.SYS_IOCTL, 0, unix.FIDEDUPERANGE), allow},
		{"a volume of btrfs is refused", here(unix.SYS_IOCTL, 0, 0x5000940e), denied},
		{"one in a group is refused", here(unix.SYS_IOCTL, 0, 0x50009418), denied},
		{"a snapshot is refused", here(unix.SYS_IOCTL, 0, 0x50009401), denied},
		{"one that may be read-only is refused", here(unix.SYS_IOCTL, 0, 0x50009417), denied},
		{"a volume is not made read-only", here(unix.SYS_IOCTL, 0, 0x4008941a), denied},
		{"high bits do not hide that", here(unix.SYS_IOCTL, 0, 0x4008941a|1<<40), denied},
		{"nor do other bits of a request", here(unix.SYS_IOCTL, 0, 0xffff94ff), denied},
		{"a volume of bcachefs is refused", here(unix.SYS_IOCTL, 0, 0x4020bc10), denied},
		{"a file's attributes may be changed", here(unix.SYS_IOCTL, 0, 0x40086602), allow},
		{"files may have holes", here(unix.SYS_FTRUNCATE), allow},
		{"no process changes its own command line area", here(unix.SYS_PRCTL, unix.PR_SET_MM), denied},
		{"high bits do not hide that", here(unix.SYS_PRCTL, unix.PR_SET_MM|1<<40), denied},
		{"one's name may be set", here(unix.SYS_PRCTL, unix.PR_SET_NAME), allow},
		{"a file's flags may be asked for", here(unix.SYS_FCNTL, 3, unix.F_GETFL), allow},
		{"a lease on a file is refused", here(unix.SYS_FCNTL, 3, unix.F_SETLEASE, unix.F_WRLCK), denied},
		{"high bits do not hide the lease", here(unix.SYS_FCNTL, 3, unix.F_SETLEASE|1<<40, unix.F_WRLCK), denied},
		{"asking to be traced is refused", here(unix.SYS_PTRACE, unix.PTRACE_TRACEME), denied},
		{"attaching is refused", here(unix.SYS_PTRACE, unix.PTRACE_ATTACH), denied},
		{"seizing is refused", here(unix.SYS_PTRACE, unix.PTRACE_SEIZE), denied},
		{"reading another's memory is refused", here(unix.SYS_PTRACE, unix.PTRACE_PEEKDATA), denied},
		{"one's own limits may be set", here(unix.SYS_PRLIMIT64, 0), allow},
		{"the limit of core files is only said to be set", here(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_CORE, 0x7fff00000000), pretended},
		{"nor by the other half of an address", here(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_CORE, 0x1000), pretended},
		{"it may be asked for", here(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_CORE, 0, 0x1000), allow},
		{"the older call only says so as well", here(unix.SYS_SETRLIMIT, unix.RLIMIT_CORE, 0x1000), pretended},
		{"other limits may be set by it", here(unix.SYS_SETRLIMIT, unix.RLIMIT_NOFILE, 0x1000), allow},
		{"Landlock is absent", here(unix.SYS_LANDLOCK_CREATE_RULESET), absent},
		{"queues of messages by name are absent", here(unix.SYS_MQ_OPEN), absent},
		{"those of System V are not", here(unix.SYS_MSGGET), allow},
		{"asynchronous input and output is absent", here(unix.SYS_IO_SETUP, 1), absent},
		{"those of init may not", here(unix.SYS_PRLIMIT64, 1, unix.RLIMIT_NOFILE, 0x1000), denied},
		{"nor by the number of a thread of it", here(unix.SYS_PRLIMIT64, 3, unix.RLIMIT_NOFILE, 0x7fff00000000), denied},
		{"those of another process may be asked for", here(unix.SYS_PRLIMIT64, 3, unix.RLIMIT_NOFILE, 0, 0x1000), allow},
		{"one's own processors may be chosen", here(unix.SYS_SCHED_SETAFFINITY, 0), allow},
		{"those of init may not", here(unix.SYS_SCHED_SETAFFINITY, 1), denied},
		{"high bits do not hide that", here(unix.SYS_SCHED_SETSCHEDULER, 1|1<<32), denied},
		{"one's own priority may be set", here(unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, 0), allow},
		{"that of init may not", here(unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, 1), denied},
		{"nor that of its group", here(unix.SYS_SETPRIORITY, unix.PRIO_PGRP, 1), denied},
		{"nor that of its user", here(unix.SYS_SETPRIORITY, unix.PRIO_USER, 0), denied},
		{"one's own priority for input and output may be set", here(unix.SYS_IOPRIO_SET, 1, 0), allow},
		{"that of init may not", here(unix.SYS_IOPRIO_SET, 1, 1), denied},
		{"nor that of its user", here(unix.SYS_IOPRIO_SET, 3, 1000), denied},
		{"asking for the personality is allowed", here(unix.SYS_PERSONALITY, 0xffffffff), allow},
		{"another personality is refused", here(unix.SYS_PERSONALITY, 0x0400000), denied},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := run(t, program(), tc.call); got != tc.want {
				t.Errorf("answer %#x, want %#x", got, tc.want)
			}
		})
	}
}

func TestEveryDeniedCallIsRefused(t *testing.T) {
	t.Parallel()
	for _, number := range sortedDenied() {
		if got := run(t, program(), call{arch: auditArch, number: number}); got != denied {
			t.Errorf("call %d: answer %#x", number, got)
		}
	}
}

func TestFilterIsWholeInstructions(t *testing.T) {
	t.Parallel()
	if n := len(Filter()); n != 8*len(program()) || n > 8*unix.BPF_MAXINSNS {
		t.Errorf("%d bytes for %d instructions", n, len(program()))
	}
}
