package calls

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// End cancels the calls of the active turn that may have begun, by this worker or an earlier one,
// gives the others the result of notMade, and adds the message with all results to a write, so
// that the transcript is well-formed. Without open calls it does nothing.
func (c *Calls) End(sc state.Scope, write *store.Write, notMade func(*sessionv1.ToolUse) *sessionv1.ToolResult) error {
	m := sc.Calling()
	if len(state.ToolUses(m)) == 0 {
		return nil
	}
	stopped := c.cancelAll(sc, c.MayHaveBegun(sc, m))
	for _, u := range state.ToolUses(m) {
		if sc.Active.HasResult(u.CallId) {
			continue
		}
		end, began := stopped[u.CallId]
		if !began {
			end = ended{result: notMade(u)}
		} else if u.Tool == agent.TaskTool {
			finished, err := c.agents.Finish(sc, u)
			if err != nil {
				return err
			}
			addSubagent(sc.Active, write, finished)
		}
		if err := sc.Active.SetResult(u.CallId, end.result); err != nil {
			return err
		}
		callEnded(sc, write, u, end, 0)
		write.Waited = append(write.Waited, u.CallId)
	}
	if sc.Active.IsCall() {
		return nil // the end of the turn has its result
	}
	return c.AddResults(sc, write, m)
}

// MayHaveBegun returns the calls of a message that have no result and may have begun. Any call of
// a message that another worker committed may run; of this worker's own messages, only the
// calls that it requested. A call that waits for an approval has not begun, one that asks a question or shows a plan has.
func (c *Calls) MayHaveBegun(sc state.Scope, m *sessionv1.Message) []*sessionv1.ToolUse {
	var uses []*sessionv1.ToolUse
	for _, u := range ready(sc, m) {
		if c.Inherited(m) || c.begun[u.CallId] {
			uses = append(uses, u)
		}
	}
	for _, u := range state.ToolUses(m) {
		if sc.Active.AsksQuestion(u.CallId) || sc.Active.AsksPlan(u.CallId) {
			uses = append(uses, u)
		}
	}
	return uses
}

// cancelAll stops calls and returns how they ended, by id.
func (c *Calls) cancelAll(sc state.Scope, uses []*sessionv1.ToolUse) map[string]ended {
	var mu sync.Mutex
	stopped := map[string]ended{}
	var group errgroup.Group
	group.SetLimit(maxParallel)
	for _, u := range uses {
		group.Go(func() error {
			r := c.cancel(sc, u)
			mu.Lock()
			defer mu.Unlock()
			stopped[u.CallId] = r
			return nil
		})
	}
	_ = group.Wait() // no call returns an error: how a call ended is its result
	return stopped
}

// Cancel stops a call that belongs to no message.
func (c *Calls) Cancel(sc state.Scope, u *sessionv1.ToolUse) { c.cancel(sc, u) }

// cancel stops a call because the turn stops, and returns how the call ended. It retries while no
// replica of tools answers. When its patience ends, it releases the session with a call whose
// outcome is unknown.
func (c *Calls) cancel(sc state.Scope, u *sessionv1.ToolUse) ended {
	if u.Tool == agent.TaskTool {
		if err := c.agents.Stop(sc, u); err != nil {
			sc.Logger.WarnContext(sc, "a subagent could not be stopped; a job ends it", "session", sc.Lease.Session, "call", u.CallId, "error", err)
		}
	}
	var result *toolsv1.CallResult
	err := sc.Patiently(sc.WarnAway("The turn is being stopped, and "+u.Tool+" cannot be asked to stop now"), func() (err error) {
		try, cancel := context.WithTimeout(sc, cancelTimeout)
		defer cancel()
		result, err = c.Client.CancelCall(try, sc.CallRef(u.CallId))
		return err
	})
	switch {
	case err != nil:
		sc.Logger.WarnContext(sc, "a call could not be cancelled", "session", sc.Lease.Session, "call", u.CallId, "error", err)
		return ended{result: Unknown(u)}
	case result == nil:
		return ended{result: Interrupted(u, "The call was stopped.")}
	default: // the call may have succeeded just before, and returned an operation
		return ended{result: toolResult(u.CallId, result), reported: result}
	}
}

// NotMade returns the model's text for a call that had no result when its turn ended. text is for
// a call that did not begin.
func NotMade(t *state.Turn, u *sessionv1.ToolUse, text string) string {
	if t.IsAsked(u.CallId) {
		return text + " It waited for a person's approval: it never started and did nothing."
	}
	if t.Client[u.Tool] != nil && t.Waiting() {
		return "The turn ended while the client was asked to make the call. It is not known whether the client has done anything."
	}
	return text
}
