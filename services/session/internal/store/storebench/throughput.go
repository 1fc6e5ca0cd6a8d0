package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/eventlog"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/postgres"
)

// Throughput is the number of events that became durable.
type Throughput struct {
	Seconds float64
	Events  int64 // before any were merged
	Rows    int64
	Bytes   int64 // of the rows' bodies
	Commits int64
	// CopyRows of the same rows were copied in CopySeconds into a table like events.
	CopyRows    int64
	CopySeconds float64
}

// counting counts what a store commits.
type counting struct {
	store.Store
	commits atomic.Int64
}

func (c *counting) Commit(ctx context.Context, ws []store.Write) ([]error, error) {
	c.commits.Add(1)
	return c.Store.Commit(ctx, ws)
}

// measureThroughput appends to many sessions as fast as their logs take it, and
// counts the published events. Then it copies the same rows.
func measureThroughput(ctx context.Context, s store.Store, o options) (any, error) {
	leases, err := claimSessions(ctx, s, o.sessions)
	if err != nil {
		return nil, err
	}
	counted := &counting{Store: s}
	var events, rows, size atomic.Int64
	committer := eventlog.New(counted, func(_ store.Key, published []*sessionv1.Event) {
		for _, e := range published {
			events.Add(e.Seq - e.FirstSeq + 1)
			rows.Add(1)
			size.Add(int64(proto.Size(e)))
		}
	}, time.Minute)
	committing, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	failed := make(chan error, 1)
	running.Go(func() { failed <- committer.Run(committing) })
	begun := time.Now()
	err = produce(ctx, committer, leases, o)
	r := Throughput{Seconds: time.Since(begun).Seconds()}
	stop()
	running.Wait()
	if err := errors.Join(err, <-failed); err != nil {
		return nil, err
	}
	r.Events, r.Rows, r.Bytes, r.Commits = events.Load(), rows.Load(), size.Load(), counted.commits.Load()
	if o.database == "" {
		return r, nil
	}
	r.CopyRows, r.CopySeconds, err = copyRows(ctx, o.database, leases)
	return r, err
}

// produce appends events to every session's log until the time is over, and
// waits until they are committed.
func produce(ctx context.Context, c *eventlog.Committer, leases []store.Lease, o options) error {
	until := time.Now().Add(o.duration)
	errs := make([]error, len(leases))
	var producers sync.WaitGroup
	for i, l := range leases {
		producers.Go(func() {
			log := c.Open(l, &sessionv1.Session{LastSeq: 1})
			turn := "sessions/" + l.Session + "/turns/t"
			for n := int32(0); errs[i] == nil && time.Now().Before(until); n++ {
				block := int32(0)
				if o.distinct {
					block = n % 2 // deltas of two blocks are never merged
				}
				errs[i] = log.Append(ctx, store.Write{Events: []*sessionv1.Event{delta(0, turn, block)}})
				if o.events > 0 {
					time.Sleep(time.Second / time.Duration(o.events)) //nolint:forbidigo // the measured stream's own pace
				}
			}
			errs[i] = errors.Join(errs[i], log.Flush(ctx))
		})
	}
	producers.Wait()
	return errors.Join(errs...)
}

// copyRows copies the events of these sessions into a new table with the same
// columns and the same primary key, by one COPY.
func copyRows(ctx context.Context, url string, leases []store.Lease) (n int64, seconds float64, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	var sessions []string
	for _, l := range leases {
		sessions = append(sessions, l.Session)
	}
	source, target := pgx.Identifier{postgres.Schema, "events"}, pgx.Identifier{postgres.Schema, "copied"}
	found, err := conn.Query(ctx, `select tenant, session, seq, first_seq, turn, body from `+source.Sanitize()+` where session = any($1)`, sessions)
	if err != nil {
		return 0, 0, err
	}
	rows, err := pgx.CollectRows(found, func(r pgx.CollectableRow) ([]any, error) { return r.Values() })
	if err != nil {
		return 0, 0, err
	}
	if _, err := conn.Exec(ctx, "create table "+target.Sanitize()+" (like "+source.Sanitize()+" including all)"); err != nil {
		return 0, 0, err
	}
	if _, err := conn.Exec(ctx, "checkpoint"); err != nil {
		return 0, 0, err
	}
	begun := time.Now()
	n, err = conn.CopyFrom(ctx, target, []string{"tenant", "session", "seq", "first_seq", "turn", "body"}, pgx.CopyFromRows(rows))
	if err != nil {
		return 0, 0, fmt.Errorf("copy: %w", err)
	}
	seconds = time.Since(begun).Seconds()
	_, err = conn.Exec(ctx, "drop table "+target.Sanitize())
	return n, seconds, err
}
