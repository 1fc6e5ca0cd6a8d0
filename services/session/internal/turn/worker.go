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
package turn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/node"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/budget"
	"github.com/fairlead/fairlead/services/session/internal/eventlog"
	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/spend"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
	"github.com/fairlead/fairlead/services/session/internal/turn/telemetry"
)

// Limits hold where an agent and a request set none.
type Limits struct {
	MaxSteps        int
	MaxWallTime     time.Duration
	MaxOutputTokens int64
}

// Deps is what a worker depends on.
type Deps struct {
	Store     store.Store
	Committer *eventlog.Committer
	// Resolve finds a model by `provider:model`; empty means the default one.
	Resolve    func(name string) (state.Resolved, error)
	Calls      toolsv1.CallServiceClient
	Tools      toolsv1.ToolServiceClient
	Workspaces sandboxv1.WorkspaceServiceClient
	Snapshots  sandboxv1.SnapshotServiceClient
	// Repositories clones; RepositoryBranch is the pattern of sessions' own branches.
	Repositories     sandboxv1.RepositoryServiceClient
	RepositoryBranch string
	Telemetry        telemetry.Telemetry
	Log              *slog.Logger
	// Nodes has the places of workspaces. Export makes workspaces be exported after
	// turns.
	Nodes  *placement.Nodes
	Export bool
	// Budgets are the operator's.
	Budgets budget.Config
	// BudgetLines has the turns of all workers that wait for a budget.
	BudgetLines *budget.Lines
	Compaction  Compaction
	// Checkpoints is the operator's configuration.
	Checkpoints Checkpoints
	// MaxClaims is how often a turn is claimed without a new committed step; the
	// next claim ends it.
	MaxClaims int
	// PeerPatience is how long a turn waits for tools and sandbox when they are away.
	PeerPatience time.Duration
	// AnswerTTL is how long a call waits for an answer; 0: for ever.
	AnswerTTL time.Duration
}

// inboxBackoff is the wait before a failed read of the inbox is repeated.
const inboxBackoff = time.Second

// Causes of the end of a turn's context.
var (
	errInterrupted = errors.New("interrupted")
	errWallTime    = errors.New("the turn's time is up")
)

// ErrHandOver says that a worker has stopped between two steps because it was asked to. The lease must be
// released so that another replica goes on.
var ErrHandOver = state.ErrHandOver

// ErrUnknownCommand says that the inbox holds a command that only a newer version knows, as during an
// upgrade. The turn is not at fault: the lease must be released so that a replica of that version goes on.
var ErrUnknownCommand = errors.New("a command of an unknown kind, of a newer version")

// Worker runs the turns of one session as long as it has work.
type Worker struct {
	*state.Session
	deps *Deps
	wake chan struct{}

	taken         map[int64]bool          // commands that were seen
	warm          *warming                // of the running turn
	parallelTools map[string]bool         // tools whose calls may run at the same time
	readOnlyTools map[string]bool         // tools that change nothing
	answered      string                  // the assistant message whose calls this worker began
	begun         map[string]bool         // calls of it that were requested from tools
	untold        string                  // notes for the model with the next results
	compacts      []store.Command         // pending requests to compact
	inherited     hooks                   // that may run
	counted       state.Counted           // by the provider, last
	wanted        []store.Command         // requested checkpoints that are not made yet
	kept          []*sessionv1.Checkpoint // the oldest first; nil: not loaded

	gone   atomic.Int64 // the generation of a place that its node has lost
	sealed int64        // the generation of the place in which this worker has sealed the workspace, or may have

	spend *spend.Spend

	mu     sync.Mutex
	cancel context.CancelCauseFunc // ends the running turn
	turn   string                  // the running turn's id
}

// New returns a worker for a session that this replica holds.
func New(d *Deps, l store.Lease) *Worker {
	s := &state.Session{
		Lease: l, Store: d.Store, Logger: d.Log, Resolve: d.Resolve, PeerPatience: d.PeerPatience, AnswerTTL: d.AnswerTTL, Claims: l.Claims,
	}
	s.SetSuspect(l.Suspect)
	w := &Worker{Session: s, deps: d, wake: make(chan struct{}, 1), taken: map[int64]bool{}}
	w.spend = spend.New(spend.Config{Budgets: d.Budgets, Lines: d.BudgetLines, Telemetry: d.Telemetry})
	return w
}

