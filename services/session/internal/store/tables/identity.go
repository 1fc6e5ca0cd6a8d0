package tables

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
)

type identities struct{ db DB }

func scanTenant(r sqldb.Row) (*sessionv1.Tenant, error) {
	t := &plan.Tenant{}
	err := r.Scan(&t.ID, &t.Title, &t.CreateTime)
	return t.Proto(), err
}

// CreateTenant implements store.Identities.
func (t identities) CreateTenant(ctx context.Context, n store.NewTenant) (store.Answer, error) {
	return t.change(ctx, "create tenant", n.By, n.Request, n.Key.ID, func(tx Tx, now time.Time) error {
		made, err := tx.Exec(ctx, "insert into tenants (tenant, title, create_time) values ($1, $2, $3) on conflict do nothing", n.ID, n.Title, now)
		if err != nil {
			return err
		}
		if made == 0 {
			return store.ErrExists
		}
		admin := store.Owner{Tenant: n.ID, User: n.Admin}
		if err := putUser(ctx, tx, store.NewUser{Owner: admin, Role: n.Key.Role}, now); err != nil {
			return err
		}
		n.Key.Owner = admin
		return insertKey(ctx, tx, n.Key, now)
	})
}

// change runs f in a transaction, unless the request was answered before.
func (t identities) change(ctx context.Context, what, tenant string, r store.Request, value string, f func(tx Tx, now time.Time) error) (store.Answer, error) {
	return once(ctx, t.db, what, request{r, tenant, "", value}, nil, func(tx Tx) ([]store.Wake, error) {
		now, err := tx.Now(ctx)
		if err != nil {
			return nil, err
		}
		return nil, f(tx, now)
	})
}

// GetTenant implements store.Identities.
func (t identities) GetTenant(ctx context.Context, tenant string) (*sessionv1.Tenant, error) {
	out, err := scanTenant(t.db.Reader().QueryRow(ctx, "select tenant, title, create_time from tenants where tenant = $1", tenant))
	return out, t.db.Fail("get tenant", err)
}

// ListTenants implements store.Identities.
func (t identities) ListTenants(ctx context.Context, after string, n int) ([]*sessionv1.Tenant, error) {
	out, err := sqldb.Collect(ctx, t.db.Reader(), scanTenant,
		"select tenant, title, create_time from tenants where tenant > $1 order by tenant limit $2", after, sqldb.Limit(n))
	return out, t.db.Fail("list tenants", err)
}

const userColumns = "tenant, user_id, title, role, disabled, create_time, update_time"

func scanUser(r sqldb.Row) (*plan.User, error) {
	u := &plan.User{}
	return u, r.Scan(&u.Tenant, &u.User, &u.Title, &u.Role, &u.Disabled, &u.CreateTime, &u.UpdateTime)
}

func showUser(r sqldb.Row) (*sessionv1.User, error) {
	u, err := scanUser(r)
	return u.Proto(), err
}

// lockedUser reads an enabled user and locks the row, so that the user's keys change in one order.
func lockedUser(ctx context.Context, tx Tx, o store.Owner) (*plan.User, error) {
	u, err := scanUser(tx.QueryRow(ctx, "select "+userColumns+" from users where tenant = $1 and user_id = $2"+forChange, o.Tenant, o.User))
	if err == nil && u.Disabled {
		err = sql.ErrNoRows
	}
	return u, err
}

// putUser inserts a user or enables a disabled one.
func putUser(ctx context.Context, tx Tx, n store.NewUser, now time.Time) error {
	made, err := tx.Exec(ctx, `
		insert into users as old (tenant, user_id, title, role, create_time, update_time) values ($1, $2, $3, $4, $5, $5)
		on conflict (tenant, user_id) do update set title = excluded.title, role = excluded.role, disabled = $6, update_time = excluded.update_time
			where old.disabled`,
		n.Tenant, n.User, n.Title, int32(n.Role), now, false)
	if err == nil && made == 0 {
		err = store.ErrExists
	}
	return err
}

// CreateUser implements store.Identities.
func (t identities) CreateUser(ctx context.Context, n store.NewUser) (store.Answer, error) {
	return t.change(ctx, "create user", n.Tenant, n.Request, n.User, func(tx Tx, now time.Time) error {
		var one int
		if err := tx.QueryRow(ctx, "select 1 from tenants where tenant = $1"+forKeyShare, n.Tenant).Scan(&one); err != nil {
			return err
		}
		return putUser(ctx, tx, n, now)
	})
}

// GetUser implements store.Identities.
func (t identities) GetUser(ctx context.Context, o store.Owner) (*sessionv1.User, error) {
	out, err := showUser(t.db.Reader().QueryRow(ctx, "select "+userColumns+" from users where tenant = $1 and user_id = $2", o.Tenant, o.User))
	return out, t.db.Fail("get user", err)
}

