package fairlead

import (
	"cmp"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// ErrCut says that a stream ended too early.
var ErrCut = errors.New("the server ended the stream before its end")

// Follower receives the events of a session or a turn. When the connection is
// lost, it reconnects after the last event it has seen. The caller must close
// it.
type Follower struct {
	events chan *sessionv1.Event
	cancel context.CancelFunc
	once   sync.Once
	err    error // valid when events is closed

	steered string // the turn, if its message was put into another, whose events come too
}

// Events returns the channel of events. It is closed at the end of the turn or
// the context, or when reconnecting has failed; Err returns the cause.
func (f *Follower) Events() <-chan *sessionv1.Event { return f.events }

// Err returns why Events was closed, nil for the turn's end. Call it after
// that.
func (f *Follower) Err() error { return f.err }

// Close ends the following, not the turn, and waits for it.
func (f *Follower) Close() {
	f.once.Do(func() {
		f.cancel()
		for range f.events { // until the goroutine has closed it
		}
	})
}

// piece is one message of a stream.
type piece interface {
	GetEvent() *sessionv1.Event
	GetProgress() *sessionv1.Progress
}

// feed is what a Follower follows.
type feed struct {
	// open opens a stream after a sequence number.
	open func(ctx context.Context, after int64) (func() (piece, error), error)
	turn string // whose events count alone; empty: all events of the stream
	ends bool   // with the end of a turn
}

// Options of a Follower. Its functions must not call Close, which waits for them.
type Options struct {
	// Backoff says how long to reconnect; what is zero is as in DefaultBackoff.
	Backoff Backoff
	// Lost is called before each attempt to reconnect, by the goroutine that sends the events.
	Lost func(err error)
	// CaughtUp is called, by the same goroutine, when the receiver has every event that the server had: once for each
	// connection, and later from time to time.
	CaughtUp func()
}

// RunTurn runs a turn and follows it to its end. It sets the id of a request
// without one, so that reconnecting never runs the turn again.
func RunTurn(ctx context.Context, c sessionv1.SessionServiceClient, req *sessionv1.RunTurnRequest, o Options) *Follower {
	req = proto.CloneOf(req)
	req.RequestId = cmp.Or(req.GetRequestId(), newID())
	return follow(ctx, req.GetAfterSeq(), o, feed{ends: true, open: func(ctx context.Context, after int64) (func() (piece, error), error) {
		again := proto.CloneOf(req)
		again.AfterSeq = after
		stream, err := c.RunTurn(ctx, again)
		return receiver(stream, err)
	}})
}

// FollowTurn follows an accepted turn from the beginning of its session to its end.
func FollowTurn(ctx context.Context, c sessionv1.SessionServiceClient, session, turn string, o Options) *Follower {
	return follow(ctx, 0, o, feed{ends: true, turn: turn, open: eventsOf(c, session)})
}

// CallTool makes a call without the model and follows it to its end. It sets the id of a request
// without one, so that reconnecting never makes the call again.
func CallTool(ctx context.Context, c sessionv1.SessionToolServiceClient, req *sessionv1.CallToolRequest, o Options) *Follower {
	req = proto.CloneOf(req)
	req.RequestId = cmp.Or(req.GetRequestId(), newID())
	return follow(ctx, req.GetAfterSeq(), o, feed{ends: true, open: func(ctx context.Context, after int64) (func() (piece, error), error) {
		again := proto.CloneOf(req)
		again.AfterSeq = after
		stream, err := c.CallTool(ctx, again)
		return receiver(stream, err)
	}})
}

// StreamEvents follows a session until ctx ends.
func StreamEvents(ctx context.Context, c sessionv1.SessionServiceClient, session string, after int64, o Options) *Follower {
	return follow(ctx, after, o, feed{open: eventsOf(c, session)})
}

// eventsOf opens streams of a session's events.
func eventsOf(c sessionv1.SessionServiceClient, session string) func(context.Context, int64) (func() (piece, error), error) {
	return func(ctx context.Context, after int64) (func() (piece, error), error) {
		stream, err := c.StreamEvents(ctx, &sessionv1.StreamEventsRequest{Parent: session, AfterSeq: after})
		return receiver(stream, err)
	}
}

// receiver makes a stream of either kind a function.
func receiver[M any, P interface {
	*M
	piece
}](stream grpc.ServerStreamingClient[M], err error) (func() (piece, error), error) {
	if err != nil {
		return nil, err
	}
	return func() (piece, error) {
		m, err := stream.Recv()
		return P(m), err
	}, nil
}

func follow(ctx context.Context, after int64, o Options, from feed) *Follower {
	ctx, cancel := context.WithCancel(ctx)
	o.Backoff = o.Backoff.filled()
	f := &Follower{events: make(chan *sessionv1.Event), cancel: cancel}
	if o.Lost == nil {
		o.Lost = func(error) {}
	}
	if o.CaughtUp == nil {
		o.CaughtUp = func() {}
	}
	go func() {
		defer close(f.events)
		defer cancel()
		f.err = f.run(ctx, after, from, o)
	}()
	return f
}

// run opens the stream again and again, until the end.
func (f *Follower) run(ctx context.Context, after int64, from feed, o Options) error {
	for attempt := 1; ; attempt++ {
		begun, quiet := time.Now(), false
		reached, done, err := f.stream(ctx, after, from, func() {
			quiet = true
			o.CaughtUp()
		})
		switch {
		case done:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !errors.Is(err, ErrCut) && !again(ctx, err):
			return err
		}
		// A stream that held for a while did its work, even if nothing happened: a proxy may end it then.
		if reached > after || quiet && time.Since(begun) > o.Backoff.Most {
			after, attempt = reached, 1
		}
		o.Lost(err)
		if !o.Backoff.wait(ctx, attempt, err) {
			return err
		}
	}
}

// stream hands on one stream's events, and says how far it came.
func (f *Follower) stream(ctx context.Context, after int64, from feed, caughtUp func()) (reached int64, done bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	receive, err := from.open(ctx, after)
	if err != nil {
		return after, false, err
	}
	for {
		m, err := receive()
		if errors.Is(err, io.EOF) {
			return after, false, ErrCut
		}
		if err != nil {
			return after, false, err
		}
		e := m.GetEvent()
		if e == nil {
			after = max(after, m.GetProgress().GetSeq())
			caughtUp()
			continue
		}
		seq, ours := e.GetSeq(), from.turn == "" || from.turn == e.GetTurn()
		if from.ends && ours && e.GetTurnSteered() != nil {
			f.steered = e.GetTurn()
		}
		done := ours && from.ends && e.GetTurnFinished() != nil && (f.steered == "" || f.steered == e.GetTurn())
		if ours {
			select {
			case f.events <- e: // the receiver's from here on
			case <-ctx.Done():
				return after, false, ctx.Err()
			}
		}
		if after = max(after, seq); done {
			return after, true, nil
		}
	}
}
