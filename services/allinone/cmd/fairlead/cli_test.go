package main

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/program"
	"github.com/fairlead/fairlead/services/internal/kit/prove"
)

// TestMain gives commands that are servers a script for their model, whatever the machine says.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"FAIRLEAD_SERVER": "", "FAIRLEAD_DATABASE_URL": "", "FAIRLEAD_MODEL": "scripted:default"} {
		_ = os.Setenv(name, value)
	}
	prove.SideBySide(8) // they wait for turns
	goleak.VerifyTestMain(m)
}

// fakeSessions is a session service with one session, whose turns go as the
// test says.
type fakeSessions struct {
	sessionv1.UnimplementedSessionServiceServer

	end   sessionv1.TurnState // how turns end
	cuts  int                 // how many streams break before their end
	quiet chan struct{}       // if not nil, turns wait here until they are interrupted

	mu         sync.Mutex
	turns      []*sessionv1.RunTurnRequest
	streams    []*sessionv1.StreamEventsRequest
	played     int
	created    []*sessionv1.CreateSessionRequest
	interrupts []*sessionv1.InterruptSessionRequest
}

func (f *fakeSessions) CreateSession(_ context.Context, r *sessionv1.CreateSessionRequest) (*sessionv1.CreateSessionResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.created = append(f.created, r)
	made := &sessionv1.Session{Name: "sessions/new"}
	if r.GetSession().GetFirstMessage() != nil {
		made.FirstTurn = "sessions/new/turns/t1"
	}
	return &sessionv1.CreateSessionResponse{Session: made}, nil
}

func (f *fakeSessions) GetSession(_ context.Context, r *sessionv1.GetSessionRequest) (*sessionv1.GetSessionResponse, error) {
	if r.GetName() != "sessions/one" {
		return nil, apierr.Of(codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_SESSION_NOT_FOUND, "There is no session "+r.GetName()+".")
	}
	return &sessionv1.GetSessionResponse{Session: &sessionv1.Session{Name: r.GetName(), Agent: "agents/coder", Title: "a \x1b[31mtitle"}}, nil
}

func (f *fakeSessions) ListTurns(context.Context, *sessionv1.ListTurnsRequest) (*sessionv1.ListTurnsResponse, error) {
	return &sessionv1.ListTurnsResponse{Turns: []*sessionv1.Turn{{Name: "sessions/one/turns/t1", State: sessionv1.TurnState_TURN_STATE_COMPLETE, FinalText: "All done."}}}, nil
}

// ListSessions has five sessions on pages of at most two.
func (f *fakeSessions) ListSessions(_ context.Context, r *sessionv1.ListSessionsRequest) (*sessionv1.ListSessionsResponse, error) {
	all := []string{"s1", "s2", "s3", "s4", "s5"}
	begin, _ := strconv.Atoi(r.GetPageToken()) // 0 without a token
	end := min(begin+min(2, int(r.GetPageSize())), len(all))
	resp := &sessionv1.ListSessionsResponse{}
	for _, name := range all[begin:end] {
		resp.Sessions = append(resp.Sessions, &sessionv1.Session{Name: "sessions/" + name, Agent: "agents/coder"})
	}
	if end < len(all) {
		resp.NextPageToken = strconv.Itoa(end)
	}
	return resp, nil
}

func (f *fakeSessions) ListEvents(_ context.Context, r *sessionv1.ListEventsRequest) (*sessionv1.ListEventsResponse, error) {
	resp := &sessionv1.ListEventsResponse{}
	for _, e := range f.script() {
		if e.GetSeq() > r.GetAfterSeq() && len(resp.GetEvents()) < int(r.GetPageSize()) {
			resp.Events = append(resp.Events, e)
		}
	}
	return resp, nil
}

// script is a turn's events.
func (f *fakeSessions) script() []*sessionv1.Event {
	all := []*sessionv1.Event{
		{Body: &sessionv1.Event_TurnStarted{TurnStarted: &sessionv1.TurnStarted{Model: "anthropic:some"}}},
		{Body: &sessionv1.Event_TextStarted{TextStarted: &sessionv1.TextStarted{}}},
		{Body: &sessionv1.Event_TextDelta{TextDelta: &sessionv1.TextDelta{Text: "Hello \x1b[31mthere."}}},
		{Body: &sessionv1.Event_TurnFinished{TurnFinished: &sessionv1.TurnFinished{State: f.end, Steps: 1}}},
	}
	for i, e := range all {
		e.FirstSeq, e.Seq, e.Time = int64(i+1), int64(i+1), timestamppb.Now()
	}
	return all
}

