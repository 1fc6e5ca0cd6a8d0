package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

// defaultTimeout bounds a call of a server that has no timeout of its own.
const defaultTimeout = 10 * time.Minute

// maxErrorData bounds what an error says besides its message.
const maxErrorData = 16 << 10

// codeRejected is the code with which the SDK marks a request whose transport failed. No
// server has sent it.
const codeRejected = -32005

// errTimeout ends a call that takes too long.
var errTimeout = errors.New("the call took too long")

// runner runs the calls of one tool of a server, or other requests to it.
type runner struct {
	pool   *Pool
	caller Caller
	server offer
	own    string // the server's name of the tool; "": another request
	ask    request
	// repeatable calls may be made again: a trusted server says that they do no harm.
	repeatable bool
}

// request makes a request of a call, with a person's answers to what the server asked.
type request func(ctx context.Context, s *mcp.ClientSession, meta mcp.Meta, arguments json.RawMessage, d *dialog) (*reply, error)

// reply is a server's answer: a result, or what it asks first.
type reply struct {
	result *tool.Result
	asked  mcp.InputRequestMap
	state  string
}

// callTool calls a tool by the server's own name.
func callTool(own string) request {
	return func(ctx context.Context, s *mcp.ClientSession, meta mcp.Meta, arguments json.RawMessage, d *dialog) (*reply, error) {
		answer, err := s.CallTool(ctx, &mcp.CallToolParams{
			Name: own, Arguments: arguments, Meta: meta, InputResponses: d.responses(), RequestState: d.State,
		})
		switch {
		case err != nil:
			return nil, err
		case answer.NeedsInput():
			return &reply{asked: answer.InputRequests, state: answer.RequestState}, nil
		}
		return &reply{result: convertResult(answer)}, nil
	}
}

// Run implements tool.Runner.
func (r runner) Run(ctx context.Context, c tool.Call, out tool.Sink) (*tool.Result, error) {
	if c.Resumed && !r.repeatable {
		return r.unknown("The call was interrupted when the tools service stopped"), nil
	}
	var d dialog
	if c.Answer != nil {
		if err := d.answered(c.Answer); err != nil {
			return nil, err
		}
		if asking, err := d.next(r.server.GetName()); err != nil || asking != nil { // of the same round
			return r.asking(asking, err)
		}
	}
	l, err := r.pool.link(ctx, r.caller, r.server)
	if err != nil {
		return tool.Failed(away(r.server.McpServer, plain(err))), nil
	}
	defer l.release()
	for again := false; ; again = true {
		waiting, cancel := context.WithTimeout(ctx, callWait)
		v := l.ready(waiting)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx) // nothing was sent
		case v.state != connected:
			return tool.Failed(away(r.server.McpServer, v.message())), nil
		}
		answer, err := r.once(ctx, l, v.session, c.Arguments, &d, out)
		if e, ok := errors.AsType[*callError](err); ok && e.forgotten() && !again {
			l.lost(v.session)
			continue
		}
		if e, ok := errors.AsType[*callError](err); ok && e.status == http.StatusUnauthorized {
			l.lost(v.session) // a new connection asks for the login
		}
		if errors.Is(err, errScope) { // the other tools still work
			l.show(func(v *view) { v.wants = errScope.Error() })
		}
		if err != nil {
			return r.failed(ctx, l, c.Arguments, err)
		}
		if answer.result != nil {
			return answer.result, nil
		}
		d.State, d.Asked, d.Answers = answer.state, answer.asked, nil
		asking, err := d.next(r.server.GetName())
		if err == nil && asking == nil {
			err = errors.New("it is busy and wants the call to be made again later")
		}
		return r.asking(asking, err)
	}
}

// asking ends a run with a question, or with a result where the server asks what is not
// answered.
func (r runner) asking(q *tool.AskingError, err error) (*tool.Result, error) {
	if err != nil {
		return tool.Failed(fmt.Sprintf("The MCP server %s did not finish the call: %s.", r.server.GetName(), plain(err))), nil
	}
	return nil, q
}

