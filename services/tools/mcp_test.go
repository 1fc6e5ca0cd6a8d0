package tools

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
)

// eras are the two families of the protocol.
var eras = map[string]bool{"legacy": false, "modern": true}

// sdkServer is an MCP server of the official SDK on HTTP.
type sdkServer struct {
	sdk  *mcp.Server
	http *httptest.Server
}

type handler = func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error)

func newRemote(t *testing.T, modern bool) *sdkServer {
	t.Helper()
	return newRemoteWith(t, modern, mcp.ServerOptions{})
}

func newRemoteWith(t *testing.T, modern bool, o mcp.ServerOptions) *sdkServer {
	t.Helper()
	o.PageSize = 2
	r := &sdkServer{sdk: mcp.NewServer(&mcp.Implementation{Name: "test server", Version: "1"}, &o)}
	get := func(*http.Request) *mcp.Server { return r.sdk }
	stateful := mcp.NewStreamableHTTPHandler(get, nil)
	stateless := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
	r.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if modern && q.Header.Get("MCP-Protocol-Version") >= "2026-07-28" {
			stateless.ServeHTTP(w, q)
			return
		}
		stateful.ServeHTTP(w, q)
	}))
	t.Cleanup(func() {
		r.http.CloseClientConnections()
		r.http.Close()
		for s := range r.sdk.Sessions() {
			_ = s.Close()
		}
	})
	return r
}

// tool adds a tool with a schema.
func (r *sdkServer) tool(name, schema string, h handler) {
	r.sdk.AddTool(&mcp.Tool{Name: name, Description: "does " + name, InputSchema: json.RawMessage(schema)}, h)
}

// as returns the server as a session names it.
func (r *sdkServer) as(name string) *commonv1.McpServer { return webServer(name, r.http.URL) }

func webServer(name, url string) *commonv1.McpServer {
	return &commonv1.McpServer{Name: name, Transport: &commonv1.McpServer_Http{Http: &commonv1.McpHttp{Url: url}}}
}

const object = `{"type":"object"}`

func says(text string) handler {
	return func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
	}
}

// echo returns its arguments as the server got them.
func echo(_ context.Context, q *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(q.Params.Arguments)}}}, nil
}

// local is a fixture whose MCP servers may be on this machine.
func local(t *testing.T) *fixture {
	t.Helper()
	return newFixture(t, func(c *Config) { c.MCPAllowPrivate = []string{"127.0.0.0/8", "::1"} })
}

func mcpCall(id, name, args string, servers ...*commonv1.McpServer) *toolsv1.CallToolRequest {
	q := ask(id, name, args)
	q.AllowedTools, q.Servers = nil, servers
	return q
}

// list lists a session's tools, page by page.
func (f *fixture) list(size int32, allowed []string, servers ...*commonv1.McpServer) (names []string, tools []*toolsv1.Tool, states []*commonv1.McpServerStatus) {
	f.t.Helper()
	q := &toolsv1.ListSessionToolsRequest{Call: ref("list"), Servers: servers, AllowedTools: allowed, PageSize: size}
	for {
		r, err := f.calls.ListSessionTools(f.t.Context(), q)
		if err != nil {
			f.t.Fatal(err)
		}
		tools = append(tools, r.GetTools()...)
		if q.GetPageToken() == "" {
			states = r.GetServers()
		}
		if q.PageToken = r.GetNextPageToken(); q.GetPageToken() == "" {
			break
		}
	}
	for _, t := range tools {
		names = append(names, strings.TrimPrefix(t.GetName(), "tools/"))
	}
	return names, tools, states
}

func TestASessionHasTheToolsOfItsServers(t *testing.T) {
	for era, modern := range eras {
		t.Run(era, func(t *testing.T) {
			r, f := newRemote(t, modern), local(t)
			for _, name := range []string{"one", "two", "three", "four", "five"} {
				r.tool(name, object, says("this is "+name))
			}
			s := r.as("files")
			s.DisabledTools = []string{"two"}
			want := []string{"Bash", "mcp__files__five", "mcp__files__four", "mcp__files__one", "mcp__files__three"}
			names, tools, states := f.list(2, []string{"Bash", "mcp__files__two"}, s)
			if !slices.Equal(names, want) {
				t.Errorf("got %v, want %v", names, want)
			}
			if st := states[0]; st.GetState() != commonv1.McpServerState_MCP_SERVER_STATE_CONNECTED || st.GetMessage() != "" || st.GetServer() != "test server 1" || !slices.Equal(st.GetTools(), want[1:]) {
				t.Errorf("the status is %v", st)
			}
			if v := states[0].GetProtocolVersion(); (v == "2026-07-28") != modern {
				t.Errorf("the server speaks %s", v)
			}
			if tool := tools[1]; tool.GetProvider() != "mcp:files" || tool.GetDescription() != "does five" || tool.GetReadOnly() || tool.GetIdempotent() || tool.GetParallel() {
				t.Errorf("the tool is %v", tool)
			}

			got := f.must(mcpCall("c1", "mcp__files__three", `{}`, s), toolsv1.CallOutcome_CALL_OUTCOME_OK)
			if got.text() != "this is three" || got.decision.GetRule() != "allow mcp__*" {
				t.Errorf("got %q by %q", got.text(), got.decision.GetRule())
			}
			// The journal answers the same call; no server is asked.
			r.http.CloseClientConnections()
			r.http.Close()
			if again := f.must(mcpCall("c1", "mcp__files__three", `{}`, s), toolsv1.CallOutcome_CALL_OUTCOME_OK); again.text() != got.text() || again.pieces != 1 {
				t.Errorf("got %q in %d pieces", again.text(), again.pieces)
			}
		})
	}
}

