package modelproxy

import (
	"context"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/modelapi"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/spend"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

const (
	// minOutput is the shortest answer, in tokens, that is worth a call.
	minOutput = 1024
	// laterWait is the wait that a client is told when other calls may return a part of what they have reserved.
	laterWait = 2 * time.Second
	// settleTime bounds the settlement of a call whose client may have gone.
	settleTime = 10 * time.Second
)

// reservation is what a call has reserved in the ledger.
type reservation struct {
	id   string // empty: no budget bounds the call
	keep store.Key
}

// reserve reserves what the call may use at most: tokens of input, and of output. It returns how many tokens of output
// the call may ask for. inputBound is asked only if a budget bounds the call.
func (c *call) reserve(inputBound func() int64, output int64) (int64, *modelapi.Failure) {
	bounds := c.Budgets.For(c.payer.Tenant).Bounds(c.payer.Parties)
	if len(bounds) == 0 {
		return output, nil
	}
	if c.entry.Unlisted && slices.ContainsFunc(bounds, func(b store.Bound) bool { return b.Hard.CostNanoUSD > 0 }) {
		return 0, refused(http.StatusBadRequest, "the model %s has no known price, and a budget of costs bounds this call; ask the operator to give the model its prices", c.entry.Name)
	}
	input := inputBound()
	inputPrice, outputPrice := c.entry.MaxTokenCost(input)
	ask := &store.Reserve{
		ID: "proxy." + id.New(), Bounds: bounds,
		Input:     store.Amount{Tokens: input, CostNanoUSD: int64(math.Ceil(float64(input) * inputPrice))},
		MinOutput: min(minOutput, output), MaxOutput: output, OutputPrice: outputPrice,
	}
	key := store.Key{Tenant: c.payer.Tenant, Session: c.payer.Session}
	if err := c.Ledger.Spend(c.r.Context(), store.Spending{Key: key, Reserve: []*store.Reserve{ask}, Keep: maxCall + settleTime}); err != nil {
		c.Log.ErrorContext(c.r.Context(), "cannot reserve a call in the budgets", "error", err)
		return 0, &modelapi.Failure{
			Status: http.StatusServiceUnavailable, Retry: modelapi.Always, After: time.Second,
			Message: "the budgets cannot be read now; try again",
		}
	}
	if d := ask.Answer.Denied; d != nil {
		c.Metrics.Denied(c.r.Context(), d)
		return 0, denied(d)
	}
	c.reserved = reservation{id: ask.ID, keep: key}
	return ask.Answer.Output, nil
}

// denied returns the answer to a call that a budget does not allow.
func denied(d *store.Denial) *modelapi.Failure {
	f := &modelapi.Failure{Status: http.StatusTooManyRequests, Code: "insufficient_quota", Retry: modelapi.Never, Message: spend.Explain(d)}
	if d.Later && !d.Soft {
		f.Code, f.Retry, f.After = "rate_limit_exceeded", modelapi.Always, laterWait
	}
	return f
}

// settle ends the reservation. A use that is not known counts as reserved, unless the model has not begun.
func (c *call) settle() {
	if c.usage != nil && c.payer.Used != nil {
		c.payer.Used(c.entry.Name, c.usage)
	}
	if c.reserved.id == "" {
		return
	}
	s := store.Settle{ID: c.reserved.id, Unknown: c.begun}
	if c.usage != nil {
		s = store.Settle{ID: c.reserved.id, Used: store.Amount{
			Tokens: state.PromptTokens(c.usage) + c.usage.GetOutputTokens(), CostNanoUSD: c.usage.GetCostNanoUsd(),
		}}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.r.Context()), settleTime)
	defer cancel()
	if err := c.Ledger.Spend(ctx, store.Spending{Key: c.reserved.keep, Settle: []store.Settle{s}}); err != nil {
		// The job of the reservation settles it later, as reserved.
		c.Log.WarnContext(ctx, "a call could not be settled in the budgets", "reservation", strings.TrimPrefix(c.reserved.id, "proxy."), "error", err)
	}
}
