package policy

import "sync"

// cached bounds each of the two generations of a cache.
const cached = 1024

// cache keeps what was used lately: what was not used while a generation filled is gone.
type cache[V any] struct {
	mu       sync.Mutex
	new, old map[string]V
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
	if c.new == nil || len(c.new) >= cached {
		c.new, c.old = make(map[string]V, 16), c.new
	}
	c.new[key] = v
}
