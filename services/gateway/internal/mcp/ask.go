package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// argumentsShown is how much of the arguments a question shows, in characters.
const argumentsShown = 2000

// question returns what a client shows to a person.
func question(a *sessionv1.ApprovalRequested) *sdk.ElicitParams {
	return &sdk.ElicitParams{
		Mode:    "form",
		Message: fmt.Sprintf("May %s run with these arguments?\n%s", a.GetTool(), cut(a.GetArgumentsJson(), argumentsShown)),
		// To accept is the whole answer.
		RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`),
	}
}

// elicits reports whether the client can ask a person.
func (c *calling) elicits() bool {
	capabilities := c.req.ClientCapabilities()
	if capabilities == nil || capabilities.Elicitation == nil {
		return false
	}
	e := capabilities.Elicitation
	return e.Form != nil || e.URL == nil // an empty object stands for forms
}

// ask tells the client that the call waits for an approval. A client with a session of the protocol is asked over it.
func (c *calling) ask(a *sessionv1.ApprovalRequested) {
	c.progress(fmt.Sprintf("%s waits for a person's approval (rule: %s). It can be given here, or elsewhere: POST /v1/%s/approvals:resolve with callId %s and digest %s.",
		a.GetTool(), a.GetRule(), c.request.Parent, a.GetCallId(), a.GetDigest()))
	if !c.live() || !c.elicits() {
		return
	}
	ctx, settle := context.WithCancel(c.ctx)
	c.settled[a.GetCallId()] = settle
	c.asking.Go(func() {
		answer, err := c.req.Session.Elicit(ctx, question(a))
		switch {
		case ctx.Err() != nil: // answered elsewhere, or the call has ended
		case err != nil:
			c.s.log.InfoContext(ctx, "an MCP client did not answer; the call waits for another answer", "turn", c.turn, "error", err)
		default:
			if err := c.resolve(c.out, a.GetCallId(), a.GetDigest(), answer); err != nil {
				c.s.log.WarnContext(ctx, "the answer of an MCP client was not accepted", "turn", c.turn, "error", err)
			}
		}
	})
}

// resolved takes a question back.
func (c *calling) resolved(call string) {
	delete(c.asked, call)
	if settle := c.settled[call]; settle != nil {
		settle()
	}
}

// resolve answers an approval as the client's person did. Who closes the question refuses.
func (c *calling) resolve(ctx context.Context, call, digest string, answer *sdk.ElicitResult) error {
	sum := sha256.Sum256([]byte(call + "\x00" + digest + "\x00" + answer.Action))
	_, err := c.s.sessions.ResolveApproval(ctx, &sessionv1.ResolveApprovalRequest{
		Parent: c.request.Parent, CallId: call, Digest: digest, Approved: answer.Action == "accept", RequestId: fmt.Sprintf("mcp-%x", sum[:16]),
	})
	if apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_CALL_ANSWERED) || apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_CALL_ENDED) {
		return nil // by somebody else, and the call's result says how
	}
	return err
}

// inputRequired returns the result by which a client of a modern revision is asked; nil if it cannot be, and the call
// waits for an answer that comes another way.
func (c *calling) inputRequired() *sdk.CallToolResult {
	if !c.modern() || !c.elicits() {
		return nil
	}
	for call, a := range c.asked {
		p, ok := principal.From(c.out)
		if !ok {
			return nil
		}
		state, err := c.s.seal(requestState{
			Tenant: p.Tenant, User: p.User, Session: c.request.Parent, Turn: c.turn, Tool: c.request.Tool, Arguments: sha256.Sum256([]byte(c.request.ArgumentsJson)),
			Call: call, Digest: a.GetDigest(), RequestID: c.request.RequestId, AfterSeq: c.request.AfterSeq, Expires: time.Now().Add(stateTime).Unix(),
		})
		if err != nil {
			c.s.log.WarnContext(c.ctx, "cannot ask an MCP client", "turn", c.turn, "error", err)
			return nil
		}
		return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{askedID: question(a)}, RequestState: state}
	}
	return nil
}

// askedID is the id of the one question of a result.
const askedID = "approval"

// answered takes the client's answer, and makes the request attach to the call that waits for it.
func (c *calling) answered() error {
	state, err := c.s.open(c.req.Params.RequestState)
	p, _ := principal.From(c.out)
	switch {
	case err != nil:
		return invalid("requestState " + err.Error())
	case state.Tenant != p.Tenant || state.User != p.User || state.Session != c.request.Parent || state.Tool != c.request.Tool ||
		state.Arguments != sha256.Sum256([]byte(c.request.ArgumentsJson)):
		return invalid("requestState is of another call")
	case time.Now().Unix() > state.Expires:
		return invalid("requestState has expired; the call still waits for its approval, or has ended")
	}
	c.turn, c.request.RequestId, c.request.AfterSeq = state.Turn, state.RequestID, state.AfterSeq
	answer, ok := c.req.Params.InputResponses[askedID].(*sdk.ElicitResult)
	if !ok {
		return invalid("inputResponses has no answer to " + askedID)
	}
	ctx, cancel := context.WithTimeout(c.out, c.s.Timeout)
	defer cancel()
	err = c.resolve(ctx, state.Call, state.Digest, answer)
	if code := apierr.Code(err); err != nil && (code == codes.NotFound || code == codes.FailedPrecondition || code == codes.PermissionDenied) {
		return invalid(apierr.Message(err))
	}
	return err
}

func invalid(message string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: message}
}
