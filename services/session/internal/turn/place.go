package turn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// A session's workspace has a place: a node and a generation (package placement). The
// worker assigns it, and assigns another one when the node is lost. First it commits
// the new place; from then on no request can change anything in the old place. Then
// the new node fetches the last export. Only when the files are there, the model
// learns what is lost, and the turn goes on. A worker that takes over in between
// finds Place.Restore set and does the same.

// ensurePlace gives the workspace its place before the turn goes on, or a new one when
// its node is lost. It reports whether the workspace has moved.
func (w *Worker) ensurePlace(ctx, parent context.Context) (moved bool, err error) {
	if !w.deps.Nodes.Managed() || len(w.Spec.Tools) == 0 || ctx.Err() != nil {
		return false, nil //nolint:nilerr // the loop sees why
	}
	if err := w.unsealed(ctx); err != nil {
		if ctx.Err() != nil {
			return false, nil //nolint:nilerr // the loop sees why
		}
		return false, w.fail(parent, store.Write{}, sessionv1.ErrorReason_ERROR_REASON_TOOLS_UNAVAILABLE,
			"The workspace was about to move to another machine, stays where it is, and cannot be used again: "+state.Explain(err)+" Send the message again later.")
	}
	p := w.Place()
	switch {
	case p.Node == "":
		return false, w.placeNew(parent, p)
	case w.deps.Nodes.Lost(p.Node): // perhaps before the files had arrived
		to := w.deps.Nodes.Choose(w.Lease.Key, p.Node)
		if to == "" && !p.Restore {
			return false, nil // there is no other node: the turn waits for this one, and fails as with a single node
		}
		if to != "" {
			if err := w.leave(parent, p, to, store.NodeLost); err != nil {
				return false, err
			}
		}
	case p.Restore:
	case w.isGone(p):
		if err := w.leave(parent, p, w.insteadOf(p.Node), store.DiskLost); err != nil {
			return false, err
		}
	case w.deps.Nodes.Drained(p.Node):
		left, err := w.handOver(ctx, parent, p)
		if err == nil && !left && (w.deps.Nodes.Lost(p.Node) || w.isGone(p)) { // found out meanwhile
			return w.ensurePlace(ctx, parent)
		}
		if err != nil || !left {
			return false, err
		}
	default:
		return false, nil
	}
	return true, w.bring(ctx, parent)
}

// wasMade reports whether a call is for a place in which the workspace is known to have
// been made. The node must have it then: a node that has lost its disk would make an empty
// one, and the next export would replace the last copy.
func (w *Worker) wasMade(ref *commonv1.CallRef) bool {
	p := w.Place()
	return w.deps.Nodes.Managed() && p.Node != "" && p.Made && !p.Restore && p.Generation == ref.WorkspaceGeneration
}

// noteMade stores, once, that the workspace was made in a place. Later appends, such as
// the results of calls in the workspace, are not committed before it. Whatever dies with
// the worker before that was never reported.
func (w *Worker) noteMade(ctx context.Context, generation int64) error {
	p := w.Place()
	if !w.deps.Nodes.Managed() || p.Node == "" || p.Made || p.Restore || p.Generation != generation {
		return nil
	}
	if err := w.Log.Append(ctx, store.Write{Made: generation}); err != nil {
		return err
	}
	made := p
	made.Made = true
	w.ReplacePlace(p, made) // where something else was changed meanwhile, it is noted once more
	return nil
}

// isGone reports whether the node of a place has answered that it no longer has the
// workspace that was made there.
func (w *Worker) isGone(p store.Place) bool {
	return p.Generation > 0 && p.Node != "" && !p.Restore && w.gone.Load() == p.Generation
}

// insteadOf returns the new node of a workspace that its node has lost: the same node,
// which answers, unless that one is drained.
func (w *Worker) insteadOf(name string) string {
	if !w.deps.Nodes.Drained(name) {
		return name
	}
	return cmp.Or(w.deps.Nodes.Choose(w.Lease.Key, name), name)
}

