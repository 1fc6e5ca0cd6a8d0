package call

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/sqlite/sqlitetest"
	"github.com/fairlead/fairlead/services/tools/internal/permission"
	"github.com/fairlead/fairlead/services/tools/internal/policy"
	"github.com/fairlead/fairlead/services/tools/internal/registry"
	"github.com/fairlead/fairlead/services/tools/internal/store"
	"github.com/fairlead/fairlead/services/tools/internal/store/sqlite"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// faulty fails moves, before or after they are made.
type faulty struct {
	store.Store
	mu            sync.Mutex
	before, after []error
}

func (f *faulty) Move(ctx context.Context, ref store.Ref, c store.Change) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.To == store.Finished && len(f.before) > 0 {
		err := f.before[0]
		f.before = f.before[1:]
		return err
	}
	err := f.Store.Move(ctx, ref, c)
	if c.To == store.Finished && len(f.after) > 0 {
		err = f.after[0]
		f.after = f.after[1:]
	}
	return err
}

// runner is a tool that does what a test says.
type runner struct {
	mu   sync.Mutex
	runs []tool.Call
	do   func(ctx context.Context, c tool.Call, out tool.Sink) (*tool.Result, error)
}

func (r *runner) Run(ctx context.Context, c tool.Call, out tool.Sink) (*tool.Result, error) {
	r.mu.Lock()
	r.runs = append(r.runs, c)
	r.mu.Unlock()
	return r.do(ctx, c, out)
}

type world struct {
	*Engine
	store  *faulty
	runner *runner
}

var migrated = sqlitetest.NewTemplate(sqlite.Migrations())

func newWorld(t *testing.T, do func(ctx context.Context, c tool.Call, out tool.Sink) (*tool.Result, error)) *world {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tools.db")
	migrated.Copy(t, file)
	db, err := sqlite.Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{store: &faulty{Store: db}, runner: &runner{do: do}}
	made, err := tool.New(tool.Spec{Name: "Tool", InputSchema: `{"type":"object"}`}, w.runner)
	if err != nil {
		t.Fatal(err)
	}
	tools, err := registry.New(made)
	if err != nil {
		t.Fatal(err)
	}
	profile, err := permission.Compile("p", permission.Rules{Allow: []string{"Tool"}})
	if err != nil {
		t.Fatal(err)
	}
	w.Engine, err = New(Config{
		Store: w.store, Tools: tools, Policies: policy.New(policy.Config{Profiles: permission.Set{"p": profile}}), Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Now: time.Now,
		Limits: Limits{Session: 4, Total: 4, Duration: time.Minute, OutputBytes: 1000},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.Close()
		_ = db.Close()
	})
	return w
}

func request1(epoch int64) Request {
	return Request{Ref: store.Ref{Tenant: "t", Session: "sessions/s", Epoch: epoch, CallID: "c1"}, Tool: "Tool", Policy: policy.Query{Profile: "p"}, Allowed: []string{"Tool"}}
}

func (w *world) result(t *testing.T, q Request) (*tool.Result, error) {
	t.Helper()
	var last *toolsv1.CallToolResponse
	err := w.Call(t.Context(), q, func(m *toolsv1.CallToolResponse) error { last = m; return nil })
	return last.GetResult(), err
}

func done(context.Context, tool.Call, tool.Sink) (*tool.Result, error) { return tool.OK("done"), nil }

func TestAResultOutlivesAStoreThatFails(t *testing.T) {
	for name, arrange := range map[string]func(*faulty){
		"before the write":                 func(f *faulty) { f.before = []error{store.ErrUnavailable, store.ErrUnavailable} },
		"after a write that was not acked": func(f *faulty) { f.after = []error{store.ErrUnavailable} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, done)
			arrange(w.store)
			got, err := w.result(t, request1(1))
			if err != nil || tool.Text(got) != "done" || len(w.runner.runs) != 1 {
				t.Errorf("got %v, %v after %d runs", got, err, len(w.runner.runs))
			}
		})
	}
}

func TestARunThatCannotBeRecordedIsTakenUpAgain(t *testing.T) {
	w := newWorld(t, done)
	broken := errors.New("broken")
	w.store.before = []error{broken}
	if _, err := w.result(t, request1(1)); !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
	got, err := w.result(t, request1(1))
	if err != nil || tool.Text(got) != "done" {
		t.Fatalf("got %v, %v", got, err)
	}
	if runs := w.runner.runs; len(runs) != 2 || runs[0].Resumed || !runs[1].Resumed {
		t.Errorf("runs: %+v", w.runner.runs)
	}
}

