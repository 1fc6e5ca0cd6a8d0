package tables

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/tools/internal/store"
)

type permissions struct{ db DB }

// raised is the statement that says that a tenant's profiles or grants have changed.
func raised(tenant string) sqldb.Statement {
	return sqldb.S(`insert into permission_versions as v (tenant, version) values ($1, 1)
		on conflict (tenant) do update set version = v.version + 1`, tenant)
}

// grant stores a grant. One that exists already stays as it is.
func grant(ctx context.Context, tx sqldb.Tx, g *store.Grant) error {
	_, err := tx.Send(ctx, sqldb.S(`
		insert into grants (tenant, id, user_id, session, profile, rule, approver, call_id, binding, create_time)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, clock_timestamp()) on conflict (tenant, id) do nothing`,
		g.Tenant, g.ID, store.Text(g.User), g.Session, g.Profile, g.Rule, store.Text(g.Approver), g.CallID, g.Binding), raised(g.Tenant))
	return err
}

// PermissionVersion implements store.Permissions.
func (t permissions) PermissionVersion(ctx context.Context, tenant string) (int64, error) {
	v, err := sqldb.Value[int64](t.db.Reader().QueryRow(ctx, "select version from permission_versions where tenant = $1", tenant))
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return v, Failed(t.db, err, "read the version of permissions")
}

const profileColumns = "tenant, id, description, rules, etag, create_time, update_time"

func scanProfile(r sqldb.Row) (p store.Profile, err error) {
	err = r.Scan(&p.Tenant, &p.ID, &p.Description, &p.Rules, &p.Etag, &p.CreateTime, &p.UpdateTime)
	if errors.Is(err, sql.ErrNoRows) {
		err = store.ErrNoProfile
	}
	return p, err
}

func readProfile(ctx context.Context, q sqldb.Queryer, tenant, id string) (store.Profile, error) {
	return scanProfile(q.QueryRow(ctx, "select "+profileColumns+" from profiles where tenant = $1 and id = $2", tenant, id))
}

// GetProfile implements store.Permissions.
func (t permissions) GetProfile(ctx context.Context, tenant, id string) (store.Profile, error) {
	p, err := readProfile(ctx, t.db.Reader(), tenant, id)
	return p, Failed(t.db, err, "read profile %s", id)
}

// ListProfiles implements store.Permissions.
func (t permissions) ListProfiles(ctx context.Context, tenant, after string, limit int) ([]store.Profile, error) {
	found, err := sqldb.Collect(ctx, t.db.Reader(), scanProfile,
		"select "+profileColumns+" from profiles where tenant = $1 and id > $2 order by id limit $3", tenant, after, limit)
	return found, Failed(t.db, err, "list profiles")
}

// WriteProfile implements store.Permissions.
func (t permissions) WriteProfile(ctx context.Context, w store.ProfileWrite) (p store.Profile, err error) {
	err = t.db.Write(ctx, func(tx sqldb.Tx) error {
		repeated, err := accept(ctx, tx, w.Request)
		if err == nil && !repeated {
			err = put(ctx, tx, w)
		}
		if err != nil {
			return err
		}
		p, err = readProfile(ctx, tx, w.Tenant, w.ID)
		return err
	})
	return p, Failed(t.db, err, "write profile %s", w.ID)
}

func put(ctx context.Context, tx sqldb.Tx, w store.ProfileWrite) error {
	statement := sqldb.S(`
		insert into profiles (tenant, id, description, rules, etag, create_time, update_time)
		values ($1, $2, $3, $4, $5, clock_timestamp(), clock_timestamp()) on conflict (tenant, id) do nothing`,
		w.Tenant, w.ID, w.Description, solid(w.Rules), w.Etag)
	if !w.Create {
		statement = sqldb.S(`
			update profiles set description = $3, rules = $4, etag = $5, update_time = clock_timestamp()
			where tenant = $1 and id = $2 and ($6 = '' or etag = $6)`, w.Tenant, w.ID, w.Description, solid(w.Rules), w.Etag, w.Expected)
	}
	return changeProfile(ctx, tx, w, statement)
}

