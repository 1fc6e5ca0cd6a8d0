package spend

import (
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/budget"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// A summary that is requested between two turns, or while one waits, is reserved like any model
// call. No turn's state holds that reservation: its id follows from the request, which stays in
// the inbox until the result of the summary is written. A worker that takes the session over
// therefore finds the reservation and settles it.

// Summary is a summary of the conversation that a person requested.
type Summary struct {
	CallID string // fixed by the request
	User   string // of the request
}

func (s Summary) reservation() string { return s.CallID + ".r" }

// ReserveSummary is Reserve for a summary that no running turn pays for. At a soft limit it does
// not ask a person. It reports whether the call may be made.
func (s *Spend) ReserveSummary(sc state.Scope, r state.Resolved, req model.Request, of Summary) (int64, bool, error) {
	p := budget.Parties{Tenant: sc.Lease.Tenant, User: of.User, Session: sc.Lease.Session, SessionBudget: sc.Proto.Budget}
	if t := sc.Active; t != nil {
		p.Turn, p.TurnLimits = t.ID, t.Proto.Limits
	}
	bounds := s.Budgets.For(sc.Lease.Tenant).Bounds(p)
	if len(bounds) == 0 {
		return req.MaxOutputTokens, true, nil
	}
	var write store.Write
	s.SettleSummary(&write, of, nil) // of an attempt before this one
	ask := s.newReserve(of.reservation(), r, req, bounds)
	write.Reserve = []*store.Reserve{ask}
	if err := sc.Commit(write); err != nil {
		return 0, false, err
	}
	if d := ask.Answer.Denied; d != nil {
		s.Telemetry.Denied(sc.Outlasting(), d)
		return 0, false, nil
	}
	s.unused, s.summaryOpen = true, true
	return ask.Answer.Output, true, nil
}

// SettleSummary settles the reservation of a requested summary, whether this worker or an
// earlier one made it. It settles it as the actual use, if that is known.
func (s *Spend) SettleSummary(write *store.Write, of Summary, u *sessionv1.Usage) {
	settle := store.Settle{ID: of.reservation(), Unknown: true}
	switch {
	case s.summaryOpen && state.PromptTokens(u) > 0:
		settle.Unknown = false
		settle.Used = store.Amount{Tokens: state.PromptTokens(u) + u.GetOutputTokens(), CostNanoUSD: u.GetCostNanoUsd()}
	case s.summaryOpen && s.unused:
		settle.Unknown = false
	}
	s.summaryOpen = false
	write.Settle = append(write.Settle, settle)
}
