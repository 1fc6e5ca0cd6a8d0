package pool

import (
	"errors"
	"log/slog"
	"os/exec"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// local is a body whose first process is a program of this machine.
type local struct {
	cmd    *exec.Cmd
	killed int
}

func (l *local) Init() int         { return l.cmd.Process.Pid }
func (l *local) Release() error    { return nil }
func (l *local) Complete() error   { return nil }
func (l *local) Kill()             { l.killed++ }
func (l *local) Wait() error       { _ = l.cmd.Wait(); return nil }
func (l *local) OutOfMemory() bool { return true }

func newLocal(t *testing.T) *local {
	t.Helper()
	l := &local{cmd: exec.CommandContext(t.Context(), "sleep", "600")}
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestAHeldSandboxIsKilledAndLetGo(t *testing.T) {
	h, l := newHold(), newLocal(t)
	if err := h.take(l); err != nil {
		t.Fatal(err)
	}
	if h.isEnding() || h.holder() != l.Init() {
		t.Errorf("it is being ended: %v; its first process: %d", h.isEnding(), h.holder())
	}
	if !h.kill() || l.killed != 1 {
		t.Error("there was nothing to kill")
	}
	h.release(slog.New(slog.DiscardHandler))
	if !h.isStarved() || h.kill() || l.killed != 1 {
		t.Errorf("it is killed again, or why it ended is not known: %v", h.isStarved())
	}
}

func TestASandboxThatIsKilledBeforeItIsMadeIsRefused(t *testing.T) {
	h, l := newHold(), newLocal(t)
	if h.kill() {
		t.Error("there was something to kill")
	}
	if err := h.take(l); !errors.Is(err, errGone) {
		t.Errorf("got %v", err)
	}
	if !h.kill() {
		t.Error("it is not killed")
	}
	h.release(slog.New(slog.DiscardHandler))
	if err := syscall.Kill(l.Init(), 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("its first process is not gone: %v", err)
	}
}

func TestAStopwatchAddsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w stopwatch
		for range 2 {
			w.begin()
			<-time.After(time.Second)
			w.end()
			<-time.After(time.Minute)
		}
		if frozen, total := w.read(); frozen || total != 2*time.Second {
			t.Errorf("frozen: %v, for %v", frozen, total)
		}
		w.begin()
		<-time.After(time.Second)
		if frozen, total := w.read(); !frozen || total != 3*time.Second {
			t.Errorf("frozen: %v, for %v", frozen, total)
		}
	})
}

func TestAnIdleSandboxIsEndedUnlessItIsUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s stay
		over := 0
		start := func() { s.startTimer(time.Minute, func() { over++ }) }
		s.enter(true)
		s.leave(true)
		start()
		<-time.After(30 * time.Second)
		s.enter(false)
		<-time.After(time.Hour)
		if s.users != 1 || s.commands != 0 || over != 0 {
			t.Errorf("%+v, ended %d times", s, over)
		}
		s.leave(false)
		start()
		<-time.After(time.Hour)
		synctest.Wait()
		if over != 1 {
			t.Errorf("it is ended %d times", over)
		}
	})
}
