// Package inbox reads a session's inbox and takes the answers in it.
//
// A command is consumed by the write that holds its effect, so that a crash loses neither.
package inbox

import (
	"context"
	"fmt"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// backoff is the wait before a failed read of the inbox is repeated.
const backoff = time.Second

// Inbox is the inbox of one session.
type Inbox struct {
	taken map[int64]bool // commands that this worker has taken
	wake  chan struct{}
}

// New returns the inbox of a session that has just been loaded.
func New() *Inbox { return &Inbox{taken: map[int64]bool{}, wake: make(chan struct{}, 1)} }

// Wake tells Watch that the inbox has a command.
func (b *Inbox) Wake() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Each calls take with each command that was not taken before. take may call Each.
func (b *Inbox) Each(sc state.Scope, take func(store.Command) error) error {
	commands, err := sc.Store.Inbox(sc, sc.Lease)
	if err != nil {
		return fmt.Errorf("read the inbox of session %s: %w", sc.Lease.Session, err)
	}
	for _, c := range commands {
		if b.taken[c.ID] {
			continue
		}
		b.taken[c.ID] = true
		if err := take(c); err != nil {
			return err
		}
	}
	return nil
}

// Waits reports what waits for the active turn, which is about to end: a message that joins it, and a
// request to stop it. Both are true when it cannot know: the loop looks again.
func (b *Inbox) Waits(sc state.Scope) (joins, stops bool) {
	joins = len(sc.Active.Run.Steer) > 0
	commands, err := sc.Store.Inbox(sc.Outlasting(), sc.Lease)
	for _, c := range commands {
		if b.taken[c.ID] {
			continue
		}
		joins = joins || c.Target == sc.Active.ID
		stops = stops || stopsTurn(c) && c.TurnID == sc.Active.ID
	}
	return (joins || err != nil) && sc.Active.MayStep(), stops || err != nil
}

// stopsTurn reports whether a command asks to stop a turn.
func stopsTurn(c store.Command) bool {
	return c.Kind == store.CommandInterrupt || c.Kind == store.CommandRollback
}

// Watch looks at the inbox whenever it was woken, until ctx ends: it calls interrupt for a command that stops the turn,
// and tells the turn of another permission mode. It consumes nothing.
func (b *Inbox) Watch(ctx context.Context, s *state.Session, t *state.Turn, interrupt func()) {
	retry := time.NewTimer(backoff)
	retry.Stop()
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.wake:
		case <-retry.C:
		}
		commands, err := s.Store.Inbox(ctx, s.Lease)
		if err != nil {
			if ctx.Err() == nil {
				s.Logger.WarnContext(ctx, "cannot read the inbox; will look again", "session", s.Lease.Session, "error", err)
			}
			retry.Reset(backoff)
			continue
		}
		for _, c := range commands {
			if c.TurnID == t.ID && stopsTurn(c) {
				interrupt()
			}
			announce(t, c)
		}
	}
}
