// Package turntest gives the tests of a worker's parts a session whose store is in memory.
package turntest

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/eventlog"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
	"github.com/fairlead/fairlead/services/session/internal/turn/telemetry"
)

// Store is a store of one session, in memory. It has the methods that the parts of a worker call;
// the others panic.
type Store struct {
	store.Store
	mu       sync.Mutex
	writes   []store.Write
	turns    map[string]*store.TurnRow
	Commands []store.Command
	Loaded   *store.Snapshot
	Left     *store.Salvage
	Place    store.Place
	// MCPServers are those that the session brings.
	MCPServers []*commonv1.McpServer
	Denied     *store.Denial // the answer to each reservation; nil grants it
}

// Commit keeps the writes.
func (s *Store) Commit(_ context.Context, writes []store.Write) ([]error, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range writes {
		s.writes = append(s.writes, w)
		for _, r := range w.Reserve {
			r.Answer = store.Grant{Denied: s.Denied}
			if s.Denied == nil {
				r.Answer = store.Grant{Output: r.MaxOutput, Reserved: store.Amount{WallTime: r.WallTime}}
			}
		}
		for _, t := range w.Turns {
			s.turns[t.ID] = t
		}
		s.Commands = slices.DeleteFunc(s.Commands, func(c store.Command) bool { return slices.Contains(w.Consume, c.ID) })
	}
	return make([]error, len(writes)), nil
}

// Inbox returns the commands that no write has consumed.
func (s *Store) Inbox(ctx context.Context, _ store.Lease) ([]store.Command, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.Commands), ctx.Err()
}

// Load returns Loaded.
func (s *Store) Load(context.Context, store.Lease) (*store.Snapshot, error) { return s.Loaded, nil }

// GetSession returns the session of Loaded, or an empty one.
func (s *Store) GetSession(context.Context, store.Key) (*sessionv1.Session, error) {
	if s.Loaded == nil {
		return &sessionv1.Session{}, nil
	}
	return s.Loaded.Session, nil
}

// Salvage returns what is not ended.
func (s *Store) Salvage(context.Context, store.Lease) (*store.Salvage, error) { return s.Left, nil }

// GetAgentRevision returns an agent without settings.
func (s *Store) GetAgentRevision(context.Context, string, string, string) (store.AgentRevision, error) {
	return store.AgentRevision{Spec: []byte(`{}`)}, nil
}

// ReleaseIdle releases the lease.
func (s *Store) ReleaseIdle(context.Context, store.Lease) (bool, error) { return true, nil }

// LoadTurn returns a turn that was written, or put by Fixture.Turn.
func (s *Store) LoadTurn(_ context.Context, _ store.Lease, id string) (*store.TurnRow, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.turns[id]; t != nil {
		return t, nil
	}
	return nil, store.ErrNotFound
}

// ListMessages returns nothing: the path of a test's session is loaded.
func (s *Store) ListMessages(context.Context, store.Key, string, string, int) ([]*sessionv1.Message, error) {
	return nil, nil
}

// ListCheckpoints returns nothing.
func (s *Store) ListCheckpoints(context.Context, store.Key, int64, int) ([]*sessionv1.Checkpoint, error) {
	return nil, nil
}

// ListEvents returns nothing.
func (s *Store) ListEvents(context.Context, store.Key, int64, int, int) ([]*sessionv1.Event, error) {
	return nil, nil
}

// Fenced does nothing.
func (s *Store) Fenced(context.Context, store.Lease) error { return nil }

// PlaceOf returns Place.
func (s *Store) PlaceOf(context.Context, store.Key) (store.Place, int64, error) {
	return s.Place, 3, nil
}

// Variables returns nothing.
func (s *Store) Variables(context.Context, store.Owner) ([]store.Variable, error) { return nil, nil }

// UserMCPServers returns nothing.
func (s *Store) UserMCPServers(context.Context, store.Owner) ([]store.MCPServer, error) {
	return nil, nil
}

// SessionMCPServers returns the servers of the session.
func (s *Store) SessionMCPServers(context.Context, store.Key) ([]*commonv1.McpServer, error) {
	return s.MCPServers, nil
}

// Fixture is a session with a running turn t1 of user ann, whose message is in the conversation.
type Fixture struct {
	state.Scope
	Store     *Store
	Committer *eventlog.Committer
	t         *testing.T
}

