package main

import (
	"cmp"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// Init does not start commands with package syscall, which blocks its caller until the program is executed,
// and can hold a process only by stopping it at its first instruction. Here the new process itself waits,
// before it executes the program, at a gate that the service opens. Init goes on meanwhile.
//
// Until then the process runs in init's memory, on a stack of its own. It runs only the assembler's loop
// over a list of system calls. All signals are blocked, so none of Go's handlers runs in it.

// call is a system call of a new process.
type call struct {
	number    uintptr
	arguments [4]uintptr
	// want is the required result, without which the process ends silently; zero: any success.
	want uintptr
}

// failure is why a new process executed no program.
type failure struct {
	errno uintptr
	left  uintptr // number of calls left, including the failed one; zero: none failed
}

// child is the memory of init that a new process reads and writes. The kernel gets addresses, so child
// keeps their targets alive until the process is reaped.
type child struct {
	calls  []call
	folder int // index of the call that enters it
	failed failure
	masks  [2]uint64 // all signals, and those that are blocked in the program
	stack  [64]uint64
	limits [4]unix.Rlimit

	dir, program, shell  *byte
	argv, env, shellArgv []*byte
}

// spawn starts a process that makes calls. The last ones execute the program: if one fails with ENOEXEC,
// the next is tried. It returns a negative errno if there is no process.
func spawn(calls *call, n int, failed *failure, flags, stack uintptr, masks *[2]uint64) (pid int)

// Numbers that starting needs.
const (
	opened      = 1 // what is read at a gate that the service opens: one byte
	cloneMemory = unix.CLONE_VM | uintptr(unix.SIGCHLD)
)

// A script without a first line is run by the shell; these are its path and name.
var (
	shellPath = []byte("/bin/sh\x00")
	shellName = []byte("sh\x00")
	noText    = []byte{0}
)

// byDefault is the default action of a signal.
var byDefault action

// start starts the process. The caller keeps its own files.
func (p *child) start() (pid int, err error) {
	p.masks[0] = ^uint64(0)
	top := uintptr(unsafe.Pointer(&p.stack[len(p.stack)-2])) //nolint:gosec // the kernel takes an address
	pid = spawn(&p.calls[0], len(p.calls), &p.failed, cloneMemory, top&^15, &p.masks)
	if pid < 0 {
		return 0, unix.Errno(-pid)
	}
	return pid, nil
}

// newChild prepares a command's process, which reads the command's strings in place. gate is none if it
// need not wait.
func newChild(c *wire.Command, streams []int, gate int) (*child, error) {
	p := &child{calls: make([]call, 0, lastSignal+16)}
	if err := p.name(c); err != nil {
		return nil, err
	}
	p.add(unix.SYS_SETSID)
	for n := unix.Signal(1); n <= lastSignal; n++ {
		if !isFixed(n) {
			p.add(unix.SYS_RT_SIGACTION, uintptr(n), at(&byDefault), 0, 8)
		}
	}
	p.folder = len(p.calls)
	p.add(unix.SYS_CHDIR, at(p.dir))
	for i, fd := range streams {
		p.add(unix.SYS_DUP3, uintptr(fd), uintptr(i))
	}
	if c.Terminal {
		p.add(unix.SYS_IOCTL, 0, unix.TIOCSCTTY, 0)
	}
	p.limit(c)
	if gate != none {
		p.add(unix.SYS_READ, uintptr(gate), at(&p.stack[0]), 1)
		p.calls[len(p.calls)-1].want = opened
	}
	p.add(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, at(&p.masks[1]), 0, 8)
	p.add(unix.SYS_EXECVE, at(p.program), at(&p.argv[0]), at(&p.env[0]))
	p.add(unix.SYS_EXECVE, at(p.shell), at(&p.shellArgv[0]), at(&p.env[0]))
	return p, nil
}

// none means no descriptor.
const none = -1

func (p *child) add(number uintptr, arguments ...uintptr) {
	c := call{number: number}
	copy(c.arguments[:], arguments)
	p.calls = append(p.calls, c)
}

// at returns the address that the kernel takes.
func at[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) } //nolint:gosec // who calls it holds p