// ListUsers implements store.Identities.
func (t identities) ListUsers(ctx context.Context, tenant, after string, n int) ([]*sessionv1.User, error) {
	out, err := sqldb.Collect(ctx, t.db.Reader(), showUser,
		"select "+userColumns+" from users where tenant = $1 and user_id > $2 order by user_id limit $3", tenant, after, sqldb.Limit(n))
	return out, t.db.Fail("list users", err)
}

// UpdateUser implements store.Identities.
func (t identities) UpdateUser(ctx context.Context, u store.UserUpdate) (store.Answer, error) {
	return t.change(ctx, "update user", u.Tenant, u.Request, u.User, func(tx Tx, now time.Time) error {
		old, err := lockedUser(ctx, tx, u.Owner)
		if err != nil {
			return err
		}
		if u.Title != nil {
			old.Title = *u.Title
		}
		if u.Role != nil {
			old.Role = *u.Role
		}
		_, err = tx.Exec(ctx, "update users set title = $3, role = $4, update_time = $5 where tenant = $1 and user_id = $2",
			u.Tenant, u.User, old.Title, int32(old.Role), now)
		return err
	})
}

// keysOfUser selects the keys of a user, and those that the user has made with a token.
const keysOfUser = "(user_id = $2 or creator = $2 and parent = '')"

// DisableUser implements store.Identities.
func (t identities) DisableUser(ctx context.Context, o store.Owner, r store.Request) (store.Answer, error) {
	return t.change(ctx, "disable user", o.Tenant, r, o.User, func(tx Tx, now time.Time) error {
		if err := lockKeys(ctx, tx, o.Tenant); err != nil {
			return err
		}
		if _, err := lockedUser(ctx, tx, o); err != nil {
			return err
		}
		_, err := tx.Send(ctx,
			sqldb.S("update users set disabled = $3, update_time = $4 where tenant = $1 and user_id = $2", o.Tenant, o.User, true, now),
			sqldb.S(revokeKeys(keysOfUser), o.Tenant, o.User, now),
			sqldb.S("update triggers set paused = $3 where tenant = $1 and user_id = $2", o.Tenant, o.User, true))
		return err
	})
}

const apiKeyColumns = "tenant, user_id, key_id, title, role, scopes, creator, parent, create_time, expire_time, revoke_time, last_use_time" //nolint:gosec // names of columns, no secret

func scanAPIKey(r sqldb.Row) (*sessionv1.Key, error) {
	k := &plan.Key{}
	err := r.Scan(&k.Tenant, &k.User, &k.ID, &k.Title, &k.Role, &k.Scopes, &k.Creator, &k.Parent, &k.CreateTime, &k.Expire, &k.Revoke, &k.LastUse)
	return k.Proto(), err
}

// CreateKey implements store.Identities.
func (t identities) CreateKey(ctx context.Context, n store.NewKey) (store.Answer, error) {
	return t.change(ctx, "create key", n.Tenant, n.Request, n.ID, func(tx Tx, now time.Time) error {
		return insertKey(ctx, tx, n, now)
	})
}

