package aisdk

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

const turnName = "sessions/s/turns/t1"

// script writes a log.
type script struct {
	random *rand.Rand
	events []*sessionv1.Event
	step   int32
	calls  int
	waits  []int64 // where the turn waits
}

func (s *script) add(e *sessionv1.Event) *sessionv1.Event {
	e.FirstSeq = int64(len(s.events) + 1)
	e.Seq, e.Turn, e.Step = e.FirstSeq, turnName, s.step
	s.events = append(s.events, e)
	return e
}

func (s *script) text(block int32) {
	s.add(&sessionv1.Event{Body: &sessionv1.Event_TextStarted{TextStarted: &sessionv1.TextStarted{Block: block}}})
	for range s.random.IntN(4) {
		s.add(&sessionv1.Event{Body: &sessionv1.Event_TextDelta{TextDelta: &sessionv1.TextDelta{Block: block, Text: fmt.Sprint(s.random.IntN(100), " ")}}})
	}
}

func (s *script) thinking(block int32) {
	s.add(&sessionv1.Event{Body: &sessionv1.Event_ThinkingStarted{ThinkingStarted: &sessionv1.ThinkingStarted{Block: block}}})
	s.add(&sessionv1.Event{Body: &sessionv1.Event_ThinkingDelta{ThinkingDelta: &sessionv1.ThinkingDelta{Block: block, Text: "hm"}}})
	s.add(&sessionv1.Event{Body: &sessionv1.Event_ThinkingFinished{ThinkingFinished: &sessionv1.ThinkingFinished{Block: block}}})
}

func (s *script) ask(whole bool) string {
	s.calls++
	id := fmt.Sprint("call-", s.calls)
	s.add(&sessionv1.Event{Body: &sessionv1.Event_ToolCallStarted{ToolCallStarted: &sessionv1.ToolCallStarted{CallId: id, Tool: "Bash"}}})
	s.add(&sessionv1.Event{Body: &sessionv1.Event_ToolCallArgumentsDelta{ToolCallArgumentsDelta: &sessionv1.ToolCallArgumentsDelta{CallId: id, Json: `{"n":`}}})
	if whole {
		s.add(&sessionv1.Event{Body: &sessionv1.Event_ToolCallArguments{ToolCallArguments: &sessionv1.ToolCallArguments{CallId: id, Tool: "Bash", ArgumentsJson: `{"n":9007199254740993}`}}})
	}
	return id
}

func (s *script) result(id string, o sessionv1.ToolOutcome) {
	s.add(&sessionv1.Event{Body: &sessionv1.Event_ToolCallFinished{ToolCallFinished: &sessionv1.ToolCallFinished{CallId: id, Tool: "Bash", Outcome: o, Content: said("out of " + id)}}})
}

func said(s string) []*commonv1.Content {
	return []*commonv1.Content{{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: s}}}}
}

// model writes a model call, which may break off and begin anew.
func (s *script) model() (calls []string) {
	s.step++
	attempts := 1 + s.random.IntN(3)/2
	for n := 1; ; n++ {
		first := int64(len(s.events) + 1)
		s.add(&sessionv1.Event{Body: &sessionv1.Event_StepStarted{StepStarted: &sessionv1.StepStarted{Attempt: int32(n)}}})
		if s.random.IntN(2) == 0 {
			s.thinking(0)
		}
		s.text(1)
		if n < attempts {
			if s.random.IntN(2) == 0 {
				s.ask(s.random.IntN(2) == 0)
			}
			s.add(&sessionv1.Event{Body: &sessionv1.Event_StepRestarted{StepRestarted: &sessionv1.StepRestarted{VoidFirstSeq: first, VoidLastSeq: int64(len(s.events))}}})
			continue
		}
		s.add(&sessionv1.Event{Body: &sessionv1.Event_TextFinished{TextFinished: &sessionv1.TextFinished{Block: 1}}})
		for range s.random.IntN(3) {
			calls = append(calls, s.ask(true))
		}
		return calls
	}
}