// name finds the program as a shell would, and prepares all names for the kernel.
func (p *child) name(c *wire.Command) error {
	path, err := find(c)
	if err != nil {
		return err
	}
	if p.program, err = pointer(path); err != nil {
		return unix.ENOENT
	}
	if p.dir, err = pointer(c.Dir); err != nil {
		return unix.ENOENT
	}
	if p.argv, err = pointers(c.Argv); err != nil {
		return err
	}
	if p.env, err = pointers(c.Env); err != nil {
		return err
	}
	p.shell, p.shellArgv = &shellPath[0], append([]*byte{&shellName[0], p.program}, p.argv[1:]...)
	return nil
}

// pointer returns a string as the kernel reads it. A zero byte follows the string, as in a packet.
func pointer(s string) (*byte, error) {
	if strings.IndexByte(s, 0) >= 0 {
		return nil, unix.EINVAL
	}
	if s == "" { // it may be anywhere
		return &noText[0], nil
	}
	return unsafe.StringData(s), nil //nolint:gosec // the kernel takes a pointer
}

// pointers returns strings as the kernel reads them, with a nil at the end.
func pointers(all []string) ([]*byte, error) {
	list := make([]*byte, len(all)+1)
	for i, s := range all {
		p, err := pointer(s)
		if err != nil {
			return nil, err
		}
		list[i] = p
	}
	return list, nil
}

// find returns the path of a program: in the folders of PATH, unless its name is a path. A zero byte
// follows the result, as it follows the name.
func find(c *wire.Command) (path string, err error) {
	name := c.Argv[0]
	if strings.Contains(name, "/") {
		return name, nil
	}
	err = unix.ENOENT
	var buffer [unix.PathMax]byte // there may be many folders and little memory
	for dir := range strings.SplitSeq(lookup(c.Env, "PATH"), ":") {
		if len(c.Dir)+len(dir)+len(name)+4 > len(buffer) {
			continue
		}
		whole := buffer[:0]
		if !strings.HasPrefix(dir, "/") {
			whole = append(append(whole, c.Dir...), '/')
		}
		whole = append(append(append(append(whole, cmp.Or(dir, ".")...), '/'), name...), 0)
		here := unix.AT_FDCWD
		if _, _, e := unix.Syscall(unix.SYS_FACCESSAT, uintptr(here), uintptr(unsafe.Pointer(&whole[0])), unix.F_OK); e != 0 { //nolint:gosec // the kernel takes a pointer
			continue
		}
		path := string(whole)[:len(whole)-1]
		var st unix.Stat_t
		if unix.Stat(path, &st) != nil {
			continue
		}
		if st.Mode&unix.S_IFMT == unix.S_IFREG && unix.Access(path, unix.X_OK) == nil {
			return path, nil
		}
		err = unix.EACCES
	}
	return "", err
}

func lookup(env []string, key string) string {
	value := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, key+"="); ok {
			value = v
		}
	}
	return value
}

// limit lowers the limits of the process itself. The limit of open files may be lower already.
func (p *child) limit(c *wire.Command) {
	var files unix.Rlimit
	if c.OpenFiles > 0 && unix.Getrlimit(unix.RLIMIT_NOFILE, &files) == nil {
		c.OpenFiles = min(c.OpenFiles, files.Max)
	}
	for i, l := range []struct {
		id    uintptr
		value uint64
	}{{unix.RLIMIT_AS, c.AddressSpace}, {unix.RLIMIT_NPROC, c.Processes}, {unix.RLIMIT_FSIZE, c.FileSize}, {unix.RLIMIT_NOFILE, c.OpenFiles}} {
		if l.value > 0 {
			p.limits[i] = unix.Rlimit{Cur: l.value, Max: l.value}
			p.add(unix.SYS_PRLIMIT64, 0, l.id, at(&p.limits[i]))
		}
	}
}

// fault returns why no program was executed, and whether the folder was the reason. It returns nil if a
// program was executed or the gate was not opened.
func (p *child) fault() (err error, folder bool) { //nolint:revive // it is the result
	if p.failed.left == 0 {
		return nil, false
	}
	return unix.Errno(p.failed.errno), len(p.calls)-int(p.failed.left) == p.folder
}
