// Package turn runs the turns of one session: it builds the model's request from
// the conversation, streams the model, has the tools called, and appends what
// happened to the log, until the agent stops.
//
// The loop is a state machine whose state is in the store. The last message of
// the conversation decides what to do next. After a user's message comes a step.
// After an assistant's message with tool calls come the calls that have no
// result yet. After one without calls comes the end. So a worker that takes over
// from a crashed one does the same as one that goes on: it voids the unfinished
// step and asks tools again for every call without a result, with the same call
// id, which tools recognizes.
//
// The worker is the loop alone. Its parts are the packages below, each with its
// own state; they depend on package state and on each other in one direction.
// They return what their work means for the turn, and the loop acts on it.
package turn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/budget"
	"github.com/fairlead/fairlead/services/session/internal/eventlog"
	"github.com/fairlead/fairlead/services/session/internal/flag"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/calls"
	"github.com/fairlead/fairlead/services/session/internal/turn/compact"
	"github.com/fairlead/fairlead/services/session/internal/turn/inbox"
	"github.com/fairlead/fairlead/services/session/internal/turn/lifecycle"
	"github.com/fairlead/fairlead/services/session/internal/turn/spend"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
	"github.com/fairlead/fairlead/services/session/internal/turn/step"
	"github.com/fairlead/fairlead/services/session/internal/turn/subagent"
	"github.com/fairlead/fairlead/services/session/internal/turn/telemetry"
	"github.com/fairlead/fairlead/services/session/internal/turn/toolset"
	"github.com/fairlead/fairlead/services/session/internal/turn/workspace"
)

// Tools is what a worker needs of the tools service.
type Tools interface {
	calls.Tools
	// ListSessionTools returns the tools of a session, and what works of its MCP servers.
	ListSessionTools(ctx context.Context, r *toolsv1.ListSessionToolsRequest) ([]*toolsv1.Tool, []*commonv1.McpServerStatus, error)
	// FenceSession makes the tools service refuse lower epochs than the call's.
	FenceSession(ctx context.Context, call *commonv1.CallRef) error
}

// Deps is what a worker depends on.
type Deps struct {
	Store     store.Store
	Committer *eventlog.Committer
	// Resolve finds a model by its name, for the tenant of ctx; empty means the default one.
	Resolve   func(ctx context.Context, name string) (state.Resolved, error)
	Tools     Tools
	Agents    calls.Agents
	Workspace workspace.Config
	Skills    calls.Skills // nil: no session has skills
	Telemetry telemetry.Telemetry
	Log       *slog.Logger
	// Budgets are the operator's. BudgetQueues has the turns of all workers that wait for a budget.
	Budgets      budget.Config
	BudgetQueues *spend.Queues
	Compaction   compact.Config
	// MaxClaims is how often a turn is claimed without a new committed step; the
	// next claim ends it.
	MaxClaims int
	// PeerPatience is how long a turn waits for tools and sandbox when they are away.
	PeerPatience time.Duration
	Subagents    subagent.Config
	// Runtimes are those besides the native one, by name.
	Runtimes map[string]step.Runtime
	Flags    *flag.Flags // nil: the agents say what drives their turns
	// AnswerTTL is how long a call waits for an answer; 0: for ever.
	AnswerTTL time.Duration
}

// Causes of the end of a turn's context.
var (
	errInterrupted = errors.New("interrupted")
	errWallTime    = errors.New("the turn's time is up")
)

// permissionError ends a turn because a rule of the permission profile says so.
type permissionError struct{ why string }

// Error says which rule.
func (e *permissionError) Error() string { return e.why }

// ErrHandOver says that a worker has stopped between two steps because it was asked to. The lease must be
// released so that another replica goes on.
var ErrHandOver = state.ErrHandOver

// PassOnError is ErrHandOver for one replica, which must go on.
type PassOnError = state.PassOnError

// ErrUnknownCommand says that the inbox holds a command that only a newer version knows, as during an
// upgrade. The turn is not at fault: the lease must be released so that a replica of that version goes on.
var ErrUnknownCommand = errors.New("a command of an unknown kind, of a newer version")

// Worker runs the turns of one session as long as it has work.
type Worker struct {
	deps    *Deps
	session *state.Session

	inbox     *inbox.Inbox
	spend     *spend.Spend
	tools     *toolset.Toolset
	workspace *workspace.Workspace
	calls     *calls.Calls
	hook      *compact.Hook
	compactor *compact.Compactor
	stepper   *step.Stepper
	turns     *lifecycle.Turns
}

