package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// takeMove moves the workspace of an idle session off a drained node. A turn moves
// its own workspace. A failed move changes nothing: the move is requested again, or
// the next turn does it.
func (w *Worker) takeMove(ctx context.Context, c store.Command) error {
	var from placement.Move
	if err := json.Unmarshal(c.Body, &from); err != nil {
		return fmt.Errorf("read what a workspace is to leave: %w", err)
	}
	p, done := w.Place(), store.Write{Consume: []int64{c.ID}}
	arriving := p.Restore && p.Generation == from.Generation+1 && !p.Left.Lost() // an earlier holder came this far
	if w.Active != nil || !w.deps.Nodes.Managed() || !arriving && (p.Restore || p.Node != from.Node || p.Generation != from.Generation) {
		return w.Log.Append(ctx, done)
	}
	if !arriving {
		if err := w.compactFirst(ctx); err != nil {
			return err
		}
		left, err := w.leaveAtRest(ctx, p) // this replica may not know yet that the node is drained
		if err != nil || !left {
			return w.moveFailed(ctx, c, from, err)
		}
		if p = w.Place(); p.Left.Lost() {
			return w.Log.Append(ctx, done) // the next turn restores the last copy, and tells the model
		}
	}
	if err := errors.Join(w.LoadPath(ctx), w.learnExport(ctx)); err != nil {
		return err
	}
	p = w.Place()
	found, err := w.fetch(ctx, p, "")
	if err != nil {
		return w.moveFailed(ctx, c, from, err)
	}
	p = arrived(p)
	done.Place = &p
	done.Events = []*sessionv1.Event{{Body: &sessionv1.Event_WorkspaceMoved{WorkspaceMoved: &sessionv1.WorkspaceMoved{
		FromNode: from.Node, ToNode: p.Node, Generation: p.Generation, Empty: found == nil, RestoredTime: found.GetCreateTime(),
		Cause:   sessionv1.WorkspaceMoveCause_WORKSPACE_MOVE_CAUSE_PLANNED,
		Message: "The workspace is on another machine now, " + asOf(found) + ". Commands in the background have ended, and the home directory and /tmp are empty.",
	}}}}
	w.SetPlace(p)
	if err := w.Log.Commit(ctx, done); err != nil {
		return err
	}
	w.noteCopied(ctx, found)
	return nil
}

// noteCopied makes the copy that the workspace has moved with its last export. That copy is
// newer than the one before: it is the one to restore if the node is lost before the next
// export.
func (w *Worker) noteCopied(ctx context.Context, found *sandboxv1.Snapshot) {
	p := w.Place()
	old := p.Export.Snapshot
	if found == nil || found.GetId() == old {
		return
	}
	p.Export = store.Export{Turn: w.lastTurn(), Seq: w.Log.Seq(), Snapshot: found.GetId(), Time: found.GetCreateTime().AsTime()}
	if err := w.Store.NoteExport(ctx, w.Lease.Key, p.Generation, p.Export); err != nil {
		w.Logger.WarnContext(ctx, "the copy that a workspace has moved with does not count as its last", "session", w.Lease.Session, "error", err)
		return
	}
	w.SetPlace(p)
	if old != "" {
		w.dropLeft(ctx, old, w.CallRef(fmt.Sprintf("%s.place.%d.old", w.Lease.Session, p.Generation)))
	}
}

// lastTurn returns the last turn that has ended, according to the conversation.
func (w *Worker) lastTurn() string {
	for _, m := range slices.Backward(w.Path) {
		if w.Active == nil || !w.Active.Owns(m.Turn) {
			return state.LastSegment(m.Turn)
		}
	}
	return ""
}

// leaveAtRest exports the workspace and commits its new place, if there is a node to
// move to.
func (w *Worker) leaveAtRest(ctx context.Context, was store.Place) (bool, error) {
	to := w.deps.Nodes.Choose(w.Lease.Key, was.Node)
	if to == "" {
		return false, nil
	}
	why, err := store.Planned, w.makeAtRest(ctx, was)
	if err == nil {
		err = w.takeAlong(ctx, was)
	}
	switch {
	case was.Made && apierr.Reason(err) == "WORKSPACE_NOT_FOUND":
		why = store.DiskLost
	case err != nil:
		return false, err
	}
	p := leaving(was, to, why)
	err = w.Log.Commit(ctx, store.Write{Place: &p, Jobs: []store.Job{placement.VacateJob(w.Lease.Key, was)}})
	if err != nil {
		return false, err
	}
	w.Logger.InfoContext(ctx, "the workspace of a session that rests moves to another node", "session", w.Lease.Session, "from", was.Node, "to", to, "generation", p.Generation, "why", why)
	w.SetPlace(p)
	return true, nil
}