// changeProfile changes one profile and raises the tenant's version. Without a row to
// change the error says why.
func changeProfile(ctx context.Context, tx sqldb.Tx, w store.ProfileWrite, statement sqldb.Statement) error {
	changed, err := tx.Send(ctx, statement, raised(w.Tenant))
	if err != nil || changed[0] > 0 {
		return err
	}
	if w.Create {
		return store.ErrProfileExists
	}
	if _, err := readProfile(ctx, tx, w.Tenant, w.ID); err != nil {
		return err
	}
	return store.ErrProfileChanged
}

// DeleteProfile implements store.Permissions.
func (t permissions) DeleteProfile(ctx context.Context, w store.ProfileWrite) error {
	err := t.db.Write(ctx, func(tx sqldb.Tx) error {
		if repeated, err := accept(ctx, tx, w.Request); err != nil || repeated {
			return err
		}
		return changeProfile(ctx, tx, w, sqldb.S(`
			delete from profiles where tenant = $1 and id = $2 and ($3 = '' or etag = $3)`, w.Tenant, w.ID, w.Expected))
	})
	return Failed(t.db, err, "delete profile %s", w.ID)
}

func scanGrant(r sqldb.Row) (g store.Grant, err error) {
	err = r.Scan(&g.Tenant, &g.ID, &g.User, &g.Session, &g.Profile, &g.Rule, &g.Approver, &g.CallID, &g.Binding, &g.CreateTime)
	return g, err
}

// ListGrants implements store.Permissions.
func (t permissions) ListGrants(ctx context.Context, p store.GrantPage) ([]store.Grant, error) {
	query, args := "select tenant, id, user_id, session, profile, rule, approver, call_id, binding, create_time from grants where tenant = $1", []any{p.Tenant}
	if p.User != "" {
		args = append(args, p.User)
		query += fmt.Sprintf(" and user_id = $%d", len(args))
	}
	switch {
	case p.Holding:
		args = append(args, p.Session)
		query += fmt.Sprintf(" and session in ('', $%d)", len(args))
	case p.Session != "":
		args = append(args, p.Session)
		query += fmt.Sprintf(" and session = $%d", len(args))
	}
	if p.Before != nil {
		args = append(args, p.Before.CreateTime, p.Before.ID)
		query += fmt.Sprintf(" and (create_time, id) < ($%d, $%d)", len(args)-1, len(args))
	}
	args = append(args, p.Limit)
	found, err := sqldb.Collect(ctx, t.db.Reader(), scanGrant, query+fmt.Sprintf(" order by create_time desc, id desc limit $%d", len(args)), args...)
	return found, Failed(t.db, err, "list grants")
}

// DeleteGrant implements store.Permissions.
func (t permissions) DeleteGrant(ctx context.Context, tenant, id, user string, q *store.Request) error {
	err := t.db.Write(ctx, func(tx sqldb.Tx) error {
		if repeated, err := accept(ctx, tx, q); err != nil || repeated {
			return err
		}
		changed, err := tx.Send(ctx,
			sqldb.S("delete from grants where tenant = $1 and id = $2 and ($3 = '' or user_id = $3)", tenant, id, user), raised(tenant))
		if err == nil && changed[0] == 0 {
			err = store.ErrNoGrant
		}
		return err
	})
	return Failed(t.db, err, "delete grant %s", id)
}

// DeleteGrants implements store.Permissions.
func (t permissions) DeleteGrants(ctx context.Context, tenant, user string) error {
	err := t.db.Write(ctx, func(tx sqldb.Tx) error {
		_, err := tx.Send(ctx, sqldb.S("delete from grants where tenant = $1 and user_id = $2", tenant, user), raised(tenant))
		return err
	})
	return Failed(t.db, err, "delete the grants of a user")
}
