package box

import (
	"fmt"
	"sync"
)

// capacity limits the commands that run at once on a node. It is safe for concurrent use.
type capacity struct {
	most     int            // commands that may run at once
	commands sync.WaitGroup // that run, and a sandbox that is made ahead of its first command

	mu      sync.Mutex  // guards what follows
	active  int         // how many places commands take
	taken   map[Key]int // … by session; a session without any has no entry
	warming bool        // a sandbox is being made ahead of its first command
	closed  bool
}

func newCapacity(most int) *capacity { return &capacity{most: most, taken: map[Key]int{}} }

// reserve takes a place for a running command of a session. The last quarter of the places is for sessions
// below their share. The share is an equal part of the places, with one more session counted, and at least
// two. The last half of that quarter is for sessions that have fewer than two places. So a caller that
// begins many sessions with many commands leaves places to others, and no place stays empty while many
// sessions have a few. With fewer than four places, none is kept back. The caller later calls release, or
// leave and then finished.
func (c *capacity) reserve(k Key) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	kept, share := c.most/4, c.share()
	if c.active >= c.most-kept/2 {
		kept, share = kept/2, 2
	}
	switch {
	case c.active >= c.most:
		return fmt.Errorf("%w on this node: %d of %d", ErrTooManyExecs, c.active, c.most)
	case c.taken[k] >= share && c.active >= c.most-kept:
		return fmt.Errorf("%w on this node: %d of %d, and the last %d are for sessions with fewer than %d commands. Wait until commands of this session end, or end some",
			ErrTooManyExecs, c.active, c.most, kept, share)
	}
	c.taken[k]++
	c.active++
	c.commands.Add(1)
	return nil
}

// share returns how many commands each session could run if one more session ran commands. mu is held.
func (c *capacity) share() int {
	sessions := len(c.taken) + 1
	return max(2, (c.most+sessions-1)/sessions)
}

// release returns the place of a command that is completely finished.
func (c *capacity) release(k Key) {
	c.leave(k)
	c.finished()
}

// leave returns a command's place before the command is completely finished.
func (c *capacity) leave(k Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.active--
	if c.taken[k]--; c.taken[k] == 0 {
		delete(c.taken, k)
	}
}

// finished ends what reserve began, once the place is returned.
func (c *capacity) finished() { c.commands.Done() }

// reserveWarm reserves the only place for a sandbox that is made ahead. If it is granted, the caller must
// call releaseWarm.
func (c *capacity) reserveWarm() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.warming {
		return false
	}
	c.warming = true
	c.commands.Add(1)
	return true
}

func (c *capacity) releaseWarm() {
	c.mu.Lock()
	c.warming = false
	c.mu.Unlock()
	c.commands.Done()
}

// close refuses all that is not reserved yet.
func (c *capacity) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}

// wait waits until all that was reserved is finished.
func (c *capacity) wait() { c.commands.Wait() }
