package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlead/fairlead/services/internal/kit/pg"
	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
	"github.com/fairlead/fairlead/services/session/internal/store/tables"
)

// queueBudgetNeeds locks the ledgers of the tenants that the writes name, until
// the transaction ends, and reads what decides. Each tenant has one lock,
// because rows that do not exist yet cannot be locked. Every change of the
// ledger takes this lock, always after the locks of the sessions' rows.
func queueBudgetNeeds(b *pgx.Batch, n plan.BudgetNeeds, f *plan.BudgetFacts) {
	locked := n.Tenants()
	if len(locked) == 0 {
		return
	}
	b.Queue(`select pg_advisory_xact_lock(k) from (
		select distinct hashtextextended('fairlead budgets of ' || t, 0) k from unnest($1::text[]) t order by 1) keys`, locked)
	tenants, sessions, ids := splitIDs(n.Reservations)
	b.Queue(tables.SelectReservations+` where (tenant, session, id) in (select * from unnest($1::text[], $2::text[], $3::text[]))`,
		tenants, sessions, ids).Query(func(rows pgx.Rows) (err error) {
		f.Reservations, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (plan.Reservation, error) { return tables.ScanReservation(pg.Row(r)) })
		return err
	})
	owners, scopes, subjects := splitBudgets(n.Budgets)
	b.Queue(tables.SelectAccounts+` where (tenant, scope, subject) in (
			select * from unnest($1::text[], $2::text[], $3::text[])
			union select tenant, scope, subject from reservations
				where (tenant, session, id) in (select * from unnest($4::text[], $5::text[], $6::text[])))`,
		owners, scopes, subjects, tenants, sessions, ids).Query(func(rows pgx.Rows) (err error) {
		f.Accounts, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (plan.Account, error) { return tables.ScanAccount(pg.Row(r)) })
		return err
	})
}

func splitBudgets(ids []plan.BudgetID) (tenants, scopes, subjects []string) {
	for _, id := range ids {
		tenants, scopes, subjects = append(tenants, id.Tenant), append(scopes, string(id.Scope)), append(subjects, id.Subject)
	}
	return tenants, scopes, subjects
}

// queueBudgets writes the changes to the ledger.
func queueBudgets(b *pgx.Batch, c plan.BudgetChange) {
	queueAccounts(b, c.Put)
	if len(c.Drop) > 0 {
		var ids []plan.BudgetID
		var starts []int64
		for _, a := range c.Drop {
			ids, starts = append(ids, a.BudgetID), append(starts, a.Start)
		}
		tenants, scopes, subjects := splitBudgets(ids)
		b.Queue(`delete from budgets where (tenant, scope, subject, window_start) in
			(select * from unnest($1::text[], $2::text[], $3::text[], $4::bigint[]))`, tenants, scopes, subjects, starts)
	}
	if len(c.Settled) > 0 {
		tenants, sessions, ids := splitIDs(c.Settled)
		b.Queue(`delete from reservations where (tenant, session, id) in (select * from unnest($1::text[], $2::text[], $3::text[]))`,
			tenants, sessions, ids)
	}
	queueReservations(b, c.Open)
}

