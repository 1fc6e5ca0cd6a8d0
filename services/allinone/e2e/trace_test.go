package e2e

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// receiver is an OTLP/gRPC receiver that keeps the spans.
type receiver struct {
	collectorv1.UnimplementedTraceServiceServer
	mu    sync.Mutex
	spans map[string]span // by span id
}

type span struct {
	*tracev1.Span
	service string
}

func (r *receiver) Export(_ context.Context, req *collectorv1.ExportTraceServiceRequest) (*collectorv1.ExportTraceServiceResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rs := range req.ResourceSpans {
		service := ""
		for _, a := range rs.Resource.GetAttributes() {
			if a.Key == "service.name" {
				service = a.Value.GetStringValue()
			}
		}
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				r.spans[hex.EncodeToString(s.SpanId)] = span{s, service}
			}
		}
	}
	return &collectorv1.ExportTraceServiceResponse{}, nil
}

func receive(t *testing.T) (*receiver, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{spans: map[string]span{}}
	server := grpc.NewServer()
	collectorv1.RegisterTraceServiceServer(server, r)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return r, l.Addr().String()
}

func (s span) attribute(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.GetStringValue()
		}
	}
	return ""
}

// TestATurnIsOneTraceAcrossFourProcesses sends a traced REST request and finds
// every part of the turn in its trace.
func TestATurnIsOneTraceAcrossFourProcesses(t *testing.T) {
	t.Parallel()
	r, address := receive(t)
	s := start(t, options{four: true, env: []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + address, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_BSP_SCHEDULE_DELAY=100",
	}})
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	session := s.session(t, "coder")
	frames := s.stream(t, http.MethodPost, "/v1/"+session+"/turns:stream", `{"text":"work"}`, nil, "traceparent", "00-"+trace+"-00f067aa0ba902b7-01")
	last(t, frames, "COMPLETE")
	turn := last(t, frames, "COMPLETE").field("turn")
	judged := s.call(t, http.MethodPost, "/v1/"+session+"/feedback", `{"turn":"`+turn+`","value":"FEEDBACK_VALUE_NEGATIVE","comment":"add.sh is wrong"}`)
	if judged.code != http.StatusOK || !strings.Contains(judged.body, `"traceId":"`+trace+`"`) {
		t.Errorf("the judgement is %d %s", judged.code, judged.body)
	}
	s.stop(t) // flushes
	spans := r.of(trace, 4)
	checkTree(t, spans)
	for _, want := range []struct{ service, name, ancestor string }{
		{"gateway", "POST /v1/sessions/{session}/turns:stream", ""},
		{"session", "fairlead.session.v1.SessionService/RunTurn", "POST /v1/sessions/"},
		{"session", "turn.run", "fairlead.session.v1.SessionService/RunTurn"},
		{"session", "turn.step", "turn.run"},
		{"session", "chat e2e", "turn.step"},
		{"session", "tool_call Bash", "turn.run"},
		{"tools", "execute_tool Bash", "tool_call Bash"},
		{"sandbox", "exec", "execute_tool Bash"},
		{"session", "turn.feedback", "fairlead.session.v1.SessionService/RunTurn"},
	} {
		found := false
		for _, s := range spans {
			if s.service == want.service && strings.HasPrefix(s.Name, want.name) && hasAncestor(spans, s, want.ancestor) {
				found = true
			}
		}
		if !found {
			t.Errorf("no span %q of %s below %q", want.name, want.service, want.ancestor)
		}
	}
	if t.Failed() {
		t.Log(tree(spans))
	}
	for _, s := range spans {
		if strings.HasPrefix(s.Name, "chat ") && s.attribute("gen_ai.operation.name") == "" {
			t.Errorf("%s has no GenAI attributes", s.Name)
		}
		if s.Name == "turn.feedback" && (len(s.Events) != 1 || s.Events[0].Name != "gen_ai.evaluation.result" || s.Events[0].Attributes[1].Value.GetStringValue() != "negative") {
			t.Errorf("the judgement is told as %v", s.Events)
		}
		for _, a := range s.Attributes {
			if strings.Contains(a.Value.GetStringValue(), "add.sh") {
				t.Errorf("%s of %s holds content in %s", s.Name, s.service, a.Key)
			}
		}
	}
}

func (r *receiver) of(trace string, services int) map[string]span {
	deadline := time.Now().Add(10 * time.Second)
	for {
		r.mu.Lock()
		found := map[string]span{}
		for id, s := range r.spans {
			if hex.EncodeToString(s.TraceId) == trace {
				found[id] = s
			}
		}
		r.mu.Unlock()
		seen := map[string]bool{}
		for _, s := range found {
			seen[s.service] = true
		}
		if len(seen) == services || time.Now().After(deadline) {
			return found
		}
		pause(context.Background())
	}
}

// checkTree checks that every span but those of the client has its parent.
func checkTree(t *testing.T, spans map[string]span) {
	t.Helper()
	roots := 0
	for _, s := range spans {
		parent := hex.EncodeToString(s.ParentSpanId)
		if parent == "00f067aa0ba902b7" {
			roots++
		} else if _, ok := spans[parent]; !ok {
			t.Errorf("the parent of %s of %s is missing", s.Name, s.service)
		}
	}
	if roots != 1 {
		t.Errorf("%d spans are children of the client's, want 1", roots)
	}
}

func hasAncestor(spans map[string]span, s span, name string) bool {
	if name == "" {
		return true
	}
	for {
		parent, ok := spans[hex.EncodeToString(s.ParentSpanId)]
		if !ok {
			return false
		}
		if strings.HasPrefix(parent.Name, name) {
			return true
		}
		s = parent
	}
}

func tree(spans map[string]span) string {
	var b strings.Builder
	for _, s := range spans {
		parent := spans[hex.EncodeToString(s.ParentSpanId)]
		fmt.Fprintf(&b, "%s %q below %s %q\n", s.service, s.Name, parent.service, parent.GetName())
	}
	return b.String()
}
