package state

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Run is the loop's state of a turn, stored in TurnRow.Run. It has everything that a successor needs and that
// is not in the messages.
type Run struct {
	Origin
	StartSeq int64         `json:"start_seq,omitempty"` // number of turn.started; 0: not begun
	StepSeq  int64         `json:"step_seq,omitempty"`  // first number of the current step; 0: none
	Attempt  int           `json:"attempt,omitempty"`   // of the current step
	WallUsed time.Duration `json:"wall_used,omitempty"`

	// TodoSteps are the finished steps that do not count against the turn's limit.
	TodoSteps int32 `json:"todo_steps,omitempty"`

	// OutputAsks is how often the agent was asked for its missing output.
	OutputAsks int `json:"output_asks,omitempty"`

	// Squeezed is how often the provider found the context full in the current step.
	Squeezed int     `json:"squeezed,omitempty"`
	Counted  Counted `json:"counted,omitzero"`

	Budget Budget `json:"budget,omitzero"`
	// Above are the turns for which a subagent's turn works, the nearest first.
	Above []Above `json:"above,omitempty"`
	CallState
	QueueState
	Files *Files `json:"files,omitempty"` // nil before the turn's first change
	// Artifacts are the etags of the artifacts before the turn's first change, by path; nil: not known.
	Artifacts map[string]string `json:"artifacts,omitempty"`

	// MCP marks what the log says of each MCP server; nil: nothing was reported in this turn.
	MCP map[string]string `json:"mcp,omitzero"`

	// Mode is the permission mode of the turn if it is not the one of its options any more.
	Mode commonv1.PermissionMode `json:"mode,omitempty"`

	// ResumePoint is what the runtime gave with the last committed answer.
	ResumePoint []byte `json:"resume_point,omitempty"`

	Began   int64 `json:"began,omitempty"` // first number of the current step's last attempt, its calls included
	unknown unknown
}

// Origin is the part of a turn's state about its request.
type Origin struct {
	Request []byte `json:"request"` // the CreateTurnRequest
	User    string `json:"user"`
	// WritesAgents says that the user's credential could make agents when the turn was accepted.
	WritesAgents bool              `json:"writes_agents,omitempty"`
	Trace        map[string]string `json:"trace,omitempty"` // W3C Trace Context of the request
	// Runtime drives the turn, by the flags that held when it began; empty: the agent's own.
	Runtime string `json:"runtime,omitempty"`
	// Alone says that the turn neither uses a CLI that runs already nor leaves one running.
	Alone bool `json:"alone,omitempty"`
}

// CallState is the part of a turn's state about the calls of the current step.
type CallState struct {
	Results   map[string][]byte   `json:"results,omitempty"`   // ToolResult by call id
	Asked     map[string]Question `json:"asked,omitempty"`     // calls that wait for a person
	Approvals map[string]Answer   `json:"approvals,omitempty"` // by call id
	Answers   map[string][]byte   `json:"answers,omitempty"`   // QuestionAnswer by call id
	Finished  []byte              `json:"finished,omitempty"`  // StepFinished of the step whose calls run
	// Interrupt says which call a rule denied that ends the turn; empty: none.
	Interrupt string `json:"interrupt,omitempty"`
}

// QueueState is the part of a turn's state about the turns behind it.
type QueueState struct {
	Queue   []string `json:"queue,omitempty"`   // ids of the turns that wait behind this one
	Urgent  int      `json:"urgent,omitempty"`  // how many turns at the head of Queue were sent to stop a turn: they go before the others
	Steer   []string `json:"steer,omitempty"`   // the part of Queue whose messages join before the next step
	Steered []string `json:"steered,omitempty"` // ids of the turns whose messages have joined
}

// Question is a question that waits for a person.
type Question struct {
	Digest    string   `json:"digest"`
	Rule      string   `json:"rule"`
	Suggested []string `json:"suggested,omitempty"` // rules that cover the call, the narrowest first
	Asks      bool     `json:"asks,omitempty"`      // a question of the call, not whether it may run
	Plan      bool     `json:"plan,omitempty"`      // whether the agent's plan is approved, not whether the call may run
	unknown   unknown
}