func (f *fakeSessions) RunTurn(r *sessionv1.RunTurnRequest, stream grpc.ServerStreamingServer[sessionv1.RunTurnResponse]) error {
	f.mu.Lock()
	f.turns = append(f.turns, r)
	f.mu.Unlock()
	return f.play(r.GetAfterSeq(), func(e *sessionv1.Event) error {
		return stream.Send(&sessionv1.RunTurnResponse{Kind: &sessionv1.RunTurnResponse_Event{Event: e}})
	})
}

func (f *fakeSessions) StreamEvents(r *sessionv1.StreamEventsRequest, stream grpc.ServerStreamingServer[sessionv1.StreamEventsResponse]) error {
	f.mu.Lock()
	f.streams = append(f.streams, r)
	f.mu.Unlock()
	err := f.play(r.GetAfterSeq(), func(e *sessionv1.Event) error {
		if e.GetSeq() > 1 { // the first one is the session's
			e.Turn = r.GetParent() + "/turns/t1"
		}
		return stream.Send(&sessionv1.StreamEventsResponse{Kind: &sessionv1.StreamEventsResponse_Event{Event: e}})
	})
	if err == nil {
		<-stream.Context().Done()
	}
	return err
}

// play sends a turn's events behind a number.
func (f *fakeSessions) play(after int64, send func(*sessionv1.Event) error) error {
	f.mu.Lock()
	f.played++
	cut := f.played <= f.cuts
	f.mu.Unlock()
	for _, e := range f.script() {
		if e.GetSeq() <= after {
			continue
		}
		if end := e.GetTurnFinished(); end != nil {
			if cut {
				return apierr.Of(codes.Unavailable, sessionv1.ErrorReason_ERROR_REASON_STORE_UNAVAILABLE, "The server stops.")
			}
			if f.quiet != nil {
				<-f.quiet
			}
		}
		if err := send(e); err != nil {
			return err
		}
	}
	return nil
}

func (f *fakeSessions) InterruptSession(_ context.Context, r *sessionv1.InterruptSessionRequest) (*sessionv1.InterruptSessionResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.interrupts = append(f.interrupts, r); len(f.interrupts) == 1 {
		close(f.quiet)
	}
	return &sessionv1.InterruptSessionResponse{}, nil
}

// fakeAgents has an agent whose prompt has a parameter.
type fakeAgents struct {
	sessionv1.UnimplementedAgentServiceServer
}

func (fakeAgents) ListAgents(context.Context, *sessionv1.ListAgentsRequest) (*sessionv1.ListAgentsResponse, error) {
	return &sessionv1.ListAgentsResponse{Agents: []*sessionv1.Agent{{Name: "agents/coder", Default: true}, {Name: "agents/host", Parameters: []string{"name"}}}}, nil
}

// serveFake serves f on loopback and gives its address.
func serveFake(t *testing.T, f *fakeSessions) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	sessionv1.RegisterSessionServiceServer(server, f)
	sessionv1.RegisterAgentServiceServer(server, fakeAgents{})
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// fairlead runs a command line as main would.
func fairlead(ctx context.Context, in string, env map[string]string, args ...string) (out, errs string, code int) {
	var stdout, stderr buffer
	err := run(ctx, args, stdio{in: strings.NewReader(in), out: &stdout, err: &stderr, env: func(name string) string { return env[name] }})
	var exit *program.ExitError
	var wrong *config.Error
	switch {
	case err == nil, errors.Is(err, config.ErrHelp):
		return stdout.String(), stderr.String(), 0
	case errors.As(err, &exit):
		code = exit.Code
	case errors.As(err, &wrong):
		code = 2
	default:
		code = 1
	}
	if exit == nil || exit.Err != nil {
		_, _ = stderr.Write([]byte(err.Error())) // a buffer never fails
	}
	return stdout.String(), stderr.String(), code
}

