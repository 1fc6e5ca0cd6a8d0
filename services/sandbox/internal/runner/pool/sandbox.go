package pool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/cgroup"
)

// endTimeout limits how long the kernel may take to end a killed sandbox.
const endTimeout = 30 * time.Second

// sandbox is a workspace's sandbox. It is a process namespace: when its first
// process, init, ends, the kernel has ended all others in it.
type sandbox struct {
	r      *Runner
	spec   box.Sandbox
	errOut *os.File // error output of the sandbox and its init
	init   int      // the first process, as the host counts; zero if not on this machine
	group  cgroup.Group
	socket *net.UnixConn
	out    io.Closer // serves its way out; nil without a network
	// pendingListener is the listener of its way out until it is known whether the sandbox has a network.
	pendingListener net.Listener
	ready           chan struct{} // closed when it was made or could not be
	fault           error         // why it could not be made; valid once ready is closed
	done            chan struct{} // closed when nothing of it is left

	// reaped is what init had written, by itself and for reaped processes, when the sandbox was last without a
	// command.
	reaped atomic.Int64

	// starting is held while a command starts, or while the remains of one are killed, so that the new command
	// is not mistaken for remains.
	starting sync.Mutex

	// Guarded by the runner's mu.
	users    int         // commands, and other reasons to keep it
	reserved int         // commands only
	since    time.Time   // when the last of them left
	timer    *time.Timer // ends it after its idle time

	mu                 sync.Mutex // guards what follows
	body               Body       // nil when there is none
	pidfd              int        // of init; -1 when there is none
	ending             bool       // it is being ended
	starved            bool       // it ended for want of memory, as its maker was told
	next               uint64
	commands           map[uint64]*process
	terminalsRequested bool          // init is asked how many terminals are open, and has not answered
	terminals          int           // its last answer
	met                cgroup.Counts // of the group, valid while still
	still              bool          // only init is in the sandbox, and nothing else was since met was read
	frozen             time.Time     // since when it is frozen or being frozen; zero if it is not
	stood              time.Duration // how long it was frozen before, in all
}

// newSandbox returns a sandbox that is not ready yet.
func newSandbox(r *Runner, s box.Sandbox) *sandbox {
	return &sandbox{
		r: r, spec: s, pidfd: -1, ready: make(chan struct{}), done: make(chan struct{}), commands: map[uint64]*process{},
	}
}

// make builds the sandbox and waits for its init. On an error nothing is left.
func (s *sandbox) make(ctx context.Context, name string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, s.r.within)
	defer cancel()
	if err := s.launch(ctx, name); err != nil {
		s.kill()
		s.release()
		return err
	}
	return nil
}

// connect makes the socket to init and returns init's end.
func (s *sandbox) connect() (*os.File, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "init"), os.NewFile(uintptr(pair[1]), "init")
	c, err := net.FileConn(ours)
	if err := errors.Join(err, ours.Close()); err != nil {
		return nil, errors.Join(err, theirs.Close())
	}
	s.socket = c.(*net.UnixConn)
	return theirs, nil
}

// launch makes the sandbox, confines it, starts init and waits until it is complete.
func (s *sandbox) launch(ctx context.Context, name string) error {
	socket, err := s.connect()
	if err != nil {
		return fmt.Errorf("prepare the sandbox: %w", err)
	}
	defer func() { _ = socket.Close() }() // the sandbox has it by then
	if s.r.groups != nil {
		if s.group, err = s.r.groups.New(name, groupOf(s.spec.Limits)); err != nil {
			return err
		}
	}
	if err := s.build(ctx, name, socket); err != nil {
		return err
	}
	if err := s.confine(); err != nil {
		return fmt.Errorf("%w: %s", err, s.lastOutput())
	}
	_ = socket.Close() // otherwise the end of the socket would never be seen
	deadline, _ := ctx.Deadline()
	if err := s.awaitReady(deadline); err != nil {
		return err
	}
	if err := s.body.Complete(); err != nil {
		return fmt.Errorf("%w: %s", err, s.lastOutput())
	}
	return s.openNetwork(deadline)
}

// groupOf returns the limits of a sandbox's control group.
func groupOf(l box.Limits) cgroup.Limits {
	return cgroup.Limits{MemoryBytes: l.MemoryBytes, Processes: l.Processes + helpers, CPUs: l.CPUs}
}