// Answer is a person's answer to a question.
type Answer struct {
	Digest    string                 `json:"digest"`
	Approved  bool                   `json:"approved"`
	Comment   string                 `json:"comment,omitempty"`
	User      string                 `json:"user"`
	Expired   bool                   `json:"expired,omitempty"` // no person has answered
	Scope     commonv1.ApprovalScope `json:"scope,omitempty"`
	Rule      string                 `json:"rule,omitempty"`      // of a scope beyond the call
	Arguments string                 `json:"arguments,omitempty"` // instead of the model's; empty: the model's
	unknown   unknown
}

// Counted is a provider's token count up to a message of the conversation.
type Counted struct {
	Message string `json:"message,omitempty"`
	Tokens  int64  `json:"tokens,omitempty"`
	unknown unknown
}

// Budget is the part of a turn's state about budgets.
type Budget struct {
	Open  string `json:"open,omitempty"`  // the reservation in progress
	Asked int    `json:"asked,omitempty"` // reservations so far
	Time  bool   `json:"time,omitempty"`  // time may be reserved

	Questions int             `json:"questions,omitempty"` // put to people so far
	Question  *BudgetQuestion `json:"question,omitempty"`  // the one that waits for an answer or has just got it
	Allowed   []string        `json:"allowed,omitempty"`   // limits whose soft part people let the turn pass
	unknown   unknown
}

// BudgetQuestion asks whether the turn may pass the soft part of a limit.
type BudgetQuestion struct {
	CallID  string `json:"call_id"`
	Limit   string `json:"limit"`
	unknown unknown
}

// Above is a turn whose budgets, and those of its session, hold for a subagent's turn, too.
type Above struct {
	Session string `json:"session"` // an id
	Turn    string `json:"turn"`    // an id
	Budget  []byte `json:"session_budget"`
	Limits  []byte `json:"turn_limits"`
	unknown unknown
}

// Files describes the snapshots of the workspace's files during a turn.
type Files struct {
	// Snapshot was made before the turn's first change; it is empty if it could not be made.
	Snapshot string `json:"snapshot,omitempty"`
	// Step is the last step that has a checkpoint, or for which making one failed. Zero was
	// written by an older version, which made one snapshot in a turn. Below zero there is no
	// checkpoint yet: the calls that changed something were of tools without checkpoints.
	Step    int32 `json:"step,omitempty"`
	unknown unknown
}

// Accept returns the first state of a turn. writesAgents says that its user may make agents.
func Accept(r *sessionv1.CreateTurnRequest, user string, writesAgents bool, trace map[string]string) ([]byte, error) {
	request, err := proto.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("marshal the request: %w", err)
	}
	return json.Marshal(Run{Origin: Origin{Request: request, User: user, WritesAgents: writesAgents, Trace: trace}})
}

// failures are the outcomes of calls that failed by themselves: no person and no rule decided it.
var failures = []sessionv1.ToolOutcome{
	sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR, sessionv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN, sessionv1.ToolOutcome_TOOL_OUTCOME_UNAVAILABLE,
}

// Turn is a turn in memory. Its holder changes it, and writes Row.
type Turn struct {
	ID      string
	Proto   *sessionv1.Turn
	Run     Run
	Request *sessionv1.CreateTurnRequest
	Since   time.Time // when this worker took the turn over
	Consume []int64   // interrupts that the end of the turn answers
	Summary string    // of the agent's verdict
	Stopped bool      // an interrupt or a rollback was received
	Undo    bool      // a rollback was received
	Client  map[string]*sessionv1.ClientTool

	announced announced
}

