package turn

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// keepFiles makes the checkpoint that the agent wants for a step. It precedes the first
// call of the step that may change something, even one that the agent's list does not
// name, because a rewind goes back to before all of them. uses are the calls of message m
// that are about to be made. A successor asks with the same call id and gets the same
// snapshot, even if the calls have begun meanwhile. The returned errors end the worker.
func (w *Worker) keepFiles(ctx, parent context.Context, m *sessionv1.Message, uses []*sessionv1.ToolUse) error {
	t, n := w.Active, w.Active.Step()
	kept := t.Run.Files
	if kept != nil && (kept.Step == n || kept.Step == 0 && w.answered != m.Name) {
		return nil
	}
	changes, named := w.mayChangeOne(t, uses), w.wantsOne(t, uses)
	if wanted := named || changes && w.wantsOne(t, state.ToolUses(m)); !wanted {
		if kept == nil && changes {
			t.Run.Files = &state.Files{Step: -1} // written with the next result at the latest
		}
		return nil
	}
	snapshot, err := w.takeSnapshot(ctx, fmt.Sprintf("%s.%d.files", t.ID, n), fmt.Sprintf("before step %d of turns/%s", n, t.ID))
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the loop sees why
	}
	if w.Log.Err() != nil {
		return w.Log.Err()
	}
	if w.answered != m.Name && apierr.Reason(err) == "WORKSPACE_NOT_FOUND" {
		return nil // the earlier worker began no call: the workspace is made before the first one
	}
	next := state.Files{Snapshot: snapshot}
	if kept != nil {
		next = *kept
	}
	next.Step = n
	t.Run.Files = &next
	if err != nil {
		return w.filesNotKept(ctx, parent, kept == nil, err)
	}
	return w.stepCheckpoint(parent, m, snapshot)
}

// knowFiles makes sure that the turn knows its snapshot before it handles calls
// that may have begun. The write that names the snapshot may have died with the
// worker that began them. The snapshot still exists, and a repeated request
// returns it.
func (w *Worker) knowFiles(ctx context.Context, m *sessionv1.Message) error {
	if w.answered == m.Name {
		return nil // this worker knows what it has begun
	}
	return w.keepFiles(ctx, ctx, m, w.mayHaveBegun(m))
}

// filesNotKept stores that a step has no checkpoint. It is synced before the
// step's calls begin: a successor must not snapshot files that they have changed.
func (w *Worker) filesNotKept(ctx, parent context.Context, first bool, err error) error {
	write := store.Write{Turns: []*store.TurnRow{w.Active.Row()}}
	if status.Code(err) != codes.Unimplemented { // otherwise the node has no snapshots at all
		w.Logger.WarnContext(ctx, "cannot keep the files of a turn", "session", w.Lease.Session, "turn", w.Active.ID, "step", w.Active.Step(), "error", err)
		what, then := "step", "There is no checkpoint of this step to rewind to."
		if first {
			what, then = "turn", "There is no checkpoint to rewind to, and rolling the turn back will leave the files as they are."
		}
		write.Events = []*sessionv1.Event{w.Event(w.Active.Step(), &sessionv1.Event{Body: &sessionv1.Event_Warning{Warning: &sessionv1.Warning{
			Reason: "FILES_NOT_KEPT", Message: "What the files were before this " + what + " could not be kept: " + state.Explain(err) + " " + then,
		}}})}
	}
	return w.Log.Commit(parent, write)
}

// stepCheckpoint adds the checkpoint of the current step: before its model call.
func (w *Worker) stepCheckpoint(ctx context.Context, m *sessionv1.Message, snapshot string) error {
	t, n := w.Active, w.Active.Step()
	var tools []string
	for _, u := range state.ToolUses(m) {
		if w.wantsCheckpoint(t, u.Tool) && !slices.Contains(tools, u.Tool) {
			tools = append(tools, u.Tool)
		}
	}
	c := &sessionv1.Checkpoint{
		Name: w.Name("checkpoints", fmt.Sprintf("%s-%d", t.ID, n)), Automatic: true,
		Description: cut(fmt.Sprintf("Before step %d: %s", n, strings.Join(tools, ", ")), 1000),
		Turn:        t.Proto.Name, Step: n, Head: m.Parent, AfterSeq: w.Log.Seq(), Snapshot: snapshot,
	}
	if t.Run.Began > 0 { // not in a step that an older version began
		c.AfterSeq = t.Run.Began - 1
	}
	write := store.Write{Turns: []*store.TurnRow{t.Row()}}
	if err := w.addCheckpoint(ctx, &write, c); err != nil {
		return err
	}
	return w.Log.Append(ctx, write)
}

