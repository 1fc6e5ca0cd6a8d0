package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() {
	for name, f := range map[string]func(args []string) string{
		"fork":             fork,
		"runner":           runner,
		"zombies":          zombies,
		"descriptors":      descriptors,
		"in-flight":        inFlight,
		"hold-in-flight":   holdInFlight,
		"eat":              eat,
		"memfd":            memfd,
		"shared-memory":    sharedMemory,
		"pipes":            pipes,
		"loopback-buffers": loopbackBuffers,
		"mapped-deleted":   mappedDeleted,
		"async-io":         asyncIO,
		"terminals":        terminals,
		"hold-terminals":   holdTerminals,
		"semaphores":       semaphores,
		"queued-signals":   queuedSignals,
		"deep":             deep,
		"core-limit":       coreLimit,
		"sparse":           sparse,
	} {
		attacks[name] = f
	}
}

func number(args []string) int {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	return n
}

// fork starts processes that stay until one is refused.
func fork(args []string) string {
	for range number(args) {
		if _, err := os.StartProcess("/bin/sleep", []string{"sleep", "60"}, &os.ProcAttr{}); err != nil {
			return "refused: " + errnoName(err)
		}
	}
	return "never refused"
}

// runner repeatedly forks and exits, so that a kill that first looks for processes comes late.
func runner(args []string) string {
	n := number(args)
	if n == 0 {
		return "tired"
	}
	self, err := os.Executable()
	if err != nil {
		return err.Error()
	}
	args = []string{self, "runner", strconv.Itoa(n - 1)}
	if _, err := os.StartProcess(self, args, &os.ProcAttr{Sys: &unix.SysProcAttr{Setsid: true}}); err != nil { //nolint:gosec // itself
		return errnoName(err)
	}
	return "on"
}

// zombies makes processes end and does not reap them.
func zombies(args []string) string {
	for range number(args) {
		if _, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{}); err != nil {
			return "refused: " + errnoName(err)
		}
	}
	return "never refused"
}

// descriptors opens files until that is refused.
func descriptors(args []string) string {
	for range number(args) {
		if _, err := unix.Open("/dev/null", unix.O_RDONLY, 0); err != nil {
			return errnoName(err)
		}
	}
	return "never refused"
}

// inFlight hides open files in sockets, where no table of descriptors shows them: pipes, with what is in them.
func inFlight(args []string) string {
	pair := [2]int{-1, -1}
	some := make([]byte, 64<<10)
	for range number(args) {
		var p [2]int
		if err := unix.Pipe2(p[:], unix.O_NONBLOCK); err != nil {
			return errnoName(err)
		}
		_, _ = unix.Write(p[1], some)
		rights := unix.UnixRights(p[0])
		err := unix.Sendmsg(pair[0], []byte("x"), rights, nil, 0)
		if errors.Is(err, unix.EBADF) || errors.Is(err, unix.EAGAIN) { // there is none yet, or it is full
			if pair, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0); err == nil {
				err = unix.Sendmsg(pair[0], []byte("x"), rights, nil, 0)
			}
		}
		_, _ = unix.Close(p[0]), unix.Close(p[1])
		if err != nil {
			return errnoName(err)
		}
	}
	return "never refused"
}

// holdInFlight is inFlight, and keeps them there for some seconds.
func holdInFlight(args []string) string {
	fmt.Println(inFlight(args))
	time.Sleep(time.Duration(number(args[1:])) * time.Second) //nolint:forbidigo // an attack that lasts
	return "over"
}

// touch has each page of some memory be there.
func touch(b []byte) {
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
}

// keepFor has an attack last, for so many seconds as it is told behind what it is told else.
func keepFor(args []string) string {
	if len(args) > 0 {
		time.Sleep(time.Duration(number(args)) * time.Second) //nolint:forbidigo // an attack that lasts
	}
	return "never refused"
}

// eat takes megabytes of memory, and keeps them for some seconds.
func eat(args []string) string {
	for range number(args) {
		b, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			return errnoName(err)
		}
		touch(b)
	}
	return keepFor(args[1:])
}

// memfd takes as often eight megabytes in files that have no name, and keeps them for some seconds.
func memfd(args []string) string {
	some := make([]byte, 8<<20)
	for range number(args) {
		fd, err := unix.MemfdCreate("x", 0)
		if err != nil {
			return errnoName(err)
		}
		if _, err := unix.Write(fd, some); err != nil {
			return errnoName(err)
		}
	}
	return keepFor(args[1:])
}

// sharedMemory takes megabytes in segments that outlive their maker, and lasts some seconds.
func sharedMemory(args []string) string {
	for range number(args) {
		id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 1<<20, 0o600)
		if err != nil {
			return errnoName(err)
		}
		b, err := unix.SysvShmAttach(id, 0, 0)
		if err != nil {
			return errnoName(err)
		}
		touch(b)
		if err := unix.SysvShmDetach(b); err != nil {
			return errnoName(err)
		}
	}
	return keepFor(args[1:])
}

