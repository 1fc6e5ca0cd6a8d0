package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlead/fairlead/services/internal/kit/pg"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
)

const (
	// channel carries the wakes of all replicas.
	channel = "fairlead_session"
	// maxPayload is below Postgres's own limit of 8000 bytes.
	maxPayload = 7900
	// maxWakes is how many wakes with names of usual length fit into one
	// notification.
	maxWakes = 128
	// everything is the payload in place of one that would be too long.
	everything = "*"

	// checkEvery is how long a quiet connection is trusted. checkFor bounds the
	// check that it lives and that its server is still the primary.
	checkEvery = 5 * time.Second
	checkFor   = 10 * time.Second
	// firstRetry and lastRetry bound the wait between attempts to connect.
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// queueNotify wakes the listeners of all replicas at the commit. It puts into b as few
// notifications as hold all wakes. An "everything" instead would make every worker and
// follower of every replica look at the database, at each commit of a busy replica.
func queueNotify(b *pgx.Batch, wakes ...store.Wake) {
	for len(wakes) > 0 {
		n := min(len(wakes), maxWakes)
		payload := encode(wakes[:n])
		for payload == everything && n > 1 {
			n /= 2
			payload = encode(wakes[:n])
		}
		b.Queue("select pg_notify($1, $2)", channel, payload)
		wakes = wakes[n:]
	}
}

// wire is an encoded wake: kind, tenant, session.
type wire [3]any

func encode(wakes []store.Wake) string {
	all := make([]wire, 0, len(wakes))
	for _, w := range wakes {
		all = append(all, wire{w.Kind, w.Tenant, w.Session})
	}
	payload, err := json.Marshal(all)
	if err != nil || len(payload) > maxPayload {
		return everything
	}
	return string(payload)
}

// decode reads a payload; an unknown one means everything.
func decode(payload string) []store.Wake {
	lost := []store.Wake{{Kind: store.WakeLost}}
	if payload == everything {
		return lost
	}
	var all [][3]json.RawMessage
	if err := json.Unmarshal([]byte(payload), &all); err != nil {
		return lost
	}
	wakes := make([]store.Wake, len(all))
	for i, w := range all {
		for j, dst := range []any{&wakes[i].Kind, &wakes[i].Tenant, &wakes[i].Session} {
			if err := json.Unmarshal(w[j], dst); err != nil {
				return lost
			}
		}
	}
	return wakes
}

// listener receives notifications on a connection of its own and passes them
// on, from the first Listen until close. When the connection breaks, it opens
// another one and says that wakes may have been lost.
type listener struct {
	config *pgx.ConnConfig
	wakes  *plan.Broadcast
	log    *slog.Logger

	mu      sync.Mutex
	started bool
	cancel  context.CancelFunc // not nil once started
	done    sync.WaitGroup
	tried   chan struct{} // closed after the first attempt to connect
}

func newListener(config *pgx.ConnConfig, wakes *plan.Broadcast, log *slog.Logger) *listener {
	return &listener{config: config.Copy(), wakes: wakes, log: log, tried: make(chan struct{})}
}

// start runs the listener. It returns when the listener has connected, or has
// failed once; in that case it says that wakes may have been lost as soon as it
// has connected.
func (l *listener) start(ctx context.Context) {
	l.mu.Lock()
	if !l.started {
		l.started = true
		run, cancel := context.WithCancel(context.WithoutCancel(ctx))
		l.cancel = cancel
		l.done.Go(func() { l.run(run) })
	}
	l.mu.Unlock()
	select {
	case <-l.tried:
	case <-ctx.Done():
	}
}

func (l *listener) close() {
	l.mu.Lock()
	if !l.started {
		l.started = true // never
		close(l.tried)
	}
	cancel := l.cancel
	l.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	l.done.Wait()
}

func (l *listener) run(ctx context.Context) {
	var once sync.Once
	tried := func() { once.Do(func() { close(l.tried) }) }
	defer tried()
	wait := firstRetry
	for failed := false; ; failed = true {
		err := l.hear(ctx, func() {
			if failed {
				l.log.InfoContext(ctx, "listening for notifications again")
				l.wakes.Send(store.Wake{Kind: store.WakeLost})
			}
			wait = firstRetry
			tried()
		})
		tried()
		if ctx.Err() != nil {
			return
		}
		l.log.WarnContext(ctx, "lost the connection that listens for notifications; will connect again", "error", err, "in", wait)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		wait = min(2*wait, lastRetry)
	}
}

// hear listens on one connection until it fails or ctx ends.
func (l *listener) hear(ctx context.Context, ready func()) error {
	conn, err := pgx.ConnectConfig(ctx, l.config.Copy())
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if err := conn.Close(closing); err != nil {
			l.log.DebugContext(ctx, "cannot close the listening connection", "error", err)
		}
	}()
	listening, cancel := context.WithTimeout(ctx, checkFor)
	defer cancel()
	if err := pg.CheckWritable(listening, conn); err != nil {
		return fmt.Errorf("check the server: %w", err)
	}
	if _, err := conn.Exec(listening, "listen "+channel); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	ready()
	for {
		if err := l.next(ctx, conn); err != nil {
			return err
		}
	}
}

// next passes the next notification on. After a long silence it checks that the
// connection still lives.
func (l *listener) next(ctx context.Context, conn *pgx.Conn) error {
	silence, cancel := context.WithTimeout(ctx, checkEvery)
	defer cancel()
	n, err := conn.WaitForNotification(silence)
	switch {
	case err == nil:
		l.wakes.Send(decode(n.Payload)...)
		return nil
	case ctx.Err() != nil || silence.Err() == nil:
		return fmt.Errorf("wait for notifications: %w", err)
	}
	check, cancel := context.WithTimeout(ctx, checkFor)
	defer cancel()
	if err := pg.CheckWritable(check, conn); err != nil { // a server that takes no writes sends no notifications
		return fmt.Errorf("check the connection: %w", err)
	}
	return nil
}
