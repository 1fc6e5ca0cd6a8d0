package e2e

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
)

func TestBadRESTInputIsRefusedPreciselyAndChangesNothing(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, o options) {
		s := start(t, o)
		session := s.session(t, "coder")
		before := s.call(t, http.MethodGet, "/v1/"+session, "").body
		for _, c := range []struct {
			name, method, path, body string
			code                     int
			says                     string
			header                   []string
		}{
			{"malformed JSON", "POST", "/v1/" + session + "/turns", `{"text":`, 400, "", nil},
			{"an unknown field", "POST", "/v1/" + session + "/turns", `{"text":"x","txt":1}`, 400, "txt", nil},
			{"a wrong type", "POST", "/v1/" + session + "/turns", `{"text":5}`, 400, "text", nil},
			{"no text", "POST", "/v1/" + session + "/turns", `{}`, 400, "text or content is required", nil},
			{"nothing but white space", "POST", "/v1/" + session + "/turns", `{"text":" \n\t"}`, 400, "text or content is required", nil},
			{"no text to stream", "POST", "/v1/" + session + "/turns:stream", `{}`, 400, "text or content is required", nil},
			{"an oversized body", "POST", "/v1/" + session + "/turns", `{"text":"` + strings.Repeat("a", 20<<20) + `"}`, 413, "", nil},
			{"an oversized text", "POST", "/v1/" + session + "/turns", `{"text":"` + strings.Repeat("a", 2<<20) + `"}`, 400, "text", nil},
			{"an unknown agent", "POST", "/v1/sessions", `{"agent":"nobody"}`, 404, "AGENT_NOT_FOUND", nil},
			{"a malformed agent", "POST", "/v1/sessions", `{"agent":"No Body"}`, 400, "agent", nil},
			{"an unknown session", "GET", "/v1/sessions/none", "", 404, "SESSION_NOT_FOUND", nil},
			{"a turn in an unknown session", "POST", "/v1/sessions/none/turns", `{"text":"x"}`, 404, "SESSION_NOT_FOUND", nil},
			{"events of an unknown session", "GET", "/v1/sessions/none/events", "", 404, "SESSION_NOT_FOUND", []string{"Accept", "text/event-stream"}},
			{"a malformed session", "GET", "/v1/sessions/UPPER", "", 400, "name", nil},
			{"an unknown turn", "GET", "/v1/" + session + "/turns/none", "", 404, "TURN_NOT_FOUND", nil},
			{"a number that is none", "GET", "/v1/" + session + "/events?after_seq=x", "", 400, "after_seq", nil},
			{"a negative number", "GET", "/v1/" + session + "/events?after_seq=-1", "", 400, "after_seq", nil},
			{"a number beyond the log", "GET", "/v1/" + session + "/events?after_seq=999999", "", 400, "SEQ_OUT_OF_RANGE", []string{"Accept", "text/event-stream"}},
			{"a malformed Last-Event-ID", "GET", "/v1/" + session + "/events", "", 400, "Last-Event-ID", []string{"Accept", "text/event-stream", "Last-Event-ID", "abc"}},
			{"a page token of nobody", "GET", "/v1/sessions?page_token=abc", "", 400, "page_token", nil},
			{"a negative page size", "GET", "/v1/sessions?page_size=-1", "", 400, "page_size", nil},
			{"an unknown parameter", "GET", "/v1/sessions?nonsense=1", "", 400, "nonsense", nil},
			{"an approval of nothing", "POST", "/v1/" + session + "/approvals:resolve", `{"callId":"x","digest":"y"}`, 404, "CALL_NOT_FOUND", nil},
			{"a result of nothing", "POST", "/v1/" + session + "/toolResults", `{"callId":"x"}`, 404, "CALL_NOT_FOUND", nil},
			{"a limit above the ceiling", "POST", "/v1/" + session + "/turns", `{"text":"x","limits":{"maxSteps":9999}}`, 400, "LIMIT_ABOVE_CEILING", nil},
			{"a key with spaces", "POST", "/v1/" + session + "/turns", `{"text":"x"}`, 400, "", []string{"Idempotency-Key", "a b"}},
			{"an unknown path", "GET", "/v1/nothing", "", 404, "", nil},
			{"a wrong method", "PUT", "/v1/sessions", `{}`, 405, "", nil},
		} {
			r := s.call(t, c.method, c.path, c.body, c.header...)
			if r.code != c.code || !strings.Contains(r.body, c.says) {
				t.Errorf("%s: %d %s, want %d with %q", c.name, r.code, tail(r.body, 500), c.code, c.says)
			}
			if !strings.HasPrefix(r.header.Get("Content-Type"), "application/json") {
				t.Errorf("%s: the error is %s", c.name, r.header.Get("Content-Type"))
			}
		}
		if after := s.call(t, http.MethodGet, "/v1/"+session, "").body; after != before {
			t.Errorf("the session was\n%s\nand is\n%s", before, after)
		}
		last(t, s.turn(t, session, "still there?"), "COMPLETE")
	})
}

