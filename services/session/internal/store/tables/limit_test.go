package tables_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/postgres"
	"github.com/fairlead/fairlead/services/session/internal/store/tables"
)

// node is a node of a plan that Postgres has run.
type node struct {
	Rows  float64 `json:"Actual Rows"`
	Loops float64 `json:"Actual Loops"`
	Plans []node
}

// read returns the rows that a plan's largest node gave.
func (n node) read() float64 {
	most := n.Rows * n.Loops
	for _, p := range n.Plans {
		most = max(most, p.read())
	}
	return most
}

// A tenant that has thousands of sessions pays no more for a cap than one that has a few.
func TestCountsStopAtACap(t *testing.T) {
	const most = 5
	conn := crowded(t)
	for what, query := range map[string]func(string, store.Cap) (string, []any){"turns": tables.CountTurns, "sessions": tables.CountSessions} {
		for _, user := range []string{"", "ann"} {
			t.Run(fmt.Sprintf("%s of %q", what, user), func(t *testing.T) {
				sql, args := query("acme", store.Cap{User: user, Most: most})
				var n int
				if err := conn.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil || n != most {
					t.Errorf("counted %d, %v", n, err)
				}
				var plans []struct{ Plan node }
				var text []byte
				if err := conn.QueryRow(t.Context(), "explain (analyze, format json) "+sql, args...).Scan(&text); err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal(text, &plans); err != nil || len(plans) != 1 {
					t.Fatalf("%v: %s", err, text)
				}
				if got := plans[0].Plan.read(); got < most || got > 2*most {
					t.Errorf("read %v rows for a cap of %d:\n%s", got, most, text)
				}
			})
		}
	}
}

// crowded connects to a database in which the user ann has many sessions, with an unfinished turn each.
func crowded(t *testing.T) *pgx.Conn {
	t.Helper()
	url := pgtest.New(t)
	s, err := postgres.Open(t.Context(), url, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	for _, sql := range []string{
		"set search_path to session",
		`insert into sessions (tenant, session, agent, agent_revision, body, create_time, update_time, last_seq, head, ready_time, epoch, user_id, session_key)
			select 'acme', 's' || i, 'agents/a', 'r', '', now(), now(), 1, '', now(), 0, 'ann', '' from generate_series(1, 3000) i`,
		"insert into turns (tenant, session, turn, number, state, body, run) select 'acme', 's' || i, 't', 1, 1, '', '' from generate_series(1, 3000) i",
		"analyze sessions, turns",
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	return conn
}
