package none

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/terminal"
)

// markName is the variable that marks the processes of a command.
const markName = "FAIRLEAD_COMMAND"

// process is a box.Process.
type process struct {
	r         *Runner
	workspace string
	mark      string
	pid       int
	in        io.WriteCloser
	out, err  io.ReadCloser
	master    *os.File      // of its terminal; nil if it has none
	line      *os.File      // the terminal's slave, until the end: the command may close and reopen its own
	ended     chan struct{} // closed when nothing of the command runs
	exit      box.Exit      // valid once ended is closed

	mu     sync.Mutex // guards what follows
	reaped bool       // the pid may have been reused
}

func (p *process) Stdin() io.WriteCloser { return p.in }
func (p *process) Stdout() io.ReadCloser { return p.out }
func (p *process) Stderr() io.ReadCloser { return p.err }

// Terminals and Written implement box.Process: this driver does not count them.
func (p *process) Terminals() int { return 0 }
func (p *process) Written() int64 { return 0 }

// start starts the command. If it cannot be executed, its end says why.
func (p *process) start(c box.Command) (err error) {
	dir := hostPath(c.Sandbox, c.Dir)
	if err := checkFolder(dir); err != nil {
		p.endUnstarted(box.CannotEnter(c.Dir, err))
		return nil
	}
	env := append(c.Environment(p.r.path, c.Sandbox.Home, dir), p.mark)
	attr := &syscall.ProcAttr{Dir: dir, Env: env, Sys: &syscall.SysProcAttr{Setsid: true}}
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			_ = f.Close()
		}
		if err != nil {
			p.closeOurs()
		}
	}()
	if c.Terminal != nil {
		theirs, err = p.openTerminal(*c.Terminal)
		attr.Sys.Setctty = true // of its descriptor 0
	} else {
		theirs, err = p.openStreams(c.Stdin)
	}
	if err != nil {
		return fmt.Errorf("prepare the command's input and output: %w", err)
	}
	switch {
	case c.Terminal != nil:
		attr.Files = []uintptr{theirs[0].Fd(), theirs[0].Fd(), theirs[0].Fd()}
	case c.Stdin:
		attr.Files = []uintptr{theirs[2].Fd(), theirs[0].Fd(), theirs[1].Fd()}
	default:
		attr.Files = []uintptr{p.r.null.Fd(), theirs[0].Fd(), theirs[1].Fd()}
	}
	p.pid, err = execute(c.Argv, attr)
	switch {
	case errors.Is(err, unix.E2BIG):
		p.endUnstarted("the arguments and the environment are too long together")
	case err != nil:
		p.endUnstarted("cannot execute " + c.Argv[0] + ": " + err.Error())
	case c.Terminal != nil:
		p.line, theirs = theirs[0], nil
	}
	return nil
}

// endUnstarted ends a command that never ran and wrote nothing.
func (p *process) endUnstarted(why string) {
	p.closeOurs()
	p.in, p.out = nil, io.NopCloser(strings.NewReader(""))
	if p.master == nil {
		p.err = io.NopCloser(strings.NewReader(""))
	}
	p.exit.NotStarted, p.reaped = why, true
	close(p.ended)
}

// openStreams makes the pipes of a command without a terminal. It returns the command's ends: output, error
// and, if stdin is set, input.
func (p *process) openStreams(stdin bool) (theirs []*os.File, err error) {
	out, childOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.out = out
	errOut, childErr, err := os.Pipe()
	if err != nil {
		return []*os.File{childOut}, err
	}
	p.err = errOut
	theirs = []*os.File{childOut, childErr}
	if stdin {
		childIn, in, err := os.Pipe()
		if err != nil {
			return theirs, err
		}
		p.in = in
		theirs = append(theirs, childIn)
	}
	return theirs, nil
}

func (p *process) openTerminal(size box.TerminalSize) (theirs []*os.File, err error) {
	master, slave, err := terminal.Open(size.Rows, size.Columns)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(master, true); err != nil {
		return nil, errors.Join(err, unix.Close(master), unix.Close(slave))
	}
	p.master = os.NewFile(uintptr(master), "terminal")
	p.in, p.out = &terminal.Input{File: p.master}, terminal.Output{File: p.master}
	return []*os.File{os.NewFile(uintptr(slave), "terminal")}, nil
}

func (p *process) closeOurs() {
	if p.master != nil {
		_ = p.master.Close()
		return
	}
	for _, c := range []io.Closer{p.in, p.out, p.err} {
		if c != nil {
			_ = c.Close()
		}
	}
}

