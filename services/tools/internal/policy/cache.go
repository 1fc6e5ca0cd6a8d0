package policy

import "sync"

// cached and cachedBytes bound each of the two generations of a cache.
const (
	cached      = 1024
	cachedBytes = 1 << 20
)

// cache keeps what was used lately: what was not used while a generation filled is gone.
type cache[V any] struct {
	mu       sync.Mutex
	new, old map[string]V
	bytes    int // the keys of the new generation
}

func (c *cache[V]) get(key string) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.new[key]
	if !ok {
		if v, ok = c.old[key]; ok {
			c.add(key, v)
		}
	}
	return v, ok
}

func (c *cache[V]) put(key string, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(key, v)
}

func (c *cache[V]) add(key string, v V) {
	if len(key) > cachedBytes/4 {
		return // it would replace many
	}
	if c.new == nil || len(c.new) >= cached || c.bytes+len(key) > cachedBytes {
		c.new, c.old, c.bytes = make(map[string]V, 16), c.new, 0
	}
	if _, known := c.new[key]; !known {
		c.bytes += len(key)
	}
	c.new[key] = v
}
