package tools

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/grpc/codes"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// subscriptions are what a server is asked about its resources, as "+ address" and "- address".
type subscriptions chan string

// helpful is a server that completes arguments and takes subscriptions.
func helpful(t *testing.T, modern bool) (*sdkServer, subscriptions) {
	t.Helper()
	asked := make(subscriptions, 100)
	r := newRemoteWith(t, modern, mcp.ServerOptions{
		CompletionHandler: func(_ context.Context, q *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			p := q.Params
			if p.Argument.Name == "secret" {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "there is no such argument"}
			}
			said := fmt.Sprintf("%s %s%s %s=%s", p.Ref.Type, p.Ref.Name, p.Ref.URI, p.Argument.Name, p.Argument.Value)
			if p.Context != nil {
				said += fmt.Sprint(" ", p.Context.Arguments)
			}
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{said, "z"}, Total: 7, HasMore: true}}, nil
		},
		SubscribeHandler: func(_ context.Context, q *mcp.SubscribeRequest) error {
			asked <- "+ " + q.Params.URI
			return nil
		},
		UnsubscribeHandler: func(_ context.Context, q *mcp.UnsubscribeRequest) error {
			asked <- "- " + q.Params.URI
			return nil
		},
	})
	r.withContents()
	return r, asked
}

// at is a request to a server for an agent that may read everything.
func at(profile string, s *commonv1.McpServer) *toolsv1.McpRequest {
	return &toolsv1.McpRequest{
		Call: ref("ask"), Servers: []*commonv1.McpServer{s}, AllowedTools: []string{"ReadMcpResource", "GetMcpPrompt"}, Profile: profile, Server: s.GetName(),
	}
}

func TestAServerCompletesArguments(t *testing.T) {
	for era, modern := range eras {
		t.Run(era, func(t *testing.T) {
			r, _ := helpful(t, modern)
			f := local(t)
			for _, c := range []struct {
				argument *commonv1.McpArgument
				want     string
			}{
				{&commonv1.McpArgument{Of: &commonv1.McpArgument_Prompt{Prompt: "greet"}, Name: "who", Value: "A"}, "ref/prompt greet who=A"},
				{&commonv1.McpArgument{Of: &commonv1.McpArgument_UriTemplate{UriTemplate: "day://{date}"}, Name: "date", Others: map[string]string{"a": "b"}}, "ref/resource day://{date} date= map[a:b]"},
			} {
				resp, err := f.calls.CompleteMcpArgument(t.Context(), &toolsv1.CompleteMcpArgumentRequest{At: at("full", r.as("x")), Argument: c.argument})
				got := resp.GetCompletion()
				if err != nil || !slices.Equal(got.GetValues(), []string{c.want, "z"}) || got.GetTotal() != 7 || !got.GetHasMore() {
					t.Errorf("got %v, %v", got, err)
				}
			}
		})
	}
}

func TestACompletionIsRefusedInPlainWords(t *testing.T) {
	r, _ := helpful(t, true)
	mute := newRemote(t, true)
	mute.withContents()
	f := local(t)
	argument := func(name string) *commonv1.McpArgument {
		return &commonv1.McpArgument{Of: &commonv1.McpArgument_Prompt{Prompt: "greet"}, Name: name}
	}
	without := at("full", r.as("x"))
	without.AllowedTools = []string{"ReadMcpResource"}
	denied := at("full", r.as("x"))
	denied.Filters = []*commonv1.PermissionRules{{Deny: []string{"GetMcpPrompt"}}}
	unknown := at("full", r.as("x"))
	unknown.Server = "y"
	for name, c := range map[string]struct {
		at     *toolsv1.McpRequest
		name   string
		code   codes.Code
		reason toolsv1.ErrorReason
		text   string
	}{
		"the server refuses":      {at("full", r.as("x")), "secret", codes.InvalidArgument, toolsv1.ErrorReason_ERROR_REASON_MCP_SERVER_REFUSED, "there is no such argument"},
		"a tool is missing":       {without, "who", codes.PermissionDenied, toolsv1.ErrorReason_ERROR_REASON_MCP_DENIED, "add it to the agent's tools"},
		"a rule denies":           {denied, "who", codes.PermissionDenied, toolsv1.ErrorReason_ERROR_REASON_MCP_DENIED, "deny GetMcpPrompt"},
		"the profile denies":      {at("read-only", r.as("x")), "who", codes.PermissionDenied, toolsv1.ErrorReason_ERROR_REASON_MCP_DENIED, "read-only"},
		"there is no such server": {unknown, "who", codes.FailedPrecondition, toolsv1.ErrorReason_ERROR_REASON_MCP_SERVER_UNAVAILABLE, "no server of this name"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.calls.CompleteMcpArgument(t.Context(), &toolsv1.CompleteMcpArgumentRequest{At: c.at, Argument: argument(c.name)})
			if apierr.Code(err) != c.code || !apierr.Is(err, c.reason) || !strings.Contains(apierr.Message(err), c.text) {
				t.Errorf("got %v", err)
			}
		})
	}
	resp, err := f.calls.CompleteMcpArgument(t.Context(), &toolsv1.CompleteMcpArgumentRequest{At: at("full", mute.as("x")), Argument: argument("who")})
	if err != nil || len(resp.GetCompletion().GetValues()) != 0 {
		t.Errorf("a server that completes nothing: %v, %v", resp, err)
	}
}

func TestAResourceIsWatched(t *testing.T) {
	for era, modern := range eras {
		t.Run(era, func(t *testing.T) {
			r, asked := helpful(t, modern)
			f := local(t)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			watch := func(ctx context.Context) toolsv1.CallService_WatchMcpResourceClient {
				stream, err := f.calls.WatchMcpResource(ctx, &toolsv1.WatchMcpResourceRequest{At: at("full", r.as("x")), Uri: "file:///a"})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := stream.Recv(); err != nil { // it is accepted
					t.Fatal(err)
				}
				return stream
			}
			first := watch(ctx)
			if got := <-asked; got != "+ file:///a" {
				t.Fatalf("the server was asked %q", got)
			}
			other, leave := context.WithCancel(t.Context())
			second := watch(other)
			for _, uri := range []string{"file:///b", "file:///a", "file:///a/part"} {
				if err := r.sdk.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: uri}); err != nil {
					t.Fatal(err)
				}
			}
			for _, stream := range []toolsv1.CallService_WatchMcpResourceClient{first, second} {
				if _, err := stream.Recv(); err != nil {
					t.Fatal(err)
				}
			}
			leave()
			stop()
			for got := range asked {
				if got == "- file:///a" { // the last one has left
					break
				}
			}
		})
	}
}

func TestAServerWithoutSubscriptionsSaysSo(t *testing.T) {
	r, f := newRemote(t, true), local(t)
	r.withContents()
	stream, err := f.calls.WatchMcpResource(t.Context(), &toolsv1.WatchMcpResourceRequest{At: at("full", r.as("x")), Uri: "file:///a"})
	if err == nil {
		_, err = stream.Recv()
	}
	if !apierr.Is(err, toolsv1.ErrorReason_ERROR_REASON_MCP_SERVER_REFUSED) || !strings.Contains(apierr.Message(err), "takes no subscriptions") {
		t.Errorf("got %v", err)
	}
}
