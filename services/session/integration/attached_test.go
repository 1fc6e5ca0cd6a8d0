package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/agent"
)

// attachedAgent makes the tester's runtime attached:mine.
func attachedAgent(c *session.Config) {
	a := c.Agents["tester"]
	a.Runtime = agent.Attached + "mine"
	c.Agents["tester"] = a
	c.Runtimes.Attached.Wait = 10 * time.Second
}

// attachment is a process that is attached.
type attachment struct {
	t      *testing.T
	stream grpc.BidiStreamingClient[sessionv1.AttachRequest, sessionv1.AttachResponse]
	leave  context.CancelFunc
	got    chan *sessionv1.AttachResponse // without alive and pieces of answers
	ended  chan error
	mu     sync.Mutex
	deltas []*sessionv1.RuntimeModelDelta
}

// attach attaches a process.
func (f *fixture) attach(t *testing.T, places int32) *attachment {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := sessionv1.NewRuntimeServiceClient(f.conn).Attach(ctx)
	if err != nil {
		t.Fatal(err)
	}
	a := &attachment{t: t, stream: stream, leave: cancel, got: make(chan *sessionv1.AttachResponse, 1000), ended: make(chan error, 1)}
	a.say(&sessionv1.AttachRequest{Kind: &sessionv1.AttachRequest_Open{Open: &sessionv1.AttachOpen{Runtime: "mine", MaxTurns: places, Label: "test"}}})
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.receive()
	}()
	t.Cleanup(func() { cancel(); <-done })
	if a.next().GetOpened() == nil {
		t.Fatal("the first message is not opened")
	}
	return a
}

func (a *attachment) receive() {
	for {
		r, err := a.stream.Recv()
		switch {
		case err != nil:
			a.ended <- err
			close(a.got)
			return
		case r.GetAlive() != nil:
			_ = a.stream.Send(&sessionv1.AttachRequest{Kind: &sessionv1.AttachRequest_Alive{Alive: &sessionv1.AttachAlive{}}})
		case r.GetModelDelta() != nil:
			a.mu.Lock()
			a.deltas = append(a.deltas, r.GetModelDelta())
			a.mu.Unlock()
		default:
			a.got <- r
		}
	}
}

func (a *attachment) say(r *sessionv1.AttachRequest) {
	a.t.Helper()
	if err := a.stream.Send(r); err != nil && !errors.Is(err, io.EOF) {
		a.t.Error(err)
	}
}

// next returns the next message.
func (a *attachment) next() *sessionv1.AttachResponse {
	a.t.Helper()
	select {
	case r, ok := <-a.got:
		if !ok {
			a.t.Fatalf("the stream has ended: %v", <-a.ended)
		}
		return r
	case <-time.After(20 * time.Second):
		a.t.Fatal("nothing comes")
		return nil
	}
}

// step waits for a step, and returns the conversation that came before it.
func (a *attachment) step() (*sessionv1.RuntimeStep, *sessionv1.RuntimeConversation) {
	a.t.Helper()
	var conversation *sessionv1.RuntimeConversation
	for {
		switch r := a.next(); {
		case r.GetConversation() != nil:
			conversation = r.GetConversation()
		case r.GetStep() != nil:
			return r.GetStep(), conversation
		case r.GetAnswer() != nil, r.GetLeave() != nil && r.GetLeave().Fault == nil:
		default:
			a.t.Fatalf("a step was to come, and %v came", r)
		}
	}
}

// fault waits for what the process did wrong.
func (a *attachment) fault() *sessionv1.RuntimeFault {
	a.t.Helper()
	for {
		if r := a.next(); r.GetLeave().GetFault() != nil {
			return r.GetLeave().GetFault()
		}
	}
}

func ask(step int64) *sessionv1.AttachRequest {
	return &sessionv1.AttachRequest{Kind: &sessionv1.AttachRequest_Ask{Ask: &sessionv1.RuntimeAsk{Step: step}}}
}

func delta(step int64, text string) *sessionv1.AttachRequest {
	return &sessionv1.AttachRequest{Kind: &sessionv1.AttachRequest_Delta{Delta: &sessionv1.RuntimeDelta{Step: step, Kind: &sessionv1.RuntimeDelta_Text{Text: text}}}}
}

func wrote(step int64, usage *sessionv1.Usage, calls ...*sessionv1.RuntimeCall) *sessionv1.AttachRequest {
	return &sessionv1.AttachRequest{Kind: &sessionv1.AttachRequest_Message{Message: &sessionv1.RuntimeMessage{
		Step: step, Calls: calls, Usage: usage, ResumePoint: fmt.Appendf(nil, "after %d calls", len(calls)),
	}}}
}

