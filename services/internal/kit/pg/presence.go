package pg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
)

// Presence shows that a replica of a service lives, and finds those that have died.
//
// A replica that is killed keeps its leases until they expire. But the kernel closes its connections at once, and
// Postgres ends their sessions, with the advisory locks that these hold. So each replica holds a lock of its own, and
// looks often whether those of the others are free. It ends the leases of a replica whose lock was free at two looks
// in a row: that one may have lost only its connection, and gets its lock again with the next one.
//
// A lock does not decide what the database accepts. Leases must be fenced, by an epoch or a claim, so that a replica
// that was wrongly taken for dead is refused like any that was paused. A paused replica keeps its connection, and so its
// leases until they expire. A machine that loses its power closes no connection; then the leases expire, too.
//
// The service's schema needs a table `replicas` with the columns `name`, its primary key, and `dead_at`. A replica of a
// version without presence is not in it, so that only its leases tell whether it lives.
type Presence struct {
	// Config is that of the service's connections.
	Config *pgx.ConnConfig
	// Service is a part of the names of locks.
	Service string
	// EndLeases ends the leases of a dead replica.
	EndLeases func(ctx context.Context, tx pgx.Tx, dead string) error
	Log       *slog.Logger
}

const (
	// lookEvery is the time between two looks.
	lookEvery = 250 * time.Millisecond
	// settleFor is how long a replica that has just connected does not judge others: after a failover of the database
	// all of them connect anew.
	settleFor = 3 * time.Second
	// lookFor bounds a look, and the wait for the replica's own lock.
	lookFor = 10 * time.Second
	// forgetAfter is how long the leases of a dead replica are looked for: longer than one lasts.
	forgetAfter = "10 minutes"
	// The pause before the replica connects again, and the longest one.
	firstReconnect = 100 * time.Millisecond
	lastReconnect  = 5 * time.Second
)

// lock is the key of the lock of the replica that an expression names.
func (p Presence) lock(name string) string {
	return "hashtextextended('fairlead " + p.Service + " replica ' || " + name + ", 0)"
}

// Keep shows until ctx ends that a replica lives, and ends the leases of those that died.
func (p Presence) Keep(ctx context.Context, replica string) {
	var wait time.Duration
	for {
		held, err := p.present(ctx, replica)
		if ctx.Err() != nil {
			return
		}
		if held { // at once: others look for the lock
			wait = 0
		}
		p.Log.WarnContext(ctx, "lost the connection that shows that this replica lives; will connect again", "error", err, "in", wait)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		wait = min(max(2*wait, firstReconnect), lastReconnect)
	}
}

// present holds the replica's lock on one connection, and looks for the dead, until the connection fails or ctx ends.
func (p Presence) present(ctx context.Context, replica string) (held bool, err error) {
	conn, err := pgx.ConnectConfig(ctx, p.Config.Copy())
	if err != nil {
		return false, fmt.Errorf("connect: %w", err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if ctx.Err() != nil && !conn.IsClosed() { // the server stops; a row that stays does no harm
			_, _ = conn.Exec(closing, "delete from replicas where name = $1", replica)
		}
		_ = conn.Close(closing)
	}()
	if err := p.enter(ctx, conn, replica); err != nil {
		return false, fmt.Errorf("take this replica's lock: %w", err)
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	suspects, since := map[string]bool{}, time.Now()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return true, ctx.Err()
		}
		if time.Since(since) < settleFor {
			continue
		}
		if suspects, err = p.look(ctx, conn, replica, suspects); err != nil {
			return true, fmt.Errorf("look for dead replicas: %w", err)
		}
	}
}

// enter takes the replica's lock and then says that it has one.
func (p Presence) enter(ctx context.Context, conn *pgx.Conn, replica string) error {
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	if err := CheckWritable(ctx, conn); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "select pg_advisory_lock("+p.lock("$1")+")", replica); err != nil {
		return err
	}
	_, err := conn.Exec(ctx, "insert into replicas (name) values ($1) on conflict (name) do update set dead_at = null", replica)
	return err
}

// errNoLock says that a lock does not last as long as its connection, as behind a pooler that shares connections.
var errNoLock = errors.New("this replica's own lock is gone although its connection lives")

// look ends the leases of the replicas whose locks are free for the second time. It returns those whose lock is free
// now.
func (p Presence) look(ctx context.Context, conn *pgx.Conn, replica string, suspects map[string]bool) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	var mine bool
	if err := conn.QueryRow(ctx, "select exists (select from pg_locks where locktype = 'advisory' and pid = pg_backend_pid() and granted)").Scan(&mine); err != nil {
		return nil, err
	}
	if !mine {
		return nil, errNoLock
	}
	// Shared, so that replicas that look at the same time do not take each other for the living.
	rows, err := conn.Query(ctx, "select name from replicas where name <> $1 and (dead_at is not null or pg_try_advisory_xact_lock_shared("+p.lock("name")+"))", replica)
	if err != nil {
		return nil, err
	}
	free, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	next := map[string]bool{}
	for _, name := range free {
		next[name] = true
		if !suspects[name] {
			continue
		}
		if err := p.end(ctx, conn, name); err != nil {
			return nil, err
		}
	}
	return next, nil
}

// end ends the leases of a dead replica.
func (p Presence) end(ctx context.Context, conn *pgx.Conn, dead string) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		// It may have connected again meanwhile.
		tag, err := tx.Exec(ctx, "update replicas set dead_at = coalesce(dead_at, clock_timestamp()) where name = $1 and pg_try_advisory_xact_lock_shared("+p.lock("name")+")", dead)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		if err := p.EndLeases(ctx, tx, dead); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "delete from replicas where name = $1 and dead_at < clock_timestamp() - $2::interval", dead, forgetAfter)
		return err
	})
}
