package tables

import (
	"context"

	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
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

// counted is a thing that caps count; subagents have a cap of their own. Its queries return one row for each, and stop at a limit, their last parameter.
type counted struct {
	what             string
	ofTenant, ofUser string
}

var (
	countedTurns = counted{
		what: "turns",
		ofTenant: `select 1 from turns t join sessions s on s.tenant = t.tenant and s.session = t.session
			where t.tenant = $1 and t.state in (1, 2, 3) and s.root = '' limit $2`, // QUEUED, RUNNING, WAITING; constants, for the index
		ofUser: `select 1 from turns t join sessions s on s.tenant = t.tenant and s.session = t.session
			where t.tenant = $1 and t.state in (1, 2, 3) and s.root = '' and s.user_id = $2 limit $3`,
	}
	countedSessions = counted{
		what:     "sessions",
		ofTenant: "select 1 from sessions where tenant = $1 and root = '' limit $2",
		ofUser:   "select 1 from sessions where tenant = $1 and root = '' and user_id = $2 limit $3",
	}
)

// query returns the query of how many there are, which counts no further than the cap, and its arguments.
func (k counted) query(tenant string, c store.Cap) (string, []any) {
	if c.User == "" {
		return "select count(*) from (" + k.ofTenant + ") counted", []any{tenant, c.Most}
	}
	return "select count(*) from (" + k.ofUser + ") counted", []any{tenant, c.User, c.Most}
}

// capped refuses one more of what is counted, if that is above a cap. Until the end of the transaction no other one
// counts the same.
func capped(ctx context.Context, tx Tx, tenant string, k counted, caps []store.Cap) error {
	for _, c := range caps {
		if err := tx.Lock(ctx, k.what+" "+tenant+" "+c.User); err != nil {
			return err
		}
		query, args := k.query(tenant, c)
		n, err := sqldb.Value[int](tx.QueryRow(ctx, query, args...))
		if err != nil {
			return err
		}
		if n >= c.Most {
			return &store.CapError{Cap: c, Tenant: tenant, What: k.what}
		}
	}
	return nil
}
