package calls

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/inbox"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
	"github.com/fairlead/fairlead/services/session/internal/turn/telemetry"
	"github.com/fairlead/fairlead/services/session/internal/turn/toolset"
)

// caller makes calls that run at the same time; they share the turn's state under its lock.
type caller struct {
	calls  *Calls
	sc     state.Scope
	tokens int64 // that the turn had left before the wave: what ends in it changes that
	mu     sync.Mutex
	err    error
	stop   func()   // ends the calls of the wave
	logged sync.Map // *logged, of the calls that run, by id
}

// wave makes calls at the same time. When a rule ends the turn because of one of them, the others stop.
func (c *Calls) wave(sc state.Scope, uses []*sessionv1.ToolUse) error {
	ctx, stop := context.WithCancel(sc)
	defer stop()
	run := &caller{calls: c, sc: sc.With(ctx), stop: stop, tokens: sc.Active.TokensLeft()}
	var wave sync.WaitGroup
	for _, u := range uses {
		if c.begun != nil {
			c.begun[u.CallId] = true
		}
		wave.Go(func() {
			if err := run.call(u); err != nil {
				run.mu.Lock()
				defer run.mu.Unlock()
				run.err = errors.Join(run.err, err)
			}
		})
	}
	wave.Wait()
	return run.err
}

// call makes one call and records how it ended. It returns only errors that end the worker.
func (c *caller) call(u *sessionv1.ToolUse) error {
	sc, span := c.calls.Telemetry.StartCall(c.sc, u)
	defer span.End()
	begun := time.Now()
	var fatal workerError
	for tries := 0; ; tries++ {
		end, err := c.once(sc, u)
		switch {
		case sc.Log.Err() != nil:
			return sc.Log.Err()
		case sc.WorkerErr() != nil:
			return sc.WorkerErr()
		case errors.Is(context.Cause(sc), placement.ErrLost):
			return nil // the call is reported when the workspace has another place
		case sc.Ended():
			return c.record(u, c.calls.cancel(sc.Outlasting(), u), begun)
		case err == nil && end.result != nil:
			c.noteEdit(u, end.result)
			telemetry.EndCall(span, end.result)
			return c.record(u, end, begun)
		case err == nil && end.ask != nil:
			return c.requestApproval(u, end.ask)
		case err == nil && end.question != nil:
			return c.askQuestion(u, end.question)
		case err == nil && end.plan != "":
			return c.askPlan(u, end.plan)
		case errors.As(err, &fatal):
			return fatal.error
		case errors.Is(err, remote.ErrStaleEpoch):
			return fmt.Errorf("call %s: %w", u.CallId, store.ErrStaleEpoch)
		case state.MayRepeat(err):
			if err := pause(sc, u, err, tries); err != nil {
				return err
			}
			if c.calls.again != nil && !sc.Ended() {
				c.calls.again(sc)
			}
		default:
			sc.Logger.WarnContext(sc, "a call failed", "session", sc.Lease.Session, "call", u.CallId, "tool", u.Tool, "error", err)
			result := failedCall(u, err)
			telemetry.EndCall(span, result)
			return c.record(u, ended{result: result}, begun)
		}
	}
}

// pause waits before a call is requested again. The call keeps its id, so a repeated request
// never makes it twice.
func pause(sc state.Scope, u *sessionv1.ToolUse, err error, tries int) error {
	if tries == 0 {
		e := sc.StepEvent(state.Warning("TOOLS_RETRY", fmt.Sprintf("%s cannot be called now: %s Trying again.", u.Tool, state.Explain(err))))
		if err := sc.Emit(store.Write{Events: []*sessionv1.Event{e}}); err != nil && !sc.Ended() {
			return err
		}
	}
	timer := time.NewTimer(min(state.PeerBackoff<<min(tries, 4), 5*time.Second))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-sc.Done():
	}
	return nil
}

// workerError is an error of a call that ends the worker.
type workerError struct{ error }

// ended is the end of a CallTool stream.
type ended struct {
	result   *sessionv1.ToolResult
	reported *toolsv1.CallResult // the result from tools, if it came from there
	ask      *toolsv1.CallAsk
	question *commonv1.Question
	plan     string // that a person must approve
}

// once makes the RPC and turns its pieces into events.
func (c *caller) once(sc state.Scope, u *sessionv1.ToolUse) (ended, error) {
	if err := inbox.LearnMode(sc); err != nil {
		return ended{}, workerError{fmt.Errorf("read the permission mode: %w", err)}
	}
	r, err := c.request(sc, u)
	if err != nil {
		return ended{}, err
	}
	next, err := c.calls.Client.CallTool(sc, r)
	if err != nil {
		return ended{}, err
	}
	var output *replay // nil before the first piece
	for {
		r, err := next()
		if errors.Is(err, io.EOF) {
			return ended{}, remote.Unavailable("the tools service ended the call's stream early")
		}
		if err != nil {
			return ended{}, err
		}
		switch k := r.Kind.(type) {
		case *toolsv1.CallToolResponse_Result:
			return ended{result: toolResult(u.CallId, k.Result), reported: k.Result}, nil
		case *toolsv1.CallToolResponse_Ask:
			return ended{ask: k.Ask}, nil
		case *toolsv1.CallToolResponse_Delegated:
			return c.delegated(sc, u, k.Delegated)
		case *toolsv1.CallToolResponse_Question:
			return ended{question: k.Question}, nil
		case *toolsv1.CallToolResponse_Decision: // only for a call that begins
			c.register(u.CallId)
			if err := appendEvent(sc, decided(u.CallId, k.Decision)); err != nil {
				return ended{}, err
			}
		default:
			if output == nil {
				output = c.replay(sc, u.CallId)
			}
			if e := output.unlogged(u.CallId, r); e != nil {
				if err := appendEvent(sc, e); err != nil {
					return ended{}, err
				}
			}
		}
	}
}

