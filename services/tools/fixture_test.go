package tools

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/rpc/rpctest"
	"github.com/fairlead/fairlead/services/internal/kit/sqlite/sqlitetest"
	"github.com/fairlead/fairlead/services/tools/internal/call"
	"github.com/fairlead/fairlead/services/tools/internal/sandboxtest"
	"github.com/fairlead/fairlead/services/tools/internal/store/sqlite"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const session = "sessions/s1"

// fixture is the service, served in memory on a fake sandbox.
type fixture struct {
	t       *testing.T
	config  Config
	sandbox *sandboxtest.Sandbox
	conn    *grpc.ClientConn // to the sandbox
	service *Service
	calls   toolsv1.CallServiceClient
	tools   toolsv1.ToolServiceClient
	ops     toolsv1.OperationServiceClient
	logins  toolsv1.LoginServiceClient
	quit    func() // ends the service's loops
}

var migrated = sqlitetest.NewTemplate(sqlite.Migrations())

func newFixture(t *testing.T, change func(*Config)) *fixture {
	t.Helper()
	f := &fixture{t: t, config: Defaults()}
	f.config.Data = t.TempDir()
	if change != nil {
		change(&f.config)
	}
	if f.config.DatabaseURL == "" {
		migrated.Copy(t, filepath.Join(f.config.Data, "tools.db"))
	}
	f.sandbox, f.conn = sandboxtest.New(t)
	f.start()
	t.Cleanup(func() { f.stop() })
	return f
}

func (f *fixture) start() {
	f.t.Helper()
	s, err := New(f.t.Context(), f.config, Deps{Sandbox: f.conn, Log: slog.New(slog.NewTextHandler(f.t.Output(), nil))})
	if err != nil {
		f.t.Fatal(err)
	}
	f.service = s
	served := rpctest.Dial(f.t, func(r grpc.ServiceRegistrar) {
		s.RegisterPublic(r)
		s.RegisterPeer(r)
	})
	sandboxtest.Connected(f.t, served)
	f.calls, f.tools, f.ops = toolsv1.NewCallServiceClient(served), toolsv1.NewToolServiceClient(served), toolsv1.NewOperationServiceClient(served)
	f.logins = toolsv1.NewLoginServiceClient(served)
	f.quit = run(f.t, s)
}

// run runs a service's loops until what it returns is called.
func run(t *testing.T, s *Service) (quit func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// stop closes the service; its RPCs may still be open, as after a crash.
func (f *fixture) stop() {
	if f.service != nil {
		f.quit()
		if err := f.service.Close(); err != nil {
			f.t.Error(err)
		}
		f.service = nil
	}
}

func ref(id string) *commonv1.CallRef {
	return &commonv1.CallRef{Session: session, Epoch: 1, CallId: id}
}

func ask(id, name, args string) *toolsv1.CallToolRequest {
	return &toolsv1.CallToolRequest{
		Call: ref(id), Tool: name, ArgumentsJson: args, Profile: "full",
		AllowedTools: []string{"Bash", "Read", "Write", "Edit", "MultiEdit", "Glob", "Grep", "LS", "TodoWrite", "check_operation", "cancel_operation"},
	}
}

func bashCall(id, script string) *toolsv1.CallToolRequest {
	return ask(id, "Bash", `{"command":`+quote(script)+`}`)
}

// answer is all that a CallTool stream brought.
type answer struct {
	decision  *toolsv1.CallDecision
	output    string
	progress  []string
	result    *toolsv1.CallResult
	ask       *toolsv1.CallAsk
	delegated *toolsv1.CallDelegated
	question  *commonv1.Question
	pieces    int
}

func (a answer) text() string {
	return tool.Text(a.result)
}

func (f *fixture) call(q *toolsv1.CallToolRequest) (answer, error) {
	f.t.Helper()
	stream, err := f.calls.CallTool(f.t.Context(), q)
	if err != nil {
		return answer{}, err
	}
	return drain(stream)
}

func drain(stream grpc.ServerStreamingClient[toolsv1.CallToolResponse]) (a answer, err error) {
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return a, nil
		}
		if err != nil {
			return a, err
		}
		a.pieces++
		switch k := m.GetKind().(type) {
		case *toolsv1.CallToolResponse_Decision:
			a.decision = k.Decision
		case *toolsv1.CallToolResponse_Output:
			a.output += string(k.Output.GetData())
		case *toolsv1.CallToolResponse_Progress:
			a.progress = append(a.progress, k.Progress.GetMessage())
		case *toolsv1.CallToolResponse_Result:
			a.result = k.Result
		case *toolsv1.CallToolResponse_Ask:
			a.ask = k.Ask
		case *toolsv1.CallToolResponse_Delegated:
			a.delegated = k.Delegated
		case *toolsv1.CallToolResponse_Question:
			a.question = k.Question
		}
	}
}

// must makes a call that brings a result with an outcome.
func (f *fixture) must(q *toolsv1.CallToolRequest, outcome toolsv1.CallOutcome) answer {
	f.t.Helper()
	a, err := f.call(q)
	if err != nil {
		f.t.Fatalf("call %s: %v", q.GetCall().GetCallId(), err)
	}
	if a.result.GetOutcome() != outcome {
		f.t.Fatalf("call %s: got %v %q, want %v", q.GetCall().GetCallId(), a.result.GetOutcome(), a.text(), outcome)
	}
	return a
}

// refused makes a call that fails with a reason.
func (f *fixture) refused(q *toolsv1.CallToolRequest, reason string) {
	f.t.Helper()
	a, err := f.call(q)
	if apierr.Reason(err) != reason {
		f.t.Fatalf("call %s: got %v (%v), want %s", q.GetCall().GetCallId(), err, a.result, reason)
	}
}

// open begins a call and waits until its command runs.
func (f *fixture) open(ctx context.Context, q *toolsv1.CallToolRequest) grpc.ServerStreamingClient[toolsv1.CallToolResponse] {
	f.t.Helper()
	stream, err := f.calls.CallTool(ctx, q)
	if err != nil {
		f.t.Fatal(err)
	}
	f.awaitStart(q.GetCall().GetCallId())
	return stream
}

func (f *fixture) awaitStart(id string) {
	f.t.Helper()
	select {
	case got := <-f.sandbox.Started():
		if got != id {
			f.t.Fatalf("the command of %s was started, want %s", got, id)
		}
	case <-f.t.Context().Done():
		f.t.Fatal("no command was started")
	}
}

func approve(q *toolsv1.CallToolRequest, approved bool, comment string) *toolsv1.CallToolRequest {
	q = proto.CloneOf(q)
	q.Approval = &toolsv1.Approval{Digest: call.Digest(q.GetTool(), q.GetArgumentsJson()), Approved: approved, Comment: comment, User: "ann"}
	return q
}

func quote(s string) string {
	b := []byte{'"'}
	for _, c := range []byte(s) {
		switch c {
		case '\n':
			b = append(b, `\n`...)
		case '"', '\\':
			b = append(b, '\\', c)
		default:
			b = append(b, c)
		}
	}
	return string(append(b, '"'))
}