func TestRunShowsATurnAndExitsByItsState(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  sessionv1.TurnState
		code int
	}{
		"complete":    {sessionv1.TurnState_TURN_STATE_COMPLETE, 0},
		"failed":      {sessionv1.TurnState_TURN_STATE_FAILED, 1},
		"partial":     {sessionv1.TurnState_TURN_STATE_PARTIAL, 3},
		"interrupted": {sessionv1.TurnState_TURN_STATE_INTERRUPTED, 4},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeSessions{end: c.end}
			out, errs, code := fairlead(t.Context(), "", nil, "run", "--server", serveFake(t, f), "--max-steps", "7", "--timeout", "90s", "--agent", "assistant", "hi")
			if code != c.code || !strings.Contains(out, "Hello there.") || !strings.Contains(strings.ToLower(out), name) || strings.Contains(out+errs, "\x1b") {
				t.Errorf("exit code %d, want %d: %q %q", code, c.code, out, errs)
			}
			r := f.created[0]
			if r.GetSession().GetFirstMessage().GetText() != "hi" || r.GetLimits().GetMaxSteps() != 7 || r.GetLimits().GetMaxWallTime().GetSeconds() != 90 || len(f.turns) > 0 {
				t.Errorf("asked for %v and %v", r, f.turns)
			}
			if f.created[0].GetSession().GetAgent() != "assistant" || f.created[0].GetRequestId() == "" {
				t.Errorf("created %v", f.created[0])
			}
		})
	}
}

func TestRunComesBackAfterALostConnection(t *testing.T) {
	t.Parallel()
	f := &fakeSessions{end: sessionv1.TurnState_TURN_STATE_COMPLETE, cuts: 1}
	out, errs, code := fairlead(t.Context(), "", nil, "run", "--session", "one", "--server", serveFake(t, f), "hi")
	if code != 0 || strings.Count(out, "Hello there.") != 1 || !strings.Contains(errs, "trying again") {
		t.Errorf("exit code %d: %q %q", code, out, errs)
	}
	if len(f.turns) != 2 || f.turns[1].GetAfterSeq() != 3 || f.turns[0].GetRequestId() == "" || f.turns[0].GetRequestId() != f.turns[1].GetRequestId() {
		t.Errorf("asked for %v", f.turns)
	}
}

func TestRunComesBackToTheTurnOfItsNewSession(t *testing.T) {
	t.Parallel()
	f := &fakeSessions{end: sessionv1.TurnState_TURN_STATE_COMPLETE, cuts: 1}
	out, errs, code := fairlead(t.Context(), "", nil, "run", "--server", serveFake(t, f), "hi")
	if code != 0 || strings.Count(out, "Hello there.") != 1 || !strings.Contains(errs, "trying again") {
		t.Errorf("exit code %d: %q %q", code, out, errs)
	}
	if len(f.created) != 1 || len(f.turns) != 0 || len(f.streams) != 2 || f.streams[1].GetAfterSeq() != 3 {
		t.Errorf("asked for %v, %v and %v", f.created, f.turns, f.streams)
	}
}

func TestRunTakesThePromptFromAPipe(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"without a prompt": {}, "with a dash": {"-"}} {
		t.Run(name, func(t *testing.T) {
			f := &fakeSessions{end: sessionv1.TurnState_TURN_STATE_COMPLETE}
			_, errs, code := fairlead(t.Context(), "from a pipe\n", nil, append([]string{"run", "--session", "one", "--server", serveFake(t, f)}, args...)...)
			if code != 0 || len(f.turns) != 1 || f.turns[0].GetText() != "from a pipe" || f.turns[0].GetParent() != "sessions/one" || len(f.created) != 0 {
				t.Errorf("exit code %d, asked for %v: %s", code, f.turns, errs)
			}
		})
	}
}

