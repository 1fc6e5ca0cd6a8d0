package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

const (
	loadSessions = 200
	loadEvery    = time.Second // between two commands of a session
	loadUnseen   = 5           // commands of each session that are not measured: they make its sandbox
)

// load runs commands in many workspaces at a steady rate. A command counts from the moment at which it is due.
func (b *bench) load(ctx context.Context) (err error) {
	r, err := b.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	var all []*remote
	for i := range loadSessions {
		one := &remote{execs: r.execs, session: fmt.Sprint("sessions/load-", i)}
		if err := one.open(ctx, r.conn); err != nil {
			return err
		}
		all = append(all, one)
	}
	started, ended := make([]times, len(all)), make([]times, len(all))
	begin := time.Now()
	var before unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &before); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	for i, one := range all {
		g.Go(func() error {
			for n := range loadUnseen + b.loadRounds {
				due := begin.Add(time.Duration(n)*loadEvery + time.Duration(i)*loadEvery/loadSessions)
				select {
				case <-time.After(time.Until(due)):
				case <-ctx.Done():
					return context.Cause(ctx)
				}
				var seen time.Time
				if err := one.run(ctx, func() { seen = time.Now() }); err != nil {
					return err
				}
				if n >= loadUnseen {
					started[i], ended[i] = append(started[i], seen.Sub(due)), append(ended[i], time.Since(due))
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	var after unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &after); err != nil {
		return err
	}
	var begun, done times
	for i := range all {
		begun, done = append(begun, started[i]...), append(done, ended[i]...)
	}
	row(fmt.Sprintf("%d sessions, each a command a second", loadSessions), "started p50 %s p99 %s, ended p50 %s p99 %s (n=%d), CPU of the service and its client %s a command",
		milliseconds(begun.at(0.5)), milliseconds(begun.at(0.99)), milliseconds(done.at(0.5)), milliseconds(done.at(0.99)), len(begun),
		milliseconds(time.Duration(unix.TimevalToNsec(after.Utime)+unix.TimevalToNsec(after.Stime)-unix.TimevalToNsec(before.Utime)-unix.TimevalToNsec(before.Stime))/
			time.Duration(loadSessions*(loadUnseen+b.loadRounds))))
	return nil
}
