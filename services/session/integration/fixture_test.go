package integration

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/rpc/rpctest"
	"github.com/fairlead/fairlead/services/internal/kit/sqlite/sqlitetest"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/model/catalog"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/postgres"
	"github.com/fairlead/fairlead/services/session/internal/store/sqlite"
)

func TestMain(m *testing.M) {
	// These tests wait more than they compute, so more of them run at a time than there are processors. Those that simulate
	// the clock run alone: each of its steps waits until all goroutines of the test do.
	most := map[bool]string{false: "8", true: "4"}[raceDetector]
	if err := flag.Set("test.parallel", most); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// fixture is the service with a real store and a scripted model; tools and
// sandbox are fakes that keep their contract.
type fixture struct {
	sessionv1.SessionServiceClient
	agents sessionv1.AgentServiceClient
	peers  *peers
	config session.Config
	conn   *grpc.ClientConn
	fleet  *fleet                                     // the sandbox's nodes; nil: peers are the one that needs no name
	store  func(context.Context) (store.Store, error) // nil: the configured one
	drain  func(context.Context)
	stop   func()
}

// sampled says that tests take few of their points: with the race detector, which makes them several times slower, and in
// `make test`.
func sampled() bool { return raceDetector || testing.Short() }

var migrated = sqlitetest.NewTemplate(sqlite.Migrations())

// start runs a service whose default model plays the scenario.
func start(t *testing.T, scenario string, change ...func(*session.Config)) *fixture {
	t.Helper()
	f := prepare(t, scenario, change...)
	f.run(t)
	t.Cleanup(func() { f.stop() })
	return f
}

// startOn is start with a store that wrap makes of the configured one, for each time that it is opened.
func startOn(t *testing.T, wrap func(store.Store) store.Store, scenario string, change ...func(*session.Config)) *fixture {
	t.Helper()
	f := prepare(t, scenario, change...)
	f.wrap(t, wrap)
	f.run(t)
	t.Cleanup(func() { f.stop() })
	return f
}

// wrap has the service work on what wrap makes of the configured store.
func (f *fixture) wrap(t *testing.T, wrap func(store.Store) store.Store) {
	f.store = func(ctx context.Context) (s store.Store, err error) {
		c, log := f.config, slog.New(slog.NewTextHandler(t.Output(), nil))
		if url := c.DatabaseURL.Reveal(); url != "" {
			s, err = postgres.Open(ctx, url, log)
		} else {
			s, err = sqlite.Open(ctx, filepath.Join(c.Data, "session.db"), log)
		}
		if err != nil {
			return nil, err
		}
		return wrap(s), nil
	}
}

// prepare is start without running it.
func prepare(t *testing.T, scenario string, change ...func(*session.Config)) *fixture {
	t.Helper()
	dir := memoryDir(t)
	file := filepath.Join(dir, "test.yaml")
	if err := os.WriteFile(file, []byte("name: test\n"+scenario), 0o600); err != nil {
		t.Fatal(err)
	}
	c := session.Defaults()
	c.Data = filepath.Join(dir, "data")
	c.Models.Model = "play:test"
	c.Models.Providers = map[string]catalog.Provider{"play": {Kind: "scripted", Scenario: file}}
	c.Agents = map[string]agent.Spec{"tester": {Prompt: "Test.", Profile: "full", Tools: []string{"AskUserQuestion", "Background", "Bash", "Block", "Broken", "Elicit", "Read", "TodoWrite", "Write", "check_operation"}}}
	c.DefaultAgent = "tester"
	c.PollInterval = 20 * time.Millisecond
	c.LeaseTTL = 5 * time.Second // a busy machine lets no lease lapse
	c.StreamProgressInterval = 100 * time.Millisecond
	for _, f := range change {
		f(&c)
	}
	if c.DatabaseURL == "" {
		migrated.Copy(t, filepath.Join(c.Data, "session.db"))
	}
	return &fixture{peers: newPeers(), config: c}
}

// another is a further replica, which does not run yet.
func (f *fixture) another() *fixture {
	return &fixture{peers: f.peers, config: f.config, store: f.store}
}

// run starts the service on the fixture's data.
func (f *fixture) run(t *testing.T) {
	t.Helper()
	peers := rpctest.Dial(t, f.peers.register)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	deps := session.Deps{Sandbox: peers, Tools: peers, Store: f.store, Log: log, Version: "test"}
	if f.fleet != nil {
		deps.Sandbox, deps.Nodes = f.fleet.dial(t)
	}
	s, err := session.New(t.Context(), f.config, deps)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	f.conn, f.drain = rpctest.Dial(t, s.RegisterPublic, s), s.Drain
	if f.fleet != nil {
		f.fleet.NodeServiceClient = sessionv1.NewNodeServiceClient(rpctest.Dial(t, s.RegisterPeer))
	}
	f.SessionServiceClient = sessionv1.NewSessionServiceClient(f.conn)
	f.agents = sessionv1.NewAgentServiceClient(f.conn)
	stopped := false
	f.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		_ = f.conn.Close()
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}

// restart stops the service and starts it again on the same data.
func (f *fixture) restart(t *testing.T) {
	t.Helper()
	f.stop()
	f.run(t)
}

func (f *fixture) session(ctx context.Context, t *testing.T) string {
	t.Helper()
	resp, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return resp.Session.Name
}

// turn runs a turn to its end and returns its events.
func (f *fixture) turn(ctx context.Context, t *testing.T, session, text string) []*sessionv1.Event {
	t.Helper()
	return f.runTurn(ctx, t, &sessionv1.RunTurnRequest{Parent: session, Text: text}, nil)
}

// runTurn runs a turn and shows each event to see, if it is not nil.
func (f *fixture) runTurn(ctx context.Context, t *testing.T, r *sessionv1.RunTurnRequest, see func(*sessionv1.Event)) []*sessionv1.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	stream, err := f.RunTurn(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	var events []*sessionv1.Event
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return events
		}
		if err != nil {
			t.Fatalf("after %s: %v", names(events), err)
		}
		if e := resp.GetEvent(); e != nil {
			events = append(events, e)
			if see != nil {
				see(e)
			}
		}
	}
}

