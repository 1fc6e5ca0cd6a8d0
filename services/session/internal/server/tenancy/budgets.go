package tenancy

import (
	"context"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/budget"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// BudgetServer implements BudgetService.
type BudgetServer struct {
	sessionv1.UnimplementedBudgetServiceServer
	*Config
}

// ListBudgets reports the caller's budgets and their use.
func (b *BudgetServer) ListBudgets(ctx context.Context, r *sessionv1.ListBudgetsRequest) (*sessionv1.ListBudgetsResponse, error) {
	k := request.Key(ctx, r.Session)
	p := budget.Parties{Tenant: k.Tenant, User: request.User(ctx), Session: k.Session}
	if r.Session != "" {
		session, err := b.Store.GetSession(ctx, k)
		if err != nil {
			return nil, refusal.Store(err, refusal.Subject{Session: r.Session})
		}
		p.SessionBudget = session.Budget
	}
	balances, err := b.Store.Balances(ctx, k.Tenant, b.Budgets.For(k.Tenant).Bounds(p))
	if err != nil {
		return nil, refusal.Store(err, refusal.Subject{Session: r.Session})
	}
	resp := &sessionv1.ListBudgetsResponse{}
	for _, x := range balances {
		resp.Budgets = append(resp.Budgets, budgetStatus(x))
	}
	return resp, nil
}

func budgetStatus(b store.Balance) *sessionv1.BudgetStatus {
	out := &sessionv1.BudgetStatus{
		Scope: string(b.Scope), Subject: b.Subject,
		Limits:     &sessionv1.Budget{MaxTokens: b.Hard.Tokens, MaxCostNanoUsd: b.Hard.CostNanoUSD, SoftPercent: softPercent(b.Bound)},
		UsedTokens: b.Used.Tokens, UsedCostNanoUsd: b.Used.CostNanoUSD, UsedWallTime: durationpb.New(b.Used.WallTime),
		ReservedTokens: b.Reserved.Tokens, ReservedCostNanoUsd: b.Reserved.CostNanoUSD,
		ReservedWallTime: durationpb.New(b.Reserved.WallTime),
	}
	if b.Scope == store.BudgetSession {
		out.Subject = "sessions/" + b.Subject
	}
	if b.Hard.WallTime > 0 {
		out.Limits.MaxWallTime = durationpb.New(b.Hard.WallTime)
	}
	if !b.WindowEnd.IsZero() {
		out.WindowEnd = timestamppb.New(b.WindowEnd)
	}
	return out
}

// softPercent returns the lowest part of any limit at which a person is asked.
func softPercent(b store.Bound) int32 {
	percent := int32(0)
	for _, l := range [][2]int64{
		{b.Soft.Tokens, b.Hard.Tokens}, {b.Soft.CostNanoUSD, b.Hard.CostNanoUSD}, {int64(b.Soft.WallTime), int64(b.Hard.WallTime)},
	} {
		if l[0] > 0 && l[1] > 0 {
			if p := int32(float64(l[0])/float64(l[1])*100 + 0.5); percent == 0 || p < percent {
				percent = max(p, 1)
			}
		}
	}
	return percent
}
