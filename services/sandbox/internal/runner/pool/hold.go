package pool

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/cgroup"
)

// endTimeout limits how long the kernel may take to end a killed sandbox.
const endTimeout = 30 * time.Second

// hold is the hold on a sandbox: what its maker made, and its first process. It is safe for concurrent use
// once the sandbox is ready.
type hold struct {
	pid int // the first process, as the host counts; zero if it is not on this machine; fixed by take

	mu      sync.Mutex // guards what follows
	body    Body       // nil when there is none
	pidfd   int        // of the first process; -1 when there is none
	ending  bool       // the sandbox is being ended
	starved bool       // it ended for want of memory, as its maker was told
}

func newHold() *hold { return &hold{pidfd: -1} }

// take takes hold of a body whose first process certainly lives. errGone means that the sandbox was killed before:
// the caller kills it again.
func (h *hold) take(body Body) (err error) {
	fd := -1
	if body.Init() != 0 {
		fd, err = unix.PidfdOpen(body.Init(), 0)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.body, h.pid, h.pidfd = body, body.Init(), fd
	if err == nil && h.ending {
		return errGone
	}
	return err
}

// kill ends the first process and what outlives it, and reports whether there was something to end. A body that
// is taken later is refused.
func (h *hold) kill() (killed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ending = true
	if h.body == nil {
		return false
	}
	h.body.Kill()
	if h.pidfd >= 0 {
		_ = unix.PidfdSendSignal(h.pidfd, unix.SIGKILL, nil, 0)
	}
	return true
}

func (h *hold) isEnding() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ending
}

// isStarved reports whether the sandbox ended for want of memory. It is known after release.
func (h *hold) isStarved() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.starved
}

// release waits for the end of a killed sandbox and lets it go.
func (h *hold) release(log *slog.Logger) {
	if h.body == nil {
		return
	}
	h.awaitEnd(log)
	if err := h.body.Wait(); err != nil {
		log.Error("cannot tidy up after a sandbox", "error", err)
	}
	h.reap() // its maker may have ended later
	h.mu.Lock()
	defer h.mu.Unlock()
	if told, ok := h.body.(OOMReporter); ok {
		h.starved = told.OutOfMemory()
	}
	h.body = nil
	if h.pidfd >= 0 {
		_ = unix.Close(h.pidfd)
		h.pidfd = -1
	}
}

// awaitEnd waits until the kernel has ended all processes.
func (h *hold) awaitEnd(log *slog.Logger) {
	if h.pidfd < 0 {
		return
	}
	poll := []unix.PollFd{{Fd: int32(h.pidfd), Events: unix.POLLIN}}
	deadline := time.Now().Add(endTimeout)
	for {
		n, err := unix.Poll(poll, int(time.Until(deadline).Milliseconds()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n == 0 {
			log.Error("a killed sandbox does not end", "pid", h.pid)
		}
		h.reap()
		return
	}
}

// reap reaps an ended first process if this service is the first process of its container. There it becomes the
// service's child once its maker has ended; elsewhere it becomes another process's.
func (h *hold) reap() {
	if h.pidfd >= 0 {
		_ = unix.Waitid(unix.P_PIDFD, h.pidfd, nil, unix.WEXITED|unix.WNOHANG, nil)
	}
}

// counts returns what the body's own control group has counted.
func (h *hold) counts() cgroup.Counts {
	h.mu.Lock()
	defer h.mu.Unlock()
	if own, ok := h.body.(Counting); ok {
		return own.Counts()
	}
	return cgroup.Counts{}
}

// holder returns a process in the process namespace of the sandbox; zero if the sandbox is on another
// machine.
func (h *hold) holder() int {
	if h.pid != 0 {
		return h.pid
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if holder, ok := h.body.(Holder); ok {
		return holder.Holder()
	}
	return 0
}
