package tables

import (
	"context"
	"slices"

	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
)

// admitChild refuses a subagent's session unless its parent's lease is valid and fewer subagents work
// below the root than may. It locks the parent and the root, so that no other session joins meanwhile.
func admitChild(ctx context.Context, tx Tx, c *store.Child) error {
	if c == nil {
		return nil
	}
	root := store.Key{Tenant: c.Parent.Tenant, Session: plan.SessionID(c.Call.GetRoot())}
	keys := []store.Key{c.Parent.Key, root}
	slices.SortFunc(keys, plan.CompareKeys) // the order in which a commit locks them
	for _, k := range slices.Compact(keys) {
		if err := exists(ctx, tx, k, forChange); err != nil {
			return err
		}
	}
	if _, err := held(ctx, tx, c.Parent); err != nil {
		return err
	}
	n, err := sqldb.Value[int](tx.QueryRow(ctx, `
		select count(*) from sessions s join turns t on t.tenant = s.tenant and t.session = s.session
		where s.tenant = $1 and s.root = $2 and t.state in (1, 2, 3)`, root.Tenant, root.Session)) // QUEUED, RUNNING, WAITING
	if err == nil && n >= c.Most {
		err = store.ErrManySubagents
	}
	return err
}

// descendants reads the sessions of all subagents below a root, the first one first.
func descendants(ctx context.Context, q sqldb.Queryer, root store.Key, lock string) ([]*plan.Session, error) {
	return sqldb.Collect(ctx, q, ScanSession, "select "+SessionColumns+" from sessions s where tenant = $1 and root = $2 order by session"+lock,
		root.Tenant, root.Session)
}
