package workspace

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
	"github.com/fairlead/fairlead/services/session/internal/turn/toolset"
)

// CheckpointConfig configures when checkpoints are made and how many are kept.
type CheckpointConfig struct {
	// Tools are the tools of agents that name none themselves; see agent.Spec.
	Tools []string
	// Keep is the most automatic checkpoints of a session, and the most others.
	Keep int
}

// Checkpoints makes a session's checkpoints, and goes back to them.
type Checkpoints struct {
	CheckpointConfig
	sandbox Sandbox
	place   *Mover
	tools   *toolset.Toolset

	requested []store.Command         // requests that are not done yet
	kept      []*sessionv1.Checkpoint // the oldest first; nil: not loaded
}

// load reads the session's checkpoints once: only the holder of the session changes them.
func (k *Checkpoints) load(sc state.Scope) error {
	if k.kept != nil {
		return nil
	}
	all, err := sc.Store.ListCheckpoints(sc, sc.Lease.Key, 0, 0)
	if err != nil {
		return fmt.Errorf("load the checkpoints of session %s: %w", sc.Lease.Session, err)
	}
	slices.Reverse(all)
	k.kept = append([]*sessionv1.Checkpoint{}, all...)
	return nil
}

// add adds a checkpoint to a write, as its last event. It drops the oldest tenth of the automatic
// checkpoints when there are too many.
func (k *Checkpoints) add(sc state.Scope, write *store.Write, c *sessionv1.Checkpoint) error {
	if err := k.load(sc); err != nil {
		return err
	}
	c.Seq = sc.Log.Seq() + int64(len(write.Events)) + 1
	write.Events = append(write.Events, &sessionv1.Event{Turn: c.Turn, Step: c.Step, Body: &sessionv1.Event_CheckpointCreated{CheckpointCreated: &sessionv1.CheckpointCreated{
		Checkpoint: c.Name, Description: c.Description, Automatic: c.Automatic, Head: c.Head, AfterSeq: c.AfterSeq, Snapshot: c.Snapshot,
	}}})
	write.Checkpoints = append(write.Checkpoints, c)
	if n := k.count(true); c.Automatic && n >= k.Keep {
		k.dropOldest(sc, write, n+1-(k.Keep-k.Keep/10))
	}
	k.kept = append(k.kept, proto.CloneOf(c)) // the store puts the time into the other
	return nil
}

func (k *Checkpoints) count(automatic bool) (n int) {
	for _, c := range k.kept {
		if c.Automatic == automatic {
			n++
		}
	}
	return n
}

// dropOldest removes the n oldest automatic checkpoints, except the one that a rollback of the
// active turn restores.
func (k *Checkpoints) dropOldest(sc state.Scope, write *store.Write, n int) {
	needed := rollbackSnapshot(sc)
	k.drop(sc, write, func(c *sessionv1.Checkpoint) bool {
		if n <= 0 || !c.Automatic || c.Snapshot == needed {
			return false
		}
		n--
		return true
	})
}

// rollbackSnapshot returns the snapshot that a rollback of the active turn restores, if any.
func rollbackSnapshot(sc state.Scope) string {
	if sc.Active == nil || sc.Active.Run.Files == nil {
		return ""
	}
	return sc.Active.Run.Files.Snapshot
}

// drop removes checkpoints and adds a job that deletes their snapshots. It calls unneeded from
// the oldest checkpoint on.
func (k *Checkpoints) drop(sc state.Scope, write *store.Write, unneeded func(*sessionv1.Checkpoint) bool) {
	var snapshots []string
	k.kept = slices.DeleteFunc(k.kept, func(c *sessionv1.Checkpoint) bool {
		if !unneeded(c) {
			return false
		}
		write.DropCheckpoints = append(write.DropCheckpoints, state.LastSegment(c.Name))
		snapshots = append(snapshots, c.Snapshot)
		return true
	})
	if len(snapshots) > 0 {
		write.Jobs = append(write.Jobs, store.SnapshotsJob(sc.Lease.Key, snapshots))
	}
}

// DropSince removes the checkpoints of a turn that is undone.
func (k *Checkpoints) DropSince(sc state.Scope, write *store.Write, seq int64) error {
	if err := k.load(sc); err != nil {
		return err
	}
	k.drop(sc, write, func(c *sessionv1.Checkpoint) bool { return c.Seq >= seq })
	return nil
}

