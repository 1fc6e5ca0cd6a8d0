package tools

import (
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/internal/kit/sqlite"
)

var (
	_ rpc.Component    = (*Service)(nil)
	_ rpc.ReadyChecker = (*Service)(nil)
)

func TestListToolsByPage(t *testing.T) {
	f := newFixture(t, nil)
	var names []string
	for q := (&toolsv1.ListToolsRequest{PageSize: 4}); ; {
		a, err := f.tools.ListTools(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range a.GetTools() {
			names = append(names, tool.GetName())
		}
		if a.GetNextPageToken() == "" {
			break
		}
		q.PageToken = a.GetNextPageToken()
	}
	want := []string{"tools/AskUserQuestion", "tools/Bash", "tools/Edit", "tools/ExitPlanMode", "tools/GetMcpPrompt", "tools/Glob", "tools/Grep", "tools/LS", "tools/ListMcpResources", "tools/MultiEdit", "tools/Read", "tools/ReadMcpResource", "tools/Skill", "tools/Task", "tools/TodoWrite", "tools/Write", "tools/cancel_operation", "tools/check_operation", "tools/create_agent", "tools/edit_agent"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	_, err := f.tools.ListTools(t.Context(), &toolsv1.ListToolsRequest{PageToken: "nonsense"})
	if bad, ok := apierr.Detail[*errdetails.BadRequest](err); !apierr.Is(err, toolsv1.ErrorReason_ERROR_REASON_BAD_PAGE_TOKEN) || !ok || bad.GetFieldViolations()[0].GetField() != "page_token" {
		t.Errorf("got %v", err)
	}
}

func TestGetTool(t *testing.T) {
	f := newFixture(t, nil)
	a, err := f.tools.GetTool(t.Context(), &toolsv1.GetToolRequest{Name: "tools/Grep"})
	if err != nil {
		t.Fatal(err)
	}
	got := a.GetTool()
	if !got.GetReadOnly() || !got.GetParallel() || got.GetProvider() != "builtin" || got.GetDescription() == "" {
		t.Errorf("got %v", got)
	}
	var schema struct{ Properties map[string]any }
	if err := json.Unmarshal([]byte(got.GetInputSchemaJson()), &schema); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pattern", "path", "glob", "type", "output_mode", "-A", "-B", "-C", "-n", "-i", "head_limit", "multiline"} {
		if schema.Properties[name] == nil {
			t.Errorf("the schema has no %s", name)
		}
	}
	_, err = f.tools.GetTool(t.Context(), &toolsv1.GetToolRequest{Name: "tools/Nope"})
	if info, ok := apierr.Detail[*errdetails.ResourceInfo](err); !apierr.Is(err, toolsv1.ErrorReason_ERROR_REASON_TOOL_NOT_FOUND) || !ok || info.GetResourceName() != "tools/Nope" {
		t.Errorf("got %v", err)
	}
	if _, err = f.tools.GetTool(t.Context(), &toolsv1.GetToolRequest{Name: "Bash"}); apierr.Code(err) != codes.InvalidArgument {
		t.Errorf("got %v", err)
	}
}

func TestThePublicFaceHasNoCalls(t *testing.T) {
	f := newFixture(t, nil)
	public, peer := grpc.NewServer(), grpc.NewServer()
	f.service.RegisterPublic(public)
	f.service.RegisterPeer(peer)
	if _, ok := peer.GetServiceInfo()["fairlead.tools.v1.CallService"]; !ok {
		t.Error("session reaches no calls")
	}
	for name := range peer.GetServiceInfo() {
		if _, ok := public.GetServiceInfo()[name]; ok {
			t.Errorf("%s is served to clients", name)
		}
	}
	if err := f.service.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestConfigIsValidated(t *testing.T) {
	c := Defaults()
	c.Data = "d"
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	c = Config{
		DatabaseURL: config.Secret("mysql://u:hunter2@h/d"), Advertise: "nowhere", MaxSessionCalls: 5, MaxCallOutput: -1,
		Profiles: map[string]Profile{"mine": {Allow: []string{"Read(/etc/*)"}}},
	}
	err := c.Validate()
	if err == nil {
		t.Fatal("a faulty configuration was taken")
	}
	for _, want := range []string{"database-url:", "max-calls:", "max-session-calls:", "max-call-time:", "max-call-output:", "lease-ttl:", "operation-ttl:", "operation-keep:", "advertise:", "profiles: profile mine"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Error("the error shows the password")
	}
	if _, err := New(t.Context(), c, Deps{}); err == nil {
		t.Error("New took a faulty configuration")
	}
	if _, err := New(t.Context(), Config{Data: t.TempDir(), MaxCalls: 1, MaxSessionCalls: 1, MaxCallTime: 1e9}, Deps{}); err == nil {
		t.Error("New took no dependencies")
	}
}

func TestASecondServerOnTheSameDataIsRefused(t *testing.T) {
	f := newFixture(t, nil)
	_, err := New(t.Context(), f.config, Deps{Sandbox: f.conn, Log: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, sqlite.ErrLocked) {
		t.Errorf("got %v, want %v", err, sqlite.ErrLocked)
	}
}
