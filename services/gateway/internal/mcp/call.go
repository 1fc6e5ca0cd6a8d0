package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/grpc/codes"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/id"
)

const (
	// patience is how long a call waits for a session service that is away.
	patience = time.Minute
	// backoff is the first wait before it is asked again.
	backoff = 200 * time.Millisecond
	// interruptTimeout bounds the request to stop a call.
	interruptTimeout = 10 * time.Second
	// outputEvery is how often a client hears of a running call's output.
	outputEvery = time.Second
)

// idempotencyKey is the header by which a client attaches to a call that it made before.
const idempotencyKey = "Idempotency-Key"

// calling is one request for a call. The call itself is a turn of the session.
type calling struct {
	s   *Server
	req *sdk.CallToolRequest
	ctx context.Context //nolint:containedctx // the SDK's: it ends when the client cancels, and finds the client's stream
	out context.Context //nolint:containedctx // of requests to services

	request *sessionv1.CallToolRequest
	turn    string
	asked   map[string]asked              // what waits for an answer, by id
	asking  sync.WaitGroup                // questions to a client with a session of the protocol
	settled map[string]context.CancelFunc // take them back, by id
	steps   float64                       // of progress
	said    time.Time                     // when output was last reported
	fault   error                         // that the call ended with, which is no result
}

// call makes a call for a client.
func (sc *scope) call(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	c := &calling{s: sc.s, req: req, ctx: ctx, out: caller(ctx, req.Extra), asked: map[string]asked{}, settled: map[string]context.CancelFunc{}}
	c.request = &sessionv1.CallToolRequest{Parent: sc.name(), Tool: req.Params.Name, ArgumentsJson: string(req.Params.Arguments), RequestId: id.New()}
	if req.Extra != nil && req.Extra.Header.Get(idempotencyKey) != "" {
		c.request.RequestId = req.Extra.Header.Get(idempotencyKey)
	}
	if req.Params.RequestState != "" {
		if err := c.answered(); err != nil { //nolint:contextcheck // calling has both contexts
			return nil, err
		}
	}
	defer c.asking.Wait()
	defer func() {
		for _, settle := range c.settled {
			settle()
		}
	}()
	defer opening(c.out)()    //nolint:contextcheck // as above
	result, err := c.follow() //nolint:contextcheck // as above
	if ctx.Err() != nil && c.cancels() {
		c.interrupt() //nolint:contextcheck // as above
	}
	return result, err
}

// name returns the name of the session.
func (sc *scope) name() string {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return sc.session
}

// cancels reports whether the end of the SDK's context means that the client cancels the call. Without a session of
// the protocol, a client of an earlier revision that is disconnected does not.
func (c *calling) cancels() bool { return c.modern() || c.live() }

func (c *calling) modern() bool { return c.req.ProtocolVersion() >= modern }

// live reports whether the client has a session of the protocol, over which it can be asked.
func (c *calling) live() bool { return !c.modern() && c.req.Session.ID() != "" }

// interrupt stops the call's turn, and no other.
func (c *calling) interrupt() {
	if c.turn == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.out), interruptTimeout)
	defer cancel()
	_, err := c.s.sessions.InterruptSession(ctx, &sessionv1.InterruptSessionRequest{Name: c.request.Parent, Turn: c.turn, RequestId: id.New()})
	if err != nil {
		c.s.log.WarnContext(ctx, "a call that its MCP client cancelled could not be stopped", "turn", c.turn, "error", err)
	}
}

// follow makes the call and shows it to its end, or until the client must answer. When the session service breaks
// off, it attaches to the call again.
func (c *calling) follow() (*sdk.CallToolResult, error) {
	lost := time.Now()
	for wait := backoff; ; wait = min(2*wait, 2*time.Second) {
		before := c.request.AfterSeq
		result, err := c.attach()
		if c.fault != nil {
			return nil, c.fault
		}
		if result != nil {
			return result, nil
		}
		if c.request.AfterSeq > before {
			lost, wait = time.Now(), backoff
		}
		if c.ctx.Err() != nil {
			return nil, context.Cause(c.ctx)
		}
		if !passes(err) || time.Since(lost) > patience {
			return refused(err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-c.ctx.Done():
			timer.Stop()
		}
	}
}

// passes reports whether an error of the session service may pass.
func passes(err error) bool {
	switch apierr.Code(err) {
	case codes.Unavailable, codes.Aborted, codes.Canceled:
		return true
	default:
		return errors.Is(err, io.EOF)
	}
}

// refused returns the answer for a call that the session service refuses: the model reads what can be done.
func refused(err error) (*sdk.CallToolResult, error) {
	message := apierr.Message(err)
	switch apierr.Code(err) {
	case codes.InvalidArgument, codes.AlreadyExists:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: message}
	default:
		return failed(message), nil
	}
}

