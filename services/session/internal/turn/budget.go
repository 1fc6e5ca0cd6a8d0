package turn

import (
	"context"
	"errors"
	"slices"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/budget"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// minOutput is the shortest answer, in tokens, that is worth a model call.
const minOutput = 1024

// reserve reserves in the ledger what a model call may use at most, and returns
// how many output tokens the call may ask for. It waits for the commit: no call
// begins while the ledger cannot be reached. If the second result is false, the
// call must not be made: the turn has ended or waits for a person. Every
// reservation is settled, by settle or by the end of the turn. Without a budget
// nothing is reserved.
//
// ctx belongs to the turn and parent to the worker, which outlives it: a
// reservation is never left half made.
func (w *Worker) reserve(ctx, parent context.Context, r state.Resolved, req model.Request) (int64, bool, error) {
	t := w.Active
	w.lowered = nil
	var write store.Write
	if ok, err := w.takeBudgetAnswer(parent, &write); err != nil || !ok {
		return 0, false, err
	}
	bounds := w.bounds()
	w.settleBroken(&write)
	if len(bounds) == 0 {
		if len(write.Settle) == 0 {
			return req.MaxOutputTokens, true, nil
		}
		write.Turns = []*store.TurnRow{t.Row()}
		return req.MaxOutputTokens, true, w.Log.Append(parent, write)
	}
	t.Run.Budget.Asked++
	ask := w.newReserve(reservationID(t.ID, t.Run.Budget.Asked), r, req, bounds)
	t.Run.Budget.Open = ask.ID
	write.Reserve, write.Turns = []*store.Reserve{ask}, []*store.TurnRow{t.Row()}
	if err := w.commitReserve(ctx, parent, write, ask); err != nil {
		return 0, false, err
	}
	if d := ask.Answer.Denied; d != nil {
		t.Run.Budget.Open = ""
		if ctx.Err() != nil {
			return 0, false, nil //nolint:nilerr // the loop sees why
		}
		w.deps.Metrics.denied(parent, d)
		if d.Soft {
			return 0, false, w.askBudget(parent, d)
		}
		return 0, false, w.exhausted(parent, store.Write{}, d)
	}
	w.unused, w.lowered = true, ask.Answer.Lowered
	return ask.Answer.Output, true, nil
}

// exhausted ends the turn at a limit.
func (w *Worker) exhausted(ctx context.Context, write store.Write, d *store.Denial) error {
	return w.partial(ctx, write, sessionv1.ErrorReason_ERROR_REASON_BUDGET_EXHAUSTED, exhausted(d))
}

// newReserve makes the reservation of a model call.
func (w *Worker) newReserve(id string, r state.Resolved, req model.Request, bounds []store.Bound) *store.Reserve {
	input := w.inputBound(req)
	inputPrice, outputPrice := r.Dearest(input)
	return &store.Reserve{
		ID: id, Bounds: bounds,
		Input:     store.Amount{Tokens: input, CostNanoUSD: costOf(input, inputPrice)},
		MinOutput: min(minOutput, req.MaxOutputTokens), MaxOutput: req.MaxOutputTokens, OutputPrice: outputPrice,
	}
}

// settle ends the current reservation in the write that commits the answer: it
// counts as what the call has used. The caller makes the write's turn row after
// this call.
func (w *Worker) settle(write *store.Write, u *sessionv1.Usage) {
	if state.PromptTokens(u) == 0 { // the provider reports no usage
		w.settleAs(write, store.Settle{Unknown: true})
		return
	}
	w.measured = w.asking
	w.measured.tokens = state.PromptTokens(u)
	w.settleAs(write, store.Settle{Used: store.Amount{Tokens: state.PromptTokens(u) + u.GetOutputTokens(), CostNanoUSD: u.GetCostNanoUsd()}})
}

// settleBroken ends a reservation whose call got no answer, whether of this
// worker or an earlier one. The actual use is not known and counts as reserved,
// unless the model is known not to have begun.
func (w *Worker) settleBroken(write *store.Write) {
	w.settleAs(write, store.Settle{Unknown: !w.unused})
}

func (w *Worker) settleAs(write *store.Write, s store.Settle) {
	t := w.Active
	if t.Run.Budget.Open == "" {
		return
	}
	s.ID = t.Run.Budget.Open
	t.Run.Budget.Open = ""
	write.Settle = append(write.Settle, s)
}

// endBudget settles the turn's reservations in the write that ends it.
func (w *Worker) endBudget(write *store.Write) {
	t := w.Active
	if q := t.Run.Budget.Question; q != nil {
		write.Waited = append(write.Waited, q.CallID)
		t.Run.Budget.Question = nil
	}
	w.settleBroken(write)
	w.settleTime(write)
}

// modelAsked notes that a call begins, which may use tokens from here on.
func (w *Worker) modelAsked() { w.unused = false }

// modelAnswered notes whether a failed call has used tokens: a request that the
// provider refused before the answer began costs nothing.
func (w *Worker) modelAnswered(err error) {
	var failed *model.Error
	w.unused = errors.As(err, &failed) && failed.Status != 0 && !failed.Midway
}

// bounds returns the budgets that hold for the active turn, without soft limits
// that a person let the turn pass.
func (w *Worker) bounds() []store.Bound {
	t := w.Active
	bounds := w.deps.Budgets.For(w.Lease.Tenant).Bounds(budget.Parties{
		Tenant: w.Lease.Tenant, User: t.Run.User, Session: w.Lease.Session, Turn: t.ID,
		SessionBudget: w.Proto.Budget, TurnLimits: t.Proto.Limits,
	})
	for i := range bounds {
		b := &bounds[i]
		for kind, soft := range map[store.LimitKind]func(){
			store.LimitTokens:   func() { b.Soft.Tokens = 0 },
			store.LimitCost:     func() { b.Soft.CostNanoUSD = 0 },
			store.LimitWallTime: func() { b.Soft.WallTime = 0 },
		} {
			if slices.Contains(t.Run.Budget.Allowed, limitName(b.Scope, kind)) {
				soft()
			}
		}
	}
	return bounds
}
