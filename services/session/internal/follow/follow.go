// Package follow sends the events of a session as they are stored: first those that the store has, then the new ones.
package follow

import (
	"context"
	"errors"
	"strings"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/hub"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

const (
	// pageEvents and pageBytes bound one read of the store.
	pageEvents = 500
	pageBytes  = 1 << 20
)

// Logs follows the logs of sessions. It is safe for concurrent use.
type Logs struct {
	Store store.Store
	Hub   *hub.Hub
	// Idle is how often a quiet stream reports its position.
	Idle time.Duration
}

// Stream is one stream of a session's events.
type Stream struct {
	Key      store.Key
	After    int64
	Turn     string // send only this turn's events, and only until it has ended; empty: all
	Into     string // the turn that Turn was steered into, if it was: its events too
	Event    func(*sessionv1.Event) error
	Progress func(*sessionv1.Progress) error

	ended bool
	sent  bool // an event was sent since the flag was last cleared
}

// Follow sends the stored events after f.After, then the new ones, until ctx or
// the turn ends. Events come from memory if there is no gap, otherwise from the
// store.
func (s *Logs) Follow(ctx context.Context, f Stream) error {
	live := s.Hub.Follow(f.Key)
	defer live.Close()
	quiet := time.NewTicker(s.Idle)
	defer quiet.Stop()
	if err := s.catchUp(ctx, &f); err != nil || f.ended {
		return err
	}
	if err := f.Progress(&sessionv1.Progress{Seq: f.After}); err != nil {
		return err
	}
	for !f.ended {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-quiet.C:
			if err := s.stillQuiet(ctx, &f); err != nil {
				return err
			}
		case <-live.C:
			if err := s.deliver(ctx, &f, live); err != nil {
				return err
			}
			if f.sent {
				f.sent = false
				quiet.Reset(s.Idle)
			}
		}
	}
	return nil
}

// stillQuiet reports the stream's position after a look at the store, since a
// wake may have been lost.
func (s *Logs) stillQuiet(ctx context.Context, f *Stream) error {
	f.sent = false
	if err := s.catchUp(ctx, f); err != nil || f.sent || f.ended {
		return err
	}
	return f.Progress(&sessionv1.Progress{Seq: f.After})
}

// deliver sends what the hub has.
func (s *Logs) deliver(ctx context.Context, f *Stream, live *hub.Follower) error {
	batches, wake, changed := live.Take()
	if err := s.deliverEvents(ctx, f, batches, wake); err != nil || f.ended || !changed {
		return err
	}
	return f.Progress(&sessionv1.Progress{Seq: f.After, SessionChanged: true})
}

// deliverEvents sends events. It reads the store before a gap and after a wake.
func (s *Logs) deliverEvents(ctx context.Context, f *Stream, batches [][]*sessionv1.Event, wake bool) error {
	for _, b := range batches {
		if b[0].FirstSeq > f.After+1 {
			if err := s.catchUp(ctx, f); err != nil || f.ended {
				return err
			}
			if b[0].FirstSeq > f.After+1 { // the session was deleted meanwhile
				wake = true
				break
			}
		}
		if err := f.send(b); err != nil || f.ended {
			return err
		}
	}
	if !wake {
		return nil
	}
	before := f.After
	if err := s.catchUp(ctx, f); err != nil || f.ended || f.After > before {
		return err
	}
	// No event was found: check that the session still exists.
	_, err := s.Store.GetSession(ctx, f.Key)
	return refusal.Store(err, refusal.Subject{Session: "sessions/" + f.Key.Session})
}

// catchUp sends what the store has after f.After.
func (s *Logs) catchUp(ctx context.Context, f *Stream) error {
	over := false
	if f.Turn != "" {
		_, turnID, _ := strings.Cut(f.Turn, "/turns/")
		t, err := s.Store.GetTurn(ctx, f.Key, turnID)
		if err != nil {
			return refusal.Store(err, refusal.Subject{Session: "sessions/" + f.Key.Session, Turn: f.Turn})
		}
		over = t.EndTime != nil
	}
	for !f.ended {
		events, err := s.Store.ListEvents(ctx, f.Key, f.After, pageEvents, pageBytes)
		if err != nil {
			return refusal.Store(err, refusal.Subject{Session: "sessions/" + f.Key.Session})
		}
		if len(events) == 0 {
			// The turn had ended before its events were read: there are no more.
			f.ended = over
			return nil
		}
		if err := f.send(events); err != nil {
			return err
		}
	}
	return nil
}

// send sends the events that are new and requested.
func (f *Stream) send(events []*sessionv1.Event) error {
	for _, e := range events {
		if e.Seq <= f.After {
			continue
		}
		if s := e.GetTurnSteered(); s != nil && e.Turn == f.Turn {
			f.Into = s.Into
		}
		if f.Turn == "" || e.Turn == f.Turn || e.Turn == f.Into && f.Into != "" {
			if err := f.Event(e); err != nil {
				return err
			}
			f.sent = true
		}
		f.After = e.Seq
		if f.Turn != "" && e.Turn == f.Turn && e.GetTurnFinished() != nil {
			f.ended = true
			return nil
		}
	}
	return nil
}

// SteeredBefore returns the turn into which t was steered by the sequence number
// after, so that a client that attaches again continues with the same events. It
// returns "" if t was not steered, or only later.
func (s *Logs) SteeredBefore(ctx context.Context, t *sessionv1.Turn, after int64) (string, error) {
	if t.SteeredInto == "" {
		return "", nil
	}
	session, _, _ := strings.Cut(t.Name, "/turns/")
	for at := t.AfterSeq; at < after; {
		events, err := s.Store.ListEvents(ctx, request.Key(ctx, session), at, pageEvents, pageBytes)
		if err != nil {
			return "", refusal.Store(err, refusal.Subject{Session: session})
		}
		if len(events) == 0 {
			break
		}
		for _, e := range events {
			if at = e.Seq; at <= after && e.Turn == t.Name && e.GetTurnSteered() != nil {
				return t.SteeredInto, nil
			}
		}
	}
	return "", nil
}

// errSeen ends a following of the log.
var errSeen = errors.New("seen")

// Await follows a session's log until is returns true for an event.
func (s *Logs) Await(ctx context.Context, session string, after int64, is func(*sessionv1.Event) (bool, error)) error {
	var outcome error
	err := s.Follow(ctx, Stream{
		Key: request.Key(ctx, session), After: after,
		Event: func(e *sessionv1.Event) error {
			found, err := is(e)
			if !found {
				return nil
			}
			outcome = err
			return errSeen
		},
		Progress: func(*sessionv1.Progress) error { return nil },
	})
	if errors.Is(err, errSeen) {
		return outcome
	}
	return err
}
