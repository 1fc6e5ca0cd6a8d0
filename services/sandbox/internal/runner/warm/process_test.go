package warm

import (
	"errors"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// A command that was killed takes its sandbox along unless it ends in time, whether
// anybody waits for it or not.
func TestOnlyACommandThatDoesNotEndTakesItsSandboxAlong(t *testing.T) {
	for name, ends := range map[string]bool{"ended": true, "does not end": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sb := newSandbox(&Runner{}, box.Sandbox{})
				p := &process{
					stdio: &stdio{out: io.NopCloser(strings.NewReader(""))}, sb: sb, pidfd: -1,
					started: make(chan struct{}), ended: make(chan struct{}),
				}
				p.Kill()
				if ends {
					if err := p.hear(wire.Reply{Kind: wire.Exited}, &[]int{}); err != nil {
						t.Fatal(err)
					}
				}
				<-time.After(2 * killTimeout)
				synctest.Wait()
				sb.mu.Lock()
				defer sb.mu.Unlock()
				if sb.doomed == ends {
					t.Errorf("the sandbox is being ended: %v", sb.doomed)
				}
			})
		})
	}
}

// A command may get a signal as soon as it was said that it was started: its process may
// not have a group of its own yet.
func TestASignalFindsACommandThatHasNoGroupYet(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sleep", "5")
	pidfd := -1
	cmd.SysProcAttr = &syscall.SysProcAttr{PidFD: &pidfd}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(pidfd) }()
	p := &process{pidfd: pidfd, live: true, started: make(chan struct{})}
	close(p.started)
	if err := p.Signal(int(unix.SIGTERM)); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if got := cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(); got != unix.SIGTERM {
		t.Errorf("it ended by %v", got)
	}
}

// A start that nobody waits for any more is an error only where the command has not run:
// who hears of one starts it again.
func TestACommandThatMayHaveRunIsLostAndNotAnError(t *testing.T) {
	for name, gated := range map[string]bool{"gated": true, "not gated": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sb := newSandbox(&Runner{}, box.Sandbox{})
				p := &process{stdio: &stdio{}, sb: sb, pidfd: -1, started: make(chan struct{}), ended: make(chan struct{})}
				time.AfterFunc(startTimeout+2*killTimeout, func() {
					sb.mu.Lock()
					defer sb.mu.Unlock()
					if !sb.doomed {
						t.Error("its sandbox is not ended")
					}
					p.lose(0, false)
				})
				err := p.awaitStart(gated)
				if (err != nil) != gated || !gated && !p.lost {
					t.Errorf("%v, lost: %v", err, p.lost)
				}
				if gated {
					p.abandon()
				}
			})
		})
	}
}

// A sandbox whose init does not hear what is asked of it is ended, for another one.
func TestASandboxThatHearsNothingIsEnded(t *testing.T) {
	t.Parallel() // it takes sendTimeout
	sb := newSandbox(&Runner{}, box.Sandbox{})
	theirs, err := sb.connect()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = theirs.Close(), sb.socket.Close() }()
	if err := sb.socket.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = sb.socket.Write([]byte{0})
	}
	p := &process{stdio: &stdio{childIn: none, childOut: none, childErr: none}, sb: sb, pidfd: -1}
	if err := p.ask(box.Command{}, true, func() error { return nil }); !errors.Is(err, errGone) || !sb.doomed {
		t.Errorf("%v, it is being ended: %v", err, sb.doomed)
	}
}
