package mcp

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// library is an MCP server with a prompt, resources and a template, which completes arguments. It notes what clients
// subscribe to, as "+ address" and "- address".
type library struct {
	*sdk.Server
	url   string
	asked chan string
}

func newLibrary(t *testing.T) *library {
	t.Helper()
	l := &library{asked: make(chan string, 100)}
	l.Server = sdk.NewServer(&sdk.Implementation{Name: "library", Version: "1"}, &sdk.ServerOptions{
		CompletionHandler: func(_ context.Context, q *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
			values := []string{q.Params.Ref.Name + q.Params.Ref.URI + " " + q.Params.Argument.Name + "=" + q.Params.Argument.Value}
			return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: values, Total: 3, HasMore: true}}, nil
		},
		SubscribeHandler: func(_ context.Context, q *sdk.SubscribeRequest) error {
			l.asked <- "+ " + q.Params.URI
			return nil
		},
		UnsubscribeHandler: func(_ context.Context, q *sdk.UnsubscribeRequest) error {
			l.asked <- "- " + q.Params.URI
			return nil
		},
	})
	read := func(_ context.Context, q *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: q.Params.URI, Text: "text"}}}, nil
	}
	l.AddResource(&sdk.Resource{URI: "book://one", Name: "one"}, read)
	l.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: "shelf://{row}", Name: "shelf"}, read)
	l.AddPrompt(&sdk.Prompt{Name: "lend", Arguments: []*sdk.PromptArgument{{Name: "title"}}}, func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{}, nil
	})
	srv := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return l.Server }, nil))
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
		for s := range l.Sessions() {
			_ = s.Close()
		}
	})
	l.url = srv.URL
	return l
}

// hears waits until the server is asked something about an address.
func (l *library) hears(t *testing.T, want string) {
	t.Helper()
	for got := range l.asked {
		if got == want {
			return
		}
	}
}

func TestCompletionAndSubscriptionsReachTheServersOfTheSession(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	agent := func(tools ...string) map[string]any {
		return map[string]any{"prompt": "Read.", "profile": "full", "tools": tools, "mcp-servers": map[string]any{"library": map[string]any{"url": l.url}}}
	}
	s := serve(t, map[string]any{
		"tools": map[string]any{"mcp-allow-private": []string{"127.0.0.1"}},
		"session": map[string]any{"default-agent": "reader", "agents": map[string]any{
			"reader": agent("ReadMcpResource", "GetMcpPrompt"),
			"blind":  agent("Read"),
		}},
	})
	eras(t, func(t *testing.T, revision string) {
		changed := make(chan string, 10)
		c := s.connect(t, "ann", "/mcp", revision, &sdk.ClientOptions{ResourceUpdatedHandler: func(_ context.Context, q *sdk.ResourceUpdatedNotificationRequest) {
			changed <- q.Params.URI
		}})
		until(t, "the contents of the library are there", func() bool {
			listed, err := c.ListPrompts(t.Context(), nil)
			return err == nil && len(listed.Prompts) == 1
		})
		for _, q := range []struct {
			ref  *sdk.CompleteReference
			want string
		}{
			{&sdk.CompleteReference{Type: "ref/prompt", Name: "mcp__library__lend"}, "lend a=b"},
			{&sdk.CompleteReference{Type: "ref/resource", URI: "shelf://{row}"}, "shelf://{row} a=b"},
		} {
			got, err := c.Complete(t.Context(), &sdk.CompleteParams{Ref: q.ref, Argument: sdk.CompleteParamsArgument{Name: "a", Value: "b"}})
			if err != nil || !slices.Equal(got.Completion.Values, []string{q.want}) || got.Completion.Total != 3 || !got.Completion.HasMore {
				t.Errorf("got %+v, %v", got, err)
			}
		}
		var refused *jsonrpc.Error
		_, err := c.Complete(t.Context(), &sdk.CompleteParams{Ref: &sdk.CompleteReference{Type: "ref/prompt", Name: "lend"}, Argument: sdk.CompleteParamsArgument{Name: "a"}})
		if !errors.As(err, &refused) || refused.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("a prompt that is not there: %v", err)
		}
		for _, uri := range []string{"book://one", "shelf://7"} {
			if err := c.Subscribe(t.Context(), &sdk.SubscribeParams{URI: uri}); err != nil {
				t.Fatal(err)
			}
			l.hears(t, "+ "+uri)
			until(t, "a change is told", func() bool { // of revision 2026-07-28, Subscribe does not wait for its acceptance
				if err := l.ResourceUpdated(t.Context(), &sdk.ResourceUpdatedNotificationParams{URI: uri}); err != nil {
					t.Fatal(err)
				}
				select {
				case got := <-changed:
					return got == uri
				default:
					return false
				}
			})
			if err := c.Unsubscribe(t.Context(), &sdk.UnsubscribeParams{URI: uri}); err != nil {
				t.Fatal(err)
			}
			l.hears(t, "- "+uri)
		}
		if err := c.Subscribe(t.Context(), &sdk.SubscribeParams{URI: "book://one"}); err != nil {
			t.Fatal(err)
		}
		l.hears(t, "+ book://one")
		if err := c.Close(); err != nil { // without an unsubscription
			t.Fatal(err)
		}
		l.hears(t, "- book://one")

		blind := s.connect(t, "bob", "/mcp/agents/blind", revision, nil)
		if got := blind.InitializeResult().Capabilities; got.Completions != nil || got.Resources != nil {
			t.Errorf("an agent without the tools has %+v", got)
		}
		_, err = blind.Complete(t.Context(), &sdk.CompleteParams{Ref: &sdk.CompleteReference{Type: "ref/prompt", Name: "mcp__library__lend"}, Argument: sdk.CompleteParamsArgument{Name: "a"}})
		if !errors.As(err, &refused) || refused.Code != jsonrpc.CodeMethodNotFound {
			t.Errorf("a completion for it: %v", err)
		}
	})
}