// log reads the session's whole log and checks that its ranges tile.
func (f *fixture) log(ctx context.Context, t *testing.T, session string) []*sessionv1.Event {
	t.Helper()
	var all []*sessionv1.Event
	token := ""
	for {
		resp, err := f.ListEvents(ctx, &sessionv1.ListEventsRequest{Parent: session, PageSize: 7, PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, resp.Events...)
		if token = resp.NextPageToken; token == "" {
			break
		}
	}
	next := int64(1)
	for _, e := range all {
		if e.FirstSeq != next || e.Seq < e.FirstSeq {
			t.Fatalf("event %s covers %d-%d, want it to begin at %d", sessionv1.EventName(e), e.FirstSeq, e.Seq, next)
		}
		next = e.Seq + 1
	}
	return all
}

// messages reads the conversation, page by page.
func (f *fixture) messages(ctx context.Context, t *testing.T, session string) []*sessionv1.Message {
	t.Helper()
	var all []*sessionv1.Message
	for token := ""; ; {
		resp, err := f.ListMessages(ctx, &sessionv1.ListMessagesRequest{Parent: session, PageSize: 1000, PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, resp.Messages...)
		if token = resp.NextPageToken; token == "" {
			return all
		}
	}
}

// names are the events' names, deltas of the same kind written once.
func names(events []*sessionv1.Event) string {
	var all []string
	for _, e := range events {
		n := sessionv1.EventName(e)
		if len(all) == 0 || all[len(all)-1] != n || !strings.HasSuffix(n, "delta") {
			all = append(all, n)
		}
	}
	return strings.Join(all, " ")
}

func text(events []*sessionv1.Event) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString(e.GetTextDelta().GetText())
	}
	return b.String()
}

func finished(t *testing.T, events []*sessionv1.Event) *sessionv1.TurnFinished {
	t.Helper()
	if len(events) == 0 || events[len(events)-1].GetTurnFinished() == nil {
		t.Fatalf("the stream did not end with turn.finished: %s", names(events))
	}
	return events[len(events)-1].GetTurnFinished()
}

// shape prints a conversation: role, and what the blocks are.
func shape(ms []*sessionv1.Message) string {
	var lines []string
	for _, m := range ms {
		var parts []string
		for _, b := range m.Blocks {
			switch k := b.Kind.(type) {
			case *sessionv1.Block_Content:
				parts = append(parts, fmt.Sprintf("%q", k.Content.GetText().GetText()))
			case *sessionv1.Block_Thinking:
				parts = append(parts, "thinking")
			case *sessionv1.Block_ToolUse:
				parts = append(parts, "use "+k.ToolUse.Tool)
			case *sessionv1.Block_ToolResult:
				parts = append(parts, strings.TrimPrefix(k.ToolResult.Outcome.String(), "TOOL_OUTCOME_"))
			}
		}
		lines = append(lines, strings.ToLower(strings.TrimPrefix(m.Role.String(), "ROLE_"))+": "+strings.Join(parts, ", "))
	}
	return strings.Join(lines, "\n")
}

// order tells what the turns said that ended, in that order.
func order(log []*sessionv1.Event) []string {
	said := map[string]string{}
	var all []string
	for _, e := range log {
		if q := e.GetTurnQueued(); q != nil {
			said[e.Turn] = q.Content[0].GetText().GetText()
		}
		if e.GetTurnFinished() != nil {
			all = append(all, said[e.Turn])
		}
	}
	return all
}

// valid are the events that count, as the documented reducer has it.
func valid(log []*sessionv1.Event) []*sessionv1.Event {
	void := map[int64]bool{}
	for _, e := range log {
		for n := e.GetStepRestarted().GetVoidFirstSeq(); n != 0 && n <= e.GetStepRestarted().GetVoidLastSeq(); n++ {
			void[n] = true
		}
		if r := e.GetSessionRewound(); r != nil {
			for _, u := range log {
				void[u.Seq] = void[u.Seq] || (r.UndoneTurn == "" || u.Turn == r.UndoneTurn) && u.FirstSeq >= r.VoidFirstSeq && u.Seq <= r.VoidLastSeq
			}
		}
	}
	var kept []*sessionv1.Event
	for _, e := range log {
		if !void[e.Seq] || strings.HasPrefix(sessionv1.EventName(e), "turn.") {
			kept = append(kept, e)
		}
	}
	return kept
}

// states are the states of a session's turns.
func (f *fixture) states(ctx context.Context, t *testing.T, session string) string {
	t.Helper()
	turns, err := f.ListTurns(ctx, &sessionv1.ListTurnsRequest{Parent: session})
	if err != nil {
		t.Fatal(err)
	}
	var states []string
	for _, turn := range turns.Turns {
		states = append(states, strings.TrimPrefix(turn.State.String(), "TURN_STATE_"))
	}
	return strings.Join(states, " ")
}