func endOf(step int64, why string) *sessionv1.AttachRequest {
	return &sessionv1.AttachRequest{Kind: &sessionv1.AttachRequest_End{End: &sessionv1.RuntimeEnd{Step: step, Error: why}}}
}

// asks asks the model for each step until the process is gone.
func (a *attachment) asks() {
	for r := range a.got {
		if s := r.GetStep(); s != nil {
			_ = a.stream.Send(ask(s.Id))
		}
	}
}

// running starts a turn. Then ended waits for its end, and returns the session's log.
func (f *fixture) running(t *testing.T, session string) (ended func() []*sessionv1.Event) {
	t.Helper()
	turn := f.create(t.Context(), t, session, "work")
	return func() []*sessionv1.Event {
		t.Helper()
		f.waitForEnd(t.Context(), t, turn.Name)
		return f.log(t.Context(), t, session)
	}
}

// TestAnAttachedProcessAsksTheModel has the model asked as the native runtime does.
func TestAnAttachedProcessAsksTheModel(t *testing.T) {
	t.Parallel()
	f := start(t, worked, attachedAgent)
	s := f.session(t.Context(), t)
	a := f.attach(t, 4)
	ended := f.running(t, s)
	step, c := a.step()
	if !step.First || step.Number != 1 || step.System == "" || len(step.Tools) == 0 || step.Turn != c.Turn || c.Keep != 0 || len(c.Messages) != 1 {
		t.Errorf("the first step is %v with %v", step, c)
	}
	a.say(ask(step.Id))
	answer := a.next().GetAnswer()
	if answer.GetStep() != step.Id || answer.GetMessage() == nil || len(answer.Message.Blocks) == 0 {
		t.Fatalf("the answer is %v", answer)
	}
	step, c = a.step()
	if step.First || step.Number != 2 || c.Keep != 1 || len(c.Messages) != 2 {
		t.Errorf("the second step is %v, with %v", step, c)
	}
	a.say(ask(step.Id))
	go a.asks()
	events := ended()
	if end := finished(t, events); end.State != sessionv1.TurnState_TURN_STATE_COMPLETE {
		t.Errorf("the turn ended %v", end)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.deltas) == 0 {
		t.Error("no piece of the answers came")
	}
}

// TestAnAttachedProcessWritesItsOwnMessages has calls without a model, and a usage.
func TestAnAttachedProcessWritesItsOwnMessages(t *testing.T) {
	t.Parallel()
	f := start(t, worked, attachedAgent)
	s := f.session(t.Context(), t)
	a := f.attach(t, 4)
	ended := f.running(t, s)
	step, _ := a.step()
	a.say(&sessionv1.AttachRequest{Kind: &sessionv1.AttachRequest_Delta{Delta: &sessionv1.RuntimeDelta{Step: step.Id, Kind: &sessionv1.RuntimeDelta_Thinking{Thinking: "Hm."}}}})
	a.say(delta(step.Id, "I "))
	a.say(delta(step.Id, "look."))
	a.say(wrote(step.Id, &sessionv1.Usage{InputTokens: 7, OutputTokens: 5, CostNanoUsd: 11}, &sessionv1.RuntimeCall{Tool: "Bash", ArgumentsJson: `{"command":"ls"}`}))
	step, c := a.step()
	if string(step.ResumePoint) != "after 1 calls" || len(c.Messages) != 2 || len(c.Messages[1].Blocks) != 1 || c.Messages[1].Blocks[0].GetToolResult() == nil || step.Usage.CostNanoUsd != 11 {
		t.Errorf("the second step is %v, with %v", step, c)
	}
	a.say(delta(step.Id, "Done."))
	a.say(wrote(step.Id, nil))
	events := ended()
	end := finished(t, events)
	if end.State != sessionv1.TurnState_TURN_STATE_COMPLETE || end.FinalText != "Done." || end.Usage.OutputTokens != 5 || end.Usage.CostNanoUsd != 11 {
		t.Errorf("the turn ended %v", end)
	}
	if got := shape(f.messages(t.Context(), t, s)); got != "user: \"work\"\nassistant: thinking, \"I look.\", use Bash\nuser: OK\nassistant: \"Done.\"" {
		t.Errorf("the conversation is:\n%s", got)
	}
	for _, e := range events {
		if e.GetStepStarted() != nil && e.GetStepStarted().Model != "attached:mine" {
			t.Errorf("the step's model is %q", e.GetStepStarted().Model)
		}
	}
}

