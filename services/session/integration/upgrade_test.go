package integration

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// upgrading is a store whose inboxes hold, as long as old is set, what only a
// newer version knows.
type upgrading struct {
	store.Store
	old    atomic.Bool
	claims chan struct{}
}

func (u *upgrading) Inbox(ctx context.Context, l store.Lease) ([]store.Command, error) {
	all, err := u.Store.Inbox(ctx, l)
	if err == nil && u.old.Load() {
		all = append(all, store.Command{ID: 1 << 40, Kind: "of-tomorrow"})
	}
	return all, err
}

func (u *upgrading) Load(ctx context.Context, l store.Lease) (*store.Snapshot, error) {
	s, err := u.Store.Load(ctx, l)
	if err == nil && s.Active != nil && u.old.Load() {
		u.claims <- struct{}{}
	}
	return s, err
}

// TestACommandOfANewerVersionIsLeftToItAndNotHeldAgainstTheTurn takes a session
// up more often than a turn may be without getting further.
func TestACommandOfANewerVersionIsLeftToItAndNotHeldAgainstTheTurn(t *testing.T) {
	t.Parallel()
	u := &upgrading{claims: make(chan struct{}, 1000)}
	wrap := func(s store.Store) store.Store {
		u.Store = s
		return u
	}
	f := startOn(t, wrap, hello, func(c *session.Config) { c.LeaseTTL, c.MaxClaims = time.Second, 1 })
	ctx := t.Context()
	s := f.session(ctx, t)
	u.old.Store(true)
	turn := f.create(ctx, t, s, "hello")
	for range 3 {
		select {
		case <-u.claims:
		case <-time.After(20 * time.Second):
			t.Fatal("the session is not taken up again")
		}
	}
	u.old.Store(false)
	if end := f.waitForEnd(ctx, t, turn.Name); end.State != sessionv1.TurnState_TURN_STATE_COMPLETE {
		t.Errorf("the turn ended %v", end)
	}
}
