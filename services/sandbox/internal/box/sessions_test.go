package box

import (
	"testing"
	"time"
)

func TestASessionStaysInMemoryWhileItIsInUse(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	o := options(t, &fake{})
	o.Now = func() time.Time { return now }
	n := openNode(t, o)
	k := Key{"t", "s"}
	ensure(t, n, k)
	all := n.sessions
	s, leave, err := all.enter(k)
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	if all.evict(s); len(all.list()) != 1 {
		t.Error("it is evicted while it is in use")
	}
	leave()
	if all.evict(s); len(all.list()) != 1 {
		t.Error("it is evicted right after its use")
	}
	now = now.Add(idleTime + time.Second)
	if all.evict(s); len(all.list()) != 0 {
		t.Error("it is not evicted")
	}
}

func TestASessionIsOccupiedWhileItsWorkspaceIsLocked(t *testing.T) {
	t.Parallel()
	n := openNode(t, options(t, &fake{}))
	k := Key{"t", "s"}
	if n.sessions.occupied(k) {
		t.Error("an unknown session is occupied")
	}
	s, leave, err := n.sessions.enter(k)
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	if n.sessions.occupied(k) {
		t.Error("a session that does nothing is occupied")
	}
	s.workspace.mu.Lock()
	defer s.workspace.mu.Unlock()
	if !n.sessions.occupied(k) {
		t.Error("it is not occupied")
	}
}
