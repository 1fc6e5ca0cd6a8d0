package box

import "sync"

// rank is the place of a session's lock in the order in which a goroutine takes locks: from low to high.
// Two locks of the same rank are never held at once, not even of two sessions. Locks without a rank are
// taken last: while one is held, no lock of a session is taken.
type rank int

const (
	_             rank = iota
	rankPushes         // tasks.pushes
	rankMutations      // mutations.mu
	rankKept           // workspace.kept
	rankStarts         // workspace.starts
	rankLoading        // session.loading: a change may use its own session
	rankWorkspace      // workspace.mu
	rankInner          // execs.mu and tasks.mu
)

// lockWatch observes the locks of sessions, in tests: before one is taken, after an attempt has taken it, and
// before it is released. It is nil otherwise.
var lockWatch func(r rank, what lockEvent)

type lockEvent int

const (
	takes lockEvent = iota
	tookAtOnce
	releases
)

func (r rank) tell(what lockEvent) {
	if lockWatch != nil {
		lockWatch(r, what)
	}
}

// mutex is a lock of a session. Several goroutines may hold it for reading.
type mutex struct {
	rank rank
	mu   sync.RWMutex
}

func (m *mutex) Lock() {
	m.rank.tell(takes)
	m.mu.Lock()
}

func (m *mutex) TryLock() bool {
	took := m.mu.TryLock()
	if took {
		m.rank.tell(tookAtOnce)
	}
	return took
}

func (m *mutex) Unlock() {
	m.rank.tell(releases)
	m.mu.Unlock()
}

func (m *mutex) RLock() {
	m.rank.tell(takes)
	m.mu.RLock()
}

func (m *mutex) TryRLock() bool {
	took := m.mu.TryRLock()
	if took {
		m.rank.tell(tookAtOnce)
	}
	return took
}

func (m *mutex) RUnlock() {
	m.rank.tell(releases)
	m.mu.RUnlock()
}
