package fairlead

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/fairlead/fairlead/clients/go/fold"
	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// Tool is a tool that the client runs during a turn.
type Tool struct {
	// Name is unlike those of all other tools of the agent.
	Name string
	// Description says for the model what the tool does.
	Description string
	// Schema is the JSON Schema of the arguments; empty: any object.
	Schema string
	// Run makes a call. Its error is a result that the model reads. A client that is started again, and runs its turn
	// again with the same RequestId, makes the call again, unless its result was submitted. Nil leaves the calls to
	// another client.
	Run func(ctx context.Context, arguments json.RawMessage) (string, error)
}

// Handlers answer a turn. Approve, Ask and the tools run side by side, each in a goroutine of its own; their context
// ends with the turn, and Run waits until they return. What has no handler waits for another client.
type Handlers struct {
	// Event gets each event of the turn after the request's AfterSeq, in order, before anything that it asks for.
	Event func(*sessionv1.Event)
	// Approve decides about a call, a plan or a budget, of a subagent, too. The names of the session and the call, and the digest, are filled
	// in. Nil without an error leaves the answer to another client.
	Approve func(context.Context, *sessionv1.ApprovalRequested) (*sessionv1.ResolveApprovalRequest, error)
	// Ask answers a question of the agent, or of the server of one of its tools. Nil without an error leaves the answer to
	// another client.
	Ask func(context.Context, *sessionv1.QuestionRequested) (*sessionv1.AnswerQuestionRequest, error)
	// Tools are offered to the model beside those of the agent.
	Tools []Tool
	// Lost is called before each attempt to reconnect.
	Lost func(error)
}

// Run runs a turn to its end, over lost connections and restarts of the server, and answers what it asks. A turn that
// FAILED is no error. When ctx ends, Run returns and the turn goes on: Interrupt stops it.
//
// A request without a RequestId gets one. To come back to a turn after the end of this process, give it one of your own
// and run it again.
func (c *Client) Run(ctx context.Context, req *sessionv1.RunTurnRequest, h Handlers) (*sessionv1.TurnFinished, error) {
	req = proto.CloneOf(req)
	seen := req.GetAfterSeq()
	req.AfterSeq = 0 // what waits may have been asked for before
	for _, t := range h.Tools {
		offered := &sessionv1.ClientTool{Name: t.Name, Description: t.Description, InputSchemaJson: t.Schema}
		req.ClientTools = append(req.GetClientTools(), offered)
	}
	ctx, end := context.WithCancel(ctx)
	live := make(chan bool)
	tell := func(is bool) {
		select {
		case live <- is:
		case <-ctx.Done():
		}
	}
	f := RunTurn(ctx, c.Sessions, req, Options{Backoff: c.backoff, CaughtUp: func() { tell(true) }, Lost: func(err error) {
		if tell(false); h.Lost != nil {
			h.Lost(err)
		}
	}})
	defer f.Close()
	r := &run{
		Client: c, Handlers: h, session: req.GetParent(), failed: make(chan error, 1),
		calls: map[string]*sessionv1.ToolCallArguments{},
	}
	defer r.work.Wait()
	defer end()
	var finished *sessionv1.TurnFinished
	for {
		select {
		case err := <-r.failed:
			return nil, err
		case r.live = <-live:
		case e, more := <-f.Events():
			if !more && f.Err() != nil {
				return nil, f.Err()
			}
			if !more {
				return finished, nil
			}
			if h.Event != nil && e.GetSeq() > seen {
				h.Event(e)
			}
			r.take(e)
			finished = cmp.Or(e.GetTurnFinished(), finished)
		}
		r.begin(ctx)
	}
}

// run is a turn that runs.
type run struct {
	*Client
	Handlers
	session string
	turn    string         // of the first event; others are of a turn into which the message was put
	work    sync.WaitGroup // handlers
	failed  chan error     // the first fault of a handler

	// live is whether every event that the server had has come. Before that, what an event asks may have been answered.
	live  bool
	asks  fold.Asks
	calls map[string]*sessionv1.ToolCallArguments
	due   []*due // what waits for the client
}

// due is what waits for the client.
type due struct {
	call   string
	ask    *fold.Ask // nil: the result of a tool
	do     func(context.Context) error
	cancel context.CancelFunc // nil: it has not begun
}

// take notes what an event asks for, and what it ends.
func (r *run) take(e *sessionv1.Event) {
	r.turn = cmp.Or(r.turn, e.GetTurn())
	asked, closed := r.asks.Take(e)
	for _, a := range closed {
		r.drop(func(d *due) bool { return d.ask == a })
	}
	switch {
	case asked != nil && asked.Approval != nil && r.Approve != nil:
		r.add(&due{call: asked.Call, ask: asked, do: func(ctx context.Context) error { return r.approve(ctx, asked) }})
	case asked != nil && asked.Question != nil && r.Ask != nil:
		r.add(&due{call: asked.Call, ask: asked, do: func(ctx context.Context) error { return r.ask(ctx, asked) }})
	}
	if e.GetTurn() != r.turn {
		return // its tools are another's
	}
	switch b := e.GetBody().(type) {
	case *sessionv1.Event_ToolCallArguments:
		r.calls[b.ToolCallArguments.GetCallId()] = b.ToolCallArguments
	case *sessionv1.Event_TurnWaiting:
		for _, id := range b.TurnWaiting.GetCallIds() {
			r.wait(r.calls[id])
		}
	case *sessionv1.Event_ToolCallFinished:
		id := b.ToolCallFinished.GetCallId()
		delete(r.calls, id)
		r.drop(func(d *due) bool { return d.call == id })
	}
}

