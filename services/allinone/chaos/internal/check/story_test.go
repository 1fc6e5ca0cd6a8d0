package check_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/script"
)

// seed is that of the script of all stories.
const seed = 7

// story writes the log, the conversation and the effects of turns that go well, an event every 100 ms.
type story struct {
	session *record.Session
	turn    string
	step    int32
	seq     int64
	late    time.Duration // of all that comes
	handed  string        // the operation that was handed back last
	notes   map[string]int
	mark    string // begins the names of its turns
}

func (s *story) at() time.Time {
	return origin.Add(s.late + time.Duration(s.seq)*100*time.Millisecond)
}

func (s *story) add(e *event) *event {
	s.seq++
	e.FirstSeq, e.Seq, e.Turn, e.Step, e.Time = s.seq, s.seq, s.turn, s.step, timestamppb.New(s.at())
	s.session.Log = append(s.session.Log, e)
	return e
}

func (s *story) say(role sessionv1.Role, blocks ...*sessionv1.Block) {
	ms := s.session.Messages
	m := &message{Name: fmt.Sprintf("%s/messages/m%d", s.session.Name, len(ms)), Role: role, Blocks: blocks, Turn: s.turn}
	if len(ms) > 0 {
		m.Parent = ms[len(ms)-1].Name
	}
	s.session.Messages = append(ms, m)
}

func content(text string) *commonv1.Content {
	return &commonv1.Content{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: text}}}
}

func textBlock(text string) *sessionv1.Block {
	return &sessionv1.Block{Kind: &sessionv1.Block_Content{Content: content(text)}}
}

// play writes a turn as the script wants it.
func (s *story) play(t *testing.T, sc *script.Script, text string) {
	t.Helper()
	turn := s.accept(text, sessionv1.OnActive_ON_ACTIVE_UNSPECIFIED)
	s.begin(turn, text)
	final := s.playSteps(t, sc, text)
	s.finish(turn, sessionv1.TurnState_TURN_STATE_COMPLETE, "", final)
}

// accept writes that a message was accepted, and returns its turn.
func (s *story) accept(text string, on sessionv1.OnActive) string {
	now, step := s.turn, s.step
	s.turn, s.step = fmt.Sprintf("%s/turns/%st%d", s.session.Name, s.mark, len(s.session.Accepted)), 0
	turn := s.turn
	s.session.Accepted = append(s.session.Accepted, record.Accepted{RequestID: "r-" + text, Text: text, OnActive: on, Turn: turn})
	s.session.Turns = append(s.session.Turns, &sessionv1.Turn{Name: turn})
	s.add(&event{Body: &sessionv1.Event_TurnQueued{TurnQueued: &sessionv1.TurnQueued{Content: []*commonv1.Content{content(text)}}}})
	s.turn, s.step = now, step
	return turn
}

func (s *story) begin(turn, text string) {
	s.turn, s.step = turn, 0
	s.add(&event{Body: &sessionv1.Event_TurnStarted{TurnStarted: &sessionv1.TurnStarted{}}})
	s.say(sessionv1.Role_ROLE_USER, textBlock(text))
}

// playSteps writes the steps of the text's plan, and returns the final text.
func (s *story) playSteps(t *testing.T, sc *script.Script, text string) string {
	t.Helper()
	want, ok := sc.Expect(text)
	if !ok {
		t.Fatalf("the script has no plan for %q", text)
	}
	for _, st := range want.Steps {
		s.step++
		s.playStep(st)
	}
	return want.Final
}

func (s *story) finish(turn string, state sessionv1.TurnState, reason, final string) {
	s.turn, s.step = turn, 0
	e := &sessionv1.TurnFinished{State: state, FinalText: final}
	if reason != "" {
		e.Error = &sessionv1.TurnError{Reason: reason}
	}
	s.add(&event{Body: &sessionv1.Event_TurnFinished{TurnFinished: e}})
	for _, row := range s.session.Turns {
		if row.Name == turn {
			row.State, row.FinalText = state, final
			if n := len(s.session.Messages); n > 0 {
				row.Head = s.session.Messages[n-1].Name
			}
		}
	}
}

