package box

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	lockWatch = locks.note
	goleak.VerifyTestMain(checkedOrder{m})
}

// checkedOrder runs the tests, and fails if a goroutine took locks in another order than that of their ranks.
type checkedOrder struct{ *testing.M }

func (m checkedOrder) Run() int {
	code := m.M.Run()
	locks.mu.Lock()
	defer locks.mu.Unlock()
	if len(locks.faults) > 0 {
		fmt.Fprintln(os.Stderr, strings.Join(locks.faults, "\n"))
		return 1
	}
	return code
}

// locks are the ranks of the locks that each goroutine holds in this process.
var locks = lockRecord{held: map[string][]rank{}}

type lockRecord struct {
	mu     sync.Mutex
	held   map[string][]rank // by goroutine
	faults []string
}

func (l *lockRecord) note(r rank, what lockEvent) {
	if r == 0 {
		return
	}
	own := goroutine()
	l.mu.Lock()
	defer l.mu.Unlock()
	if what == releases {
		l.release(own, r)
		return
	}
	if held := l.held[own]; what == takes && len(held) > 0 && slices.Max(held) >= r {
		l.faults = append(l.faults, fmt.Sprintf("a lock of rank %d is taken while %v are held:\n%s", r, held, debug.Stack()))
	}
	l.held[own] = append(l.held[own], r)
}

// release removes a held lock: the goroutine's own or, if it has none, one that another goroutine took.
func (l *lockRecord) release(own string, r rank) {
	from := own
	if !slices.Contains(l.held[own], r) {
		for other, held := range l.held {
			if slices.Contains(held, r) {
				from = other
			}
		}
	}
	if i := slices.Index(l.held[from], r); i >= 0 {
		l.held[from] = slices.Delete(l.held[from], i, i+1)
	}
	if len(l.held[from]) == 0 {
		delete(l.held, from)
	}
}

// goroutine returns the number of the calling goroutine.
func goroutine() string {
	var buffer [64]byte
	words := bytes.Fields(buffer[:runtime.Stack(buffer[:], false)])
	return string(words[1])
}

func TestAWrongOrderOfLocksIsNoticed(t *testing.T) {
	var l lockRecord
	l.held = map[string][]rank{}
	l.note(rankStarts, takes)
	l.note(rankWorkspace, takes)
	l.note(rankWorkspace, releases)
	l.note(rankMutations, tookAtOnce) // which cannot wait for another goroutine
	if len(l.faults) > 0 {
		t.Errorf("%q", l.faults)
	}
	for _, r := range []rank{rankStarts, rankPushes} {
		l.note(r, takes)
	}
	if len(l.faults) != 2 {
		t.Errorf("%d faults of 2: %q", len(l.faults), l.faults)
	}
}