func checkFolder(dir string) error {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return unix.ENOTDIR
	}
	return unix.Access(dir, unix.X_OK)
}

// execute finds the program as a shell would and starts it.
func execute(argv []string, attr *syscall.ProcAttr) (pid int, err error) {
	candidates := []string{argv[0]}
	if !strings.Contains(argv[0], "/") {
		candidates = nil
		for _, kv := range attr.Env {
			if dirs, ok := strings.CutPrefix(kv, "PATH="); ok {
				for _, dir := range strings.Split(dirs, ":") {
					candidates = append(candidates, cmp.Or(dir, ".")+"/"+argv[0])
				}
			}
		}
	}
	err = unix.ENOENT
	for _, path := range candidates {
		pid, fault := syscall.ForkExec(path, argv, attr) //nolint:gosec // what it is for
		if errors.Is(fault, unix.ENOEXEC) {              // a script without a first line
			pid, fault = syscall.ForkExec("/bin/sh", append([]string{"sh", path}, argv[1:]...), attr) //nolint:gosec // as above
		}
		if fault == nil {
			return pid, nil
		}
		if !errors.Is(fault, unix.ENOENT) && !errors.Is(fault, unix.ENOTDIR) {
			err = fault
		}
	}
	return 0, err
}

// Resize implements box.Process.
func (p *process) Resize(size box.TerminalSize) error {
	if p.master == nil {
		return box.ErrNoTerminal
	}
	return terminal.ResizeFile(p.master, size.Rows, size.Columns)
}

// Signal implements box.Process. An ended command is not harmed.
func (p *process) Signal(number int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return nil
	}
	if err := unix.Kill(-p.pid, unix.Signal(number)); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("send signal %d: %w", number, err)
	}
	return nil
}

// Kill implements box.Process. follow ends the processes that the command started.
func (p *process) Kill() { _ = p.Signal(int(unix.SIGKILL)) }

// Ended implements box.Process.
func (p *process) Ended() <-chan struct{} { return p.ended }

// Wait implements box.Process.
func (p *process) Wait() box.Exit {
	<-p.ended
	return p.exit
}

// follow waits for the command's end and then ends its remaining processes.
func (p *process) follow() {
	var info unix.Siginfo
	for errors.Is(unix.Waitid(unix.P_PID, p.pid, &info, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	p.mu.Lock() // so that a signal does not reach the next process with that pid
	var status unix.WaitStatus
	var usage unix.Rusage
	_, err := unix.Wait4(p.pid, &status, 0, &usage)
	p.reaped = true
	p.mu.Unlock()
	p.sweep()
	if p.line != nil {
		_ = p.line.Close()
	}
	switch {
	case err != nil:
		p.exit.Lost = true
	case status.Signaled():
		p.exit.Signal = int(status.Signal())
	default:
		p.exit.Status = status.ExitStatus()
	}
	p.exit.CPU = time.Duration(unix.TimevalToNsec(usage.Utime) + unix.TimevalToNsec(usage.Stime))
	p.exit.MaxMemory = usage.Maxrss << 10
	p.r.forget(p)
	close(p.ended)
}

// sweepTimeout limits how long forking processes are chased.
const sweepTimeout = 5 * time.Second

// sweep kills processes with the command's mark until it finds none.
func (p *process) sweep() {
	for end := time.Now().Add(sweepTimeout); time.Now().Before(end); {
		found := false
		all, err := os.ReadDir("/proc")
		if err != nil {
			return
		}
		for _, d := range all {
			dir, err := os.Open("/proc/" + d.Name()) // stays that process's, even if the pid is reused
			if err != nil {
				continue
			}
			found = p.strike(dir) || found
			_ = dir.Close()
		}
		if !found {
			return
		}
	}
}

// strike kills a process if it has the mark, and reports whether it does.
func (p *process) strike(dir *os.File) bool {
	fd, err := unix.Openat(int(dir.Fd()), "environ", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	f := os.NewFile(uintptr(fd), "environ")
	defer func() { _ = f.Close() }()
	env, _ := io.ReadAll(f) // empty once it has ended
	for kv := range strings.SplitSeq(string(env), "\x00") {
		if kv == p.mark {
			_ = unix.PidfdSendSignal(int(dir.Fd()), unix.SIGKILL, nil, 0) // a folder of /proc can serve as a pidfd
			return true
		}
	}
	return false
}
