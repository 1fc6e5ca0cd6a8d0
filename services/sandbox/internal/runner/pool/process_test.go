package pool

import (
	"context"
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
	"github.com/fairlead/fairlead/services/sandbox/internal/cgroup"
	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// A command that was killed takes its sandbox along unless it ends in time, with
// or without a waiting caller.
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
					if err := p.handle(wire.Reply{Kind: wire.Exited}, &[]int{}); err != nil {
						t.Fatal(err)
					}
				}
				<-time.After(2 * killTimeout)
				synctest.Wait()
				if ending := sb.hold.isEnding(); ending == ends {
					t.Errorf("the sandbox is being ended: %v", ending)
				}
			})
		})
	}
}

// freezer is a control group that can be frozen, and nothing else.
type freezer struct{ cgroup.Group }

func (freezer) Freeze(context.Context) error { return nil }
func (freezer) Thaw() error                  { return nil }

// While its sandbox stands still a killed command cannot end: that takes none of the time
// that it has for it. Of what it has had before, or between, nothing is given back.
func TestTheTimeThatASandboxStandsStillIsNotItsCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sb := newSandbox(&Runner{}, box.Sandbox{})
		sb.group = freezer{}
		p := &process{
			stdio: &stdio{out: io.NopCloser(strings.NewReader(""))}, sb: sb, pidfd: -1,
			started: make(chan struct{}), ended: make(chan struct{}),
		}
		ending := func() bool {
			synctest.Wait()
			return sb.hold.isEnding()
		}
		p.Kill()
		for range 3 { // it runs for three quarters of its time
			<-time.After(killTimeout / 4)
			if err := sb.freeze(t.Context()); err != nil {
				t.Fatal(err)
			}
			<-time.After(5*killTimeout + killTimeout/8)
			sb.thaw()
		}
		if ending() {
			t.Fatal("its sandbox is ended though it stood still")
		}
		<-time.After(killTimeout/4 - time.Millisecond)
		if ending() {
			t.Error("its sandbox is ended before its time")
		}
		<-time.After(frozenPause)
		if !ending() {
			t.Error("its sandbox is not ended")
		}
	})
}

// On some kernels frozen processes cannot be killed: a sandbox that was ended while it was
// being stopped is let go.
func TestASandboxThatIsEndedIsNotStopped(t *testing.T) {
	sb := newSandbox(&Runner{}, box.Sandbox{})
	sb.group = freezer{}
	sb.kill()
	if err := sb.freeze(t.Context()); !errors.Is(err, errGone) {
		t.Errorf("got %v", err)
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

// A start without a waiting caller is an error only where the command has not run:
// who hears of one starts it again.
func TestACommandThatMayHaveRunIsLostAndNotAnError(t *testing.T) {
	for name, gated := range map[string]bool{"gated": true, "not gated": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sb := newSandbox(&Runner{}, box.Sandbox{})
				p := &process{stdio: &stdio{}, sb: sb, pidfd: -1, started: make(chan struct{}), ended: make(chan struct{})}
				time.AfterFunc(startTimeout+2*killTimeout, func() {
					if !sb.hold.isEnding() {
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
	conn, theirs, err := connectInit()
	if err != nil {
		t.Fatal(err)
	}
	sb.init = conn
	defer func() { _, _ = theirs.Close(), sb.init.Close() }()
	if err := sb.init.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = sb.init.Write([]byte{0})
	}
	p := &process{stdio: &stdio{childIn: none, childOut: none, childErr: none}, sb: sb, pidfd: -1}
	if err := p.ask(box.Command{}, true, func() error { return nil }); !errors.Is(err, errGone) || !sb.hold.isEnding() {
		t.Errorf("%v, it is being ended: %v", err, sb.hold.isEnding())
	}
}
