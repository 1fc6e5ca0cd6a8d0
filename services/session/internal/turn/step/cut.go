package step

import (
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/eventlog"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/modelview"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// keep returns the write that keeps an answer that was cut off, with what its call has used. The provider counts at
// the end of an answer, so that is estimated. The budgets count what the call had reserved.
func (s *Stepper) keep(sc state.Scope, r state.Resolved, next Next, answer *partialAnswer) store.Write {
	write := answer.keep()
	if !s.Spend.Used() || next.Own != nil { // a runtime states its own use
		return write
	}
	write.AddUsage = estimate(next.Request, answer.bytes)
	write.AddUsage.CostNanoUsd = r.Cost(write.AddUsage)
	if sc.Active.Proto.Usage == nil {
		sc.Active.Proto.Usage = &sessionv1.Usage{}
	}
	eventlog.AddUsage(sc.Active.Proto.Usage, write.AddUsage)
	return write
}

// bytesOfToken is how many bytes of an answer count as a token.
const bytesOfToken = 4

// estimate returns the use of a request and the first bytes of its answer.
func estimate(r model.Request, said int64) *sessionv1.Usage {
	n := modelview.TextTokens(r.System) + modelview.Tokens(r.Messages)
	for _, t := range r.Tools {
		n += modelview.TextTokens(t.Name) + modelview.TextTokens(t.Description) + modelview.TextTokens(string(t.InputSchema))
	}
	return &sessionv1.Usage{InputTokens: n, OutputTokens: (said + bytesOfToken - 1) / bytesOfToken, Estimated: true}
}
