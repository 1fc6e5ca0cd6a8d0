package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/mcp"
)

// mcpPeer is what tools knows of MCP servers.
type mcpPeer struct {
	states map[string]*commonv1.McpServerStatus // by name; another server is connected, with one tool, Say
	seen   []*commonv1.McpServer                // the servers of the last request
	listed int                                  // requests with servers
}

func (m *mcpPeer) list(servers []*commonv1.McpServer, resp *toolsv1.ListSessionToolsResponse) {
	if m.seen = servers; len(servers) > 0 {
		m.listed++
	}
	for _, s := range servers {
		x := m.states[s.Name]
		if x == nil {
			x = works("Say")
		}
		x = &commonv1.McpServerStatus{Name: s.Name, State: x.State, Message: x.Message, Required: s.Required, Instructions: x.Instructions}
		if x.State == commonv1.McpServerState_MCP_SERVER_STATE_CONNECTED {
			for _, tool := range m.tools(s.Name) {
				x.Tools = append(x.Tools, "mcp__"+s.Name+"__"+tool)
				resp.Tools = append(resp.Tools, &toolsv1.Tool{Name: "tools/mcp__" + s.Name + "__" + tool})
			}
		}
		resp.Servers = append(resp.Servers, x)
	}
}

func (m *mcpPeer) tools(server string) []string {
	if x := m.states[server]; x != nil {
		return x.Tools
	}
	return []string{"Say"}
}

func works(tools ...string) *commonv1.McpServerStatus {
	return &commonv1.McpServerStatus{State: commonv1.McpServerState_MCP_SERVER_STATE_CONNECTED, Tools: tools}
}

func fails(why string) *commonv1.McpServerStatus {
	return &commonv1.McpServerStatus{State: commonv1.McpServerState_MCP_SERVER_STATE_FAILED, Message: why}
}

func (p *peers) setMCP(server string, x *commonv1.McpServerStatus) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mcp.states == nil {
		p.mcp.states = map[string]*commonv1.McpServerStatus{}
	}
	p.mcp.states[server] = x
}

func (p *peers) seenMCP() []*commonv1.McpServer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mcp.seen
}

// withClerk adds an agent with the MCP server desk.
func withClerk(c *session.Config) {
	c.Agents["clerk"] = agent.Spec{Profile: "full", Extensions: agent.Extensions{MCPServers: mcp.Servers{
		"desk": {URL: "https://desk.example.com/${PATH_OF_DESK:-mcp}"},
	}}}
}

// clerk creates a session of the agent with these servers of its own.
func (f *fixture) clerk(ctx context.Context, t *testing.T, servers ...*commonv1.McpServer) string {
	t.Helper()
	made, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Agent: "agents/clerk", McpServers: servers}})
	if err != nil {
		t.Fatal(err)
	}
	return made.Session.Name
}

// changes returns the events mcp_server.changed of a session, as `server STATE tools`.
func (f *fixture) changes(ctx context.Context, t *testing.T, s string) []string {
	t.Helper()
	var all []string
	for _, e := range f.log(ctx, t, s) {
		if c := e.GetMcpServerChanged(); c != nil {
			all = append(all, strings.Join(append([]string{c.Server, strings.TrimPrefix(c.State.String(), "MCP_SERVER_STATE_")}, c.Tools...), " "))
		}
	}
	return all
}

