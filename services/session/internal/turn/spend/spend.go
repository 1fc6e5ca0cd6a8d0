// Package spend keeps a session's turns within their budgets.
//
// Before a model call it reserves in the ledger what the call may use at most; the write of the
// answer settles the reservation as the actual use. Where a budget bounds time, a running turn
// holds reserved time as well. A turn at a soft limit waits for a person, one at a hard limit ends.
package spend

import (
	"errors"
	"fmt"
	"slices"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/budget"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
	"github.com/fairlead/fairlead/services/session/internal/turn/telemetry"
)

// minOutput is the shortest answer, in tokens, that is worth a model call.
const minOutput = 1024

// Config is what all workers share.
type Config struct {
	Budgets   budget.Config // the operator's
	Queues    *Queues       // the turns of all workers that wait for a budget
	Telemetry telemetry.Telemetry
}

// Spend has the reservations of one session.
type Spend struct {
	Config

	unused      bool          // the model has not begun the call of the current reservation
	lowered     *store.Denial // the budget that allows the current call less output than the model and the turn
	asking      request       // the current model call
	measured    request       // the last model call whose size is known
	time        timeHeld
	summaryOpen bool // a reservation for a summary exists that belongs to no turn
}

// New returns the reservations of a session that has just been loaded.
func New(c Config) *Spend { return &Spend{Config: c, time: newTimeHeld()} }

// Lowered returns the limit that allowed the last call less output than the model and the turn;
// nil: none did.
func (s *Spend) Lowered() *store.Denial { return s.lowered }

// Reserve reserves in the ledger what a model call may use at most, and returns how many output
// tokens the call may ask for. It waits for the commit: no call begins while the ledger cannot
// be reached. The call must not be made unless the turn goes on. Every reservation is settled, by
// Settle or by the end of the turn. Without a budget nothing is reserved. The worker's context
// bounds the write: a reservation is never left half made.
func (s *Spend) Reserve(sc state.Scope, r state.Resolved, req model.Request) (int64, state.Outcome, error) {
	t := sc.Active
	s.lowered = nil
	var write store.Write
	if out := takeAnswer(t, &write); !out.GoesOn() {
		return 0, out, nil
	}
	bounds := s.bounds(sc)
	s.SettleBroken(t, &write)
	if len(bounds) == 0 {
		if len(write.Settle) == 0 {
			return req.MaxOutputTokens, state.Outcome{}, nil
		}
		write.Turns = []*store.TurnRow{t.Row()}
		return req.MaxOutputTokens, state.Outcome{}, sc.Append(write)
	}
	t.Run.Budget.Asked++
	ask := s.newReserve(reservationID(t.ID, t.Run.Budget.Asked), r, req, bounds)
	t.Run.Budget.Open = ask.ID
	write.Reserve, write.Turns = []*store.Reserve{ask}, []*store.TurnRow{t.Row()}
	if err := s.commitReserve(sc, write, ask); err != nil {
		return 0, state.Outcome{}, err
	}
	if d := ask.Answer.Denied; d != nil {
		t.Run.Budget.Open = ""
		if sc.Ended() {
			return 0, state.Stopped(), nil // the loop finds the cause
		}
		s.Telemetry.Denied(sc.Outlasting(), d)
		if d.Soft {
			return 0, askToPass(sc, d), nil
		}
		return 0, Exhausted(store.Write{}, d), nil
	}
	s.unused, s.lowered = true, ask.Answer.Lowered
	return ask.Answer.Output, state.Outcome{}, nil
}

// CheckPrice ends the turn if a budget bounds costs and the model's price is not known.
func (s *Spend) CheckPrice(sc state.Scope, r state.Resolved) state.Outcome {
	if !r.Unpriced {
		return state.Outcome{}
	}
	for _, b := range s.bounds(sc) {
		if b.Hard.CostNanoUSD > 0 {
			return state.Failed(store.Write{}, sessionv1.ErrorReason_ERROR_REASON_MODEL_REQUEST_REFUSED, fmt.Sprintf(
				"The model %s:%s has no known price, and a budget of costs bounds this turn. Give the model its prices under models in the configuration, or choose a model with a price.", r.Provider, r.Name))
		}
	}
	return state.Outcome{}
}

// Exhausted ends the turn at a limit.
func Exhausted(write store.Write, d *store.Denial) state.Outcome {
	return state.Partial(write, sessionv1.ErrorReason_ERROR_REASON_BUDGET_EXHAUSTED, exhaustedText(d))
}

// newReserve makes the reservation of a model call.
func (s *Spend) newReserve(id string, r state.Resolved, req model.Request, bounds []store.Bound) *store.Reserve {
	input := s.inputBound(req)
	inputPrice, outputPrice := r.Dearest(input)
	return &store.Reserve{
		ID: id, Bounds: bounds,
		Input:     store.Amount{Tokens: input, CostNanoUSD: costOf(input, inputPrice)},
		MinOutput: min(minOutput, req.MaxOutputTokens), MaxOutput: req.MaxOutputTokens, OutputPrice: outputPrice,
	}
}

