package stream

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

// source is an open stream of the service. Its owner closes it.
type source struct {
	rpc    string
	header metadata.MD
	// first is what came before the stream counted as open, or nil.
	first *received
	// in has the rest, unbuffered. It is closed after an error.
	in     <-chan received
	cancel context.CancelCauseFunc

	// session is the one whose feed the stream may join, behind the number after; "" if the stream is not all of a
	// session's log. outer is the context of the request.
	session string
	after   int64
	outer   context.Context //nolint:containedctx // the source is part of the request
}

// received is the result of one call of Recv.
type received struct {
	message Message
	err     error
}

// close ends the stream, and waits for its goroutine.
func (s *source) close() {
	s.cancel(nil)
	for range s.in { // until the receiving goroutine has seen the end
	}
}

// piece is a pointer to a message of our streams.
type piece[T any] interface {
	*T
	Message
}

// incoming is the receiving half of a stream of the service.
type incoming[T any] interface {
	Header() (metadata.MD, error)
	Recv() (*T, error)
}

// verdict is how long the service may take, after the headers, to refuse the stream after all. A refusal
// comes together with headers, and a session with pending events sends them at once, so only quiet sessions
// wait this long.
const verdict = 250 * time.Millisecond

// open waits until the service has accepted a stream, so that its errors keep their HTTP status. st was
// started with ctx, which cancel ends. On success the caller closes the source; on failure the source is
// closed and has only its headers.
func open[T any, P piece[T]](ctx context.Context, cancel context.CancelCauseFunc, method string, timeout time.Duration, st incoming[T]) (*source, error) {
	late := problem.ServiceTimeout(timeout)
	timer := time.AfterFunc(timeout, func() { cancel(late) })
	defer timer.Stop()
	header, err := st.Header()
	s := &source{rpc: method, header: header, in: receive[T, P](ctx, st), cancel: cancel}
	if err == nil {
		err = s.await(ctx)
	}
	if err == nil {
		return s, nil
	}
	if errors.Is(context.Cause(ctx), late) {
		err = late
	}
	s.close()
	return s, err
}

// key returns the request's idempotency key from the service's headers; "" before they have come.
func (s *source) key() string {
	if s == nil {
		return ""
	}
	if key := s.header.Get(rpc.IdempotencyKey); len(key) > 0 {
		return key[0]
	}
	return ""
}

// await waits a moment for the first message. Its error is the service's refusal.
func (s *source) await(ctx context.Context) error {
	wait := time.NewTimer(verdict)
	defer wait.Stop()
	select {
	case r, ok := <-s.in:
		if !ok { // ctx ended, and the receiver dropped what it had
			return ctx.Err()
		}
		s.first = &r
		if r.err != nil && !errors.Is(r.err, io.EOF) {
			return r.err
		}
	case <-wait.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// receive passes on what st receives until it fails or ctx ends.
func receive[T any, P piece[T]](ctx context.Context, st incoming[T]) <-chan received {
	out := make(chan received)
	go func() {
		defer close(out)
		for {
			m, err := st.Recv()
			select {
			case out <- received{P(m), err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return out
}
