package tables

import (
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
)

// SelectAccounts and SelectReservations select the rows that ScanAccount and ScanReservation read.
const (
	SelectAccounts = `select tenant, scope, subject, window_start, session,
		used_tokens, used_cost_nano_usd, used_wall_micros, reserved_tokens, reserved_cost_nano_usd, reserved_wall_micros from budgets`
	SelectReservations = "select tenant, session, id, scope, subject, window_start, tokens, cost_nano_usd, wall_micros from reservations"
)

// ScanAccount reads a row of SelectAccounts.
func ScanAccount(r sqldb.Row) (a plan.Account, err error) {
	var used, reserved int64
	err = r.Scan(&a.Tenant, &a.Scope, &a.Subject, &a.Start, &a.Session,
		&a.Used.Tokens, &a.Used.CostNanoUSD, &used, &a.Reserved.Tokens, &a.Reserved.CostNanoUSD, &reserved)
	a.Used.WallTime, a.Reserved.WallTime = time.Duration(used)*time.Microsecond, time.Duration(reserved)*time.Microsecond
	return a, err
}

// ScanReservation reads a row of SelectReservations.
func ScanReservation(r sqldb.Row) (out plan.Reservation, err error) {
	var wall int64
	err = r.Scan(&out.ID.Tenant, &out.Session, &out.ID.ID, &out.Scope, &out.Subject, &out.Start, &out.Amount.Tokens, &out.Amount.CostNanoUSD, &wall)
	out.AccountID.Tenant, out.Amount.WallTime = out.ID.Tenant, time.Duration(wall)*time.Microsecond
	return out, err
}
