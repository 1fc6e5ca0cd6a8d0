package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/postgres"
)

// perWrite is the number of messages in one write.
const perWrite = 500

// Filled is the number of added rows.
type Filled struct{ Added int }

// addMessages extends a session's conversation: a user's and an assistant's
// message in turn, of ten words each. The session must not be held.
func addMessages(ctx context.Context, s store.Store, o options) (any, error) {
	k := store.Key{Tenant: tenant, Session: o.session}
	if err := submitTurn(ctx, s, k); err != nil {
		return nil, err
	}
	leases, err := s.Claim(ctx, store.Claim{Replica: "bench", TTL: 1 << 40, Only: []store.Key{k}})
	if err != nil || len(leases) != 1 {
		return nil, fmt.Errorf("claimed %d sessions: %w", len(leases), err)
	}
	snapshot, err := s.Load(ctx, leases[0])
	if err != nil {
		return nil, err
	}
	parent := snapshot.Session.Head
	for added := 0; added < o.count; added += perWrite {
		w := store.Write{Lease: leases[0], LastSeq: snapshot.Session.LastSeq}
		for i := range min(perWrite, o.count-added) {
			m := message(k, parent, i)
			w.Messages, parent = append(w.Messages, m), m.Name
		}
		head := parent[strings.LastIndexByte(parent, '/')+1:]
		w.Head = &head
		if err := commit(ctx, s, w); err != nil {
			return nil, err
		}
	}
	return Filled{o.count}, endTurn(ctx, s, leases[0], snapshot)
}

// endTurn consumes the turn that made the session claimable, and releases the
// session.
func endTurn(ctx context.Context, s store.Store, l store.Lease, snapshot *store.Snapshot) error {
	w := store.Write{Lease: l, LastSeq: snapshot.Session.LastSeq}
	for _, c := range snapshot.Commands {
		w.Consume = append(w.Consume, c.ID)
		row, err := s.LoadTurn(ctx, l, c.TurnID)
		if err != nil {
			return err
		}
		row.Turn.State = sessionv1.TurnState_TURN_STATE_INTERRUPTED
		w.Turns = append(w.Turns, row)
	}
	if err := commit(ctx, s, w); err != nil {
		return err
	}
	return s.Release(ctx, l)
}

func commit(ctx context.Context, s store.Store, w store.Write) error {
	errs, err := s.Commit(ctx, []store.Write{w})
	return errors.Join(append(errs, err)...)
}

func message(k store.Key, parent string, i int) *sessionv1.Message {
	role := sessionv1.Role_ROLE_USER
	if i%2 == 1 {
		role = sessionv1.Role_ROLE_ASSISTANT
	}
	text := &commonv1.Content{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: "ten short words that stand for the text of messages"}}}
	return &sessionv1.Message{
		Name: "sessions/" + k.Session + "/messages/" + id.New(), Parent: parent, Role: role,
		Blocks: []*sessionv1.Block{{Kind: &sessionv1.Block_Content{Content: text}}},
	}
}

// addSessions copies a session's row many times, each a millisecond older than
// the one before. It bypasses the store: creating a million sessions with it
// takes long and measures something else.
func addSessions(ctx context.Context, _ store.Store, o options) (any, error) {
	if o.database != "" {
		return Filled{o.count}, addSessionsPostgres(ctx, o)
	}
	return Filled{o.count}, addSessionsSQLite(ctx, o)
}

func addSessionsPostgres(ctx context.Context, o options) (err error) {
	conn, err := pgx.Connect(ctx, o.database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	if _, err := conn.Exec(ctx, "set search_path = "+postgres.Schema); err != nil {
		return err
	}
	rows, err := conn.Query(ctx, `select column_name::text from information_schema.columns
		where table_schema = $1 and table_name = 'sessions' and is_generated = 'NEVER' order by ordinal_position`, postgres.Schema)
	if err != nil {
		return err
	}
	columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	values := valuesOf(columns, map[string]string{
		"session": "'bench-' || n", "create_time": "create_time - n * interval '1 millisecond'",
	})
	_, err = conn.Exec(ctx, "insert into sessions ("+strings.Join(columns, ", ")+") select "+values+
		" from sessions, generate_series(1, "+strconv.Itoa(o.count)+") as n where tenant = '"+tenant+"' and session = $1", o.session)
	if err == nil {
		_, err = conn.Exec(ctx, "vacuum analyze sessions") // as autovacuum does some minutes later
	}
	return err
}

func addSessionsSQLite(ctx context.Context, o options) (err error) {
	db, err := sql.Open("sqlite", "file:"+o.data+"/session.db?_pragma=busy_timeout(10000)")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	columns, err := columnsSQLite(ctx, db)
	if err != nil {
		return err
	}
	values := valuesOf(columns, map[string]string{"session": "'bench-' || n", "create_time": "create_time - n * 1000"})
	_, err = db.ExecContext(ctx, "with recursive counted (n) as (select 1 union all select n + 1 from counted where n < ?) insert into sessions ("+ //nolint:gosec // the columns are the schema's own
		strings.Join(columns, ", ")+") select "+values+" from sessions, counted where tenant = '"+tenant+"' and session = ?", o.count, o.session)
	return err
}

// columnsSQLite returns the columns of the table of sessions.
func columnsSQLite(ctx context.Context, db *sql.DB) ([]string, error) {
	rows, err := db.QueryContext(ctx, "select name from pragma_table_info('sessions')")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var columns []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		columns = append(columns, name)
	}
	return columns, rows.Err()
}

// valuesOf lists the columns, some of them replaced.
func valuesOf(columns []string, replaced map[string]string) string {
	values := make([]string, len(columns))
	for i, c := range columns {
		values[i] = c
		if v, ok := replaced[c]; ok {
			values[i] = v
		}
	}
	return strings.Join(values, ", ")
}