// placeNew gives a workspace its first place. The place is durable before any call
// is: the assistant's message is committed after it.
func (w *Worker) placeNew(parent context.Context, was store.Place) error {
	p := store.Place{Node: w.deps.Nodes.First(w.Lease.Key), Generation: was.Generation + 1}
	if was.Generation == 0 && (w.Proto.FinishedTurns > 0 || w.Active != nil && w.Active.Proto.Steps > 0) {
		p.Node = w.deps.Nodes.Names[0] // made when there was only one
	}
	w.SetPlace(p)
	return w.Log.Append(parent, store.Write{Place: &p})
}

// handOver exports the workspace and leaves a drained node, and reports whether it
// did. It does not leave between the calls of one message, nor when there is no other
// node.
func (w *Worker) handOver(ctx, parent context.Context, p store.Place) (bool, error) {
	to := w.deps.Nodes.Choose(w.Lease.Key, p.Node)
	if last := w.Last(); to == "" || w.deps.Nodes.Stays(w.Lease.Key) || last == nil || last.Role != sessionv1.Role_ROLE_USER {
		return false, nil
	}
	ctx, stop := w.untilLost(ctx)
	defer stop()
	call := fmt.Sprintf("%s.leave.%d", w.Lease.Session, p.Generation)
	err := w.ensureWorkspace(ctx, w.CallRef(call), w.tellAway(ctx, "The workspace cannot be made now")) // it may have been meant to be made just now
	if err == nil {
		err = w.takeAlong(ctx, p)
	}
	switch {
	case nodeLost(ctx) && err != nil:
		return false, nil
	case ctx.Err() != nil && !nodeLost(ctx):
		_ = w.unseal(parent) // else before the workspace is next used
		return false, nil
	case err != nil:
		w.deps.Nodes.Stay(w.Lease.Key)
		w.Logger.WarnContext(ctx, "the workspace cannot leave its node, which is drained", "session", w.Lease.Session, "node", p.Node, "error", err)
		return false, nil
	}
	return true, w.leave(parent, p, to, store.Planned)
}

// leave commits that the workspace has another place.
func (w *Worker) leave(parent context.Context, was store.Place, to string, why store.Why) error {
	p := leaving(was, to, why)
	w.Logger.WarnContext(parent, "the workspace moves to another node", "session", w.Lease.Session, "from", was.Node, "to", to, "generation", p.Generation, "why", why)
	err := w.Log.Commit(parent, store.Write{Place: &p, Jobs: []store.Job{placement.VacateJob(w.Lease.Key, was)}})
	if err == nil {
		w.SetPlace(p)
	}
	return err
}

// leaving returns the place of a workspace that leaves another one. The worker that restores
// the files there, perhaps in another turn, learns from it which copy counts and what to
// report. A place that the files never reached passes on the Left of the place before it.
func leaving(was store.Place, to string, why store.Why) store.Place {
	left := store.Left{Node: was.Node, Why: why}
	if was.Restore {
		left = was.Left
	}
	return store.Place{Node: to, Generation: was.Generation + 1, Restore: true, Left: left, Export: was.Export}
}

// arrived returns the place after its files have arrived.
func arrived(p store.Place) store.Place {
	p.Restore, p.Made, p.Left = false, true, store.Left{}
	return p
}

// bring has the node fetch the last export, and reports the loss to the model and
// in the log.
func (w *Worker) bring(ctx, parent context.Context) error {
	if err := w.learnExport(parent); err != nil {
		return err
	}
	p := w.Place()
	var exported string // after a move that was planned the last one counts, which was made for it
	if p.Left.Lost() {
		exported = p.Export.Snapshot
	}
	found, err := w.fetch(ctx, p, exported)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the loop sees why
	}
	if err != nil {
		return w.fail(parent, store.Write{}, sessionv1.ErrorReason_ERROR_REASON_TOOLS_UNAVAILABLE,
			"The workspace could not be made again from its last copy ("+leftHow(p.Left)+"): "+state.Explain(err)+" Check the object store, then send the message again.")
	}
	body, left := w.movedBody(p, found), p.Left
	p = arrived(p)
	write := store.Write{
		Place: &p, StepCommitted: true,
		Events: []*sessionv1.Event{w.Event(w.Active.Step(), &sessionv1.Event{Body: &sessionv1.Event_WorkspaceMoved{WorkspaceMoved: body}})},
	}
	if err := w.closeLost(ctx, &write, left); err != nil {
		return err
	}
	w.AddMessage(&write, w.NewMessage(sessionv1.Role_ROLE_USER, w.Active.Proto.Steps, []*sessionv1.Block{state.TextBlock(body.Message)}))
	write.Turns = []*store.TurnRow{w.Active.Row()}
	w.SetPlace(p)
	if err := w.Log.Commit(parent, write); err != nil {
		return err
	}
	if left.Why == store.Planned {
		w.noteCopied(ctx, found)
	}
	return nil
}

