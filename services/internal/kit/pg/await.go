package pg

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"
)

// The pause between two tries to reach the database grows from the first to the last.
const (
	firstPause = 200 * time.Millisecond
	lastPause  = 5 * time.Second
)

// Await calls open until it succeeds, as long as the database is Unavailable, so that a program may be
// started before its database. It gives up after patience; with 0 it tries once. Each failure is logged. When
// ctx ends, Await returns at once, with the cause.
func Await(ctx context.Context, patience time.Duration, log *slog.Logger, open func(context.Context) error) error {
	begin := time.Now()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := open(ctx)
		waited := time.Since(begin)
		left := patience - waited
		switch {
		case err == nil:
			if pause > firstPause {
				log.InfoContext(ctx, "the database is there", "waited", waited.Round(time.Millisecond))
			}
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !Unavailable(err) || patience <= 0:
			return err
		case left <= 0:
			return fmt.Errorf("the database could not be reached for %v (database-wait); is it running at that address? %w", waited.Round(time.Millisecond), err)
		}
		wait := min(pause/2+rand.N(pause/2), left) //nolint:gosec // spreads load, guards nothing
		log.WarnContext(ctx, "the database cannot be reached; nothing is served until it is there", "next_try_in", wait.Round(time.Millisecond), "gives_up_in", left.Round(time.Millisecond), "error", err)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}
