package fairlead

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
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

// wait waits before the attempt, counted from 1, that follows err. It returns false when there
// shall be none, or ctx has ended.
func (b Backoff) wait(ctx context.Context, attempt int, err error) bool {
	asked, _ := delay(err)
	if attempt > b.Attempts || asked > b.Most {
		return false
	}
	pause := b.First
	for i := 1; i < attempt && pause < b.Most; i++ {
		pause *= 2
	}
	pause = min(pause, b.Most)
	pause = pause/2 + rand.N(pause/2+1) //nolint:gosec // no secret: clients shall not all come back at once
	timer := time.NewTimer(max(pause, asked))
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
	case codes.ResourceExhausted:
		_, told := delay(err)
		return told
	default:
		return false
	}
}

// delay returns how long the server asks to wait before the request is sent again, if it does.
func delay(err error) (time.Duration, bool) {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration(), true
		}
	}
	return 0, false
}

// Retry calls f until it succeeds, fails for good, or b gives up. A limit of the server is waited for as long as the
// server says, unless that is longer than b.Most. f must be safe to repeat: its requests have a request id.
func Retry(ctx context.Context, b Backoff, f func() error) error {
	for attempt := 1; ; attempt++ {
		err := f()
		if err == nil || !again(ctx, err) || !b.wait(ctx, attempt, err) {
			return err
		}
	}
}