// turn writes a whole turn.
func (s *script) turn() {
	s.add(&sessionv1.Event{Body: &sessionv1.Event_TurnQueued{TurnQueued: &sessionv1.TurnQueued{Content: said("hello")}}})
	s.add(&sessionv1.Event{Body: &sessionv1.Event_TurnStarted{TurnStarted: &sessionv1.TurnStarted{}}})
	for range 1 + s.random.IntN(3) {
		calls := s.model()
		s.decide(calls)
		s.add(&sessionv1.Event{Body: &sessionv1.Event_TodoUpdated{TodoUpdated: &sessionv1.TodoUpdated{Todos: []*sessionv1.Todo{{Content: fmt.Sprint(s.step)}}}}})
		if s.random.IntN(6) == 0 {
			break // stopped in the middle of a step
		}
		s.add(&sessionv1.Event{Body: &sessionv1.Event_StepFinished{StepFinished: &sessionv1.StepFinished{}}})
	}
	states := []sessionv1.TurnState{sessionv1.TurnState_TURN_STATE_COMPLETE, sessionv1.TurnState_TURN_STATE_PARTIAL, sessionv1.TurnState_TURN_STATE_FAILED, sessionv1.TurnState_TURN_STATE_INTERRUPTED}
	s.add(&sessionv1.Event{Body: &sessionv1.Event_TurnFinished{TurnFinished: &sessionv1.TurnFinished{State: states[s.random.IntN(len(states))]}}})
}

// decide lets people decide about some of the calls, and ends most of them.
func (s *script) decide(calls []string) {
	var asked []string
	for _, id := range calls {
		if s.random.IntN(3) == 0 {
			asked = append(asked, id)
			s.add(&sessionv1.Event{Body: &sessionv1.Event_ApprovalRequested{ApprovalRequested: &sessionv1.ApprovalRequested{CallId: id, Tool: "Bash"}}})
		}
	}
	for _, id := range calls {
		if !slices.Contains(asked, id) {
			s.result(id, sessionv1.ToolOutcome_TOOL_OUTCOME_OK)
		}
	}
	if len(asked) == 0 {
		return
	}
	s.waits = append(s.waits, s.add(&sessionv1.Event{Body: &sessionv1.Event_TurnWaiting{TurnWaiting: &sessionv1.TurnWaiting{CallIds: asked}}}).GetSeq())
	for _, id := range asked {
		yes := s.random.IntN(2) == 0
		s.add(&sessionv1.Event{Body: &sessionv1.Event_ApprovalResolved{ApprovalResolved: &sessionv1.ApprovalResolved{CallId: id, Approved: yes}}})
	}
	s.add(&sessionv1.Event{Body: &sessionv1.Event_TurnResumed{TurnResumed: &sessionv1.TurnResumed{}}})
	for _, id := range asked {
		o := []sessionv1.ToolOutcome{sessionv1.ToolOutcome_TOOL_OUTCOME_OK, sessionv1.ToolOutcome_TOOL_OUTCOME_REFUSED, sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR}
		s.result(id, o[s.random.IntN(3)])
	}
}

// play runs an answer over a log, checks every chunk, and adds it to a message. It reports how it ended.
func play(t *testing.T, a *answer, events []*sessionv1.Event, m *uiMessage) (complete bool, err error) {
	t.Helper()
	client := newStrict(a.turn.Form)
	for _, p := range m.Parts { // a request goes on with the message that the client has
		if p.ToolCallID != "" {
			client.calls[p.ToolCallID] = p.State != "input-streaming"
		}
	}
	for _, e := range events {
		var b []byte
		b, complete, err = a.Event(nil, e)
		for frame := range strings.SplitSeq(strings.TrimSuffix(string(b), "\n\n"), "\n\n") {
			data := strings.TrimPrefix(frame, "data: ")
			if data == "" || data == "[DONE]" {
				continue
			}
			if fault := client.take([]byte(data)); fault != nil {
				t.Fatalf("after event %d: %v\n%s", e.GetSeq(), fault, data)
			}
			var c chunk
			if err := json.Unmarshal([]byte(data), &c); err != nil {
				t.Fatal(err)
			}
			m.add(c)
		}
		if complete || err != nil {
			return complete, err
		}
	}
	return false, nil
}

