package subagent

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/types/known/durationpb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/jobs"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// Prefix begins the id of every subagent's session.
const Prefix = "sub-"

// leastTokens is the least share of the turn's output tokens with which a subagent begins.
const leastTokens = 256

// childKey returns the key of a call's child.
func childKey(tenant, call string) store.Key {
	sum := sha256.Sum256([]byte(call))
	return store.Key{Tenant: tenant, Session: Prefix + strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:15]))}
}

// turnName returns the name of a child's only turn.
func turnName(k store.Key) string {
	return "sessions/" + k.Session + "/turns/" + strings.TrimPrefix(k.Session, Prefix)
}

// task has the arguments of a call, which tools has checked.
type task struct {
	Description string `json:"description"`
	Prompt      string `json:"prompt"`
	Subagent    string `json:"subagent_type"`
}

// describe returns the description in a call's arguments.
func describe(sc state.Scope, call string) string {
	for _, u := range state.ToolUses(sc.Calling()) {
		if u.CallId == call {
			var t task
			_ = json.Unmarshal([]byte(u.ArgumentsJson), &t) // tools has checked it
			return t.Description
		}
	}
	return ""
}

// ensure makes the child of a call, or finds it. The arguments are the model's, or those of a person who has
// changed them. A refusal is a result for the model.
func (s *Subagents) ensure(sc state.Scope, u *sessionv1.ToolUse, arguments string, tokens int64) (*child, *toolsv1.CallResult, error) {
	if c, err := s.find(sc, u); err != nil || c != nil {
		return c, nil, err
	}
	var t task
	if fault := json.Unmarshal([]byte(arguments), &t); fault != nil {
		return nil, refused("The arguments cannot be read: " + fault.Error()), nil //nolint:nilerr // a result tells the model
	}
	made, refusal, err := s.narrowed(sc, t.Subagent)
	if err != nil || refusal != nil {
		return nil, refusal, err
	}
	n, refusal, err := s.newSession(sc, u, t, made, tokens)
	if err != nil || refusal != nil {
		return nil, refusal, err
	}
	if err := sc.Store.PutAgentRevision(sc, n.Tenant, store.AgentRevision{Name: n.Agent, Revision: n.AgentRevision, Spec: made.Spec.Marshal()}); err != nil {
		return nil, nil, fmt.Errorf("keep the spec of a subagent: %w", err)
	}
	refusal, err = s.create(sc, n)
	if err != nil || refusal != nil {
		return nil, refusal, err
	}
	c, err := s.attach(sc, &child{call: u.CallId, key: n.Key, turn: turnName(n.Key), name: t.Subagent})
	return c, nil, err
}

// create makes the child once there is room for it. A call of the root waits: the subagents that work end
// at some time. A call of a subagent does not wait, because those that work may be the ones that wait.
func (s *Subagents) create(sc state.Scope, n store.NewSession) (*toolsv1.CallResult, error) {
	for {
		// An interrupt must not cut this off: the database might still make the child, after a look for it.
		_, err := sc.Store.CreateSession(sc.Outlasting(), n)
		switch {
		case err == nil:
			return nil, nil //nolint:nilnil // it is made, and nothing is refused
		case !errors.Is(err, store.ErrManySubagents):
			return nil, fmt.Errorf("make the session of a subagent: %w", err)
		case sc.IsSubagent():
			return refused(fmt.Sprintf("The work was not given to a subagent: %d of them work already, and no more may. Do it yourself.", s.MaxParallel)), nil
		}
		timer := time.NewTimer(freeAgain)
		select {
		case <-timer.C:
		case <-sc.Done():
			timer.Stop()
			return nil, context.Cause(sc)
		}
	}
}

// narrowed returns the agent that a subagent's session is pinned to.
func (s *Subagents) narrowed(sc state.Scope, name string) (agent.Agent, *toolsv1.CallResult, error) {
	a, ok := sc.Spec.Subagent(name)
	if !ok {
		var names []string
		for _, other := range sc.Spec.Subagents {
			names = append(names, other.Name)
		}
		return agent.Agent{}, refused(fmt.Sprintf("There is no subagent %q. There are: %s.", name, strings.Join(names, ", "))), nil
	}
	owner := sc.Proto.Agent
	var of *agent.Spec
	if a.Agent != "" {
		found, err := s.Find(sc, sc.Lease.Tenant, a.Agent)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return agent.Agent{}, refused(fmt.Sprintf("The subagent %q cannot work: %s does not exist any more.", name, a.Agent)), nil
		case err != nil:
			return agent.Agent{}, nil, fmt.Errorf("find the agent of subagent %s: %w", name, err)
		case len(found.Spec.Parameters) > 0:
			return agent.Agent{}, refused(fmt.Sprintf("The subagent %q cannot work: the prompt of %s has parameters, which a call cannot give.", name, a.Agent)), nil
		}
		of, owner = &found.Spec, found.Name()
	}
	last := int(sc.Proto.GetParentCall().GetDepth())+1 >= s.MaxDepth
	return agent.New(strings.TrimPrefix(owner, "agents/"), sc.Spec.Narrowed(a, of, last)), nil, nil
}