func (s *story) playStep(st script.Step) {
	s.add(&event{Body: &sessionv1.Event_StepStarted{StepStarted: &sessionv1.StepStarted{Attempt: 1}}})
	var blocks, results []*sessionv1.Block
	if len(st.Thinking) > 0 {
		s.add(&event{Body: &sessionv1.Event_ThinkingDelta{ThinkingDelta: &sessionv1.ThinkingDelta{Text: strings.Join(st.Thinking, "")}}})
		s.add(&event{Body: &sessionv1.Event_ThinkingFinished{ThinkingFinished: &sessionv1.ThinkingFinished{}}})
	}
	for _, piece := range st.Text {
		s.add(&event{Body: &sessionv1.Event_TextDelta{TextDelta: &sessionv1.TextDelta{Block: 1, Text: piece}}})
	}
	s.add(&event{Body: &sessionv1.Event_TextFinished{TextFinished: &sessionv1.TextFinished{Block: 1}}})
	blocks = append(blocks, textBlock(strings.Join(st.Text, "")))
	for i, c := range st.Calls {
		id := fmt.Sprintf("%s.%d.%d", s.turn[strings.LastIndexByte(s.turn, '/')+1:], s.step, i)
		arguments := "echo '" + c.Effect + "' >> effects"
		if c.Tool == script.Here || c.Tool == script.There {
			arguments = fmt.Sprintf(`{"line":%q}`, c.Effect+c.Noted)
		}
		if c.Prompt != "" {
			arguments = fmt.Sprintf(`{"prompt":%q}`, c.Prompt)
		}
		if c.Last != "" {
			arguments += "; echo '" + c.Last + "' >> effects"
		}
		s.add(&event{Body: &sessionv1.Event_ToolCallArguments{ToolCallArguments: &sessionv1.ToolCallArguments{CallId: id, Tool: c.Tool, ArgumentsJson: arguments}}})
		if c.Asked {
			s.add(&event{Body: &sessionv1.Event_ApprovalRequested{ApprovalRequested: &sessionv1.ApprovalRequested{CallId: id, Tool: c.Tool}}})
			s.session.Answers = append(s.session.Answers, record.Answer{RequestID: "a-" + id, CallID: id, Approved: true})
			s.add(&event{Body: &sessionv1.Event_ApprovalResolved{ApprovalResolved: &sessionv1.ApprovalResolved{CallId: id, Approved: true}}})
		}
		if c.Asks {
			content := fmt.Sprintf(`{"answers":{%q:%q}}`, script.Question, script.Labels[0])
			s.add(&event{Body: &sessionv1.Event_QuestionRequested{QuestionRequested: &sessionv1.QuestionRequested{CallId: id, Tool: c.Tool}}})
			s.session.Replies = append(s.session.Replies, record.Reply{RequestID: "q-" + id, CallID: id, Content: content})
			s.add(&event{Body: &sessionv1.Event_QuestionResolved{QuestionResolved: &sessionv1.QuestionResolved{CallId: id, ContentJson: content}}})
		}
		if c.Looks {
			s.add(&event{Body: &sessionv1.Event_OperationProgress{OperationProgress: &sessionv1.OperationProgress{Operation: s.handed}}})
		}
		finished := &sessionv1.ToolCallFinished{CallId: id, Tool: c.Tool, Outcome: sessionv1.ToolOutcome_TOOL_OUTCOME_OK}
		if c.Prompt != "" {
			finished.Content = []*commonv1.Content{content(s.delegate(id, c.Prompt))}
		}
		if c.Asks {
			finished.Content = []*commonv1.Content{content("The user answered:\n- " + script.Question + " " + script.Labels[0])}
		}
		s.add(&event{Body: &sessionv1.Event_ToolCallFinished{ToolCallFinished: finished}})
		if c.Last != "" {
			finished.Operation = "operations/" + id
			s.handed = finished.Operation
			s.operate(id, c.Last)
		}
		blocks = append(blocks, &sessionv1.Block{Kind: &sessionv1.Block_ToolUse{ToolUse: &sessionv1.ToolUse{CallId: id, Tool: c.Tool}}})
		results = append(results, &sessionv1.Block{Kind: &sessionv1.Block_ToolResult{ToolResult: &sessionv1.ToolResult{CallId: id}}})
		if c.Noted != "" {
			s.note(c.Noted)
		}
		if c.Effect != "" {
			s.session.Effects = append(s.session.Effects, c.Effect)
		}
	}
	s.add(&event{Body: &sessionv1.Event_StepFinished{StepFinished: &sessionv1.StepFinished{}}})
	s.say(sessionv1.Role_ROLE_ASSISTANT, blocks...)
	if len(results) > 0 {
		s.say(sessionv1.Role_ROLE_USER, results...)
	}
}

