package jobs

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Push is the body of a store.JobPush.
type Push struct {
	Turn      string `json:"turn"` // full name
	URL       string `json:"url"`
	Directory string `json:"directory"`
	Branch    string `json:"branch,omitempty"` // empty: the current branch of the repository
	Epoch     int64  `json:"epoch"`
	// User is the acting user, as in the turn: the session's sandbox shows what that user
	// may see.
	User string `json:"user,omitempty"`
}

// pushTries is how often a failing push is attempted before the session is told: the
// remote may only be away for a while.
const pushTries = 5

// pushRepository does a store.JobPush: it pushes a branch to its remote at the end of a
// turn, and has the session's log record the result. Doing it twice is harmless: a remote
// that has the commit already is not reported, and the session is told once.
func (d *Deps) pushRepository(ctx context.Context, j store.Job) (*store.Job, error) {
	var p Push
	if err := json.Unmarshal(j.Body, &p); err != nil {
		return nil, fmt.Errorf("read the push of job %s: %w", j.ID, err)
	}
	if p.User != "" { // a job of an older version has none
		ctx = principal.With(ctx, principal.Service(j.Tenant, p.User))
	}
	place, _, err := d.Store.PlaceOf(ctx, store.Key{Tenant: j.Tenant, Session: j.Session})
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	done, err := d.push(ctx, place, j, p)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, err
	case err == nil && done.GetUpToDate(), nothingToPush(err):
		return nil, nil
	case err == nil:
		return nil, d.reportPush(ctx, j, &sessionv1.Event{Turn: p.Turn, Body: &sessionv1.Event_RepositoryPushed{RepositoryPushed: &sessionv1.RepositoryPushed{
			Directory: p.Directory, Url: p.URL, Ref: done.GetRef(), OldCommit: done.GetOldCommit(), NewCommit: done.GetNewCommit(),
		}}})
	case mayPushLater(err, j.Attempt):
		return nil, fmt.Errorf("push repos/%s of sessions/%s: %w", p.Directory, j.Session, err)
	}
	d.Log.WarnContext(ctx, "cannot push a repository", "session", j.Session, "directory", p.Directory, "error", err)
	return nil, d.reportPush(ctx, j, &sessionv1.Event{Turn: p.Turn, Body: &sessionv1.Event_RepositoryPushFailed{RepositoryPushFailed: &sessionv1.RepositoryPushFailed{
		Directory: p.Directory, Url: p.URL, Branch: p.Branch, Reason: apierr.Reason(err), Message: apierr.Message(err),
	}}})
}

// push pushes from the workspace's node. While its files are being moved to a new node they
// cannot be pushed, and the push must not count as done.
func (d *Deps) push(ctx context.Context, place store.Place, j store.Job, p Push) (*sandboxv1.PushRepositoryResponse, error) {
	session := "sessions/" + j.Session
	if place.Restore {
		return nil, refusal.ToBeRestored(session)
	}
	done, err := d.Sandbox.PushRepository(ctx, &sandboxv1.PushRepositoryRequest{
		Call: &commonv1.CallRef{
			Session: session, Epoch: p.Epoch, CallId: "push." + strings.ReplaceAll(j.ID, "/", "."),
			Node: place.Node, WorkspaceGeneration: place.Generation,
		},
		Directory: p.Directory, Url: p.URL, Branch: p.Branch, OnlyNew: true,
	})
	if errors.Is(err, remote.ErrNoWorkspace) && place.Made {
		err = refusal.ToBeRestored(session)
	}
	return done, err
}

// nothingToPush reports whether there is nothing to push: no tool call ever needed the
// workspace, or the agent removed the repository.
func nothingToPush(err error) bool {
	return errors.Is(err, remote.ErrNoWorkspace) || errors.Is(err, remote.ErrNoRepository)
}

// mayPushLater reports whether a push may succeed later.
func mayPushLater(err error, attempt int) bool {
	switch {
	case errors.Is(err, remote.ErrPrecondition), apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_NODE_LOST):
		return attempt < pushTries
	case errors.Is(err, remote.ErrRefused):
		return errors.Is(err, remote.ErrExhausted)
	}
	return !errors.Is(err, remote.ErrAborted) && !errors.Is(err, remote.ErrUnsupported)
}

// reportPush puts an event into the session's inbox; the holder appends it.
func (d *Deps) reportPush(ctx context.Context, j store.Job, e *sessionv1.Event) error {
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(e)
	if err != nil {
		return fmt.Errorf("marshal the outcome of a push: %w", err)
	}
	sum := sha256.Sum256([]byte(j.ID))
	_, err = d.Store.Submit(ctx, store.Submit{
		Key:     store.Key{Tenant: j.Tenant, Session: j.Session},
		Command: store.Command{Kind: store.CommandRepository, Body: body, User: User},
		Request: store.Request{Method: "push", Parent: "sessions/" + j.Session, ID: j.ID, Digest: sum[:], KeepUntil: time.Now().Add(keepAnswers)},
	})
	return err
}
