package plan

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// BudgetID is the key of a budget in the ledger, for all windows.
type BudgetID struct {
	Tenant  string
	Scope   store.BudgetScope
	Subject string
}

// AccountID is the key of a row of the ledger.
type AccountID struct {
	BudgetID
	Start int64 // of the window, in seconds since the epoch; 0: for ever
}

// Account is a row of the ledger.
type Account struct {
	AccountID
	Session        string // session with which the row is deleted; empty: none
	Used, Reserved store.Amount
}

// Reservation is the row of one account that an open reservation is charged to.
type Reservation struct {
	ID
	AccountID
	Amount store.Amount
}

// BudgetNeeds is what a commit must read of the ledger: all windows of these
// budgets and of those that the reservations are charged to, under a lock of
// their tenants.
type BudgetNeeds struct {
	Budgets      []BudgetID
	Reservations []ID
}

// Tenants returns the tenants whose ledgers are needed, in order; none without
// a budget.
func (n BudgetNeeds) Tenants() []string {
	seen := map[string]struct{}{}
	for _, b := range n.Budgets {
		seen[b.Tenant] = struct{}{}
	}
	for _, r := range n.Reservations {
		seen[r.Tenant] = struct{}{}
	}
	return slices.Sorted(maps.Keys(seen))
}

func (n *BudgetNeeds) add(w store.Write) {
	for _, s := range w.Settle {
		n.Reservations = append(n.Reservations, ID{w.Key, s.ID})
	}
	for _, r := range w.Reserve {
		n.Reservations = append(n.Reservations, ID{w.Key, r.ID})
		n.addBounds(w.Tenant, r.Bounds)
	}
}

func (n *BudgetNeeds) addBounds(tenant string, bounds []store.Bound) {
	for _, b := range bounds {
		n.Budgets = append(n.Budgets, BudgetID{tenant, b.Scope, b.Subject})
	}
}

// BudgetFacts is the database's answer to BudgetNeeds.
type BudgetFacts struct {
	Accounts     []Account
	Reservations []Reservation
}

// BudgetChange is what a commit changes in the ledger.
type BudgetChange struct {
	Put     []Account   // to insert or to replace
	Drop    []AccountID // of windows that have ended
	Open    []Reservation
	Settled []ID
}

// ledger collects the changes of a commit's writes to the ledger, in order.
type ledger struct {
	now      time.Time
	accounts map[AccountID]*Account
	changed  map[AccountID]struct{}
	open     map[ID][]Reservation
	opened   map[ID]struct{}
	settled  map[ID]struct{}
}

func newLedger(now time.Time, f BudgetFacts) *ledger {
	l := &ledger{
		now: now, accounts: map[AccountID]*Account{}, changed: map[AccountID]struct{}{},
		open: map[ID][]Reservation{}, opened: map[ID]struct{}{}, settled: map[ID]struct{}{},
	}
	for _, a := range f.Accounts {
		l.accounts[a.AccountID] = &a
	}
	for _, r := range f.Reservations {
		l.open[r.ID] = append(l.open[r.ID], r)
	}
	return l
}

func (l *ledger) apply(w store.Write) {
	for _, s := range w.Settle {
		l.settle(w, s)
	}
	for _, r := range w.Reserve {
		l.reserve(w, r)
	}
}

// account returns the row in which a bound counts now.
func (l *ledger) account(k store.Key, b store.Bound) *Account {
	id := AccountID{BudgetID{k.Tenant, b.Scope, b.Subject}, windowStart(l.now, b.Window)}
	a := l.accounts[id]
	if a == nil {
		a = &Account{AccountID: id}
		if b.Scope == store.BudgetTurn || b.Scope == store.BudgetSession {
			a.Session = cmp.Or(b.Owner, k.Session)
		}
		l.accounts[id] = a
	}
	return a
}

func (l *ledger) settle(w store.Write, s store.Settle) {
	id := ID{w.Key, s.ID}
	for _, r := range l.open[id] {
		used := s.Used
		used.WallTime = min(used.WallTime.Truncate(time.Microsecond), r.Amount.WallTime)
		if s.Unknown {
			used = r.Amount
		}
		a := l.accounts[r.AccountID]
		if a == nil { // cannot happen: a window with open reservations is not dropped
			continue
		}
		a.Used = sum(a.Used, used)
		a.Reserved = less(a.Reserved, r.Amount)
		l.changed[a.AccountID] = struct{}{}
	}
	delete(l.open, id)
	if _, ok := l.opened[id]; ok {
		delete(l.opened, id)
		return
	}
	l.settled[id] = struct{}{}
}

