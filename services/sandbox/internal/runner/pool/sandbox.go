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
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/cgroup"
)

// sandbox is a workspace's sandbox. It is a process namespace: when its first process, init, ends, the kernel
// has ended all others in it. Parts with a lock of their own hold the state that changes while it runs.
type sandbox struct {
	r      *Runner
	spec   box.Sandbox
	errOut *os.File // error output of the sandbox and its init
	group  cgroup.Group
	init   *initConn
	out    io.Closer // serves its way out; nil without a network
	// pendingListener is the listener of its way out until it is known whether the sandbox has a network.
	pendingListener net.Listener
	ready           chan struct{} // closed when it was made or could not be
	fault           error         // why it could not be made; valid once ready is closed
	done            chan struct{} // closed when nothing of it is left

	// starting is held while a command starts, or while the remains of one are killed, so that the new command
	// is not mistaken for remains.
	starting sync.Mutex

	stay      stay // guarded by the runner's mu
	hold      *hold
	commands  *commands
	terminals terminalCount
	counted   countCache
	written   writeCount
	stood     stopwatch // while it was frozen
}

// newSandbox returns a sandbox that is not ready yet.
func newSandbox(r *Runner, spec box.Sandbox) *sandbox {
	s := &sandbox{r: r, spec: spec, hold: newHold(), commands: newCommands(), ready: make(chan struct{}), done: make(chan struct{})}
	s.written.as = s.as
	return s
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

// launch makes the sandbox, confines it, starts init and waits until it is complete.
func (s *sandbox) launch(ctx context.Context, name string) error {
	conn, socket, err := connectInit()
	if err != nil {
		return fmt.Errorf("prepare the sandbox: %w", err)
	}
	s.init = conn
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
	if err := s.hold.body.Complete(); err != nil {
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
	err = s.hold.take(body)
	if err != nil && !errors.Is(err, errGone) {
		return fmt.Errorf("take hold of the sandbox's first process: %w: %s", err, s.lastOutput())
	}
	return err
}

// confine sets the limits and lets init run.
func (s *sandbox) confine() error {
	if s.group != nil {
		if err := s.group.Add(s.hold.pid); err != nil {
			return err
		}
	}
	return s.hold.body.Release()
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
	s.commands.close()
	if killed := s.hold.kill(); killed && s.group != nil {
		_ = s.group.Thaw() // a frozen process does not die
	}
}

// release waits for the end of a killed sandbox and releases its resources.
func (s *sandbox) release() {
	s.hold.release(s.r.log)
	if s.group != nil {
		if err := s.group.Remove(); err != nil {
			s.r.log.Error("cannot remove the control group of a sandbox", "error", err)
		}
	}
	if s.out != nil {
		_ = s.out.Close()
	}
	if s.init != nil {
		_ = s.init.Close()
	}
	if s.errOut != nil {
		_ = s.errOut.Close()
	}
}

// elsewhere reports whether the sandbox is not on this machine.
func (s *sandbox) elsewhere() bool { return s.hold.pid == 0 }

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
