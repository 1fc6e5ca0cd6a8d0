package pg

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A failover leaves connections to a server that no longer takes writes or that shuts down. The first refusal
// closes its connection and all others of the pool, so that the next statement finds the new primary.

// resetEvery is the least time between two resets of a pool while a server refuses every
// connection.
const resetEvery = time.Second

// failover empties a pool whose server takes no writes any more.
type failover struct {
	pool atomic.Pointer[pgxpool.Pool] // nil until it is open
	last atomic.Int64                 // of the last reset, in nanoseconds
	log  *slog.Logger
}

// watch makes every new connection of the pool report what its server refuses.
func (f *failover) watch(c *pgconn.Config) {
	usual := c.OnPgError
	c.OnPgError = func(conn *pgconn.PgConn, err *pgconn.PgError) bool {
		if !moved(err.Code) {
			return usual(conn, err)
		}
		f.reset(err)
		return false
	}
}

// moved reports whether a code says that the server takes no writes: it is a standby, read-only, or shutting
// down.
func moved(code string) bool {
	return code == "25006" || code == "57P01" || code == "57P02" || code == "57P03"
}

func (f *failover) reset(cause error) {
	pool, now, last := f.pool.Load(), time.Now().UnixNano(), f.last.Load()
	if pool == nil || now-last < int64(resetEvery) || !f.last.CompareAndSwap(last, now) {
		return
	}
	f.log.Warn("the database accepts no writes here; all connections to it are replaced", "error", cause)
	pool.Reset()
}

// Writable returns an error if the database takes no writes. It writes nothing. The schema must be migrated.
func Writable(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := pool.Exec(ctx, "delete from goose_db_version where false")
	return err
}

// errReadOnly is Unavailable.
var errReadOnly = &pgconn.PgError{Severity: "ERROR", Code: "25006", Message: "the server accepts no writes: it is a standby, or read-only"}

// CheckWritable returns an error if the server of a single connection takes no writes.
func CheckWritable(ctx context.Context, conn *pgx.Conn) error {
	var readOnly string
	if err := conn.QueryRow(ctx, "show transaction_read_only").Scan(&readOnly); err != nil {
		return err
	}
	if readOnly == "on" {
		return errReadOnly
	}
	return nil
}

// choose selects the primary where the URL names several servers and does not say which to use.
func choose(c *pgconn.Config) {
	for _, f := range c.Fallbacks {
		if (f.Host != c.Host || f.Port != c.Port) && c.ValidateConnect == nil {
			c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
		}
	}
}

// Name names the database of a URL and its hosts, without credentials.
func Name(url string) string {
	c, err := pgx.ParseConfig(url)
	if err != nil { // CheckURL refuses it
		return "Postgres"
	}
	hosts := []string{c.Host}
	for _, f := range c.Fallbacks {
		if !slices.Contains(hosts, f.Host) { // a host is there twice, with and without TLS
			hosts = append(hosts, f.Host)
		}
	}
	return c.Database + " of Postgres at " + strings.Join(hosts, ", ")
}

// CheckURL returns the fault of a database URL.
func CheckURL(url string) error {
	if _, err := pgx.ParseConfig(url); err != nil || !schemeForm.MatchString(url) {
		return errors.New("is not of the form postgres://user:password@host/database")
	}
	return nil
}