func cut(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most])
	}
	return text
}

// takeSnapshot makes the snapshot of a call, and makes room for it if necessary. A
// call's failure is its final answer, so the second attempt uses another id.
func (w *Worker) takeSnapshot(ctx context.Context, call, description string) (string, error) {
	create := func(call string) (id string, err error) {
		err = w.patiently(ctx, w.tellAway(ctx, "The files cannot be kept now"), func() error {
			made, err := w.deps.Snapshots.CreateSnapshot(ctx, &sandboxv1.CreateSnapshotRequest{
				Call: w.CallRef(call), Description: description,
			})
			id = made.GetSnapshot().GetId()
			return err
		})
		return id, err
	}
	id, err := create(call)
	if apierr.Reason(err) != "TOO_MANY_SNAPSHOTS" {
		return id, err
	}
	if err := w.makeRoom(ctx, call+".room"); err != nil {
		return "", err
	}
	return create(call + ".again")
}

// restoreFiles restores the files from before a turn and reports whether it
// succeeded. No call of the turn runs any more.
func (w *Worker) restoreFiles(ctx context.Context, t *state.Turn) bool {
	if t.Run.Files == nil {
		return true // no call was made that may have changed a file
	}
	if t.Run.Files.Snapshot == "" {
		return false
	}
	err := w.unsealed(ctx)
	if err == nil {
		err = w.patiently(ctx, w.tellAway(ctx, "The files cannot be brought back now"), func() error {
			_, err := w.deps.Snapshots.RestoreSnapshot(ctx, &sandboxv1.RestoreSnapshotRequest{
				Call: w.CallRef(t.ID + ".files.back"), Snapshot: t.Run.Files.Snapshot,
			})
			return err
		})
	}
	if err != nil {
		w.Logger.WarnContext(ctx, "cannot bring back the files of a turn", "session", w.Lease.Session, "turn", t.ID, "error", err)
	}
	return err == nil
}

// mayChange reports whether a call of a tool may change something.
func (w *Worker) mayChange(t *state.Turn, tool string) bool {
	return tool != state.TodoTool && !w.readOnlyTools[tool] && t.Client[tool] == nil
}

// mayChangeOne reports whether one of several calls may change something.
func (w *Worker) mayChangeOne(t *state.Turn, uses []*sessionv1.ToolUse) bool {
	return slices.ContainsFunc(uses, func(u *sessionv1.ToolUse) bool { return w.mayChange(t, u.Tool) })
}

// wantsOne reports whether a checkpoint is wanted before one of several calls. It
// skips the client's calls and finish, which are not made here.
func (w *Worker) wantsOne(t *state.Turn, uses []*sessionv1.ToolUse) bool {
	return slices.ContainsFunc(uses, func(u *sessionv1.ToolUse) bool {
		return t.Client[u.Tool] == nil && !w.IsFinish(u) && w.wantsCheckpoint(t, u.Tool)
	})
}

// wantsCheckpoint reports whether a checkpoint is wanted before a tool's calls.
func (w *Worker) wantsCheckpoint(t *state.Turn, tool string) bool {
	wanted := w.Spec.Checkpoints
	if wanted == nil {
		wanted = w.deps.Checkpoints.Tools
	}
	return slices.ContainsFunc(wanted, func(pattern string) bool {
		if pattern == "*" {
			return w.mayChange(t, tool)
		}
		begin, open := strings.CutSuffix(pattern, "*")
		return tool == pattern || open && strings.HasPrefix(tool, begin)
	})
}