// TestAnAttachedProcessEndsATurn ends one without a message, and one as failed.
func TestAnAttachedProcessEndsATurn(t *testing.T) {
	t.Parallel()
	f := start(t, worked, attachedAgent)
	s := f.session(t.Context(), t)
	a := f.attach(t, 4)
	for why, want := range map[string]sessionv1.TurnState{"": sessionv1.TurnState_TURN_STATE_COMPLETE, "The graph has no edge. Mend it.": sessionv1.TurnState_TURN_STATE_FAILED} {
		ended := f.running(t, s)
		step, _ := a.step()
		a.say(endOf(step.Id, why))
		if end := finished(t, ended()); end.State != want || end.Error.GetMessage() != why {
			t.Errorf("the turn ended %v", end)
		}
	}
}

// TestAnotherProcessTakesOver kills a process at each point of a step; another one goes on, and calls are made once.
func TestAnotherProcessTakesOver(t *testing.T) {
	t.Parallel()
	f := start(t, worked, attachedAgent)
	for name, die := range map[string]func(a *attachment, step *sessionv1.RuntimeStep){
		"with a step":        func(*attachment, *sessionv1.RuntimeStep) {},
		"in its own message": func(a *attachment, s *sessionv1.RuntimeStep) { a.say(delta(s.Id, "Half a ")) },
		"after its own message": func(a *attachment, s *sessionv1.RuntimeStep) {
			a.say(delta(s.Id, "All."))
			a.say(wrote(s.Id, nil, &sessionv1.RuntimeCall{Tool: "Bash", ArgumentsJson: `{"command":"ls"}`}))
		},
		"after a question": func(a *attachment, s *sessionv1.RuntimeStep) { a.say(ask(s.Id)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := f.session(t.Context(), t)
			first := f.attach(t, 1)
			ended := f.running(t, s)
			step, _ := first.step()
			die(first, step)
			if name == "in its own message" {
				f.waitForDelta(t, s)
			}
			if strings.HasPrefix(name, "after") {
				first.step() // it has taken the message
			}
			first.leave()
			second := f.attach(t, 1)
			step, c := second.step()
			if !step.First || c.Keep != 0 {
				t.Errorf("the other process begins with %v and %v", step, c)
			}
			second.say(delta(step.Id, "Taken over."))
			second.say(wrote(step.Id, nil))
			events := ended()
			if end := finished(t, events); end.FinalText != "Taken over." {
				t.Errorf("the turn ended %v", end)
			}
			second.leave()
			if name == "in its own message" && !strings.Contains(names(events), "step.restarted") {
				t.Errorf("the log is %s", names(events))
			}
		})
	}
	f.peers.mu.Lock()
	defer f.peers.mu.Unlock()
	for id, n := range f.peers.executed {
		if n != 1 {
			t.Errorf("call %s was executed %d times", id, n)
		}
	}
}

// TestFaultsOfAttachedProcesses sends what is wrong: the process reads which field, and after three faults the turn fails.
func TestFaultsOfAttachedProcesses(t *testing.T) {
	t.Parallel()
	f := start(t, worked, attachedAgent, func(c *session.Config) { c.Runtimes.Attached.Patience = time.Second })
	messages := func(ms ...*sessionv1.Message) func(int64) *sessionv1.AttachRequest {
		return func(step int64) *sessionv1.AttachRequest {
			return &sessionv1.AttachRequest{Kind: &sessionv1.AttachRequest_Ask{Ask: &sessionv1.RuntimeAsk{Step: step, Messages: ms}}}
		}
	}
	hello := &sessionv1.Block{Kind: &sessionv1.Block_ToolUse{ToolUse: &sessionv1.ToolUse{CallId: "c", Tool: "Bash"}}}
	for name, c := range map[string]struct {
		say   func(step int64) *sessionv1.AttachRequest
		field string
	}{
		"arguments that are no object": {func(s int64) *sessionv1.AttachRequest {
			return wrote(s, nil, &sessionv1.RuntimeCall{Tool: "Bash", ArgumentsJson: "[1]"})
		}, "message.calls[0].arguments_json"},
		"an empty message":         {func(s int64) *sessionv1.AttachRequest { return wrote(s, nil) }, "message"},
		"a tool that is not there": {func(s int64) *sessionv1.AttachRequest { r := ask(s); r.GetAsk().Tools = []string{"Nothing"}; return r }, "ask.tools[0]"},
		"a message without a role": {messages(&sessionv1.Message{}), "ask.messages[0].role"},
		"a call of a user":         {messages(&sessionv1.Message{Role: sessionv1.Role_ROLE_USER, Blocks: []*sessionv1.Block{hello}}), "ask.messages[0].blocks[0]"},
		"a message without blocks": {messages(&sessionv1.Message{Role: sessionv1.Role_ROLE_USER}), "ask.messages[0].blocks"},
		"a piece that is too long": {func(s int64) *sessionv1.AttachRequest { return delta(s, strings.Repeat("x", 64<<10+1)) }, "delta.text"},
		"silence": {func(int64) *sessionv1.AttachRequest {
			return &sessionv1.AttachRequest{Kind: &sessionv1.AttachRequest_Alive{Alive: &sessionv1.AttachAlive{}}}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := f.attach(t, 1)
			defer a.leave()
			ended := f.running(t, f.session(t.Context(), t))
			for range 3 {
				step, _ := a.step()
				a.say(c.say(step.Id))
				if fault := a.fault(); fault.Field != c.field || fault.Message == "" {
					t.Errorf("the fault is %v", fault)
				}
			}
			if end := finished(t, ended()); end.Error.GetReason() != "RUNTIME_FAILED" || !strings.Contains(end.Error.Message, c.field) {
				t.Errorf("the turn ended %v", end)
			}
		})
	}
}

