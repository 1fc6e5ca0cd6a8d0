package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// Move moves the workspace of an idle session off a drained node. A turn moves its own workspace.
// Move calls before once the workspace is about to leave. A failed move changes nothing: the
// move is requested again, or the next turn does it.
func (m *Mover) Move(sc state.Scope, c store.Command, before func() error) error {
	var from placement.Move
	if err := json.Unmarshal(c.Body, &from); err != nil {
		return fmt.Errorf("read the request to move a workspace: %w", err)
	}
	p, done := sc.Place(), store.Write{Consume: []int64{c.ID}}
	arriving := p.Restore && p.Generation == from.Generation+1 && !p.Left.Lost() // an earlier holder came this far
	if sc.Active != nil || !m.nodes.Managed() || !arriving && (p.Restore || p.Node != from.Node || p.Generation != from.Generation) {
		return sc.Append(done)
	}
	if !arriving {
		if err := before(); err != nil {
			return err
		}
		left, err := m.leaveIdle(sc, p) // this replica may not know yet that the node is drained
		if err != nil || !left {
			return m.moveFailed(sc, c, from, err)
		}
		if p = sc.Place(); p.Left.Lost() {
			return sc.Append(done) // the next turn restores the last copy, and tells the model
		}
	}
	if err := errors.Join(sc.LoadPath(sc.Outlasting()), m.learnExport(sc)); err != nil {
		return err
	}
	p = sc.Place()
	found, err := m.fetch(sc, p, "")
	if err != nil {
		return m.moveFailed(sc, c, from, err)
	}
	p = arrived(p)
	done.Place = &p
	done.Events = []*sessionv1.Event{{Body: &sessionv1.Event_WorkspaceMoved{WorkspaceMoved: &sessionv1.WorkspaceMoved{
		FromNode: from.Node, ToNode: p.Node, Generation: p.Generation, Empty: found == nil, RestoredTime: found.GetCreateTime(),
		Cause:   sessionv1.WorkspaceMoveCause_WORKSPACE_MOVE_CAUSE_PLANNED,
		Message: "The workspace is on another machine now, " + describeCopy(found) + ". Commands in the background have ended, and the home directory and /tmp are empty.",
	}}}}
	sc.SetPlace(p)
	if err := sc.Commit(done); err != nil {
		return err
	}
	m.recordCopy(sc, found)
	return nil
}

// recordCopy makes the copy that the workspace has moved with its last export. That copy is
// newer than the one before: it is the one to restore if the node is lost before the next
// export.
func (m *Mover) recordCopy(sc state.Scope, found *sandboxv1.Snapshot) {
	p := sc.Place()
	old := p.Export.Snapshot
	if found == nil || found.GetId() == old {
		return
	}
	p.Export = store.Export{Turn: lastTurn(sc), Seq: sc.Log.Seq(), Snapshot: found.GetId(), Time: found.GetCreateTime().AsTime()}
	if err := sc.Store.NoteExport(sc, sc.Lease.Key, p.Generation, p.Export); err != nil {
		sc.Logger.WarnContext(sc, "cannot record the copy that a workspace moved with as its last", "session", sc.Lease.Session, "error", err)
		return
	}
	sc.SetPlace(p)
	if old != "" {
		m.copies.drop(sc, old, sc.CallRef(fmt.Sprintf("%s.place.%d.old", sc.Lease.Session, p.Generation)))
	}
}

// lastTurn returns the last turn that has ended, according to the conversation.
func lastTurn(sc state.Scope) string {
	for _, m := range slices.Backward(sc.Path) {
		if sc.Active == nil || !sc.Active.Owns(m.Turn) {
			return state.LastSegment(m.Turn)
		}
	}
	return ""
}

// leaveIdle exports the workspace and commits its new place, if there is a node to
// move to.
func (m *Mover) leaveIdle(sc state.Scope, was store.Place) (bool, error) {
	to := m.nodes.Choose(sc.Lease.Key, was.Node)
	if to == "" {
		return false, nil
	}
	why, err := store.Planned, m.makeIdle(sc, was)
	if err == nil {
		err = m.copies.exportAndSeal(sc, was)
	}
	switch {
	case was.Made && errors.Is(err, remote.ErrNoWorkspace):
		why = store.DiskLost
	case err != nil:
		return false, err
	}
	p := leaving(was, to, why)
	err = sc.Commit(store.Write{PlaceChange: store.PlaceChange{Place: &p}, Jobs: []store.Job{placement.VacateJob(sc.Lease.Key, was)}})
	if err != nil {
		return false, err
	}
	sc.Logger.InfoContext(sc, "the workspace of an idle session moves to another node", "session", sc.Lease.Session, "from", was.Node, "to", to, "generation", p.Generation, "why", why)
	sc.SetPlace(p)
	return true, nil
}

// makeIdle makes a workspace that has a place but was not made yet. Another request may
// be about to make it, and only an existing workspace can be sealed.
func (m *Mover) makeIdle(sc state.Scope, p store.Place) error {
	ref := sc.CallRef(fmt.Sprintf("%s.leave.%d", sc.Lease.Session, p.Generation))
	err := m.copies.briefly(sc, func() error {
		_, err := m.sandbox.EnsureWorkspace(sc, &sandboxv1.EnsureWorkspaceRequest{Call: ref, MustExist: m.maker.wasMade(sc, ref)})
		return err
	})
	if err != nil {
		return err
	}
	return m.maker.recordMade(sc, p.Generation)
}

// describeCopy describes the files of a moved workspace, for people and for the model.
func describeCopy(found *sandboxv1.Snapshot) string {
	if found == nil {
		return "and empty, because there was no copy of its files"
	}
	return "with its files as they were at " + found.GetCreateTime().AsTime().UTC().Format(time.RFC3339)
}

// moveFailed gives up the move for now.
func (m *Mover) moveFailed(sc state.Scope, c store.Command, from placement.Move, err error) error {
	if sc.Ended() || sc.Log.Err() != nil {
		return fmt.Errorf("move the workspace of session %s: %w", sc.Lease.Session, context.Cause(sc))
	}
	if err != nil {
		sc.Logger.WarnContext(sc, "the workspace cannot leave its node, which is drained", "session", sc.Lease.Session, "node", from.Node, "error", err)
	}
	if err := m.copies.unsealAgain(sc); err != nil { // this holder may be gone before the workspace is next used
		sc.Logger.WarnContext(sc, "the workspace stays sealed until the next turn, or until it is asked to leave again", "session", sc.Lease.Session, "node", from.Node, "error", err)
	}
	return sc.Append(store.Write{Consume: []int64{c.ID}})
}
