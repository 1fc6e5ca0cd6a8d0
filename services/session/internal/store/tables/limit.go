package tables

import (
	"context"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

type limits struct{ db DB }

// LeaseTokens implements store.Store.
func (t limits) LeaseTokens(ctx context.Context, l store.TokenLease) (granted int64, err error) {
	err = t.db.Write(ctx, "lease tokens", func(tx Tx) ([]store.Wake, error) {
		now, err := tx.Now(ctx)
		if err != nil {
			return nil, err
		}
		b := l.Full(now)
		if _, err := tx.Exec(ctx, "insert into token_buckets (tenant, bucket, tokens, refill_time) values ($1, $2, $3, $4) on conflict do nothing",
			l.Tenant, l.Bucket, b.Tokens, b.Time); err != nil {
			return nil, err
		}
		if err := tx.QueryRow(ctx, "select tokens, refill_time from token_buckets where tenant = $1 and bucket = $2 for update",
			l.Tenant, l.Bucket).Scan(&b.Tokens, &b.Time); err != nil {
			return nil, err
		}
		if now, err = tx.Now(ctx); err != nil { // the lock may have taken time
			return nil, err
		}
		granted = l.Take(&b, now)
		_, err = tx.Exec(ctx, "update token_buckets set tokens = $3, refill_time = $4 where tenant = $1 and bucket = $2", l.Tenant, l.Bucket, b.Tokens, b.Time)
		return nil, err
	})
	return granted, err
}

// Things that caps count: what, and the query of their number for a tenant and a user.
const (
	countTurns = `select count(*) from turns t join sessions s on s.tenant = t.tenant and s.session = t.session
		where t.tenant = $1 and t.state in (1, 2, 3) and ($2 = '' or s.user_id = $2)` // QUEUED, RUNNING, WAITING; constants, for the index
	countSessions = "select count(*) from sessions where tenant = $1 and ($2 = '' or user_id = $2)"
)

// capped refuses one more of what a query counts, if that is above a cap. Until the end of the transaction no other
// one counts the same.
func capped(ctx context.Context, tx Tx, tenant, what, query string, caps []store.Cap) error {
	for _, c := range caps {
		if err := tx.Lock(ctx, what+" "+tenant+" "+c.User); err != nil {
			return err
		}
		var n int
		if err := tx.QueryRow(ctx, query, tenant, c.User).Scan(&n); err != nil {
			return err
		}
		if n >= c.Most {
			return &store.CapError{Cap: c, Tenant: tenant, What: what}
		}
	}
	return nil
}
