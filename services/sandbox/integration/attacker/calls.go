package main

import (
	"os"
	"os/signal"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// buffer is memory that the kernel may read and write.
var buffer [64 << 10]byte

func at(offset int) uintptr { return uintptr(unsafe.Pointer(&buffer[offset])) } //nolint:gosec // the kernel takes an address

// text puts a string where the kernel finds it.
func text(offset int, s string) uintptr {
	copy(buffer[offset:], s+"\x00")
	return at(offset)
}

// Numbers that all architectures share and that the library does not know.
const (
	sysStatmount    = 457
	sysOpenTreeAttr = 467
	sysFileSetattr  = 469
)

const cwd = ^uintptr(99) // AT_FDCWD

// thread is how threads are made, but for what the kernel answers EINVAL without: none is made in any case.
const thread = unix.CLONE_VM | unix.CLONE_THREAD | unix.CLONE_FILES | unix.CLONE_FS

// calls are attacks that are one system call.
var calls = map[string]func() string{
	"mount":              func() string { return raw(unix.SYS_MOUNT, text(0, "x"), text(64, "/tmp"), text(128, "tmpfs"), 0, 0) },
	"bind-mount":         func() string { return raw(unix.SYS_MOUNT, text(0, "/usr"), text(64, "/tmp"), 0, unix.MS_BIND, 0) },
	"remount":            func() string { return raw(unix.SYS_MOUNT, 0, text(64, "/"), 0, unix.MS_REMOUNT|unix.MS_BIND, 0) },
	"umount":             func() string { return raw(unix.SYS_UMOUNT2, text(0, "/proc/kcore"), unix.MNT_DETACH) },
	"pivot-root":         func() string { return raw(unix.SYS_PIVOT_ROOT, text(0, "/tmp"), text(64, "/tmp")) },
	"chroot":             func() string { return raw(unix.SYS_CHROOT, text(0, "/tmp")) },
	"open-tree":          func() string { return raw(unix.SYS_OPEN_TREE, cwd, text(0, "/"), 1) },
	"open-tree-attr":     func() string { return raw(sysOpenTreeAttr, cwd, text(0, "/"), 1, 0, 0) },
	"move-mount":         func() string { return raw(unix.SYS_MOVE_MOUNT, cwd, text(0, "/proc"), cwd, text(64, "/tmp"), 0) },
	"fsopen":             func() string { return raw(unix.SYS_FSOPEN, text(0, "tmpfs"), 0) },
	"fspick":             func() string { return raw(unix.SYS_FSPICK, cwd, text(0, "/"), 0) },
	"mount-setattr":      func() string { return raw(unix.SYS_MOUNT_SETATTR, cwd, text(0, "/"), 0, at(4096), 32) },
	"unshare-user":       func() string { return raw(unix.SYS_UNSHARE, unix.CLONE_NEWUSER) },
	"unshare-mount":      func() string { return raw(unix.SYS_UNSHARE, unix.CLONE_NEWNS) },
	"unshare-network":    func() string { return raw(unix.SYS_UNSHARE, unix.CLONE_NEWNET) },
	"unshare-pid":        func() string { return raw(unix.SYS_UNSHARE, unix.CLONE_NEWPID) },
	"unshare-ipc":        func() string { return raw(unix.SYS_UNSHARE, unix.CLONE_NEWIPC) },
	"unshare-uts":        func() string { return raw(unix.SYS_UNSHARE, unix.CLONE_NEWUTS) },
	"unshare-cgroup":     func() string { return raw(unix.SYS_UNSHARE, unix.CLONE_NEWCGROUP) },
	"unshare-time":       func() string { return raw(unix.SYS_UNSHARE, unix.CLONE_NEWTIME) },
	"clone-user":         func() string { return raw(unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD)) },
	"clone-mount":        func() string { return raw(unix.SYS_CLONE, unix.CLONE_NEWNS|uintptr(unix.SIGCHLD)) },
	"clone-own-files":    func() string { return raw(unix.SYS_CLONE, thread&^unix.CLONE_FILES, 0) },
	"clone-own-folder":   func() string { return raw(unix.SYS_CLONE, thread&^unix.CLONE_FS, 0) },
	"move-stack":         func() string { return raw(unix.SYS_PRCTL, unix.PR_SET_MM, unix.PR_SET_MM_MAP_SIZE, at(0), 0, 0) }, // a question, which needs no right
	"clone3":             func() string { return raw(unix.SYS_CLONE3, at(0), 88) },
	"add-key":            func() string { return raw(unix.SYS_ADD_KEY, text(0, "user"), text(64, "a"), at(128), 1, ^uintptr(3)) },
	"request-key":        func() string { return raw(unix.SYS_REQUEST_KEY, text(0, "user"), text(64, "a"), 0, 0) },
	"keyctl-session":     func() string { return raw(unix.SYS_KEYCTL, 0, ^uintptr(2), 1) },
	"keyctl-user":        func() string { return raw(unix.SYS_KEYCTL, 0, ^uintptr(3), 1) },
	"keyctl-join":        func() string { return raw(unix.SYS_KEYCTL, 1, 0) },
	"bpf-map":            func() string { return raw(unix.SYS_BPF, 0, at(0), 72) },
	"bpf-program":        func() string { return raw(unix.SYS_BPF, 5, at(0), 72) },
	"io-uring-setup":     func() string { return raw(unix.SYS_IO_URING_SETUP, 8, at(4096)) },
	"io-uring-enter":     func() string { return raw(unix.SYS_IO_URING_ENTER, 0, 1, 0, 0) },
	"io-uring-register":  func() string { return raw(unix.SYS_IO_URING_REGISTER, 0, 0, 0, 0) },
	"userfaultfd":        func() string { return raw(unix.SYS_USERFAULTFD, 1) },
	"lease":              func() string { return raw(unix.SYS_FCNTL, 0, unix.F_SETLEASE, unix.F_RDLCK) },
	"perf":               func() string { return raw(unix.SYS_PERF_EVENT_OPEN, at(4096), 0, ^uintptr(0), ^uintptr(0), 0) },
	"fanotify":           func() string { return raw(unix.SYS_FANOTIFY_INIT, 0, 0) },
	"init-module":        func() string { return raw(unix.SYS_INIT_MODULE, at(0), 64, text(128, "")) },
	"finit-module":       func() string { return raw(unix.SYS_FINIT_MODULE, 0, text(0, ""), 0) },
	"delete-module":      func() string { return raw(unix.SYS_DELETE_MODULE, text(0, "x"), 0) },
	"kexec":              func() string { return raw(unix.SYS_KEXEC_LOAD, 0, 0, 0, 0) },
	"kexec-file":         func() string { return raw(unix.SYS_KEXEC_FILE_LOAD, 0, 0, 0, 0, 0) },
	"reboot":             func() string { return raw(unix.SYS_REBOOT, 0xfee1dead, 672274793, 0, 0) },
	"swapon":             func() string { return raw(unix.SYS_SWAPON, text(0, "/tmp/swap"), 0) },
	"acct":               func() string { return raw(unix.SYS_ACCT, text(0, "/tmp/acct")) },
	"quotactl":           func() string { return raw(unix.SYS_QUOTACTL, 0x800002, text(0, "/dev/vda"), 0, at(4096)) },
	"syslog":             func() string { return raw(unix.SYS_SYSLOG, 3, at(4096), 1000) },
	"settimeofday":       func() string { return raw(unix.SYS_SETTIMEOFDAY, at(4096), 0) },
	"clock-settime":      func() string { return raw(unix.SYS_CLOCK_SETTIME, 0, at(4096)) },
	"adjtimex":           func() string { return raw(unix.SYS_ADJTIMEX, at(4096)) },
	"sethostname":        func() string { return raw(unix.SYS_SETHOSTNAME, text(0, "evil"), 4) },
	"setdomainname":      func() string { return raw(unix.SYS_SETDOMAINNAME, text(0, "evil"), 4) },
	"vhangup":            func() string { return raw(unix.SYS_VHANGUP) },
	"personality-exec":   func() string { return raw(unix.SYS_PERSONALITY, 0x0400000) },
	"personality-compat": func() string { return raw(unix.SYS_PERSONALITY, 0x0200000) },
	"landlock":           func() string { return raw(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, 1) },
	"message-queue":      func() string { return raw(unix.SYS_MQ_OPEN, text(0, "left"), unix.O_RDWR|unix.O_CREAT, 0o600, 0) },
	"find-message-queue": func() string { return raw(unix.SYS_MQ_OPEN, text(0, "left"), unix.O_RDWR) },
	"io-setup":           func() string { return raw(unix.SYS_IO_SETUP, 128, at(4096)) },
	"name-to-handle": func() string {
		buffer[4096] = 128
		return raw(unix.SYS_NAME_TO_HANDLE_AT, cwd, text(0, "/usr"), at(4096), at(64), 0)
	},
	"open-by-handle":     func() string { return raw(unix.SYS_OPEN_BY_HANDLE_AT, cwd, at(4096), 0) },
	"ptrace-attach-init": func() string { return raw(unix.SYS_PTRACE, unix.PTRACE_ATTACH, 1, 0, 0) },
	"ptrace-seize-init":  func() string { return raw(unix.SYS_PTRACE, unix.PTRACE_SEIZE, 1, 0, 0) },
	"read-init-memory":   func() string { return raw(unix.SYS_PROCESS_VM_READV, 1, at(0), 1, at(64), 1, 0) },
	"write-init-memory":  func() string { return raw(unix.SYS_PROCESS_VM_WRITEV, 1, at(0), 1, at(64), 1, 0) },
	"kcmp":               func() string { return raw(unix.SYS_KCMP, 1, 1, 0, 0, 0) },
	"move-pages":         func() string { return raw(unix.SYS_MOVE_PAGES, 1, 0, 0, 0, 0, 0) },
	"process-madvise":    func() string { return raw(unix.SYS_PROCESS_MADVISE, 0, 0, 0, 0, 0) },
	"huge-pages-mapped": func() string {
		const flags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_HUGETLB | unix.MAP_NORESERVE
		return raw(unix.SYS_MMAP, 0, 2<<20, unix.PROT_READ|unix.PROT_WRITE, flags, ^uintptr(0), 0)
	},
	"huge-pages-in-a-file":  func() string { return raw(unix.SYS_MEMFD_CREATE, text(0, "x"), unix.MFD_HUGETLB) },
	"limit-init":            func() string { return raw(unix.SYS_PRLIMIT64, 1, unix.RLIMIT_NOFILE, at(4096), 0) },
	"setuid-root":           func() string { return raw(unix.SYS_SETUID, 0) },
	"setresuid-host":        func() string { return raw(unix.SYS_SETRESUID, 300_001, 300_001, 300_001) },
	"setgroups":             func() string { return raw(unix.SYS_SETGROUPS, 1, at(4096)) },
	"no-new-privileges-off": func() string { return raw(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0) },
	"seccomp-off":           func() string { return raw(unix.SYS_PRCTL, unix.PR_SET_SECCOMP, 0, 0, 0, 0) },
	"number-of-64":          func() string { return raw(1<<32 | unix.SYS_KEYCTL) },
	"ambient-capability": func() string {
		return raw(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, unix.CAP_SYS_ADMIN, 0, 0)
	},
	"securebits":             func() string { return raw(unix.SYS_PRCTL, unix.PR_SET_SECUREBITS, 0, 0, 0, 0) },
	"own-dynamic-executable": func() string { return raw(unix.SYS_PRCTL, unix.PR_SET_MM, unix.PR_SET_MM_EXE_FILE, 0, 0, 0) },
	"mknod-block": func() string {
		return raw(unix.SYS_MKNODAT, cwd, text(0, "/tmp/block"), unix.S_IFBLK|0o666, uintptr(unix.Mkdev(254, 0)))
	},
	"mknod-char": func() string {
		return raw(unix.SYS_MKNODAT, cwd, text(0, "/tmp/char"), unix.S_IFCHR|0o666, uintptr(unix.Mkdev(1, 1)))
	},
	"nice":     func() string { return raw(unix.SYS_SETPRIORITY, 0, 0, ^uintptr(18)) },
	"realtime": func() string { buffer[4096] = 50; return raw(unix.SYS_SCHED_SETSCHEDULER, 0, 1, at(4096)) },
	"capset":   capset,
}

