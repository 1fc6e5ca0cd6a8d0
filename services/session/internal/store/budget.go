package store

import (
	"context"
	"time"
)

// BudgetScope is the kind of owner of a budget.
type BudgetScope string

// Scopes of budgets. The rows of the first two go with their session.
const (
	BudgetTurn    BudgetScope = "turn"    // the subject is the turn's id
	BudgetSession BudgetScope = "session" // the session's id
	BudgetUser    BudgetScope = "user"    // the user's name
	BudgetTenant  BudgetScope = "tenant"  // the tenant's name
)

// LimitKind is one of a budget's limits.
type LimitKind string

// The kinds of limits.
const (
	LimitTokens   LimitKind = "tokens"
	LimitCost     LimitKind = "cost"
	LimitWallTime LimitKind = "wall time"
)

// Amount is an amount of use. As a limit, a zero bounds nothing.
type Amount struct {
	Tokens      int64 // of all kinds, cache reads and writes too
	CostNanoUSD int64 // billionths of a US dollar
	WallTime    time.Duration
}

// Bound is a budget that holds for a write.
type Bound struct {
	Scope   BudgetScope
	Subject string
	// Owner is the session with which the budget of a turn or session is deleted, by id; empty: the
	// one that writes.
	Owner string
	// Window is the length of the periods over which use is counted, in whole
	// seconds; windows are aligned to the epoch, in UTC. Zero: for ever.
	Window time.Duration
	// Hard is never exceeded. At Soft, a person is asked.
	Hard, Soft Amount
}

// Reserve requests the right to make one model call, with at most Input and the cost of
// the call's output; or it requests time. It is granted as many output tokens as the
// bounds leave, at most MaxOutput; less than MinOutput is denied. Nothing else of its
// write depends on the answer.
type Reserve struct {
	// ID is unique among the session's reservations: an open reservation with the
	// same id is settled first, as reserved.
	ID     string
	Bounds []Bound
	Input  Amount
	// MinOutput and MaxOutput are in tokens; OutputPrice is the price of one,
	// in billionths of a US dollar.
	MinOutput, MaxOutput int64
	OutputPrice          float64
	// WallTime, if not zero, requests time instead of a call. The grant is as much of
	// it as the bounds leave. Less than MinWallTime is denied, unless it is all the
	// unused time.
	WallTime, MinWallTime time.Duration
	// Answer is set by Commit when it has returned without an error.
	Answer Grant
}

// Grant answers a Reserve.
type Grant struct {
	// Output is how many tokens the call may produce; Reserved is what was
	// reserved.
	Output   int64
	Reserved Amount
	// Denied says why nothing was reserved; nil after a grant.
	Denied *Denial
	// Lowered is the limit that allows less output than requested, as a call
	// with MinOutput would have met it; nil if none does.
	Lowered *Denial
}

// Denial is the limit that prevents a reservation. At a soft limit a person is
// asked.
type Denial struct {
	Balance
	Kind LimitKind
	Soft bool
	// Later says that the reservation would fit without other reservations, which may
	// return a part of theirs.
	Later bool
	// Least is the most that the call would have used with MinOutput.
	Least Amount
}

// Balance is a budget with its use.
type Balance struct {
	Bound
	Used, Reserved Amount
	// WindowEnd is when the next window begins; zero: never.
	WindowEnd time.Time
}

// Settle ends a reservation and counts its use. If the reservation is not open,
// nothing is settled or counted.
type Settle struct {
	ID string // the reservation's
	// Used is the use. Time beyond the reserved time is not counted.
	Used Amount
	// Unknown says that the use is not known: it counts as reserved.
	Unknown bool
}

// Ledger is the ledger of budgets beside the sessions' logs.
type Ledger interface {
	// Balances returns the use of budgets, in the order of the bounds.
	Balances(ctx context.Context, tenant string, bounds []Bound) ([]Balance, error)
	// Spend changes the ledger and sets the answer of each Reserve; a denial is no error.
	Spend(ctx context.Context, s Spending) error
}

// Spending changes a tenant's ledger for model calls that no turn makes.
type Spending struct {
	// Key names the tenant and the session that pays, too; without a session, none does.
	Key
	Settle  []Settle
	Reserve []*Reserve
	// Keep is how long a reservation may stay open: a JobSettle that is due then counts it as
	// used. It is for a caller that has died; a settlement removes the job.
	Keep time.Duration
}

// SettleID returns the ID of the JobSettle of a reservation.
func SettleID(session, reservation string) string { return session + "/" + reservation }
