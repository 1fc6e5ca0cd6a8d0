package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// freezeTimeout limits how long the kernel may take to freeze a sandbox.
const freezeTimeout = 10 * time.Second

// Freeze implements box.Runner. Without control groups it cannot freeze.
func (r *Runner) Freeze(ctx context.Context, workspace string) (bool, func(), error) {
	r.mu.Lock()
	var all []*sandbox // more than one while commands with another network run
	if r.groups != nil {
		all = slices.Clone(r.sandboxes[workspace])
	}
	for _, s := range all {
		s.stay.enter(false)
	}
	r.mu.Unlock()
	var thaws []func()
	thaw := func() {
		for _, f := range thaws {
			f()
		}
	}
	for i, s := range all {
		f, err := r.freezeOne(ctx, s)
		if err != nil {
			thaw()
			for _, rest := range all[i+1:] {
				r.leave(rest, false)
			}
			return false, func() {}, err
		}
		if f != nil {
			thaws = append(thaws, f)
		}
	}
	return len(thaws) > 0, thaw, nil
}

// freezeOne freezes a sandbox in which the caller has a place, and thaw releases the place. It returns nil
// and no error if nothing runs in the sandbox.
func (r *Runner) freezeOne(ctx context.Context, s *sandbox) (thaw func(), err error) {
	if err := r.await(ctx, s, false); err != nil {
		return nil, nil //nolint:nilerr,nilnil // it was never made, so nothing runs in it
	}
	s.starting.Lock()
	if err := s.freeze(ctx); err != nil {
		s.starting.Unlock()
		r.leave(s, false)
		return nil, s.awaitGone(ctx, err)
	}
	return func() {
		s.thaw()
		s.starting.Unlock()
		r.leave(s, false)
	}, nil
}

// awaitGone ignores an error that the sandbox's end explains, once nothing runs in it.
func (s *sandbox) awaitGone(ctx context.Context, err error) error {
	if !errors.Is(err, errGone) {
		return err
	}
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the end of a sandbox: %w", ctx.Err())
	}
}

// freeze stops all processes in the sandbox until thaw is called, or returns an error; errGone means that
// the sandbox is being ended. starting is held.
func (s *sandbox) freeze(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, freezeTimeout)
	defer cancel()
	s.stood.begin()
	err := s.group.Freeze(ctx)
	if s.hold.isEnding() { // the kill may have come before the freeze
		err = errGone
	}
	if err != nil {
		return errors.Join(err, s.goOn())
	}
	return nil
}

// thaw undoes freeze. starting is held.
func (s *sandbox) thaw() {
	if err := s.goOn(); err != nil {
		s.r.log.Error("cannot thaw a sandbox: ending it", "error", err)
		s.kill()
	}
}

// goOn thaws the sandbox, unless its end has done so.
func (s *sandbox) goOn() error {
	err := s.group.Thaw()
	s.stood.end()
	if s.hold.isEnding() {
		return nil // its group may be gone
	}
	return err
}

// stopwatch measures for how long a sandbox is frozen. It is safe for concurrent use.
type stopwatch struct {
	mu    sync.Mutex
	since time.Time     // since when it is frozen or being frozen; zero if it is not
	total time.Duration // how long it was frozen before
}

func (w *stopwatch) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since = time.Now()
}

func (w *stopwatch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.total += time.Since(w.since)
	w.since = time.Time{}
}

// read reports whether the sandbox is frozen, and for how long it has been in all.
func (w *stopwatch) read() (frozen bool, total time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.since.IsZero() {
		return false, w.total
	}
	return true, w.total + time.Since(w.since)
}
