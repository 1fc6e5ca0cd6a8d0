package conversation

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"google.golang.org/grpc"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/session/internal/follow"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/submit"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// SessionToolServer implements SessionToolService.
type SessionToolServer struct {
	sessionv1.UnimplementedSessionToolServiceServer
	shared
}

// ListSessionTools lists a page of the tools that the session's agent may call.
func (x *SessionToolServer) ListSessionTools(
	ctx context.Context, r *sessionv1.ListSessionToolsRequest,
) (*sessionv1.ListSessionToolsResponse, error) {
	k := request.Key(ctx, r.Parent)
	scope := "ListSessionTools\x00" + k.Tenant + "\x00" + k.Session
	after := ""
	if err := x.list(ctx, k, r.Parent, r.PageToken, scope, &after); err != nil {
		return nil, err
	}
	all, err := x.tools(ctx, k, r.Parent)
	if err != nil {
		return nil, err
	}
	tools, more, err := page.Fill(page.Size(r.PageSize, 100, 1000), func(last *toolsv1.Tool, n int) ([]*toolsv1.Tool, error) {
		at := cmp.Or(last.GetName(), after)
		from, found := slices.BinarySearchFunc(all, at, func(t *toolsv1.Tool, name string) int { return strings.Compare(t.Name, name) })
		if found {
			from++
		}
		return all[from:min(from+n, len(all))], nil
	})
	if err != nil {
		return nil, err
	}
	resp := &sessionv1.ListSessionToolsResponse{Tools: tools}
	if more {
		resp.NextPageToken = page.Encode(scope, tools[len(tools)-1].Name)
	}
	return resp, nil
}

// tools returns the tools of a session's agent that its rules do not disable, by name.
func (x *SessionToolServer) tools(ctx context.Context, k store.Key, parent string) ([]*toolsv1.Tool, error) {
	session, err := x.Store.GetSession(ctx, k)
	if err != nil {
		return nil, refusal.Store(err, refusal.Subject{Session: parent})
	}
	spec, err := x.Directory.SpecOf(ctx, k.Tenant, session)
	if err != nil {
		return nil, err
	}
	all, _, err := x.Directory.ToolsOf(ctx, k, parent, spec, &toolsv1.ListSessionToolsRequest{
		Profile: spec.Profile, Filters: spec.Filters(session.Permissions),
	})
	slices.SortFunc(all, func(a, b *toolsv1.Tool) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

// CallTool accepts a call as a turn and follows it.
func (x *SessionToolServer) CallTool(r *sessionv1.CallToolRequest, stream grpc.ServerStreamingServer[sessionv1.CallToolResponse]) error {
	ctx := stream.Context()
	t, err := x.accept(ctx, r)
	if err != nil {
		return err
	}
	if err := stream.Send(&sessionv1.CallToolResponse{Kind: &sessionv1.CallToolResponse_Turn{Turn: t}}); err != nil {
		return err
	}
	return x.logs.Follow(ctx, follow.Stream{
		Key: request.Key(ctx, r.Parent), After: max(r.AfterSeq, t.AfterSeq), Turn: t.Name,
		Event: func(e *sessionv1.Event) error {
			return stream.Send(&sessionv1.CallToolResponse{Kind: &sessionv1.CallToolResponse_Event{Event: e}})
		},
		Progress: func(p *sessionv1.Progress) error {
			return stream.Send(&sessionv1.CallToolResponse{Kind: &sessionv1.CallToolResponse_Progress{Progress: p}})
		},
	})
}

// accept submits a call and returns its turn.
func (x *SessionToolServer) accept(ctx context.Context, r *sessionv1.CallToolRequest) (*sessionv1.Turn, error) {
	k := request.Key(ctx, r.Parent)
	session, err := x.Store.GetSession(ctx, k)
	if err != nil {
		return nil, refusal.Store(err, refusal.Subject{Session: r.Parent})
	}
	if err := submit.WithinLog(session, r.AfterSeq); err != nil {
		return nil, err
	}
	spec, err := x.Directory.SpecOf(ctx, k.Tenant, session)
	if err != nil {
		return nil, err
	}
	limits, err := x.Submit.TurnLimits(k.Tenant, spec, &sessionv1.TurnLimits{MaxWallTime: r.Limits.GetMaxWallTime()})
	if err != nil {
		return nil, err
	}
	t := submit.NewTurn(ctx, session, limits)
	id := state.CallID(request.LastSegment(t.Name), 0, 0)
	t.Call = &sessionv1.ToolUse{CallId: id, Tool: r.Tool, ArgumentsJson: cmp.Or(r.ArgumentsJson, "{}")}
	message := &sessionv1.CreateTurnRequest{Parent: r.Parent, OnActive: r.OnActive, Options: session.TurnOptions}
	command, err := x.Submit.Command(ctx, k, t, message)
	if err != nil {
		return nil, err
	}
	command.Command.Kind, command.SteerActive = store.CommandCall, false
	command.Request = store.RequestOf("CallTool", r.Parent, r.RequestId, r)
	return x.Submit.Put(ctx, t, command, refusal.Subject{Session: r.Parent, RequestID: r.RequestId})
}