func insertKey(ctx context.Context, tx Tx, n store.NewKey, now time.Time) error {
	if n.Parent != "" {
		if err := checkParent(ctx, tx, n); err != nil {
			return err
		}
	}
	u, err := lockedUser(ctx, tx, n.Owner)
	if err != nil {
		return err
	}
	role, err := plan.KeyRole(n, u.Role)
	if err != nil {
		return err
	}
	var usable int
	err = tx.QueryRow(ctx, `
		select count(*) from api_keys where tenant = $1 and user_id = $2 and revoke_time is null and (expire_time is null or expire_time > $3)`,
		n.Tenant, n.User, now).Scan(&usable)
	if err != nil {
		return err
	}
	if usable >= store.MaxKeys {
		return store.ErrTooMany
	}
	_, err = tx.Exec(ctx, `
		insert into api_keys (tenant, user_id, key_id, hash, title, role, scopes, creator, create_time, expire_time, parent)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
		n.Tenant, n.User, n.ID, n.Hash, n.Title, int32(role), strings.Join(n.Scopes, " "), n.Creator, now, sqldb.Null(n.Expire), n.Parent)
	return err
}

// lockKeys makes a tenant's revocations, and the creation of keys by keys, follow each other. So a revocation sees every
// descendant, and a revoked key makes no further one.
func lockKeys(ctx context.Context, tx Tx, tenant string) error {
	return tx.Lock(ctx, "keys of "+tenant)
}

// checkParent refuses a new key whose parent is revoked.
func checkParent(ctx context.Context, tx Tx, n store.NewKey) error {
	if err := lockKeys(ctx, tx, n.Tenant); err != nil {
		return err
	}
	var one int
	err := tx.QueryRow(ctx, "select 1 from api_keys where tenant = $1 and key_id = $2 and revoke_time is null", n.Tenant, n.Parent).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return store.ErrParent
	}
	return err
}

// revokeKeys returns the statement that revokes the keys of $1 that which selects, with their descendants. The
// descendants of a key that was revoked before are revoked already.
func revokeKeys(which string) string {
	return `
		with recursive revoked(key_id) as (
			select key_id from api_keys where tenant = $1 and ` + which + `
			union
			select k.key_id from api_keys k join revoked r on k.parent = r.key_id where k.tenant = $1 and k.revoke_time is null
		)
		update api_keys set revoke_time = $3 where tenant = $1 and revoke_time is null and key_id in (select key_id from revoked)`
}

// GetKey implements store.Identities.
func (t identities) GetKey(ctx context.Context, tenant, id string) (*sessionv1.Key, error) {
	out, err := scanAPIKey(t.db.Reader().QueryRow(ctx, "select "+apiKeyColumns+" from api_keys where tenant = $1 and key_id = $2", tenant, id))
	return out, t.db.Fail("get key", err)
}

// ListKeys implements store.Identities.
func (t identities) ListKeys(ctx context.Context, p store.KeyPage) ([]*sessionv1.Key, error) {
	q := filter("select "+apiKeyColumns+" from api_keys where tenant = $1", p.Tenant)
	if p.User != "" {
		q.and("user_id = ?", p.User)
	}
	if p.AfterID != "" {
		q.and("(create_time, key_id) < (?, ?)", p.AfterTime, p.AfterID)
	}
	statement := q.ordered("create_time desc, key_id desc", p.Limit)
	out, err := sqldb.Collect(ctx, t.db.Reader(), scanAPIKey, statement, q.args...)
	return out, t.db.Fail("list keys", err)
}

// RevokeKey implements store.Identities.
func (t identities) RevokeKey(ctx context.Context, tenant, id string, r store.Request) (store.Answer, error) {
	return t.change(ctx, "revoke key", tenant, r, id, func(tx Tx, now time.Time) error {
		if err := lockKeys(ctx, tx, tenant); err != nil {
			return err
		}
		var one int
		if err := tx.QueryRow(ctx, "select 1 from api_keys where tenant = $1 and key_id = $2", tenant, id).Scan(&one); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, revokeKeys("key_id = $2"), tenant, id, now)
		return err
	})
}

// RevokedKeys implements store.Identities.
func (t identities) RevokedKeys(ctx context.Context, r store.Revocation) ([]string, error) {
	which, root := "key_id = $2", r.Key
	if r.Key == "" {
		which, root = keysOfUser+" and revoke_time >= $3", r.User
	}
	out, err := sqldb.Collect(ctx, t.db.Reader(), sqldb.Value[string], `
		with recursive revoked(key_id) as (
			select key_id from api_keys where tenant = $1 and `+which+`
			union
			select k.key_id from api_keys k join revoked r on k.parent = r.key_id where k.tenant = $1 and k.revoke_time >= $3
		)
		select key_id from revoked where key_id <> $4 order by key_id limit $5`, r.Tenant, root, r.Since, r.Key, sqldb.Limit(r.Limit))
	return out, t.db.Fail("list revoked keys", err)
}

// ResolveKey implements store.Identities.
func (t identities) ResolveKey(ctx context.Context, hash []byte) (store.Resolved, error) {
	var r store.Resolved
	var role, userRole commonv1.Role
	var scopes string
	var expire *time.Time
	err := t.db.Reader().QueryRow(ctx, `
		select k.tenant, k.user_id, k.key_id, k.role, u.role, k.scopes, k.expire_time
		from api_keys k join users u on u.tenant = k.tenant and u.user_id = k.user_id
		where k.hash = $1 and k.revoke_time is null and not u.disabled and (k.expire_time is null or k.expire_time > clock_timestamp())`,
		hash).Scan(&r.Tenant, &r.User, &r.Key, &role, &userRole, &scopes, &expire)
	if err != nil {
		return store.Resolved{}, t.db.Fail("resolve key", err)
	}
	r.Role, r.Scopes = min(role, userRole), strings.Fields(scopes)
	if expire != nil {
		r.Expire = *expire
	}
	return r, nil
}

// HasKeys implements store.Identities.
func (t identities) HasKeys(ctx context.Context, tenant string) (bool, error) {
	var one int
	err := t.db.Reader().QueryRow(ctx, "select 1 from api_keys where tenant = $1 or $1 = '' limit 1", tenant).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, t.db.Fail("look for keys", err)
}

// KeysUsed implements store.Identities.
func (t identities) KeysUsed(ctx context.Context, uses []store.KeyUse) error {
	return t.db.Write(ctx, "record the use of keys", func(tx Tx) ([]store.Wake, error) {
		all := make([]sqldb.Statement, len(uses))
		for i, u := range uses {
			all[i] = sqldb.S(`
				update api_keys set last_use_time = $3
				where tenant = $1 and key_id = $2 and (last_use_time is null or last_use_time < $3)`, u.Tenant, u.Key, u.Time)
		}
		_, err := tx.Send(ctx, all...)
		return nil, err
	})
}