// Settle ends the current reservation in the write that commits the answer: it counts as what
// the call has used. nil stands for a use that is not known. The caller makes the write's turn
// row after this call.
func (s *Spend) Settle(t *state.Turn, write *store.Write, u *sessionv1.Usage) {
	if state.PromptTokens(u) == 0 { // the provider reports no usage
		settleAs(t, write, store.Settle{Unknown: true})
		return
	}
	s.measured = s.asking
	s.measured.tokens = state.PromptTokens(u)
	settleAs(t, write, store.Settle{Used: store.Amount{Tokens: state.PromptTokens(u) + u.GetOutputTokens(), CostNanoUSD: u.GetCostNanoUsd()}})
}

// SettleStated ends the current reservation as what a runtime says that it has used, which may be nothing.
func (s *Spend) SettleStated(t *state.Turn, write *store.Write, u *sessionv1.Usage) {
	settleAs(t, write, store.Settle{Used: store.Amount{Tokens: state.PromptTokens(u) + u.GetOutputTokens(), CostNanoUSD: u.GetCostNanoUsd()}})
}

// SettleBroken ends a reservation whose call got no answer, whether of this worker or an earlier
// one. The actual use is not known and counts as reserved, unless the model is known not to
// have begun.
func (s *Spend) SettleBroken(t *state.Turn, write *store.Write) {
	settleAs(t, write, store.Settle{Unknown: !s.unused})
}

func settleAs(t *state.Turn, write *store.Write, settle store.Settle) {
	if t.Run.Budget.Open == "" {
		return
	}
	settle.ID = t.Run.Budget.Open
	t.Run.Budget.Open = ""
	write.Settle = append(write.Settle, settle)
}

// End settles the turn's reservations in the write that ends it.
func (s *Spend) End(t *state.Turn, write *store.Write) {
	if q := t.Run.Budget.Question; q != nil {
		write.Waited = append(write.Waited, q.CallID)
		t.Run.Budget.Question = nil
	}
	s.SettleBroken(t, write)
	s.SettleTime(t, write)
}

// ModelAsked records that a model call begins, which may use tokens from here on.
func (s *Spend) ModelAsked() { s.unused = false }

// ModelAnswered records whether a failed call has used tokens: a request that the provider
// refused before the answer began costs nothing.
func (s *Spend) ModelAnswered(err error) {
	var failed *model.Error
	s.unused = errors.As(err, &failed) && failed.Status != 0 && !failed.Midway
}

// Used reports whether the last model call may have used tokens.
func (s *Spend) Used() bool { return !s.unused }

// Forget drops the measured size of the conversation, which was cut.
func (s *Spend) Forget() { s.measured = request{} }

// bounds returns the budgets that hold for the active turn, without soft limits that a person
// let the turn pass.
func (s *Spend) bounds(sc state.Scope) []store.Bound {
	t := sc.Active
	scopes := s.Budgets.For(sc.Lease.Tenant)
	parties := budget.Parties{
		Tenant: sc.Lease.Tenant, User: t.Run.User, Session: sc.Lease.Session, Turn: t.ID,
		SessionBudget: sc.Proto.Budget, TurnLimits: t.Proto.Limits,
	}
	if sc.IsSubagent() {
		parties.Session = "" // the session at the top has the budget
	}
	bounds := append(scopes.Bounds(parties), s.above(sc, scopes)...)
	for i := range bounds {
		b := &bounds[i]
		for kind, pass := range map[store.LimitKind]func(){
			store.LimitTokens:   func() { b.Soft.Tokens = 0 },
			store.LimitCost:     func() { b.Soft.CostNanoUSD = 0 },
			store.LimitWallTime: func() { b.Soft.WallTime = 0 },
		} {
			if slices.Contains(t.Run.Budget.Allowed, limitName(b.Scope, kind)) {
				pass()
			}
		}
	}
	return bounds
}

// above returns the budgets of the turns for which a subagent's turn works, and of their sessions. A
// person who is asked at a soft limit is asked by these turns.
func (s *Spend) above(sc state.Scope, scopes budget.Scopes) []store.Bound {
	var all []store.Bound
	for _, a := range sc.Active.Run.Above {
		own, limits, err := a.Budgets()
		if err != nil { // written by this program from what it had read
			sc.Logger.ErrorContext(sc, "cannot read a budget", "session", sc.Lease.Session, "error", err)
			continue
		}
		for _, b := range scopes.Bounds(budget.Parties{Session: a.Session, SessionBudget: own, Turn: a.Turn, TurnLimits: limits}) {
			b.Owner, b.Soft = a.Session, store.Amount{}
			all = append(all, b)
		}
	}
	return all
}
