package budget

import (
	"math/bits"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Parties are the owners of a turn, with their own budgets.
type Parties struct {
	Tenant, User, Session, Turn string
	// SessionBudget and TurnLimits are the session's and the turn's own; nil: none.
	SessionBudget *sessionv1.Budget
	TurnLimits    *sessionv1.TurnLimits
}

// Bounds returns the budgets that hold for a turn: the operator's, tightened by
// the session's and the turn's own. It returns none if no budget is set. A
// party without a name has no budget.
func (s Scopes) Bounds(p Parties) []store.Bound {
	var all []store.Bound
	add := func(scope store.BudgetScope, subject string, window time.Duration, limits ...store.Bound) {
		b := store.Bound{Scope: scope, Subject: subject, Window: window}
		for _, l := range limits {
			b.Hard, b.Soft = tighter(b.Hard, l.Hard), tighter(b.Soft, l.Soft)
		}
		if subject != "" && b.Hard != (store.Amount{}) {
			all = append(all, b)
		}
	}
	turn := s.Turn
	turn.MaxWallTime = 0 // the turn's own limit (Turn.limits.max_wall_time), which needs no ledger
	own, limits := p.SessionBudget, p.TurnLimits
	add(store.BudgetTurn, p.Turn, 0, turn.bound(),
		bound(store.Amount{Tokens: limits.GetMaxTokens(), CostNanoUSD: limits.GetMaxCostNanoUsd()}, int(limits.GetSoftPercent())))
	add(store.BudgetSession, p.Session, 0, s.Session.bound(), bound(store.Amount{
		Tokens: own.GetMaxTokens(), CostNanoUSD: own.GetMaxCostNanoUsd(), WallTime: own.GetMaxWallTime().AsDuration(),
	}, int(own.GetSoftPercent())))
	add(store.BudgetUser, p.User, s.User.Window, s.User.bound())
	add(store.BudgetTenant, p.Tenant, s.Tenant.Window, s.Tenant.bound())
	return all
}

func (l Limits) bound() store.Bound {
	return bound(store.Amount{Tokens: l.MaxTokens, CostNanoUSD: l.MaxCostNanoUSD(), WallTime: l.MaxWallTime}, l.SoftPercent)
}

func bound(hard store.Amount, softPercent int) store.Bound {
	return store.Bound{Hard: hard, Soft: store.Amount{
		Tokens: percent(hard.Tokens, softPercent), CostNanoUSD: percent(hard.CostNanoUSD, softPercent),
		WallTime: time.Duration(percent(int64(hard.WallTime), softPercent)),
	}}
}

// percent returns a part of n, at least 1 unless n is 0.
func percent(n int64, p int) int64 {
	if n <= 0 || p <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(n), uint64(p))
	part, _ := bits.Div64(hi, lo, 100)
	return max(int64(part), 1)
}

// tighter returns the lower limit of each kind, where a zero bounds nothing.
func tighter(a, b store.Amount) store.Amount {
	return store.Amount{
		Tokens: lower(a.Tokens, b.Tokens), CostNanoUSD: lower(a.CostNanoUSD, b.CostNanoUSD), WallTime: lower(a.WallTime, b.WallTime),
	}
}

func lower[T int64 | time.Duration](a, b T) T {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
