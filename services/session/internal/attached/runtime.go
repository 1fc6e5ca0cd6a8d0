package attached

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
	"github.com/fairlead/fairlead/services/session/internal/turn/step"
)

// maxTries bounds how often a step is given to processes that fail.
const maxTries = 3

// holding is a turn that this replica runs. Its worker alone uses it.
type holding struct {
	turn     string
	step     int32 // of the failures and of the question
	failures int
	failure  error // of a message that was broken off; the next Compose counts it

	p    *process
	seen []*sessionv1.Message // what the process has of the conversation
	id   int64                // of the step that the process has; 0: none

	// question is what the process asked of the model in this step, until it has the answer.
	question *sessionv1.RuntimeAsk
	attempt  int32 // how often the model was asked for it
}

// faultError says what a process did wrong.
type faultError struct{ field, message string }

// Error says it.
func (e *faultError) Error() string {
	if e.field == "" {
		return e.message
	}
	return e.field + ": " + e.message
}

// Compose implements step.Runtime.
func (h *Hub) Compose(sc state.Scope, _ state.Resolved, request model.Request) (step.Next, state.Outcome, error) {
	hold := h.holding(sc)
	for {
		err := hold.failure
		hold.failure = nil
		if err == nil {
			var next step.Next
			var out state.Outcome
			if next, out, err = h.compose(sc, hold, request); err == nil {
				return next, out, nil
			}
		}
		switch {
		case sc.Log.Err() != nil:
			return step.Next{}, state.Outcome{}, sc.Log.Err()
		case sc.WorkerErr() != nil:
			return step.Next{}, state.Outcome{}, sc.WorkerErr()
		case sc.Ended():
			return step.Next{}, state.Stopped(), nil
		case errors.Is(err, state.ErrHandOver):
			return step.Next{}, state.Outcome{}, err
		}
		if hold.failures++; hold.failures == maxTries {
			return step.Next{}, state.Failed(store.Write{}, sessionv1.ErrorReason_ERROR_REASON_RUNTIME_FAILED, fmt.Sprintf(
				"The runtime %s failed %d times in a row: %v. The conversation is kept; mend the attached process, then send the message again.", sc.RuntimeName(), maxTries, err)), nil
		}
		sc.Logger.WarnContext(sc, "an attached runtime failed", "session", sc.Lease.Session, "turn", sc.Active.ID, "runtime", sc.RuntimeName(), "error", err)
		warning := sc.StepEvent(state.Warning("RUNTIME_RESTARTED", fmt.Sprintf("The attached process failed: %v. The step goes to another one, with the conversation so far.", err)))
		if err := sc.Append(store.Write{Events: []*sessionv1.Event{warning}}); err != nil {
			return step.Next{}, state.Outcome{}, err
		}
	}
}

// holding returns what this replica knows of the turn.
func (h *Hub) holding(sc state.Scope) *holding {
	h.mu.Lock()
	hold := h.held[leaseOf(sc)]
	if hold == nil {
		hold = &holding{turn: sc.Active.Proto.Name}
		h.held[leaseOf(sc)] = hold
	}
	h.mu.Unlock()
	if n := sc.Active.Step(); hold.step != n {
		hold.step, hold.failures, hold.question, hold.attempt = n, 0, nil, 0
	}
	return hold
}

// compose gives a process the step, and takes what it wants next.
func (h *Hub) compose(sc state.Scope, hold *holding, request model.Request) (step.Next, state.Outcome, error) {
	if hold.question != nil { // the model's answer failed; the question stands
		return h.ask(hold, request)
	}
	out, err := h.place(sc, hold)
	if err != nil || !out.GoesOn() {
		return step.Next{}, out, err
	}
	a, err := h.give(sc, hold, request)
	if err == nil {
		var said *sessionv1.AttachRequest
		if said, err = h.hear(sc, hold.p, a); err == nil {
			return h.act(sc, hold, a, request, said)
		}
	}
	h.drop(sc, hold, err)
	return step.Next{}, state.Outcome{}, err
}

