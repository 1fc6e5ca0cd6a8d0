package main

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"time"

	"github.com/fairlead/fairlead/services/allinone/bench/internal/fleet"
	"github.com/fairlead/fairlead/services/allinone/bench/internal/provider"
	"github.com/fairlead/fairlead/services/allinone/bench/internal/stat"
)

// stores are the two stores that an all-in-one Fairlead runs on.
var stores = []string{"SQLite", "Postgres"}

// filled runs an all-in-one Fairlead whose store storebench has filled, with a
// session for its model.
func (b *bench) filled(ctx context.Context, store, command string, count int) (f *fleet.Fairlead, session string, err error) {
	database := ""
	if store == "Postgres" {
		if database, err = b.database(ctx); err != nil {
			return nil, "", err
		}
	}
	shape := b.shape(database, false)
	if f, err = fleet.Run(ctx, shape); err != nil {
		return nil, "", err
	}
	if session, err = f.Session(ctx); err == nil {
		_, err = turn(ctx, f, session, provider.Plan{Tokens: 1}, nil)
	}
	f.Stop()
	if err != nil {
		return nil, "", err
	}
	var done struct{ Added int }
	if err := b.storebench(ctx, &done, command, "--database", database, "--data", shape.Data,
		"--session", path.Base(session), "--count", strconv.Itoa(count)); err != nil {
		return nil, "", err
	}
	f, err = fleet.Run(ctx, shape)
	return f, session, err
}

// measureLong submits messages to a long session. Between two messages the session
// is not held, so each of them loads it.
func measureLong(ctx context.Context, b *bench) error {
	const goal = 50 * time.Millisecond
	for _, store := range stores {
		f, session, err := b.filled(ctx, store, "messages", b.messages)
		if err != nil {
			return fmt.Errorf("%s: %w", store, err)
		}
		short, long, err := beforeModel(ctx, f, session)
		f.Stop()
		if err != nil {
			return fmt.Errorf("%s: %w", store, err)
		}
		b.row(store+": from submit until the model has it", "%s; a new session: %s", long, short)
		b.goal(long.At(0.5) < goal, "%d messages: %s at the median, %.1f times a new session's; goal: %s", b.messages,
			stat.Milliseconds(long.At(0.5)), float64(long.At(0.5))/float64(short.At(0.5)), stat.Milliseconds(goal))
	}
	return nil
}

// beforeModel measures the time from submit until the model server has read the
// request, of new sessions and of a long one.
func beforeModel(ctx context.Context, f *fleet.Fairlead, session string) (short, long stat.Times, err error) {
	for range 20 {
		fresh, err := f.Session(ctx)
		if err != nil {
			return nil, nil, err
		}
		for _, k := range []struct {
			session string
			times   *stat.Times
		}{{fresh, &short}, {session, &long}} {
			s, err := turn(ctx, f, k.session, provider.Plan{Tokens: 1}, nil)
			if err != nil {
				return nil, nil, err
			}
			*k.times = append(*k.times, s.Arrived.Sub(s.Begun))
		}
	}
	return short, long, nil
}
