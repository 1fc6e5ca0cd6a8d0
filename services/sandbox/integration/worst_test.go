package integration

import (
	"sync"
	"testing"
)

// TestAttacks makes every attack on every driver. After each, the neighbor's
// process must not have been reached, its next command must run, and the host's files that
// are open to all users must not have been touched. It takes longest, and is in the last of the files, because the
// tests of that begin first of those that run side by side.
func TestAttacks(t *testing.T) {
	t.Parallel()
	var b table
	t.Cleanup(func() { b.write(t) })
	var all sync.WaitGroup
	two := make(chan struct{}, 2) // drivers at a time: attacks wait most of it
	for _, d := range drivers {
		all.Go(func() {
			two <- struct{}{}
			defer func() { <-two }()
			d.run(t, func(t *testing.T, d driver) { attackAll(t, &b, d) })
		})
	}
	all.Wait()
}

// attackAll makes the categories that keep busy beside the others, which share a scene.
func attackAll(t *testing.T, b *table, d driver) {
	t.Helper()
	var all sync.WaitGroup
	for _, c := range attacks {
		if c.busy {
			all.Go(func() { t.Run(c.name, func(t *testing.T) { newScene(t, d).assault(t, b, c) }) })
		}
	}
	s := newScene(t, d)
	for _, c := range attacks {
		if !c.busy {
			t.Run(c.name, func(t *testing.T) { s.assault(t, b, c) })
		}
	}
	all.Wait()
}
