package pg_test

import (
	"context"
	"errors"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fairlead/fairlead/services/internal/kit/pg"
	"github.com/fairlead/fairlead/services/internal/kit/pg/pgserver"
	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
)

// failover is a primary with a standby, behind one address.
type failover struct {
	primary, standby *pgserver.Server
	address          *pgserver.Switch
}

func startFailover(t *testing.T) *failover {
	t.Helper()
	if os.Getenv(pgtest.Env) == "" {
		t.Skip("there is no Postgres; 'make test' starts one")
	}
	primary, err := pgserver.StartDurable(t.Context(), "", "fsync=off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = primary.Stop() })
	standby, err := primary.Standby(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = standby.Stop() })
	address, err := pgserver.NewSwitch(t.Context(), primary)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = address.Close() })
	return &failover{primary, standby, address}
}

// over makes the standby the primary. Connections to the old one stay open.
func (f *failover) over(t *testing.T) {
	t.Helper()
	if err := f.standby.Promote(t.Context(), f.primary); err != nil {
		t.Fatal(err)
	}
	f.address.To(f.standby)
}

// TestWritesGoOnAfterAFailover keeps eight connections busy while the database fails over.
func TestWritesGoOnAfterAFailover(t *testing.T) {
	f := startFailover(t)
	pool := open(t, f.address.URL("postgres")+"&pool_max_conns=8", "session")
	if err := pg.Migrate(t.Context(), pool, "session", migrations(1)); err != nil {
		t.Fatal(err)
	}
	acknowledged := make(chan int, 1<<20)
	write := func(ctx context.Context, id int) error {
		_, err := pool.Exec(ctx, "insert into a values ($1, 0) on conflict do nothing", id)
		if err == nil {
			acknowledged <- id
		}
		return err
	}
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			for id := w; ctx.Err() == nil; id += 8 {
				for write(ctx, id) != nil && ctx.Err() == nil { //nolint:revive // until it is written
				}
			}
		})
	}
	for len(acknowledged) < 100 {
		pauseFor(ctx, 10*time.Millisecond)
	}
	f.over(t)
	for had := len(acknowledged); len(acknowledged) < had+100; { // however long a busy machine takes
		pauseFor(ctx, 10*time.Millisecond)
	}
	stop()
	writers.Wait()
	if err := pg.Writable(t.Context(), pool); err != nil {
		t.Errorf("the database takes no writes: %v", err)
	}
	if n, kept := len(acknowledged), count(t, pool, "select count(*) from a"); kept < n {
		t.Errorf("%d of %d writes are lost", n-kept, n)
	}
	everyConnectionTakesWrites(t, pool)
}

func everyConnectionTakesWrites(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for _, c := range pool.AcquireAllIdle(t.Context()) {
		if err := pg.CheckWritable(t.Context(), c.Conn()); err != nil {
			t.Error(err)
		}
		c.Release()
	}
}

func TestADatabaseThatTakesNoWritesIsNotWritable(t *testing.T) {
	f := startFailover(t)
	pool := open(t, f.address.URL("postgres"), "session")
	if err := pg.Migrate(t.Context(), pool, "session", migrations(1)); err != nil {
		t.Fatal(err)
	}
	f.address.To(f.standby)
	onStandby := open(t, f.address.URL("postgres"), "session")
	for count(t, onStandby, "select count(*) from pg_tables where tablename = 'a'") == 0 { // until it has replayed the migration
		pauseFor(t.Context(), 10*time.Millisecond)
	}
	if err := pg.Writable(t.Context(), onStandby); !pg.Unavailable(err) {
		t.Errorf("a standby: %v", err)
	}
	if err := pg.Writable(t.Context(), pool); err != nil {
		t.Errorf("the primary: %v", err)
	}
	if err := f.primary.Set(t.Context(), "default_transaction_read_only", "on"); err != nil {
		t.Fatal(err)
	}
	for pg.Writable(t.Context(), pool) == nil { // until the server has heard of it
		pauseFor(t.Context(), 10*time.Millisecond)
	}
	if err := pg.Writable(t.Context(), pool); !pg.Unavailable(err) {
		t.Errorf("a read-only server: %v", err)
	}
	if got := count(t, pool, "select count(*) from a"); got != 0 {
		t.Errorf("it cannot be read: %d", got)
	}
}

// Of several servers in a URL the one is taken that takes writes, unless the URL asks for another.
func TestAURLWithSeveralServersLeadsToThePrimary(t *testing.T) {
	f := startFailover(t)
	second, err := pgserver.NewSwitch(t.Context(), f.standby)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = second.Close() })
	host := func(url string) string {
		c, err := pgx.ParseConfig(url)
		if err != nil {
			t.Fatal(err)
		}
		return c.Host + ":" + strconv.Itoa(int(c.Port))
	}
	url := "postgres://fairlead@" + host(second.URL("x")) + "," + host(f.address.URL("x")) + "/postgres?sslmode=disable"
	if err := pg.CheckURL(url); err != nil {
		t.Errorf("%s: %v", url, err)
	}
	for _, c := range []struct {
		attrs string
		want  bool
	}{{"", false}, {"&target_session_attrs=read-write", false}, {"&target_session_attrs=standby", true}} {
		if got := recovery(t, open(t, url+c.attrs, "session")); got != c.want {
			t.Errorf("%q: on the standby %v", c.attrs, got)
		}
	}
}

func recovery(t *testing.T, pool *pgxpool.Pool) (in bool) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), "select pg_is_in_recovery()").Scan(&in); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return in
}

func pauseFor(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
