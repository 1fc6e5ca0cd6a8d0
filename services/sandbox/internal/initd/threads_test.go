package main

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// collecting has this test binary be an init that collects its garbage.
const collecting = "FAIRLEAD_TEST_COLLECTING"

// TestCollect is what TestCollectingNeedsNoFurtherThread has beside busy processes.
func TestCollect(t *testing.T) {
	if os.Getenv(collecting) == "" {
		t.Skip("runs in a process of its own")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := makeThreads(collectThreads); err != nil {
		t.Fatal(err)
	}
	before, err := threads()
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		s := starter{garbage: idleGarbage, threads: collectThreads}
		for {
			if err := s.collect(); err != nil {
				t.Fatal(err)
			}
			if s.garbage == 0 {
				break
			}
			if _, err := unix.Poll(nil, s.patience()); err != nil && !errors.Is(err, unix.EINTR) {
				t.Fatal(err)
			}
		}
	}
	if after, err := threads(); err != nil || after > before {
		t.Errorf("it has made %d threads, and could not have where there are no more to be had: %v", after-before, err)
	}
}

// A thread that has nothing more to do is not idle yet while others have its processor.
func TestCollectingNeedsNoFurtherThread(t *testing.T) {
	for range 4 * runtime.NumCPU() {
		busy := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
		if err := busy.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = busy.Process.Kill(); _ = busy.Wait() }()
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestCollect$")
	cmd.Env = append(os.Environ(), collecting+"=1", "GOMAXPROCS=1", "GOGC=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The first collection takes threads: with a command there may be no room for them.
func TestTheFirstCollectionIsPutOffWhileCommandsRun(t *testing.T) {
	s := starter{garbage: busyGarbage, threads: ownThreads, commands: map[int]*command{1: {}}}
	if err := s.collect(); err != nil || s.garbage == 0 || s.threads != ownThreads {
		t.Fatalf("with a command: %v, %+v", err, s)
	}
	delete(s.commands, 1)
	for s.garbage > 0 {
		if err := s.collect(); err != nil {
			t.Fatal(err)
		}
	}
	if s.threads != collectThreads {
		t.Errorf("it has collected with %d threads", s.threads)
	}
	s.commands[1], s.garbage, s.putOff = &command{}, busyGarbage, collectAttempts
	if err := s.collect(); err != nil || s.garbage > 0 {
		t.Errorf("with a command, and with threads: %v, %+v", err, s)
	}
}
