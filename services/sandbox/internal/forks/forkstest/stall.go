// Package forkstest makes the moment long that package forks knows of.
package forkstest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/forks"
)

// stalled is locked while a process is.
var stalled sync.Mutex

// while is how long a process is stalled: what does not wait for it is done long before.
const while = 200 * time.Millisecond

// Stall starts a process that has copies of all descriptors that are open now, and that
// executes its program a while later. It may be called by any goroutine.
func Stall(t *testing.T) {
	t.Helper()
	ended, err := stall(context.WithoutCancel(t.Context()), filepath.Join(t.TempDir(), "program"))
	if err != nil {
		t.Errorf("stall a process: %v", err)
		return
	}
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Errorf("the process that was stalled: %v", err)
		}
	})
}

// stall has the process execute a program that is under a lease (fcntl(2)): the kernel tells the
// lease's holder of it, with SIGIO, and has execve wait until the lease is given up.
//
// Nothing collects garbage meanwhile, and one process is stalled at a time. A collection stops the world, the thread that forks cannot stop, and so the lease
// would stay until the kernel takes it away after 45 seconds (lease-break-time).
func stall(ctx context.Context, program string) (<-chan error, error) {
	if err := os.WriteFile(program, []byte("#!/bin/true\n"), 0o700); err != nil {
		return nil, err
	}
	f, err := os.Open(program)
	if err != nil {
		return nil, err
	}
	forks.Await(f) // there is no lease on a file that all users may write
	told := make(chan os.Signal, 1)
	signal.Notify(told, unix.SIGIO)
	defer signal.Stop(told)
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		return nil, errors.Join(fmt.Errorf("take a lease: %w", err), f.Close())
	}
	stalled.Lock()
	percent := debug.SetGCPercent(-1)
	ended := make(chan error, 1)
	go func() { ended <- exec.CommandContext(ctx, program).Run() }()
	<-told
	time.AfterFunc(while, func() { // to close it is not enough: the process has a copy
		_, _ = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
		_ = f.Close()
		debug.SetGCPercent(percent)
		stalled.Unlock()
	})
	return ended, nil
}
