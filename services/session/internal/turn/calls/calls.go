// Package calls makes the calls of an assistant message through the tools service, and gives each
// one result.
//
// A call's id follows from the turn, the step and its place in the message. Tools makes a call once:
// a repeated request returns the call's result. So a successor asks again for every call without
// a result.
package calls

import (
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
	"github.com/fairlead/fairlead/services/session/internal/turn/subagent"
	"github.com/fairlead/fairlead/services/session/internal/turn/telemetry"
	"github.com/fairlead/fairlead/services/session/internal/turn/toolset"
)

const (
	// maxParallel bounds the calls of one step that run at the same time. Subagents have a limit of their own.
	maxParallel = 8
	// cancelTimeout bounds one attempt to stop a call.
	cancelTimeout = 15 * time.Second
)

// Config is what all workers share.
type Config struct {
	Client    Tools
	Agents    Agents
	Skills    Skills // nil: no session has skills
	Telemetry telemetry.Telemetry
}

// Calls has the calls of one session.
type Calls struct {
	Config
	tools   *toolset.Toolset
	agents  *subagent.Subagents
	message string          // the assistant message whose calls this worker began; "": none
	begun   map[string]bool // calls of it that were requested from tools
	notes   string          // for the model, with the next results
	setUp   bool            // the commands of the environment have run
	again   func(state.Scope)
}

// Again sets what is done before a call is requested again: a sandbox that has restarted does not know the variables of
// the turn's user any more.
func (c *Calls) Again(again func(state.Scope)) { c.again = again }

// New returns the calls of a session that has just been loaded.
func New(c Config, tools *toolset.Toolset, agents *subagent.Subagents) *Calls {
	return &Calls{Config: c, tools: tools, agents: agents}
}

// Committed records that this worker has committed an assistant message with calls.
func (c *Calls) Committed(message string) { c.message, c.begun = message, map[string]bool{} }

// Inherited reports whether another worker committed the message.
func (c *Calls) Inherited(m *sessionv1.Message) bool { return c.message != m.Name }

// Forget drops what is known of the last message, which is undone.
func (c *Calls) Forget() { c.message, c.begun = "", nil }

// AddNotes adds notes for the model to the next results.
func (c *Calls) AddNotes(notes string) {
	if notes != "" && c.notes != "" {
		c.notes += "\n"
	}
	c.notes += notes
}

// Make makes the calls of an assistant message that have no result yet. Neighbors run at the same
// time if their tools allow it. After a call because of which a rule ends the turn, no other begins. before is called with the calls that are about to be made.
func (c *Calls) Make(sc state.Scope, m *sessionv1.Message, before func([]*sessionv1.ToolUse) error) (state.Outcome, error) {
	if c.Inherited(m) {
		c.begun = nil
	}
	if err := refuseUnfit(sc, m); err != nil {
		return state.Outcome{}, err
	}
	for _, wave := range c.waves(ready(sc, m)) {
		if err := before(wave); err != nil {
			return state.Outcome{}, err
		}
		if sc.Ended() {
			return state.Stopped(), nil // the loop finds the cause
		}
		if err := c.wave(sc, wave); err != nil {
			return state.Outcome{}, err
		}
		if sc.Ended() {
			return state.Stopped(), nil // the end of the turn gives the other calls a result
		}
		if sc.Active.Run.Interrupt != "" {
			break // so does this end, which the loop makes
		}
	}
	return state.Outcome{}, nil
}

// ready returns the calls that can be made now: without a result, not the client's, and not
// waiting for an approval.
func ready(sc state.Scope, m *sessionv1.Message) []*sessionv1.ToolUse {
	var uses []*sessionv1.ToolUse
	for _, u := range state.ToolUses(m) {
		if t := sc.Active; !t.HasResult(u.CallId) && !t.IsAsked(u.CallId) && t.Client[u.Tool] == nil && !sc.IsFinish(u) {
			uses = append(uses, u)
		}
	}
	return uses
}

// AllMade reports whether no call of a message can be made now.
func AllMade(sc state.Scope, m *sessionv1.Message) bool { return len(ready(sc, m)) == 0 }

// Park lets the turn wait if calls of a message wait for an answer of a person or the client.
func Park(sc state.Scope, m *sessionv1.Message) state.Outcome {
	t, wait := sc.Active, &state.Wait{}
	for _, u := range state.ToolUses(m) {
		switch asked := t.IsAsked(u.CallId); {
		case asked:
		case t.HasResult(u.CallId) || t.Client[u.Tool] == nil:
			continue
		default:
			sc.AwaitAnswer(&wait.Write, store.PendingCall{CallID: u.CallId, Answer: store.CommandToolResult})
		}
		wait.CallIDs = append(wait.CallIDs, u.CallId)
	}
	if len(wait.CallIDs) == 0 {
		return state.Outcome{}
	}
	return state.Outcome{Wait: wait}
}

// waves groups calls: neighbors run at the same time if their tools allow it.
func (c *Calls) waves(uses []*sessionv1.ToolUse) [][]*sessionv1.ToolUse {
	var waves [][]*sessionv1.ToolUse
	parallel := false
	for _, u := range uses {
		p := c.tools.Parallel(u.Tool)
		if n := len(waves); n > 0 && p && parallel && (u.Tool == agent.TaskTool || busy(waves[n-1]) < maxParallel) {
			waves[n-1] = append(waves[n-1], u)
		} else {
			waves = append(waves, []*sessionv1.ToolUse{u})
		}
		parallel = p
	}
	return waves
}

// busy counts the calls of a wave that are not of subagents.
func busy(wave []*sessionv1.ToolUse) (n int) {
	for _, u := range wave {
		if u.Tool != agent.TaskTool {
			n++
		}
	}
	return n
}