// learnExport reads the last export, which jobs record while a worker holds the session. No
// export is recorded for a place after the workspace has left it.
func (w *Worker) learnExport(ctx context.Context) error {
	now, _, err := w.Store.PlaceOf(ctx, w.Lease.Key)
	if err != nil {
		return fmt.Errorf("read which copy of the workspace of session %s is the last: %w", w.Lease.Session, err)
	}
	p := w.Place()
	if now.Generation != p.Generation {
		return fmt.Errorf("%w: its workspace is in place %d, not in %d", store.ErrStaleEpoch, now.Generation, p.Generation)
	}
	p.Export = now.Export
	w.SetPlace(p)
	return nil
}

// fetch makes the workspace in its new place from the exported snapshot, or from the last
// one if that does not exist. Without any snapshot it makes an empty workspace and
// returns nil. Repeating it changes nothing.
func (w *Worker) fetch(ctx context.Context, p store.Place, exported string) (*sandboxv1.Snapshot, error) {
	ref := w.CallRef(fmt.Sprintf("%s.place.%d", w.Lease.Session, p.Generation))
	var made *sandboxv1.ImportSnapshotsResponse
	err := w.patiently(ctx, w.tellAway(ctx, "The workspace cannot be brought to its new node now"), func() (err error) {
		made, err = w.deps.Snapshots.ImportSnapshots(ctx, &sandboxv1.ImportSnapshotsRequest{Call: ref, WorkspaceGeneration: p.Generation, Snapshot: exported})
		return err
	})
	switch apierr.Reason(err) {
	case "SNAPSHOT_NOT_FOUND", "NO_OBJECT_STORE", "WORKSPACE_EXISTS": // WORKSPACE_EXISTS: an earlier attempt made it empty
		return nil, w.ensureWorkspace(ctx, ref, nil)
	}
	return made.GetSnapshot(), err
}

// closeLost gives a result to every call of the last message that has none. None
// of these calls is made: the model requested them before the loss. Calls that
// had begun are lost.
func (w *Worker) closeLost(ctx context.Context, write *store.Write, left store.Left) error {
	last := w.Last()
	if len(state.ToolUses(last)) == 0 {
		return nil
	}
	return w.endCalls(ctx, write, last, func(u *sessionv1.ToolUse) *sessionv1.ToolResult {
		return &sessionv1.ToolResult{
			CallId: u.CallId, Outcome: sessionv1.ToolOutcome_TOOL_OUTCOME_UNAVAILABLE,
			Content: []*commonv1.Content{state.Text("The call was not made: " + leftHow(left) + ". Look at the workspace as it is now, then decide anew.")},
		}
	})
}

// leftHow says how a workspace left its node, for people and the model.
func leftHow(left store.Left) string {
	switch left.Why {
	case store.Planned:
		return "the workspace had to move to another machine"
	case store.DiskLost:
		return "the machine that held the workspace has lost it"
	case store.NodeLost:
	}
	return "the machine that held the workspace is lost"
}

