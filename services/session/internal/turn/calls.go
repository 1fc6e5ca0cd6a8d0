package turn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
	"github.com/fairlead/fairlead/services/session/internal/turn/telemetry"
)

const (
	// maxParallelCalls bounds the calls of one step that run at the same time.
	maxParallelCalls = 8
	// cancelTimeout bounds one attempt to stop a call.
	cancelTimeout = 15 * time.Second
	// toolsBackoff is the wait before tools is tried again.
	toolsBackoff = 500 * time.Millisecond
)

// calls makes the calls of an assistant message that have no result yet. It
// commits the results when all calls have one; otherwise the turn waits.
func (w *Worker) calls(ctx, parent context.Context, m *sessionv1.Message) error {
	t := w.Active
	ctx, stop := w.untilLost(ctx)
	defer stop()
	err := w.warm.wait(ctx, w.tellAway(ctx, "The workspace cannot be made now"))
	if ctx.Err() != nil {
		return nil // the loop finds the cause; the workspace may still be in the making
	}
	if err != nil && w.isGone(w.Place()) {
		return nil // the loop restores the workspace
	}
	if err != nil {
		return w.fail(parent, store.Write{}, sessionv1.ErrorReason_ERROR_REASON_TOOLS_UNAVAILABLE,
			"The workspace could not be made: "+state.Explain(err)+" "+workspaceAdvice(err))
	}
	if err := w.tellRepositories(parent); err != nil {
		return err
	}
	if w.parallelTools == nil { // a successor has not read the list of tools yet
		if _, err := w.modelTools(ctx); err != nil && ctx.Err() == nil {
			w.Logger.WarnContext(ctx, "cannot list the tools; calls run one after the other", "session", w.Lease.Session, "error", err)
		}
	}
	if w.answered != m.Name {
		w.begun = nil // another worker committed the message
	}
	if err := refuseUnfit(parent, w, m); err != nil {
		return err
	}
	c := &caller{w: w, parent: parent}
	for _, wave := range w.waves(w.openUses(m)) {
		if err := w.keepFiles(ctx, parent, m, wave); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		c.runWave(ctx, wave)
		if err := c.failure(); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return nil // the loop finds the cause, and closeCalls gives the other calls a result
		}
	}
	if err := w.takeCommands(parent); err != nil || w.Active != t || t.Stopped {
		return err // a stopped turn must not wait for an answer
	}
	if open := w.unanswered(m); len(open) > 0 {
		return w.park(parent, open)
	}
	if len(w.openUses(m)) > 0 {
		return nil // approved meanwhile: the loop calls this again
	}
	return w.commitResults(parent, m)
}

// openUses returns the calls that can be made now: without a result, not the
// client's, and not waiting for an approval.
func (w *Worker) openUses(m *sessionv1.Message) []*sessionv1.ToolUse {
	var open []*sessionv1.ToolUse
	for _, u := range state.ToolUses(m) {
		_, done := w.Active.Run.Results[u.CallId]
		_, asked := w.Active.Run.Asked[u.CallId]
		if !done && !asked && w.Active.Client[u.Tool] == nil && !w.IsFinish(u) {
			open = append(open, u)
		}
	}
	return open
}

// unanswered returns the calls that wait for an answer of a person or the
// client.
func (w *Worker) unanswered(m *sessionv1.Message) []*sessionv1.ToolUse {
	var open []*sessionv1.ToolUse
	for _, u := range state.ToolUses(m) {
		_, done := w.Active.Run.Results[u.CallId]
		_, asked := w.Active.Run.Asked[u.CallId]
		if asked || !done && w.Active.Client[u.Tool] != nil {
			open = append(open, u)
		}
	}
	return open
}

// waves groups calls: neighbors run at the same time if their tools allow it.
func (w *Worker) waves(uses []*sessionv1.ToolUse) [][]*sessionv1.ToolUse {
	var waves [][]*sessionv1.ToolUse
	parallel := false
	for _, u := range uses {
		p := w.parallelTools[u.Tool]
		if n := len(waves); n > 0 && p && parallel && len(waves[n-1]) < maxParallelCalls {
			waves[n-1] = append(waves[n-1], u)
		} else {
			waves = append(waves, []*sessionv1.ToolUse{u})
		}
		parallel = p
	}
	return waves
}

// caller makes calls; concurrent calls share the turn's state under its lock.
type caller struct {
	w      *Worker
	parent context.Context //nolint:containedctx // the worker's: what is recorded outlives the turn's own context
	mu     sync.Mutex
	err    error
	shown  sync.Map // *shown, of the calls that run, by id
}

