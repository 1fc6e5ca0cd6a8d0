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

// source is a stream of the service that was opened. Its owner closes it.
type source struct {
	rpc    string
	header metadata.MD
	// first is what came before the stream was taken for open; nil when nothing did.
	first *received
	// in brings the rest, unbuffered. It is closed after an error.
	in     <-chan received
	cancel context.CancelCauseFunc
}

// received is what one call of Recv brought.
type received struct {
	message Message
	err     error
}

// close ends the stream, and waits until nothing of it runs any more.
func (s *source) close() {
	s.cancel(nil)
	for range s.in { // until the goroutine that receives has seen the end
	}
}

// piece is what pointers to the messages of our streams are.
type piece[T any] interface {
	*T
	Message
}

// incoming is the receiving half of a stream of the service.
type incoming[T any] interface {
	Header() (metadata.MD, error)
	Recv() (*T, error)
}

// verdict is how long the service may take, after the headers, to say that it refuses the stream after all. A refusal
// comes together with headers, and a session that has anything to say says it at once, so this time passes for quiet
// sessions alone.
const verdict = 250 * time.Millisecond

// open waits until the service has accepted a stream, so that its errors keep their HTTP status. st was started with
// ctx, which cancel ends. The caller closes the source on success; on failure it is closed and has its headers only.
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

// key returns the request's idempotency key, as the service tells it; nothing before it has told anything.
func (s *source) key() string {
	if s == nil {
		return ""
	}
	if key := s.header.Get(rpc.IdempotencyKey); len(key) > 0 {
		return key[0]
	}
	return ""
}

// await waits for the first message, for a moment. Its error is the service's refusal.
func (s *source) await(ctx context.Context) error {
	wait := time.NewTimer(verdict)
	defer wait.Stop()
	select {
	case r, ok := <-s.in:
		if !ok { // ctx ended, and the receiver gave up what it had
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

// receive hands over what st brings until it fails or ctx ends.
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
