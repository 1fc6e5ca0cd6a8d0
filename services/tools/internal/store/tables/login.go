package tables

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/tools/internal/store"
)

type logins struct{ db DB }

// PutLogin implements store.Logins.
func (t logins) PutLogin(ctx context.Context, digest, sealed []byte, until time.Time) error {
	return Failed(t.db, t.db.Write(ctx, func(tx sqldb.Tx) error {
		_, err := tx.Send(ctx,
			sqldb.S("delete from mcp_logins where until <= clock_timestamp()"),
			sqldb.S("insert into mcp_logins (digest, sealed, until) values ($1, $2, $3)", digest, sealed, until))
		return err
	}), "store a login")
}

// TakeLogin implements store.Logins.
func (t logins) TakeLogin(ctx context.Context, digest []byte) (sealed []byte, _ error) {
	err := t.db.Write(ctx, func(tx sqldb.Tx) error {
		err := tx.QueryRow(ctx, "delete from mcp_logins where digest = $1 and until > clock_timestamp() returning sealed", digest).Scan(&sealed)
		if errors.Is(err, sql.ErrNoRows) {
			err = store.ErrNoLogin
		}
		return err
	})
	return sealed, Failed(t.db, err, "take a login")
}

// PutToken implements store.Logins.
func (t logins) PutToken(ctx context.Context, k store.TokenKey, sealed, old []byte) error {
	return Failed(t.db, t.db.Write(ctx, func(tx sqldb.Tx) error {
		if old != nil {
			return changed(tx.Exec(ctx, "update mcp_tokens set sealed = $4, update_time = clock_timestamp() where tenant = $1 and user_id = $2 and resource = $3 and sealed = $5",
				k.Tenant, store.Text(k.User), resource(k), sealed, old))
		}
		_, err := tx.Exec(ctx, `insert into mcp_tokens (tenant, user_id, resource, sealed, update_time) values ($1, $2, $3, $4, clock_timestamp())
			on conflict (tenant, user_id, resource) do update set sealed = excluded.sealed, update_time = excluded.update_time`,
			k.Tenant, store.Text(k.User), resource(k), sealed)
		return err
	}), "store a token")
}

// Token implements store.Logins.
func (t logins) Token(ctx context.Context, k store.TokenKey) (sealed []byte, _ error) {
	err := t.db.Reader().QueryRow(ctx, "select sealed from mcp_tokens where tenant = $1 and user_id = $2 and resource = $3",
		k.Tenant, store.Text(k.User), resource(k)).Scan(&sealed)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, store.ErrNoLogin
	}
	return sealed, Failed(t.db, err, "read a token")
}

// DeleteToken implements store.Logins.
func (t logins) DeleteToken(ctx context.Context, k store.TokenKey, old []byte) error {
	return Failed(t.db, t.db.Write(ctx, func(tx sqldb.Tx) error {
		where, args := "delete from mcp_tokens where tenant = $1 and user_id = $2 and resource = $3", []any{k.Tenant, store.Text(k.User), resource(k)}
		if old != nil {
			where, args = where+" and sealed = $4", append(args, old)
		}
		_, err := tx.Exec(ctx, where, args...)
		return err
	}), "delete a token")
}

// resource is a digest, because an address can be longer than a key may be.
func resource(k store.TokenKey) string {
	sum := sha256.Sum256([]byte(k.Resource))
	return hex.EncodeToString(sum[:])
}
