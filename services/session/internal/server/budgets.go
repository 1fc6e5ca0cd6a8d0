package server

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/refusal"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session/internal/allowance"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// BudgetServer implements BudgetService.
type BudgetServer struct {
	sessionv1.UnimplementedBudgetServiceServer
	s *Server
}

// BudgetService returns the server of BudgetService.
func (s *Server) BudgetService() *BudgetServer { return &BudgetServer{s: s} }

// ListBudgets reports the caller's budgets and their use.
func (b *BudgetServer) ListBudgets(ctx context.Context, r *sessionv1.ListBudgetsRequest) (*sessionv1.ListBudgetsResponse, error) {
	k := key(ctx, r.Session)
	p := allowance.Parties{Tenant: k.Tenant, User: user(ctx), Session: k.Session}
	if r.Session != "" {
		session, err := b.s.Store.GetSession(ctx, k)
		if err != nil {
			return nil, refusal.Store(err, refusal.Subject{Session: r.Session})
		}
		p.SessionBudget = session.Budget
	}
	balances, err := b.s.Store.Balances(ctx, k.Tenant, b.s.Budgets.For(k.Tenant).Bounds(p))
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
		ReservedTokens: b.Reserved.Tokens, ReservedCostNanoUsd: b.Reserved.CostNanoUSD, ReservedWallTime: durationpb.New(b.Reserved.WallTime),
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

// addTurnBudget adds what the turn may use: the requested amount, or what the
// operator allows.
func addTurnBudget(out, asked *sessionv1.TurnLimits, most allowance.Limits) error {
	var err error
	if out.MaxTokens, err = within("limits.max_tokens", asked.GetMaxTokens(), most.MaxTokens, tokens); err != nil {
		return err
	}
	out.MaxCostNanoUsd, err = within("limits.max_cost_nano_usd", asked.GetMaxCostNanoUsd(), most.MaxCostNanoUSD(), dollars)
	out.SoftPercent = asked.GetSoftPercent()
	if out.SoftPercent == 0 {
		out.SoftPercent = int32(most.SoftPercent)
	}
	return err
}

// wallCeiling returns the most time that a turn may request.
func wallCeiling(ceiling int64, most allowance.Limits) int64 {
	if most.MaxWallTime > 0 {
		return min(ceiling, int64(most.MaxWallTime))
	}
	return ceiling
}

// checkSessionBudget refuses a session's budget above the operator's.
func checkSessionBudget(asked *sessionv1.Budget, most allowance.Limits) error {
	if _, err := within("session.budget.max_tokens", asked.GetMaxTokens(), most.MaxTokens, tokens); err != nil {
		return err
	}
	if _, err := within("session.budget.max_cost_nano_usd", asked.GetMaxCostNanoUsd(), most.MaxCostNanoUSD(), dollars); err != nil {
		return err
	}
	_, err := within("session.budget.max_wall_time", int64(asked.GetMaxWallTime().AsDuration()), int64(most.MaxWallTime), func(n int64) string { return time.Duration(n).String() })
	return err
}

// within returns the requested amount, or the maximum if none was requested; 0
// bounds nothing.
func within(field string, asked, most int64, show func(int64) string) (int64, error) {
	switch {
	case most > 0 && asked > most:
		return 0, refusal.Of(codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_LIMIT_ABOVE_CEILING,
			fmt.Sprintf("%s is %s; the operator allows at most %s.", field, show(asked), show(most)), apierr.Field(field, "above the operator's ceiling of "+show(most)))
	case asked > 0:
		return asked, nil
	default:
		return most, nil
	}
}

func tokens(n int64) string { return strconv.FormatInt(n, 10) }

func dollars(nano int64) string {
	return fmt.Sprintf("%d ($%s)", nano, strconv.FormatFloat(float64(nano)/1e9, 'f', -1, 64))
}
