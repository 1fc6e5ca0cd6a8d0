package turn

import (
	"context"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/budget"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// A summary that is requested between two turns, or while one waits, is
// reserved like any model call. No turn's state holds that reservation: its id
// follows from the request, which stays in the inbox until the result of the
// summary is written. A worker that takes the session over therefore finds the
// reservation and settles it.

// unbudgeted reports whether no running turn can hold the reservation of a
// summary.
func (w *Worker) unbudgeted() bool { return w.Active == nil || w.Active.Waiting() }

// summaryReservation returns the reservation id of a requested compaction.
func summaryReservation(s shortening) string { return s.callID + ".r" }

// reserveSummary reserves what a summary may use and returns how many tokens it
// may have. At a soft limit it asks no one: the view is cut then, as at a hard
// one.
func (w *Worker) reserveSummary(ctx, parent context.Context, r state.Resolved, req model.Request, s shortening) (int64, bool, error) {
	if !w.unbudgeted() {
		return w.reserve(ctx, parent, r, req)
	}
	p := budget.Parties{Tenant: w.Lease.Tenant, User: s.user, Session: w.Lease.Session, SessionBudget: w.Proto.Budget}
	if t := w.Active; t != nil {
		p.Turn, p.TurnLimits = t.ID, t.Proto.Limits
	}
	bounds := w.deps.Budgets.For(w.Lease.Tenant).Bounds(p)
	if len(bounds) == 0 {
		return req.MaxOutputTokens, true, nil
	}
	var write store.Write
	w.settleSummary(&write, s, nil) // of an attempt before this one
	ask := w.newReserve(summaryReservation(s), r, req, bounds)
	write.Reserve = []*store.Reserve{ask}
	if err := w.Log.Commit(parent, write); err != nil {
		return 0, false, err
	}
	if d := ask.Answer.Denied; d != nil {
		w.deps.Metrics.denied(parent, d)
		return 0, false, nil
	}
	w.unused, w.summaryOpen = true, true
	return ask.Answer.Output, true, nil
}

// settleSummary settles the reservation of a requested compaction, whether this
// worker or an earlier one made it. It settles it as the actual use, if that is
// known.
func (w *Worker) settleSummary(write *store.Write, s shortening, u *sessionv1.Usage) {
	if s.trigger != triggerRequested {
		return
	}
	settle := store.Settle{ID: summaryReservation(s), Unknown: true}
	switch {
	case w.summaryOpen && state.PromptTokens(u) > 0:
		settle.Unknown = false
		settle.Used = store.Amount{Tokens: state.PromptTokens(u) + u.GetOutputTokens(), CostNanoUSD: u.GetCostNanoUsd()}
	case w.summaryOpen && w.unused:
		settle.Unknown = false
	}
	w.summaryOpen = false
	write.Settle = append(write.Settle, settle)
}