func shown(t *testing.T, m *uiMessage) string {
	t.Helper()
	b, err := json.Marshal(m.shown())
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestAnyReaderGetsTheSameMessage(t *testing.T) {
	seeds := uint64(1500)
	if testing.Short() { // make prove runs all
		seeds = 60
	}
	for seed := range seeds {
		s := &script{random: rand.New(rand.NewPCG(seed, 7))}
		s.turn()
		f := Form{Typed: seed%3 == 0, Version: int(5 + seed%2)}
		last := int64(len(s.events))
		replay := func(until int64) string {
			m := &uiMessage{Role: "assistant"}
			complete, err := play(t, &answer{turn: newTurn(turnName, f), until: until}, s.events, m)
			if errors.Is(err, errRestarted) { // the client comes back and gets all of it
				return ""
			}
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			for !complete || !strings.Contains(string(m.Metadata), `"state"`) {
				complete = goOn(t, s, f, m, until)
			}
			return shown(t, m)
		}
		want := replay(last)
		if want == "" {
			t.Fatalf("seed %d: a replay of all is cut off", seed)
		}
		for until := range last {
			if got := replay(until); got != "" && got != want {
				t.Fatalf("seed %d: a client that came at %d has\n%s\nand not\n%s", seed, until, got, want)
			}
		}
		all := history(s.events, "", f)
		b, err := json.Marshal(all[len(all)-1])
		if err != nil || string(b) != want {
			t.Fatalf("seed %d: the history has\n%s\nand not\n%s", seed, b, want)
		}
	}
}

// goOn answers what the message waits for, as a client does with its next request.
func goOn(t *testing.T, s *script, f Form, m *uiMessage, until int64) (complete bool) {
	t.Helper()
	var open []string
	for _, p := range m.Parts {
		if p.State == "approval-requested" || f.Version == 5 && p.State == "input-available" {
			open = append(open, p.ToolCallID)
		}
	}
	asked := readAsked(turnName, open, s.events)
	if asked.after == 0 {
		t.Fatalf("the message ended early, and waits for nothing: %s", shown(t, m))
	}
	a := &answer{turn: newTurn(turnName, f), until: max(until, int64(len(s.events))), after: asked.after, answered: open}
	complete, err := play(t, a, s.events, m)
	if err != nil {
		t.Fatal(err)
	}
	return complete
}

func TestChunks(t *testing.T) {
	call := func(id string) *sessionv1.Event {
		return &sessionv1.Event{Body: &sessionv1.Event_ToolCallArguments{ToolCallArguments: &sessionv1.ToolCallArguments{CallId: id, Tool: "Bash", ArgumentsJson: `{"n": 9007199254740993}`}}}
	}
	ends := func(o sessionv1.ToolOutcome, content ...*commonv1.Content) *sessionv1.Event {
		return &sessionv1.Event{Body: &sessionv1.Event_ToolCallFinished{ToolCallFinished: &sessionv1.ToolCallFinished{CallId: "c", Tool: "Bash", Outcome: o, Content: content}}}
	}
	asks := &sessionv1.Event{Body: &sessionv1.Event_ApprovalRequested{ApprovalRequested: &sessionv1.ApprovalRequested{CallId: "c", Tool: "Bash"}}}
	budget := &sessionv1.Event{Body: &sessionv1.Event_ApprovalRequested{ApprovalRequested: &sessionv1.ApprovalRequested{CallId: "b", Kind: sessionv1.ApprovalKind_APPROVAL_KIND_BUDGET, Message: "More?"}}}
	for _, c := range []struct {
		name   string
		form   Form
		events []*sessionv1.Event
		want   string // the last chunk
	}{
		{"every digit of the arguments", Form{}, []*sessionv1.Event{call("c")}, `{"type":"tool-input-available","toolCallId":"c","toolName":"Bash","dynamic":true,"input":{"n":9007199254740993}}`},
		{"a typed tool", Form{Typed: true}, []*sessionv1.Event{call("c")}, `{"type":"tool-input-available","toolCallId":"c","toolName":"Bash","input":{"n":9007199254740993}}`},
		{"a result", Form{}, []*sessionv1.Event{call("c"), ends(sessionv1.ToolOutcome_TOOL_OUTCOME_OK, said("a<b>\u2028")...)}, `{"type":"tool-output-available","toolCallId":"c","dynamic":true,"output":"a\u003cb\u003e\u2028"}`},
		{"no result", Form{}, []*sessionv1.Event{call("c"), ends(sessionv1.ToolOutcome_TOOL_OUTCOME_OK)}, `{"type":"tool-output-available","toolCallId":"c","dynamic":true,"output":""}`},
		{"an image", Form{}, []*sessionv1.Event{call("c"), ends(sessionv1.ToolOutcome_TOOL_OUTCOME_OK, &commonv1.Content{Kind: &commonv1.Content_Image{Image: &commonv1.Media{MediaType: "image/png", Data: []byte("x")}}})}, `{"type":"tool-output-available","toolCallId":"c","dynamic":true,"output":{"content":[{"type":"image","mediaType":"image/png","data":"eA=="}]}}`},
		{"a failure", Form{}, []*sessionv1.Event{call("c"), ends(sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR, said("no")...)}, `{"type":"tool-output-error","toolCallId":"c","dynamic":true,"errorText":"no"}`},
		{"a question to a person", Form{}, []*sessionv1.Event{call("c"), asks}, `{"type":"tool-approval-request","toolCallId":"c","approvalId":"c"}`},
		{"a refusal", Form{}, []*sessionv1.Event{call("c"), asks, ends(sessionv1.ToolOutcome_TOOL_OUTCOME_REFUSED, said("no")...)}, `{"type":"tool-output-denied","toolCallId":"c"}`},
		{"a refusal for version 5", Form{Version: 5}, []*sessionv1.Event{call("c"), asks, ends(sessionv1.ToolOutcome_TOOL_OUTCOME_REFUSED, said("no")...)}, `{"type":"tool-output-error","toolCallId":"c","dynamic":true,"errorText":"no"}`},
		{"a budget", Form{}, []*sessionv1.Event{budget}, `{"type":"tool-approval-request","toolCallId":"b","approvalId":"b"}`},
		{"a result without a call", Form{}, []*sessionv1.Event{ends(sessionv1.ToolOutcome_TOOL_OUTCOME_OK, said("x")...)}, `{"type":"tool-output-available","toolCallId":"c","dynamic":true,"output":"x"}`},
	} {
		turn := newTurn(turnName, c.form)
		var all []chunk
		for _, e := range c.events {
			e.Turn = turnName
			chunks, _ := turn.take(e)
			all = append(all, chunks...)
		}
		b, err := json.Marshal(all[len(all)-1])
		if err != nil || string(b) != c.want {
			t.Errorf("%s: %s %v, want %s", c.name, b, err, c.want)
		}
	}
}

func TestTheWorkOfDeltasIsLinear(t *testing.T) {
	bytes := func(deltas int) int {
		m := &uiMessage{Role: "assistant"}
		m.add(chunk{Type: "text-start", ID: "1"})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range deltas {
			m.add(chunk{Type: "text-delta", ID: "1", Delta: text(strings.Repeat("x", 50))})
		}
		runtime.ReadMemStats(&after)
		if n := len(*m.Parts[0].Text); n != 50*deltas {
			t.Errorf("the text has %d bytes", n)
		}
		return int(after.TotalAlloc - before.TotalAlloc)
	}
	if one, two := bytes(1500), bytes(3000); two > 3*one {
		t.Errorf("1,500 deltas allocate %d bytes, twice as many %d", one, two)
	}
}
