package mcp

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/grpc/codes"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// complete asks the server that has a prompt or a template of addresses for what an argument of it may be.
func (sc *scope) complete(ctx context.Context, req *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
	server, argument := sc.argument(req.Params)
	if server == "" {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("This server has no prompt or resource template %q.", cut(req.Params.Ref.Name+req.Params.Ref.URI, 200))}
	}
	ctx, cancel := context.WithTimeout(caller(ctx, req.Extra), sc.s.Timeout)
	defer cancel()
	resp, err := sc.s.servers.CompleteMcpArgument(ctx, &sessionv1.CompleteMcpArgumentRequest{Name: sc.name() + "/mcp/" + server, Argument: argument})
	if err != nil {
		return nil, fault(err)
	}
	said := resp.GetCompletion()
	return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{
		Values: append([]string{}, said.GetValues()...), Total: int(said.GetTotal()), HasMore: said.GetHasMore(),
	}}, nil
}

// argument returns the server of an argument, and the argument in its terms; "": it is of nothing that is here.
func (sc *scope) argument(p *sdk.CompleteParams) (server string, _ *commonv1.McpArgument) {
	a := &commonv1.McpArgument{Name: p.Argument.Name, Value: p.Argument.Value}
	if p.Context != nil {
		a.Others = p.Context.Arguments
	}
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if p.Ref.Type == "ref/prompt" {
		of := sc.parts["prompt "+p.Ref.Name]
		a.Of = &commonv1.McpArgument_Prompt{Prompt: of.own}
		return of.server, a
	}
	a.Of = &commonv1.McpArgument_UriTemplate{UriTemplate: p.Ref.URI}
	return sc.parts["template "+p.Ref.URI].server, a
}

// fault is an error of a service in the form of the protocol.
func fault(err error) error {
	out := &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: apierr.Message(err)}
	if c := apierr.Code(err); c == codes.InvalidArgument || c == codes.NotFound {
		out.Code = jsonrpc.CodeInvalidParams
	}
	return out
}
