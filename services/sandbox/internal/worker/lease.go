package worker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// noHeartbeat is what a worker expects before its first heartbeat.
const noHeartbeat = "NO_HEARTBEAT"

var (
	// errLeaseLost ends an item that another worker may have by now.
	errLeaseLost = errors.New("another worker may have the session: its lease was lost")
	// errStopped ends an item that the server wants to be stopped.
	errStopped = errors.New("the server has stopped the work item")
)

// keep sends heartbeats until the context or the lease ends. It reports the first success.
func (a *api) keep(ctx context.Context, w *work, lease time.Duration, held func()) error {
	expected, until := noHeartbeat, time.Now().Add(lease)
	for {
		h, err := a.beat(ctx, w, expected, lease)
		now := time.Now()
		var refused *Error
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, &refused) && refused.Status == http.StatusPreconditionFailed:
			return errLeaseLost
		case err != nil && !transient(err):
			return fmt.Errorf("%w: %w", errLeaseLost, err)
		case err != nil && now.After(until):
			return fmt.Errorf("%w: no heartbeat has reached the server for %v: %w", errLeaseLost, lease, err)
		case err != nil:
			if !pause(ctx, time.Second) {
				return context.Cause(ctx)
			}
			continue
		case h.State == "stopping" || h.State == "stopped":
			return errStopped
		case !h.Extended:
			return errLeaseLost
		}
		ttl := time.Duration(h.TTL) * time.Second
		if expected == noHeartbeat {
			held()
		}
		expected, until = h.Last, now.Add(ttl)
		if !pause(ctx, max(time.Second, min(ttl/2, 30*time.Second))) {
			return context.Cause(ctx)
		}
	}
}
