package bubblewrap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/cgroup"
)

// endTimeout bounds how long the kernel may take to end a killed sandbox.
const endTimeout = 30 * time.Second

// sandbox is a workspace's sandbox. It is a process namespace: when its first
// process, init, ends, the kernel has ended all others in it.
type sandbox struct {
	r      *Runner
	spec   box.Sandbox
	device uint64 // of the file system that the workspace is on
	cmd    *exec.Cmd
	errOut *os.File // what bubblewrap and init complain of
	init   int      // the first process, as the host counts
	group  cgroup.Group
	socket *net.UnixConn
	out    io.Closer     // serves its way out; nil without a network
	ready  chan struct{} // closed when it was made, or could not be
	fault  error         // why it could not be made; valid once ready is closed
	gone   chan struct{} // closed when nothing of it is left

	// turn is held by whoever starts a command or kills what one left, which must
	// not take the one for the other.
	turn sync.Mutex

	// Guarded by the runner's mu.
	users  int         // commands, and whoever else needs it to stay
	booked int         // commands alone
	since  time.Time   // when the last of them left
	timer  *time.Timer // ends its rest

	mu       sync.Mutex // guards what follows
	pidfd    int        // of init; -1 when there is none
	doomed   bool       // it is being ended
	next     uint64
	commands map[uint64]*process
}

// newSandbox makes one that is not ready yet.
func newSandbox(r *Runner, s box.Sandbox) *sandbox {
	return &sandbox{
		r: r, spec: s, pidfd: -1, ready: make(chan struct{}), gone: make(chan struct{}), commands: map[uint64]*process{},
	}
}

// make builds the sandbox and waits for its init. On an error nothing is left.
func (s *sandbox) make(ctx context.Context, group string) (err error) {
	deadline := time.Now().Add(startTimeout)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	f, err := s.r.folders(s.spec)
	if err != nil {
		return fmt.Errorf("show the workspace to the sandbox: %w", err)
	}
	defer func() { err = errors.Join(err, f.hide()) }() // the sandbox has them by then
	var st unix.Stat_t
	if err := unix.Stat(s.spec.Workspace, &st); err != nil {
		return fmt.Errorf("find the workspace: %w", err)
	}
	s.device = uint64(st.Dev) //nolint:unconvert // the type is the architecture's
	socket, err := s.connect()
	if err != nil {
		return fmt.Errorf("prepare the sandbox: %w", err)
	}
	v, err := s.r.invoke(s.spec, f, socket)
	if err != nil {
		s.abandon()
		return fmt.Errorf("prepare the sandbox: %w", err)
	}
	defer v.close()
	if err := s.launch(v, group, deadline); err != nil {
		s.abandon()
		return err
	}
	return nil
}

// connect makes the socket to init, and returns init's end.
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

// launch forks bubblewrap, confines what it made, lets it go and waits until it
// is complete.
func (s *sandbox) launch(v *invocation, group string, deadline time.Time) (err error) {
	if s.r.groups != nil {
		s.group, err = s.r.groups.New(group, cgroup.Limits{
			MemoryBytes: s.spec.Limits.MemoryBytes, Processes: s.spec.Limits.Processes + helpers, CPUs: s.spec.Limits.CPUs,
		})
		if err != nil {
			return err
		}
	}
	var complaints *os.File
	if s.errOut, complaints, err = os.Pipe(); err != nil {
		return err
	}
	v.owned = append(v.owned, complaints)
	cmd := s.r.command(s.spec.Owner, v, complaints)
	if err := s.r.spawn.do(cmd.Start); err != nil {
		return fmt.Errorf("start bubblewrap: %w", err)
	}
	s.cmd = cmd
	v.closeInherited()
	if err := s.identify(v, deadline); err != nil {
		return err
	}
	if err := s.confine(v); err != nil {
		return fmt.Errorf("%w: bubblewrap: %s", err, s.complaint())
	}
	if err := s.awaitReady(deadline); err != nil {
		return err
	}
	return s.openNetwork(deadline)
}

