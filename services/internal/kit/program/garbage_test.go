package program

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

func TestTheGarbageOfALargeHeapIsBounded(t *testing.T) {
	for live, want := range map[uint64]int{0: 400, 1 << 20: 400, 24 << 20: 400, 48 << 20: 200, 96 << 20: 100, 4 << 30: 50} {
		if got := percentFor(live); got != want {
			t.Errorf("a live heap of %d MiB is collected at %d %%, want %d", live>>20, got, want)
		}
	}
}

func TestACollectionTunesTheNextOne(t *testing.T) {
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	tuneCollector()
	heap := make([]byte, 256<<20) // is never written, so it takes no memory
	set := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	for metrics.Read(set); set[0].Value.Uint64() != leastPercent; metrics.Read(set) {
		runtime.GC()
	}
	runtime.KeepAlive(heap)
}