func init() {
	for name, f := range calls {
		attacks[name] = func([]string) string { return f() }
	}
	attacks["ptrace-child"] = ptraceChild
	attacks["steal-descriptor"] = stealDescriptor
	attacks["kill-init"] = killInit
	attacks["setns"] = setns
	attacks["namespace-parent"] = namespaceParent
	attacks["signal-storm"] = signalStorm
}

func capset() string {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	all := [2]unix.CapUserData{}
	for i := range all {
		all[i] = unix.CapUserData{Effective: ^uint32(0), Permitted: ^uint32(0), Inheritable: ^uint32(0)}
	}
	return errnoName(unix.Capset(&header, &all[0]))
}

// ptraceChild looks into a process of its own that asked to be traced: what is
// refused to all is refused to parents as well.
func ptraceChild([]string) string {
	p, err := os.StartProcess("/bin/sleep", []string{"sleep", "5"}, &os.ProcAttr{})
	if err != nil {
		return err.Error()
	}
	defer func() { _ = p.Kill(); _, _ = p.Wait() }()
	return raw(unix.SYS_PTRACE, unix.PTRACE_ATTACH, uintptr(p.Pid), 0, 0)
}

// stealDescriptor takes the socket by which init hears the service.
func stealDescriptor([]string) string {
	fd, err := unix.PidfdOpen(1, 0)
	if err != nil {
		return "pidfd_open: " + errnoName(err)
	}
	return raw(unix.SYS_PIDFD_GETFD, uintptr(fd), 3, 0)
}

