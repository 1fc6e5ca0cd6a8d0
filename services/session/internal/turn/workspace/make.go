package workspace

import (
	"context"
	"errors"
	"sync/atomic"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/skill"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// maker makes the workspace in its place. Concurrent work uses it.
type maker struct {
	nodes   *placement.Nodes
	sandbox Sandbox
	skills  *skill.Library
	missing atomic.Pointer[skill.Missing] // of the newest making, until a turn warns of it
	news    *news
	told    map[string]bool // deleted skills and missing mounts of which it has warned
	lost    atomic.Int64    // the generation of a place whose node has lost the workspace
}

// forCommands makes the workspace for commands, with the variables of the acting user. warn may
// be nil.
func (m *maker) forCommands(sc state.Scope, ref *commonv1.CallRef, warn func(error)) error {
	acting, _ := principal.From(sc)
	return m.ensure(sc, ref, warn, func(r *sandboxv1.EnsureWorkspaceRequest) error {
		variables, err := sc.Store.Variables(sc, store.Owner{Tenant: sc.Lease.Tenant, User: acting.User})
		if err != nil {
			return remote.Unavailable("read the variables of the turn's user: " + err.Error())
		}
		r.Environment, r.Warm = sc.Spec.Variables(variables), sc.Spec.RunsCommands()
		return nil
	})
}

// forFiles makes the workspace for work that runs no command. The workspace keeps the variables
// and the sandbox of a running turn, whose user may be another one.
func (m *maker) forFiles(sc state.Scope, ref *commonv1.CallRef) error {
	return m.ensure(sc, ref, nil, func(*sandboxv1.EnsureWorkspaceRequest) error { return nil })
}

// ensure makes the workspace. add completes each request with what commands need.
func (m *maker) ensure(sc state.Scope, ref *commonv1.CallRef, warn func(error), add func(*sandboxv1.EnsureWorkspaceRequest) error) error {
	err := sc.Patiently(warn, func() error {
		r := sc.Spec.Workspace(sc.Proto, ref, sc.RuntimeName())
		r.MustExist = m.wasMade(sc, ref)
		if err := add(r); err != nil {
			return err
		}
		made, err := m.skills.Ensure(sc, m.sandbox, sc.Lease.Tenant, sc.Spec.PinnedSkills, r)
		if r.MustExist && errors.Is(err, remote.ErrNoWorkspace) {
			m.lost.Store(ref.WorkspaceGeneration)
		}
		if err != nil {
			return err
		}
		m.missing.Store(&made.Missing)
		if made.Created {
			m.news.add(&sessionv1.Event{Body: &sessionv1.Event_WorkspaceCreated{WorkspaceCreated: &sessionv1.WorkspaceCreated{
				Node: ref.Node, Generation: ref.WorkspaceGeneration,
			}}})
		}
		return nil
	})
	if err != nil {
		return err
	}
	return m.recordMade(sc, ref.WorkspaceGeneration)
}

// tell says how the workspace was made. It warns, once in a worker's time with the session, of skills that were deleted
// since the session began, and of optional mounts that do not exist for the acting user. A workspace is also made in the
// background and between turns, so only the worker calls it, in a turn.
func (m *maker) tell(sc state.Scope) error {
	events := m.news.drain(sc, sc.Active.Step())
	missing := m.missing.Swap(nil)
	if missing == nil {
		missing = &skill.Missing{}
	}
	once := func(what string, e *sessionv1.Event) {
		if !m.told[what] {
			m.told[what] = true
			events = append(events, sc.StepEvent(e))
		}
	}
	for _, s := range missing.Skills {
		once(s.Label(), state.SkillDeleted(s))
	}
	for _, name := range missing.Mounts {
		once("mount "+name, state.MountMissing(name))
	}
	if len(events) == 0 {
		return nil
	}
	return sc.Emit(store.Write{Events: events})
}

// wasMade reports whether a call is for a place in which the workspace is known to have been made.
// The node must have it then: a node that has lost its disk would make an empty one, and the
// next export would replace the last copy.
func (m *maker) wasMade(sc state.Scope, ref *commonv1.CallRef) bool {
	p := sc.Place()
	return m.nodes.Managed() && p.Node != "" && p.Made && !p.Restore && p.Generation == ref.WorkspaceGeneration
}

// recordMade stores, once, that the workspace was made in a place. Later appends, such as the
// results of calls in the workspace, are not committed before it. Whatever dies with the worker
// before that was never reported.
func (m *maker) recordMade(sc state.Scope, generation int64) error {
	p := sc.Place()
	if sc.IsSubagent() || !m.nodes.Managed() || p.Node == "" || p.Made || p.Restore || p.Generation != generation {
		return nil
	}
	if err := sc.Emit(store.Write{PlaceChange: store.PlaceChange{Made: generation}}); err != nil {
		return err
	}
	made := p
	made.Made = true
	sc.ReplacePlace(p, made) // if the place was changed meanwhile, the next making records it again
	return nil
}

// isLost reports whether the node of a place has answered that it no longer has the workspace
// that was made there.
func (m *maker) isLost(p store.Place) bool {
	return p.Generation > 0 && p.Node != "" && !p.Restore && m.lost.Load() == p.Generation
}

// untilLost ends a scope when the workspace's node is lost, if there is another node. The caller
// must call stop.
func (m *maker) untilLost(sc state.Scope) (_ state.Scope, stop func()) {
	p := sc.Place()
	if p.Node == "" || !m.nodes.Managed() {
		return sc, func() {}
	}
	ctx, stop := m.nodes.Until(sc, sc.Lease.Key, p.Node, func() bool { return !sc.IsSubagent() && unmade(sc.Place()) })
	return sc.With(ctx), stop
}

// unmade reports whether a place has no files that anybody knows of: the workspace was never made there, or its
// files never arrived.
func unmade(p store.Place) bool { return p.Node != "" && (p.Restore || !p.Made && p.Export.Seq == 0) }

// nodeLost reports whether a context has ended because the workspace's node is lost.
func nodeLost(ctx context.Context) bool { return errors.Is(context.Cause(ctx), placement.ErrLost) }

// advice says what to do about a workspace that could not be made: a refusal needs another
// advice than a service that is away.
func advice(err error) string {
	switch {
	case errors.Is(err, remote.ErrInvalid):
		return "The sandbox's operator does not allow what the agent or the session asks for: ask for something else, or ask the operator to allow it."
	case errors.Is(err, remote.ErrExhausted): // its message says what to free
		return "Then send the message again."
	default:
		return "Check that the sandbox service runs, then send the message again."
	}
}