// once sends the call, with the answers that it has, and returns the server's result.
func (r runner) once(ctx context.Context, l *link, session *mcp.ClientSession, args json.RawMessage, d *dialog, out tool.Sink) (*reply, error) {
	limit := defaultTimeout
	if t := r.server.GetTimeout(); t != nil {
		limit = t.AsDuration()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	clock := time.AfterFunc(limit, func() { cancel(errTimeout) })
	defer clock.Stop()
	x := &exchange{tool: r.own}
	if r.server.GetStdio() != nil {
		x.sent() // how much of it a command has read is not known
	}
	token, done := l.calls.follow(&progress{ctx: ctx, out: out, pause: func() { clock.Stop() }, goOn: func() { clock.Reset(limit) }})
	defer done()
	meta := mcp.Meta{"progressToken": token}
	if init := session.InitializeResult(); init != nil && init.ProtocolVersion > legacyVersion {
		meta[mcp.MetaKeyLogLevel] = logLevel //nolint:staticcheck // servers still log
	}
	answer, err := r.ask(withExchange(ctx, x), session, meta, args, d)
	if err != nil {
		return nil, &callError{err: err, cause: context.Cause(ctx), sent: x.left.Load(), status: int(x.status.Load())}
	}
	return answer, nil
}

// callError is a call without a result, and how far it got.
type callError struct {
	err, cause error
	sent       bool
	status     int
}

// Error implements error.
func (e *callError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *callError) Unwrap() error { return e.err }

// refused reports whether the server has not begun the call.
func (e *callError) refused() bool {
	return !e.sent && e.status == 0 || e.status >= 400 && e.status < 500 && e.status != http.StatusRequestTimeout
}

// forgotten reports whether the server has refused the call because it has forgotten the connection. It may also say so
// of a stream while the call runs.
func (e *callError) forgotten() bool {
	return errors.Is(e.err, mcp.ErrSessionMissing) && e.status == http.StatusNotFound
}

// failed returns the result of a call without a response that can be used.
func (r runner) failed(ctx context.Context, l *link, args json.RawMessage, err error) (*tool.Result, error) {
	var e *callError
	if !errors.As(err, &e) {
		return nil, err
	}
	var answer *jsonrpc.Error
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(e.cause, errTimeout):
		return r.unknown("The call took longer than the MCP server's time for a call and was cancelled"), nil
	case errors.As(err, &answer) && answer.Code != codeRejected:
		if r.own != "" && (answer.Code == jsonrpc.CodeInvalidParams || answer.Code == jsonrpc.CodeMethodNotFound) {
			l.outdated(r.server.GetStdio() == nil) // perhaps it has no such tool any more
		}
		return r.refused(answer, args), nil
	case e.refused():
		return tool.Failed(fmt.Sprintf("The call was not made: the MCP server %s failed: %s.", r.server.GetName(), plain(err))), nil
	default:
		return r.unknown("The MCP server's response is missing or broken: " + plain(err)), nil
	}
}

// hint names a number because of which a server may have refused arguments.
func hint(args json.RawMessage) string {
	n := tool.Beyond(args)
	if n == "" {
		return ""
	}
	return fmt.Sprintf(". Its arguments have the number %s, which most programs cannot hold: use one below 1e308", cut(n, 100))
}

// refused is the result of a call that the server answers with an error.
func (r runner) refused(answer *jsonrpc.Error, args json.RawMessage) *tool.Result {
	said := cmp.Or(cut(valid(answer.Message), maxText), "it gave no reason")
	result := tool.Failed(fmt.Sprintf("The MCP server %s refused the call: %s%s", r.server.GetName(), said, hint(args)))
	result.McpError = &commonv1.McpError{Code: answer.Code, Message: said}
	if len(answer.Data) <= maxErrorData && utf8.Valid(answer.Data) {
		result.McpError.DataJson = string(answer.Data)
	}
	return result
}

// unknown is the result of a call that may have taken effect.
func (r runner) unknown(why string) *tool.Result {
	return tool.Ended(toolsv1.CallOutcome_CALL_OUTCOME_UNKNOWN, fmt.Sprintf(
		"%s (MCP server %s). How the call ended is not known. It may have taken effect: check before repeating it.", why, r.server.GetName()))
}
