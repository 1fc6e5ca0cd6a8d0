package turn

import (
	"context"
	"errors"
	"slices"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/budget"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// minOutput is the shortest answer, in tokens, that is worth a model call.
const minOutput = 1024

// budgetState is the part of a turn's state about budgets.
type budgetState struct {
	Open  string `json:"open,omitempty"`  // the reservation in progress
	Asked int    `json:"asked,omitempty"` // reservations so far
	Time  bool   `json:"time,omitempty"`  // time may be reserved

	Questions int             `json:"questions,omitempty"` // put to people so far
	Question  *budgetQuestion `json:"question,omitempty"`  // the one that waits for an answer or has just got it
	Allowed   []string        `json:"allowed,omitempty"`   // limits whose soft part people let the turn pass
	unknown   unknown
}

// budgetQuestion asks whether the turn may pass the soft part of a limit.
type budgetQuestion struct {
	CallID  string `json:"call_id"`
	Limit   string `json:"limit"`
	unknown unknown
}

// reserve reserves in the ledger what a model call may use at most, and returns
// how many output tokens the call may ask for. It waits for the commit: no call
// begins while the ledger cannot be reached. If the second result is false, the
// call must not be made: the turn has ended or waits for a person. Every
// reservation is settled, by settle or by the end of the turn. Without a budget
// nothing is reserved.
//
// ctx belongs to the turn and parent to the worker, which outlives it: a
// reservation is never left half made.
func (w *Worker) reserve(ctx, parent context.Context, r Resolved, req model.Request) (int64, bool, error) {
	t := w.active
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
		write.Turns = []*store.TurnRow{t.row()}
		return req.MaxOutputTokens, true, w.log.Append(parent, write)
	}
	t.run.Budget.Asked++
	ask := w.newReserve(reservationID(t.id, t.run.Budget.Asked), r, req, bounds)
	t.run.Budget.Open = ask.ID
	write.Reserve, write.Turns = []*store.Reserve{ask}, []*store.TurnRow{t.row()}
	if err := w.commitReserve(ctx, parent, write, ask); err != nil {
		return 0, false, err
	}
	if d := ask.Answer.Denied; d != nil {
		t.run.Budget.Open = ""
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
func (w *Worker) newReserve(id string, r Resolved, req model.Request, bounds []store.Bound) *store.Reserve {
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
	if promptTokens(u) == 0 { // the provider reports no usage
		w.settleAs(write, store.Settle{Unknown: true})
		return
	}
	w.measured = w.asking
	w.measured.tokens = promptTokens(u)
	w.settleAs(write, store.Settle{Used: store.Amount{Tokens: promptTokens(u) + u.GetOutputTokens(), CostNanoUSD: u.GetCostNanoUsd()}})
}

// settleBroken ends a reservation whose call got no answer, whether of this
// worker or an earlier one. The actual use is not known and counts as reserved,
// unless the model is known not to have begun.
func (w *Worker) settleBroken(write *store.Write) {
	w.settleAs(write, store.Settle{Unknown: !w.unused})
}

func (w *Worker) settleAs(write *store.Write, s store.Settle) {
	t := w.active
	if t.run.Budget.Open == "" {
		return
	}
	s.ID = t.run.Budget.Open
	t.run.Budget.Open = ""
	write.Settle = append(write.Settle, s)
}

// endBudget settles the turn's reservations in the write that ends it.
func (w *Worker) endBudget(write *store.Write) {
	t := w.active
	if q := t.run.Budget.Question; q != nil {
		write.Waited = append(write.Waited, q.CallID)
		t.run.Budget.Question = nil
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
	t := w.active
	bounds := w.deps.Budgets.For(w.lease.Tenant).Bounds(budget.Parties{
		Tenant: w.lease.Tenant, User: t.run.User, Session: w.lease.Session, Turn: t.id,
		SessionBudget: w.session.Budget, TurnLimits: t.turn.Limits,
	})
	for i := range bounds {
		b := &bounds[i]
		for kind, soft := range map[store.LimitKind]func(){
			store.LimitTokens:   func() { b.Soft.Tokens = 0 },
			store.LimitCost:     func() { b.Soft.CostNanoUSD = 0 },
			store.LimitWallTime: func() { b.Soft.WallTime = 0 },
		} {
			if slices.Contains(t.run.Budget.Allowed, limitName(b.Scope, kind)) {
				soft()
			}
		}
	}
	return bounds
}