// NewTurn reads a turn from its row.
func NewTurn(id string, t *sessionv1.Turn, state []byte) (*Turn, error) {
	a := &Turn{ID: id, Proto: t, Since: time.Now(), Request: &sessionv1.CreateTurnRequest{}, Client: map[string]*sessionv1.ClientTool{}}
	if err := json.Unmarshal(state, &a.Run); err != nil {
		return nil, fmt.Errorf("read the state of turn %s: %w", id, err)
	}
	if err := proto.Unmarshal(a.Run.Request, a.Request); err != nil {
		return nil, fmt.Errorf("read the request of turn %s: %w", id, err)
	}
	for _, t := range a.Request.ClientTools {
		a.Client[t.Name] = t
	}
	if a.Run.Results == nil {
		a.Run.Results = map[string][]byte{}
	}
	if a.Run.Asked == nil {
		a.Run.Asked = map[string]Question{}
	}
	if a.Run.Answers == nil {
		a.Run.Answers = map[string][]byte{}
	}
	if a.Run.Approvals == nil {
		a.Run.Approvals = map[string]Answer{}
	}
	return a, nil
}

// Row returns the turn as the store keeps it. It shares no memory with the turn.
func (t *Turn) Row() *store.TurnRow {
	r := t.Run
	r.WallUsed = t.WallUsed()
	state, err := json.Marshal(r)
	if err != nil {
		panic(fmt.Sprintf("a turn's state does not marshal: %v", err)) // it holds only plain data
	}
	return &store.TurnRow{ID: t.ID, Turn: proto.CloneOf(t.Proto), Run: state}
}

// WallUsed returns the time that counts against the turn's limit: neither WAITING nor
// QUEUED.
func (t *Turn) WallUsed() time.Duration {
	if t.Proto.State != sessionv1.TurnState_TURN_STATE_RUNNING {
		return t.Run.WallUsed
	}
	return t.Run.WallUsed + time.Since(t.Since)
}

// Waiting reports whether the turn waits for an answer.
func (t *Turn) Waiting() bool { return t.Proto.State == sessionv1.TurnState_TURN_STATE_WAITING }

// IsCall reports whether the turn is a call without the model.
func (t *Turn) IsCall() bool { return t.Proto.Call != nil }

// Step returns the number of the current step, from 1; 0 for a turn that is a call.
func (t *Turn) Step() int32 {
	if t.IsCall() {
		return 0
	}
	return t.Proto.Steps + 1
}

// TokensLeft returns how many tokens the model and those of subagents may still produce.
func (t *Turn) TokensLeft() int64 {
	return t.Proto.Limits.GetMaxOutputTokens() - t.Proto.GetUsage().GetOutputTokens() - t.Proto.GetSubagentUsage().GetOutputTokens()
}

// StepsCounted returns how many steps count against the turn's limit.
func (t *Turn) StepsCounted() int32 { return t.Proto.Steps - t.Run.TodoSteps }

// MayStep reports whether the turn's limits allow another step.
func (t *Turn) MayStep() bool {
	return t.StepsCounted() < t.Proto.Limits.GetMaxSteps() && t.TokensLeft() > 0
}

// Owns reports whether a message of the turn with this name belongs to t: it is t, or its
// message joined t.
func (t *Turn) Owns(name string) bool {
	return name == t.Proto.Name || slices.Contains(t.Run.Steered, LastSegment(name))
}

// Enqueue puts a turn behind t: last, or before all that were not sent to stop a turn if
// this one was.
func (t *Turn) Enqueue(id string, on sessionv1.OnActive) {
	at := len(t.Run.Queue)
	if on == sessionv1.OnActive_ON_ACTIVE_INTERRUPT || on == sessionv1.OnActive_ON_ACTIVE_ROLLBACK {
		at = min(t.Run.Urgent, at) // an older version removes turns from the queue but not from the count
		t.Run.Urgent = at + 1
	}
	t.Run.Queue = slices.Insert(t.Run.Queue, at, id)
}

