package bubblewrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// sweepTimeout limits how long the kernel may take to end one leftover.
const sweepTimeout = 10 * time.Second

// Sweep ends the remains of an earlier runner of the same name. Its sandboxes end with it, but each only
// when its init runs. If bubblewrap was killed while its two halves waited for each other, the inner half
// waits for ever, because it has not asked for a death signal yet. Sweep must be called before this runner
// starts anything.
func (r *Runner) Sweep(context.Context) error {
	if r.name == plainName {
		return nil
	}
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	for _, dir := range all {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			return err
		}
		if err := r.end(pid); err != nil {
			return fmt.Errorf("end process %d, which an earlier service left: %w", pid, err)
		}
	}
	return nil
}

// end ends a process if it has the runner's name, and waits for its end.
func (r *Runner) end(pid int) error {
	if !r.named(pid) {
		return nil
	}
	held, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(held) }()
	if !r.named(pid) { // the pid was reused
		return nil
	}
	switch err := unix.PidfdSendSignal(held, unix.SIGKILL, nil, 0); {
	case errors.Is(err, unix.ESRCH), errors.Is(err, unix.EPERM): // another user's process may have the same name
		return nil
	case err != nil:
		return err
	}
	return awaitEnd(held)
}

// initName is the argument that marks init as a runner's: its program name is only where it was found.
func initName(runner string) string { return "name:" + runner }

// named reports whether a process is a bubblewrap or an init of this runner. An ended process has no name.
func (r *Runner) named(pid int) bool {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	name, words, _ := bytes.Cut(raw, []byte{0})
	return err == nil && (string(name) == r.name || bytes.HasPrefix(words, []byte(initName(r.name)+"\x00")))
}

// awaitEnd waits until a process has ended.
func awaitEnd(pidfd int) error {
	poll := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	for end := time.Now().Add(sweepTimeout); ; {
		n, err := unix.Poll(poll, int(time.Until(end).Milliseconds()))
		switch {
		case errors.Is(err, unix.EINTR) && time.Now().Before(end):
		case err == nil && n > 0:
			return nil
		case err == nil:
			return errors.New("it does not end though it was killed")
		default:
			return err
		}
	}
}
