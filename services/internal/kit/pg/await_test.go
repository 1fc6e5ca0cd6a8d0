package pg_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fairlead/fairlead/services/internal/kit/pg"
	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
)

func TestAwait(t *testing.T) {
	away := fmt.Errorf("open: %w", &pgconn.PgError{Code: "57P03", Message: "the database system is starting up"})
	wrong := fmt.Errorf("open: %w", &pgconn.PgError{Code: "28P01", Message: "password authentication failed"})
	stop := errors.New("stop")
	for _, c := range []struct {
		name     string
		patience time.Duration
		away     time.Duration // for how long the database is
		then     error
		stopAt   time.Duration
		want     error
		took     time.Duration // at least; at most a pause more
	}{
		{"a database that is there is opened at once", time.Minute, 0, nil, 0, nil, 0},
		{"a database that comes is opened when it is there", time.Minute, 30 * time.Second, nil, 0, nil, 30 * time.Second},
		{"a database that does not come is given up", time.Minute, time.Hour, nil, 0, away, time.Minute},
		{"without patience there is one try", 0, time.Hour, nil, 0, away, 0},
		{"a fault that waiting does not mend is told at once", time.Minute, 0, wrong, 0, wrong, 0},
		{"a fault that shows when the database is there, too", time.Minute, 2 * time.Second, wrong, 0, wrong, 2 * time.Second},
		{"a program that is stopped does not wait", time.Minute, time.Hour, nil, 10 * time.Second, stop, 10 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if c.stopAt > 0 {
					time.AfterFunc(c.stopAt, func() { cancel(stop) })
				}
				begin := time.Now()
				err := pg.Await(ctx, c.patience, slog.New(slog.DiscardHandler), func(context.Context) error {
					if time.Since(begin) < c.away {
						return away
					}
					return c.then
				})
				if !errors.Is(err, c.want) {
					t.Errorf("got %v, want %v", err, c.want)
				}
				if took := time.Since(begin); took < c.took || took > c.took+5*time.Second || c.took == 0 && took > 0 {
					t.Errorf("took %v, want %v", took, c.took)
				}
			})
		})
	}
}

// TestAwaitOpensADatabaseThatIsStartedLater leads connections to the database only after the first try has failed.
func TestAwaitOpensADatabaseThatIsStartedLater(t *testing.T) {
	config, err := pgxpool.ParseConfig(pgtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	network, target := pgconn.NetworkAddress(config.ConnConfig.Host, config.ConnConfig.Port)
	reserved, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := reserved.Addr().String()
	_ = reserved.Close()
	url := fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=disable", config.ConnConfig.User, config.ConnConfig.Password, address, config.ConnConfig.Database)

	var log strings.Builder
	tries := 0
	err = pg.Await(t.Context(), time.Minute, slog.New(slog.NewTextHandler(&log, nil)), func(ctx context.Context) error {
		if tries++; tries == 2 {
			door, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
			if err != nil {
				return err
			}
			t.Cleanup(lead(door, network, target))
		}
		pool, err := pg.Open(ctx, url, "late", slog.New(slog.DiscardHandler))
		if err == nil {
			t.Cleanup(pool.Close)
		}
		return err
	})
	if err != nil || tries != 2 {
		t.Errorf("after %d tries: %v", tries, err)
	}
	for _, want := range []string{"cannot be reached", "the database is there"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, log.String())
		}
	}
	if strings.Contains(log.String(), config.ConnConfig.Password) && config.ConnConfig.Password != "" {
		t.Error("the log holds the password")
	}
}

// lead passes connections to target until the function that it returns has been called; that waits for all of them,
// which have to be closed before.
func lead(door net.Listener, network, target string) (stop func()) {
	var all sync.WaitGroup
	all.Go(func() {
		for {
			in, err := door.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial(network, target)
			if err != nil {
				_ = in.Close()
				continue
			}
			all.Go(func() {
				_, _ = io.Copy(out, in)
				_ = out.Close()
			})
			all.Go(func() {
				_, _ = io.Copy(in, out)
				_ = in.Close()
			})
		}
	})
	return func() {
		_ = door.Close()
		all.Wait()
	}
}
