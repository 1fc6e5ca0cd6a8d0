package integration

import (
	"strings"
	"testing"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

func TestAServerOfASessionGetsNoVariablesOfAnOperator(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	bob, root := as(t.Context(), "bob", principal.RoleUser), as(t.Context(), "root", principal.RoleOperator)
	users, servers := sessionv1.NewUserServiceClient(f.conn), sessionv1.NewMcpServiceClient(f.conn)
	if _, err := users.SetUserVariable(root, &sessionv1.SetUserVariableRequest{Name: "users/me/variables/TOKEN", Value: "of-root"}); err != nil {
		t.Fatal(err)
	}
	made, err := f.CreateSession(bob, &sessionv1.CreateSessionRequest{
		Session: &sessionv1.Session{McpServers: []*commonv1.McpServer{wiki("trap", "Bearer ${TOKEN}"), wiki("open")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := made.Session.Name
	status, err := servers.GetMcpStatus(root, &sessionv1.GetMcpStatusRequest{Name: s + "/mcp"})
	if err != nil || len(status.Status.Servers) != 2 || !strings.Contains(status.Status.Servers[1].Message, "your variables do not go there") {
		t.Errorf("the operator sees %v, %v", status, err)
	}
	if seen := f.peers.seenMCP(); len(seen) != 1 || seen[0].Name != "open" {
		t.Errorf("tools was given %v", seen)
	}
	fork, err := f.ForkSession(root, &sessionv1.ForkSessionRequest{Name: s, WithoutFiles: true})
	if err != nil || len(fork.Session.McpServers) != 0 {
		t.Errorf("the operator's fork has %v, %v", fork.GetSession().GetMcpServers(), err)
	}
	if _, err := users.SetUserVariable(bob, &sessionv1.SetUserVariableRequest{Name: "users/me/variables/TOKEN", Value: "of-bob"}); err != nil {
		t.Fatal(err)
	}
	if _, err := servers.GetMcpStatus(bob, &sessionv1.GetMcpStatusRequest{Name: s + "/mcp"}); err != nil {
		t.Fatal(err)
	}
	if seen := f.peers.seenMCP(); len(seen) != 2 || seen[1].GetHttp().GetHeaders()["Authorization"] != "Bearer of-bob" {
		t.Errorf("for the session's user, tools was given %v", seen)
	}
}
