package agui

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

const turnID = "06h1j2kvp5pq37223uj2glj7c8"

// logged makes a log.
type logged struct {
	seq  int64
	all  []*sessionv1.Event
	turn string
	step int32
}

func newLog() *logged { return &logged{seq: 10, turn: "sessions/s/turns/" + turnID} }

func (l *logged) add(e *sessionv1.Event) *logged {
	l.seq++
	e.FirstSeq, e.Seq, e.Turn, e.Step = l.seq, l.seq, l.turn, l.step
	l.all = append(l.all, e)
	return l
}

func started(attempt int32) *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_StepStarted{StepStarted: &sessionv1.StepStarted{Attempt: attempt}}}
}

func delta(block int32, s string) *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_TextDelta{TextDelta: &sessionv1.TextDelta{Block: block, Text: s}}}
}

func thought(block int32, s string) *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_ThinkingDelta{ThinkingDelta: &sessionv1.ThinkingDelta{Block: block, Text: s}}}
}

func called(id, json string) *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_ToolCallArguments{ToolCallArguments: &sessionv1.ToolCallArguments{CallId: id, Tool: "Bash", ArgumentsJson: json}}}
}

func result(id, s string) *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_ToolCallFinished{ToolCallFinished: &sessionv1.ToolCallFinished{
		CallId: id, Tool: "Bash", Outcome: sessionv1.ToolOutcome_TOOL_OUTCOME_OK, Content: []*commonv1.Content{{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: s}}}},
	}}}
}

func stepped() *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_StepFinished{StepFinished: &sessionv1.StepFinished{Usage: &sessionv1.Usage{InputTokens: 3, CacheReadTokens: 2, OutputTokens: 4}}}}
}

func ended(s sessionv1.TurnState) *sessionv1.Event {
	f := &sessionv1.TurnFinished{State: s}
	if s != sessionv1.TurnState_TURN_STATE_COMPLETE {
		f.Error = &sessionv1.TurnError{Reason: "WHY", Message: "It stopped."}
	}
	return &sessionv1.Event{Body: &sessionv1.Event_TurnFinished{TurnFinished: f}}
}

func queued() *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_TurnQueued{TurnQueued: &sessionv1.TurnQueued{}}}
}

func asked(id string) *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_ApprovalRequested{ApprovalRequested: &sessionv1.ApprovalRequested{CallId: id, Tool: "Bash", Digest: "d", ArgumentsJson: "{}"}}}
}

func resolved(id string) *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_ApprovalResolved{ApprovalResolved: &sessionv1.ApprovalResolved{CallId: id, Approved: true}}}
}

func waiting(ids ...string) *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_TurnWaiting{TurnWaiting: &sessionv1.TurnWaiting{CallIds: ids}}}
}

func resumed() *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_TurnResumed{TurnResumed: &sessionv1.TurnResumed{}}}
}

func (l *logged) run() Run {
	return Run{ThreadID: "t", RunID: "r", Turn: l.turn, Start: 10, HasState: true}
}

// show returns the stream of a run, and what its reader has. It fails at a broken rule.
func show(t *testing.T, r Run, log []*sessionv1.Event) (lines []string, v *verifier) {
	t.Helper()
	v = newVerifier()
	e := NewEncoder(r)
	for _, from := range log {
		b, complete, err := e.Event(nil, from)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range strings.Split(strings.TrimSuffix(string(b), "\n\n"), "\n\n") {
			if block == "" {
				continue
			}
			_, data, _ := strings.Cut(block, "\ndata: ")
			lines = append(lines, block)
			if err := v.take(data); err != nil {
				t.Fatalf("%v\nin\n%s", err, strings.Join(lines, "\n"))
			}
		}
		if complete {
			break
		}
	}
	return lines, v
}

func kinds(lines []string) string {
	var all []string
	for _, l := range lines {
		_, rest, _ := strings.Cut(l, `"type":"`)
		if i := strings.LastIndex(l, `"type":"`); strings.Contains(l, "RUN_FINISHED") || strings.Contains(l, "STATE_DELTA") {
			rest = l[i+8:]
		}
		kind, _, _ := strings.Cut(rest, `"`)
		all = append(all, kind)
	}
	return strings.Join(all, " ")
}