// Dequeue takes a turn out of the queue, and reports whether it was there.
func (t *Turn) Dequeue(id string) bool {
	at := slices.Index(t.Run.Queue, id)
	if at < 0 {
		return false
	}
	t.Run.Queue = slices.Delete(t.Run.Queue, at, at+1)
	if at < t.Run.Urgent {
		t.Run.Urgent--
	}
	t.Run.Steer = slices.DeleteFunc(t.Run.Steer, func(s string) bool { return s == id })
	return true
}

// TakeQueue empties the queue and returns it for the next turn.
func (t *Turn) TakeQueue() (ids []string, urgent int) {
	ids, urgent = t.Run.Queue, t.Run.Urgent
	t.Run.Queue, t.Run.Urgent, t.Run.Steer = nil, 0, nil
	return ids, urgent
}

// ClearStep clears the state of the step that has ended.
func (t *Turn) ClearStep() {
	t.Run.StepSeq, t.Run.Attempt, t.Run.Finished, t.Run.Squeezed, t.Run.Interrupt = 0, 0, nil, 0, ""
	clear(t.Run.Results)
	clear(t.Run.Asked)
	clear(t.Run.Approvals)
	clear(t.Run.Answers)
}

// SetResult stores a call's result. A call that failed counts once.
func (t *Turn) SetResult(callID string, r *sessionv1.ToolResult) error {
	b, err := proto.Marshal(r)
	if err != nil {
		return fmt.Errorf("marshal the result of call %s: %w", callID, err)
	}
	if !t.HasResult(callID) && slices.Contains(failures, r.Outcome) {
		t.Proto.ToolErrors++
	}
	t.Run.Results[callID] = b
	return nil
}

// HasResult reports whether a call has its result.
func (t *Turn) HasResult(callID string) bool {
	_, ok := t.Run.Results[callID]
	return ok
}

// IsAsked reports whether a call waits for a person's approval or answer.
func (t *Turn) IsAsked(callID string) bool {
	_, ok := t.Run.Asked[callID]
	return ok
}

// AsksQuestion reports whether a call waits for the answer to a question. Unlike a call that waits
// for an approval it has begun.
func (t *Turn) AsksQuestion(callID string) bool { return t.Run.Asked[callID].Asks }

// AsksPlan reports whether a call waits for the approval of the agent's plan. It has begun, too.
func (t *Turn) AsksPlan(callID string) bool { return t.Run.Asked[callID].Plan }

// Answer returns the answer to a call's last question; nil: it has none.
func (t *Turn) Answer(callID string) (*commonv1.QuestionAnswer, error) {
	b, ok := t.Run.Answers[callID]
	if !ok {
		return nil, nil //nolint:nilnil // most calls ask nothing
	}
	a := &commonv1.QuestionAnswer{}
	if err := proto.Unmarshal(b, a); err != nil {
		return nil, fmt.Errorf("read the answer to call %s: %w", callID, err)
	}
	return a, nil
}

// SetAnswer stores the answer to a call's question, which does not wait any more.
func (t *Turn) SetAnswer(callID string, a *commonv1.QuestionAnswer) error {
	b, err := proto.Marshal(a)
	if err != nil {
		return fmt.Errorf("marshal the answer to call %s: %w", callID, err)
	}
	t.Run.Answers[callID] = b
	delete(t.Run.Asked, callID)
	return nil
}

// Result returns a call's result, if there is one.
func (t *Turn) Result(callID string) (*sessionv1.ToolResult, bool, error) {
	b, ok := t.Run.Results[callID]
	if !ok {
		return nil, false, nil
	}
	r := &sessionv1.ToolResult{}
	if err := proto.Unmarshal(b, r); err != nil {
		return nil, false, fmt.Errorf("read the result of call %s: %w", callID, err)
	}
	return r, true, nil
}

// Finishing returns the end of the step whose calls run.
func (t *Turn) Finishing() (*sessionv1.StepFinished, error) {
	end := &sessionv1.StepFinished{}
	if err := proto.Unmarshal(t.Run.Finished, end); err != nil {
		return nil, fmt.Errorf("read the end of step %d: %w", t.Step(), err)
	}
	return end, nil
}
