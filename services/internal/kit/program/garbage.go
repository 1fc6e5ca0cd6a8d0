package program

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// garbage is how much garbage a heap may hold before it is collected, in bytes. A
	// small heap is collected seldom, because events take longer during a collection;
	// a large one does not hold a multiple of its size.
	garbage = 96 << 20
	// leastPercent and mostPercent bound the garbage in percent of the live heap.
	leastPercent, mostPercent = 50, 400
)

// percentFor returns the setting of GOGC for a live heap of some bytes.
func percentFor(live uint64) int {
	return int(min(mostPercent, max(leastPercent, garbage*100/max(live, 1))))
}

// collector sets after each collection when the next one begins.
type collector struct {
	percent int
	live    []metrics.Sample
}

// tuneCollector tunes the collector of this process until it exits.
func tuneCollector() {
	c := &collector{percent: mostPercent, live: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}}
	debug.SetGCPercent(c.percent)
	c.watch()
}

// watch notices the next collection: it collects an object without users.
func (c *collector) watch() {
	type unused [64]byte
	runtime.AddCleanup(new(unused), func(c *collector) {
		c.tune()
		c.watch()
	}, c)
}

// tune changes the setting if it is off by a tenth: each change stops the program for a moment.
func (c *collector) tune() {
	metrics.Read(c.live)
	want := percentFor(c.live[0].Value.Uint64())
	if diff := want - c.percent; 10*max(diff, -diff) > c.percent {
		c.percent = want
		debug.SetGCPercent(want)
	}
}
