package integration

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// wiki returns a server on the network, with the value of its header Authorization.
func wiki(name string, authorization ...string) *commonv1.McpServer {
	http := &commonv1.McpHttp{Url: "https://wiki.example.com/mcp"}
	if len(authorization) > 0 {
		http.Headers = map[string]string{"Authorization": authorization[0]}
	}
	return &commonv1.McpServer{Name: name, Transport: &commonv1.McpServer_Http{Http: http}}
}

func TestAUsersMCPServersAreSetReadListedAndDeleted(t *testing.T) {
	t.Parallel()
	f := start(t, asking)
	servers := sessionv1.NewMcpServiceClient(f.conn)
	ann, bob := as(t.Context(), "ann", principal.RoleUser), as(t.Context(), "bob", principal.RoleUser)
	for _, name := range []string{"b", "a", "c"} {
		if _, err := servers.SetUserMcpServer(ann, &sessionv1.SetUserMcpServerRequest{Name: "users/me/mcpServers/" + name, Server: wiki(name, "Bearer ${TOKEN}")}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := servers.GetUserMcpServer(ann, &sessionv1.GetUserMcpServerRequest{Name: "users/ann/mcpServers/a"})
	if err != nil || got.McpServer.Name != "users/ann/mcpServers/a" || !proto.Equal(got.McpServer.Server, wiki("a", "Bearer ${TOKEN}")) {
		t.Errorf("read: %v, %v", got, err)
	}
	var names []string
	for token := ""; ; {
		page, err := servers.ListUserMcpServers(ann, &sessionv1.ListUserMcpServersRequest{Parent: "users/me", PageSize: 2, PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range page.McpServers {
			names = append(names, s.Name)
		}
		if token = page.NextPageToken; token == "" {
			break
		}
	}
	if want := []string{"users/ann/mcpServers/a", "users/ann/mcpServers/b", "users/ann/mcpServers/c"}; !cmp.Equal(names, want) {
		t.Errorf("listed %v", names)
	}
	if page, err := servers.ListUserMcpServers(bob, &sessionv1.ListUserMcpServersRequest{Parent: "users/me"}); err != nil || len(page.McpServers) > 0 {
		t.Errorf("bob has %v, %v", page, err)
	}
	if _, err := servers.DeleteUserMcpServer(ann, &sessionv1.DeleteUserMcpServerRequest{Name: "users/me/mcpServers/a"}); err != nil {
		t.Fatal(err)
	}
	_, err = servers.GetUserMcpServer(ann, &sessionv1.GetUserMcpServerRequest{Name: "users/me/mcpServers/a"})
	if !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_MCP_SERVER_NOT_FOUND) {
		t.Errorf("read after the deletion: %v", err)
	}
	_, err = servers.SetUserMcpServer(ann, &sessionv1.SetUserMcpServerRequest{Name: "users/me/mcpServers/a", Server: wiki("b")})
	if !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_INVALID_MCP_SERVER) {
		t.Errorf("with another name in it: %v", err)
	}
}

// The literal value of a header is a secret: no answer shows it, not even to its user.
func TestNoAnswerShowsALiteralHeader(t *testing.T) {
	t.Parallel()
	f := start(t, asking)
	ctx, hush := t.Context(), "Bearer hush-hush"
	servers, agents := sessionv1.NewMcpServiceClient(f.conn), sessionv1.NewAgentServiceClient(f.conn)
	answers := map[string]proto.Message{}
	keep := func(name string, m proto.Message, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		answers[name] = m
	}
	user, err := servers.SetUserMcpServer(ctx, &sessionv1.SetUserMcpServerRequest{Name: "users/me/mcpServers/a", Server: wiki("a", hush)})
	keep("set", user, err)
	read, err := servers.GetUserMcpServer(ctx, &sessionv1.GetUserMcpServerRequest{Name: "users/me/mcpServers/a"})
	keep("get", read, err)
	listed, err := servers.ListUserMcpServers(ctx, &sessionv1.ListUserMcpServersRequest{Parent: "users/me"})
	keep("list", listed, err)
	spec := &sessionv1.AgentSpec{Profile: "full", McpServers: []*commonv1.McpServer{wiki("b", hush)}}
	made, err := agents.CreateAgent(ctx, &sessionv1.CreateAgentRequest{AgentId: "clerk", Spec: spec})
	keep("create agent", made, err)
	version, err := agents.GetAgentVersion(ctx, &sessionv1.GetAgentVersionRequest{Name: "agents/clerk/versions/1"})
	keep("version", version, err)
	session, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{SessionId: "s", Session: &sessionv1.Session{Agent: "agents/clerk", McpServers: []*commonv1.McpServer{wiki("c", hush)}}})
	keep("create session", session, err)
	got, err := f.GetSession(ctx, &sessionv1.GetSessionRequest{Name: "sessions/s"})
	keep("get session", got, err)
	sessions, err := f.ListSessions(ctx, &sessionv1.ListSessionsRequest{})
	keep("list sessions", sessions, err)
	fork, err := f.ForkSession(ctx, &sessionv1.ForkSessionRequest{Name: "sessions/s", SessionId: "fork", WithoutFiles: true})
	keep("fork", fork, err)
	for name, m := range answers {
		if text := protojson.Format(m); strings.Contains(text, "hush-hush") {
			t.Errorf("%s shows it:\n%s", name, text)
		}
	}
	shown := []*commonv1.McpServer{wiki("c", "(hidden)")}
	if d := cmp.Diff(shown, fork.Session.McpServers, protocmp.Transform()); d != "" {
		t.Errorf("the fork shows\n%s", d)
	}
	if d := cmp.Diff([]*commonv1.McpServer{wiki("b", "(hidden)")}, version.Version.Spec.McpServers, protocmp.Transform()); d != "" {
		t.Errorf("the version shows\n%s", d)
	}
	// A version that is rolled back to keeps the value.
	back, err := agents.RollbackAgent(ctx, &sessionv1.RollbackAgentRequest{Name: "agents/clerk", Version: 1, ExpectedVersion: 1})
	if err != nil || back.Agent.Revision != made.Agent.Revision {
		t.Errorf("rolled back: %v, %v", back, err)
	}
}

func TestAnAgentsMCPServersAreChecked(t *testing.T) {
	t.Parallel()
	f := start(t, asking)
	f.peers.lack("operators")
	agents := sessionv1.NewAgentServiceClient(f.conn)
	for name, c := range map[string]struct {
		servers []*commonv1.McpServer
		fault   string
	}{
		"two of one name":      {[]*commonv1.McpServer{wiki("a"), wiki("a")}, "two servers are named a"},
		"a hidden value":       {[]*commonv1.McpServer{wiki("a", "(hidden)")}, "stands for a value that the service does not show"},
		"a name of operator's": {[]*commonv1.McpServer{wiki("operators")}, noTelepathy},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := agents.CreateAgent(context.WithoutCancel(t.Context()), &sessionv1.CreateAgentRequest{Spec: &sessionv1.AgentSpec{Profile: "full", McpServers: c.servers}})
			if !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_INVALID_SPEC) || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("the answer is %v, not %q", err, c.fault)
			}
		})
	}
}

func TestAMissingServerIsNamed(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	_, err := sessionv1.NewMcpServiceClient(f.conn).SetUserMcpServer(t.Context(), &sessionv1.SetUserMcpServerRequest{Name: "users/me/mcpServers/a"})
	bad, _ := apierr.Detail[*errdetails.BadRequest](err)
	if len(bad.GetFieldViolations()) != 1 || bad.FieldViolations[0].Field != "server" {
		t.Errorf("%v names %v", err, bad)
	}
}
