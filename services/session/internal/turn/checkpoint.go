package turn

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// Checkpoints configures when checkpoints are made and how many are kept.
type Checkpoints struct {
	// Tools are the tools of agents that name none themselves; see agent.Spec.
	Tools []string
	// Keep is the most automatic checkpoints of a session, and the most others.
	Keep int
}

// loadCheckpoints reads the session's checkpoints once: only the holder of the
// session changes them.
func (w *Worker) loadCheckpoints(ctx context.Context) error {
	if w.kept != nil {
		return nil
	}
	all, err := w.Store.ListCheckpoints(ctx, w.Lease.Key, 0, 0)
	if err != nil {
		return fmt.Errorf("load the checkpoints of session %s: %w", w.Lease.Session, err)
	}
	slices.Reverse(all)
	w.kept = append([]*sessionv1.Checkpoint{}, all...)
	return nil
}

// addCheckpoint adds a checkpoint to a write, as its last event. It drops the
// oldest tenth of the automatic checkpoints when there are too many.
func (w *Worker) addCheckpoint(ctx context.Context, write *store.Write, c *sessionv1.Checkpoint) error {
	if err := w.loadCheckpoints(ctx); err != nil {
		return err
	}
	c.Seq = w.Log.Seq() + int64(len(write.Events)) + 1
	write.Events = append(write.Events, &sessionv1.Event{Turn: c.Turn, Step: c.Step, Body: &sessionv1.Event_CheckpointCreated{CheckpointCreated: &sessionv1.CheckpointCreated{
		Checkpoint: c.Name, Description: c.Description, Automatic: c.Automatic, Head: c.Head, AfterSeq: c.AfterSeq, Snapshot: c.Snapshot,
	}}})
	write.Checkpoints = append(write.Checkpoints, c)
	if keep := w.deps.Checkpoints.Keep; c.Automatic && w.countCheckpoints(true) >= keep {
		w.dropOldest(write, w.countCheckpoints(true)+1-(keep-keep/10))
	}
	w.kept = append(w.kept, proto.CloneOf(c)) // the store puts the time into the other
	return nil
}

func (w *Worker) countCheckpoints(automatic bool) (n int) {
	for _, c := range w.kept {
		if c.Automatic == automatic {
			n++
		}
	}
	return n
}

// dropOldest removes the n oldest automatic checkpoints, except the one that a
// rollback of the active turn restores.
func (w *Worker) dropOldest(write *store.Write, n int) {
	needed := ""
	if w.Active != nil && w.Active.Run.Files != nil {
		needed = w.Active.Run.Files.Snapshot
	}
	w.dropCheckpoints(write, func(c *sessionv1.Checkpoint) bool {
		if n <= 0 || !c.Automatic || c.Snapshot == needed {
			return false
		}
		n--
		return true
	})
}

// dropCheckpoints removes checkpoints and adds a job that deletes their
// snapshots. It calls gone from the oldest checkpoint on.
func (w *Worker) dropCheckpoints(write *store.Write, gone func(*sessionv1.Checkpoint) bool) {
	var snapshots []string
	w.kept = slices.DeleteFunc(w.kept, func(c *sessionv1.Checkpoint) bool {
		if !gone(c) {
			return false
		}
		write.DropCheckpoints = append(write.DropCheckpoints, state.LastSegment(c.Name))
		snapshots = append(snapshots, c.Snapshot)
		return true
	})
	if len(snapshots) > 0 {
		write.Jobs = append(write.Jobs, store.SnapshotsJob(w.Lease.Key, snapshots))
	}
}

// makeRoom deletes snapshots because the sandbox takes no more: those of the older
// half of the automatic checkpoints, and those that belong to no checkpoint, such as
// one that a worker made before it died. The newest snapshot stays: the workspace
// may be restored from it on another node.
func (w *Worker) makeRoom(ctx context.Context, call string) error {
	if err := w.loadCheckpoints(ctx); err != nil {
		return err
	}
	var write store.Write
	w.dropOldest(&write, (w.countCheckpoints(true)+1)/2)
	if len(write.DropCheckpoints) > 0 {
		if err := w.Log.Commit(ctx, write); err != nil {
			return err
		}
	}
	needed := map[string]bool{}
	for _, c := range w.kept {
		needed[c.Snapshot] = true
	}
	if w.Active != nil && w.Active.Run.Files != nil {
		needed[w.Active.Run.Files.Snapshot] = true
	}
	return w.patiently(ctx, nil, func() error {
		list, err := w.deps.Snapshots.ListSnapshots(ctx, &sandboxv1.ListSnapshotsRequest{Session: "sessions/" + w.Lease.Session, PageSize: 1000})
		if err != nil {
			return err
		}
		var ids []string
		for i, s := range list.Snapshots {
			if i > 0 && !needed[s.Id] {
				ids = append(ids, s.Id)
			}
		}
		if len(ids) == 0 {
			return nil
		}
		_, err = w.deps.Snapshots.DeleteSnapshots(ctx, &sandboxv1.DeleteSnapshotsRequest{Call: w.CallRef(call), Snapshots: ids})
		return err
	})
}

