package store

import "time"

// BudgetScope says whose a budget is.
type BudgetScope string

// The scopes of budgets. The rows of the first two go with their session.
const (
	BudgetTurn    BudgetScope = "turn"    // the subject is the turn's id
	BudgetSession BudgetScope = "session" // the session's id
	BudgetUser    BudgetScope = "user"    // the user's name
	BudgetTenant  BudgetScope = "tenant"  // the tenant's name
)

// LimitKind says which of a budget's limits is meant.
type LimitKind string

// The kinds of limits.
const (
	LimitTokens   LimitKind = "tokens"
	LimitCost     LimitKind = "cost"
	LimitWallTime LimitKind = "wall time"
)

// Amount is what may be used or was used. As a limit, a zero bounds nothing.
type Amount struct {
	Tokens      int64 // of all kinds, cache reads and writes too
	CostNanoUSD int64 // billionths of a US dollar
	WallTime    time.Duration
}

// Bound is a budget that holds for a write.
type Bound struct {
	Scope   BudgetScope
	Subject string
	// Window is how long counting goes on before it begins anew, in whole seconds;
	// windows are aligned to the epoch, in UTC. Zero: for ever.
	Window time.Duration
	// Hard is never exceeded. Soft is where a person is asked.
	Hard, Soft Amount
}

// Reserve asks for the right to make one model call: at most Input, and what the
// output of the call costs; or for time. As many output tokens are granted as the bounds
// leave, at most MaxOutput; less than MinOutput is denied. Nothing else of its
// write depends on the answer.
type Reserve struct {
	// ID is unlike that of any other reservation of the session: one that is open
	// under it is settled first, as it was reserved.
	ID     string
	Bounds []Bound
	Input  Amount
	// MinOutput and MaxOutput are in tokens; OutputPrice is what one costs, in
	// billionths of a US dollar.
	MinOutput, MaxOutput int64
	OutputPrice          float64
	// WallTime, if not zero, asks for so much time instead of a call: as much of it is
	// granted as the bounds leave. Less than MinWallTime is denied, unless it is all
	// that is not used yet.
	WallTime, MinWallTime time.Duration
	// Answer is set by Commit, once it has returned without an error.
	Answer Grant
}

// Grant answers a Reserve.
type Grant struct {
	// Output is how many tokens the call may bring; Reserved, what was reserved.
	Output   int64
	Reserved Amount
	// Denied tells why nothing was reserved; nil when it was.
	Denied *Denial
	// Lowered is the limit that allows less output than was asked for, as a call
	// with MinOutput would have met it; nil when none does.
	Lowered *Denial
}

// Denial says which limit stands against a reservation. A soft one asks for a
// person.
type Denial struct {
	Balance
	Kind LimitKind
	Soft bool
	// Later says that it would fit were it not for other reservations, which may give
	// something back.
	Later bool
	// Least is what the call would have used at most with MinOutput.
	Least Amount
}

// Balance is how a budget stands.
type Balance struct {
	Bound
	Used, Reserved Amount
	// WindowEnd is when counting begins anew; zero: never.
	WindowEnd time.Time
}

// Settle ends a reservation, and counts what was used. A reservation that is
// not open (any more) is none to settle: then nothing is counted.
type Settle struct {
	ID string // the reservation's
	// Used is what was used. Time beyond what was reserved is not counted.
	Used Amount
	// Unknown says that what was used is not known: it counts as it was reserved.
	Unknown bool
}