func sum(a, b store.Amount) store.Amount {
	return store.Amount{Tokens: a.Tokens + b.Tokens, CostNanoUSD: a.CostNanoUSD + b.CostNanoUSD, WallTime: a.WallTime + b.WallTime}
}

func less(a, b store.Amount) store.Amount {
	return store.Amount{Tokens: a.Tokens - b.Tokens, CostNanoUSD: a.CostNanoUSD - b.CostNanoUSD, WallTime: a.WallTime - b.WallTime}
}

// reserve decides on a reservation and sets its answer.
func (l *ledger) reserve(w store.Write, r *store.Reserve) {
	r.Answer = store.Grant{}
	if len(l.open[ID{w.Key, r.ID}]) > 0 { // the use of the open one is not known any more
		l.settle(w, store.Settle{ID: r.ID, Unknown: true})
	}
	output, wall := r.MaxOutput, r.WallTime
	for _, b := range r.Bounds {
		s := l.standing(w.Key, b)
		room, kind := s.room(r)
		if room < r.MinOutput {
			alone, _ := s.alone().room(r)
			r.Answer.Denied = &store.Denial{Balance: s.Balance, Kind: kind, Later: alone >= r.MinOutput, Least: callAmount(r, r.MinOutput)}
			return
		}
		if room < output {
			output = room
			r.Answer.Lowered = &store.Denial{Balance: s.Balance, Kind: kind, Least: callAmount(r, r.MinOutput)}
		}
		if r.WallTime > 0 && b.Hard.WallTime > 0 {
			wall = min(wall, s.timeLeft())
		}
	}
	for _, b := range r.Bounds {
		s := l.standing(w.Key, b)
		if kind := s.softReached(); kind != "" {
			r.Answer = store.Grant{Denied: &store.Denial{Balance: s.Balance, Kind: kind, Soft: true, Least: callAmount(r, r.MinOutput)}}
			return
		}
	}
	r.Answer.Output, r.Answer.Reserved = output, callAmount(r, output)
	r.Answer.Reserved.WallTime = wall.Truncate(time.Microsecond)
	id := ID{w.Key, r.ID}
	for _, b := range r.Bounds {
		a := l.account(w.Key, b)
		a.Reserved = sum(a.Reserved, r.Answer.Reserved)
		l.changed[a.AccountID] = struct{}{}
		l.open[id] = append(l.open[id], Reservation{ID: id, AccountID: a.AccountID, Amount: r.Answer.Reserved})
	}
	l.opened[id] = struct{}{}
}

// standing is a budget at this point of the commit.
type standing struct{ store.Balance }

func (l *ledger) standing(k store.Key, b store.Bound) standing {
	a := l.account(k, b)
	return standing{balance(a, b)}
}

func balance(a *Account, b store.Bound) store.Balance {
	out := store.Balance{Bound: b, Used: a.Used, Reserved: a.Reserved}
	if b.Window > 0 {
		out.WindowEnd = time.Unix(a.Start, 0).Add(b.Window).UTC()
	}
	return out
}

// room returns how many output tokens a call may produce under this budget, and
// the limit that decides. A negative result means that the call does not fit
// even without output.
func (s standing) room(r *store.Reserve) (int64, store.LimitKind) {
	if s.Hard.WallTime > 0 && s.timeShort(r) {
		return math.MinInt64, store.LimitWallTime
	}
	if r.WallTime > 0 {
		return math.MaxInt64, store.LimitWallTime
	}
	room, kind := int64(math.MaxInt64), store.LimitTokens
	if s.Hard.Tokens > 0 {
		room = s.Hard.Tokens - s.Used.Tokens - s.Reserved.Tokens - r.Input.Tokens
	}
	if s.Hard.CostNanoUSD > 0 {
		left := s.Hard.CostNanoUSD - s.Used.CostNanoUSD - s.Reserved.CostNanoUSD
		if fits := affordable(r, left); fits < room {
			room, kind = fits, store.LimitCost
		}
	}
	return room, kind
}

