package wire

import (
	"context"
	"errors"
	"net/http"
	"os"
	"time"

	"go.opentelemetry.io/otel/metric"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/codec"
	"github.com/fairlead/fairlead/services/gateway/internal/idle"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/stream"
	"github.com/fairlead/fairlead/services/internal/kit/auth"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

// Encoder writes the events of a log in the form of a wire. It belongs to one answer.
type Encoder interface {
	// Event appends what the wire says of an event, which may be nothing. It reports whether the answer is complete. Its
	// error cuts off the answer.
	Event(dst []byte, e *sessionv1.Event) (next []byte, complete bool, err error)
	// Ended appends that the caller may not read any more, with the reason.
	Ended(dst []byte, why error) []byte
}

// Losing is an Encoder that may end an answer well although the log cannot be followed any more, such as when the
// session has been deleted.
type Losing interface {
	Encoder
	// Lost appends what the wire says of the end, with its reason, and reports whether the answer is complete.
	Lost(dst []byte, why error) (next []byte, complete bool)
}

// Waiting is an Encoder that has something to say of what the log does not have, such as a session that was archived.
type Waiting interface {
	Encoder
	// Quiet appends what is new since the last heartbeat, and reports whether the answer is complete.
	Quiet(ctx context.Context, dst []byte) (next []byte, complete bool)
	// Changed is Quiet for a session that may have changed in a way that its log does not have.
	Changed(ctx context.Context, dst []byte) (next []byte, complete bool)
}

// heartbeat is a comment: clients ignore it.
const heartbeat = ": ping\n\n"

// Send answers a request with what an Encoder makes of the events of a Follower, as server-sent events, until the
// answer is complete or the client leaves. An error before the answer has begun is returned: the request can still be
// refused. Once it has begun, Send cuts off an answer that it cannot complete. name is what metrics count it under.
//
// An answer that has caught up goes on in the session's feed. Send may return before it is complete: then the client
// waits, and the answer holds what the request holds (idle.Until).
func (s *Server) Send(w http.ResponseWriter, r *http.Request, name string, f *Follower, enc Encoder) error {
	ctx := r.Context()
	a := &answer{Server: s, out: stream.NewOutput(w, s.WriteTimeout), from: f, enc: enc, name: name, by: stream.By(name)}
	defer idle.Until(ctx, s.metrics.Opened(ctx, a.by))()
	idle.Announce(ctx, w.Header())
	err := a.run(ctx)
	if errors.Is(err, errCaughtUp) {
		err = a.share(ctx)
	}
	if a.refusable(err) {
		w.Header().Del("Connection")
		return err
	}
	if a.cut(ctx, err) {
		panic(http.ErrAbortHandler)
	}
	return nil
}

// refusable reports whether an error comes before the answer.
func (a *answer) refusable(err error) bool { return err != nil && !a.begun }

// cut reports whether an answer breaks off because of an error, other than that its client has gone.
func (a *answer) cut(ctx context.Context, err error) bool {
	switch {
	case err == nil, ctx.Err() != nil && auth.Ended(ctx) == nil:
		return false
	case errors.Is(err, os.ErrDeadlineExceeded):
		a.metrics.Dropped(ctx, a.by)
		a.Log.WarnContext(ctx, "stream cut, its reader is too slow", "wire", a.name, "write_timeout", a.WriteTimeout)
	default:
		a.Log.WarnContext(ctx, "an answer was cut off, so that its client asks for the rest", "wire", a.name, "error", err)
	}
	return true
}

// answer is one run of Send.
type answer struct {
	*Server
	out   *stream.Output
	from  *Follower
	enc   Encoder
	name  string
	by    metric.MeasurementOption
	begun bool
}

// errCaughtUp ends a run of an answer that may join the session's feed.
var errCaughtUp = errors.New("wire: caught up")

// run writes what arrives until the answer is complete. Its error says why it is not.
func (a *answer) run(ctx context.Context) error {
	ping := time.NewTimer(a.Heartbeat)
	defer ping.Stop()
	for {
		var complete bool
		var err error
		select {
		case <-ctx.Done():
			if complete, err = a.ended(ctx); err != nil {
				return err
			}
		case <-rpc.Draining(ctx):
			return problem.Stopping()
		case <-ping.C:
			complete = a.quiet(ctx)
		case <-a.from.live:
			return errCaughtUp
		case e, ok := <-a.from.Events():
			if complete, err = a.collect(ctx, e, ok); err != nil {
				return err
			}
		}
		if err := a.flush(); err != nil || complete {
			return err
		}
		ping.Reset(a.Heartbeat)
	}
}

// ended appends what the end of the caller's credential means for the answer. Its error is the end of the answer.
func (a *answer) ended(ctx context.Context) (complete bool, err error) {
	switch why := auth.Ended(ctx); {
	case why == nil:
		return false, ctx.Err()
	case !a.begun:
		return false, why
	default:
		a.out.Buf = a.enc.Ended(a.out.Buf, why)
		return true, nil
	}
}

// quiet appends what a client hears that has heard nothing for a while.
func (a *answer) quiet(ctx context.Context) (complete bool) {
	a.out.Buf = append(a.out.Buf, heartbeat...)
	if w, able := a.enc.(Waiting); able {
		a.out.Buf, complete = w.Quiet(ctx, a.out.Buf)
	}
	return complete
}

func (a *answer) flush() error {
	if !a.begun {
		a.out.Begin(codec.SSE)
		a.begun = true
	}
	return a.out.Flush()
}

// collect takes an event and those that are ready behind it, so that a replay does not need a system call for each.
func (a *answer) collect(ctx context.Context, e *sessionv1.Event, ok bool) (complete bool, err error) {
	for {
		if !ok {
			return a.lost(a.from.Err())
		}
		if complete, err = a.add(ctx, e); err != nil || complete {
			return complete, err
		}
		if len(a.out.Buf) >= stream.MaxBatch {
			return false, nil
		}
		select {
		case e, ok = <-a.from.Events():
		default:
			return false, nil
		}
	}
}

// add appends an event.
func (a *answer) add(ctx context.Context, e *sessionv1.Event) (complete bool, err error) {
	if a.out.Buf, complete, err = a.enc.Event(a.out.Buf, e); err == nil {
		a.metrics.Sent(ctx, a.by)
	}
	return complete, err
}

// lost ends an answer whose log cannot be followed any more. It returns why, unless the answer is complete.
func (a *answer) lost(why error) (complete bool, err error) {
	if l, able := a.enc.(Losing); able {
		a.out.Buf, complete = l.Lost(a.out.Buf, why)
	}
	if complete {
		return true, nil
	}
	return false, why
}