func TestAToolThatTheAgentDoesNotGetIsNotCalled(t *testing.T) {
	r, f := newRemote(t, true), local(t)
	r.tool("kept", object, says("kept"))
	r.tool("hidden", object, says("hidden"))
	s := r.as("files")
	s.DisabledTools = []string{"hidden"}
	for id, c := range map[string]struct{ tool, says string }{
		"a disabled one":       {"mcp__files__hidden", "The MCP server files has no tool \"mcp__files__hidden\". It has: mcp__files__kept."},
		"an unknown one":       {"mcp__files__other", "has no tool"},
		"of an unknown server": {"mcp__other__kept", "There is no MCP server \"other\" for this agent"},
		"of none":              {"mcp__", "There is no MCP server"},
	} {
		if got := f.must(mcpCall(strings.ReplaceAll(id, " ", "-"), c.tool, `{}`, s), toolsv1.CallOutcome_CALL_OUTCOME_ERROR); !strings.Contains(got.text(), c.says) {
			t.Errorf("%s: got %q", id, got.text())
		}
	}
	s.DisabledTools, s.Tools = nil, []string{"hidden"}
	if got := f.must(mcpCall("only", "mcp__files__hidden", `{}`, s), toolsv1.CallOutcome_CALL_OUTCOME_OK); got.text() != "hidden" {
		t.Errorf("got %q", got.text())
	}
	if names, _, _ := f.list(0, nil, s); !slices.Equal(names, []string{"mcp__files__hidden"}) {
		t.Errorf("got %v", names)
	}
}

func TestAServerThatIsAwayIsToldInPlainWords(t *testing.T) {
	f := local(t)
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	login := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer login.Close()
	nothing := httptest.NewServer(http.NotFoundHandler())
	defer nothing.Close()
	for name, c := range map[string]struct {
		url, says string
		state     commonv1.McpServerState
	}{
		"closed":  {closed.URL, "it cannot be reached: dial tcp", commonv1.McpServerState_MCP_SERVER_STATE_FAILED},
		"login":   {login.URL, "the server wants a login", commonv1.McpServerState_MCP_SERVER_STATE_NEEDS_AUTHORIZATION},
		"nothing": {nothing.URL, "Not Found", commonv1.McpServerState_MCP_SERVER_STATE_FAILED},
	} {
		t.Run(name, func(t *testing.T) {
			s := webServer(name, c.url+"/?key=secret")
			_, _, states := f.list(0, nil, s)
			if st := states[0]; st.GetState() != c.state || !strings.Contains(st.GetMessage(), c.says) || strings.Contains(st.GetMessage(), "secret") {
				t.Errorf("the status is %v", st)
			}
			got := f.must(mcpCall("call-"+name, "mcp__"+name+"__x", `{}`, s), toolsv1.CallOutcome_CALL_OUTCOME_ERROR)
			if !strings.HasPrefix(got.text(), "The MCP server "+name+" cannot be used now: ") || !strings.Contains(got.text(), c.says) {
				t.Errorf("got %q", got.text())
			}
		})
	}
}

func TestAUsersServerIsAtAPublicAddress(t *testing.T) {
	r := newRemote(t, true)
	r.tool("x", object, says("reached"))
	f := newFixture(t, nil)
	_, _, states := f.list(0, nil, r.as("inside"), webServer("metadata", "http://169.254.169.254/"))
	for _, st := range states {
		if st.GetState() != commonv1.McpServerState_MCP_SERVER_STATE_FAILED || !strings.Contains(st.GetMessage(), "its address is not public; the operator can allow it in tools.mcp-allow-private") {
			t.Errorf("the status is %v", st)
		}
	}
}

func TestACallOfAServerThatAsksWritesWaitsForAPerson(t *testing.T) {
	r, f := newRemote(t, true), local(t)
	r.tool("x", object, says("done"))
	q := mcpCall("c1", "mcp__files__x", `{}`, r.as("files"))
	q.Profile = "ask-writes"
	a, err := f.call(q)
	if err != nil || a.ask.GetRule() != "ask mcp__*" {
		t.Fatalf("got %v, %v", a, err)
	}
	if got := f.must(approve(q, true, ""), toolsv1.CallOutcome_CALL_OUTCOME_OK); got.text() != "done" {
		t.Errorf("got %q", got.text())
	}
	q = mcpCall("c2", "mcp__files__x", `{}`, r.as("files"))
	q.Profile = "read-only"
	f.must(q, toolsv1.CallOutcome_CALL_OUTCOME_DENIED)
}

func TestTheStatusHasWhatAServerSaysOfItsTools(t *testing.T) {
	for era, modern := range eras {
		for said, want := range map[string]string{"": "", " Search first.\n": "Search first.", strings.Repeat("x", 9000): strings.Repeat("x", 4096) + "…"} {
			r, f := newRemoteWith(t, modern, mcp.ServerOptions{Instructions: said}), local(t)
			r.tool("t", object, says("done"))
			resp, err := f.calls.ListSessionTools(t.Context(), &toolsv1.ListSessionToolsRequest{Call: ref("list"), Servers: []*commonv1.McpServer{r.as("x")}})
			if err != nil || len(resp.Servers) != 1 || resp.Servers[0].Instructions != want {
				t.Errorf("%s: got %v, %v", era, resp, err)
			}
		}
	}
}
