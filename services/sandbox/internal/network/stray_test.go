package network

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/egress"
)

// Every connection is an event and a span, also one that comes when all is told of the command that
// it names, and nothing else runs: it is refused, and the next command of the sandbox tells of it.
func TestWhatComesWhenNoCommandRunsIsTold(t *testing.T) {
	spans, before := tracetest.NewInMemoryExporter(), otel.GetTracerProvider()
	traces := trace.NewTracerProvider(trace.WithSyncer(spans))
	otel.SetTracerProvider(traces)
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	n := newNetwork(t)
	var logged strings.Builder
	n.log = slog.New(slog.NewTextHandler(&logged, nil))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	out, err := n.Serve(sandbox, l)
	if err != nil {
		t.Fatal(err)
	}
	begin := func(call string) (box.Followed, string) {
		ctx, span := traces.Tracer("").Start(context.Background(), "call")
		defer span.End()
		c := n.Follow(ctx, sandbox, call, nil)
		c.Enter(out)
		return c, span.SpanContext().SpanID().String()
	}

	first, call := begin("first")
	if uses := first.Uses(); len(uses) != 0 {
		t.Fatalf("before anything: %v", uses)
	}
	spans.Reset()
	ask(t, l, "first", "http://a.example.com:8000/") // whose end is being told
	first.Forget()
	ask(t, l, "first", "http://b.example.com/")
	hangUp(t, l)
	if err := out.Close(); err != nil { // waits for the silent one
		t.Fatal(err)
	}

	next, _ := begin("next")
	uses := next.Uses()
	want := []struct{ host, message string }{
		{"a.example.com", "it names the command first, whose end was told before it came"},
		{"b.example.com", "no command ran in the sandbox when it came"},
		{"", "no command ran in the sandbox when it came: nothing was asked for over the connection"},
	}
	if len(uses) != len(want) {
		t.Fatalf("told %+v", uses)
	}
	for i, w := range want {
		if u := uses[i]; u.Host != w.host || u.Message != w.message || u.Outcome != string(egress.Aborted) || u.Connections != 1 || u.Started.IsZero() {
			t.Errorf("told %+v, not %+v", u, w)
		}
		if !strings.Contains(logged.String(), w.message) {
			t.Errorf("the log does not say %q: %s", w.message, &logged)
		}
	}
	var parents []string
	for _, s := range spans.GetSpans() {
		if s.Name == "egress" {
			parents = append(parents, s.Parent.SpanID().String())
		}
	}
	if len(parents) != len(want) || parents[0] != call {
		t.Errorf("spans below %v, the call is %s", parents, call)
	}
	if uses := next.Uses(); len(uses) != len(want) {
		t.Errorf("asked again, it tells %+v", uses)
	}
	last, _ := begin("last")
	if uses := last.Uses(); len(uses) != 0 {
		t.Errorf("the one after that tells of %+v", uses)
	}
}

// ask asks for something by a command's name, and is refused.
func ask(t *testing.T, l net.Listener, exec, address string) {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true, Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: l.Addr().String(), User: url.UserPassword(exec, "x")})}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusBadGateway {
		t.Errorf("%s: %d %q: %v", address, resp.StatusCode, body, err)
	}
}

// hangUp connects and asks for nothing.
func hangUp(t *testing.T, l net.Listener) {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}

// One that names a command whose end is being told is of another one that runs there.
func TestWhatNamesACommandThatWasToldIsOfAnotherThatRuns(t *testing.T) {
	n := newNetwork(t)
	told, runs := start(n, "told"), start(n, "runs")
	told.Uses()
	begin(t, n, "told")(event("a", egress.Done))
	if uses := runs.Uses(); len(uses) != 1 || uses[0].Host != "a" {
		t.Errorf("told %+v", uses)
	}
}

// What is kept of them is bounded, and all are counted.
func TestManyThatAreNoCommandsAreTold(t *testing.T) {
	n := newNetwork(t)
	for range maxStrays + 5 {
		u, err := n.begin(n.out, "nobody", true)
		if err == nil {
			t.Fatal("it is not refused")
		}
		u.Ended(event("a", egress.Aborted))
	}
	uses := start(n, "next").Uses()
	if len(uses) != maxStrays+1 || uses[maxStrays].Connections != 5 || uses[maxStrays].Host != "" {
		t.Errorf("told %d: %+v", len(uses), uses)
	}
}
