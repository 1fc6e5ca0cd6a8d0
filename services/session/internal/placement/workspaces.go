package placement

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cenkalti/backoff/v5"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// again is the interval at which a node that does not answer is asked to delete
// its files.
const again = time.Minute

// arriving is the wait before the first check whether a workspace has arrived; it doubles.
const arriving = 100 * time.Millisecond

// Store is the part of a store that the jobs need.
type Store interface {
	store.Places
	PutJobs(ctx context.Context, jobs []store.Job) error
	GetSession(ctx context.Context, k store.Key) (*sessionv1.Session, error)
	Submit(ctx context.Context, s store.Submit) (store.Answer, error)
}

// Workspaces does the jobs of places, and finds workspaces that are in any of them.
type Workspaces struct {
	Nodes   *Nodes
	Store   Store
	Sandbox *remote.Sandbox
}

// exporting is the body of a JobExport.
type exporting struct {
	Turn string `json:"turn"`
	Seq  int64  `json:"seq"`
	Name string `json:"name,omitempty"` // empty: Turn
}

// ExportJob returns the job that exports the workspace after a turn. seq is the log's
// last number then. The export may contain changes of the next turn.
func ExportJob(k store.Key, turn string, seq int64) store.Job {
	return store.Job{Tenant: k.Tenant, Kind: store.JobExport, ID: k.Session + "/" + turn, Session: k.Session, Body: encode(exporting{Turn: turn, Seq: seq})}
}

// RewoundJob returns the job that exports the workspace after its files were restored to their
// state in or after a turn, if any. name is unique among such jobs and turns.
func RewoundJob(k store.Key, name, turn string, seq int64) store.Job {
	return store.Job{Tenant: k.Tenant, Kind: store.JobExport, ID: k.Session + "/" + name, Session: k.Session, Body: encode(exporting{turn, seq, name})}
}

// Export does an ExportJob. It acts under the session's current epoch, because it
// changes nothing that affects a holder.
func (w *Workspaces) Export(ctx context.Context, j store.Job) (*store.Job, error) {
	var what exporting
	if err := json.Unmarshal(j.Body, &what); err != nil {
		return nil, backoff.Permanent(fmt.Errorf("read the job of an export: %w", err))
	}
	k := store.Key{Tenant: j.Tenant, Session: j.Session}
	p, epoch, err := w.Store.PlaceOf(ctx, k)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case epoch == 0 || p.Node == "" || p.Restore || p.Export.Seq > what.Seq || p.Export.Seq == what.Seq && !p.Export.Void():
		return nil, nil // it is gone, is being moved, was exported since, or its files were restored
	}
	snapshot, err := w.export(ctx, k, p, epoch, what)
	switch {
	case errors.Is(err, remote.ErrStaleGeneration), errors.Is(err, remote.ErrNoWorkspace):
		return nil, nil // it has moved meanwhile, or was never used
	case errors.Is(err, remote.ErrNoObjectStore):
		return nil, backoff.Permanent(fmt.Errorf("the node %s cannot export: %w", p.Node, err))
	case err != nil:
		return nil, err
	}
	err = w.Store.NoteExport(ctx, k, p.Generation, store.Export{Turn: what.Turn, Seq: what.Seq, Snapshot: snapshot})
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	return nil, nil
}

