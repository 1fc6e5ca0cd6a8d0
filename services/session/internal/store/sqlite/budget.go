package sqlite

import (
	"context"
	"database/sql"

	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
	"github.com/fairlead/fairlead/services/session/internal/store/tables"
)

// budgetFacts reads what decides about reservations.
func budgetFacts(ctx context.Context, q sqldb.Queryer, n plan.BudgetNeeds) (f plan.BudgetFacts, err error) {
	budgets := n.Budgets
	for _, id := range n.Reservations {
		open, err := sqldb.Collect(ctx, q, tables.ScanReservation, tables.SelectReservations+" where tenant = $1 and session = $2 and id = $3", id.Tenant, id.Session, id.ID)
		if err != nil {
			return f, err
		}
		f.Reservations = append(f.Reservations, open...)
		for _, r := range open {
			budgets = append(budgets, r.BudgetID)
		}
	}
	f.Accounts, err = accounts(ctx, q, budgets)
	return f, err
}

// accounts reads all windows of budgets.
func accounts(ctx context.Context, q sqldb.Queryer, budgets []plan.BudgetID) ([]plan.Account, error) {
	var all []plan.Account
	seen := map[plan.BudgetID]bool{}
	for _, id := range budgets {
		if seen[id] {
			continue
		}
		seen[id] = true
		rows, err := sqldb.Collect(ctx, q, tables.ScanAccount, tables.SelectAccounts+" where tenant = $1 and scope = $2 and subject = $3", id.Tenant, id.Scope, id.Subject)
		if err != nil {
			return nil, err
		}
		all = append(all, rows...)
	}
	return all, nil
}

// applyBudgets writes the changes to the ledger.
func applyBudgets(ctx context.Context, tx *sql.Tx, c plan.BudgetChange) error {
	if err := each(ctx, tx, `
		insert into budgets (tenant, scope, subject, window_start, session,
			used_tokens, used_cost_nano_usd, used_wall_micros, reserved_tokens, reserved_cost_nano_usd, reserved_wall_micros)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		on conflict do update set
			used_tokens = excluded.used_tokens, used_cost_nano_usd = excluded.used_cost_nano_usd, used_wall_micros = excluded.used_wall_micros,
			reserved_tokens = excluded.reserved_tokens, reserved_cost_nano_usd = excluded.reserved_cost_nano_usd,
			reserved_wall_micros = excluded.reserved_wall_micros`,
		c.Put, func(a plan.Account) []any {
			return []any{
				a.Tenant, a.Scope, a.Subject, a.Start, a.Session,
				a.Used.Tokens, a.Used.CostNanoUSD, a.Used.WallTime.Microseconds(),
				a.Reserved.Tokens, a.Reserved.CostNanoUSD, a.Reserved.WallTime.Microseconds(),
			}
		}); err != nil {
		return err
	}
	if err := each(ctx, tx, "delete from budgets where tenant = ? and scope = ? and subject = ? and window_start = ?",
		c.Drop, func(a plan.AccountID) []any { return []any{a.Tenant, a.Scope, a.Subject, a.Start} }); err != nil {
		return err
	}
	if err := each(ctx, tx, "delete from reservations where tenant = ? and session = ? and id = ?",
		c.Settled, func(id plan.ID) []any { return []any{id.Tenant, id.Session, id.ID} }); err != nil {
		return err
	}
	return each(ctx, tx, `
		insert into reservations (tenant, session, id, scope, subject, window_start, tokens, cost_nano_usd, wall_micros)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		c.Open, func(r plan.Reservation) []any {
			return []any{r.ID.Tenant, r.Session, r.ID.ID, r.Scope, r.Subject, r.Start, r.Amount.Tokens, r.Amount.CostNanoUSD, r.Amount.WallTime.Microseconds()}
		})
}

// Balances implements store.Store.
func (s *Store) Balances(ctx context.Context, tenant string, bounds []store.Bound) ([]store.Balance, error) {
	rows, err := accounts(ctx, s.db.Reader(), plan.BudgetIDs(tenant, bounds))
	if err != nil {
		return nil, s.db.Fail("read budgets", err)
	}
	return plan.Balances(tenant, bounds, s.db.clock(), rows), nil
}

// Spend implements store.Ledger.
func (s *Store) Spend(ctx context.Context, sp store.Spending) error {
	return s.db.write(ctx, "spend", func(tx *sql.Tx) ([]store.Wake, error) {
		facts, err := budgetFacts(ctx, s.sql(tx), plan.SpendNeeds(sp))
		if err != nil {
			return nil, err
		}
		change := plan.ForSpending(sp, s.db.clock(), facts)
		if err := applyBudgets(ctx, tx, change.Budgets); err != nil {
			return nil, err
		}
		if err := each(ctx, tx, "delete from jobs where tenant = ? and kind = ? and job = ?",
			change.Ended, func(id plan.ID) []any { return []any{id.Tenant, string(store.JobSettle), id.ID} }); err != nil {
			return nil, err
		}
		return tables.WithJobs(nil, change.Jobs), insertJobs(ctx, tx, change.Jobs)
	})
}
