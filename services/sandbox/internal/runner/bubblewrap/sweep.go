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

// sweepTimeout bounds how long the kernel may take to end one leftover.
const sweepTimeout = 10 * time.Second

// Sweep ends what an earlier runner of the same name left. Its sandboxes end with it, but
// each only when its init gets to see it; and one whose bubblewrap was killed while the two
// halves of it waited for each other does not: the inner half has not asked for the same
// fate yet then, and waits for ever. Nothing may have been started by this runner before.
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
	if !r.named(pid) { // it is another one by now
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

// initName is the word by which init is known to be a runner's: what it is called is where
// it was found.
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