// movedBody returns the event of a moved workspace.
func (w *Worker) movedBody(p store.Place, found *sandboxv1.Snapshot) *sessionv1.WorkspaceMoved {
	m := &sessionv1.WorkspaceMoved{
		FromNode: p.Left.Node, ToNode: p.Node, Generation: p.Generation, Empty: found == nil,
		Cause: sessionv1.WorkspaceMoveCause_WORKSPACE_MOVE_CAUSE_NODE_LOST,
	}
	if p.Left.Why == store.Planned {
		m.Cause, m.RestoredTime = sessionv1.WorkspaceMoveCause_WORKSPACE_MOVE_CAUSE_PLANNED, found.GetCreateTime()
		m.Message = "Notice of the system, not of the user: the workspace is on another machine now, " + asOf(found) + "." +
			" Commands in the background have ended, and the home directory and /tmp are empty."
		return m
	}
	const end = " What ran in the workspace has ended, commands in the background as well, and the home directory and /tmp are empty." +
		" Commands that were running may have taken effect outside of the workspace: check before you repeat them."
	begin := "Notice of the system, not of the user: " + leftHow(p.Left) + ". "
	if found == nil {
		m.Message = begin + "There was no copy of the workspace: it is empty now, and all files that were in it are lost." + end
		return m
	}
	at, void := found.GetCreateTime(), p.Export.Void() || p.Export.Turn != "" && !w.onPath(p.Export.Turn)
	if void || found.GetId() != p.Export.Snapshot {
		p.Export = store.Export{} // another snapshot: the turn of its files is unknown
	}
	if p.Export.Turn != "" {
		m.RestoredTurn, m.RestoredSeq = w.Name("turns", p.Export.Turn), p.Export.Seq
	}
	if at == nil && !p.Export.Time.IsZero() {
		at = timestamppb.New(p.Export.Time)
	}
	m.RestoredTime = at
	since := w.since(p)
	if void {
		since = ", and may be from before you were taken back to an earlier point: changes that were undone then may be there again, and files that were brought back may be missing"
	}
	m.Message = begin + fmt.Sprintf("The workspace was made again from its last copy, of %s%s. All that was done to its files since then is lost.",
		at.AsTime().UTC().Format(time.RFC3339), since) + end
	return m
}

// onPath reports whether the conversation has a message of a turn.
func (w *Worker) onPath(turn string) bool {
	name := w.Name("turns", turn)
	return slices.ContainsFunc(w.Path, func(m *sessionv1.Message) bool { return m.Turn == name })
}

// since tells the model how many of its turns an export may lack. An export has the
// changes of its own turn, and those that later turns had made when it was taken.
func (w *Worker) since(p store.Place) string {
	if p.Export.Turn == "" {
		return ""
	}
	name, later := w.Name("turns", p.Export.Turn), map[string]bool{}
	for _, m := range slices.Backward(w.Path) {
		if m.Turn == name {
			break
		}
		if m.Role == sessionv1.Role_ROLE_ASSISTANT && len(state.ToolUses(m)) > 0 {
			later[m.Turn] = true
		}
	}
	if len(later) == 0 {
		return ", which has everything up to your last answer"
	}
	return fmt.Sprintf(", which may have nothing, or only a part, of the last %d turns in which you used tools", len(later))
}

// exportAfter adds a job that exports the workspace after the turn's end, if a call
// of the turn may have changed it.
func (w *Worker) exportAfter(write *store.Write, t *state.Turn) {
	p := w.Place()
	if !w.deps.Export || p.Node == "" || p.Restore || !w.changed(t) {
		return
	}
	write.Jobs = append(write.Jobs, placement.ExportJob(w.Lease.Key, t.ID, w.Log.Seq()+int64(len(write.Events))))
}

// changed reports whether a call of the turn may have changed the workspace.
func (w *Worker) changed(t *state.Turn) bool {
	return slices.ContainsFunc(w.Path, func(m *sessionv1.Message) bool {
		return t.Owns(m.Turn) && slices.ContainsFunc(state.ToolUses(m), func(u *sessionv1.ToolUse) bool { return w.mayChange(t, u.Tool) })
	})
}

// nodeLost reports whether a context has ended because the workspace's node is
// lost.
func nodeLost(ctx context.Context) bool { return errors.Is(context.Cause(ctx), placement.ErrLost) }

// untilLost ends a context when the workspace's node is lost, if there is another
// node. The caller must call stop.
func (w *Worker) untilLost(ctx context.Context) (_ context.Context, stop func()) {
	p := w.Place()
	if p.Node == "" || !w.deps.Nodes.Managed() {
		return ctx, func() {}
	}
	return w.deps.Nodes.Until(ctx, w.Lease.Key, p.Node)
}