func TestTheModelGetsTheToolsOfAllServers(t *testing.T) {
	t.Parallel()
	f := start(t, hello, withClerk)
	ctx := t.Context()
	servers, users := sessionv1.NewMcpServiceClient(f.conn), sessionv1.NewUserServiceClient(f.conn)
	set := func(s *commonv1.McpServer) {
		if _, err := servers.SetUserMcpServer(ctx, &sessionv1.SetUserMcpServerRequest{Name: "users/me/mcpServers/" + s.Name, Server: s}); err != nil {
			t.Fatal(err)
		}
	}
	set(wiki("mine", "Bearer ${TOKEN}"))
	set(wiki("ours")) // the session's comes first
	if _, err := users.SetUserVariable(ctx, &sessionv1.SetUserVariableRequest{Name: "users/me/variables/TOKEN", Value: "hush"}); err != nil {
		t.Fatal(err)
	}
	s := f.clerk(ctx, t, wiki("ours", "Bearer of-the-session"))
	f.turn(ctx, t, s, "hello")
	desk := wiki("desk")
	desk.GetHttp().Url = "https://desk.example.com/mcp"
	want := []*commonv1.McpServer{desk, wiki("mine", "Bearer hush"), wiki("ours", "Bearer of-the-session")}
	if d := cmp.Diff(want, f.peers.seenMCP(), protocmp.Transform()); d != "" {
		t.Errorf("tools got\n%s", d)
	}
	if d := cmp.Diff([]string{"desk CONNECTED mcp__desk__Say", "mine CONNECTED mcp__mine__Say", "ours CONNECTED mcp__ours__Say"}, f.changes(ctx, t, s)); d != "" {
		t.Errorf("the log says\n%s", d)
	}
}

func TestAChangeOfAServerIsReportedOnce(t *testing.T) {
	t.Parallel()
	f := start(t, hello, withClerk)
	ctx := t.Context()
	s := f.clerk(ctx, t)
	want := []string{"desk CONNECTED mcp__desk__Say"}
	step := func(what string, more ...string) {
		t.Helper()
		f.turn(ctx, t, s, "hello")
		want = append(want, more...)
		if d := cmp.Diff(want, f.changes(ctx, t, s)); d != "" {
			t.Errorf("%s: the log says\n%s", what, d)
		}
	}
	step("at first")
	step("without a change")
	f.restart(t)
	step("after a restart")
	f.peers.setMCP("desk", works("Say", "Sing"))
	step("with another tool", "desk CONNECTED mcp__desk__Say mcp__desk__Sing")
	f.peers.setMCP("desk", fails("it has crashed"))
	step("when it is away", "desk FAILED")
	f.peers.setMCP("desk", fails("it has crashed again"))
	step("while it is away")
	f.peers.setMCP("desk", &commonv1.McpServerStatus{State: commonv1.McpServerState_MCP_SERVER_STATE_CONNECTING})
	step("while it is tried again")
	f.peers.setMCP("desk", works("Say"))
	step("when it is back", "desk CONNECTED mcp__desk__Say")
	warnings := 0
	for _, e := range f.log(ctx, t, s) {
		if w := e.GetWarning(); w.GetReason() == "MCP_SERVER_UNAVAILABLE" {
			warnings++
			if w.Message != "The MCP server desk cannot be used: it has crashed." {
				t.Errorf("the warning is %q", w.Message)
			}
		}
	}
	if warnings != 1 {
		t.Errorf("%d warnings", warnings)
	}
}

func TestATurnGoesOnWithoutAServerUnlessItIsRequired(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		server   *commonv1.McpServer
		state    *commonv1.McpServerStatus
		required string // the error of the turn when the server is required
	}{
		"it is away":              {wiki("other"), fails("connection refused"), "The MCP server other cannot be used, and the turn needs it: connection refused."},
		"it wants a login":        {wiki("other"), &commonv1.McpServerStatus{State: commonv1.McpServerState_MCP_SERVER_STATE_NEEDS_AUTHORIZATION}, "The MCP server other cannot be used, and the turn needs it: you must log in to it first."},
		"its variable is not set": {wiki("other", "Bearer ${NONE}"), works("Say"), "The MCP server other cannot be used, and the turn needs it: The user default has no variable NONE, which the server needs. Set it with `fairlead variables set NAME`."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, hello, withClerk)
			ctx := t.Context()
			f.peers.setMCP("other", c.state)
			if end := finished(t, f.turn(ctx, t, f.clerk(ctx, t, c.server), "hello")); end.State != sessionv1.TurnState_TURN_STATE_COMPLETE {
				t.Errorf("not required: %v", end)
			}
			c.server.Required = true
			s := f.clerk(ctx, t, c.server)
			end := finished(t, f.turn(ctx, t, s, "hello"))
			if end.State != sessionv1.TurnState_TURN_STATE_FAILED || end.Error.GetReason() != "MCP_SERVER_UNAVAILABLE" || end.Error.GetMessage() != c.required {
				t.Errorf("required: %v", end)
			}
			f.peers.setMCP("other", works("Say"))
			if name != "its variable is not set" {
				if end := finished(t, f.turn(ctx, t, s, "hello")); end.State != sessionv1.TurnState_TURN_STATE_COMPLETE {
					t.Errorf("once it works: %v", end)
				}
			}
		})
	}
}

