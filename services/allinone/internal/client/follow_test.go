package client_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/client"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/rpc/rpctest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server plays one script per request: events by their numbers, then an error.
type server struct {
	sessionv1.UnimplementedSessionServiceServer

	scripts [][]any // an int is an event, -1 the turn's end, an error ends the stream

	mu       sync.Mutex
	requests []*sessionv1.RunTurnRequest
}

func (s *server) RunTurn(r *sessionv1.RunTurnRequest, stream grpc.ServerStreamingServer[sessionv1.RunTurnResponse]) error {
	s.mu.Lock()
	s.requests = append(s.requests, r)
	n := len(s.requests)
	s.mu.Unlock()
	if n > len(s.scripts) {
		return status.Error(codes.Internal, "more requests than expected")
	}
	for _, step := range s.scripts[n-1] {
		switch x := step.(type) {
		case error:
			return x
		case int:
			e := &sessionv1.Event{FirstSeq: int64(x), Seq: int64(x), Body: &sessionv1.Event_TextDelta{TextDelta: &sessionv1.TextDelta{Text: "x"}}}
			if x < 0 {
				e = &sessionv1.Event{FirstSeq: 99, Seq: 99, Body: &sessionv1.Event_TurnFinished{TurnFinished: &sessionv1.TurnFinished{}}}
			}
			if err := stream.Send(&sessionv1.RunTurnResponse{Kind: &sessionv1.RunTurnResponse_Event{Event: e}}); err != nil {
				return err
			}
		case *sessionv1.Progress:
			if err := stream.Send(&sessionv1.RunTurnResponse{Kind: &sessionv1.RunTurnResponse_Progress{Progress: x}}); err != nil {
				return err
			}
		case string: // quiet until the client goes
			<-stream.Context().Done()
			return stream.Context().Err()
		}
	}
	return nil
}

// dial serves s and gives a client of it.
func dial(t *testing.T, s *server) sessionv1.SessionServiceClient {
	t.Helper()
	conn := rpctest.Dial(t, func(r grpc.ServiceRegistrar) { sessionv1.RegisterSessionServiceServer(r, s) })
	return sessionv1.NewSessionServiceClient(conn)
}

// patient has attempts without any pause worth the name.
func patient(attempts int) client.Options {
	return client.Options{Backoff: client.Backoff{First: time.Microsecond, Most: time.Microsecond, Attempts: attempts}}
}

func request() *sessionv1.RunTurnRequest {
	return &sessionv1.RunTurnRequest{Parent: "sessions/s", Text: "go"}
}

// gone is what a client sees of a server that is stopping.
func gone() error {
	return apierr.New(codes.Unavailable, "session.fairlead.dev", "STORE_UNAVAILABLE", "The server stops.")
}

func TestRunTurnComesBackWithoutRunningTwice(t *testing.T) {
	for name, c := range map[string]struct {
		scripts [][]any
		events  []int64
		after   []int64
	}{
		"an undisturbed turn is one request":            {[][]any{{1, 2, -1}}, []int64{1, 2, 99}, []int64{0}},
		"a lost connection resumes after the last":      {[][]any{{1, 2, gone()}, {3, -1}}, []int64{1, 2, 3, 99}, []int64{0, 2}},
		"a stream that ends early resumes too":          {[][]any{{1}, {2, -1}}, []int64{1, 2, 99}, []int64{0, 1}},
		"progress counts as seen":                       {[][]any{{1, &sessionv1.Progress{Seq: 7}, gone()}, {8, -1}}, []int64{1, 8, 99}, []int64{0, 7}},
		"a server that is not there yet is tried again": {[][]any{{gone()}, {gone()}, {1, -1}}, []int64{1, 99}, []int64{0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{scripts: c.scripts}
			f := client.RunTurn(t.Context(), dial(t, s), request(), patient(3))
			defer f.Close()
			var events, after []int64
			for e := range f.Events() {
				events = append(events, e.GetSeq())
			}
			if err := f.Err(); err != nil {
				t.Fatal(err)
			}
			for _, r := range s.requests {
				after = append(after, r.GetAfterSeq())
				if r.GetRequestId() == "" || r.GetRequestId() != s.requests[0].GetRequestId() {
					t.Errorf("request ids differ: %q and %q", s.requests[0].GetRequestId(), r.GetRequestId())
				}
			}
			if diff := cmp.Diff(c.events, events); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.after, after); diff != "" {
				t.Errorf("after_seq (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRunTurnGivesUp(t *testing.T) {
	refused := apierr.New(codes.NotFound, "session.fairlead.dev", "SESSION_NOT_FOUND", "There is no session s.")
	for name, c := range map[string]struct {
		scripts  [][]any
		requests int
		code     codes.Code
	}{
		"at once when the request is refused":      {[][]any{{refused}}, 1, codes.NotFound},
		"after the attempts without any progress":  {[][]any{{gone()}, {gone()}, {gone()}}, 3, codes.Unavailable},
		"progress gives new attempts, but no more": {[][]any{{gone()}, {1, gone()}, {gone()}, {gone()}}, 4, codes.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{scripts: c.scripts}
			f := client.RunTurn(t.Context(), dial(t, s), request(), patient(2))
			defer f.Close()
			for range f.Events() { //nolint:revive // until the end
			}
			if got := apierr.Code(f.Err()); got != c.code || len(s.requests) != c.requests {
				t.Errorf("got %v after %d requests, want %v after %d", f.Err(), len(s.requests), c.code, c.requests)
			}
		})
	}
}

func TestCloseEndsAQuietStream(t *testing.T) {
	s := &server{scripts: [][]any{{1, "quiet"}}}
	f := client.RunTurn(t.Context(), dial(t, s), request(), patient(3))
	<-f.Events()
	f.Close()
	f.Close() // and may be repeated
	if !errors.Is(f.Err(), context.Canceled) {
		t.Errorf("it ended with %v", f.Err())
	}
}

func TestExplainSaysWhatAndWhere(t *testing.T) {
	err := apierr.New(codes.InvalidArgument, "session.fairlead.dev", "INVALID", "The request \x1b[31mis wrong.",
		apierr.Field("limits.max_steps", "must be at most 10000"))
	s := &server{scripts: [][]any{{err}}}
	f := client.RunTurn(t.Context(), dial(t, s), request(), patient(1))
	defer f.Close()
	for range f.Events() { //nolint:revive // until the end
	}
	got := client.Explained(f.Err()).Error()
	for _, want := range []string{"The request is wrong. (INVALID)", "\n  limits.max_steps: must be at most 10000"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
	if strings.ContainsAny(got, "\x1b") {
		t.Errorf("an escape sequence is left: %q", got)
	}
	if client.Explained(nil) != nil {
		t.Error("no error became one")
	}
}