func TestRunInAKnownSession(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		want *sessionv1.RunTurnRequest
	}{
		"waits in the queue unless told otherwise": {[]string{"hi"}, &sessionv1.RunTurnRequest{Text: "hi", OnActive: sessionv1.OnActive_ON_ACTIVE_QUEUE}},
		"may steer the active turn":                {[]string{"--on-active=steer", "hi"}, &sessionv1.RunTurnRequest{Text: "hi", OnActive: sessionv1.OnActive_ON_ACTIVE_STEER}},
		"may undo it":                              {[]string{"--on-active=rollback", "hi"}, &sessionv1.RunTurnRequest{Text: "hi", OnActive: sessionv1.OnActive_ON_ACTIVE_ROLLBACK}},
		"may change options": {
			[]string{"--model=a:b", "--thinking-tokens=0", "--context=c", "--param=x=y=z", "hi"},
			&sessionv1.RunTurnRequest{Text: "hi", OnActive: sessionv1.OnActive_ON_ACTIVE_QUEUE, Options: &sessionv1.TurnOptions{
				Model: "a:b", ThinkingTokens: new(int64), Context: "c", Parameters: map[string]string{"x": "y=z"},
			}},
		},
		"resumes without a prompt": {[]string{"--resume"}, &sessionv1.RunTurnRequest{Resume: true, OnActive: sessionv1.OnActive_ON_ACTIVE_QUEUE}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeSessions{end: sessionv1.TurnState_TURN_STATE_COMPLETE}
			_, errs, code := fairlead(t.Context(), "not read\n", nil, append([]string{"run", "--session", "one", "--server", serveFake(t, f)}, c.args...)...)
			if code != 0 || len(f.turns) != 1 {
				t.Fatalf("exit code %d, asked for %v: %s", code, f.turns, errs)
			}
			c.want.Parent, c.want.Limits, c.want.RequestId = "sessions/one", &sessionv1.TurnLimits{}, f.turns[0].GetRequestId()
			if diff := cmp.Diff(c.want, f.turns[0], protocmp.Transform()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRunWritesOneJSONEventPerLine(t *testing.T) {
	t.Parallel()
	f := &fakeSessions{end: sessionv1.TurnState_TURN_STATE_COMPLETE}
	out, _, code := fairlead(t.Context(), "", nil, "run", "--json", "--server", serveFake(t, f), "hi")
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if code != 0 || len(lines) != len(f.script())-1 { // the session's own event is none of the turn
		t.Fatalf("exit code %d, %d lines: %s", code, len(lines), out)
	}
	for _, line := range lines {
		var e struct{ Seq string }
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Seq == "" {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func TestASignalStopsTheTurnAndWaitsForItsEnd(t *testing.T) {
	t.Parallel()
	f := &fakeSessions{end: sessionv1.TurnState_TURN_STATE_INTERRUPTED, quiet: make(chan struct{})}
	ctx, signal := context.WithCancel(t.Context())
	signal()
	out, _, code := fairlead(ctx, "", nil, "run", "--server", serveFake(t, f), "hi")
	if code != 4 || len(f.interrupts) == 0 || f.interrupts[0].GetName() != "sessions/new" || !strings.Contains(out, "INTERRUPTED") {
		t.Errorf("exit code %d, %d interrupts: %s", code, len(f.interrupts), out)
	}
}

func TestWrongUsageIsExitCode2(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"an unknown command":           {"dance"},
		"an unknown flag":              {"run", "--dance", "hi"},
		"an unknown flag of serve":     {"serve", "--dance"},
		"agent and session":            {"run", "--agent", "coder", "--session", "one", "hi"},
		"negative steps":               {"run", "--max-steps=-1", "hi"},
		"an address that is none":      {"run", "--server", "http://127.0.0.1:9090", "hi"},
		"an empty prompt in a pipe":    {"run"},
		"a negative sequence number":   {"sessions", "events", "--after-seq=-1", "one"},
		"a list of nothing":            {"sessions", "list", "--limit", "0"},
		"deliveries of nothing":        {"webhooks", "deliveries", "w1", "--limit=0"},
		"a schedule without a message": {"schedules", "create", "one", "@daily"},
		"an unknown way to arrive":     {"schedules", "create", "one", "@daily", "hi", "--on-active=shout"},
		"negative time of a schedule":  {"schedules", "create", "one", "@daily", "hi", "--timeout=-1s"},
		"resuming no session":          {"run", "--resume"},
		"resuming with a prompt":       {"run", "--resume", "--session", "one", "hi"},
		"agent and session for a chat": {"chat", "--agent", "coder", "--session", "one"},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, code := fairlead(t.Context(), "", nil, args...)
			if code != 2 || errs == "" {
				t.Errorf("exit code %d: %s %s", code, out, errs)
			}
		})
	}
}

func TestAServerThatIsNotThereIsSaidSo(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	_, errs, code := fairlead(t.Context(), "", nil, "sessions", "show", "--server", address, "one")
	if code != 1 || !strings.Contains(errs, address) || !strings.Contains(errs, "fairlead serve") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

func TestSessionsAreListedOverPages(t *testing.T) {
	t.Parallel()
	address := serveFake(t, &fakeSessions{})
	for name, c := range map[string]struct {
		limit string
		want  int
	}{"all": {"50", 5}, "some of the second page": {"3", 3}} {
		t.Run(name, func(t *testing.T) {
			out, errs, code := fairlead(t.Context(), "", nil, "sessions", "list", "--json", "--limit", c.limit, "--server", address)
			if n := strings.Count(out, "\n"); code != 0 || n != c.want {
				t.Errorf("exit code %d, %d sessions, want %d: %s %s", code, n, c.want, out, errs)
			}
		})
	}
	out, _, _ := fairlead(t.Context(), "", nil, "sessions", "list", "--server", address)
	if lines := strings.Split(out, "\n"); !strings.HasPrefix(lines[0], "SESSION") || !strings.HasPrefix(lines[5], "s5") {
		t.Errorf("the table is:\n%s", out)
	}
}

func TestSessionsShowAndEvents(t *testing.T) {
	t.Parallel()
	address := serveFake(t, &fakeSessions{end: sessionv1.TurnState_TURN_STATE_COMPLETE})
	for name, c := range map[string]struct {
		args []string
		want []string
		code int
	}{
		"show":                {[]string{"show", "one"}, []string{"coder", "a title", "COMPLETE", "All done."}, 0},
		"show by full name":   {[]string{"show", "sessions/one"}, []string{"coder"}, 0},
		"show what is not":    {[]string{"show", "two"}, []string{"There is no session sessions/two.", "SESSION_NOT_FOUND"}, 1},
		"events":              {[]string{"events", "one"}, []string{"turn.started", "text.delta", "turn.finished"}, 0},
		"events after one":    {[]string{"events", "--after-seq", "3", "one"}, []string{"turn.finished"}, 0},
		"events as JSON":      {[]string{"events", "--json", "one"}, []string{`"turnStarted"`, `"turnFinished"`}, 0},
		"only so many events": {[]string{"events", "--limit", "1", "one"}, []string{"turn.started"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, code := fairlead(t.Context(), "", nil, append([]string{"sessions"}, append(c.args, "--server", address)...)...)
			if code != c.code || strings.Contains(out+errs, "\x1b") {
				t.Errorf("exit code %d: %q %q", code, out, errs)
			}
			rest := out + errs
			for _, want := range c.want {
				_, after, found := strings.Cut(rest, want)
				if !found {
					t.Errorf("%q is missing in %s%s", want, out, errs)
				}
				rest = after
			}
		})
	}
}

func TestChatRunsATurnForEachLine(t *testing.T) {
	t.Parallel()
	f := &fakeSessions{end: sessionv1.TurnState_TURN_STATE_COMPLETE}
	out, errs, code := fairlead(t.Context(), "first\n\n/help\n/dance\nsecond \\\nline\n/quit\nnever\n", nil, "chat", "--server", serveFake(t, f))
	if code != 0 || strings.Count(out, "Hello there.") != 2 || !strings.Contains(errs, "/quit") || !strings.Contains(errs, "no command /dance") {
		t.Errorf("exit code %d: %s %s", code, out, errs)
	}
	if len(f.turns) != 2 || f.turns[0].GetText() != "first" || f.turns[1].GetText() != "second \nline" || f.turns[0].GetRequestId() == f.turns[1].GetRequestId() {
		t.Errorf("asked for %v", f.turns)
	}
}

func TestChatTakesTheOptionsOfItsTurns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args    []string
		session *sessionv1.TurnOptions // of the new session
		turn    *sessionv1.TurnOptions
		code    int
		errs    string
	}{
		"a new session has them":         {[]string{"--agent", "host", "--param", "name=a=b", "--model", "a:b"}, &sessionv1.TurnOptions{Model: "a:b", Parameters: map[string]string{"name": "a=b"}}, nil, 0, ""},
		"a known session's turns do":     {[]string{"--session", "one", "--param", "name=x"}, nil, &sessionv1.TurnOptions{Parameters: map[string]string{"name": "x"}}, 0, ""},
		"a value is missing":             {[]string{"--agent", "agents/host"}, nil, nil, 2, "--param name=VALUE"},
		"another parameter has one":      {[]string{"--agent", "host", "--param", "city=x"}, nil, nil, 2, "--param name=VALUE"},
		"the default agent has none":     {nil, nil, nil, 0, ""},
		"an empty value is a value, too": {[]string{"--agent", "host", "--param", "name="}, &sessionv1.TurnOptions{Parameters: map[string]string{"name": ""}}, nil, 0, ""},
	} {
		f := &fakeSessions{end: sessionv1.TurnState_TURN_STATE_COMPLETE}
		_, errs, code := fairlead(t.Context(), "hi\n", nil, append([]string{"chat", "--server", serveFake(t, f)}, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.errs) {
			t.Errorf("%s: exit code %d: %s", name, code, errs)
			continue
		}
		if c.code != 0 {
			if len(f.created)+len(f.turns) > 0 {
				t.Errorf("%s: made %v", name, f.created)
			}
			continue
		}
		if len(f.created) > 0 {
			if diff := cmp.Diff(c.session, f.created[0].GetSession().GetTurnOptions(), protocmp.Transform()); diff != "" {
				t.Errorf("%s: the session: %s", name, diff)
			}
		}
		if diff := cmp.Diff(c.turn, f.turns[0].GetOptions(), protocmp.Transform()); diff != "" {
			t.Errorf("%s: the turn: %s", name, diff)
		}
	}
}