// killInit sends init every signal there is, by number and by descriptor.
func killInit([]string) string {
	fd, err := unix.PidfdOpen(1, 0)
	if err != nil {
		return "pidfd_open: " + errnoName(err)
	}
	for n := unix.Signal(1); n <= 64; n++ {
		_ = unix.Kill(1, n)
		_ = unix.PidfdSendSignal(fd, n, nil, 0)
	}
	return "sent"
}

// setns enters the namespaces of init, of which those that can be opened are its
// own.
func setns([]string) string {
	worst := "EPERM"
	for _, kind := range []string{"user", "mnt", "net", "pid", "ipc", "uts", "cgroup"} {
		fd, err := unix.Open("/proc/self/ns/"+kind, unix.O_RDONLY, 0)
		if err != nil {
			return "open: " + errnoName(err)
		}
		if got := raw(unix.SYS_SETNS, uintptr(fd), 0); got != "EPERM" {
			worst = kind + " " + got
		}
	}
	return worst
}

// namespaceParent asks for the namespaces above its own.
func namespaceParent([]string) string {
	const getUser, getParent = 0xb701, 0xb702
	worst := "EPERM"
	for _, x := range []struct {
		kind    string
		request uintptr
	}{{"pid", getParent}, {"net", getUser}, {"mnt", getUser}} {
		fd, err := unix.Open("/proc/self/ns/"+x.kind, unix.O_RDONLY, 0)
		if err != nil {
			return "open: " + errnoName(err)
		}
		r, err := call(unix.SYS_IOCTL, uintptr(fd), x.request)
		if err == nil && x.request == getUser { // its own user namespace is no secret; the one above is
			r, err = call(unix.SYS_IOCTL, r, getParent)
		}
		if got := errnoName(err); got != "EPERM" {
			worst = x.kind + " " + got
		}
		_ = r
	}
	return worst
}

// signalStorm sends real-time signals to init and to all processes as fast as it can,
// from several threads.
func signalStorm([]string) string {
	signal.Ignore()
	var wg sync.WaitGroup
	for range runtime.NumCPU() {
		wg.Go(func() {
			for i := range 50_000 {
				_ = unix.Kill(1, unix.Signal(1+i%64))
			}
		})
	}
	wg.Wait()
	return "sent"
}
