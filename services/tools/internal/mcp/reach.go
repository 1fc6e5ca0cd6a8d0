package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
)

// codeNoResource is with what servers before 2026-07-28 say that there is no such resource.
const codeNoResource = -32002

// askTimeout bounds a request to a server that is no call.
const askTimeout = 15 * time.Second

const (
	// maxValues and maxValue bound what a server proposes for an argument.
	maxValues = 100
	maxValue  = 4 << 10
)

// ErrAway is any AwayError, and ErrRefused any RefusedError.
var (
	ErrAway    = errors.New("the MCP server cannot be used now")
	ErrRefused = errors.New("the MCP server refused the request")
)

// AwayError says that a server cannot be used.
type AwayError struct{ Server, Why string }

// Error implements error.
func (e *AwayError) Error() string {
	return fmt.Sprintf("The MCP server %s cannot be used now: %s.", e.Server, e.Why)
}

// Is reports whether target is ErrAway.
func (*AwayError) Is(target error) bool { return target == ErrAway }

// RefusedError is a server's refusal of a request.
type RefusedError struct {
	Server, Why string
	// Request says that the request is at fault.
	Request bool
}

// Error implements error.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("The MCP server %s refused the request: %s", e.Server, e.Why)
}

// Is reports whether target is ErrRefused.
func (*RefusedError) Is(target error) bool { return target == ErrRefused }

// Target is a server of a session, for a request that is no call.
type Target struct {
	Caller  Caller
	Servers []*commonv1.McpServer
	Allowed []string // the tools of the agent
	Name    string
}

// reach returns the connection to a server, and its view once it is connected. The caller releases it.
func (p *Pool) reach(ctx context.Context, t Target) (*link, view, error) {
	for _, o := range p.offers(t.Servers, t.Allowed) {
		if o.GetName() != t.Name {
			continue
		}
		if o.fault != nil {
			return nil, view{}, &AwayError{t.Name, plain(o.fault)}
		}
		l, err := p.link(ctx, t.Caller, o)
		if err != nil {
			return nil, view{}, &AwayError{t.Name, plain(err)}
		}
		waiting, cancel := context.WithTimeout(ctx, callWait)
		defer cancel()
		v := l.ready(waiting)
		if v.state != connected {
			l.release()
			return nil, view{}, &AwayError{t.Name, v.message()}
		}
		return l, v, nil
	}
	return nil, view{}, &AwayError{cut(t.Name, 100), "the agent has no server of this name"}
}

// faultOf says what the error of a request means.
func (l *link) faultOf(ctx context.Context, err error) error {
	name := l.server.GetName()
	var answer *jsonrpc.Error
	switch {
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), errSilent):
		return context.Cause(ctx)
	case errors.As(err, &answer) && answer.Code != codeRejected:
		return &RefusedError{name, cmp.Or(cut(valid(answer.Message), maxWords), "it gave no reason"), answer.Code == jsonrpc.CodeInvalidParams || answer.Code == codeNoResource}
	case ctx.Err() != nil:
		return &AwayError{name, errSilent.Error()}
	default:
		return &AwayError{name, plain(err)}
	}
}

// Complete asks a server for what an argument may be. A server that completes nothing proposes nothing.
func (p *Pool) Complete(ctx context.Context, t Target, a *commonv1.McpArgument) (*commonv1.McpCompletion, error) {
	l, v, err := p.reach(ctx, t)
	if err != nil {
		return nil, err
	}
	defer l.release()
	if init := v.session.InitializeResult(); init == nil || init.Capabilities == nil || init.Capabilities.Completions == nil {
		return &commonv1.McpCompletion{}, nil
	}
	params := &mcp.CompleteParams{
		Ref:      &mcp.CompleteReference{Type: "ref/prompt", Name: a.GetPrompt()},
		Argument: mcp.CompleteParamsArgument{Name: a.GetName(), Value: a.GetValue()},
	}
	if uri := a.GetUriTemplate(); uri != "" {
		params.Ref = &mcp.CompleteReference{Type: "ref/resource", URI: uri}
	}
	if len(a.GetOthers()) > 0 {
		params.Context = &mcp.CompleteContext{Arguments: a.GetOthers()}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, askTimeout, errSilent)
	defer cancel()
	answer, err := v.session.Complete(ctx, params)
	if err != nil {
		return nil, l.faultOf(ctx, err)
	}
	said := answer.Completion
	out := &commonv1.McpCompletion{Total: int32(min(max(0, said.Total), 1<<30)), HasMore: said.HasMore || len(said.Values) > maxValues}
	for _, value := range said.Values[:min(len(said.Values), maxValues)] {
		if len(value) <= maxValue { // a value that is cut is another one
			out.Values = append(out.Values, valid(value))
		}
	}
	return out, nil
}