// Wake tells the worker that the inbox has a command.
func (w *Worker) Wake() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Drain makes Run stop before the next step, with ErrHandOver if there is one.
func (w *Worker) Drain() { w.Draining.Store(true) }

// Run works until nothing is left to do, and releases the lease. It returns nil
// then; after an error, the session must be claimed again.
func (w *Worker) Run(ctx context.Context) error {
	ctx = principal.With(ctx, principal.Principal{Tenant: w.Lease.Tenant, User: "default"})
	ctx = node.With(ctx, w.NodeName)
	if err := w.load(ctx); err != nil {
		return err
	}
	ctx, stop := w.fence(ctx)
	defer stop()
	err := w.work(ctx)
	if errors.Is(context.Cause(ctx), store.ErrStaleEpoch) {
		return store.ErrStaleEpoch
	}
	return err
}

// work works until nothing is left to do.
func (w *Worker) work(ctx context.Context) error {
	for {
		if err := w.takeCommands(ctx); err != nil {
			return err
		}
		if w.Active != nil && !w.Active.Waiting() {
			if err := w.runTurn(ctx); err != nil {
				return err
			}
			continue
		}
		if len(w.wanted) > 0 {
			if err := w.makeWanted(ctx, ctx); err != nil {
				return err
			}
			continue
		}
		if len(w.compacts) > 0 {
			if err := w.compactAsked(ctx, ctx); err != nil {
				return err
			}
			continue
		}
		if err := w.Log.Flush(ctx); err != nil {
			return err
		}
		released, err := w.Store.ReleaseIdle(ctx, w.Lease)
		if err != nil || released {
			return err
		}
	}
}

func (w *Worker) load(ctx context.Context) error {
	s, err := w.Store.Load(ctx, w.Lease)
	if err != nil {
		return fmt.Errorf("load session %s: %w", w.Lease.Session, err)
	}
	rev, err := w.Store.GetAgentRevision(ctx, w.Lease.Tenant, s.Session.Agent, s.Session.AgentRevision)
	if err != nil {
		return fmt.Errorf("load revision %s of %s: %w", s.Session.AgentRevision, s.Session.Agent, err)
	}
	if w.Spec, err = agent.Unmarshal(rev.Spec); err != nil {
		return err
	}
	w.Proto, w.Claims = s.Session, s.Claims
	w.SetPlace(s.Place)
	w.Log = w.deps.Committer.Open(w.Lease, s.Session.LastSeq)
	if s.Active != nil {
		if w.Active, err = state.NewTurn(s.Active.ID, s.Active.Turn, s.Active.Run); err != nil {
			return err
		}
		w.inherit(s.Commands)
		// Before any other event gets a number: the events that an earlier worker
		// left of an unfinished step do not count.
		if write := w.voidStep(); len(write.Events) > 0 {
			return w.Log.Append(ctx, write)
		}
	}
	return nil
}

// runTurn runs the active turn until it ends, waits, or ctx ends.
func (w *Worker) runTurn(parent context.Context) error {
	t := w.Active
	ctx := principal.With(parent, principal.Principal{Tenant: w.Lease.Tenant, User: t.Run.User})
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(t.Proto.Limits.GetMaxWallTime().AsDuration()-t.WallUsed(), func() { cancel(errWallTime) })
	w.setRunning(t.ID, cancel)
	var watcher sync.WaitGroup
	running := ctx
	watcher.Go(func() { w.watchInterrupts(running) })
	defer func() {
		timer.Stop()
		w.setRunning("", nil)
		cancel(nil)
		watcher.Wait()
	}()
	started, span := w.deps.Telemetry.StartRun(w.scope(ctx, parent))
	ctx = started.Context

	err := w.LoadPath(parent)
	switch {
	case err != nil:
	case w.Claims > w.deps.MaxClaims:
		err = w.finishCrashLoop(parent)
	default:
		sc := w.scope(ctx, parent)
		var out state.Outcome
		if out, err = w.spend.Hold(sc); err == nil && out.GoesOn() {
			watcher.Go(func() { w.spend.Keep(sc.With(running), func(why error) { w.cancelRunning(t.ID, why) }) })
			err = w.loop(ctx, parent)
		} else if err == nil {
			err = w.apply(parent, out)
		}
	}
	w.deps.Telemetry.EndRun(span, t, err)
	return err
}

