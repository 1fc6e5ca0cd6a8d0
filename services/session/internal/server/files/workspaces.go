package files

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
	"github.com/fairlead/fairlead/services/session/internal/request"
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
		return nil, place, refusal.ToBeRestored(session)
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
		return refusal.ToBeRestored(session.Name)
	}
	if want.MustExist = place.Made; place.Made {
		want.Trees = nil // those of the running turn, whose runtime the flags may have chosen
	}
	// The session's next turn warns of skills that are gone.
	if _, err := s.Skills.Ensure(ctx, s.Sandbox, principal.Tenant(ctx), spec.PinnedSkills, want); err != nil {
		return apierr.Forward(placement.LostWorkspace(err, place, session.Name))
	}
	if place.Made {
		return nil
	}
	return refusal.Store(s.Workspaces.Nodes.Made(ctx, s.Store, call), refusal.Subject{Session: session.Name})
}
