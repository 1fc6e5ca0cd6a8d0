// Package workspace gives a session's workspace its place, makes it, and keeps its files.
//
// A Place assigns the workspace to a node and moves it. Checkpoints keep and restore its files.
// Repositories are cloned into it. A Workspace holds them together and makes the workspace once
// a turn needs it.
package workspace

import (
	"context"
	"sync"
	"time"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/skill"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
	"github.com/fairlead/fairlead/services/session/internal/turn/toolset"
)

// Config is what all workers share.
type Config struct {
	Sandbox     Sandbox
	Branch      string // the pattern of sessions' own branches
	Nodes       *placement.Nodes
	Skills      *skill.Library // nil: no session has skills
	Export      bool           // workspaces are exported after turns
	Checkpoints CheckpointConfig
}

// EndCalls cancels the open calls of the last message, gives them a result and adds the message
// with all results to a write. notMade is the result of a call that has not begun.
type EndCalls func(sc state.Scope, write *store.Write, notMade func(*sessionv1.ToolUse) *sessionv1.ToolResult) error

// Workspace is the workspace of one session.
type Workspace struct {
	Place        *Mover
	Checkpoints  *Checkpoints
	Repositories *Repositories

	tools    *toolset.Toolset
	maker    *maker
	prepared *preparation // of the running turn
}

// New returns the workspace of a session that has just been loaded.
func New(c Config, tools *toolset.Toolset, endCalls EndCalls) *Workspace {
	m := &maker{nodes: c.Nodes, sandbox: c.Sandbox, skills: c.Skills, told: map[string]bool{}, news: &news{}}
	copies := &copies{sandbox: c.Sandbox, maker: m}
	p := &Mover{nodes: c.Nodes, sandbox: c.Sandbox, export: c.Export, tools: tools, maker: m, copies: copies, endCalls: endCalls}
	return &Workspace{
		Place:        p,
		Checkpoints:  &Checkpoints{CheckpointConfig: c.Checkpoints, sandbox: c.Sandbox, place: p, tools: tools},
		Repositories: &Repositories{sandbox: c.Sandbox, news: m.news, branch: c.Branch},
		tools:        tools,
		maker:        m,
	}
}

// preparation is a workspace that is made once something needs it.
type preparation struct {
	once   sync.Once // it begins, or never will
	make   func()    // makes it and closes done
	done   chan struct{}
	cancel context.CancelFunc
	err    error
	away   chan error          // receives the error if the making takes long
	failed []repositoryFailure // reported to the turn once
}

// start begins to make the workspace, unless that has begun.
func (p *preparation) start() { p.once.Do(func() { go p.make() }) }

// Prepare gets ready to make the workspace and its repositories in the background, once the turn needs it: a turn
// without calls leaves it alone. Repositories take time to clone, so a session's first turn begins at once. The caller
// must call Release.
func (w *Workspace) Prepare(sc state.Scope) {
	w.Release()
	w.prepared = w.prepare(sc, w.Repositories.clone)
	if len(sc.Spec.Repositories) > 0 && sc.Proto.FinishedTurns == 0 {
		w.prepared.start()
	}
}

// Expect begins to make the prepared workspace: the model is about to ask for a call.
func (w *Workspace) Expect() { w.prepared.start() }

// prepareAgain makes the workspace anew because another user has run a command since, whose
// variables it has. It keeps the failures that are not reported yet.
func (w *Workspace) prepareAgain(sc state.Scope) {
	failed := w.prepared.failed
	w.Release()
	w.prepared = w.prepare(sc, func(state.Scope) []repositoryFailure { return failed })
	w.prepared.start()
}

// prepare returns how to make the workspace in the background. fill returns what failed.
func (w *Workspace) prepare(sc state.Scope, fill func(state.Scope) []repositoryFailure) *preparation {
	ctx, cancel := context.WithCancel(sc)
	p := &preparation{done: make(chan struct{}), cancel: cancel, away: make(chan error, 1)}
	if len(sc.Spec.Tools) == 0 && !w.tools.InSandbox(sc) && sc.RuntimeName() == agent.Native {
		p.make = func() { close(p.done) }
		return p
	}
	ref := sc.CallRef(sc.Active.ID + ".workspace")
	sc = sc.With(ctx)
	p.make = func() {
		defer close(p.done)
		if p.err = w.maker.forCommands(sc, ref, func(err error) { p.away <- err }); p.err == nil {
			p.failed = fill(sc)
		}
	}
	return p
}

// Release ends the preparation and waits for its goroutine, if there is one.
func (w *Workspace) Release() {
	if w.prepared != nil {
		w.prepared.cancel()
		w.prepared.once.Do(func() { close(w.prepared.done) })
		<-w.prepared.done
		w.prepared = nil
	}
}

// AwaitForServers waits for the workspace, in which MCP servers run, for at most a time. What is
// wrong with it shows when a call needs it.
func (w *Workspace) AwaitForServers(sc state.Scope, atMost time.Duration) {
	w.prepared.start()
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-w.prepared.done:
	case <-timer.C:
	case <-sc.Done():
	}
}

// await waits for the prepared workspace, and warns people when that takes long.
func (w *Workspace) await(sc state.Scope) error {
	p, warn := w.prepared, sc.WarnAway("The workspace cannot be made now")
	p.start()
	for {
		select {
		case <-p.done:
			return p.err
		case err := <-p.away:
			warn(err)
		case <-sc.Done():
			return context.Cause(sc)
		}
	}
}

// Await waits for the workspace before the calls of a step. It tells how the workspace was made and warns of repositories that are not
// as configured, once in a turn, and returns the same as notes for the model.
func (w *Workspace) Await(sc state.Scope) (notes string, out state.Outcome, err error) {
	err = w.await(sc)
	switch {
	case sc.Ended(), err != nil && w.maker.isLost(sc.Place()):
		return "", state.Stopped(), nil // the loop finds the cause, or restores the workspace
	case err != nil:
		return "", state.Failed(store.Write{}, sessionv1.ErrorReason_ERROR_REASON_TOOLS_UNAVAILABLE,
			"The workspace could not be made: "+state.Explain(err)+" "+advice(err)), nil
	}
	if err := w.maker.tell(sc); err != nil {
		return "", state.Outcome{}, err
	}
	failed := w.prepared.failed
	w.prepared.failed = nil
	notes, err = report(sc, failed)
	return notes, state.Outcome{}, err
}

// Lend waits for the workspace and calls use, in which another user may run a command. The
// workspace then gets the variables of the turn's user again: it has those of one user at a time.
// If the workspace cannot be made, use is called all the same; the turn's calls report it.
func (w *Workspace) Lend(sc state.Scope, use func() (state.Outcome, error)) (state.Outcome, error) {
	made, stop := w.UntilLost(sc)
	err := w.await(made)
	over := made.Ended()
	stop()
	if over {
		return state.Stopped(), nil // the loop finds the cause
	}
	failed := err != nil
	out, err := use()
	if err == nil && !failed && out.GoesOn() {
		w.prepareAgain(sc)
	}
	return out, err
}

// UntilLost ends a scope when the workspace's node is lost, if there is another node. The caller
// must call stop.
func (w *Workspace) UntilLost(sc state.Scope) (_ state.Scope, stop func()) {
	return w.maker.untilLost(sc)
}

// Make makes the workspace for commands of the acting user.
func (w *Workspace) Make(sc state.Scope, ref *commonv1.CallRef) error {
	return w.maker.forCommands(sc, ref, nil)
}