// makeAtRest makes a workspace that has a place but was not made yet. Another request may
// be about to make it, and only an existing workspace can be sealed.
func (w *Worker) makeAtRest(ctx context.Context, p store.Place) error {
	ref := w.CallRef(fmt.Sprintf("%s.leave.%d", w.Lease.Session, p.Generation))
	err := w.briefly(ctx, func() error {
		_, err := w.deps.Workspaces.EnsureWorkspace(ctx, &sandboxv1.EnsureWorkspaceRequest{Call: ref, MustExist: w.wasMade(ref)})
		return err
	})
	if err != nil {
		return err
	}
	return w.noteMade(ctx, p.Generation)
}

const (
	// leaveTries is how often a leaving workspace is copied at most before it is sealed.
	// It is copied again when the last copy took longer than leaveQuick: changes made
	// meanwhile are not in it and would have to be copied while the workspace is sealed.
	leaveTries = 4
	leaveQuick = time.Second
	// leaveSealed bounds how long the workspace is sealed before it leaves.
	leaveSealed = time.Minute
	// leavePatience is how long a move waits for a peer that is away. A move can wait, and
	// a turn must not wait for a move.
	leavePatience = 5 * time.Second
)

// takeAlong copies the workspace to the object store and leaves it sealed: the copy has
// everything that was answered, and no further request is answered. The caller must
// unseal the workspace if it does not leave.
func (w *Worker) takeAlong(ctx context.Context, p store.Place) (err error) {
	last := ""
	defer func() {
		if err != nil && last != "" {
			rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), fenceTimeout)
			defer cancel()
			w.dropLeft(rest, last, w.leaveRef(p, "failed"))
		}
	}()
	for range leaveTries {
		begun := time.Now()
		if last, err = w.copyOut(ctx, p, last); err != nil {
			return err
		}
		if time.Since(begun) < leaveQuick {
			break
		}
	}
	sealed, cancel := context.WithTimeout(ctx, leaveSealed)
	defer cancel()
	if err = w.seal(sealed, p); err == nil {
		last, err = w.copyOut(sealed, p, last)
	}
	if err != nil {
		_ = w.unseal(ctx) // otherwise it is unsealed before the workspace is next used
	}
	return err
}

// briefly is patiently with the patience of a move.
func (w *Worker) briefly(ctx context.Context, do func() error) error {
	return w.patientFor(ctx, min(leavePatience, w.PeerPatience), nil, do)
}

// leaveRef returns the reference of one request for a leaving workspace. Each request has an id
// of its own: a request with an old id gets the old answer.
func (w *Worker) leaveRef(p store.Place, step string) *commonv1.CallRef {
	return w.CallRef(fmt.Sprintf("%s.leave.%d.%d.%d.%s", w.Lease.Session, p.Generation, w.Lease.Epoch, time.Now().UnixNano(), step))
}

// copyOut copies the workspace and deletes the last copy, whose content is not sent again. It
// returns the copy that exists afterwards, also with an error; "" means none.
func (w *Worker) copyOut(ctx context.Context, p store.Place, last string) (string, error) {
	id, err := w.copyHere(ctx, w.leaveRef(p, "copy"))
	if last != "" && apierr.Reason(err) == "TOO_MANY_SNAPSHOTS" {
		w.dropLeft(ctx, last, w.leaveRef(p, "room"))
		last = ""
		id, err = w.copyHere(ctx, w.leaveRef(p, "again"))
	}
	if err != nil {
		return last, err
	}
	if last != "" {
		w.dropLeft(ctx, last, w.leaveRef(p, "last"))
	}
	return id, w.briefly(ctx, func() error {
		_, err := w.deps.Snapshots.ExportSnapshots(ctx, &sandboxv1.ExportSnapshotsRequest{Call: w.leaveRef(p, "export")})
		return err
	})
}

