package fairlead

import (
	"cmp"
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Backoff says how long to wait before another attempt.
type Backoff struct {
	First, Most time.Duration
	Attempts    int // in a row without any success
}

// DefaultBackoff gives up after about half a minute.
func DefaultBackoff() Backoff {
	return Backoff{First: 200 * time.Millisecond, Most: 5 * time.Second, Attempts: 10}
}

// filled returns b with DefaultBackoff in place of what it does not say.
func (b Backoff) filled() Backoff {
	d := DefaultBackoff()
	return Backoff{First: cmp.Or(b.First, d.First), Most: cmp.Or(b.Most, d.Most), Attempts: cmp.Or(b.Attempts, d.Attempts)}
}

// wait waits before the attempt, counted from 1. It returns false when there
// shall be none, or ctx has ended.
func (b Backoff) wait(ctx context.Context, attempt int) bool {
	if attempt > b.Attempts {
		return false
	}
	pause := b.First
	for i := 1; i < attempt && pause < b.Most; i++ {
		pause *= 2
	}
	timer := time.NewTimer(min(pause, b.Most))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// errClosed is the error of calls on a connection that its owner has closed.
var errClosed = status.Error(codes.Canceled, "grpc: the client connection is closing")

// again reports whether a repeated request may succeed after err: the server
// was not reachable, or is stopping.
func again(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	if errors.Is(err, errClosed) {
		return false
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.Canceled, codes.Aborted:
		return true
	default:
		return false
	}
}

// Retry calls f until it succeeds, fails for good, or b gives up. f must be
// safe to repeat: its requests have a request id.
func Retry(ctx context.Context, b Backoff, f func() error) error {
	for attempt := 1; ; attempt++ {
		err := f()
		if err == nil || !again(ctx, err) || !b.wait(ctx, attempt) {
			return err
		}
	}
}
