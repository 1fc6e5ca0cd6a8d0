package turn

import (
	"context"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// keptSnapshots is how many snapshots of a session stay when there is no room for
// another.
const keptSnapshots = 100

// filesKept is the state of the workspace before the turn's first change.
type filesKept struct {
	Snapshot string `json:"snapshot,omitempty"` // empty when it could not be kept
	unknown  unknown
}

// keepFiles keeps what the workspace's files are before the turn's first call that
// may change them, so that they can be brought back. A successor asks by the same
// call id and gets the same snapshot. The error is one that ends the worker.
func (w *Worker) keepFiles(ctx, parent context.Context, uses []*sessionv1.ToolUse) error {
	t := w.active
	if t.run.Files != nil || !slices.ContainsFunc(uses, func(u *sessionv1.ToolUse) bool { return w.mayChange(t, u.Tool) }) {
		return nil
	}
	snapshot, err := w.takeSnapshot(ctx, t.id)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the loop sees why
	}
	t.run.Files = &filesKept{Snapshot: snapshot} // written with the next result at the latest
	if err == nil || status.Code(err) == codes.Unimplemented {
		return nil
	}
	w.deps.Log.WarnContext(ctx, "cannot keep the files of a turn", "session", w.lease.Session, "turn", t.id, "error", err)
	return w.log.Append(parent, store.Write{
		Events: []*sessionv1.Event{w.event(w.stepNumber(), &sessionv1.Event{Body: &sessionv1.Event_Warning{Warning: &sessionv1.Warning{
			Reason:  "FILES_NOT_KEPT",
			Message: "What the files were before this turn could not be kept: " + explain(err) + " Rolling the turn back will leave them as they are.",
		}}})},
		Turns: []*store.TurnRow{t.row()},
	})
}

// takeSnapshot makes the snapshot, and room for it if there is none.
func (w *Worker) takeSnapshot(ctx context.Context, turn string) (string, error) {
	create := func(call string) (id string, err error) {
		err = patiently(ctx, func() error {
			made, err := w.deps.Snapshots.CreateSnapshot(ctx, &sandboxv1.CreateSnapshotRequest{
				Call: w.callRef(call), Description: "before the first change of turns/" + turn,
			})
			id = made.GetSnapshot().GetId()
			return err
		})
		return id, err
	}
	id, err := create(turn + ".files")
	if apierr.Reason(err) != "TOO_MANY_SNAPSHOTS" {
		return id, err
	}
	err = patiently(ctx, func() error {
		_, err := w.deps.Snapshots.DeleteSnapshots(ctx, &sandboxv1.DeleteSnapshotsRequest{
			Call: w.callRef(turn + ".files.room"), KeepLast: keptSnapshots,
		})
		return err
	})
	if err != nil {
		return "", err
	}
	return create(turn + ".files.again") // a call's failure is its answer for good
}

// restoreFiles makes the files what they were before a turn, and tells whether
// they are. Nothing of the turn runs any more.
func (w *Worker) restoreFiles(ctx context.Context, t *active) bool {
	if t.run.Files == nil {
		return true // no call was made that may have changed one
	}
	if t.run.Files.Snapshot == "" {
		return false
	}
	err := patiently(ctx, func() error {
		_, err := w.deps.Snapshots.RestoreSnapshot(ctx, &sandboxv1.RestoreSnapshotRequest{
			Call: w.callRef(t.id + ".files.back"), Snapshot: t.run.Files.Snapshot,
		})
		return err
	})
	if err != nil {
		w.deps.Log.WarnContext(ctx, "cannot bring back the files of a turn", "session", w.lease.Session, "turn", t.id, "error", err)
	}
	return err == nil
}

// mayChange tells whether a call of a tool may change something.
func (w *Worker) mayChange(t *active, tool string) bool {
	return tool != "TodoWrite" && !w.readOnlyTools[tool] && t.client[tool] == nil
}