// build makes the sandbox and opens its init while that certainly lives.
func (s *sandbox) build(ctx context.Context, name string, socket *os.File) error {
	errOut, complaints, err := os.Pipe()
	if err != nil {
		return err
	}
	s.errOut = errOut
	body, err := s.r.maker.Make(ctx, Build{Spec: s.spec, Name: name, Socket: socket, Errors: complaints})
	_ = complaints.Close()
	if err != nil {
		return fmt.Errorf("%w: %s", err, s.lastOutput())
	}
	fd := -1
	if body.Init() != 0 {
		fd, err = unix.PidfdOpen(body.Init(), 0)
	}
	s.mu.Lock()
	s.body, s.init, s.pidfd = body, body.Init(), fd
	ending := s.ending
	s.mu.Unlock()
	if err != nil {
		return fmt.Errorf("take hold of the sandbox's first process: %w: %s", err, s.lastOutput())
	}
	if ending {
		return errGone
	}
	return nil
}

// confine sets the limits and lets init run.
func (s *sandbox) confine() error {
	if s.group != nil {
		if err := s.group.Add(s.init); err != nil {
			return err
		}
	}
	return s.body.Release()
}

// lastOutput returns what the sandbox or its init wrote before it failed. It kills the sandbox, so that
// reading ends.
func (s *sandbox) lastOutput() string {
	s.kill()
	_ = s.errOut.SetReadDeadline(time.Now().Add(time.Second))
	raw, _ := io.ReadAll(io.LimitReader(s.errOut, 4096))
	if text := strings.TrimSpace(string(raw)); text != "" {
		return text
	}
	return "it said nothing"
}

// kill ends all processes in the sandbox at once, or as soon as there are some.
func (s *sandbox) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending = true
	if s.body == nil {
		return
	}
	s.body.Kill()
	if s.pidfd >= 0 {
		_ = unix.PidfdSendSignal(s.pidfd, unix.SIGKILL, nil, 0)
	}
	if s.group != nil {
		_ = s.group.Thaw() // a frozen process does not die
	}
}

// release waits for the end of a killed sandbox and releases its resources.
func (s *sandbox) release() {
	if s.body != nil {
		s.awaitEnd()
		if err := s.body.Wait(); err != nil {
			s.r.log.Error("cannot tidy up after a sandbox", "error", err)
		}
		s.reap() // its maker may have ended later
		s.forgetBody()
	}
	if s.group != nil {
		if err := s.group.Remove(); err != nil {
			s.r.log.Error("cannot remove the control group of a sandbox", "error", err)
		}
	}
	if s.out != nil {
		_ = s.out.Close()
	}
	if s.socket != nil {
		_ = s.socket.Close()
	}
	if s.errOut != nil {
		_ = s.errOut.Close()
	}
}

func (s *sandbox) forgetBody() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if told, ok := s.body.(OOMReporter); ok {
		s.starved = told.OutOfMemory()
	}
	s.body = nil
	if s.pidfd >= 0 {
		_ = unix.Close(s.pidfd)
		s.pidfd = -1
	}
}

// awaitEnd waits until the kernel has ended all processes.
func (s *sandbox) awaitEnd() {
	if s.pidfd < 0 {
		return
	}
	poll := []unix.PollFd{{Fd: int32(s.pidfd), Events: unix.POLLIN}}
	deadline := time.Now().Add(endTimeout)
	for {
		n, err := unix.Poll(poll, int(time.Until(deadline).Milliseconds()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n == 0 {
			s.r.log.Error("a killed sandbox does not end", "pid", s.init)
		}
		s.reap()
		return
	}
}

// reap reaps an ended init if this service is the first process of its container. There init becomes the
// service's child once its maker has ended; elsewhere it becomes another process's.
func (s *sandbox) reap() {
	if s.pidfd >= 0 {
		_ = unix.Waitid(unix.P_PIDFD, s.pidfd, nil, unix.WEXITED|unix.WNOHANG, nil)
	}
}

// hostPid returns the pid, as the host counts, of the process that a descriptor of init's stands for.
func hostPid(pidfd int) (int, error) {
	raw, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(pidfd))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		if v, ok := strings.CutPrefix(line, "Pid:"); ok {
			if pid, err := strconv.Atoi(strings.TrimSpace(v)); err == nil && pid > 1 {
				return pid, nil
			}
		}
	}
	return 0, errors.New("init did not send a live process")
}
