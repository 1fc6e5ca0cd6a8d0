package turn

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// takeRewind goes back to a checkpoint. The command in the inbox is the durable
// intent: the write that moves the head consumes it, after the files were restored.
// A worker that takes over in between restores them again, with the same call id,
// before it takes anything else from the inbox.
func (w *Worker) takeRewind(ctx context.Context, c store.Command) error {
	r := &sessionv1.RewindSessionRequest{}
	if err := proto.Unmarshal(c.Body, r); err != nil {
		return fmt.Errorf("read a rewind: %w", err)
	}
	if w.Active != nil { // no rewind is accepted during a turn: an older version began this one before it met the command
		return w.noRewind(ctx, c, "", sessionv1.ErrorReason_ERROR_REASON_TURN_ACTIVE,
			"A turn is active. Neither the conversation nor the files were changed. Interrupt the turn first, then rewind.")
	}
	if err := w.compactFirst(ctx); err != nil {
		return err
	}
	if err := w.makeWanted(ctx, ctx); err != nil { // in the order of the requests
		return err
	}
	if err := w.loadCheckpoints(ctx); err != nil {
		return err
	}
	to, keep := w.target(r)
	if to == nil {
		return w.noRewind(ctx, c, r.Checkpoint, sessionv1.ErrorReason_ERROR_REASON_CHECKPOINT_NOT_FOUND,
			"There is no such checkpoint any more, or fewer than two. Neither the conversation nor the files were changed. List the session's checkpoints to see which there are.")
	}
	acting := principal.With(ctx, principal.Principal{Tenant: w.Lease.Tenant, User: c.User})
	if err := w.bringBack(acting, c.CallID, to.Snapshot); err != nil {
		if ctx.Err() != nil || strings.HasPrefix(apierr.Reason(err), "STALE_") {
			return fmt.Errorf("rewind session %s: %w", w.Lease.Session, err)
		}
		w.Logger.WarnContext(ctx, "cannot bring back the files of a checkpoint", "session", w.Lease.Session, "checkpoint", to.Name, "error", err)
		return w.noRewind(ctx, c, to.Name, sessionv1.ErrorReason_ERROR_REASON_REWIND_FAILED,
			"The files of the checkpoint could not be brought back: "+state.Explain(err)+" The conversation stays as it is; look at the files before you go on, for some may have been changed.")
	}
	return w.moveHead(ctx, c, to, keep)
}

// target returns the checkpoint that a request names and how many messages of
// the conversation stay; nil if there is no such checkpoint.
func (w *Worker) target(r *sessionv1.RewindSessionRequest) (*sessionv1.Checkpoint, int) {
	at := len(w.kept) - 2
	if !r.LatestButOne {
		at = slices.IndexFunc(w.kept, func(c *sessionv1.Checkpoint) bool { return c.Name == r.Checkpoint })
	}
	if at < 0 {
		return nil, 0
	}
	to := w.kept[at]
	if to.Head == "" {
		return to, 0
	}
	last := slices.IndexFunc(w.Path, func(m *sessionv1.Message) bool { return m.Name == to.Head })
	if last < 0 {
		return nil, 0 // the checkpoint is not on the path to the head
	}
	return to, last + 1
}

// bringBack restores the files. It keeps trying while the sandbox is away: a
// restore may have begun, and the files then are in neither state. A node that is
// lost for good has no files.
func (w *Worker) bringBack(ctx context.Context, rewind, snapshot string) error {
	call := "rewind." + rewind
	for {
		err := w.placed(ctx)
		if err == nil {
			err = w.ensureFiles(ctx, w.CallRef(call+".workspace"))
		}
		if err == nil {
			err = w.patiently(ctx, nil, func() error {
				_, err := w.deps.Snapshots.RestoreSnapshot(ctx, &sandboxv1.RestoreSnapshotRequest{Call: w.CallRef(call), Snapshot: snapshot})
				return err
			})
		}
		if err == nil || ctx.Err() != nil || !state.MayRepeat(err) {
			return err
		}
		w.Logger.WarnContext(ctx, "a rewind waits for the sandbox", "session", w.Lease.Session, "error", err)
	}
}

// moveHead moves the conversation back, in one write with everything that
// depends on it.
func (w *Worker) moveHead(ctx context.Context, c store.Command, to *sessionv1.Checkpoint, keep int) error {
	w.Path = w.Path[:keep:keep] // a message that joins the path later must not overwrite the undone ones
	w.Proto.Head = to.Head
	w.counted, w.answered, w.begun = state.Counted{}, "", nil
	w.spend.Forget()
	head := state.LastSegment(to.Head)
	write := store.Write{Consume: []int64{c.ID}, Head: &head, StepCommitted: true, Events: []*sessionv1.Event{{Body: &sessionv1.Event_SessionRewound{
		SessionRewound: &sessionv1.SessionRewound{
			VoidFirstSeq: to.AfterSeq + 1, VoidLastSeq: w.Log.Seq(), Head: to.Head, Checkpoint: to.Name, Rewind: c.CallID,
		},
	}}}}
	w.exportRewound(&write, "rewind."+c.CallID)
	w.dropCheckpoints(&write, func(c *sessionv1.Checkpoint) bool { return c.Seq > to.Seq })
	return w.Log.Commit(ctx, write)
}

// exportRewound marks the exports so far as void, since they may have what a write
// undoes, and has the workspace exported anew. The path is the new one.
func (w *Worker) exportRewound(write *store.Write, name string) {
	p := w.Place()
	if p.Node == "" {
		return
	}
	write.VoidExports = w.Log.Seq() + int64(len(write.Events))
	p.Export = store.Export{Seq: write.VoidExports, Snapshot: p.Export.Snapshot}
	w.SetPlace(p)
	if !w.deps.Export || p.Restore {
		return
	}
	turn := ""
	if last := w.Last(); last != nil {
		turn = state.LastSegment(last.Turn)
	}
	write.Jobs = append(write.Jobs, placement.RewoundJob(w.Lease.Key, name, turn, write.VoidExports))
}

// noRewind tells the requester that the rewind failed.
func (w *Worker) noRewind(ctx context.Context, c store.Command, checkpoint string, reason sessionv1.ErrorReason, message string) error {
	return w.Log.Append(ctx, store.Write{Consume: []int64{c.ID}, Events: []*sessionv1.Event{{Body: &sessionv1.Event_SessionRewindFailed{
		SessionRewindFailed: &sessionv1.SessionRewindFailed{Rewind: c.CallID, Checkpoint: checkpoint, Reason: state.ReasonName(reason), Message: message},
	}}}})
}
