package tables

import (
	"bytes"
	"context"
	"database/sql"
	"errors"

	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
)

// request is a request with its answer. The answer is kept as long as the session called owner, unless the
// request says how long.
type request struct {
	store.Request
	tenant, owner, value string
}

// once runs f in a transaction, unless the request has an answer. first, if not nil, runs in any case.
func once(ctx context.Context, db DB, what string, r request, first func(Tx) error, f func(Tx) ([]store.Wake, error)) (store.Answer, error) {
	var answer store.Answer
	err := db.Write(ctx, what, func(tx Tx) (_ []store.Wake, err error) {
		if first != nil {
			if err := first(tx); err != nil {
				return nil, err
			}
		}
		if answer, err = remember(ctx, tx, r); err != nil || answer.Replayed {
			return nil, err
		}
		return f(tx)
	})
	return plan.Answered(answer, err)
}

// remember stores the answer to a request. If the request already has an answer, it returns that one, replayed.
// Of two transactions with the same request, the second waits here until the first has ended.
func remember(ctx context.Context, tx Tx, r request) (store.Answer, error) {
	fresh := store.Answer{Value: r.value}
	if r.ID == "" {
		return fresh, nil
	}
	kept, err := tx.Send(ctx, sqldb.S(`
		insert into request_ids as old (tenant, method, parent, request_id, digest, answer, session, keep_until)
		values ($1, $2, $3, $4, $5, $6, $7, $8)
		on conflict (tenant, method, parent, request_id) do update
			set digest = excluded.digest, answer = excluded.answer, session = excluded.session, keep_until = excluded.keep_until
			where old.keep_until <= clock_timestamp()`,
		r.tenant, r.Method, r.Parent, r.ID, r.Digest, r.value, r.owner, sqldb.Null(r.KeepUntil)),
		sqldb.S(`
		delete from request_ids where (tenant, method, parent, request_id) in
			(select tenant, method, parent, request_id from request_ids where keep_until <= clock_timestamp()
				and (tenant, method, parent, request_id) <> ($1, $2, $3, $4) limit $5::bigint + 0 for update skip locked)`, // its own row is read below
			r.tenant, r.Method, r.Parent, r.ID, plan.ForgetBatch))
	if err != nil || kept[0] > 0 {
		return fresh, err
	}
	var digest []byte
	var old string
	if err := tx.QueryRow(ctx, "select digest, answer from request_ids where tenant = $1 and method = $2 and parent = $3 and request_id = $4",
		r.tenant, r.Method, r.Parent, r.ID).Scan(&digest, &old); err != nil {
		return store.Answer{}, err
	}
	if !bytes.Equal(digest, r.Digest) {
		return store.Answer{}, store.ErrRequestIDReused
	}
	return store.Answer{Value: old, Replayed: true}, nil
}

// recall reads the earlier answer to a request; nil if there is none.
func recall(ctx context.Context, q sqldb.Queryer, tenant string, r store.Request) (*store.Answer, error) {
	if r.ID == "" {
		return nil, nil
	}
	var digest []byte
	a := &store.Answer{Replayed: true}
	err := q.QueryRow(ctx, `
		select digest, answer from request_ids
		where tenant = $1 and method = $2 and parent = $3 and request_id = $4 and (keep_until is null or keep_until > clock_timestamp())`,
		tenant, r.Method, r.Parent, r.ID).Scan(&digest, &a.Value)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	case !bytes.Equal(digest, r.Digest):
		return nil, store.ErrRequestIDReused
	}
	return a, nil
}
