// Package pg opens Postgres for a service: a pool bound to the service's own schema, its migrations, and transactions
// that survive conflicts.
package pg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"regexp"
	"time"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/puddle/v2"
)

// connectTimeout bounds a single attempt to connect unless the URL sets a
// limit.
const connectTimeout = 5 * time.Second

// Limits of an idle transaction unless the URL sets them. A program that is stopped inside a transaction
// would otherwise hold its locks until it continues, and no other program could take its work over.
const (
	idleKey           = "idle_in_transaction_session_timeout"
	idleInTransaction = "5s"
)

var schemeForm = regexp.MustCompile(`^postgres(ql)?://`)

var schemaForm = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// Open returns a pool on the database of url, after one successful connection. Every connection has schema as
// its search path and UTC as its time zone. Statements become spans, without their arguments.
//
// A connection is lost about 15 seconds after its network falls silent, and a transaction that is idle for 5
// seconds is rolled back. When the server becomes read-only or shuts down, every connection is made anew;
// where the URL names several servers, connections go to the one that takes writes.
//
// The caller closes the pool. The schema need not exist before Migrate.
func Open(ctx context.Context, url, schema string, log *slog.Logger) (*pgxpool.Pool, error) {
	if !schemaForm.MatchString(schema) {
		return nil, fmt.Errorf("open postgres: %q cannot be the name of a schema", schema)
	}
	c, err := pgxpool.ParseConfig(url)
	if err != nil { // pgx leaves passwords out of this error
		return nil, fmt.Errorf("open postgres: the database URL cannot be read: %w", err)
	}
	c.ConnConfig.RuntimeParams["search_path"] = schema
	c.ConnConfig.RuntimeParams["timezone"] = "UTC"
	if c.ConnConfig.RuntimeParams["application_name"] == "" {
		c.ConnConfig.RuntimeParams["application_name"] = "fairlead-" + schema
	}
	if c.ConnConfig.RuntimeParams[idleKey] == "" {
		c.ConnConfig.RuntimeParams[idleKey] = idleInTransaction
	}
	if c.ConnConfig.ConnectTimeout == 0 {
		c.ConnConfig.ConnectTimeout = connectTimeout
	}
	c.ConnConfig.DialFunc = dialer(silence).DialContext
	choose(&c.ConnConfig.Config)
	away := &failover{log: log}
	away.watch(&c.ConnConfig.Config)
	c.MaxConns = max(c.MaxConns, 4) // Migrate holds one connection while it works on another
	c.ConnConfig.Tracer = otelpgx.NewTracer()
	pool, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("open postgres: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("open postgres: no connection to %s: %w", c.ConnConfig.Host, err)
	}
	away.pool.Store(pool)
	log.DebugContext(ctx, "postgres opened", "host", c.ConnConfig.Host, "database", c.ConnConfig.Database, "schema", schema, "max_conns", c.MaxConns)
	return pool, nil
}

// attempts is how often a transaction is tried before its conflict is reported.
const attempts = 10

// Tx runs do in a transaction, and commits it unless do returns an error. On a serialization failure (40001)
// or a deadlock (40P01) it runs do again after a short random wait: do must touch only its transaction and
// variables that it sets anew each time. Tx returns an error of do unchanged.
func Tx(ctx context.Context, pool *pgxpool.Pool, do func(pgx.Tx) error) error {
	return TxWith(ctx, pool, pgx.TxOptions{}, do)
}

// TxWith is Tx with an isolation level or access mode.
func TxWith(ctx context.Context, pool *pgxpool.Pool, o pgx.TxOptions, do func(pgx.Tx) error) error {
	return Retry(ctx, func() error { return pgx.BeginTxFunc(ctx, pool, o, do) })
}

// InTwo is Tx for a transaction that reads and then writes, in as few round trips as possible: the batch of
// read is sent with the begin, that of write with the commit. Both must set their variables anew, because
// they are called again after a conflict. write may also use the connection, which is in the transaction.
// With an empty batch, nothing is committed.
func InTwo(ctx context.Context, pool *pgxpool.Pool, read func(*pgx.Batch), write func(*pgx.Conn, *pgx.Batch) error) error {
	return Retry(ctx, func() error {
		return pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error { return inTwo(ctx, c.Conn(), read, write) })
	})
}

func inTwo(ctx context.Context, c *pgx.Conn, read func(*pgx.Batch), write func(*pgx.Conn, *pgx.Batch) error) (err error) {
	// A connection that is left inside a transaction is in an unknown state: the pool closes it.
	defer func() {
		if c.PgConn().TxStatus() != 'I' && !c.IsClosed() {
			_, e := c.Exec(ctx, "rollback")
			err = errors.Join(err, e)
		}
	}()
	first := &pgx.Batch{}
	first.Queue("begin")
	read(first)
	if err := c.SendBatch(ctx, first).Close(); err != nil {
		return err
	}
	second := &pgx.Batch{}
	if err := write(c, second); err != nil || second.Len() == 0 {
		return err
	}
	second.Queue("commit")
	return c.SendBatch(ctx, second).Close()
}

// Retry runs do again after a conflict, like Tx: for a statement that is its own transaction.
func Retry(ctx context.Context, do func() error) error {
	for attempt := 1; ; attempt++ {
		err := do()
		if err == nil || !conflict(err) || attempt == attempts {
			return err
		}
		wait := time.NewTimer(time.Duration(rand.Int64N(int64(time.Millisecond) << attempt))) //nolint:gosec // spreads load, guards nothing
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return errors.Join(ctx.Err(), err)
		}
	}
}

func conflict(err error) bool { return Code(err) == "40001" || Code(err) == "40P01" }

// Code returns the SQLSTATE of err, or "".
func Code(err error) string {
	var pe *pgconn.PgError
	if errors.As(err, &pe) {
		return pe.Code
	}
	return ""
}

// Unavailable reports whether err means that the database cannot be reached or takes no work now, so that the
// same request may succeed later: no connection, a lost connection, or a server that starts, stops or is
// full. A connection may be lost after the commit, so the caller of a repeated write must be able to find it
// done.
func Unavailable(err error) bool {
	if code := Code(err); code != "" {
		switch code[:2] {
		case "08", "53":
			return true
		}
		return code == "57P01" || code == "57P02" || code == "57P03" || code == "57P05" || code == "25006" || code == "25P03"
	}
	var (
		connect *pgconn.ConnectError
		network net.Error
	)
	switch {
	case errors.Is(err, context.Canceled), err == nil:
		return false
	case errors.As(err, &connect), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, puddle.ErrClosedPool):
		return true
	case errors.Is(err, context.DeadlineExceeded):
		return false
	}
	return errors.As(err, &network) || pgconn.SafeToRetry(err)
}