func (c *caller) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *caller) runWave(ctx context.Context, uses []*sessionv1.ToolUse) {
	var wave sync.WaitGroup
	for _, u := range uses {
		if c.w.begun != nil {
			c.w.begun[u.CallId] = true
		}
		wave.Go(func() {
			if err := c.call(ctx, u); err != nil {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.err = errors.Join(c.err, err)
			}
		})
	}
	wave.Wait()
}

// call makes one call and records how it ended. It returns only errors that end the
// worker.
func (c *caller) call(ctx context.Context, u *sessionv1.ToolUse) error {
	sc, span := c.w.deps.Telemetry.StartCall(c.w.scope(ctx, c.parent), u)
	defer span.End()
	ctx = sc.Context
	begun := time.Now()
	for tries := 0; ; tries++ {
		end, err := c.once(ctx, u)
		switch {
		case c.w.Log.Err() != nil:
			return c.w.Log.Err()
		case c.parent.Err() != nil:
			return context.Cause(c.parent) //nolint:contextcheck // the worker has to stop
		case nodeLost(ctx):
			return nil // the call is reported when the workspace has another place
		case ctx.Err() != nil:
			return c.record(u, c.cancel(u), begun) //nolint:contextcheck // ctx has ended; cancelling has a context of its own
		case err == nil && end.result != nil:
			telemetry.EndCall(span, end.result)
			return c.record(u, end, begun)
		case err == nil && end.ask != nil:
			return c.ask(u, end.ask)
		case apierr.Reason(err) == "STALE_EPOCH":
			return fmt.Errorf("call %s: %w", u.CallId, store.ErrStaleEpoch)
		case state.MayRepeat(err):
			if err := c.pause(ctx, u, err, tries); err != nil {
				return err
			}
		default:
			c.w.Logger.WarnContext(ctx, "a call failed", "session", c.w.Lease.Session, "call", u.CallId, "tool", u.Tool, "error", err)
			result := failedCall(u, err)
			telemetry.EndCall(span, result)
			return c.record(u, ended{result: result}, begun)
		}
	}
}

// pause waits before a call is requested again. The call keeps its id, so a
// repeated request never makes it twice.
func (c *caller) pause(ctx context.Context, u *sessionv1.ToolUse, err error, tries int) error {
	if tries == 0 {
		e := c.w.Event(c.w.Active.Step(), &sessionv1.Event{Body: &sessionv1.Event_Warning{Warning: &sessionv1.Warning{
			Reason: "TOOLS_RETRY", Message: fmt.Sprintf("%s cannot be called now: %s Trying again.", u.Tool, state.Explain(err)),
		}}})
		if err := c.w.Log.Append(ctx, store.Write{Events: []*sessionv1.Event{e}}); err != nil && ctx.Err() == nil {
			return err
		}
	}
	timer := time.NewTimer(min(toolsBackoff<<min(tries, 4), 5*time.Second))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}

// ended is the end of a CallTool stream.
type ended struct {
	result *sessionv1.ToolResult
	told   *toolsv1.CallResult // the result from tools, if it came from there
	ask    *toolsv1.CallAsk
}

// once makes the RPC and turns its pieces into events.
func (c *caller) once(ctx context.Context, u *sessionv1.ToolUse) (ended, error) {
	stream, err := c.w.deps.Calls.CallTool(ctx, c.request(u))
	if err != nil {
		return ended{}, err
	}
	var told *replay // nil before the first piece
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return ended{}, status.Error(codes.Unavailable, "the tools service ended the call's stream early")
		}
		if err != nil {
			return ended{}, err
		}
		switch k := r.Kind.(type) {
		case *toolsv1.CallToolResponse_Result:
			return ended{result: toolResult(u.CallId, k.Result), told: k.Result}, nil
		case *toolsv1.CallToolResponse_Ask:
			return ended{ask: k.Ask}, nil
		case *toolsv1.CallToolResponse_Delegated:
			result, err := c.delegated(ctx, u, k.Delegated)
			return ended{result: result}, err
		case *toolsv1.CallToolResponse_Decision: // only for a call that begins
			c.begin(u.CallId)
			if err := c.append(ctx, decided(u.CallId, k.Decision)); err != nil {
				return ended{}, err
			}
		default:
			if told == nil {
				told = c.replay(ctx, u.CallId)
			}
			if e := told.news(u.CallId, r); e != nil {
				if err := c.append(ctx, e); err != nil {
					return ended{}, err
				}
			}
		}
	}
}

