package fold

import (
	"slices"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// State is a client's view of a session.
type State struct {
	Agent string
	Turns []*Turn // in the order in which the log tells of them
}

// Turn is a turn as its events tell it.
type Turn struct {
	Name     string
	Said     string // by the user
	Started  int    // how often the log says that it began
	Finished int    // how often the log says that it ended
	State    sessionv1.TurnState
	Reason   string // why, unless COMPLETE
	Into     string // the turn into which its message was put
	Final    string // the agent's final text
	Steps    []*Step
}

// Step is one model call and its tool calls.
type Step struct {
	Number   int32
	Begun    int64 // the number of its first event
	Finished int
	Stop     string
	Message  string
	Blocks   []*Block // of text and thinking
	Calls    []*Call
	Looks    []Look
}

// Look is what a call of a step saw of an operation.
type Look struct {
	Operation string
	State     string // as in `operation.finished`; empty while it ran
}

// Block is a block of text or thinking.
type Block struct {
	Index    int32
	Thinking bool
	Finished bool

	text strings.Builder
}

// Text returns the text so far.
func (b *Block) Text() string { return b.text.String() }

// Equal reports whether another block is the same.
func (b *Block) Equal(o *Block) bool {
	return b.Index == o.Index && b.Thinking == o.Thinking && b.Finished == o.Finished && b.Text() == o.Text()
}

// Call is a tool call.
type Call struct {
	ID        string
	Tool      string
	Arguments string
	Decision  sessionv1.Decision
	Asked     int      // how often a person was asked
	Answers   []bool   // what persons said
	Edited    string   // the arguments that a person put in place of the model's
	Questions int      // how often it asked a person something
	Replies   []string // the content of the answers; empty where there was none to be had
	Output    []byte   // what it wrote while it ran, as far as the log tells
	Finished  int
	Outcome   sessionv1.ToolOutcome
	Result    string
	Operation string // that it handed back
}

// State returns the state of the log. It is the log's, and follows it until an event makes others void. A call costs
// little, unless the last event did that.
func (l *Log) State() *State {
	if l.state == nil {
		l.state = state(l.Counting())
	}
	return l.state
}

// Past returns the state of ended turns, including those that a rewind has left behind since.
func (l *Log) Past() *State {
	return state(l.without(slices.DeleteFunc(l.voids(), func(v void) bool { return v.turns == nil })))
}

// Told returns the state that clients have seen happen: all that counted when it was told.
func (l *Log) Told() *State {
	return state(l.without(slices.DeleteFunc(l.voids(), func(v void) bool { return !v.restart })))
}

func state(events []*sessionv1.Event) *State {
	s := &State{}
	for _, e := range events {
		s.apply(e)
	}
	return s
}

// Turn returns a turn by its name, or nil.
func (s *State) Turn(name string) *Turn {
	for _, t := range s.Turns {
		if t.Name == name {
			return t
		}
	}
	return nil
}

func (s *State) turn(name string) *Turn {
	if len(s.Turns) > 0 && s.Turns[len(s.Turns)-1].Name == name {
		return s.Turns[len(s.Turns)-1]
	}
	if t := s.Turn(name); t != nil {
		return t
	}
	t := &Turn{Name: name}
	s.Turns = append(s.Turns, t)
	return t
}

func (s *State) apply(e *sessionv1.Event) {
	if b := e.GetSessionCreated(); b != nil {
		s.Agent = b.GetAgent()
	}
	if e.GetTurn() == "" {
		return
	}
	t := s.turn(e.GetTurn())
	switch b := e.GetBody().(type) {
	case *sessionv1.Event_TurnQueued:
		t.Said = Text(b.TurnQueued.GetContent())
	case *sessionv1.Event_TurnStarted:
		t.Started++
	case *sessionv1.Event_TurnSteered:
		t.Into = b.TurnSteered.GetInto()
	case *sessionv1.Event_TurnFinished:
		t.Finished++
		t.State, t.Reason, t.Final = b.TurnFinished.GetState(), b.TurnFinished.GetError().GetReason(), b.TurnFinished.GetFinalText()
	}
	// That a turn waits during a step, that the step broke off, or that a server's state was found at its beginning,
	// still counts when the step does not.
	// The end of an operation that no call looks at is no part of the step either.
	if f := e.GetOperationFinished(); f != nil && f.GetCallId() == "" {
		return
	}
	if e.GetStep() > 0 && !ofTurn(e) && e.GetStepRestarted() == nil && e.GetMcpServerChanged() == nil && e.GetWarning() == nil {
		t.step(e.GetStep(), e.GetFirstSeq()).apply(e)
	}
}

func (t *Turn) step(n int32, seq int64) *Step {
	for _, s := range slices.Backward(t.Steps) { // most events are of the last one
		if s.Number == n {
			return s
		}
	}
	s := &Step{Number: n, Begun: seq}
	t.Steps = append(t.Steps, s)
	return s
}

func (s *Step) apply(e *sessionv1.Event) {
	switch b := e.GetBody().(type) {
	case *sessionv1.Event_StepFinished:
		s.Finished++
		s.Stop, s.Message = b.StepFinished.GetStopReason(), b.StepFinished.GetMessage()
	case *sessionv1.Event_TextDelta:
		s.block(b.TextDelta.GetBlock(), false).text.WriteString(b.TextDelta.GetText())
	case *sessionv1.Event_TextFinished:
		s.block(b.TextFinished.GetBlock(), false).Finished = true
	case *sessionv1.Event_ThinkingDelta:
		s.block(b.ThinkingDelta.GetBlock(), true).text.WriteString(b.ThinkingDelta.GetText())
	case *sessionv1.Event_ThinkingFinished:
		s.block(b.ThinkingFinished.GetBlock(), true).Finished = true
	case *sessionv1.Event_ToolCallStarted:
		s.call(b.ToolCallStarted.GetCallId()).Tool = b.ToolCallStarted.GetTool()
	case *sessionv1.Event_ToolCallArguments:
		c := s.call(b.ToolCallArguments.GetCallId())
		c.Tool, c.Arguments = b.ToolCallArguments.GetTool(), b.ToolCallArguments.GetArgumentsJson()
	case *sessionv1.Event_ToolCallDecision:
		s.call(b.ToolCallDecision.GetCallId()).Decision = b.ToolCallDecision.GetDecision()
	case *sessionv1.Event_ApprovalRequested:
		s.call(b.ApprovalRequested.GetCallId()).Asked++
	case *sessionv1.Event_ApprovalResolved:
		c := s.call(b.ApprovalResolved.GetCallId())
		c.Answers, c.Edited = append(c.Answers, b.ApprovalResolved.GetApproved()), b.ApprovalResolved.GetUpdatedArgumentsJson()
	case *sessionv1.Event_QuestionRequested:
		s.call(b.QuestionRequested.GetCallId()).Questions++
	case *sessionv1.Event_QuestionResolved:
		c := s.call(b.QuestionResolved.GetCallId())
		c.Replies = append(c.Replies, b.QuestionResolved.GetContentJson())
	case *sessionv1.Event_ToolCallOutputDelta:
		c := s.call(b.ToolCallOutputDelta.GetCallId())
		c.Output = append(c.Output, b.ToolCallOutputDelta.GetData()...)
	case *sessionv1.Event_OperationProgress:
		s.Looks = append(s.Looks, Look{Operation: b.OperationProgress.GetOperation()})
	case *sessionv1.Event_OperationFinished:
		s.Looks = append(s.Looks, Look{b.OperationFinished.GetOperation(), b.OperationFinished.GetState()})
	case *sessionv1.Event_ToolCallFinished:
		c := s.call(b.ToolCallFinished.GetCallId())
		c.Finished++
		c.Operation = b.ToolCallFinished.GetOperation()
		c.Outcome, c.Result = b.ToolCallFinished.GetOutcome(), Text(b.ToolCallFinished.GetContent())
	}
}

// Text returns the text of the step, and its thinking.
func (s *Step) Text() (said, thought string) {
	var texts, thoughts strings.Builder
	for _, b := range s.Blocks {
		if b.Thinking {
			thoughts.WriteString(b.Text())
		} else {
			texts.WriteString(b.Text())
		}
	}
	return texts.String(), thoughts.String()
}

func (s *Step) block(index int32, thinking bool) *Block {
	for _, b := range slices.Backward(s.Blocks) {
		if b.Index == index && b.Thinking == thinking {
			return b
		}
	}
	b := &Block{Index: index, Thinking: thinking}
	s.Blocks = append(s.Blocks, b)
	return b
}

func (s *Step) call(id string) *Call {
	for _, c := range slices.Backward(s.Calls) {
		if c.ID == id {
			return c
		}
	}
	c := &Call{ID: id}
	s.Calls = append(s.Calls, c)
	return c
}

// Text returns the text of a content.
func Text(contents []*commonv1.Content) string {
	var parts []string
	for _, c := range contents {
		if t := c.GetText(); t != nil {
			parts = append(parts, t.GetText())
		}
	}
	return strings.Join(parts, "\n")
}
