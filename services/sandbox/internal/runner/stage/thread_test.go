package stage

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A thread that looks into the mount namespace of a process comes back, whatever it does there, and
// also when there is none any more.
func TestAThreadComesBack(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a stage takes root")
	}
	thread := NewThread(0)
	defer thread.Close()
	if _, err := New(thread); err != nil {
		t.Fatal(err)
	}
	pidfd := -1
	other := &exec.Cmd{Path: "/bin/sleep", Args: []string{"sleep", "60"}, SysProcAttr: &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, PidFD: &pidfd}}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = other.Process.Kill(), other.Wait() }()
	here := func() (name string) {
		name, err := os.Readlink("/proc/thread-self/ns/mnt")
		if err != nil {
			t.Error(err)
		}
		return name
	}
	var own, there, after string
	fault := errors.New("fault")
	err := thread.Do(func() error {
		own = here()
		err := thread.Within(pidfd, func() error { there = here(); return fault })
		after = here()
		return err
	})
	if !errors.Is(err, fault) || there == own || after != own {
		t.Errorf("from %s to %s and back to %s: %v", own, there, after, err)
	}
	_, _ = other.Process.Kill(), other.Wait()
	err = thread.Do(func() error {
		defer func() { after = here() }()
		return thread.Within(pidfd, func() error { return errors.New("there is nothing") })
	})
	if !errors.Is(err, unix.ESRCH) || after != own {
		t.Errorf("a process that has ended: %v, and then in %s", err, after)
	}
	if err := unix.Close(pidfd); err != nil {
		t.Error(err)
	}
}