// attach follows the call on one stream.
func (c *calling) attach() (*sdk.CallToolResult, error) {
	ctx, cancel := context.WithCancel(c.out)
	defer cancel()
	stream, err := c.s.tools.CallTool(ctx, c.request)
	for err == nil {
		var m *sessionv1.CallToolResponse
		if m, err = stream.Recv(); err != nil {
			break
		}
		if t := m.GetTurn(); t != nil {
			c.turn = t.GetName()
		}
		c.request.AfterSeq = max(c.request.AfterSeq, m.GetProgress().GetSeq(), m.GetEvent().GetSeq())
		if result := c.event(m.GetEvent()); result != nil {
			return result, nil
		}
	}
	return nil, err
}

// event shows an event of the call. It returns the result when there is one, or when the client must answer first.
func (c *calling) event(e *sessionv1.Event) *sdk.CallToolResult {
	switch b := e.GetBody().(type) {
	case *sessionv1.Event_ToolCallProgress:
		c.progress(b.ToolCallProgress.GetMessage())
	case *sessionv1.Event_ToolCallOutputDelta:
		c.output(string(b.ToolCallOutputDelta.GetData()))
	case *sessionv1.Event_ApprovalRequested:
		a := b.ApprovalRequested
		c.ask(asked{Call: a.GetCallId(), Tool: a.GetTool(), Digest: a.GetDigest(), approval: a})
	case *sessionv1.Event_ApprovalResolved:
		c.resolved(asked{Call: b.ApprovalResolved.GetCallId()})
	case *sessionv1.Event_QuestionRequested:
		c.ask(asked{Call: b.QuestionRequested.GetCallId(), Tool: b.QuestionRequested.GetTool(), Question: b.QuestionRequested.GetQuestion()})
	case *sessionv1.Event_QuestionResolved:
		c.resolved(asked{Call: b.QuestionResolved.GetCallId(), Question: &commonv1.Question{Id: b.QuestionResolved.GetQuestionId()}})
	case *sessionv1.Event_TurnWaiting:
		return c.inputRequired()
	case *sessionv1.Event_TurnFinished:
		return c.finished(b.TurnFinished)
	}
	return nil
}

// progress tells the client how far the call is, if it wants to know: one that sends a token, or has set a level of the
// log.
func (c *calling) progress(message string) {
	_ = c.req.Session.Log(c.ctx, &sdk.LoggingMessageParams{Level: "info", Logger: c.request.GetTool(), Data: message}) //nolint:staticcheck // older revisions have it
	token := c.req.Params.GetProgressToken()
	if token == nil {
		return
	}
	c.steps++
	// A client that cannot be told has left, which ends the call in another place.
	_ = c.req.Session.NotifyProgress(c.ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: c.steps, Message: message})
}

// output tells the client the last line of the call's output.
func (c *calling) output(text string) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	line := strings.TrimSpace(lines[len(lines)-1])
	if line == "" || time.Since(c.said) < outputEvery {
		return
	}
	c.said = time.Now()
	c.progress(cut(line, 200))
}

// cut shortens a text to so many characters.
func cut(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// finished returns the result of a call whose turn has ended.
func (c *calling) finished(end *sessionv1.TurnFinished) *sdk.CallToolResult {
	c.fault = c.missing(end.GetCallResult().GetMcpError())
	result := resultOf(end.GetCallResult())
	if end.GetCallResult() == nil {
		result = failed(fmt.Sprintf("The call ended without a result: %s", end.GetError().GetMessage()))
	}
	result.Meta = sdk.Meta{"fairlead.dev/turn": c.turn}
	return result
}

// missing returns the error of a connected server that needs a capability of the client which this one does not have;
// nil: it is another one, or the client has what the server is not offered here.
func (c *calling) missing(e *commonv1.McpError) error {
	if e.GetCode() != sdk.CodeMissingRequiredClientCapabilities {
		return nil
	}
	var data struct {
		RequiredCapabilities map[string]json.RawMessage `json:"requiredCapabilities"`
	}
	has := map[string]json.RawMessage{}
	b, err := json.Marshal(c.req.ClientCapabilities())
	if err != nil || json.Unmarshal(b, &has) != nil || json.Unmarshal([]byte(e.GetDataJson()), &data) != nil {
		return nil //nolint:nilerr // what cannot be read is an ordinary failure of the call
	}
	for name := range data.RequiredCapabilities {
		if _, ok := has[name]; !ok {
			return &jsonrpc.Error{Code: e.GetCode(), Message: e.GetMessage(), Data: json.RawMessage(e.GetDataJson())}
		}
	}
	return nil
}
