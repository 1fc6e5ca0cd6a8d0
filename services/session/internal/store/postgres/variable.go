package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/backend"
)

const selectVariables = "select name, value, set_time from user_variables where tenant = $1 and user_id = $2 order by name"

func scanVariable(r pgx.CollectableRow) (v store.Variable, err error) {
	err = r.Scan(&v.Name, &v.Value, &v.Time)
	v.Time = v.Time.UTC()
	return v, err
}

// SetVariable implements store.Variables.
func (s *Store) SetVariable(ctx context.Context, o store.Owner, v store.Variable, r store.Request) (store.Variable, error) {
	set := v
	err := s.write(ctx, "set a variable", func(tx pgx.Tx) error {
		// Two concurrent changes of a user would not see each other's variable.
		if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock(hashtextextended($1, 0))", "variables\x01"+o.Tenant+"\x01"+o.User); err != nil {
			return err
		}
		all, err := collect(ctx, tx, scanVariable, selectVariables, o.Tenant, o.User)
		if err != nil {
			return err
		}
		answer, err := remember(ctx, tx, o.Tenant, "", r, "")
		if err != nil || answer.Replayed {
			v = backend.VariableOf(all, set.Name)
			return err
		}
		if err := backend.CheckVariables(all, set); err != nil {
			return err
		}
		v = set
		err = tx.QueryRow(ctx, `insert into user_variables (tenant, user_id, name, value, set_time) values ($1, $2, $3, $4, clock_timestamp())
			on conflict (tenant, user_id, name) do update set value = excluded.value, set_time = excluded.set_time returning set_time`,
			o.Tenant, o.User, v.Name, v.Value).Scan(&v.Time)
		v.Time = v.Time.UTC()
		return err
	})
	return v, err
}

// DeleteVariable implements store.Variables.
func (s *Store) DeleteVariable(ctx context.Context, o store.Owner, name string, r store.Request) error {
	return s.write(ctx, "delete a variable", func(tx pgx.Tx) error {
		answer, err := remember(ctx, tx, o.Tenant, "", r, "")
		if err != nil || answer.Replayed {
			return err
		}
		done, err := tx.Exec(ctx, "delete from user_variables where tenant = $1 and user_id = $2 and name = $3", o.Tenant, o.User, name)
		if err == nil && done.RowsAffected() == 0 {
			err = store.ErrNotFound
		}
		return err
	})
}

// Variables implements store.Variables.
func (s *Store) Variables(ctx context.Context, o store.Owner) ([]store.Variable, error) {
	all, err := collect(ctx, s.pool, scanVariable, selectVariables, o.Tenant, o.User)
	return all, fail("read the variables of a user", err)
}