// export makes a snapshot, copies it, and removes the one of the last export. If
// there is no room, it removes that one first; all others belong to checkpoints.
func (w *Workspaces) export(ctx context.Context, k store.Key, p store.Place, epoch int64, what exporting) (string, error) {
	name, after := what.Turn, "after turns/"+what.Turn
	if what.Name != "" {
		name, after = what.Name, "after files were restored"
	}
	ref := func(step string) *commonv1.CallRef {
		return &commonv1.CallRef{
			Session: "sessions/" + k.Session, Epoch: epoch, CallId: fmt.Sprintf("%s.export.%d.%s", name, p.Generation, step),
			Node: p.Node, WorkspaceGeneration: p.Generation,
		}
	}
	create := func(call string) (string, error) {
		return w.Sandbox.CreateSnapshot(ctx, ref(call), after)
	}
	id, err := create("snapshot")
	if errors.Is(err, remote.ErrTooManySnapshots) && p.Export.Snapshot != "" {
		if err := w.Sandbox.DeleteSnapshots(ctx, ref("room"), p.Export.Snapshot); err != nil {
			return "", err
		}
		id, err = create("again") // a call's failure is its final answer
	}
	if err != nil {
		return "", err
	}
	if err := w.Sandbox.ExportSnapshots(ctx, ref("copy")); err != nil {
		return "", err
	}
	if last := p.Export.Snapshot; last != "" && last != id {
		err := w.Sandbox.DeleteSnapshots(ctx, ref("last"), last)
		if err != nil && !errors.Is(err, remote.ErrNoSnapshot) {
			w.Nodes.Log.WarnContext(ctx, "the snapshot of the last export stays", "session", k.Session, "error", err)
		}
	}
	return id, nil
}

// vacating is the body of a JobVacate.
type vacating struct {
	Session    string `json:"session"`
	Node       string `json:"node"`
	Generation int64  `json:"generation"`
}

// VacateJob returns the job that deletes the files of a place that the
// workspace has left. It outlives the session, because the node may come back
// at any time.
func VacateJob(k store.Key, p store.Place) store.Job {
	body, err := json.Marshal(vacating{k.Session, p.Node, p.Generation})
	if err != nil {
		panic(err) // strings and a number always encode
	}
	return store.Job{Tenant: k.Tenant, Kind: store.JobVacate, ID: fmt.Sprintf("%s/%d", k.Session, p.Generation), Body: body}
}

// Vacate does a VacateJob: when the node answers, or until it is no longer configured. After a
// planned move it deletes the files only after they have arrived on the other node: they are
// needed if the copy in the object store turns out to be damaged.
func (w *Workspaces) Vacate(ctx context.Context, j store.Job) (*store.Job, error) {
	var what vacating
	if err := json.Unmarshal(j.Body, &what); err != nil {
		return nil, backoff.Permanent(fmt.Errorf("read the job that clears a former place: %w", err))
	}
	if !w.Nodes.Known(what.Node) {
		w.Nodes.Log.InfoContext(ctx, "a node that is no longer configured keeps its copy of a workspace", "node", what.Node, "session", what.Session)
		return nil, nil
	}
	p, _, err := w.Store.PlaceOf(ctx, store.Key{Tenant: j.Tenant, Session: what.Session})
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	if p.Restore && !p.Left.Lost() && p.Generation > what.Generation {
		return &store.Job{Body: j.Body, Attempt: j.Attempt, After: min(again, w.Nodes.LostAfter, arriving<<min(j.Attempt, 10))}, nil
	}
	err = w.Sandbox.DeleteWorkspace(ctx, remote.Place{Session: "sessions/" + what.Session, Node: what.Node, Generation: what.Generation})
	if err == nil {
		return nil, nil
	}
	w.Nodes.Log.DebugContext(ctx, "a former place is not empty yet", "node", what.Node, "session", what.Session, "error", err)
	return &store.Job{Body: j.Body, Attempt: j.Attempt, After: min(again, w.Nodes.LostAfter)}, nil
}

// DeleteWorkspace deletes the workspace on its node and in the object store, and
// finally records that the session has no place. If the node is lost, another one
// deletes the exports, and a job deletes the files on the lost node later.
func (w *Workspaces) DeleteWorkspace(ctx context.Context, session string) error {
	if !w.Nodes.Managed() {
		return w.Sandbox.DeleteWorkspace(ctx, remote.Place{Session: session})
	}
	k := request.Key(ctx, session)
	p, _, err := w.Store.PlaceOf(ctx, k)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	at := p.Node
	if at != "" && w.Nodes.Lost(at) {
		if err := w.Store.PutJobs(ctx, []store.Job{VacateJob(k, p)}); err != nil {
			return err
		}
		if at = w.Nodes.Choose(k, at); at == "" {
			return fmt.Errorf("no sandbox node answers, so the export of %s cannot be deleted", session)
		}
	}
	err = w.Sandbox.DeleteWorkspace(ctx, remote.Place{Session: session, Node: at})
	if err == nil && p.Node != "" {
		err = w.Store.ForgetPlace(ctx, k)
	}
	return err
}

