package wire

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

const (
	// backoff is the first wait before a session service that is away is asked again; maxBackoff is the longest.
	backoff, maxBackoff = 200 * time.Millisecond, 2 * time.Second
)

// Follower reads a session's log, also across restarts of the session service. Every sequence number comes once.
type Follower struct {
	events chan *sessionv1.Event
	live   chan struct{} // has a token once the follower has caught up with the log
	cancel context.CancelFunc
	done   sync.WaitGroup
	err    error // set before events is closed

	session string
	had     seen             // Close frees it
	rest    *sessionv1.Event // the one that was not taken before Close
}

// Follow reads the log of a session after a sequence number, until ctx ends or the caller closes the Follower.
func (s *Server) Follow(ctx context.Context, session string, after int64) *Follower {
	return s.goOn(ctx, session, seen{last: after})
}

// goOn is Follow for a reader that has had a part of the log.
func (s *Server) goOn(ctx context.Context, session string, had seen) *Follower {
	ctx, cancel := context.WithCancel(ctx)
	f := &Follower{events: make(chan *sessionv1.Event), live: make(chan struct{}, 1), cancel: cancel, session: session, had: had}
	f.done.Go(func() {
		defer close(f.events)
		f.err = s.follow(ctx, f)
	})
	return f
}

// Events has the events, unbuffered. It is closed at the end; Err then has the reason.
func (f *Follower) Events() <-chan *sessionv1.Event { return f.events }

// Err returns why Events was closed.
func (f *Follower) Err() error { return f.err }

// Close ends the Follower and waits for it.
func (f *Follower) Close() {
	f.cancel()
	f.done.Wait()
}

// follow asks again while the session service is away, within the patience.
func (s *Server) follow(ctx context.Context, f *Follower) error {
	lost := time.Now()
	for wait := backoff; ; wait = min(2*wait, maxBackoff) {
		heard, err := s.attach(ctx, f)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if heard {
			lost, wait = time.Now(), backoff
		}
		if !passes(err) || time.Since(lost) > s.Patience {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// attach follows the log on one stream. It reports whether the service said anything.
func (s *Server) attach(ctx context.Context, f *Follower) (heard bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	st, err := s.Sessions.StreamEvents(ctx, &sessionv1.StreamEventsRequest{Parent: f.session, AfterSeq: f.had.last})
	if err != nil {
		return false, err
	}
	for {
		m, err := st.Recv()
		if err != nil {
			return heard, err
		}
		heard = true
		if m.GetProgress() != nil {
			select {
			case f.live <- struct{}{}:
			default: // the reader has not seen the earlier one
			}
		}
		e := f.had.fresh(m.GetEvent())
		if e == nil {
			continue
		}
		select {
		case f.events <- e:
		case <-ctx.Done():
			f.rest = e
			return heard, ctx.Err()
		}
	}
}

// passes reports whether an error of the session service may pass.
func passes(err error) bool {
	switch apierr.Code(err) {
	case codes.Unavailable, codes.Aborted, codes.Canceled, codes.DeadlineExceeded:
		return true
	default:
		return errors.Is(err, io.EOF)
	}
}