func TestAResumedCallLearnsThatItWasSettled(t *testing.T) {
	w := newWorld(t, done)
	w.store.before = []error{errors.New("broken")}
	if _, err := w.result(t, request1(1)); err == nil {
		t.Fatal("the first run was recorded")
	}
	// While the call is taken up again, another replica records its result.
	w.runner.do = func(ctx context.Context, c tool.Call, _ tool.Sink) (*tool.Result, error) {
		if err := c.Open(ctx); err != nil {
			t.Errorf("an open call is told as settled: %v", err)
		}
		bytes, err := encode(tool.OK("from elsewhere"))
		if err != nil {
			return nil, err
		}
		if err := w.Store.Move(ctx, request1(1).Ref, store.Change{From: store.Started, To: store.Finished, Result: bytes}); err != nil {
			return nil, err
		}
		return nil, c.Open(ctx)
	}
	got, err := w.result(t, request1(1))
	if err != nil || tool.Text(got) != "from elsewhere" || len(w.runner.runs) != 2 {
		t.Errorf("got %v, %v after %d runs", got, err, len(w.runner.runs))
	}
}

func TestATakeoverHandsTheNewEpochToARunningCall(t *testing.T) {
	first := make(chan struct{})
	taken := make(chan struct{})
	w := newWorld(t, func(_ context.Context, c tool.Call, _ tool.Sink) (*tool.Result, error) {
		if c.Epoch == 1 {
			close(first)
			<-taken
			return nil, tool.ErrStaleEpoch
		}
		return tool.OK("under the new epoch"), nil
	})
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = w.result(t, request1(1)) })
	<-first
	w.find(request1(1).Ref).raise(2)
	close(taken)
	got, err := w.result(t, request1(2))
	wg.Wait()
	if err != nil || tool.Text(got) != "under the new epoch" {
		t.Errorf("got %v, %v", got, err)
	}
	if runs := w.runner.runs; len(runs) != 2 {
		t.Errorf("runs: %+v", runs)
	}
}

func TestAPanicOfAToolIsAResult(t *testing.T) {
	w := newWorld(t, func(context.Context, tool.Call, tool.Sink) (*tool.Result, error) { panic("boom") })
	got, err := w.result(t, request1(1))
	if err != nil || got.GetOutcome() != toolsv1.CallOutcome_CALL_OUTCOME_UNKNOWN || strings.Contains(tool.Text(got), "boom") {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestACallIsBoundedInTime(t *testing.T) {
	w := newWorld(t, func(ctx context.Context, _ tool.Call, _ tool.Sink) (*tool.Result, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	w.Limits.Duration = time.Millisecond
	got, err := w.result(t, request1(1))
	if err != nil || got.GetOutcome() != toolsv1.CallOutcome_CALL_OUTCOME_ERROR || !strings.Contains(tool.Text(got), "took longer than a call may (1ms)") {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestCloseLetsGoAndRefuses(t *testing.T) {
	running := make(chan struct{})
	w := newWorld(t, func(ctx context.Context, _ tool.Call, _ tool.Sink) (*tool.Result, error) {
		close(running)
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	failed := make(chan error, 1)
	go func() {
		_, err := w.result(t, request1(1))
		failed <- err
	}()
	<-running
	w.Close()
	if err := <-failed; !errors.Is(err, tool.ErrClosing) {
		t.Errorf("the running call ended with %v", err)
	}
	other := request1(1)
	other.Ref.CallID = "c2"
	if _, err := w.result(t, other); !errors.Is(err, tool.ErrClosing) {
		t.Errorf("a new call ended with %v", err)
	}
	rec, err := w.Store.Enter(t.Context(), request1(1).Ref)
	if err != nil || rec.State != store.Started {
		t.Errorf("the journal says %q, %v; want that it is to be taken up again", rec.State, err)
	}
}

func TestDigestKeepsNameAndArgumentsApart(t *testing.T) {
	seen := map[string][2]string{}
	for _, pair := range [][2]string{{"a", "bc"}, {"ab", "c"}, {"", "abc"}, {"abc", ""}, {"a", "b c"}} {
		d := Digest(pair[0], pair[1])
		if other, taken := seen[d]; taken {
			t.Errorf("%q and %q have one digest", pair, other)
		}
		seen[d] = pair
	}
}

func TestSpans(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(provider)
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	w := newWorld(t, func(context.Context, tool.Call, tool.Sink) (*tool.Result, error) {
		return tool.Failed("the secret text"), nil
	})
	ctx, parent := provider.Tracer("test").Start(t.Context(), "turn")
	q := request1(1)
	q.Arguments = `{"secret":"words"}`
	if err := w.Call(ctx, q, func(*toolsv1.CallToolResponse) error { return nil }); err != nil {
		t.Fatal(err)
	}
	w.Close()
	spans := exporter.GetSpans()
	if len(spans) != 1 || spans[0].Name != "execute_tool Tool" || spans[0].Parent.SpanID() != parent.SpanContext().SpanID() {
		t.Fatalf("got %+v", spans)
	}
	got := map[string]string{}
	for _, a := range spans[0].Attributes {
		got[string(a.Key)] = a.Value.String()
	}
	want := map[string]string{
		"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "Tool", "gen_ai.tool.call.id": "c1", "gen_ai.tool.type": "function",
		"fairlead.tenant": "t", "fairlead.session": "sessions/s", "fairlead.epoch": "1",
		"fairlead.call.resumed": "false", "fairlead.call.outcome": "error", "error.type": "error",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	if len(spans[0].Events) != 1 || spans[0].Events[0].Name != "decide" {
		t.Errorf("events: %+v", spans[0].Events)
	}
}
