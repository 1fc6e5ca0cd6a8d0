package worker

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"
)

var (
	// errInterrupted ends a call that the session does not wait for any more.
	errInterrupted = errors.New("the call was interrupted")
	// errStopping ends a call that outlasts the worker's grace time.
	errStopping = errors.New("the worker was stopped")
)

// releaseTimeout bounds how long the worker tries to give an item back.
const releaseTimeout = 15 * time.Second

// item serves a session while the worker has its work item.
type item struct {
	api  *api // with the item's credential
	work *work
	box  *workspace
	log  *slog.Logger

	lease, maxIdle time.Duration
	stopping       <-chan struct{} // closed when the worker takes no more calls
}

// credential returns the token of an item's secret; empty: it has none.
func credential(secret string) string {
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(secret, "="))
	var s struct {
		Token string `json:"sessions_token"`
	}
	if err != nil || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s.Token
}

// serve serves the session until its turn has ended for a while, the worker stops or the lease is lost. Then it gives
// the item back.
func (i *item) serve(ctx context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	held := make(chan struct{})
	running.Go(func() {
		if err := i.api.keep(ctx, i.work, i.lease, func() { close(held) }); err != nil {
			cancel(err)
		}
	})
	err := i.begin(ctx, held)
	if err == nil {
		events := make(chan []event)
		running.Go(func() {
			if err := i.api.follow(ctx, i.work, events); err != nil {
				cancel(err)
			}
		})
		err = i.calls(ctx, events)
	}
	cancel(err)
	running.Wait()
	i.release(ctx, err)
}

// begin waits for the lease and makes the workspace.
func (i *item) begin(ctx context.Context, held <-chan struct{}) error {
	select {
	case <-held:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	var session struct{ Status string }
	if err := i.api.call(ctx, http.MethodGet, i.work.session(), nil, &session); err != nil {
		return err
	}
	if session.Status == "terminated" {
		return errOver
	}
	return i.box.ensure(ctx)
}

// errOver ends the item of a session that takes no more results.
var errOver = errors.New("the session has ended")

// release gives the item back, unless another worker may have it.
func (i *item) release(ctx context.Context, why error) {
	if errors.Is(why, errLeaseLost) {
		i.log.WarnContext(ctx, "lost the session; its calls were ended", "error", why.Error())
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := i.api.stop(ctx, i.work); err != nil {
		i.log.WarnContext(ctx, "cannot give the work item back; the server gives it out again when its lease is over", "error", err.Error())
	}
	switch {
	case why == nil, errors.Is(why, errOver), errors.Is(why, errStopped), errors.Is(why, errStopping):
		i.log.InfoContext(ctx, "released the session")
	default:
		i.log.ErrorContext(ctx, "gave the session up", "error", why.Error())
	}
}

// calls runs the session's open calls one after the other, in the order of the log.
func (i *item) calls(ctx context.Context, events <-chan []event) error {
	h := newHistory()
	known := i.box.knows
	var current *running
	defer func() {
		if current != nil { // its process must have ended before the item is given back
			current.cancel(context.Cause(ctx))
			<-current.done //nolint:errcheck // its result is not posted
		}
	}()
	idle := time.NewTimer(time.Hour)
	defer idle.Stop()
	idle.Stop()
	stopping := i.stopping
	for {
		if current == nil {
			c := h.next(known)
			switch {
			case stopping == nil:
				return errStopping
			case h.over != "":
				return i.ended(ctx, h.over)
			case c != nil:
				current = i.start(ctx, *c)
			case h.idle && !h.held(known):
				idle.Reset(i.maxIdle)
			}
		}
		select {
		case batch := <-events:
			idle.Stop()
			for _, e := range batch {
				h.apply(e)
			}
			if current != nil && (h.over != "" || h.settled[current.id]) {
				current.cancel(errInterrupted)
			}
		case err := <-current.end():
			h.settled[current.id] = true
			current = nil
			if err != nil {
				return err
			}
		case <-idle.C:
			return nil
		case <-stopping:
			stopping = nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// ended deletes the workspace of a deleted session.
func (i *item) ended(ctx context.Context, event string) error {
	if event == typeDeleted {
		return errors.Join(errOver, i.box.remove(ctx))
	}
	return errOver
}

// running is a call that is being made.
type running struct {
	id     string
	cancel context.CancelCauseFunc
	done   chan error
}

// end returns the channel that tells the call's end. Without a call it is nil, which never tells.
func (r *running) end() <-chan error {
	if r == nil {
		return nil
	}
	return r.done
}

// start makes a call and posts its result. The error ends the item.
func (i *item) start(ctx context.Context, c event) *running {
	ctx, cancel := context.WithCancelCause(ctx)
	r := &running{id: c.ID, cancel: cancel, done: make(chan error, 1)}
	go func() { // calls waits for it
		defer close(r.done)
		defer cancel(nil)
		r.done <- i.run(ctx, c)
	}()
	return r
}

func (i *item) run(ctx context.Context, c event) error {
	log := i.log.With("tool", c.Name, "tool_use_id", c.ID)
	began := time.Now()
	r := i.box.run(ctx, c)
	why := context.Cause(ctx)
	log.InfoContext(ctx, "made the call", "failed", r.failed, "took", time.Since(began).Round(time.Millisecond).String())
	switch {
	case errors.Is(why, errStopping):
		// The call may have had an effect, so the next worker must not make it again.
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
		defer cancel()
		ctx = late
	case errors.Is(why, errInterrupted):
		return nil
	case why != nil:
		return why
	}
	err := i.api.answer(ctx, i.work, c.ID, r)
	var refused *Error
	if errors.As(err, &refused) && (refused.Status == http.StatusBadRequest || refused.Status == http.StatusConflict) {
		log.WarnContext(ctx, "the server does not take the result", "error", err.Error())
		err = nil
	}
	if err == nil {
		i.box.forget(ctx, c)
	}
	return err
}