func TestATurnIsARun(t *testing.T) {
	l := newLog().add(queued())
	l.step = 1
	l.add(started(1)).add(thought(0, "hm")).add(delta(1, "Let me ")).add(delta(1, "look.")).add(called(turnID+".1.0", `{"a":1}`)).add(result(turnID+".1.0", "found")).add(stepped())
	l.step = 2
	l.add(started(1)).add(delta(0, "Done.")).add(stepped())
	l.step = 0
	l.add(ended(sessionv1.TurnState_TURN_STATE_COMPLETE))
	lines, v := show(t, l.run(), l.all)
	want := "RUN_STARTED STATE_DELTA STEP_STARTED REASONING_START REASONING_MESSAGE_START REASONING_MESSAGE_CONTENT TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_CONTENT " +
		"TEXT_MESSAGE_END TOOL_CALL_START TOOL_CALL_ARGS TOOL_CALL_END TOOL_CALL_RESULT REASONING_MESSAGE_END REASONING_END STEP_FINISHED " +
		"STEP_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END STEP_FINISHED STATE_DELTA RUN_FINISHED"
	if got := kinds(lines); got != want {
		t.Errorf("the run is\n%s\nwant\n%s", got, want)
	}
	end := lines[len(lines)-1]
	if want := `"usage":[{"cachedInputTokens":4,"inputTokens":10,"outputTokens":8,"totalTokens":18}]`; !strings.Contains(end, want) || !strings.HasPrefix(end, fmt.Sprintf("id: %d\n", l.seq)) {
		t.Errorf("the end is %s, want %s", end, want)
	}
	if len(v.messages) != 4 || v.messages[1]["content"] != "Let me look." || v.messages[1]["toolCalls"] == nil {
		t.Errorf("the reader has %v", v.messages)
	}
}

func TestHowATurnEnds(t *testing.T) {
	for _, c := range []struct {
		state sessionv1.TurnState
		old   bool
		want  string
	}{
		{sessionv1.TurnState_TURN_STATE_COMPLETE, false, `"outcome":{"type":"success"}`},
		{sessionv1.TurnState_TURN_STATE_INTERRUPTED, false, `"outcome":{"type":"cancelled"}`},
		{sessionv1.TurnState_TURN_STATE_PARTIAL, false, `"outcome":{"type":"cancelled"}`},
		{sessionv1.TurnState_TURN_STATE_INTERRUPTED, true, `{"code":"cancelled","message":"It stopped.","type":"RUN_ERROR"}`},
		{sessionv1.TurnState_TURN_STATE_FAILED, false, `{"code":"WHY","message":"It stopped.","metadata":{`},
	} {
		l := newLog().add(queued()).add(ended(c.state))
		r := l.run()
		r.Old = c.old
		if lines, _ := show(t, r, l.all); !strings.Contains(lines[len(lines)-1], c.want) {
			t.Errorf("%v: %s, want %s", c.state, lines[len(lines)-1], c.want)
		}
	}
}

func TestPeopleReadWhatWasSetUp(t *testing.T) {
	l := newLog().add(queued())
	l.add(&sessionv1.Event{Body: &sessionv1.Event_WorkspaceCreated{WorkspaceCreated: &sessionv1.WorkspaceCreated{Generation: 1}}})
	l.add(&sessionv1.Event{Body: &sessionv1.Event_RepositoryCloned{RepositoryCloned: &sessionv1.RepositoryCloned{Url: "https://x/app.git", Directory: "app", Branch: "main"}}})
	l.add(&sessionv1.Event{Body: &sessionv1.Event_McpServerChanged{McpServerChanged: &sessionv1.McpServerChanged{
		Server: "books", State: commonv1.McpServerState_MCP_SERVER_STATE_CONNECTED, Tools: []string{"mcp__books__find"},
	}}})
	l.add(&sessionv1.Event{Body: &sessionv1.Event_EnvironmentSetUp{EnvironmentSetUp: &sessionv1.EnvironmentSetUp{Environment: "environments/prod", Commands: 2}}})
	l.add(&sessionv1.Event{Body: &sessionv1.Event_EnvironmentSetUp{EnvironmentSetUp: &sessionv1.EnvironmentSetUp{Failure: "no"}}})
	l.add(ended(sessionv1.TurnState_TURN_STATE_COMPLETE))
	_, v := show(t, l.run(), l.all)
	var told []string
	for _, m := range v.messages {
		if m["role"] == "developer" {
			told = append(told, fmt.Sprint(m["content"]))
		}
	}
	const want = "The workspace was made.|The repository https://x/app.git was cloned to repos/app, on branch main.|" +
		"The MCP server books is connected. Its tools: mcp__books__find.|The environment prod is set up: its 2 commands ran."
	if got := strings.Join(told, "|"); got != want {
		t.Errorf("people read %s", got)
	}
}

