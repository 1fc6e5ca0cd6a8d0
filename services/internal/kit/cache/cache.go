// Package cache keeps values for a short time, and at most a number of them.
package cache

import (
	"sync"
	"time"
)

// Cache maps keys to values that expire. It is safe for concurrent use.
type Cache[K comparable, V any] struct {
	most int

	mu      sync.RWMutex
	entries map[K]entry[V]
}

type entry[V any] struct {
	value V
	until time.Time
}

// New returns a cache of at most so many values.
func New[K comparable, V any](most int) *Cache[K, V] {
	return &Cache[K, V]{most: most, entries: map[K]entry[V]{}}
}

// Get returns the value of a key that has not expired.
func (c *Cache[K, V]) Get(k K) (V, bool) {
	c.mu.RLock()
	e, ok := c.entries[k]
	c.mu.RUnlock()
	if !ok || !time.Now().Before(e.until) {
		var none V
		return none, false
	}
	return e.value, true
}

// Put keeps a value until a time. A full cache forgets expired values first, then arbitrary ones.
func (c *Cache[K, V]) Put(k K, v V, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.entries[k]; !ok && len(c.entries) >= c.most {
		c.makeRoom()
	}
	c.entries[k] = entry[V]{v, until}
}

// Forget removes the value of a key.
func (c *Cache[K, V]) Forget(k K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, k)
}

// makeRoom leaves at most half of the entries, so that a full cache is not searched at each Put.
func (c *Cache[K, V]) makeRoom() {
	now := time.Now()
	for k, e := range c.entries {
		if !now.Before(e.until) {
			delete(c.entries, k)
		}
	}
	for k := range c.entries {
		if len(c.entries) <= c.most/2 {
			return
		}
		delete(c.entries, k)
	}
}
