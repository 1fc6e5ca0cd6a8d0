package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

func TestBudgetsAreShown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		all  []*sessionv1.BudgetStatus
		want string
	}{
		{"none", nil, "There are no budgets; the operator sets them under budgets in the configuration.\n"},
		{"limits, and what has none", []*sessionv1.BudgetStatus{
			{
				Scope: "tenant", Subject: "acme", Limits: &sessionv1.Budget{MaxCostNanoUsd: 2_000_000_000}, UsedTokens: 7,
				UsedCostNanoUsd: 1_500_000_000, UsedWallTime: durationpb.New(90 * time.Second), ReservedCostNanoUsd: 100_000_000,
			},
			{Scope: "session", Subject: "sessions/s1", Limits: &sessionv1.Budget{MaxTokens: 100, MaxWallTime: durationpb.New(time.Minute)}},
		}, `
BUDGET       TOKENS    COST                TIME        RESERVED  UNTIL
tenant acme  7         $1.5000 of $2.0000  1m30s       $0.1000   for ever
session s1   0 of 100  $0.0000             0s of 1m0s  $0.0000   for ever
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			if err := listBudgets(&out, c.all); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(strings.TrimPrefix(c.want, "\n"), out.String()); d != "" {
				t.Error(d)
			}
		})
	}
}
