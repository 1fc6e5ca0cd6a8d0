package turn

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// run is the loop's state of a turn, stored in TurnRow.Run. It has everything that a successor needs and that
// is not in the messages.
type run struct {
	Request []byte            `json:"request"` // the CreateTurnRequest
	User    string            `json:"user"`
	Trace   map[string]string `json:"trace,omitempty"` // W3C Trace Context of the request

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
	Counted  counted `json:"counted,omitzero"`

	Budget    budgetState         `json:"budget,omitzero"`
	Results   map[string][]byte   `json:"results,omitempty"` // ToolResult by call id, of the current step
	Asked     map[string]question `json:"asked,omitempty"`   // calls that a person must allow
	Approvals map[string]answer   `json:"approvals,omitempty"`
	Queue     []string            `json:"queue,omitempty"`    // ids of the turns that wait behind this one
	Urgent    int                 `json:"urgent,omitempty"`   // how many turns at the head of Queue were sent to stop a turn: they go before the others
	Steer     []string            `json:"steer,omitempty"`    // the part of Queue whose messages join before the next step
	Steered   []string            `json:"steered,omitempty"`  // ids of the turns whose messages have joined
	Finished  []byte              `json:"finished,omitempty"` // StepFinished of the step whose calls run
	Files     *filesKept          `json:"files,omitempty"`    // nil before the turn's first change
	Began     int64               `json:"began,omitempty"`    // first number of the current step's last attempt, its calls included
	unknown   unknown
}

type question struct {
	Digest  string `json:"digest"`
	Rule    string `json:"rule"`
	unknown unknown
}

type answer struct {
	Digest   string `json:"digest"`
	Approved bool   `json:"approved"`
	Comment  string `json:"comment,omitempty"`
	User     string `json:"user"`
	Expired  bool   `json:"expired,omitempty"` // no person has answered
	unknown  unknown
}

// Accept returns the first state of a turn.
func Accept(r *sessionv1.CreateTurnRequest, user string, trace map[string]string) ([]byte, error) {
	request, err := proto.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("marshal the request: %w", err)
	}
	return json.Marshal(run{Request: request, User: user, Trace: trace})
}

// active is the turn that the worker runs.
type active struct {
	id      string
	turn    *sessionv1.Turn
	run     run
	request *sessionv1.CreateTurnRequest
	since   time.Time // when this worker took the turn over
	consume []int64   // interrupts that the end of the turn answers
	summary string    // what the agent said with the tool finish
	stopped bool      // an interrupt or a rollback was received
	undo    bool      // a rollback was received
	client  map[string]*sessionv1.ClientTool
}

func newActive(id string, t *sessionv1.Turn, state []byte) (*active, error) {
	a := &active{id: id, turn: t, since: time.Now(), request: &sessionv1.CreateTurnRequest{}, client: map[string]*sessionv1.ClientTool{}}
	if err := json.Unmarshal(state, &a.run); err != nil {
		return nil, fmt.Errorf("read the state of turn %s: %w", id, err)
	}
	if err := proto.Unmarshal(a.run.Request, a.request); err != nil {
		return nil, fmt.Errorf("read the request of turn %s: %w", id, err)
	}
	for _, t := range a.request.ClientTools {
		a.client[t.Name] = t
	}
	if a.run.Results == nil {
		a.run.Results = map[string][]byte{}
	}
	if a.run.Asked == nil {
		a.run.Asked = map[string]question{}
	}
	if a.run.Approvals == nil {
		a.run.Approvals = map[string]answer{}
	}
	return a, nil
}

// row returns the turn as the store keeps it. It shares no memory with the
// turn.
func (a *active) row() *store.TurnRow {
	r := a.run
	r.WallUsed = a.wallUsed()
	state, err := json.Marshal(r)
	if err != nil {
		panic(fmt.Sprintf("a turn's state does not marshal: %v", err)) // it holds only plain data
	}
	return &store.TurnRow{ID: a.id, Turn: proto.CloneOf(a.turn), Run: state}
}

// wallUsed returns the time that counts against the turn's limit: neither WAITING nor
// QUEUED.
func (a *active) wallUsed() time.Duration {
	if a.turn.State != sessionv1.TurnState_TURN_STATE_RUNNING {
		return a.run.WallUsed
	}
	return a.run.WallUsed + time.Since(a.since)
}

// enqueue puts a turn behind this one: last, or before all that were not sent
// to stop a turn if this one was.
func (a *active) enqueue(id string, on sessionv1.OnActive) {
	at := len(a.run.Queue)
	if on == sessionv1.OnActive_ON_ACTIVE_INTERRUPT || on == sessionv1.OnActive_ON_ACTIVE_ROLLBACK {
		at = min(a.run.Urgent, at) // an older version removes turns from the queue but not from the count
		a.run.Urgent = at + 1
	}
	a.run.Queue = slices.Insert(a.run.Queue, at, id)
}

// takeQueue empties the queue and returns it for the next turn.
func (a *active) takeQueue() (ids []string, urgent int) {
	ids, urgent = a.run.Queue, a.run.Urgent
	a.run.Queue, a.run.Urgent, a.run.Steer = nil, 0, nil
	return ids, urgent
}

// clearStep clears the state of the step that has ended.
func (a *active) clearStep() {
	a.run.StepSeq, a.run.Attempt, a.run.Finished, a.run.Squeezed = 0, 0, nil, 0
	clear(a.run.Results)
	clear(a.run.Asked)
	clear(a.run.Approvals)
}

func (a *active) waiting() bool {
	return a.turn.State == sessionv1.TurnState_TURN_STATE_WAITING
}

func (a *active) setResult(callID string, r *sessionv1.ToolResult) error {
	b, err := proto.Marshal(r)
	if err != nil {
		return fmt.Errorf("marshal the result of call %s: %w", callID, err)
	}
	a.run.Results[callID] = b
	return nil
}

func (a *active) result(callID string) (*sessionv1.ToolResult, bool, error) {
	b, ok := a.run.Results[callID]
	if !ok {
		return nil, false, nil
	}
	r := &sessionv1.ToolResult{}
	if err := proto.Unmarshal(b, r); err != nil {
		return nil, false, fmt.Errorf("read the result of call %s: %w", callID, err)
	}
	return r, true, nil
}