// makeRoom deletes snapshots because the sandbox takes no more: those of the older half of the
// automatic checkpoints, and those that belong to no checkpoint, such as one that a worker made
// before it died. The newest snapshot stays: the workspace may be restored from it on another
// node.
func (k *Checkpoints) makeRoom(sc state.Scope, call string) error {
	if err := k.load(sc); err != nil {
		return err
	}
	var write store.Write
	k.dropOldest(sc, &write, (k.count(true)+1)/2)
	if len(write.DropCheckpoints) > 0 {
		if err := sc.Log.Commit(sc, write); err != nil {
			return err
		}
	}
	needed := map[string]bool{rollbackSnapshot(sc): true}
	for _, c := range k.kept {
		needed[c.Snapshot] = true
	}
	return sc.Patiently(nil, func() error {
		list, err := k.sandbox.ListSnapshots(sc, remote.Place{Session: "sessions/" + sc.Lease.Session, Node: sc.NodeName()})
		if err != nil {
			return err
		}
		var ids []string
		for i, s := range list {
			if i > 0 && !needed[s.Id] {
				ids = append(ids, s.Id)
			}
		}
		if len(ids) == 0 {
			return nil
		}
		return k.sandbox.DeleteSnapshots(sc, sc.CallRef(call), ids...)
	})
}

// Request takes the request for a checkpoint: it is made at once while no turn runs, otherwise
// before the next step.
func (k *Checkpoints) Request(sc state.Scope, c store.Command) error {
	k.requested = append(k.requested, c)
	if sc.Active != nil && !sc.Active.Waiting() {
		return nil
	}
	return k.MakeRequested(sc)
}

// Requested reports whether requested checkpoints are not made yet.
func (k *Checkpoints) Requested() bool { return len(k.requested) > 0 }

// MakeRequested makes the requested checkpoints. Those that are not made when the scope ends are
// made later, before any call changes anything.
func (k *Checkpoints) MakeRequested(sc state.Scope) error {
	if err := sc.LoadPath(sc.Outlasting()); err != nil {
		return err
	}
	for len(k.requested) > 0 && !sc.Ended() {
		if err := k.makeOne(sc, k.requested[0]); err != nil {
			return err
		}
		if !sc.Ended() || sc.Log.Err() != nil {
			k.requested = k.requested[1:]
		}
	}
	return sc.Log.Err()
}

func (k *Checkpoints) makeOne(sc state.Scope, asked store.Command) error {
	r := &sessionv1.CreateCheckpointRequest{}
	if err := proto.Unmarshal(asked.Body, r); err != nil {
		return fmt.Errorf("read a request for a checkpoint: %w", err)
	}
	if err := k.load(sc.Outlasting()); err != nil {
		return err
	}
	c := &sessionv1.Checkpoint{
		Name: sc.Name("checkpoints", asked.CallID), Description: r.GetCheckpoint().GetDescription(),
		Head: sc.Proto.Head, AfterSeq: sc.Log.Seq(),
	}
	switch {
	case len(state.ToolUses(sc.Calling())) > 0:
		return checkpointFailed(sc, asked, c, sessionv1.ErrorReason_ERROR_REASON_TURN_ACTIVE,
			"The turn waits in the middle of a step, where no checkpoint can be made. Answer it or interrupt it, then make the checkpoint.")
	case k.count(false) >= k.Keep:
		return checkpointFailed(sc, asked, c, sessionv1.ErrorReason_ERROR_REASON_TOO_MANY,
			fmt.Sprintf("The session has %d requested checkpoints, the most allowed. Rewind to an earlier one, or ask the operator to raise keep-checkpoints.", k.Keep))
	}
	var err error
	c.Snapshot, err = k.requestedSnapshot(sc.As(asked.User), asked.CallID)
	switch {
	case sc.Log.Err() != nil:
		return sc.Log.Err()
	case sc.Ended():
		return nil // it is made later
	case err != nil:
		sc.Logger.WarnContext(sc, "cannot make a checkpoint", "session", sc.Lease.Session, "error", err)
		return checkpointFailed(sc, asked, c, sessionv1.ErrorReason_ERROR_REASON_CHECKPOINT_FAILED, "The workspace's files could not be saved: "+state.Explain(err))
	}
	if sc.Active != nil {
		c.Turn, c.Step = sc.Active.Proto.Name, sc.Active.Step()
	}
	write := store.Write{Consume: []int64{asked.ID}}
	if err := k.add(sc.Outlasting(), &write, c); err != nil {
		return err
	}
	return sc.Append(write)
}

// requestedSnapshot makes the workspace if necessary, and the snapshot of a requested checkpoint.
func (k *Checkpoints) requestedSnapshot(sc state.Scope, id string) (string, error) {
	call := "checkpoint." + id
	if err := k.place.Settle(sc.Outlasting()); err != nil {
		return "", err
	}
	if err := k.place.maker.forFiles(sc, sc.CallRef(call+".workspace")); err != nil {
		return "", err
	}
	return k.takeSnapshot(sc, call, "checkpoint "+id)
}

// checkpointFailed tells the requester that the checkpoint could not be made.
func checkpointFailed(sc state.Scope, asked store.Command, c *sessionv1.Checkpoint, reason sessionv1.ErrorReason, message string) error {
	return sc.Append(store.Write{Consume: []int64{asked.ID}, Events: []*sessionv1.Event{{Body: &sessionv1.Event_CheckpointFailed{
		CheckpointFailed: &sessionv1.CheckpointFailed{Checkpoint: c.Name, Reason: state.ReasonName(reason), Message: message},
	}}}})
}