// New returns a session of an agent.
func New(t *testing.T, spec agent.Spec) *Fixture {
	t.Helper()
	st := &Store{turns: map[string]*store.TurnRow{}}
	committer := eventlog.New(st, func(store.Key, []*sessionv1.Event) {}, time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- committer.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	lease := store.Lease{Key: store.Key{Tenant: "acme", Session: "s"}, Epoch: 3}
	s := &state.Session{
		Lease: lease, Store: st, Log: committer.Open(lease, &sessionv1.Session{LastSeq: 10}), Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Proto: &sessionv1.Session{Name: "sessions/s"}, Spec: spec, PeerPatience: time.Minute,
		Resolve: func(string) (state.Resolved, error) { return Model(nil), nil },
	}
	f := &Fixture{Scope: state.Idle(t.Context(), s), Store: st, Committer: committer, t: t}
	f.Active = f.Turn("t1", &sessionv1.CreateTurnRequest{Text: "Hello."})
	f.Active.Proto.State = sessionv1.TurnState_TURN_STATE_RUNNING
	f.Say(sessionv1.Role_ROLE_USER, state.TextBlock("Hello."))
	f.Scope = f.InTurn(t.Context())
	return f
}

// Turn puts a turn into the store and returns it.
func (f *Fixture) Turn(id string, r *sessionv1.CreateTurnRequest) *state.Turn {
	f.t.Helper()
	run, err := state.Accept(r, "ann", false, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	turn, err := state.NewTurn(id, &sessionv1.Turn{
		Name: f.Name("turns", id), Limits: &sessionv1.TurnLimits{MaxSteps: 10, MaxOutputTokens: 10_000},
	}, run)
	if err != nil {
		f.t.Fatal(err)
	}
	f.Put(turn)
	return turn
}

// Put puts a turn into the store.
func (f *Fixture) Put(turn *state.Turn) {
	f.Store.mu.Lock()
	defer f.Store.mu.Unlock()
	f.Store.turns[turn.ID] = turn.Row()
}

// Say adds a message of the active turn to the conversation.
func (f *Fixture) Say(role sessionv1.Role, blocks ...*sessionv1.Block) *sessionv1.Message {
	m := f.NewMessage(role, f.Active.Step(), blocks)
	f.AddMessage(&store.Write{}, m)
	return m
}

// Call adds an assistant message with calls of the tools, whose step has not finished.
func (f *Fixture) Call(uses ...*sessionv1.ToolUse) *sessionv1.Message {
	var blocks []*sessionv1.Block
	for i, u := range uses {
		u.CallId = state.CallID(f.Active.ID, f.Active.Step(), i)
		blocks = append(blocks, &sessionv1.Block{Kind: &sessionv1.Block_ToolUse{ToolUse: u}})
	}
	return f.Say(sessionv1.Role_ROLE_ASSISTANT, blocks...)
}

// Writes returns what was committed so far, everything appended included.
func (f *Fixture) Writes() []store.Write {
	f.t.Helper()
	if err := f.Log.Flush(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	f.Store.mu.Lock()
	defer f.Store.mu.Unlock()
	return slices.Clone(f.Store.writes)
}

// Events returns the events committed so far.
func (f *Fixture) Events() []*sessionv1.Event {
	f.t.Helper()
	var events []*sessionv1.Event
	for _, w := range f.Writes() {
		events = append(events, w.Events...)
	}
	return events
}

// Warnings returns the reasons of the warnings committed so far.
func (f *Fixture) Warnings() []string {
	f.t.Helper()
	var reasons []string
	for _, e := range f.Events() {
		if w := e.GetWarning(); w != nil {
			reasons = append(reasons, w.Reason)
		}
	}
	return reasons
}

// Telemetry records nothing.
func Telemetry(t *testing.T) telemetry.Telemetry {
	t.Helper()
	m, err := telemetry.NewMetrics(noop.NewMeterProvider().Meter(""))
	if err != nil {
		t.Fatal(err)
	}
	return telemetry.Telemetry{Metrics: m, Tracer: tracenoop.NewTracerProvider().Tracer("")}
}

// Lists returns a lister of these tools, without MCP servers.
func Lists(tools ...*toolsv1.Tool) func(context.Context, *toolsv1.ListSessionToolsRequest) ([]*toolsv1.Tool, []*commonv1.McpServerStatus, error) {
	return func(context.Context, *toolsv1.ListSessionToolsRequest) ([]*toolsv1.Tool, []*commonv1.McpServerStatus, error) {
		return tools, nil, nil
	}
}
