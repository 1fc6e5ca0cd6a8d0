package sqlite

import (
	"context"
	"database/sql"

	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/backend"
)

const selectVariables = "select name, value, set_time from user_variables where tenant = ? and user_id = ? order by name"

func scanVariable(r *sql.Rows) (v store.Variable, err error) {
	var at int64
	err = r.Scan(&v.Name, &v.Value, &at)
	v.Time = fromMicros(at)
	return v, err
}

// SetVariable implements store.Variables.
func (s *Store) SetVariable(ctx context.Context, o store.Owner, v store.Variable, r store.Request) (store.Variable, error) {
	err := s.write(ctx, "set a variable", func(tx *sql.Tx) ([]store.Wake, error) {
		all, err := collect(ctx, tx, scanVariable, selectVariables, o.Tenant, o.User)
		if err != nil {
			return nil, err
		}
		now := s.clock()
		if old, err := recall(ctx, tx, o.Tenant, r, now); err != nil || old != nil {
			v = backend.VariableOf(all, v.Name)
			return nil, err
		}
		if err := backend.CheckVariables(all, v); err != nil {
			return nil, err
		}
		v.Time = fromMicros(micros(now))
		_, err = tx.ExecContext(ctx, `insert into user_variables (tenant, user_id, name, value, set_time) values (?, ?, ?, ?, ?)
			on conflict do update set value = excluded.value, set_time = excluded.set_time`, o.Tenant, o.User, v.Name, v.Value, micros(now))
		if err != nil {
			return nil, err
		}
		return nil, remember(ctx, tx, o.Tenant, "", r, "", now)
	})
	return v, err
}

// DeleteVariable implements store.Variables.
func (s *Store) DeleteVariable(ctx context.Context, o store.Owner, name string, r store.Request) error {
	return s.write(ctx, "delete a variable", func(tx *sql.Tx) ([]store.Wake, error) {
		now := s.clock()
		if old, err := recall(ctx, tx, o.Tenant, r, now); err != nil || old != nil {
			return nil, err
		}
		done, err := tx.ExecContext(ctx, "delete from user_variables where tenant = ? and user_id = ? and name = ?", o.Tenant, o.User, name)
		if err != nil {
			return nil, err
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			if err == nil {
				err = store.ErrNotFound
			}
			return nil, err
		}
		return nil, remember(ctx, tx, o.Tenant, "", r, "", now)
	})
}

// Variables implements store.Variables.
func (s *Store) Variables(ctx context.Context, o store.Owner) ([]store.Variable, error) {
	all, err := collect(ctx, s.db.R, scanVariable, selectVariables, o.Tenant, o.User)
	return all, s.fail("read the variables of a user", err)
}