// takeCheckpoint makes a requested checkpoint: at once while no turn runs,
// otherwise before the next step.
func (w *Worker) takeCheckpoint(ctx context.Context, c store.Command) error {
	w.wanted = append(w.wanted, c)
	if w.Active != nil && !w.Active.Waiting() {
		return nil
	}
	return w.makeWanted(ctx, ctx)
}

// makeWanted makes the requested checkpoints. ctx ends with the turn, parent
// with the worker. Checkpoints that are not made when ctx ends are made later,
// before any call changes anything.
func (w *Worker) makeWanted(ctx, parent context.Context) error {
	if err := w.LoadPath(parent); err != nil {
		return err
	}
	for len(w.wanted) > 0 && ctx.Err() == nil {
		if err := w.makeOne(ctx, parent, w.wanted[0]); err != nil {
			return err
		}
		if ctx.Err() == nil || w.Log.Err() != nil {
			w.wanted = w.wanted[1:]
		}
	}
	return w.Log.Err()
}

func (w *Worker) makeOne(ctx, parent context.Context, asked store.Command) error {
	r := &sessionv1.CreateCheckpointRequest{}
	if err := proto.Unmarshal(asked.Body, r); err != nil {
		return fmt.Errorf("read a request for a checkpoint: %w", err)
	}
	if err := w.loadCheckpoints(parent); err != nil {
		return err
	}
	c := &sessionv1.Checkpoint{
		Name: w.Name("checkpoints", asked.CallID), Description: r.GetCheckpoint().GetDescription(),
		Head: w.Proto.Head, AfterSeq: w.Log.Seq(),
	}
	switch {
	case w.Last() != nil && len(state.ToolUses(w.Last())) > 0:
		return w.noCheckpoint(parent, asked, c, sessionv1.ErrorReason_ERROR_REASON_TURN_ACTIVE,
			"The turn waits in the middle of a step, where there is no checkpoint to be made. Answer it or interrupt it, then make the checkpoint.")
	case w.countCheckpoints(false) >= w.deps.Checkpoints.Keep:
		return w.noCheckpoint(parent, asked, c, sessionv1.ErrorReason_ERROR_REASON_TOO_MANY,
			fmt.Sprintf("The session has %d checkpoints that somebody asked for, as many as there may be. Rewind to an earlier one, or have the operator raise keep-checkpoints.", w.deps.Checkpoints.Keep))
	}
	ctx = principal.With(ctx, principal.Principal{Tenant: w.Lease.Tenant, User: asked.User})
	call := "checkpoint." + asked.CallID
	err := w.placed(parent)
	if err == nil {
		err = w.ensureFiles(ctx, w.CallRef(call+".workspace"))
	}
	if err == nil {
		c.Snapshot, err = w.takeSnapshot(ctx, call, "checkpoint "+asked.CallID)
	}
	switch {
	case w.Log.Err() != nil:
		return w.Log.Err()
	case ctx.Err() != nil:
		return nil //nolint:nilerr // it is made later
	case err != nil:
		w.Logger.WarnContext(ctx, "cannot make a checkpoint", "session", w.Lease.Session, "error", err)
		return w.noCheckpoint(parent, asked, c, sessionv1.ErrorReason_ERROR_REASON_CHECKPOINT_FAILED, "The workspace's files could not be kept: "+state.Explain(err))
	}
	if w.Active != nil {
		c.Turn, c.Step = w.Active.Proto.Name, w.Active.Step()
	}
	write := store.Write{Consume: []int64{asked.ID}}
	if err := w.addCheckpoint(parent, &write, c); err != nil {
		return err
	}
	return w.Log.Append(parent, write)
}

// noCheckpoint tells the requester that the checkpoint could not be made.
func (w *Worker) noCheckpoint(ctx context.Context, asked store.Command, c *sessionv1.Checkpoint, reason sessionv1.ErrorReason, message string) error {
	return w.Log.Append(ctx, store.Write{Consume: []int64{asked.ID}, Events: []*sessionv1.Event{{Body: &sessionv1.Event_CheckpointFailed{
		CheckpointFailed: &sessionv1.CheckpointFailed{Checkpoint: c.Name, Reason: state.ReasonName(reason), Message: message},
	}}}})
}

// placed gives the workspace a place outside of a turn. A lost workspace is left to
// the next turn, which also tells the model.
func (w *Worker) placed(ctx context.Context) error {
	if err := w.unsealed(ctx); err != nil {
		return err
	}
	p := w.Place()
	switch {
	case !w.deps.Nodes.Managed():
		return nil
	case p.Node == "":
		if err := w.placeNew(ctx, p); err != nil {
			return err
		}
		return w.Log.Flush(ctx)
	case p.Restore || w.deps.Nodes.Lost(p.Node):
		return placement.ToBeRestored("sessions/" + w.Lease.Session)
	}
	return nil
}
