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
	cancel context.CancelFunc
	done   sync.WaitGroup
	err    error // set before events is closed
}

// Follow reads the log of a session after a sequence number, until ctx ends or the caller closes the Follower.
func (s *Server) Follow(ctx context.Context, session string, after int64) *Follower {
	ctx, cancel := context.WithCancel(ctx)
	f := &Follower{events: make(chan *sessionv1.Event), cancel: cancel}
	f.done.Go(func() {
		defer close(f.events)
		f.err = s.follow(ctx, session, after, f.events)
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
func (s *Server) follow(ctx context.Context, session string, after int64, out chan<- *sessionv1.Event) error {
	had := seen{last: after}
	lost := time.Now()
	for wait := backoff; ; wait = min(2*wait, maxBackoff) {
		heard, err := s.attach(ctx, session, &had, out)
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
func (s *Server) attach(ctx context.Context, session string, had *seen, out chan<- *sessionv1.Event) (heard bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	st, err := s.Sessions.StreamEvents(ctx, &sessionv1.StreamEventsRequest{Parent: session, AfterSeq: had.last})
	if err != nil {
		return false, err
	}
	for {
		m, err := st.Recv()
		if err != nil {
			return heard, err
		}
		heard = true
		e := had.fresh(m.GetEvent())
		if e == nil {
			continue
		}
		select {
		case out <- e:
		case <-ctx.Done():
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