func (r *Runner) command(o box.Owner, v *invocation, complaints *os.File) *exec.Cmd {
	cmd := &exec.Cmd{
		Path:       r.path,
		Args:       append([]string{"bwrap"}, v.args...),
		Env:        []string{"PATH=" + r.layout.path},
		Dir:        "/",
		Stderr:     complaints,
		ExtraFiles: v.inherited,
		// A process group of its own: a signal to the service's does not reach it.
		SysProcAttr: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true},
	}
	if o != box.Self {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(o.UID), Gid: uint32(o.GID)}
	}
	return cmd
}

// identify learns the sandbox's first process and takes hold of it, while it is
// certain to live.
func (s *sandbox) identify(v *invocation, deadline time.Time) error {
	if err := v.info.SetReadDeadline(deadline); err != nil {
		return err
	}
	var info struct {
		Child int `json:"child-pid"`
	}
	if err := json.NewDecoder(v.info).Decode(&info); err != nil || info.Child <= 1 {
		if os.IsTimeout(err) {
			return errors.New("bubblewrap did not build the sandbox in time")
		}
		return fmt.Errorf("bubblewrap could not build the sandbox: %s", s.complaint())
	}
	fd, err := unix.PidfdOpen(info.Child, 0)
	if err != nil {
		return fmt.Errorf("take hold of the sandbox's first process: %w: %s", err, s.complaint())
	}
	s.init = info.Child
	s.mu.Lock()
	s.pidfd = fd
	doomed := s.doomed
	s.mu.Unlock()
	if doomed {
		return errGone
	}
	return nil
}

// confine puts the limits in place and lets init go.
func (s *sandbox) confine(v *invocation) error {
	if s.group != nil {
		if err := s.group.Add(s.init); err != nil {
			return err
		}
	}
	if err := limit(s.init, s.spec.Owner, resources(s.spec.Limits)); err != nil {
		return err
	}
	_, err := v.unblock.Write([]byte{1})
	return err
}

// complaint is what bubblewrap or init wrote before it gave up. It kills it, so
// that reading ends.
func (s *sandbox) complaint() string {
	s.kill()
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
	}
	_ = s.errOut.SetReadDeadline(time.Now().Add(time.Second))
	raw, _ := io.ReadAll(io.LimitReader(s.errOut, 4096))
	if text := strings.TrimSpace(string(raw)); text != "" {
		return text
	}
	return "it said nothing"
}

// kill ends everything in the sandbox, at once, or as soon as there is something.
func (s *sandbox) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doomed = true
	if s.pidfd < 0 {
		return
	}
	_ = unix.PidfdSendSignal(s.pidfd, unix.SIGKILL, nil, 0)
	if s.group != nil {
		_ = s.group.Thaw() // who is frozen does not die
	}
}

// abandon undoes a making that failed.
func (s *sandbox) abandon() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
	}
	s.kill()
	s.release()
}

// release waits for the end of a sandbox that was killed, and gives back what the
// machine keeps for it.
func (s *sandbox) release() {
	if s.cmd != nil {
		_ = s.cmd.Wait()
	}
	if s.init > 0 {
		s.awaitEnd()
		s.mu.Lock()
		_ = unix.Close(s.pidfd)
		s.pidfd = -1
		s.mu.Unlock()
	}
	if s.group != nil {
		if err := s.group.Remove(); err != nil {
			s.r.log.Error("cannot remove the control group of a sandbox", "error", err)
		}
	}
	if s.out != nil {
		_ = s.out.Close()
	}
	_ = s.socket.Close()
	if s.errOut != nil {
		_ = s.errOut.Close()
	}
}

// awaitEnd waits until the kernel has ended everything.
func (s *sandbox) awaitEnd() {
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
		return
	}
}

// hostPid is the process that a descriptor of init's stands for, as the host
// counts.
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
	return 0, errors.New("init did not hand over a living process")
}
