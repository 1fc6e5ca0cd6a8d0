package main

import (
	"fmt"
	"time"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
)

// A tenant with a short budget, and its users. Their budgets are spent within each window, so that turns end
// there PARTIAL; all other users work in the default tenant, which has no budget.
const (
	smallTenant  = "small"
	smallWindow  = 20 * time.Second
	tenantBudget = 80_000_000 // billionths of a US dollar
	userBudget   = 50_000_000
)

var smallUsers = []string{"ann", "ben"}

// prices are those of the scripted model, in billionths of a US dollar for a token.
var prices = record.Prices{Input: 3000, Output: 15000}

// budgets returns the budgets of the small tenant and of its users.
func budgets() []record.Budget {
	all := []record.Budget{{Tenant: smallTenant, NanoUSD: tenantBudget, Window: smallWindow}}
	for _, u := range smallUsers {
		all = append(all, record.Budget{Tenant: smallTenant, User: u, NanoUSD: userBudget, Window: smallWindow})
	}
	return all
}

// budgetConfig returns the same budgets for the session service. Answers are short enough for several
// concurrent reservations.
func budgetConfig(model string) string {
	usd := func(nano int64) string { return fmt.Sprintf("%.3f", float64(nano)/1e9) }
	perMillion := func(nano int64) string { return fmt.Sprintf("%.3f", float64(nano)/1e3) }
	return fmt.Sprintf(`models: {%q: {max-output-tokens: 1100, input-price: %s, output-price: %s}}
budgets: {tenants: {%s: {tenant: {max-cost-usd: %s, window: %s}, user: {max-cost-usd: %s, window: %s}}}}
`, model, perMillion(prices.Input), perMillion(prices.Output), smallTenant, usd(tenantBudget), smallWindow, usd(userBudget), smallWindow)
}