// pipes fills pipes, whose memory is the kernel's.
func pipes(args []string) string {
	block := make([]byte, 64<<10)
	for range number(args) {
		var p [2]int
		if err := unix.Pipe2(p[:], unix.O_NONBLOCK); err != nil {
			return errnoName(err)
		}
		for {
			if _, err := unix.Write(p[1], block); err != nil {
				break
			}
		}
	}
	return "never refused"
}

// loopbackBuffers fills the buffers of connections to itself, whose memory is the
// kernel's. It tells how many megabytes that took.
func loopbackBuffers(args []string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // one that ends with the process
	if err != nil {
		return errnoName(err)
	}
	block, total := make([]byte, 64<<10), 0
	for range number(args) {
		c, err := net.Dial("tcp", l.Addr().String()) //nolint:noctx // as above
		if err != nil {
			break
		}
		if _, err := l.Accept(); err != nil {
			break
		}
		for {
			if err := c.SetWriteDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
				return err.Error()
			}
			n, err := c.Write(block)
			total += n
			if err != nil {
				break
			}
		}
	}
	return fmt.Sprintf("%d MiB", total>>20)
}

// mappedDeleted fills files that have no name and are not open: they are only mapped into memory.
func mappedDeleted(args []string) string {
	for range number(args) {
		f, err := os.Create("hidden")
		if err != nil {
			return errnoName(err)
		}
		if err := f.Truncate(4 << 20); err != nil {
			return errnoName(err)
		}
		b, err := unix.Mmap(int(f.Fd()), 0, 4<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return errnoName(err)
		}
		_, _ = f.Close(), os.Remove("hidden")
		touch(b)
		_ = unix.Msync(b, unix.MS_SYNC)
	}
	time.Sleep(8 * time.Second) //nolint:forbidigo // an attack that lasts
	return "never refused"
}

// asyncIO takes slots for asynchronous input and output, of which the machine has a
// fixed number.
func asyncIO(args []string) string {
	for range number(args) {
		var context uint64
		if _, err := call(unix.SYS_IO_SETUP, 1024, uintptr(unsafe.Pointer(&context))); err != nil { //nolint:gosec // the kernel takes an address
			return errnoName(err)
		}
	}
	return "never refused"
}

// terminals opens pseudo-terminals, of which the machine has a fixed number.
func terminals(args []string) string {
	for range number(args) {
		if _, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY, 0); err != nil {
			return errnoName(err)
		}
	}
	return "never refused"
}

// holdTerminals opens what it can get, says so, and keeps it.
func holdTerminals(args []string) string {
	fmt.Println(terminals(args))
	_ = unix.Pause() // asleep in the kernel: the runtime has no descriptor left for a timer
	return "end"
}

// semaphores makes arrays of as many semaphores as there may be in one, which outlive their maker, and lasts some seconds.
func semaphores(args []string) string {
	for range number(args) {
		if _, err := call(unix.SYS_SEMGET, 0, 32000, 0o600); err != nil {
			return errnoName(err)
		}
	}
	return keepFor(args[1:])
}

// queuedSignals has signals wait for itself.
func queuedSignals(args []string) string {
	const realtime, block = 40, 0
	set := unix.Sigset_t{}
	set.Val[0] = 1 << (realtime - 1)
	if err := unix.PthreadSigmask(block, &set, nil); err != nil {
		return errnoName(err)
	}
	binary.NativeEndian.PutUint32(buffer[0:], realtime)
	binary.NativeEndian.PutUint32(buffer[8:], ^uint32(0)) // SI_QUEUE
	for range number(args) {
		if _, err := call(unix.SYS_RT_TGSIGQUEUEINFO, uintptr(unix.Getpid()), uintptr(unix.Gettid()), realtime, at(0)); err != nil {
			return errnoName(err)
		}
	}
	return "never refused"
}

// deep nests folders deeper than any path can name.
func deep(args []string) string {
	for range number(args) {
		if err := unix.Mkdir("d", 0o700); err != nil {
			return errnoName(err)
		}
		if err := unix.Chdir("d"); err != nil {
			return errnoName(err)
		}
	}
	return "made"
}

// coreLimit tells the limit of core files before and after it was set to nothing. One
// of exactly one byte is what keeps the kernel from handing the memory of a process
// that crashes to a program of the host.
func coreLimit([]string) string {
	var before, after unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &before); err != nil {
		return errnoName(err)
	}
	set := errnoName(unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}))
	set += " " + raw(unix.SYS_SETRLIMIT, unix.RLIMIT_CORE, at(4096))
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &after); err != nil {
		return errnoName(err)
	}
	return fmt.Sprintf("%d %d, %s, %d %d", before.Cur, before.Max, set, after.Cur, after.Max)
}

// sparse makes a file that is large by its size alone.
func sparse(args []string) string {
	f, err := os.Create("sparse")
	if err != nil {
		return errnoName(err)
	}
	defer func() { _, _ = f.Close(), os.Remove("sparse") }()
	return errnoName(f.Truncate(int64(number(args)) << 30))
}