func TestInternalRPCsAreNotOnThePublicListener(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, o options) {
		s := start(t, o)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		for _, address := range []string{s.grpc, s.toolsGRPC} {
			conn := s.dial(t, address)
			for name, call := range map[string]func() error{
				"CallTool": func() error {
					stream, err := toolsv1.NewCallServiceClient(conn).CallTool(ctx, &toolsv1.CallToolRequest{})
					return received(stream, err)
				},
				"Exec": func() error {
					stream, err := sandboxv1.NewExecServiceClient(conn).Exec(ctx)
					return received(stream, err)
				},
				"StatFile": func() error {
					_, err := sandboxv1.NewFileServiceClient(conn).StatFile(ctx, &sandboxv1.StatFileRequest{})
					return err
				},
				"DeleteWorkspace": func() error {
					_, err := sandboxv1.NewWorkspaceServiceClient(conn).DeleteWorkspace(ctx, &sandboxv1.DeleteWorkspaceRequest{})
					return err
				},
			} {
				if err := call(); status.Code(err) != codes.Unimplemented {
					t.Errorf("%s on %s: %v, want UNIMPLEMENTED", name, address, err)
				}
			}
			if _, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{}); err != nil {
				t.Errorf("health on %s: %v", address, err)
			}
		}
	})
}

// received is the error of a stream that ought not to exist.
func received(stream grpc.ClientStream, err error) error {
	if err != nil {
		return err
	}
	return stream.RecvMsg(&healthv1.HealthCheckResponse{})
}

func TestConverseTakesInputsAndSendsEvents(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, o options) {
		s := start(t, o)
		session := s.session(t, "asker")
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		stream, err := sessionv1.NewSessionServiceClient(s.dial(t, s.grpc)).Converse(ctx)
		if err != nil {
			t.Fatal(err)
		}
		send := func(r *sessionv1.ConverseRequest) {
			if err := stream.Send(r); err != nil {
				t.Fatal(err)
			}
		}
		send(&sessionv1.ConverseRequest{Kind: &sessionv1.ConverseRequest_Open{Open: &sessionv1.ConverseOpen{Session: session}}})
		send(&sessionv1.ConverseRequest{Kind: &sessionv1.ConverseRequest_CreateTurn{CreateTurn: &sessionv1.CreateTurnRequest{Parent: session, Text: "ask"}}})
		send(&sessionv1.ConverseRequest{Kind: &sessionv1.ConverseRequest_ResolveApproval{ResolveApproval: &sessionv1.ResolveApprovalRequest{Parent: session, CallId: "none", Digest: "none"}}})
		var accepted, rejected int
		for {
			r, err := stream.Recv()
			if err != nil {
				t.Fatalf("%d accepted, %d rejected: %v", accepted, rejected, err)
			}
			switch k := r.Kind.(type) {
			case *sessionv1.ConverseResponse_Accepted:
				accepted++
			case *sessionv1.ConverseResponse_Rejected:
				rejected++
			case *sessionv1.ConverseResponse_Event:
				if a := k.Event.GetApprovalRequested(); a != nil {
					send(&sessionv1.ConverseRequest{Kind: &sessionv1.ConverseRequest_ResolveApproval{ResolveApproval: &sessionv1.ResolveApprovalRequest{
						Parent: session, CallId: a.CallId, Digest: a.Digest, Approved: true,
					}}})
				}
				if f := k.Event.GetTurnFinished(); f != nil {
					if f.State != sessionv1.TurnState_TURN_STATE_COMPLETE || accepted != 2 || rejected != 1 {
						t.Errorf("the turn ended %v with %d accepted and %d rejected", f.State, accepted, rejected)
					}
					return
				}
			}
		}
	})
}

// TestANulInAToolsNameIsTheSameOnBothStores has the model write a NUL where a text becomes
// a column: in a tool's name, and in the description of a command that outlives its call.
func TestANulInAToolsNameIsTheSameOnBothStores(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, o options) {
		s := start(t, o)
		session := s.session(t, "coder")
		frames := s.turn(t, session, "a name with a NUL")
		last(t, frames, "COMPLETE")
		if got := results(frames); len(got) != 1 || !strings.HasPrefix(got[0], `Ba`+"\x00"+`sh ERROR There is no tool "Ba\x00sh" for this agent.`) {
			t.Errorf("the call ended %q", got)
		}
		operation := last(t, s.turn(t, session, "a description with a NUL"), "COMPLETE").field("turnFinished", "finalText")
		until(t, "the command ends", func() bool {
			return strings.Contains(s.call(t, http.MethodGet, "/v1/"+operation, "").body, "SUCCEEDED")
		})
		last(t, s.turn(t, session, "hello"), "COMPLETE")
	})
}