// TestAProcessThatBreaksTheSchemaIsSentAway names the field.
func TestAProcessThatBreaksTheSchemaIsSentAway(t *testing.T) {
	t.Parallel()
	f := start(t, worked, attachedAgent)
	for name, c := range map[string]struct {
		r     *sessionv1.AttachRequest
		field string
	}{
		"no kind":         {&sessionv1.AttachRequest{}, "kind"},
		"open twice":      {&sessionv1.AttachRequest{Kind: &sessionv1.AttachRequest_Open{Open: &sessionv1.AttachOpen{Runtime: "mine", MaxTurns: 1}}}, "open"},
		"no piece":        {&sessionv1.AttachRequest{Kind: &sessionv1.AttachRequest_Delta{Delta: &sessionv1.RuntimeDelta{}}}, "delta.kind"},
		"a name too many": {&sessionv1.AttachRequest{Kind: &sessionv1.AttachRequest_Open{Open: &sessionv1.AttachOpen{Runtime: "Mine", MaxTurns: 1}}}, "open.runtime"},
	} {
		t.Run(name, func(t *testing.T) {
			a := f.attach(t, 1)
			a.say(c.r)
			err := <-a.ended
			if status.Code(err) != codes.InvalidArgument || !strings.Contains(fmt.Sprint(status.Convert(err).Details()), c.field) {
				t.Errorf("the stream ended with %v %v", err, status.Convert(err).Details())
			}
		})
	}
}

// TestATurnGoesWhereItsProcessIs has the process at one replica, and the turns begin at either.
func TestATurnGoesWhereItsProcessIs(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	one := start(t, worked, attachedAgent, func(c *session.Config) { c.DatabaseURL, c.MaxClaims = config.Secret(url), 1 })
	two := one.another()
	two.run(t)
	t.Cleanup(func() { two.stop() })
	a := two.attach(t, 100)
	go a.asks()
	for range 6 {
		s := one.session(t.Context(), t)
		if end := finished(t, one.turn(t.Context(), t, s, "work")); end.State != sessionv1.TurnState_TURN_STATE_COMPLETE {
			t.Errorf("the turn ended %v", end)
		}
	}
	a.leave()
	b := one.attach(t, 100)
	go b.asks()
	s := two.session(t.Context(), t)
	if end := finished(t, two.turn(t.Context(), t, s, "work")); end.State != sessionv1.TurnState_TURN_STATE_COMPLETE {
		t.Errorf("the turn ended %v", end)
	}
}

// TestATurnWithoutAProcessFails after its wait, and says what to do.
func TestATurnWithoutAProcessFails(t *testing.T) {
	t.Parallel()
	f := start(t, worked, attachedAgent, func(c *session.Config) { c.Runtimes.Attached.Wait = 100 * time.Millisecond })
	end := finished(t, f.turn(t.Context(), t, f.session(t.Context(), t), "work"))
	if end.State != sessionv1.TurnState_TURN_STATE_FAILED || end.Error.Reason != "RUNTIME_UNAVAILABLE" || !strings.Contains(end.Error.Message, `attaches as "mine"`) {
		t.Errorf("the turn ended %v", end)
	}
}
