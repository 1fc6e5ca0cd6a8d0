package tables

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
)

// UpdateSession implements store.SessionChanges.
func (t sessions) UpdateSession(ctx context.Context, u store.UpdateSession) (store.Answer, error) {
	return t.change(ctx, "update session", u.Key, u.Request, func(tx Tx, row *plan.Session) ([]store.Wake, error) {
		body := &sessionv1.Session{}
		if err := proto.Unmarshal(row.Body, body); err != nil {
			return nil, fmt.Errorf("read session %s: %w", row.Session, err)
		}
		if err := u.Change(body); err != nil {
			return nil, err
		}
		changed, err := proto.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("marshal session %s: %w", row.Session, err)
		}
		_, err = tx.Send(ctx,
			sqldb.S("update sessions set body = $3, update_time = clock_timestamp() where tenant = $1 and session = $2", u.Tenant, u.Session, changed),
			sqldb.S("delete from session_labels where tenant = $1 and session = $2", u.Tenant, u.Session))
		if err != nil {
			return nil, err
		}
		return wokenFor(u.Key), putLabels(ctx, tx, u.Key, body.Labels)
	})
}

// change runs f under the session's lock, unless the request was answered before.
func (t sessions) change(ctx context.Context, what string, k store.Key, r store.Request, f func(tx Tx, row *plan.Session) ([]store.Wake, error)) (store.Answer, error) {
	var row *plan.Session
	return once(ctx, t.db, what, request{r, k.Tenant, k.Session, k.Session}, func(tx Tx) (err error) {
		row, err = sessionRow(ctx, tx, k, forChange)
		return err
	}, func(tx Tx) ([]store.Wake, error) { return f(tx, row) })
}

// putLabels inserts a session's labels, by which it is found.
func putLabels(ctx context.Context, tx Tx, k store.Key, labels map[string]string) error {
	var all []sqldb.Statement
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		all = append(all, sqldb.S("insert into session_labels (tenant, session, name, value) values ($1, $2, $3, $4)", k.Tenant, k.Session, name, labels[name]))
	}
	if len(all) == 0 {
		return nil
	}
	_, err := tx.Send(ctx, all...)
	return err
}

// ArchiveSession implements store.SessionChanges.
func (t sessions) ArchiveSession(ctx context.Context, a store.ArchiveSession) (store.Answer, error) {
	return t.change(ctx, "archive session", a.Key, a.Request, func(tx Tx, row *plan.Session) ([]store.Wake, error) {
		if a.Undo {
			return wokenFor(a.Key), unarchive(ctx, tx, row)
		}
		queued, _, err := queuedTurns(ctx, tx, a.Key)
		if err != nil {
			return nil, err
		}
		if row.ActiveTurn != "" || queued > 0 {
			return nil, store.ErrTurnActive
		}
		return wokenFor(a.Key), archive(ctx, tx, a.Key)
	})
}

// wokenFor wakes the followers of a session whose log says nothing of a change.
func wokenFor(k store.Key) []store.Wake { return []store.Wake{{Key: k, Kind: store.WakeSession}} }

func archive(ctx context.Context, tx Tx, k store.Key) error {
	_, err := tx.Exec(ctx, "update sessions set archive_time = coalesce(archive_time, clock_timestamp()) where tenant = $1 and session = $2", k.Tenant, k.Session)
	return err
}

func unarchive(ctx context.Context, tx Tx, row *plan.Session) error {
	if row.ArchiveTime == nil {
		return nil
	}
	holder, err := keyHolder(ctx, tx, row.Key, row.User, row.CallerKey)
	if err != nil {
		return err
	}
	if holder != "" {
		return &store.KeyTakenError{Session: holder}
	}
	_, err = tx.Exec(ctx, "update sessions set archive_time = null where tenant = $1 and session = $2", row.Tenant, row.Session)
	return err
}

// takeKey makes the caller's key of a new session free: it stops and archives the session that has it, if the
// new one is to replace it.
func takeKey(ctx context.Context, tx Tx, n store.NewSession) ([]store.Wake, error) {
	holder, err := keyHolder(ctx, tx, n.Key, n.User, n.CallerKey)
	if err != nil || holder == "" {
		return nil, err
	}
	if !n.Replace {
		return nil, &store.KeyTakenError{Session: holder}
	}
	old := store.Key{Tenant: n.Tenant, Session: holder}
	stop, err := proto.Marshal(&sessionv1.InterruptSessionRequest{Name: plan.SessionName(holder), CancelQueued: true})
	if err != nil {
		return nil, fmt.Errorf("marshal the interrupt of session %s: %w", holder, err)
	}
	_, wakes, err := submit(ctx, tx, store.Submit{
		Key: old, Command: store.Command{Kind: store.CommandInterrupt, User: n.User, Body: stop}, CancelQueued: true,
	})
	if err != nil {
		return nil, err
	}
	return wakes, archive(ctx, tx, old)
}

// keyHolder returns the session of the user that has a caller's key, and keeps other transactions from giving the key to
// another one.
func keyHolder(ctx context.Context, tx Tx, k store.Key, user, callerKey string) (string, error) {
	if callerKey == "" {
		return "", nil
	}
	if err := tx.Lock(ctx, "session key\x01"+k.Tenant+"\x01"+user+"\x01"+callerKey); err != nil {
		return "", err
	}
	holder, err := sqldb.Value[string](tx.QueryRow(ctx,
		"select session from sessions where tenant = $1 and user_id = $2 and session_key = $3 and archive_time is null and session <> $4",
		k.Tenant, user, callerKey, k.Session))
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return holder, err
}