func TestAPauseEndsARunAndItsAnswerBeginsAnother(t *testing.T) {
	id := turnID + ".1.0"
	l := newLog().add(queued())
	l.step = 1
	l.add(started(1)).add(called(id, "{}")).add(asked(id)).add(waiting(id))
	pause := l.seq
	l.add(resolved(id)).add(resumed()).add(result(id, "ran")).add(stepped()).add(ended(sessionv1.TurnState_TURN_STATE_COMPLETE))
	lines, v := show(t, l.run(), l.all)
	if want := fmt.Sprintf(`"id":"%s/%d/%s"`, turnID, pause, id); v.outcome != "interrupt" || !strings.Contains(lines[len(lines)-1], want) {
		t.Errorf("the first run ends with %s, want %s", lines[len(lines)-1], want)
	}
	r := l.run()
	r.Start, r.Answered = pause, map[string]bool{id: false}
	lines, v = show(t, r, l.all)
	if got, want := kinds(lines), "RUN_STARTED STATE_DELTA CUSTOM TOOL_CALL_RESULT STATE_DELTA RUN_FINISHED"; got != want || v.outcome != "success" {
		t.Errorf("the second run is\n%s, want\n%s", got, want)
	}
}

func TestAClientsToolEndsARunWithSuccess(t *testing.T) {
	id := turnID + ".1.0"
	l := newLog().add(queued()).add(started(1)).add(called(id, "{}")).add(waiting(id))
	pause := l.seq
	l.add(result(id, "red")).add(resumed()).add(ended(sessionv1.TurnState_TURN_STATE_COMPLETE))
	lines, _ := show(t, l.run(), l.all)
	if end := lines[len(lines)-1]; !strings.Contains(end, `"outcome":{"pendingToolCallIds":["`+id+`"],"type":"success"}`) {
		t.Errorf("the run ends with %s", end)
	}
	r := l.run()
	r.Start, r.Answered = pause, map[string]bool{id: true}
	if lines, _ := show(t, r, l.all); strings.Contains(strings.Join(lines, ""), "TOOL_CALL_RESULT") {
		t.Errorf("the client's own result comes back: %s", lines)
	}
}

func TestABrokenStepIsTakenBack(t *testing.T) {
	l := newLog().add(queued())
	l.step = 1
	l.add(started(1)).add(delta(0, "lost")).add(&sessionv1.Event{Body: &sessionv1.Event_StepRestarted{StepRestarted: &sessionv1.StepRestarted{}}})
	l.add(started(2)).add(delta(0, "kept")).add(stepped()).add(ended(sessionv1.TurnState_TURN_STATE_COMPLETE))
	if _, v := show(t, l.run(), l.all); len(v.messages) != 1 || v.messages[0]["content"] != "kept" {
		t.Errorf("the reader has %v", v.messages)
	}
}

// random makes the log of a turn without a pause.
func random(r *rand.Rand) *logged {
	l := newLog().add(queued())
	calls := 0
	for step := int32(1); step <= 3; step++ {
		l.step = step
		for attempt := int32(1); attempt <= 2; attempt++ {
			l.add(started(attempt))
			var open []string
			for block := range int32(r.IntN(4)) {
				for range r.IntN(3) {
					if block%2 == 0 {
						l.add(delta(block, "a "))
					} else {
						l.add(thought(block, "b "))
					}
				}
				if r.IntN(2) == 0 {
					calls++
					id := fmt.Sprintf("%s.%d.%d", turnID, step, calls)
					l.add(called(id, `{"n":1}`))
					open = append(open, id)
				}
			}
			if attempt == 1 && r.IntN(3) == 0 {
				l.add(&sessionv1.Event{Body: &sessionv1.Event_StepRestarted{StepRestarted: &sessionv1.StepRestarted{}}})
				continue
			}
			for _, id := range open {
				if r.IntN(2) == 0 {
					l.delegate(r, id)
				}
				l.add(result(id, "r"))
			}
			if r.IntN(2) == 0 {
				l.add(&sessionv1.Event{Body: &sessionv1.Event_TodoUpdated{TodoUpdated: &sessionv1.TodoUpdated{Todos: []*sessionv1.Todo{{Content: "c"}}}}})
				l.add(&sessionv1.Event{Body: &sessionv1.Event_Warning{Warning: &sessionv1.Warning{Message: "careful"}}})
			}
			l.add(stepped())
			break
		}
	}
	states := []sessionv1.TurnState{sessionv1.TurnState_TURN_STATE_COMPLETE, sessionv1.TurnState_TURN_STATE_INTERRUPTED, sessionv1.TurnState_TURN_STATE_FAILED}
	return l.add(ended(states[r.IntN(len(states))]))
}

