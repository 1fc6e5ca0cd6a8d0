// Package budget defines what may be spent: the operator's budgets, and which of them hold for a turn.
// Package turn/spend spends it, and the store keeps the ledger.
package budget

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Limits are one budget in the operator's configuration. A zero bounds nothing.
type Limits struct {
	MaxTokens   int64         `key:"max-tokens" help:"the most tokens of all kinds, cache reads and writes too; 0: no limit"`
	MaxCostUSD  float64       `key:"max-cost-usd" help:"the most that model calls may cost by the price table, in US dollars; 0: no limit"`
	MaxWallTime time.Duration `key:"max-wall-time" help:"the most time that turns may run, without their time in QUEUED and WAITING; 0: no limit"`
	SoftPercent int           `key:"soft-percent" help:"the share of each of these limits, in percent, at which a turn waits until a person allows it to continue; 0: it does not wait"`
}

// Windowed is a budget whose use is counted anew in each window.
type Windowed struct {
	Limits `key:",inline"`
	Window time.Duration `key:"window" help:"how long until counting restarts, such as 24h, aligned to 1970-01-01 in UTC; 0: never"`
}

// Scopes are the budgets of one tenant.
type Scopes struct {
	Turn    Limits   `key:"turn"`
	Session Limits   `key:"session"`
	User    Windowed `key:"user"`
	Tenant  Windowed `key:"tenant"`
}

// Config has all budgets of the operator.
type Config struct {
	Scopes  `key:",inline"`
	Wait    time.Duration     `key:"wait" help:"how long a call waits that does not fit only because running calls may still use the rest, before its turn ends; 0: it does not wait"`
	Tenants map[string]Scopes `key:"tenants" help:"budgets of single tenants; a value set here replaces the value for all tenants"`
}

// For returns the budgets that hold for a tenant.
func (c Config) For(tenant string) Scopes {
	own := c.Tenants[tenant]
	return Scopes{
		Turn: c.Turn.with(own.Turn), Session: c.Session.with(own.Session),
		User: c.User.with(own.User), Tenant: c.Tenant.with(own.Tenant),
	}
}

func (l Limits) with(own Limits) Limits {
	take(&l.MaxTokens, own.MaxTokens)
	take(&l.MaxCostUSD, own.MaxCostUSD)
	take(&l.MaxWallTime, own.MaxWallTime)
	take(&l.SoftPercent, own.SoftPercent)
	return l
}

func (w Windowed) with(own Windowed) Windowed {
	w.Limits = w.Limits.with(own.Limits)
	take(&w.Window, own.Window)
	return w
}

func take[T comparable](dst *T, v T) {
	var none T
	if v != none {
		*dst = v
	}
}

// nanoUSD is the number of billionths in a dollar.
const nanoUSD = 1e9

// MaxCostNanoUSD returns the highest cost, in billionths of a US dollar.
func (l Limits) MaxCostNanoUSD() int64 { return int64(math.Round(l.MaxCostUSD * nanoUSD)) }

// Validate reports every fault at once.
func (l Limits) Validate() error {
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fault(l.MaxTokens < 0, "max-tokens: %d is negative", l.MaxTokens)
	fault(!(l.MaxCostUSD >= 0 && l.MaxCostUSD <= 1e9), "max-cost-usd: %v is not between 0 and a billion", l.MaxCostUSD)
	fault(l.MaxWallTime < 0, "max-wall-time: %v is negative", l.MaxWallTime)
	fault(l.SoftPercent < 0 || l.SoftPercent > 100, "soft-percent: %d is not between 0 and 100", l.SoftPercent)
	return errors.Join(faults...)
}

// Validate reports every fault at once.
func (w Windowed) Validate() error {
	if w.Window < 0 || w.Window%time.Second != 0 {
		return errors.Join(w.Limits.Validate(), fmt.Errorf("window: %v is not a whole number of seconds from 0", w.Window))
	}
	return w.Limits.Validate()
}
