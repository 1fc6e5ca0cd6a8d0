package tables

import (
	"context"

	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
)

type variables struct{ db DB }

const selectVariables = "select name, value, set_time from user_variables where tenant = $1 and user_id = $2 order by name"

func scanVariable(r sqldb.Row) (v store.Variable, err error) {
	return v, r.Scan(&v.Name, &v.Value, &v.Time)
}

// SetVariable implements store.Variables. Two concurrent changes of a user would not see each other's variable,
// so they lock.
func (t variables) SetVariable(ctx context.Context, o store.Owner, v store.Variable, r store.Request) (store.Variable, error) {
	var all []store.Variable
	set := v
	answer, err := once(ctx, t.db, "set a variable", request{Request: r, tenant: o.Tenant}, func(tx Tx) (err error) {
		if err := tx.Lock(ctx, "variables\x01"+o.Tenant+"\x01"+o.User); err != nil {
			return err
		}
		all, err = sqldb.Collect(ctx, tx, scanVariable, selectVariables, o.Tenant, o.User)
		return err
	}, func(tx Tx) ([]store.Wake, error) {
		if err := plan.CheckVariables(all, v); err != nil {
			return nil, err
		}
		return nil, tx.QueryRow(ctx, `insert into user_variables (tenant, user_id, name, value, set_time) values ($1, $2, $3, $4, clock_timestamp())
			on conflict (tenant, user_id, name) do update set value = excluded.value, set_time = excluded.set_time returning set_time`,
			o.Tenant, o.User, v.Name, v.Value).Scan(&set.Time)
	})
	if answer.Replayed {
		set = plan.VariableOf(all, v.Name)
	}
	return set, err
}

// DeleteVariable implements store.Variables.
func (t variables) DeleteVariable(ctx context.Context, o store.Owner, name string, r store.Request) error {
	_, err := once(ctx, t.db, "delete a variable", request{Request: r, tenant: o.Tenant}, nil, func(tx Tx) ([]store.Wake, error) {
		return nil, changed(tx.Exec(ctx, "delete from user_variables where tenant = $1 and user_id = $2 and name = $3", o.Tenant, o.User, name))
	})
	return err
}

// Variables implements store.Variables.
func (t variables) Variables(ctx context.Context, o store.Owner) ([]store.Variable, error) {
	all, err := sqldb.Collect(ctx, t.db.Reader(), scanVariable, selectVariables, o.Tenant, o.User)
	return all, t.db.Fail("read the variables of a user", err)
}