// give sends the process what is new, and the step.
func (h *Hub) give(sc state.Scope, hold *holding, request model.Request) (*asked, error) {
	h.mu.Lock()
	h.steps++
	hold.id = h.steps
	h.mu.Unlock()
	p, first := hold.p, hold.seen == nil
	keep := 0
	for keep < min(len(hold.seen), len(request.Messages)) && same(hold.seen[keep], request.Messages[keep]) {
		keep++
	}
	for _, part := range parts(hold.turn, keep, request.Messages[keep:]) {
		if err := p.send(sc, h.config.Patience, part); err != nil {
			return nil, err
		}
	}
	hold.seen = slices.Clone(request.Messages)
	tools := make([]*sessionv1.RuntimeTool, 0, len(request.Tools))
	for _, t := range request.Tools {
		schema, err := t.AppendSchema(nil)
		if err != nil {
			return nil, err
		}
		tools = append(tools, &sessionv1.RuntimeTool{Name: t.Name, Description: t.Description, InputSchemaJson: string(schema)})
	}
	a := p.expect(hold.id)
	return a, p.send(sc, h.config.Patience, &sessionv1.AttachResponse{Kind: &sessionv1.AttachResponse_Step{Step: &sessionv1.RuntimeStep{
		Id: hold.id, Turn: hold.turn, Number: sc.Active.Step(), First: first, ResumePoint: sc.Active.Run.ResumePoint,
		Agent: sc.Proto.Agent, User: "users/" + sc.Active.Run.User, System: request.System, Tools: tools,
		Limits: proto.CloneOf(sc.Active.Proto.Limits), Usage: proto.CloneOf(sc.Active.Proto.Usage),
	}}})
}

func same(a, b *sessionv1.Message) bool { return a == b || proto.Equal(a, b) }

// maxPart is about how many bytes of messages are sent at once. A message is never cut.
const maxPart = 1 << 20

// parts splits what is new in a conversation. There is at least one part.
func parts(turn string, keep int, messages []*sessionv1.Message) []*sessionv1.AttachResponse {
	var all []*sessionv1.AttachResponse
	for first := true; first || len(messages) > 0; first = false {
		n, size := 0, 0
		for n < len(messages) && (n == 0 || size+proto.Size(messages[n]) <= maxPart) {
			size += proto.Size(messages[n])
			n++
		}
		all = append(all, &sessionv1.AttachResponse{Kind: &sessionv1.AttachResponse_Conversation{Conversation: &sessionv1.RuntimeConversation{
			Turn: turn, Keep: int32(keep), Messages: messages[:n],
		}}})
		keep, messages = keep+n, messages[n:]
	}
	return all
}

