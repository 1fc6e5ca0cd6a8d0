package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/server/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// workspaces reaches sessions' workspaces for requests that belong to no turn.
type workspaces struct{ *Config }

// callRef returns the reference under which a request acts: that of the session's
// current holder. A repeated request is the same call.
func (s workspaces) callRef(ctx context.Context, session, kind, method, requestID string) (*commonv1.CallRef, store.Place, error) {
	place, epoch, err := s.Store.PlaceOf(ctx, request.Key(ctx, session))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, place, refusal.Store(err, refusal.Subject{Session: session, RequestID: requestID})
	}
	if place.Restore {
		return nil, place, placement.ToBeRestored(session)
	}
	sum := sha256.Sum256([]byte(method + "\x00" + requestID))
	call := &commonv1.CallRef{Session: session, Epoch: max(epoch, 1), CallId: kind + "." + hex.EncodeToString(sum[:16])}
	call.Node, call.WorkspaceGeneration = place.Node, place.Generation
	return call, place, nil
}

// holders is how many holders may take a session over during a request on its behalf.
const holders = 5

// retryStaleEpoch makes a request as the session's holder, and repeats it if another holder has taken
// the session over meanwhile. To the sandbox it is the same call, which it makes once.
func retryStaleEpoch[T any](do func() (T, error)) (done T, err error) {
	for range holders {
		if done, err = do(); !errors.Is(err, remote.ErrStaleEpoch) {
			break
		}
	}
	return done, err
}

// lost returns the error of a request in a workspace that its node has lost.
func lost(err error, place store.Place, session string) error {
	if errors.Is(err, remote.ErrNoWorkspace) && place.Made {
		return placement.ToBeRestored(session)
	}
	return err
}

// at returns the place of the session's workspace.
func (s workspaces) at(ctx context.Context, session string) (store.Place, error) {
	place, _, err := s.Store.PlaceOf(ctx, request.Key(ctx, session))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return place, refusal.Store(err, refusal.Subject{Session: session})
	}
	if place.Restore {
		return place, placement.ToBeRestored(session)
	}
	return place, nil
}

// in returns the place of a session's workspace for the sandbox.
func in(p store.Place, session string) remote.Place {
	return remote.Place{Session: session, Node: p.Node, Generation: p.Generation}
}

// exists refuses sessions that do not exist or have no workspace of their own.
func (s workspaces) exists(ctx context.Context, session string) (*sessionv1.Session, error) {
	found, err := s.Store.GetSession(ctx, request.Key(ctx, session))
	if found.GetParentCall() != nil {
		return nil, refusal.SubagentSession(session) // the files are its root's
	}
	return found, refusal.Store(err, refusal.Subject{Session: session})
}

// forward passes on a refusal of the sandbox.
func forward(err error, session, requestID string) error {
	if errors.Is(err, remote.ErrCallIDReused) {
		return refusal.Store(store.ErrRequestIDReused, refusal.Subject{Session: session, RequestID: requestID})
	}
	return apierr.Forward(err)
}

// ensureWorkspace makes the session's workspace as its first turn would, but without
// variables: no command of the user runs, and a turn of another user may be running.
func (s workspaces) ensureWorkspace(ctx context.Context, session *sessionv1.Session, call *commonv1.CallRef) error {
	kept, err := s.Store.GetAgentRevision(ctx, principal.Tenant(ctx), session.Agent, session.AgentRevision)
	if err != nil {
		return refusal.Store(err, refusal.Subject{Session: session.Name})
	}
	spec, err := agent.Unmarshal(kept.Spec)
	if err != nil {
		return err
	}
	want := spec.Workspace(session, call, spec.RuntimeName())
	place, _, err := s.Store.PlaceOf(ctx, request.Key(ctx, session.Name))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return refusal.Store(err, refusal.Subject{Session: session.Name})
	}
	if place.Generation != call.WorkspaceGeneration { // it has moved meanwhile
		return placement.ToBeRestored(session.Name)
	}
	if want.MustExist = place.Made; place.Made {
		want.Trees = nil // those of the running turn, whose runtime the flags may have chosen
	}
	// The session's next turn warns of skills that are gone.
	if _, err := s.Directory.Skills.Ensure(ctx, s.Sandbox, principal.Tenant(ctx), spec.PinnedSkills, want); err != nil {
		return apierr.Forward(lost(err, place, session.Name))
	}
	if place.Made {
		return nil
	}
	return refusal.Store(s.Nodes.Made(ctx, s.Store, call), refusal.Subject{Session: session.Name})
}
