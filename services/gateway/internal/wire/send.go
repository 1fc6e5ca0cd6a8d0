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
}

// heartbeat is a comment: clients ignore it.
const heartbeat = ": ping\n\n"

// Send answers a request with what an Encoder makes of the events of a Follower, as server-sent events, until the
// answer is complete or the client leaves. An error before the answer has begun is returned: the request can still be
// refused. Once it has begun, Send cuts off an answer that it cannot complete. name is what metrics count it under.
func (s *Server) Send(w http.ResponseWriter, r *http.Request, name string, f *Follower, enc Encoder) error {
	a := &answer{Server: s, out: stream.NewOutput(w, s.WriteTimeout), from: f, enc: enc, by: stream.By(name)}
	defer s.metrics.Opened(r.Context(), a.by)()
	err := a.run(r.Context())
	switch {
	case err == nil, r.Context().Err() != nil && auth.Ended(r.Context()) == nil:
		return nil
	case !a.begun:
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		s.metrics.Dropped(r.Context(), a.by)
		s.Log.WarnContext(r.Context(), "stream cut, its reader is too slow", "wire", name, "write_timeout", s.WriteTimeout)
	default:
		s.Log.WarnContext(r.Context(), "an answer was cut off, so that its client asks for the rest", "wire", name, "error", err)
	}
	panic(http.ErrAbortHandler)
}

// answer is one run of Send.
type answer struct {
	*Server
	out   *stream.Output
	from  *Follower
	enc   Encoder
	by    metric.MeasurementOption
	begun bool
}

// run writes what arrives until the answer is complete. Its error says why it is not.
func (a *answer) run(ctx context.Context) error {
	ping := time.NewTimer(a.Heartbeat)
	defer ping.Stop()
	for {
		var complete bool
		var err error
		select {
		case <-ctx.Done():
			if err = auth.Ended(ctx); err == nil {
				return ctx.Err()
			}
			if !a.begun {
				return err
			}
			a.out.Buf, complete = a.enc.Ended(a.out.Buf, err), true
		case <-rpc.Draining(ctx):
			return problem.Stopping()
		case <-ping.C:
			a.out.Buf = append(a.out.Buf, heartbeat...)
			if w, able := a.enc.(Waiting); able {
				a.out.Buf, complete = w.Quiet(ctx, a.out.Buf)
			}
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
			if l, able := a.enc.(Losing); able {
				a.out.Buf, complete = l.Lost(a.out.Buf, a.from.Err())
			}
			if complete {
				return true, nil
			}
			return false, a.from.Err()
		}
		if a.out.Buf, complete, err = a.enc.Event(a.out.Buf, e); err != nil || complete {
			return complete, err
		}
		a.metrics.Sent(ctx, a.by)
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