// alone returns the budget without its reservations.
func (s standing) alone() standing {
	s.Reserved = store.Amount{}
	return s
}

// timeShort reports whether too little time is left for a reservation. A model
// call reserves no time: its turn does.
func (s standing) timeShort(r *store.Reserve) bool {
	unused := s.Hard.WallTime - s.Used.WallTime
	return unused <= 0 || r.WallTime > 0 && s.timeLeft() < max(min(r.MinWallTime, unused), time.Microsecond)
}

// timeLeft returns the time that is neither used nor reserved.
func (s standing) timeLeft() time.Duration {
	return s.Hard.WallTime - s.Used.WallTime - s.Reserved.WallTime
}

// softReached returns the soft limit that is reached, if any.
func (s standing) softReached() store.LimitKind {
	switch {
	case s.Soft.CostNanoUSD > 0 && s.Used.CostNanoUSD >= s.Soft.CostNanoUSD:
		return store.LimitCost
	case s.Soft.Tokens > 0 && s.Used.Tokens >= s.Soft.Tokens:
		return store.LimitTokens
	case s.Soft.WallTime > 0 && s.Used.WallTime >= s.Soft.WallTime:
		return store.LimitWallTime
	}
	return ""
}

// affordable returns how many output tokens a call may produce for a cost; -1
// if it costs more even without output.
func affordable(r *store.Reserve, cost int64) int64 {
	if callAmount(r, 0).CostNanoUSD > cost {
		return -1
	}
	if r.OutputPrice <= 0 || callAmount(r, r.MaxOutput).CostNanoUSD <= cost {
		return math.MaxInt64
	}
	n := int64(float64(cost-r.Input.CostNanoUSD) / r.OutputPrice)
	for n > 0 && callAmount(r, n).CostNanoUSD > cost { // undo the rounding
		n--
	}
	return n
}

// callAmount returns the most that a call with this much output uses.
func callAmount(r *store.Reserve, output int64) store.Amount {
	return store.Amount{
		Tokens:      r.Input.Tokens + output,
		CostNanoUSD: r.Input.CostNanoUSD + int64(math.Ceil(float64(output)*r.OutputPrice)),
	}
}

// windowStart returns the start of the window that contains now, in seconds since
// the epoch.
func windowStart(now time.Time, window time.Duration) int64 {
	seconds := int64(window / time.Second)
	if seconds <= 0 {
		return 0
	}
	return now.Unix() / seconds * seconds
}

// change returns the rows to write, in the order of their keys.
func (l *ledger) change() BudgetChange {
	var c BudgetChange
	current := map[BudgetID]int64{}
	for id := range l.changed {
		c.Put = append(c.Put, *l.accounts[id])
		current[id.BudgetID] = max(current[id.BudgetID], id.Start)
	}
	for id, a := range l.accounts {
		// The rows of earlier windows are not needed any more; a row without a window
		// (Start 0) stays.
		if id.Start > 0 && id.Start < current[id.BudgetID] && a.Reserved == (store.Amount{}) {
			c.Drop = append(c.Drop, id)
		}
	}
	c.Put = slices.DeleteFunc(c.Put, func(a Account) bool { return slices.Contains(c.Drop, a.AccountID) })
	for id := range l.opened {
		c.Open = append(c.Open, l.open[id]...)
	}
	for id := range l.settled {
		c.Settled = append(c.Settled, id)
	}
	slices.SortFunc(c.Put, func(a, b Account) int { return compareAccounts(a.AccountID, b.AccountID) })
	slices.SortFunc(c.Drop, compareAccounts)
	return c
}

func compareAccounts(a, b AccountID) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Start, b.Start))
}

// Balances returns the use of budgets, given the rows of all their windows.
func Balances(tenant string, bounds []store.Bound, now time.Time, rows []Account) []store.Balance {
	l := newLedger(now, BudgetFacts{Accounts: rows})
	out := make([]store.Balance, 0, len(bounds))
	for _, b := range bounds {
		out = append(out, l.standing(store.Key{Tenant: tenant}, b).Balance)
	}
	return out
}

// BudgetIDs returns the keys of the budgets of bounds.
func BudgetIDs(tenant string, bounds []store.Bound) []BudgetID {
	var n BudgetNeeds
	n.addBounds(tenant, bounds)
	return n.Budgets
}
