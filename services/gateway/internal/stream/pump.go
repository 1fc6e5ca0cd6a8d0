package stream

import (
	"context"
	"errors"
	"io"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/internal/kit/auth"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

// pumping is one run of pump.
type pumping struct {
	*Server
	o       *output
	by      metric.MeasurementOption
	session string // whose feed it joins; or ""
	after   int64  // the number up to which it has sent that session's log
	ready   bool   // to join
}

// errCaughtUp ends a run that may join the session's feed.
var errCaughtUp = errors.New("stream: caught up")

// run writes what arrives. It returns the writer's error, or errCaughtUp.
func (p *pumping) run(ctx context.Context, src *source) error {
	if src.first != nil {
		over := p.collect(ctx, *src.first, true, src.in)
		if err := p.o.Flush(); err != nil || over {
			return err
		}
		if p.ready {
			return errCaughtUp
		}
	}
	ping := time.NewTimer(p.cfg.Heartbeat)
	defer ping.Stop()
	done, draining := ctx.Done(), rpc.Draining(ctx)
	for {
		var over bool
		select {
		case <-done:
			err := endOf(ctx)
			if err == nil {
				return nil
			}
			p.fail(err)
			over = true
		case <-draining:
			p.fail(problem.Stopping())
			over = true
		case <-ping.C:
			p.o.Buf = p.o.enc.heartbeat(p.o.Buf)
		case r, ok := <-src.in:
			over = p.collect(ctx, r, ok, src.in)
		}
		if err := p.o.Flush(); err != nil || over {
			return err
		}
		if p.ready {
			return errCaughtUp
		}
		ping.Reset(p.cfg.Heartbeat)
	}
}

// endOf returns the error for the client of a stream whose context has ended; nil after its client has gone.
func endOf(ctx context.Context) error {
	if bad := (*inputError)(nil); errors.As(context.Cause(ctx), &bad) {
		return bad.err
	}
	return auth.Ended(ctx)
}

// collect takes a message and those that are ready behind it, so that a replay does not need a system call
// for each event. It reports whether the stream is over.
func (p *pumping) collect(ctx context.Context, r received, ok bool, in <-chan received) (over bool) {
	for {
		switch {
		case (!ok || r.err != nil) && ctx.Err() != nil:
			return false // the cause of ctx says more than the stream's error
		case !ok || errors.Is(r.err, io.EOF):
			return true
		case r.err != nil:
			p.log.WarnContext(ctx, "stream broken by the service", "error", r.err)
			p.fail(r.err)
			return true
		}
		var err error
		if p.o.Buf, err = p.o.enc.message(p.o.Buf, r.message); err != nil {
			return p.unwritable(ctx, err)
		}
		p.metrics.Sent(ctx, p.by)
		p.note(r.message)
		if p.ready || len(p.o.Buf) >= MaxBatch {
			return false
		}
		select {
		case r, ok = <-in:
		default:
			return false
		}
	}
}

// note follows the place of the stream in the log.
func (p *pumping) note(m Message) {
	p.after = max(p.after, m.GetEvent().GetSeq(), m.GetProgress().GetSeq())
	p.ready = m.GetProgress() != nil && p.session != ""
}

// unwritable ends the stream because of a message that has no form.
func (p *pumping) unwritable(ctx context.Context, err error) (over bool) {
	p.log.ErrorContext(ctx, "a message cannot be written as JSON", "error", err)
	p.fail(problem.Internal())
	return true
}

func (p *pumping) fail(err error) { p.o.Buf = p.o.enc.failure(p.o.Buf, problem.Status(err)) }