func (c *caller) request(u *sessionv1.ToolUse) *toolsv1.CallToolRequest {
	r := &toolsv1.CallToolRequest{
		Call: c.w.CallRef(u.CallId), Tool: u.Tool, ArgumentsJson: u.ArgumentsJson,
		Profile: c.w.Spec.Profile, AllowedTools: c.w.Spec.Tools,
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if a, ok := c.w.Active.Run.Approvals[u.CallId]; ok {
		r.Approval = &toolsv1.Approval{Digest: a.Digest, Approved: a.Approved, Comment: a.Comment, User: a.User}
	}
	return r
}

// append appends an event of a running call.
func (c *caller) append(ctx context.Context, e *sessionv1.Event) error {
	return c.w.Log.Append(ctx, store.Write{Events: []*sessionv1.Event{c.w.Event(c.w.Active.Step(), e)}})
}

func decided(call string, d *toolsv1.CallDecision) *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_ToolCallDecision{ToolCallDecision: &sessionv1.ToolCallDecision{
		CallId: call, Decision: decision(d.Decision), Rule: d.Rule,
	}}}
}

// ask records that a person must allow the call.
func (c *caller) ask(u *sessionv1.ToolUse, a *toolsv1.CallAsk) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.w.Active
	t.Run.Asked[u.CallId] = state.Question{Digest: a.Digest, Rule: a.Rule}
	delete(t.Run.Approvals, u.CallId) // an answer to an earlier question does not count
	e := c.w.Event(c.w.Active.Step(), &sessionv1.Event{Body: &sessionv1.Event_ApprovalRequested{ApprovalRequested: &sessionv1.ApprovalRequested{
		CallId: u.CallId, Tool: u.Tool, ArgumentsJson: u.ArgumentsJson, Digest: a.Digest, Rule: a.Rule,
	}}})
	write := store.Write{Events: []*sessionv1.Event{e}, Turns: []*store.TurnRow{t.Row()}}
	c.w.AwaitAnswer(&write, store.PendingCall{CallID: u.CallId, Answer: store.CommandApproval, Digest: a.Digest})
	return c.w.Log.Append(c.parent, write)
}

// record stores a call's result with the turn and appends the event of its end.
func (c *caller) record(u *sessionv1.ToolUse, end ended, begun time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.w.Active
	if err := t.SetResult(u.CallId, end.result); err != nil {
		return err
	}
	write := store.Write{
		Turns:         []*store.TurnRow{t.Row()},
		StepCommitted: true, // a call is recorded only once, so a turn that crashes its replicas cannot reset the count for ever
	}
	c.w.callEnded(&write, u, end, time.Since(begun))
	return c.w.Log.Append(c.parent, write)
}

// cancel stops a call because the turn stops, and returns how the call ended. It retries while no replica of
// tools answers. When its patience ends, it releases the session with a call whose outcome is unknown.
func (c *caller) cancel(u *sessionv1.ToolUse) ended {
	ctx := c.parent
	var resp *toolsv1.CancelCallResponse
	err := c.w.patiently(ctx, c.w.tellAway(ctx, "The turn is being stopped, and "+u.Tool+" cannot be asked to stop now"), func() (err error) {
		try, cancel := context.WithTimeout(ctx, cancelTimeout)
		defer cancel()
		resp, err = c.w.deps.Calls.CancelCall(try, &toolsv1.CancelCallRequest{Call: c.w.CallRef(u.CallId)})
		return err
	})
	switch {
	case err != nil:
		c.w.Logger.WarnContext(ctx, "a call could not be cancelled", "session", c.w.Lease.Session, "call", u.CallId, "error", err)
		return ended{result: failedCall(u, status.Error(codes.Unknown, "cancel failed"))}
	case resp.Result == nil:
		return ended{result: interruptedCall(u, "The call was stopped.")}
	default: // the call may have succeeded just before, and returned an operation
		return ended{result: toolResult(u.CallId, resp.Result), told: resp.Result}
	}
}

// callRef returns the reference under which a call is made.
func (w *Worker) callRef(callID string) *commonv1.CallRef {
	p := w.Place()
	return &commonv1.CallRef{Session: "sessions/" + w.Lease.Session, Epoch: w.Lease.Epoch, CallId: callID, Node: p.Node, WorkspaceGeneration: p.Generation}
}

func decision(d toolsv1.CallDecisionKind) sessionv1.Decision {
	switch d {
	case toolsv1.CallDecisionKind_CALL_DECISION_KIND_ALLOW:
		return sessionv1.Decision_DECISION_ALLOW
	case toolsv1.CallDecisionKind_CALL_DECISION_KIND_ASK:
		return sessionv1.Decision_DECISION_ASK
	case toolsv1.CallDecisionKind_CALL_DECISION_KIND_DENY:
		return sessionv1.Decision_DECISION_DENY
	default:
		return sessionv1.Decision_DECISION_UNSPECIFIED
	}
}
