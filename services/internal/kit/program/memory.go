package program

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

const (
	// lookEvery is how often a program looks at its memory. One that has collected its garbage since the last look is busy.
	lookEvery = 20 * time.Second
	// surge is how much memory a program may hold beyond what it held after the last return, in bytes, and surgeShare as
	// a share of it.
	surge, surgeShare = 16 << 20, 0.3
)

// returningMemory has a program return the memory of a surge to the system once it is quiet again. The heap may grow to
// several times what is live, and a quiet program allocates too little to be collected and to shrink.
func returningMemory(run func(context.Context, []string) error) func(context.Context, []string) error {
	return func(ctx context.Context, args []string) error {
		looking, stop := context.WithCancel(ctx)
		var looks sync.WaitGroup
		looks.Go(func() { returnMemory(looking) })
		defer looks.Wait()
		defer stop()
		return run(ctx, args)
	}
}

func returnMemory(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	now := memory{}
	for {
		before := now
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if now = readMemory(); now.returns(before) {
			runtime.GC() // each collection halves the stacks that have grown too large
			debug.FreeOSMemory()
			now = readMemory()
			now.kept = now.held
		}
	}
}

// memory is what a program holds of the system's memory.
type memory struct {
	collections uint64
	held        uint64 // bytes
	kept        uint64 // of held, right after the last return
}

// returns reports whether a program that has held before should return memory now. It keeps before's kept.
func (m *memory) returns(before memory) bool {
	m.kept = before.kept
	quiet := m.collections == before.collections
	return quiet && float64(m.held) > float64(m.kept)*(1+surgeShare)+surge
}

func readMemory() memory {
	s := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return memory{collections: s[0].Value.Uint64(), held: s[1].Value.Uint64() - s[2].Value.Uint64()}
}
