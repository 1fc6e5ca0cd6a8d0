package postgres

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/backend"
)

// remember stores value as the answer to a request, for as long as the session
// called owner unless the request says how long. If the request already has an
// answer, it returns that one, replayed. Of two transactions with the same
// request, the second waits here until the first has ended.
func remember(ctx context.Context, tx pgx.Tx, tenant, owner string, r store.Request, value string) (store.Answer, error) {
	fresh := store.Answer{Value: value}
	if r.ID == "" {
		return fresh, nil
	}
	var until *time.Time
	if !r.KeepUntil.IsZero() {
		until = &r.KeepUntil
	}
	var digest []byte
	var old string
	b := &pgx.Batch{}
	kept := int64(0)
	b.Queue(`
		insert into request_ids as old (tenant, method, parent, request_id, digest, answer, session, keep_until)
		values ($1, $2, $3, $4, $5, $6, $7, $8)
		on conflict (tenant, method, parent, request_id) do update
			set digest = excluded.digest, answer = excluded.answer, session = excluded.session, keep_until = excluded.keep_until
			where old.keep_until <= clock_timestamp()`,
		tenant, r.Method, r.Parent, r.ID, r.Digest, value, owner, until).Exec(func(tag pgconn.CommandTag) error {
		kept = tag.RowsAffected()
		return nil
	})
	b.Queue("select digest, answer from request_ids where tenant = $1 and method = $2 and parent = $3 and request_id = $4",
		tenant, r.Method, r.Parent, r.ID).QueryRow(func(row pgx.Row) error { return row.Scan(&digest, &old) })
	b.Queue(`
		delete from request_ids where ctid in
			(select ctid from request_ids where keep_until <= clock_timestamp() limit $1 for update skip locked)`, backend.ForgetBatch)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return store.Answer{}, err
	}
	switch {
	case kept > 0:
		return fresh, nil
	case !bytes.Equal(digest, r.Digest):
		return store.Answer{}, store.ErrRequestIDReused
	}
	return store.Answer{Value: old, Replayed: true}, nil
}

// recall reads the earlier answer to a request with this id; nil if there is
// none.
func recall(ctx context.Context, tx pgx.Tx, tenant string, r store.Request) (*store.Answer, error) {
	if r.ID == "" {
		return nil, nil
	}
	var digest []byte
	a := &store.Answer{Replayed: true}
	err := tx.QueryRow(ctx, `
		select digest, answer from request_ids
		where tenant = $1 and method = $2 and parent = $3 and request_id = $4 and (keep_until is null or keep_until > clock_timestamp())`,
		tenant, r.Method, r.Parent, r.ID).Scan(&digest, &a.Value)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	case !bytes.Equal(digest, r.Digest):
		return nil, store.ErrRequestIDReused
	}
	return a, nil
}