// loop takes the turn forward until it is no longer active or waits. ctx ends
// with the turn, parent with the worker.
func (w *Worker) loop(ctx, parent context.Context) error {
	t := w.Active
	if _, err := w.ensurePlace(ctx, parent); err != nil || w.Active != t {
		return err
	}
	w.warm = w.warmWorkspace(ctx)
	defer func() { w.warm.stop() }()
	for w.Active == t && !t.Waiting() {
		if err := w.takeCommands(parent); err != nil {
			return err
		}
		if w.Active != t || t.Waiting() {
			return nil
		}
		if why := w.stopCause(ctx, parent); why != nil {
			if parent.Err() != nil {
				return context.Cause(parent)
			}
			return w.stop(parent, why)
		}
		if moved, err := w.ensurePlace(ctx, parent); err != nil {
			return err
		} else if w.Active != t {
			return nil // the move failed, and the turn with it
		} else if moved {
			w.warm.stop()
			w.warm = w.warmWorkspace(ctx)
			continue
		}
		if err := w.advance(ctx, parent); err != nil {
			return err
		}
	}
	return nil
}

// advance makes one move: a step, a step's calls, or the end.
func (w *Worker) advance(ctx, parent context.Context) error {
	last := w.Last()
	switch {
	case len(state.ToolUses(last)) > 0:
		return w.calls(ctx, parent, last)
	case len(w.Active.Run.Steer) > 0 && w.Active.MayStep():
		return w.takeIn(parent)
	case last.Role == sessionv1.Role_ROLE_USER && w.Draining.Load():
		return w.spend.Leave(w.scope(parent, parent))
	case last.Role == sessionv1.Role_ROLE_USER && len(w.wanted) > 0:
		return w.makeWanted(ctx, parent)
	case last.Role == sessionv1.Role_ROLE_USER && len(w.compacts) > 0:
		return w.compactMeanwhile(ctx, parent)
	case last.Role == sessionv1.Role_ROLE_USER:
		return w.step(ctx, parent)
	default:
		// The final message is committed but the end is not: an earlier worker
		// stopped there, or a message that was to join the turn no longer does.
		return w.conclude(parent, store.Write{})
	}
}

// stopCause returns why the turn must stop now, or nil.
func (w *Worker) stopCause(ctx, parent context.Context) error {
	switch {
	case parent.Err() != nil:
		return context.Cause(parent)
	case w.Active.Stopped:
		return errInterrupted
	case ctx.Err() != nil:
		return context.Cause(ctx)
	default:
		return nil
	}
}

// watchInterrupts ends the running turn's context as soon as the inbox has an
// interrupt for it. It consumes nothing: takeCommands does.
func (w *Worker) watchInterrupts(ctx context.Context) {
	retry := time.NewTimer(inboxBackoff)
	retry.Stop()
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		case <-retry.C:
		}
		commands, err := w.Store.Inbox(ctx, w.Lease)
		if err != nil {
			if ctx.Err() == nil {
				w.Logger.WarnContext(ctx, "cannot read the inbox; will look again", "session", w.Lease.Session, "error", err)
			}
			retry.Reset(inboxBackoff)
			continue
		}
		for _, c := range commands {
			if c.Kind == store.CommandInterrupt || c.Kind == store.CommandRollback {
				w.interruptRunning(c.TurnID)
			}
		}
	}
}

func (w *Worker) setRunning(turn string, cancel context.CancelCauseFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turn, w.cancel = turn, cancel
}

func (w *Worker) interruptRunning(turn string) { w.cancelRunning(turn, errInterrupted) }

func (w *Worker) cancelRunning(turn string, why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancel != nil && w.turn == turn {
		w.cancel(why)
	}
}
