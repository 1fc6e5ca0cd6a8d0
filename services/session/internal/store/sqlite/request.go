package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/backend"
)

// recall reads the earlier answer to a request with this id; nil if there is
// none.
func recall(ctx context.Context, tx *sql.Tx, tenant string, r store.Request, now time.Time) (*string, error) {
	if r.ID == "" {
		return nil, nil
	}
	var digest []byte
	var value string
	err := tx.QueryRowContext(ctx, `
		select digest, answer from request_ids
		where tenant = ? and method = ? and parent = ? and request_id = ? and (keep_until is null or keep_until > ?)`,
		tenant, r.Method, r.Parent, r.ID, micros(now)).Scan(&digest, &value)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	case !bytes.Equal(digest, r.Digest):
		return nil, store.ErrRequestIDReused
	}
	return &value, nil
}

// replay turns the result of recall into an answer.
func replay(a *store.Answer, old *string, err error) error {
	if err == nil {
		*a = store.Answer{Value: *old, Replayed: true}
	}
	return err
}

// remember stores the answer to a request, for as long as the session called
// owner unless the request says how long, and removes some expired ones.
func remember(ctx context.Context, tx *sql.Tx, tenant, owner string, r store.Request, value string, now time.Time) error {
	if r.ID == "" {
		return nil
	}
	var until *int64
	if !r.KeepUntil.IsZero() {
		us := micros(r.KeepUntil)
		until = &us
	}
	_, err := tx.ExecContext(ctx, `
		insert or replace into request_ids (tenant, method, parent, request_id, digest, answer, session, keep_until)
		values (?, ?, ?, ?, ?, ?, ?, ?)`,
		tenant, r.Method, r.Parent, r.ID, r.Digest, value, owner, until)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `
		delete from request_ids where (tenant, method, parent, request_id) in
			(select tenant, method, parent, request_id from request_ids where keep_until <= ? limit ?)`,
		micros(now), backend.ForgetBatch)
	return err
}
