package stream

import (
	"context"
	"errors"
	"io"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/feed"
	"github.com/fairlead/fairlead/services/gateway/internal/idle"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

// following is a stream in the feed of its session.
type following struct {
	pumping
	ctx    context.Context //nolint:containedctx // it lives as long as the stream
	stream *idle.Stream
	reader *feed.Reader // nil: it has to join
}

// follow goes on with a stream in the session's feed. The handler may return before the stream ends.
func (p *pumping) follow(ctx context.Context) {
	f := &following{pumping: *p, ctx: ctx, stream: p.shared.Keeper.Open(ctx, p.cfg.Heartbeat)}
	f.stream.Wake(idle.News)
	f.stream.Hold(f.step, f.o.Detach)
}

// step writes what is due. It reports whether the stream is over.
func (f *following) step(why idle.Reason) (over bool) {
	over = true // after a panic, too
	defer func() {
		if over && f.reader != nil {
			f.reader.Leave()
		}
	}()
	done, err := f.write(why)
	if err == nil {
		err = f.o.Flush()
	}
	if err == nil && done {
		err = f.o.Finish()
	}
	if err != nil {
		f.cut(f.ctx, streamEvents, err)
	}
	return done || err != nil
}

// write appends what is due, and flushes batches of it. Its error is the writer's.
func (f *following) write(why idle.Reason) (over bool, err error) {
	switch {
	case why&idle.Ended != 0:
		if err := endOf(f.ctx); err != nil {
			f.fail(err)
		}
		return true, nil
	case why&idle.Stopping != 0:
		f.fail(problem.Stopping())
		return true, nil
	}
	quiet := false
	for {
		entries, position, err := f.next()
		switch {
		case errors.Is(err, feed.ErrBehind):
			if over, err := f.catchUp(); over || err != nil {
				return over, err
			}
			continue
		case err != nil:
			return f.broken(err), nil
		}
		quiet = quiet || position
		if len(entries) == 0 {
			break
		}
		if over, err := f.send(entries); over || err != nil {
			return over, err
		}
	}
	if changed := f.reader.Changed(); quiet {
		f.message(&sessionv1.StreamEventsResponse{Kind: &sessionv1.StreamEventsResponse_Progress{
			Progress: &sessionv1.Progress{Seq: f.after, SessionChanged: changed},
		}})
	} else if why&idle.Beat != 0 {
		f.o.Buf = f.o.enc.heartbeat(f.o.Buf)
	}
	return false, nil
}

// next returns what the feed has, which the stream joins first if it has to.
func (f *following) next() (entries []*feed.Entry, quiet bool, err error) {
	if f.reader == nil {
		f.reader, err = f.shared.Feeds.Join(f.ctx, f.session, f.after, func() { f.stream.Wake(idle.News) })
		if err != nil {
			f.reader = nil
			return nil, false, err
		}
	}
	return f.reader.Next()
}

// send writes entries of the feed.
func (f *following) send(entries []*feed.Entry) (over bool, err error) {
	for _, e := range entries {
		if f.o.Buf, err = f.o.enc.shared(f.o.Buf, e); err != nil {
			return f.unwritable(f.ctx, err), nil
		}
		f.after = e.Event.GetSeq()
		f.metrics.Sent(f.ctx, f.by)
		if len(f.o.Buf) >= MaxBatch {
			if err := f.o.Flush(); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

// catchUp reads the log on a stream of its own until it has caught up.
func (f *following) catchUp() (over bool, err error) {
	if f.reader != nil {
		f.reader.Leave()
		f.reader = nil
	}
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	st, err := f.client.StreamEvents(ctx, &sessionv1.StreamEventsRequest{Parent: f.session, AfterSeq: f.after})
	if err != nil {
		return f.broken(err), nil
	}
	for f.ready = false; !f.ready; {
		m, err := st.Recv()
		switch {
		case err != nil:
			return f.broken(err), nil
		case stopping(f.ctx):
			f.fail(problem.Stopping())
			return true, nil
		}
		if over := f.message(m); over {
			return true, nil
		}
		if len(f.o.Buf) >= MaxBatch {
			if err := f.o.Flush(); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

// message appends a message of the service.
func (f *following) message(m *sessionv1.StreamEventsResponse) (over bool) {
	buf, err := f.o.enc.message(f.o.Buf, m)
	if err != nil {
		return f.unwritable(f.ctx, err)
	}
	f.o.Buf = buf
	f.metrics.Sent(f.ctx, f.by)
	f.note(m)
	return false
}

func stopping(ctx context.Context) bool {
	select {
	case <-rpc.Draining(ctx):
		return true
	default:
		return false
	}
}

// broken ends the stream with the service's error.
func (f *following) broken(err error) (over bool) {
	switch {
	case f.ctx.Err() != nil:
		if err := endOf(f.ctx); err != nil {
			f.fail(err)
		}
	case !errors.Is(err, io.EOF):
		f.log.WarnContext(f.ctx, "stream broken by the service", "error", err)
		f.fail(err)
	}
	return true
}