// delegate adds the events of a subagent.
func (l *logged) delegate(r *rand.Rand, call string) {
	sub := "sub" + strings.ReplaceAll(call, ".", "")
	l.add(&sessionv1.Event{Body: &sessionv1.Event_SubagentStarted{SubagentStarted: &sessionv1.SubagentStarted{CallId: call, Session: "sessions/sub-x", Turn: "sessions/sub-x/turns/" + sub, Subagent: "helper"}}})
	inner := []*sessionv1.Event{started(1), delta(0, "c"), called(sub+".1.0", "{}"), result(sub+".1.0", "s"), stepped(), ended(sessionv1.TurnState_TURN_STATE_COMPLETE)}
	for i, e := range inner[:1+r.IntN(len(inner))] {
		e.Seq, e.Turn, e.Step = int64(i+1), "sessions/sub-x/turns/"+sub, 1
		l.add(&sessionv1.Event{Body: &sessionv1.Event_SubagentEvent{SubagentEvent: &sessionv1.SubagentEvent{CallId: call, Event: e}}})
	}
	if r.IntN(4) > 0 {
		l.add(&sessionv1.Event{Body: &sessionv1.Event_SubagentFinished{SubagentFinished: &sessionv1.SubagentFinished{CallId: call, State: sessionv1.TurnState_TURN_STATE_COMPLETE}}})
		late := delta(5, "late")
		late.Seq, late.Turn, late.Step = 100, "sessions/sub-x/turns/"+sub, 1
		l.add(&sessionv1.Event{Body: &sessionv1.Event_SubagentEvent{SubagentEvent: &sessionv1.SubagentEvent{CallId: call, Event: late}}})
	}
}

func TestRandomLogsKeepTheRulesAtEveryCut(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		l := random(r)
		whole, v := show(t, l.run(), l.all)
		if !v.finished && !v.failed {
			t.Fatalf("seed %d: the run does not end", seed)
		}
		for cut := range whole {
			id, _, _ := strings.Cut(strings.TrimPrefix(whole[cut], "id: "), "\n")
			var after position
			if seq, part, parted := strings.Cut(id, "."); parted {
				_, _ = fmt.Sscan(seq, &after.seq)
				_, _ = fmt.Sscan(part, &after.part)
			} else {
				_, _ = fmt.Sscan(seq, &after.seq)
				after.part = 1 << 30
			}
			run := l.run()
			run.After = after
			var rest []string
			e := NewEncoder(run)
			for _, from := range l.all {
				if b, _, _ := e.Event(nil, from); len(b) > 0 {
					rest = append(rest, strings.Split(strings.TrimSuffix(string(b), "\n\n"), "\n\n")...)
				}
			}
			if got, want := strings.Join(rest, "\n"), strings.Join(whole[cut+1:], "\n"); got != want {
				t.Fatalf("seed %d: after %s there is\n%s\nwant\n%s", seed, id, got, want)
			}
		}
		// A client that lost the answer in the middle asks for the whole run again, with what it has.
		again := l.run()
		for _, m := range v.messages {
			again.Messages = append(again.Messages, raw(t, m))
		}
		_, w := show(t, again, l.all)
		if w.same() != v.same() {
			t.Fatalf("seed %d: the second time the reader has\n%s\nwant\n%s", seed, w.same(), v.same())
		}
	}
}

func raw(t *testing.T, v any) json.RawMessage {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
