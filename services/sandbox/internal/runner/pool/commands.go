package pool

import (
	"maps"
	"slices"
	"sync"
)

// commands are the commands that run in a sandbox. It is safe for concurrent use.
type commands struct {
	mu     sync.Mutex // guards what follows, and the field beside of each command
	next   uint64
	all    map[uint64]*process
	closed bool // the sandbox is being ended
}

func newCommands() *commands { return &commands{all: map[uint64]*process{}} }

// add adds a command, gives it its number and reports whether it is the only one.
func (c *commands) add(p *process) (alone bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false, errGone
	}
	c.next++
	p.id = c.next
	alone = len(c.all) == 0
	for _, other := range c.all {
		other.beside = true
	}
	p.beside = !alone
	c.all[p.id] = p
	return alone, nil
}

// remove removes a command and reports whether none is left.
func (c *commands) remove(p *process) (empty bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, p.id)
	return len(c.all) == 0
}

// find returns a command by its number, or nil.
func (c *commands) find(id uint64) *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[id]
}

// list returns the commands.
func (c *commands) list() []*process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.all))
}

// hadOthers reports whether another command was in the sandbox while this one was.
func (c *commands) hadOthers(p *process) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return p.beside
}

// close refuses further commands.
func (c *commands) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}