// wait notes a call that waits for the client, if its tool is one of ours.
func (r *run) wait(c *sessionv1.ToolCallArguments) {
	for _, t := range r.Tools {
		noted := slices.ContainsFunc(r.due, func(d *due) bool { return d.ask == nil && d.call == c.GetCallId() })
		if c != nil && t.Name == c.GetTool() && t.Run != nil && !noted {
			r.add(&due{call: c.GetCallId(), do: func(ctx context.Context) error { return r.submit(ctx, t, c) }})
		}
	}
}

func (r *run) add(d *due) { r.due = append(r.due, d) }

// drop ends what waits no longer.
func (r *run) drop(which func(*due) bool) {
	r.due = slices.DeleteFunc(r.due, func(d *due) bool {
		gone := which(d)
		if gone && d.cancel != nil {
			d.cancel()
		}
		return gone
	})
}

// begin starts the handlers of what waits, once it is known that it does.
func (r *run) begin(ctx context.Context) {
	for _, d := range r.due {
		if !r.live || d.cancel != nil {
			continue
		}
		ctx, cancel := context.WithCancel(ctx)
		d.cancel = cancel
		r.work.Go(func() {
			if err := d.do(ctx); err != nil && ctx.Err() == nil {
				select {
				case r.failed <- err:
				default: // the first one counts
				}
			}
		})
	}
}

func (r *run) submit(ctx context.Context, t Tool, c *sessionv1.ToolCallArguments) error {
	text, err := t.Run(ctx, json.RawMessage(c.GetArgumentsJson()))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		text = cmp.Or(err.Error(), "the tool failed")
	}
	req := &sessionv1.SubmitToolResultRequest{
		Parent: r.session, CallId: c.GetCallId(), Content: Text(strings.ToValidUTF8(text, "\uFFFD")), IsError: err != nil, RequestId: newID(),
	}
	return r.send(ctx, "submit the result of "+t.Name, func() error {
		_, err := r.Sessions.SubmitToolResult(ctx, req)
		return err
	})
}

func (r *run) approve(ctx context.Context, a *fold.Ask) error {
	answer, err := r.Approve(ctx, a.Approval)
	if err != nil || answer == nil {
		return err
	}
	answer = proto.CloneOf(answer)
	answer.Parent, answer.CallId, answer.Digest = cmp.Or(a.Session, r.session), a.Call, a.Approval.GetDigest()
	answer.RequestId = cmp.Or(answer.GetRequestId(), newID())
	return r.send(ctx, "answer an approval", func() error {
		_, err := r.Sessions.ResolveApproval(ctx, answer)
		return err
	})
}

func (r *run) ask(ctx context.Context, q *fold.Ask) error {
	answer, err := r.Ask(ctx, q.Question)
	if err != nil || answer == nil {
		return err
	}
	answer = proto.CloneOf(answer)
	answer.Parent, answer.CallId, answer.QuestionId = cmp.Or(q.Session, r.session), q.Call, q.Question.GetQuestion().GetId()
	answer.RequestId = cmp.Or(answer.GetRequestId(), newID())
	return r.send(ctx, "answer a question", func() error {
		_, err := r.Sessions.AnswerQuestion(ctx, answer)
		return err
	})
}

// late are the reasons of answers that are not needed any more.
var late = map[sessionv1.ErrorReason]bool{
	sessionv1.ErrorReason_ERROR_REASON_CALL_ANSWERED:    true,
	sessionv1.ErrorReason_ERROR_REASON_CALL_ENDED:       true,
	sessionv1.ErrorReason_ERROR_REASON_CALL_NOT_FOUND:   true,
	sessionv1.ErrorReason_ERROR_REASON_CALL_NOT_WAITING: true,
}

// send sends an answer. One that comes too late, because another client was first, is no fault.
func (r *run) send(ctx context.Context, what string, f func() error) error {
	err := Retry(ctx, r.backoff, f)
	if why := Reason(err); err == nil || late[why] {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Reason returns why the server refused a request; unspecified: the error is of another origin.
func Reason(err error) sessionv1.ErrorReason {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return sessionv1.ErrorReason(sessionv1.ErrorReason_value["ERROR_REASON_"+info.GetReason()])
		}
	}
	return sessionv1.ErrorReason_ERROR_REASON_UNSPECIFIED
}

// Text returns content of one text; none for an empty one.
func Text(text string) []*commonv1.Content {
	if text == "" {
		return nil
	}
	return []*commonv1.Content{{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: text}}}}
}