func (c *caller) request(sc state.Scope, u *sessionv1.ToolUse) (_ *toolsv1.CallToolRequest, err error) {
	r := &toolsv1.CallToolRequest{
		Call: sc.CallRef(u.CallId), Tool: u.Tool, ArgumentsJson: u.ArgumentsJson,
		Profile: sc.Spec.Profile, AllowedTools: state.AllowedTools(sc.Session), Mode: sc.Mode(), Filters: sc.Filters(),
	}
	if toolset.AsksServers(u.Tool) { // other calls need no server, and its values may be secrets
		if r.Servers, err = c.calls.tools.Servers(sc); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, planned := sc.Active.PlanAnswer(u) // which the session takes itself
	if a, ok := sc.Active.Run.Approvals[u.CallId]; ok && !planned {
		r.Approval = &toolsv1.Approval{
			Digest: a.Digest, Approved: a.Approved, Comment: a.Comment, User: a.User,
			Scope: a.Scope, Rule: a.Rule, UpdatedArgumentsJson: a.Arguments,
		}
	}
	if u.Tool != state.QuestionTool { // tools has delegated that one
		r.Answer, err = sc.Active.Answer(u.CallId)
	}
	return r, err
}

// appendEvent appends an event of a running call.
func appendEvent(sc state.Scope, e *sessionv1.Event) error {
	return sc.Emit(store.Write{Events: []*sessionv1.Event{sc.StepEvent(e)}})
}

func decided(call string, d *toolsv1.CallDecision) *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_ToolCallDecision{ToolCallDecision: &sessionv1.ToolCallDecision{
		CallId: call, Decision: decision(d.Decision), Rule: d.Rule,
	}}}
}

// requestApproval records that a person must allow the call.
func (c *caller) requestApproval(u *sessionv1.ToolUse, a *toolsv1.CallAsk) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var write store.Write
	c.sc.Ask(&write, &sessionv1.ApprovalRequested{
		CallId: u.CallId, Tool: u.Tool, ArgumentsJson: u.ArgumentsJson, Digest: a.Digest, Rule: a.Rule,
		Kind: sessionv1.ApprovalKind_APPROVAL_KIND_TOOL_CALL, SuggestedRules: a.SuggestedRules,
	})
	write.Turns = []*store.TurnRow{c.sc.Active.Row()}
	return c.sc.Append(write)
}

// maxNote bounds how much of a person's arguments the model is told, in bytes.
const maxNote = 4 << 10

// askQuestion records that a person must answer a question of the call.
func (c *caller) askQuestion(u *sessionv1.ToolUse, q *commonv1.Question) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var write store.Write
	c.sc.AskQuestion(&write, u, q)
	write.Turns = []*store.TurnRow{c.sc.Active.Row()}
	return c.sc.Append(write)
}

// noteEdit tells the model that its call ran with a person's arguments.
func (c *caller) noteEdit(u *sessionv1.ToolUse, r *sessionv1.ToolResult) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.sc.Active.Run.Approvals[u.CallId]
	if a.Arguments == "" {
		return
	}
	text := a.Arguments
	if len(text) > maxNote {
		text = strings.ToValidUTF8(text[:maxNote], "") + " (shortened)"
	}
	r.Content = append(slices.Clip(r.Content), state.Text("Note: a person changed the arguments of this call and allowed it with these: "+text))
}

// record stores a call's result with the turn and appends the event of its end.
func (c *caller) record(u *sessionv1.ToolUse, end ended, begun time.Time) error {
	var finished *sessionv1.Event
	if u.Tool == agent.TaskTool {
		var err error
		if finished, err = c.calls.agents.Finish(c.sc.Outlasting(), u); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.sc.Active
	if end.reported.GetInterrupt() {
		c.stop()
		t.Run.Interrupt = fmt.Sprintf("A rule ends the turn because of the call %s of %s: %s", u.CallId, u.Tool, textOf(end.result))
	}
	if err := t.SetResult(u.CallId, end.result); err != nil {
		return err
	}
	var write store.Write
	addSubagent(t, &write, finished)
	write.Turns = []*store.TurnRow{t.Row()}
	write.StepCommitted = true // a call is recorded only once, so a turn that crashes its replicas cannot reset the count for ever
	callEnded(c.sc, &write, u, end, time.Since(begun))
	return c.sc.Append(write)
}

// textOf returns the text of a result.
func textOf(r *sessionv1.ToolResult) string {
	var all []string
	for _, c := range r.Content {
		if text := c.GetText().GetText(); text != "" {
			all = append(all, text)
		}
	}
	return strings.Join(all, " ")
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