// Owned returns a session, and refuses one that has no workspace of its own.
func (w *Workspaces) Owned(ctx context.Context, session string) (*sessionv1.Session, error) {
	found, err := w.Store.GetSession(ctx, request.Key(ctx, session))
	if found.GetParentCall() != nil {
		return nil, refusal.SubagentSession(session) // the files are its root's
	}
	return found, refusal.Store(err, refusal.Subject{Session: session})
}

// At returns the place of the session's workspace, and refuses one whose files are not there.
func (w *Workspaces) At(ctx context.Context, session string) (store.Place, error) {
	place, _, err := w.Store.PlaceOf(ctx, request.Key(ctx, session))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return place, refusal.Store(err, refusal.Subject{Session: session})
	}
	if place.Restore {
		return place, refusal.ToBeRestored(session)
	}
	return place, nil
}

// In returns the place of a session's workspace for the sandbox.
func In(p store.Place, session string) remote.Place {
	return remote.Place{Session: session, Node: p.Node, Generation: p.Generation}
}

// LostWorkspace returns the error of a request in a workspace that its node has lost.
func LostWorkspace(err error, place store.Place, session string) error {
	if errors.Is(err, remote.ErrNoWorkspace) && place.Made {
		return refusal.ToBeRestored(session)
	}
	return err
}

// Unread returns the error of a read of a file. A session without a workspace has no files.
func Unread(err error, place store.Place, session, path string) error {
	err = LostWorkspace(err, place, session)
	if errors.Is(err, remote.ErrNoWorkspace) {
		return refusal.NoWorkspaceYet(path)
	}
	return apierr.Forward(err)
}

// ExportWorkspace reads the workspace from its node. A node that does not have a workspace
// that was made has lost it.
func (w *Workspaces) ExportWorkspace(ctx context.Context, session string) (io.Reader, error) {
	var p store.Place
	if w.Nodes.Managed() {
		var err error
		p, _, err = w.Store.PlaceOf(ctx, request.Key(ctx, session))
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
	}
	if p.Restore {
		return nil, refusal.ToBeRestored(session)
	}
	files, err := w.Sandbox.ExportWorkspace(ctx, In(p, session))
	return files, LostWorkspace(err, p, session)
}

// Place assigns a place to a session that is about to be created, unless it has
// one, and puts it into a call.
func (n *Nodes) Place(ctx context.Context, s store.Places, call *commonv1.CallRef) error {
	if n == nil {
		return nil
	}
	k := request.Key(ctx, call.GetSession())
	p, err := s.PlaceNew(ctx, k, store.Place{Node: n.First(k), Generation: 1})
	if err != nil {
		return err
	}
	call.Node, call.WorkspaceGeneration = p.Node, p.Generation
	return nil
}

// Made records that the workspace was made in the place of a call (see Place). The
// caller records it before it answers its own caller. If the workspace has left the
// place meanwhile, the new files do not count and are deleted, and Made returns
// refusal.ToBeRestored.
func (n *Nodes) Made(ctx context.Context, s interface {
	store.Places
	PutJobs(ctx context.Context, jobs []store.Job) error
}, call *commonv1.CallRef,
) error {
	if n == nil {
		return nil
	}
	k, in := request.Key(ctx, call.GetSession()), store.Place{Node: call.GetNode(), Generation: call.GetWorkspaceGeneration()}
	err := s.NoteMade(ctx, k, in.Generation)
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if err := s.PutJobs(ctx, []store.Job{VacateJob(k, in)}); err != nil { // the job of the move may have ended
		return err
	}
	return refusal.ToBeRestored(call.GetSession())
}
