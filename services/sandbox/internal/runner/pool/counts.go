package pool

import (
	"sync"

	"github.com/fairlead/fairlead/services/sandbox/internal/cgroup"
)

// countCache saves reading the counts of a sandbox's group before a command that runs alone. It is safe for
// concurrent use.
type countCache struct {
	mu    sync.Mutex    // guards what follows
	met   cgroup.Counts // of the group, valid while still
	still bool          // only init is in the sandbox, and nothing else was since met was read
}

// before returns the counts before a command starts. If only init is in the sandbox, they equal those at the end
// of the last command.
func (c *countCache) before(alone bool, read func() cgroup.Counts) cgroup.Counts {
	c.mu.Lock()
	still, met := c.still, c.met
	c.still = false
	c.mu.Unlock()
	if alone && still {
		return met
	}
	return read()
}

// after records the counts at the end of a command. last reports whether nothing else is left in the sandbox. A
// command that starts meanwhile calls before later, so its counts are not mistaken for these.
func (c *countCache) after(met cgroup.Counts, last func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.still = last(); c.still {
		c.met = met
	}
}