func TestTheStatusOfAServerNeedsNoTurn(t *testing.T) {
	t.Parallel()
	f := start(t, hello, withClerk)
	ctx := t.Context()
	f.peers.setMCP("a", fails("no route"))
	s := f.clerk(ctx, t, wiki("a"), wiki("b", "${NONE}"))
	got, err := sessionv1.NewMcpServiceClient(f.conn).GetMcpStatus(ctx, &sessionv1.GetMcpStatusRequest{Name: s + "/mcp"})
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]string{}
	for _, x := range got.Status.Servers {
		states[x.Name] = strings.TrimPrefix(x.State.String(), "MCP_SERVER_STATE_") + " " + x.Message + strings.Join(x.Tools, " ")
	}
	want := map[string]string{
		"a": "FAILED no route", "desk": "CONNECTED mcp__desk__Say",
		"b": "FAILED The user default has no variable NONE, which the server needs. Set it with `fairlead variables set NAME`.",
	}
	if !maps.Equal(states, want) {
		t.Error(cmp.Diff(want, states))
	}
	if !slices.IsSortedFunc(got.Status.Servers, func(a, b *commonv1.McpServerStatus) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("in the order %v", got.Status.Servers)
	}
}

// BeginLogin answers with a page that names the server's address and the user.
func (p *peers) BeginLogin(ctx context.Context, r *toolsv1.BeginLoginRequest) (*toolsv1.BeginLoginResponse, error) {
	acting, _ := principal.From(ctx)
	return &toolsv1.BeginLoginResponse{AuthorizationUrl: "https://login.example.com/?user=" + acting.User + "&server=" + r.Server.GetHttp().GetUrl()}, nil
}

// FinishLogin ends any login.
func (p *peers) FinishLogin(context.Context, *toolsv1.FinishLoginRequest) (*toolsv1.FinishLoginResponse, error) {
	return &toolsv1.FinishLoginResponse{Server: "wiki"}, nil
}

// ForgetLogin forgets any login.
func (p *peers) ForgetLogin(context.Context, *toolsv1.ForgetLoginRequest) (*toolsv1.ForgetLoginResponse, error) {
	return &toolsv1.ForgetLoginResponse{}, nil
}

// CompleteMcpArgument proposes what it was asked, and under which permissions.
func (p *peers) CompleteMcpArgument(_ context.Context, r *toolsv1.CompleteMcpArgumentRequest) (*toolsv1.CompleteMcpArgumentResponse, error) {
	at := r.At
	return &toolsv1.CompleteMcpArgumentResponse{Completion: &commonv1.McpCompletion{Values: []string{
		at.Server, r.Argument.GetPrompt() + "." + r.Argument.Name, at.Profile, at.Mode.String(), fmt.Sprint(len(at.Servers), len(at.Filters), len(at.AllowedTools) > 0),
	}}}, nil
}

// WatchMcpResource reports two changes and ends.
func (p *peers) WatchMcpResource(r *toolsv1.WatchMcpResourceRequest, stream grpc.ServerStreamingServer[toolsv1.WatchMcpResourceResponse]) error {
	for range 2 {
		if err := stream.Send(&toolsv1.WatchMcpResourceResponse{}); err != nil {
			return err
		}
	}
	return apierr.Of(codes.FailedPrecondition, toolsv1.ErrorReason_ERROR_REASON_MCP_SERVER_UNAVAILABLE, "no "+r.Uri)
}