// New returns a worker for a session that this replica holds.
func New(d *Deps, l store.Lease) *Worker {
	w := &Worker{deps: d, inbox: inbox.New(), session: &state.Session{
		Lease: l, Store: d.Store, Logger: d.Log, PeerPatience: d.PeerPatience, AnswerTTL: d.AnswerTTL, Claims: l.Claims,
	}}
	w.session.SetSuspect(l.Suspect)
	w.spend = spend.New(spend.Config{Budgets: d.Budgets, Queues: d.BudgetQueues, Telemetry: d.Telemetry})
	w.tools = toolset.New(d.Tools.ListSessionTools)
	w.calls = calls.New(calls.Config{Client: d.Tools, Agents: d.Agents, Skills: d.Skills, Telemetry: d.Telemetry}, w.tools, subagent.New(d.Subagents))
	w.calls.Again(func(sc state.Scope) {
		_ = w.workspace.Make(sc, sc.CallRef(sc.Active.ID+".workspace")) // the call says what is wrong
	})
	w.workspace = workspace.New(d.Workspace, w.tools, w.calls.End)
	w.hook = &compact.Hook{Calls: w.calls, Workspace: w.workspace}
	w.compactor = compact.New(d.Compaction, d.Telemetry, w.spend, w.workspace, w.hook)
	w.stepper = &step.Stepper{Telemetry: d.Telemetry, Tools: w.tools, Inbox: w.inbox, Spend: w.spend, Calls: w.calls, Compactor: w.compactor, Runtimes: d.Runtimes, Expect: w.workspace.Expect}
	w.turns = &lifecycle.Turns{Telemetry: d.Telemetry, Tools: w.tools, Spend: w.spend, Workspace: w.workspace, Flags: d.Flags}
	return w
}

// Suspect reports whether the turn may still be what crashed its holders.
func (w *Worker) Suspect() bool { return w.session.Suspect() }

// Wake tells the worker that the inbox has a command.
func (w *Worker) Wake() { w.inbox.Wake() }

// Drain makes Run stop before the next step, with ErrHandOver if there is one.
func (w *Worker) Drain() { w.session.Draining.Store(true) }

// Stuck reports whether the session was claimed more often than allowed without
// progress. It is called after Run, whose error says what is in the way.
func (w *Worker) Stuck() bool { return w.session.Claims > w.deps.MaxClaims }

// Abandon ends everything that the session has to do and gives the lease back. It
// is for a session that no worker can work on.
func (w *Worker) Abandon(ctx context.Context) error { return lifecycle.Abandon(ctx, w.session) }

// Run works until nothing is left to do, and releases the lease. It returns nil
// then; after an error, the session must be claimed again.
func (w *Worker) Run(ctx context.Context) error {
	ctx = principal.With(ctx, principal.Service(w.session.Lease.Tenant, "default"))
	w.session.Resolve = func(name string) (state.Resolved, error) { return w.deps.Resolve(ctx, name) }
	if err := w.load(ctx); err != nil {
		return err
	}
	// Work between turns, such as a workspace that is warmed, is the owner's.
	ctx = principal.With(ctx, principal.Service(w.session.Lease.Tenant, strings.TrimPrefix(w.session.Proto.User, "users/")))
	ctx, stop := w.workspace.Fence(ctx, w.session, w.deps.Tools.FenceSession)
	defer stop()
	err := w.work(state.Idle(ctx, w.session)) //nolint:contextcheck // a scope has its context
	if errors.Is(context.Cause(ctx), store.ErrStaleEpoch) {
		return store.ErrStaleEpoch
	}
	return err
}

// load reads the session.
func (w *Worker) load(ctx context.Context) error {
	s := w.session
	loaded, err := s.Store.Load(ctx, s.Lease)
	if err != nil {
		return fmt.Errorf("load session %s: %w", s.Lease.Session, err)
	}
	rev, err := s.Store.GetAgentRevision(ctx, s.Lease.Tenant, loaded.Session.Agent, loaded.Session.AgentRevision)
	if err != nil {
		return fmt.Errorf("load revision %s of %s: %w", loaded.Session.AgentRevision, loaded.Session.Agent, err)
	}
	if s.Spec, err = agent.Unmarshal(rev.Spec); err != nil {
		return err
	}
	s.Proto, s.Claims = loaded.Session, loaded.Claims
	if s.SetPlace(loaded.Place); s.IsSubagent() {
		place, _, err := s.Store.PlaceOf(ctx, s.WorkspaceKey())
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("read where the workspace of session %s is: %w", s.Lease.Session, err)
		}
		s.SetPlace(place)
	}
	s.Log = w.deps.Committer.Open(s.Lease, loaded.Session)
	if loaded.Active == nil {
		return nil
	}
	if s.Active, err = state.NewTurn(loaded.Active.ID, loaded.Active.Turn, loaded.Active.Run); err != nil {
		return err
	}
	w.hook.Inherit(s, loaded.Commands)
	// Before any other event gets a number: the events that an earlier worker
	// left of an unfinished step do not count.
	if write := step.VoidAttempt(s); len(write.Events) > 0 {
		return s.Log.Append(ctx, write)
	}
	return nil
}

// work works until nothing is left to do.
func (w *Worker) work(sc state.Scope) error {
	for {
		if err := w.takeCommands(sc); err != nil {
			return err
		}
		var err error
		switch t := sc.Active; {
		case t != nil && !t.Waiting():
			err = w.runTurn(sc)
		case w.workspace.Checkpoints.Requested():
			err = w.workspace.Checkpoints.MakeRequested(sc)
		case w.compactor.Requested():
			_, err = w.compactor.RunRequested(sc) // no turn runs that it could end
		default:
			released, err := w.release(sc)
			if err != nil || released {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
}

// release gives the lease back if the session has nothing more to do.
func (w *Worker) release(sc state.Scope) (bool, error) {
	if err := sc.Flush(); err != nil {
		return false, err
	}
	return sc.Store.ReleaseIdle(sc, sc.Lease)
}
