package integration

import (
	"strings"
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/budget"
)

// TestASummaryThatNoTurnMakesIsPaidForLikeAnyCall asks for a summary while no
// turn runs: it counts against the budgets, and is not made above them.
func TestASummaryThatNoTurnMakesIsPaidForLikeAnyCall(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		budget func(*budget.Config)
		method string
		used   int64
	}{
		"within the budgets":                              {func(c *budget.Config) { c.Tenant.MaxCostUSD, c.Session.MaxTokens = 1, 100_000 }, "summary", 16 * cent},
		"above the tenant's":                              {func(c *budget.Config) { c.Tenant.MaxCostUSD = 0.27 }, "cut", 14.5 * cent},
		"where a person would be asked, who is not there": {func(c *budget.Config) { c.Session.MaxCostUSD, c.Session.SoftPercent = 1, 14 }, "cut", 14.5 * cent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, strings.Replace(dear, "pause: 1m", "pause: 1ms", 1), withPrices(tt.budget))
			ctx := t.Context()
			s := f.session(ctx, t)
			if end := finished(t, f.turn(ctx, t, s, "fill")); end.State != complete {
				t.Fatalf("the turn ended %v", end)
			}
			if _, err := f.CompactSession(ctx, &sessionv1.CompactSessionRequest{Name: s}); err != nil {
				t.Fatal(err)
			}
			done := f.waitFor(ctx, t, s, func(e *sessionv1.Event) bool { return e.GetSessionCompacted() != nil }).GetSessionCompacted()
			if done.Method != tt.method {
				t.Errorf("compacted: %v", done)
			}
			for _, b := range f.budgets(ctx, t, s) {
				if b.UsedCostNanoUsd != tt.used || b.ReservedTokens != 0 || b.ReservedCostNanoUsd != 0 {
					t.Errorf("the budget stands at %v, want %d used", b, tt.used)
				}
			}
		})
	}
}