func queueAccounts(b *pgx.Batch, rows []plan.Account) {
	if len(rows) == 0 {
		return
	}
	var ids []plan.BudgetID
	var sessions []string
	var starts, tokens, cost, micros, reservedTokens, reservedCost, reservedMicros []int64
	for _, a := range rows {
		ids, starts, sessions = append(ids, a.BudgetID), append(starts, a.Start), append(sessions, a.Session)
		tokens, cost, micros = append(tokens, a.Used.Tokens), append(cost, a.Used.CostNanoUSD), append(micros, a.Used.WallTime.Microseconds())
		reservedTokens, reservedCost = append(reservedTokens, a.Reserved.Tokens), append(reservedCost, a.Reserved.CostNanoUSD)
		reservedMicros = append(reservedMicros, a.Reserved.WallTime.Microseconds())
	}
	tenants, scopes, subjects := splitBudgets(ids)
	b.Queue(`insert into budgets (tenant, scope, subject, window_start, session,
			used_tokens, used_cost_nano_usd, used_wall_micros, reserved_tokens, reserved_cost_nano_usd, reserved_wall_micros)
		select * from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[],
			$6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[])
		on conflict (tenant, scope, subject, window_start) do update set
			used_tokens = excluded.used_tokens, used_cost_nano_usd = excluded.used_cost_nano_usd, used_wall_micros = excluded.used_wall_micros,
			reserved_tokens = excluded.reserved_tokens, reserved_cost_nano_usd = excluded.reserved_cost_nano_usd,
			reserved_wall_micros = excluded.reserved_wall_micros`,
		tenants, scopes, subjects, starts, sessions, tokens, cost, micros, reservedTokens, reservedCost, reservedMicros)
}

func queueReservations(b *pgx.Batch, rows []plan.Reservation) {
	if len(rows) == 0 {
		return
	}
	var keys []plan.ID
	var ids []plan.BudgetID
	var starts, tokens, cost, micros []int64
	for _, r := range rows {
		keys, ids, starts = append(keys, r.ID), append(ids, r.BudgetID), append(starts, r.Start)
		tokens, cost = append(tokens, r.Amount.Tokens), append(cost, r.Amount.CostNanoUSD)
		micros = append(micros, r.Amount.WallTime.Microseconds())
	}
	tenants, sessions, names := splitIDs(keys)
	_, scopes, subjects := splitBudgets(ids)
	b.Queue(`insert into reservations (tenant, session, id, scope, subject, window_start, tokens, cost_nano_usd, wall_micros)
		select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[])`,
		tenants, sessions, names, scopes, subjects, starts, tokens, cost, micros)
}

// Balances implements store.Store.
func (s *Store) Balances(ctx context.Context, tenant string, bounds []store.Bound) ([]store.Balance, error) {
	var rows []plan.Account
	var now time.Time
	err := s.db.Read(ctx, "read budgets", func(q sqldb.Queryer) (err error) {
		if now, err = sqldb.Value[time.Time](q.QueryRow(ctx, "select clock_timestamp()")); err != nil {
			return err
		}
		tenants, scopes, subjects := splitBudgets(plan.BudgetIDs(tenant, bounds))
		rows, err = sqldb.Collect(ctx, q, tables.ScanAccount, tables.SelectAccounts+` where (tenant, scope, subject) in
			(select * from unnest($1::text[], $2::text[], $3::text[]))`, tenants, scopes, subjects)
		return err
	})
	if err != nil {
		return nil, err
	}
	return plan.Balances(tenant, bounds, now, rows), nil
}

// Spend implements store.Ledger.
func (s *Store) Spend(ctx context.Context, sp store.Spending) error {
	var facts plan.BudgetFacts
	var now time.Time
	var change plan.Spend
	read := func(b *pgx.Batch) {
		facts = plan.BudgetFacts{}
		queueBudgetNeeds(b, plan.SpendNeeds(sp), &facts)
		b.Queue("select clock_timestamp()").QueryRow(func(row pgx.Row) error { return row.Scan(&now) })
	}
	err := fail("spend", pg.InTwo(ctx, s.db.pool, read, func(_ *pgx.Conn, b *pgx.Batch) error {
		change = plan.ForSpending(sp, now.UTC(), facts)
		queueBudgets(b, change.Budgets)
		queueJobs(b, change.Jobs)
		if len(change.Ended) > 0 {
			tenants, _, jobs := splitIDs(change.Ended)
			b.Queue("delete from jobs where kind = $1 and (tenant, job) in (select * from unnest($2::text[], $3::text[]))", store.JobSettle, tenants, jobs)
		}
		return nil
	}))
	if err != nil {
		return err
	}
	s.db.wakes.Send(tables.WithJobs(nil, change.Jobs)...)
	return nil
}
