package box

import (
	"time"

	"golang.org/x/sys/unix"
)

// pace detects output that comes in bulk.
type pace struct {
	since time.Time
	bytes int
	bulk  bool
}

// Output comes in bulk while at least bulkBytes come within bulkWindow.
const (
	bulkBytes  = 1 << 20
	bulkWindow = 10 * time.Millisecond
)

// bulkPause is how long the reader lets a command that writes in bulk fill the pipe. An immediate read
// would follow each of its writes and wake all followers.
var bulkPause = unix.NsecToTimespec(int64(50 * time.Microsecond))

// quick counts incoming bytes and reports whether they come in bulk.
func (p *pace) quick(bytes int) bool {
	p.bytes += bytes
	now := time.Now()
	if took := now.Sub(p.since); took >= bulkWindow {
		p.bulk = p.bytes >= bulkBytes && took < 2*bulkWindow
		p.since, p.bytes = now, 0
	}
	return p.bulk
}

// outputWindow is how much of a stream's output is flushed at a time.
const outputWindow = 8 << 20

// followPatience is how long a command that writes in bulk waits for its followers at each window. A
// follower that is as fast as memory stays within one window.
const followPatience = 20 * time.Millisecond

// passWindow is called when a stream has grown. At the end of each window it makes the kernel write that
// window to disk and drop the previous one from memory. So long output takes no memory from other commands,
// and does not delay their syncs. A slower follower reads from disk. A kernel that does not support this is
// no error.
func (e *Exec) passWindow(i int, more int64) {
	s := &e.streams[i]
	at := s.size / outputWindow * outputWindow
	if s.size-more >= at {
		return
	}
	fd := int(s.file.Fd())
	if at > outputWindow {
		e.awaitFollower(s, at-outputWindow)
	}
	s.passing.Wait()
	s.passing.Go(func() { // else the command would wait once the pipe is full
		_ = unix.SyncFileRange(fd, at-outputWindow, outputWindow, unix.SYNC_FILE_RANGE_WRITE)
		if at > outputWindow {
			_ = unix.Fadvise(fd, at-2*outputWindow, outputWindow, unix.FADV_DONTNEED)
		}
	})
}

// awaitFollower waits briefly until a follower has sent size bytes of a stream. Without followers it
// returns at once.
func (e *Exec) awaitFollower(s *stream, size int64) {
	e.mu.Lock()
	if e.followers == 0 || s.sent >= size {
		e.mu.Unlock()
		return
	}
	reached := make(chan struct{})
	s.awaited, s.reached = size, reached
	e.mu.Unlock()
	patience := time.NewTimer(followPatience)
	defer patience.Stop()
	select {
	case <-reached:
	case <-patience.C:
	}
}

// noteSent records how much of the streams the followers have sent. mu is held.
func (e *Exec) noteSent(sent Offsets) {
	for i := range e.streams {
		s := &e.streams[i]
		s.sent = max(s.sent, sent[i])
		if s.reached != nil && s.sent >= s.awaited {
			s.letGo()
		}
	}
}

func (s *stream) letGo() {
	if s.reached != nil {
		close(s.reached)
		s.reached = nil
	}
}

// follow and unfollow count the followers of the output.
func (e *Exec) follow() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.followers++
}

func (e *Exec) unfollow() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.followers--
	for i := range e.streams {
		e.streams[i].letGo()
	}
}
