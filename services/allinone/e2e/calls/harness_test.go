// Package calls tests the tools on a real sandbox, without a model.
package calls

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/rpc/rpctest"
	"github.com/fairlead/fairlead/services/sandbox"
	"github.com/fairlead/fairlead/services/tools"
)

func TestMain(m *testing.M) {
	// A connection's heartbeat ends by itself, at its next beat.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/client-go/tools/remotecommand.(*heartbeat).start"))
}

const session = "sessions/one"

// fixture is a tools service on a sandbox service, with a workspace.
type fixture struct {
	*testing.T
	workspace string // on the host
	calls     toolsv1.CallServiceClient
	made      int
}

func start(t *testing.T, profiles map[string]tools.Profile) *fixture {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	boxes := sandbox.Defaults()
	boxes.Level, boxes.Data, boxes.Node = sandbox.LevelBasic, filepath.Join(t.TempDir(), "sandbox"), "here"
	boxes.CgroupParent, boxes.UIDBase, boxes.UIDCount = "fairlead-calls", 400_000+os.Getpid()%900*100, 100
	box, err := sandbox.New(t.Context(), boxes, sandbox.Deps{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, box) })
	conn := rpctest.Dial(t, box.RegisterPeer)

	config := tools.Defaults()
	config.Data, config.Profiles = t.TempDir(), profiles
	service, err := tools.New(t.Context(), config, tools.Deps{Sandbox: conn, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, service) })
	served := rpctest.Dial(t, func(r grpc.ServiceRegistrar) { service.RegisterPublic(r); service.RegisterPeer(r) })

	f := &fixture{T: t, calls: toolsv1.NewCallServiceClient(served)}
	ensure := &sandboxv1.EnsureWorkspaceRequest{Call: &commonv1.CallRef{Session: session, Epoch: 1, CallId: "workspace"}}
	if _, err := sandboxv1.NewWorkspaceServiceClient(conn).EnsureWorkspace(t.Context(), ensure); err != nil {
		t.Fatal(err)
	}
	f.bash("touch .here")
	found, err := filepath.Glob(filepath.Join(boxes.Data, "*", "*", "workspace", ".here"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the workspace is in %v, %v", found, err)
	}
	f.workspace = filepath.Dir(found[0])
	return f
}

func closed(t *testing.T, c io.Closer) {
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// answer is how a call ended.
type answer struct {
	outcome string
	text    string
	asked   *toolsv1.CallAsk
}

// request is a call with a new id.
func (f *fixture) request(profile, tool string, args map[string]any) *toolsv1.CallToolRequest {
	raw, err := json.Marshal(args)
	if err != nil {
		f.Fatal(err)
	}
	f.made++
	return &toolsv1.CallToolRequest{
		Call: &commonv1.CallRef{Session: session, Epoch: 1, CallId: fmt.Sprintf("call.%d", f.made)}, Tool: tool, ArgumentsJson: string(raw),
		Profile: profile, AllowedTools: []string{"Bash", "Read", "Write", "Edit", "MultiEdit", "Glob", "Grep", "LS"},
	}
}

func (f *fixture) call(profile, tool string, args map[string]any) answer {
	f.Helper()
	return f.send(f.request(profile, tool, args))
}

func (f *fixture) send(q *toolsv1.CallToolRequest) (a answer) {
	f.Helper()
	stream, err := f.calls.CallTool(f.Context(), q)
	for err == nil {
		var m *toolsv1.CallToolResponse
		if m, err = stream.Recv(); err != nil {
			break
		}
		if m.GetAsk() != nil {
			a.asked = m.GetAsk()
		}
		if r := m.GetResult(); r != nil {
			a.outcome = strings.TrimPrefix(r.GetOutcome().String(), "CALL_OUTCOME_")
			for _, c := range r.GetContent() {
				a.text += c.GetText().GetText()
			}
		}
	}
	if !errors.Is(err, io.EOF) {
		f.Fatalf("%s %s: %v", q.GetTool(), q.GetArgumentsJson(), err)
	}
	return a
}

// bash runs a script that must succeed.
func (f *fixture) bash(script string) string {
	f.Helper()
	a := f.call("full", "Bash", map[string]any{"command": script})
	if a.outcome != "OK" {
		f.Fatalf("%s: %s %s", script, a.outcome, a.text)
	}
	return a.text
}
