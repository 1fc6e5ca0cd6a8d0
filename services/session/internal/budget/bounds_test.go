package budget_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/budget"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

func TestBounds(t *testing.T) {
	all := budget.Parties{Tenant: "acme", User: "ada", Session: "s1", Turn: "t1"}
	for _, c := range []struct {
		name   string
		config budget.Config
		change func(*budget.Parties)
		want   []store.Bound
	}{
		{"without a budget there is no bound", budget.Config{}, nil, nil},
		{"a part of a budget in percent is soft", budget.Config{Scopes: budget.Scopes{
			Tenant: budget.Windowed{Limits: budget.Limits{MaxTokens: 1000, MaxCostUSD: 0.5, MaxWallTime: time.Minute, SoftPercent: 80}, Window: time.Hour},
		}}, nil, []store.Bound{{
			Scope: store.BudgetTenant, Subject: "acme", Window: time.Hour,
			Hard: store.Amount{Tokens: 1000, CostNanoUSD: 500_000_000, WallTime: time.Minute},
			Soft: store.Amount{Tokens: 800, CostNanoUSD: 400_000_000, WallTime: 48 * time.Second},
		}}},
		{"a session and a turn tighten what the operator allows, each limit by itself", budget.Config{Scopes: budget.Scopes{
			Turn: budget.Limits{MaxTokens: 100}, Session: budget.Limits{MaxTokens: 500, MaxCostUSD: 1, SoftPercent: 50},
		}}, func(p *budget.Parties) {
			p.TurnLimits = &sessionv1.TurnLimits{MaxTokens: 50, MaxCostNanoUsd: 7, SoftPercent: 10}
			p.SessionBudget = &sessionv1.Budget{MaxTokens: 400, MaxWallTime: durationpb.New(time.Second)}
		}, []store.Bound{
			{
				Scope: store.BudgetTurn, Subject: "t1", Hard: store.Amount{Tokens: 50, CostNanoUSD: 7},
				Soft: store.Amount{Tokens: 5, CostNanoUSD: 1},
			},
			{
				Scope: store.BudgetSession, Subject: "s1",
				Hard: store.Amount{Tokens: 400, CostNanoUSD: 1_000_000_000, WallTime: time.Second},
				Soft: store.Amount{Tokens: 250, CostNanoUSD: 500_000_000},
			},
		}},
		{"a tenant's own budgets take the place of those for all", budget.Config{
			Scopes:  budget.Scopes{User: budget.Windowed{Limits: budget.Limits{MaxTokens: 1, MaxCostUSD: 2}, Window: time.Hour}},
			Tenants: map[string]budget.Scopes{"acme": {User: budget.Windowed{Limits: budget.Limits{MaxTokens: 9}}}},
		}, nil, []store.Bound{
			{Scope: store.BudgetUser, Subject: "ada", Window: time.Hour, Hard: store.Amount{Tokens: 9, CostNanoUSD: 2_000_000_000}},
		}},
		{"the time of a turn is no matter of the ledger", budget.Config{Scopes: budget.Scopes{Turn: budget.Limits{MaxWallTime: time.Hour}}}, nil, nil},
		{"who is not named has no budget", budget.Config{Scopes: budget.Scopes{Session: budget.Limits{MaxTokens: 1}}},
			func(p *budget.Parties) { p.Session = "" }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := all
			if c.change != nil {
				c.change(&p)
			}
			if d := cmp.Diff(c.want, c.config.For("acme").Bounds(p)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestFaultsAreReportedTogether(t *testing.T) {
	w := budget.Windowed{Limits: budget.Limits{MaxTokens: -1, MaxCostUSD: -1, MaxWallTime: -1, SoftPercent: 101}, Window: time.Millisecond}
	err := w.Validate()
	if err == nil {
		t.Fatal("no fault was found")
	}
	for _, key := range []string{"max-tokens", "max-cost-usd", "max-wall-time", "soft-percent", "window"} {
		if !strings.Contains(err.Error(), key+": ") {
			t.Errorf("%s is not among the faults: %v", key, err)
		}
	}
}