// delegate writes the session of the subagent of a call, and returns its final text. What persons say and what commands
// leave is the root's.
func (s *story) delegate(call, prompt string) string {
	child := &story{
		late: s.at().Sub(origin), notes: s.notes, mark: call + "-",
		session: &record.Session{Name: s.session.Name + "-" + call, Call: &sessionv1.ParentCall{
			Session: s.session.Name, CallId: call, Turn: s.turn, Depth: s.session.Call.GetDepth() + 1,
		}},
	}
	child.add(&event{Body: &sessionv1.Event_SessionCreated{SessionCreated: &sessionv1.SessionCreated{Agent: "agents/chaos"}}})
	turn := child.accept(prompt, sessionv1.OnActive_ON_ACTIVE_UNSPECIFIED)
	child.begin(turn, prompt)
	want, _ := script.New(seed).Expect(prompt)
	for _, st := range want.Steps {
		child.step++
		child.playStep(st)
	}
	child.finish(turn, complete, "", want.Final)
	s.late = child.at().Sub(origin)
	s.session.Answers, s.session.Effects = append(s.session.Answers, child.session.Answers...), append(s.session.Effects, child.session.Effects...)
	child.session.Answers, child.session.Effects = nil, nil
	s.session.Children = append(s.session.Children, child.session)
	return want.Final
}

// note has the MCP server on the network get a line.
func (s *story) note(line string) {
	if s.notes == nil {
		s.notes = map[string]int{}
	}
	s.notes[line]++
}

// good is the recording of a run without a fault in it: a session with two turns, and a follower over two streams.
func good(t *testing.T) (*record.Run, *script.Script) {
	t.Helper()
	return recorded(t, effective)
}

// recorded is such a recording of turns of a plan.
func recorded(t *testing.T, choose func(t *testing.T, sc *script.Script) int) (*record.Run, *script.Script) {
	t.Helper()
	sc := script.New(seed)
	s := &story{session: &record.Session{Name: "sessions/s"}}
	s.add(&event{Body: &sessionv1.Event_SessionCreated{SessionCreated: &sessionv1.SessionCreated{Agent: "agents/coder"}}})
	plan := choose(t, sc)
	s.play(t, sc, script.Text(plan, "one"))
	s.play(t, sc, script.Text(plan, "two"))
	return s.recording(), sc
}

// recording is the story as two replicas and a follower have it.
func (s *story) recording() *record.Run {
	s.session.Again = clone(s.session.Log)
	s.session.Followers = []*record.Follower{follower(clone(s.session.Log), len(s.session.Log)/2)}
	return &record.Run{Begin: origin, End: s.at(), Sessions: []*record.Session{s.session}, Notes: s.notes}
}

// effective finds a plan with a command in its first step.
func effective(t *testing.T, sc *script.Script) int {
	for i := range sc.Plans {
		if want, _ := sc.Expect(script.Text(i, "")); len(want.Steps[0].Calls) > 0 && want.Steps[0].Calls[0].Effect != "" {
			return i
		}
	}
	t.Fatal("no plan begins with a command")
	return 0
}

// follower received the events over two streams.
func follower(events []*event, cut int) *record.Follower {
	return &record.Follower{Name: "follower", Streams: []*record.Stream{
		{Via: "a", Events: events[:cut:cut]},
		{Via: "b", After: events[cut-1].Seq, Events: events[cut:]},
	}}
}

func clone[M proto.Message](in []M) []M {
	var out []M
	for _, m := range in {
		out = append(out, proto.Clone(m).(M))
	}
	return out
}