func TestRequestsToAServerOfTheSessionHaveItsPermissions(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	ann := as(t.Context(), "ann", principal.RoleUser)
	servers := sessionv1.NewMcpServiceClient(f.conn)
	made, err := f.CreateSession(ann, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{
		McpServers: []*commonv1.McpServer{wiki("wiki")}, Permissions: &commonv1.PermissionRules{Deny: []string{"Write"}},
		TurnOptions: &sessionv1.TurnOptions{PermissionMode: commonv1.PermissionMode_PERMISSION_MODE_PLAN},
	}})
	if err != nil {
		t.Fatal(err)
	}
	name := made.Session.Name + "/mcp/wiki"
	argument := &commonv1.McpArgument{Of: &commonv1.McpArgument_Prompt{Prompt: "greet"}, Name: "who"}
	got, err := servers.CompleteMcpArgument(ann, &sessionv1.CompleteMcpArgumentRequest{Name: name, Argument: argument})
	if want := []string{"wiki", "greet.who", "full", "PERMISSION_MODE_PLAN", "1 1 true"}; err != nil || !slices.Equal(got.GetCompletion().GetValues(), want) {
		t.Errorf("got %v, %v", got, err)
	}
	bob := as(t.Context(), "bob", principal.RoleUser)
	if _, err := servers.CompleteMcpArgument(bob, &sessionv1.CompleteMcpArgumentRequest{Name: name, Argument: argument}); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_SESSION_NOT_FOUND) {
		t.Errorf("in another user's session: %v", err)
	}
	stream, err := servers.WatchMcpResource(ann, &sessionv1.WatchMcpResourceRequest{Name: name, Uri: "file:///a"})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := stream.Recv(); !apierr.Is(err, toolsv1.ErrorReason_ERROR_REASON_MCP_SERVER_UNAVAILABLE) {
		t.Errorf("the end: %v", err)
	}
}

// withWiki creates a session with the server wiki.
func (f *fixture) withWiki(ctx context.Context, t *testing.T) string {
	t.Helper()
	made, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{McpServers: []*commonv1.McpServer{wiki("wiki")}}})
	if err != nil {
		t.Fatal(err)
	}
	return made.Session.Name
}

func TestALoginIsTheCallersForTheServerOfTheSession(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	ann := as(t.Context(), "ann", principal.RoleUser)
	servers, s := sessionv1.NewMcpServiceClient(f.conn), f.withWiki(ann, t)
	got, err := servers.LoginMcpServer(ann, &sessionv1.LoginMcpServerRequest{Name: s + "/mcp/wiki"})
	if err != nil || got.AuthorizationUrl != "https://login.example.com/?user=ann&server=https://wiki.example.com/mcp" {
		t.Errorf("begun: %v, %v", got, err)
	}
	if _, err := servers.LoginMcpServer(ann, &sessionv1.LoginMcpServerRequest{Name: s + "/mcp/other"}); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_MCP_SERVER_NOT_FOUND) {
		t.Errorf("to a server that the session does not have: %v", err)
	}
	if _, err := servers.LoginMcpServer(as(t.Context(), "bob", principal.RoleUser), &sessionv1.LoginMcpServerRequest{Name: s + "/mcp/wiki"}); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_SESSION_NOT_FOUND) {
		t.Errorf("in another user's session: %v", err)
	}
}

func TestTheModelReadsWhatMCPServersSay(t *testing.T) {
	t.Parallel()
	f, wire := startGreeter(t, withClerk, func(c *session.Config) {
		a := c.Agents["clerk"]
		a.Prompt = "Be careful."
		c.Agents["clerk"] = a
	})
	ctx := t.Context()
	desk := works("Say")
	desk.Instructions = "Search before you say."
	f.peers.setMCP("desk", desk)
	s := f.clerk(ctx, t)
	system := func() string {
		t.Helper()
		f.turn(ctx, t, s, "go")
		all := wire.Requests()
		return all[len(all)-1].System
	}
	first := system()
	if !strings.HasPrefix(first, "Be careful.\n\nThe MCP servers") || !strings.HasSuffix(first, "<mcp-server name=\"desk\">\nSearch before you say.\n</mcp-server>") {
		t.Errorf("the model read %q", first)
	}
	if again := system(); again != first {
		t.Errorf("then it read %q", again)
	}
	f.peers.setMCP("desk", fails("it is away"))
	if got := system(); got != "Be careful." {
		t.Errorf("while the server is away it read %q", got)
	}
}
