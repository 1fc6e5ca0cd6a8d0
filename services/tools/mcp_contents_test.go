package tools

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
)

// withContents gives a server resources and prompts.
func (r *sdkServer) withContents() {
	read := func(_ context.Context, q *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: q.Params.URI, MIMEType: "text/plain", Text: "text of " + q.Params.URI}}}, nil
	}
	r.sdk.AddResource(&mcp.Resource{URI: "file:///a", Name: "a", Title: "A", Description: "the first", MIMEType: "text/plain", Size: 7}, read)
	r.sdk.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "day://{date}", Name: "day"}, read)
	r.sdk.AddPrompt(&mcp.Prompt{Name: "greet", Description: "greets", Arguments: []*mcp.PromptArgument{{Name: "who", Description: "whom", Required: true}}},
		func(_ context.Context, q *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Description: "a greeting", Messages: []*mcp.PromptMessage{
				{Role: "user", Content: &mcp.TextContent{Text: "Greet " + q.Params.Arguments["who"]}},
				{Role: "assistant", Content: &mcp.TextContent{Text: "Hello."}},
			}}, nil
		})
}

// deskCall asks for a built-in tool about servers.
func deskCall(id, name, args string, servers ...*commonv1.McpServer) *toolsv1.CallToolRequest {
	q := mcpCall(id, name, args, servers...)
	q.AllowedTools = []string{name}
	return q
}

func TestWhatServersHaveBesidesTools(t *testing.T) {
	for era, modern := range eras {
		t.Run(era, func(t *testing.T) {
			r, f := newRemote(t, modern), local(t)
			r.withContents()
			f.list(0, nil, r.as("x")) // connects
			got := f.must(deskCall("list", "ListMcpResources", `{}`, r.as("x")), ok)
			for _, line := range []string{
				`{"description":"the first","mimeType":"text/plain","name":"a","server":"x","title":"A","uri":"file:///a"}`,
				`{"name":"day","server":"x","uriTemplate":"day://{date}"}`,
			} {
				if !strings.Contains(got.text(), line) {
					t.Errorf("the list lacks %s: %s", line, got.text())
				}
			}
			if got := f.must(deskCall("none", "ListMcpResources", `{"server":"y"}`, r.as("x")), ok); got.text() != "The connected MCP servers have no resources." {
				t.Errorf("got %q", got.text())
			}
			for i, uri := range []string{"file:///a", "day://monday"} {
				got := f.must(deskCall(fmt.Sprint("read", i), "ReadMcpResource", `{"server":"x","uri":"`+uri+`"}`, r.as("x")), ok)
				if c := got.result.GetContent(); len(c) != 1 || c[0].GetResource().GetUri() != uri || c[0].GetResource().GetText() != "text of "+uri {
					t.Errorf("got %v", got.result)
				}
			}
			got = f.must(deskCall("prompt", "GetMcpPrompt", `{"server":"x","name":"greet","arguments":{"who":"Ann"}}`, r.as("x")), ok)
			const messages = `{"description":"a greeting","messages":[{"content":{"text":{"text":"Greet Ann"}},"role":"user"},{"content":{"text":{"text":"Hello."}},"role":"assistant"}]}`
			if got.text() != "Greet AnnHello." || strings.ReplaceAll(got.result.GetStructuredJson(), `": `, `":`) != messages {
				t.Errorf("got %q and %s", got.text(), got.result.GetStructuredJson())
			}
			if got := f.must(deskCall("missing", "ReadMcpResource", `{"server":"x","uri":"file:///b"}`, r.as("x")), failed); !strings.Contains(got.text(), "refused the call") {
				t.Errorf("got %q", got.text())
			}
			if got := f.must(deskCall("unknown", "ReadMcpResource", `{"server":"y","uri":"file:///a"}`, r.as("x")), failed); !strings.Contains(got.text(), `There is no MCP server "y" for this agent. It has: x.`) {
				t.Errorf("got %q", got.text())
			}
		})
	}
}

func TestTheStatusOfServersHasTheirContentsWhereTheyAreAskedFor(t *testing.T) {
	r, f := newRemote(t, true), local(t)
	r.withContents()
	r.tool("t", object, says("t"))
	for _, contents := range []bool{false, true} {
		resp, err := f.calls.ListSessionTools(t.Context(), &toolsv1.ListSessionToolsRequest{Call: ref("list"), Servers: []*commonv1.McpServer{r.as("x")}, Contents: contents})
		if err != nil {
			t.Fatal(err)
		}
		s := resp.GetServers()[0]
		if (len(s.GetResources()) == 1) != contents || (len(s.GetResourceTemplates()) == 1) != contents || (len(s.GetPrompts()) == 1) != contents || len(s.GetTools()) != 1 {
			t.Errorf("contents %t: %v", contents, s)
		}
	}
}

func TestTheLogOfAServerIsProgressOfTheCall(t *testing.T) {
	for era, modern := range eras {
		t.Run(era, func(t *testing.T) {
			r, f := newRemote(t, modern), local(t)
			r.tool("work", object, func(ctx context.Context, q *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				for _, m := range []*mcp.LoggingMessageParams{{Level: "debug", Data: "hidden"}, {Level: "info", Data: "begins"}, {Level: "error", Data: map[string]any{"n": 1}}} { //nolint:staticcheck // deprecated, and servers still send it
					if err := q.Session.Log(ctx, m); err != nil { //nolint:staticcheck // the same
						return nil, err
					}
				}
				return &mcp.CallToolResult{}, nil
			})
			got := f.must(mcpCall("c", "mcp__x__work", `{}`, r.as("x")), ok)
			if want := []string{"begins", `{"n":1}`}; !slices.Equal(got.progress, want) {
				t.Errorf("got %q", got.progress)
			}
		})
	}
}

func TestTheErrorOfAServerIsKept(t *testing.T) {
	for era, modern := range eras {
		t.Run(era, func(t *testing.T) {
			r, f := newRemote(t, modern), local(t)
			r.tool("needs", object, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return nil, &jsonrpc.Error{Code: mcp.CodeMissingRequiredClientCapabilities, Message: "sampling is missing", Data: []byte(`{"requiredCapabilities":{"sampling":{}}}`)}
			})
			got := f.must(mcpCall("c", "mcp__x__needs", `{}`, r.as("x")), failed)
			e := got.result.GetMcpError()
			if e.GetCode() != -32021 || e.GetMessage() != "sampling is missing" || e.GetDataJson() != `{"requiredCapabilities":{"sampling":{}}}` || !strings.Contains(got.text(), "sampling is missing") {
				t.Errorf("got %v", got.result)
			}
		})
	}
}