// copyHere makes a snapshot of the workspace on its node.
func (w *Worker) copyHere(ctx context.Context, call *commonv1.CallRef) (id string, err error) {
	err = w.briefly(ctx, func() error {
		made, err := w.deps.Snapshots.CreateSnapshot(ctx, &sandboxv1.CreateSnapshotRequest{Call: call, Description: "before the workspace leaves its node"})
		id = made.GetSnapshot().GetId()
		return err
	})
	return id, err
}

// seal forbids further changes of the workspace. A node of an older version cannot seal:
// its workspaces leave unsealed.
func (w *Worker) seal(ctx context.Context, p store.Place) error {
	call := w.CallRef(fmt.Sprintf("%s.seal.%d", w.Lease.Session, p.Generation))
	w.sealed = p.Generation
	err := w.briefly(ctx, func() error {
		_, err := w.deps.Workspaces.SealWorkspace(ctx, &sandboxv1.SealWorkspaceRequest{Call: call})
		return err
	})
	if status.Code(err) == codes.Unimplemented {
		w.Logger.WarnContext(ctx, "a workspace cannot be sealed before it leaves its node, for that runs an older version: what is changed there in the next moment may be lost", "session", w.Lease.Session, "node", p.Node)
		w.sealed = 0
		return nil
	}
	return err
}

// unseal allows changes again in a workspace that stays, if this worker has sealed it. A
// later holder need not unseal.
func (w *Worker) unseal(ctx context.Context) error {
	p := w.Place()
	if w.sealed == 0 || w.sealed != p.Generation {
		w.sealed = 0
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fenceTimeout)
	defer cancel()
	_, err := w.deps.Workspaces.UnsealWorkspace(ctx, &sandboxv1.UnsealWorkspaceRequest{
		Call: w.CallRef(fmt.Sprintf("%s.unseal.%d", w.Lease.Session, p.Generation)),
	})
	if err != nil && apierr.Reason(err) != "WORKSPACE_NOT_FOUND" {
		w.Logger.WarnContext(ctx, "a workspace stays sealed, though it does not leave its node", "session", w.Lease.Session, "node", p.Node, "error", err)
		return err
	}
	w.sealed = 0
	return nil
}

// unsealed lifts a seal of this worker before the workspace is used: its node may not have
// answered the first attempt. A lost workspace keeps its seal.
func (w *Worker) unsealed(ctx context.Context) error {
	if w.sealed == 0 || w.deps.Nodes.Lost(w.NodeName()) {
		return nil
	}
	ctx, stop := w.untilLost(ctx)
	defer stop()
	err := w.patiently(ctx, w.tellAway(ctx, "The workspace stays on its node, and cannot be used again now"), func() error { return w.unseal(ctx) })
	if nodeLost(ctx) {
		return nil
	}
	return err
}

// dropLeft deletes a snapshot of a move or an export that is not needed any more.
func (w *Worker) dropLeft(ctx context.Context, id string, call *commonv1.CallRef) {
	_, err := w.deps.Snapshots.DeleteSnapshots(ctx, &sandboxv1.DeleteSnapshotsRequest{Call: call, Snapshots: []string{id}})
	if err != nil {
		w.Logger.WarnContext(ctx, "a snapshot that is not needed any more stays", "session", w.Lease.Session, "snapshot", id, "error", err)
	}
}

// asOf describes the files of a moved workspace, for people and for the model.
func asOf(found *sandboxv1.Snapshot) string {
	if found == nil {
		return "and empty, for there was no copy of its files to bring"
	}
	return "with its files as they were at " + found.GetCreateTime().AsTime().UTC().Format(time.RFC3339)
}

// moveFailed gives up the move for now.
func (w *Worker) moveFailed(ctx context.Context, c store.Command, from placement.Move, err error) error {
	if ctx.Err() != nil || w.Log.Err() != nil {
		return fmt.Errorf("move the workspace of session %s: %w", w.Lease.Session, context.Cause(ctx))
	}
	if err != nil {
		w.Logger.WarnContext(ctx, "the workspace cannot leave its node, which is drained", "session", w.Lease.Session, "node", from.Node, "error", err)
	}
	if err := w.unsealed(ctx); err != nil { // this holder may be gone before the workspace is next used
		w.Logger.WarnContext(ctx, "the workspace stays sealed until the next turn, or until it is asked to leave again", "session", w.Lease.Session, "node", from.Node, "error", err)
	}
	return w.Log.Append(ctx, store.Write{Consume: []int64{c.ID}})
}