// newSession describes the child.
func (s *Subagents) newSession(sc state.Scope, u *sessionv1.ToolUse, t task, a agent.Agent, tokens int64) (store.NewSession, *toolsv1.CallResult, error) {
	k := childKey(sc.Lease.Tenant, u.CallId)
	parent := sc.Proto.GetParentCall()
	call := &sessionv1.ParentCall{
		Session: "sessions/" + sc.Lease.Session, CallId: u.CallId, Turn: sc.Active.Proto.Name, Root: sc.WorkspaceSession(),
		Depth: parent.GetDepth() + 1, Subagent: t.Subagent,
	}
	limits := s.limits(sc, a.Spec, tokens)
	if limits == nil {
		return store.NewSession{}, refused("The work was not given to a subagent: too few output tokens are left for one. Do it yourself, or end."), nil
	}
	first, err := firstTurn(sc, k, t, a.Spec, limits)
	if err != nil {
		return store.NewSession{}, nil, err
	}
	return store.NewSession{
		Key: k, User: sc.Active.Run.User, Agent: a.Name(), AgentRevision: a.Revision, AgentVersion: sc.Proto.AgentVersion, Title: t.Description,
		Additions: store.Additions{Mounts: sc.Proto.Mounts, Permissions: sc.Proto.Permissions}, Environment: sc.Proto.Environment, EnvironmentVersion: sc.Proto.EnvironmentVersion,
		Beginning: store.Beginning{First: first, Child: &store.Child{Parent: sc.Lease, Call: call, Most: s.MaxParallel, Job: jobs.SubagentJob(k)}},
		Event:     &sessionv1.Event{Body: &sessionv1.Event_SessionCreated{SessionCreated: &sessionv1.SessionCreated{Agent: a.Name()}}},
		Request:   store.Request{Method: "Task", Parent: call.Session, ID: u.CallId, Digest: []byte(u.CallId)},
	}, nil, nil
}

// limits returns the limits of the child's turn; nil if too little is left. The output tokens that the turn
// has left are divided among the calls of its message, so that all of them keep within its limit.
func (s *Subagents) limits(sc state.Scope, spec agent.Spec, tokens int64) *sessionv1.TurnLimits {
	mine, open := sc.Active.Proto.Limits, int64(0)
	for _, u := range state.ToolUses(sc.Calling()) {
		if u.Tool == agent.TaskTool {
			open++
		}
	}
	tokens /= max(open, 1)
	if tokens < leastTokens {
		return nil
	}
	if spec.MaxOutputTokens > 0 {
		tokens = min(tokens, spec.MaxOutputTokens)
	}
	wall := mine.GetMaxWallTime().AsDuration() - sc.Active.WallUsed()
	if spec.MaxWallTime > 0 {
		wall = min(wall, spec.MaxWallTime)
	}
	return &sessionv1.TurnLimits{
		MaxSteps: cmp.Or(int32(spec.MaxSteps), mine.GetMaxSteps()), MaxOutputTokens: tokens, MaxWallTime: durationpb.New(max(wall, time.Second)),
	}
}

// firstTurn returns the command of the child's only turn.
func firstTurn(sc state.Scope, k store.Key, t task, spec agent.Spec, limits *sessionv1.TurnLimits) (*store.Submit, error) {
	r := &sessionv1.CreateTurnRequest{
		Parent: "sessions/" + k.Session, Text: t.Prompt,
		Options: &sessionv1.TurnOptions{PermissionMode: sc.Mode()}, // a subagent may do no more than the turn
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(sc, carrier)
	run, err := sc.AcceptForSubagent(r, carrier)
	if err != nil {
		return nil, err
	}
	turn := &sessionv1.Turn{
		Name: turnName(k), State: sessionv1.TurnState_TURN_STATE_QUEUED, Limits: limits, CreateTime: state.Now(), AfterSeq: 1,
		Model: spec.Model, User: sc.Active.Run.User,
	}
	if span := trace.SpanContextFromContext(sc); span.IsValid() {
		turn.TraceId = span.TraceID().String()
	}
	id := state.LastSegment(turn.Name)
	return &store.Submit{
		Key: k, Command: store.Command{Kind: store.CommandTurn, TurnID: id, User: sc.Active.Run.User},
		Turn: &store.TurnRow{ID: id, Turn: turn, Run: run}, FromParent: true,
	}, nil
}

// refused returns the result of a call that gave no work to a subagent.
func refused(text string) *toolsv1.CallResult {
	return &toolsv1.CallResult{Outcome: toolsv1.CallOutcome_CALL_OUTCOME_ERROR, Content: []*commonv1.Content{state.Text(text)}}
}

// resultOf returns the result of a call whose child has ended its turn.
func resultOf(t *sessionv1.Turn) *toolsv1.CallResult {
	text := cmp.Or(t.FinalText, "(The subagent ended without a text.)")
	if t.OutputJson != "" {
		text += "\n\nIts output: " + t.OutputJson
	}
	r := &toolsv1.CallResult{Outcome: toolsv1.CallOutcome_CALL_OUTCOME_OK}
	begin := ""
	switch t.State {
	case sessionv1.TurnState_TURN_STATE_COMPLETE:
	case sessionv1.TurnState_TURN_STATE_PARTIAL:
		begin = "The subagent was stopped at a limit before its end"
	case sessionv1.TurnState_TURN_STATE_INTERRUPTED:
		begin = "The subagent was interrupted before its end"
	default:
		begin = "The subagent failed"
	}
	if begin != "" {
		r.Outcome = toolsv1.CallOutcome_CALL_OUTCOME_ERROR
		text = fmt.Sprintf("%s (%s): %s What it had done by then stays done. Its last text:\n%s", begin, t.Error.GetReason(), t.Error.GetMessage(), text)
	}
	r.Content = []*commonv1.Content{state.Text(text)}
	return r
}
