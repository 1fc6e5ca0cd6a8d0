package plan

import (
	"time"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// SpendNeeds returns what a change of the ledger must read.
func SpendNeeds(s store.Spending) BudgetNeeds {
	var n BudgetNeeds
	n.add(store.Write{Lease: store.Lease{Key: s.Key}, Settle: s.Settle, Reserve: s.Reserve})
	return n
}

// Spend is what a Spending changes.
type Spend struct {
	Budgets BudgetChange
	Jobs    []store.Job // to put
	Ended   []ID        // jobs to remove, by their JobSettle's id
}

// ForSpending decides what changes, and sets the answers.
func ForSpending(s store.Spending, now time.Time, f BudgetFacts) Spend {
	l := newLedger(now, f)
	l.apply(store.Write{Lease: store.Lease{Key: s.Key}, Settle: s.Settle, Reserve: s.Reserve})
	out := Spend{Budgets: l.change()}
	for _, r := range s.Reserve {
		if r.Answer.Denied == nil {
			out.Jobs = append(out.Jobs, store.Job{
				Tenant: s.Tenant, Kind: store.JobSettle, ID: store.SettleID(s.Session, r.ID), Session: s.Session,
				Body: []byte(r.ID), Due: now.Add(s.Keep),
			})
		}
	}
	for _, e := range s.Settle {
		out.Ended = append(out.Ended, ID{s.Key, store.SettleID(s.Session, e.ID)})
	}
	return out
}