// hear waits for what a process says of its step.
func (h *Hub) hear(ctx context.Context, p *process, a *asked) (*sessionv1.AttachRequest, error) {
	timer := time.NewTimer(h.config.Patience)
	defer timer.Stop()
	select { // what it said before it left counts
	case r := <-a.in:
		return r, nil
	default:
	}
	select {
	case r := <-a.in:
		return r, nil
	case <-p.over:
		return nil, lost(p)
	case <-timer.C:
		return nil, &faultError{"", fmt.Sprintf("it has said nothing about the step for %v", h.config.Patience)}
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// lost says why a process is lost, for people.
func lost(p *process) error {
	var fault *faultError
	if errors.As(p.reason(), &fault) {
		return fault
	}
	if message, ok := refusal.RuntimeAtFault(p.reason()); ok {
		return errors.New("it was sent away: " + message)
	}
	return errGone
}

// act does what the process wants.
func (h *Hub) act(sc state.Scope, hold *holding, a *asked, request model.Request, said *sessionv1.AttachRequest) (step.Next, state.Outcome, error) {
	switch k := said.GetKind().(type) {
	case *sessionv1.AttachRequest_Ask:
		if fault := checkAsk(k.Ask, request); fault != nil {
			h.drop(sc, hold, fault)
			return step.Next{}, state.Outcome{}, fault
		}
		hold.question, hold.attempt = k.Ask, 0
		return h.ask(hold, request)
	case *sessionv1.AttachRequest_End:
		if k.End.Error != "" {
			return step.Next{}, state.Failed(store.Write{}, sessionv1.ErrorReason_ERROR_REASON_RUNTIME_FAILED, k.End.Error), nil
		}
		return step.Next{}, state.Ended(store.Write{}, sessionv1.TurnState_TURN_STATE_COMPLETE, nil), nil
	default:
		w := &writer{hub: h, hold: hold, asked: a, said: said}
		return step.Next{Own: w, ResumePoint: func() []byte { return w.resumePoint }}, state.Outcome{}, nil
	}
}

// ask returns the question that the process asks of the model.
func (h *Hub) ask(hold *holding, request model.Request) (step.Next, state.Outcome, error) {
	q := hold.question
	hold.attempt++
	if q.System != nil {
		request.System = q.GetSystem()
	}
	if len(q.Messages) > 0 {
		request.Messages = q.Messages
	}
	if len(q.Tools) > 0 {
		request.Tools = slices.DeleteFunc(slices.Clone(request.Tools), func(t model.Tool) bool { return !slices.Contains(q.Tools, t.Name) })
	}
	p, id, attempt := hold.p, hold.id, hold.attempt
	watch := func(d model.Delta) {
		piece := &sessionv1.RuntimeModelDelta{Step: id, Attempt: attempt}
		switch d.Kind {
		case model.TextDelta:
			piece.Kind = &sessionv1.RuntimeModelDelta_Text{Text: d.Text}
		case model.ThinkingDelta:
			piece.Kind = &sessionv1.RuntimeModelDelta_Thinking{Thinking: d.Text}
		default:
			return
		}
		p.offer(&sessionv1.AttachResponse{Kind: &sessionv1.AttachResponse_ModelDelta{ModelDelta: piece}})
	}
	return step.Next{Request: request, Watch: watch, ResumePoint: q.GetResumePoint}, state.Outcome{}, nil
}

// Answer implements step.Runtime.
func (h *Hub) Answer(sc state.Scope, resp *model.Response) {
	hold := h.holding(sc)
	if hold.question == nil {
		return // the process wrote the answer itself
	}
	hold.question = nil
	m := &sessionv1.Message{Role: sessionv1.Role_ROLE_ASSISTANT, Turn: hold.turn, Step: sc.Active.Step()}
	for _, b := range resp.Blocks {
		m.Blocks = append(m.Blocks, proto.CloneOf(b))
	}
	for i, u := range state.ToolUsesOf(m.Blocks) {
		u.CallId = state.CallID(sc.Active.ID, sc.Active.Step(), i)
	}
	// A process that is lost gets no answer; the next one has it in the conversation.
	_ = hold.p.send(sc, h.config.Patience, &sessionv1.AttachResponse{Kind: &sessionv1.AttachResponse_Answer{Answer: &sessionv1.RuntimeAnswer{
		Step: hold.id, Message: proto.CloneOf(m), StopReason: resp.StopReason, Usage: proto.CloneOf(resp.Usage),
	}}})
}

// Leave implements step.Runtime.
func (h *Hub) Leave(sc state.Scope) {
	h.mu.Lock()
	hold := h.held[leaseOf(sc)]
	delete(h.held, leaseOf(sc))
	h.mu.Unlock()
	if hold != nil {
		h.drop(sc, hold, nil)
	}
}

// drop takes the turn away from its process, also when ctx has ended. why is the process's fault, if it has one.
func (h *Hub) drop(ctx context.Context, hold *holding, why error) {
	p := hold.p
	if p == nil {
		return
	}
	p.forget(hold.id)
	hold.p, hold.seen = nil, nil
	h.free(p)
	leave := &sessionv1.RuntimeLeave{Turn: hold.turn}
	var fault *faultError
	if errors.As(why, &fault) {
		leave.Fault = &sessionv1.RuntimeFault{Field: fault.field, Message: fault.message}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
	defer cancel()
	if err := p.send(ctx, leaveWithin, &sessionv1.AttachResponse{Kind: &sessionv1.AttachResponse_Leave{Leave: leave}}); err != nil && !errors.Is(err, errGone) {
		p.lose(err)
	}
}

// leaveWithin is how long a process may not read that it has no part in a turn any more.
const leaveWithin = time.Second

// runtimeOf returns the runtime of the session's agent.
func runtimeOf(sc state.Scope) name {
	n, _ := agent.AttachedName(sc.RuntimeName())
	return name{sc.Lease.Tenant, n}
}
