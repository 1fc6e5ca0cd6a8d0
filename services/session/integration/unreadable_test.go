package integration

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/budget"
)

// plant writes into the database behind the service's back.
func (f *fixture) plant(t *testing.T, statement string) {
	t.Helper()
	if url := string(f.config.DatabaseURL); url != "" {
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(t.Context()) }()
		if tag, err := conn.Exec(t.Context(), strings.NewReplacer("update ", "update session.", "x'", `'\x`).Replace(statement)); err != nil || tag.RowsAffected() == 0 {
			t.Fatal(tag, err)
		}
		return
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(f.config.Data, "session.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	done, err := db.ExecContext(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		t.Fatal(n, err)
	}
}

// TestATurnOfASessionThatCannotBeReadEnds plants garbage in what is stored of a session
// with a turn that waits, one that is queued, and an answer that makes it go on.
func TestATurnOfASessionThatCannotBeReadEnds(t *testing.T) {
	t.Parallel()
	failed, complete := sessionv1.TurnState_TURN_STATE_FAILED, sessionv1.TurnState_TURN_STATE_COMPLETE
	const refused = sessionv1.TurnState_TURN_STATE_UNSPECIFIED
	for _, c := range []struct {
		name, statement string
		next            sessionv1.TurnState // of the next turn
	}{
		{"the state of the turn is garbage", "update turns set run = x'ff00ff'", complete},
		{"the turn is garbage", "update turns set body = x'ff00ff'", complete},
		{"turn and state are garbage", "update turns set body = x'ff00ff', run = x'7b'", complete},
		{"the messages are garbage", "update messages set body = x'ff00ff'", failed},
		{"the session is garbage", "update sessions set body = x'ff00ff'", refused},
		{"the agent is garbage", "update agent_revisions set spec = x'ff00ff'", failed},
	} {
		for _, postgres := range []bool{false, true} {
			name := c.name + map[bool]string{false: " on SQLite", true: " on Postgres"}[postgres]
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f := start(t, asking, func(conf *session.Config) {
					conf.LeaseTTL, conf.MaxClaims = time.Second, 2
					if postgres {
						conf.DatabaseURL = config.Secret(pgtest.New(t))
					}
				})
				ctx := t.Context()
				s := f.session(ctx, t)
				turns := []*sessionv1.Turn{f.create(ctx, t, s, "write")}
				ask := f.waitForAsk(ctx, t, s)
				turns = append(turns, f.create(ctx, t, s, "hello"))
				f.stop()
				f.plant(t, c.statement)
				f.run(t)
				if _, err := f.ResolveApproval(ctx, &sessionv1.ResolveApprovalRequest{Parent: s, CallId: ask.CallId, Digest: ask.Digest, Approved: true}); err != nil {
					t.Fatal(err)
				}
				for _, turn := range turns {
					f.endsStuck(t, turn.Name)
				}
				if c.next == refused {
					if _, err := f.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: s, Text: "again"}); err == nil {
						t.Error("a session that cannot be read took another turn")
					}
					return
				}
				next := f.create(ctx, t, s, "again")
				if c.next == failed {
					f.endsStuck(t, next.Name)
				} else if end := f.waitForEnd(ctx, t, next.Name); end.State != complete {
					t.Errorf("the next turn ended %v", end)
				}
			})
		}
	}
}

// endsStuck waits until a turn has ended as one that could not be worked on.
func (f *fixture) endsStuck(t *testing.T, name string) {
	t.Helper()
	var turn *sessionv1.Turn
	eventually(t, "the end of "+name, func() bool {
		got, err := f.GetTurn(t.Context(), &sessionv1.GetTurnRequest{Name: name})
		turn = got.GetTurn()
		return err == nil && turn.State == sessionv1.TurnState_TURN_STATE_FAILED
	})
	if turn.GetError().GetReason() != "CRASH_LOOP" || !strings.Contains(turn.GetError().GetMessage(), "may be damaged") || turn.EndTime == nil {
		t.Errorf("%s ended with %v", name, turn)
	}
}

// TestASessionThatCannotBeReadLeavesNothingReserved: its turn had reserved time and
// tokens when its replica broke off, under ids that the next turn uses again.
func TestASessionThatCannotBeReadLeavesNothingReserved(t *testing.T) {
	t.Parallel()
	f := start(t, slow, withPrices(func(b *budget.Config) {
		b.Tenant.MaxWallTime, b.Tenant.MaxCostUSD = time.Hour, 100
	}), func(c *session.Config) { c.LeaseTTL, c.MaxClaims, c.StopGrace = time.Second, 2, time.Millisecond })
	ctx := t.Context()
	s := f.session(ctx, t)
	turn := f.create(ctx, t, s, "block")
	<-f.peers.blocked
	f.stop()
	f.plant(t, "update turns set run = x'ff00ff'")
	f.run(t)
	f.endsStuck(t, turn.Name)
	if end := f.waitForEnd(ctx, t, f.create(ctx, t, s, "again").Name); end.State != sessionv1.TurnState_TURN_STATE_COMPLETE {
		t.Errorf("the next turn ended %v", end)
	}
	for _, b := range f.budgets(ctx, t, s) {
		if b.ReservedTokens != 0 || b.ReservedCostNanoUsd != 0 || b.ReservedWallTime.AsDuration() != 0 {
			t.Errorf("the %s's budget has something reserved: %v", b.Scope, b)
		}
	}
}
