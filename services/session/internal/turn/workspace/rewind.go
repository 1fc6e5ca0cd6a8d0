package workspace

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// Rewind goes back to a checkpoint and reports whether it did. The command in the inbox is the
// durable intent: the write that moves the head consumes it, after the files were restored. A
// worker that takes over in between restores them again, with the same call id, before it takes
// anything else from the inbox.
func (k *Checkpoints) Rewind(sc state.Scope, c store.Command) (bool, error) {
	r := &sessionv1.RewindSessionRequest{}
	if err := proto.Unmarshal(c.Body, r); err != nil {
		return false, fmt.Errorf("read a rewind: %w", err)
	}
	if sc.Active != nil { // no rewind is accepted during a turn: an older version began this one before it met the command
		return false, rewindFailed(sc, c, "", sessionv1.ErrorReason_ERROR_REASON_TURN_ACTIVE,
			"A turn is active. Neither the conversation nor the files were changed. Interrupt the turn first, then rewind.")
	}
	if err := k.MakeRequested(sc); err != nil { // in the order of the requests
		return false, err
	}
	if err := k.load(sc); err != nil {
		return false, err
	}
	to, err := k.target(sc, r)
	if refused := (*rewindError)(nil); errors.As(err, &refused) {
		return false, rewindFailed(sc, c, r.Checkpoint, refused.reason, refused.message)
	}
	if err != nil {
		return false, err
	}
	if to.snapshot == "" {
		return true, k.moveHead(sc, c, to)
	}
	if err := k.restore(sc.As(c.User), c.CallID, to.snapshot); err != nil {
		if sc.Ended() || errors.Is(err, remote.ErrStaleEpoch) || errors.Is(err, remote.ErrStaleGeneration) {
			return false, fmt.Errorf("rewind session %s: %w", sc.Lease.Session, err)
		}
		sc.Logger.WarnContext(sc, "cannot restore the files of a checkpoint", "session", sc.Lease.Session, "checkpoint", to.checkpoint, "error", err)
		return false, rewindFailed(sc, c, to.checkpoint, sessionv1.ErrorReason_ERROR_REASON_REWIND_FAILED,
			"The files of the checkpoint could not be restored: "+state.Explain(err)+" The conversation stays as it is; look at the files before you continue, because some may have changed.")
	}
	return true, k.moveHead(sc, c, to)
}

// target is where a rewind leads to.
type target struct {
	checkpoint, turn string // what the request names
	snapshot         string // of the files; empty: they stay
	keep             int    // how many messages of the conversation stay
	void             int64  // the first number of the log that no longer counts
	newest           int64  // the number of the newest checkpoint that stays
}

// rewindError says why a rewind is not possible.
type rewindError struct {
	reason  sessionv1.ErrorReason
	message string
}

func (r *rewindError) Error() string { return r.message }

// target returns where a request leads to, or a *rewindError.
func (k *Checkpoints) target(sc state.Scope, r *sessionv1.RewindSessionRequest) (*target, error) {
	if r.BeforeTurn != "" {
		return k.beforeTurn(sc, r.BeforeTurn)
	}
	to, keep := k.at(sc, r)
	if to == nil {
		return nil, &rewindError{sessionv1.ErrorReason_ERROR_REASON_CHECKPOINT_NOT_FOUND,
			"The checkpoint no longer exists, or there are fewer than two. Neither the conversation nor the files were changed. List the session's checkpoints to see which there are."}
	}
	return &target{checkpoint: to.Name, snapshot: to.Snapshot, keep: keep, void: to.AfterSeq + 1, newest: to.Seq}, nil
}

// at returns the checkpoint that a request names and how many messages of the conversation stay;
// nil if there is no such checkpoint.
func (k *Checkpoints) at(sc state.Scope, r *sessionv1.RewindSessionRequest) (*sessionv1.Checkpoint, int) {
	at := len(k.kept) - 2
	if !r.LatestButOne {
		at = slices.IndexFunc(k.kept, func(c *sessionv1.Checkpoint) bool { return c.Name == r.Checkpoint })
	}
	if at < 0 {
		return nil, 0
	}
	to := k.kept[at]
	if to.Head == "" {
		return to, 0
	}
	last := slices.IndexFunc(sc.Path, func(m *sessionv1.Message) bool { return m.Name == to.Head })
	if last < 0 {
		return nil, 0 // the checkpoint is not on the path to the head
	}
	return to, last + 1
}

// restore restores the files. It keeps trying while the sandbox is away: a restore may have
// begun, and the files then are in neither state. A node that is lost for good has no files.
func (k *Checkpoints) restore(sc state.Scope, rewind, snapshot string) error {
	call := "rewind." + rewind
	for {
		err := k.place.Settle(sc)
		if err == nil {
			err = k.place.maker.forFiles(sc, sc.CallRef(call+".workspace"))
		}
		if err == nil {
			err = sc.Patiently(nil, func() error { return k.sandbox.RestoreSnapshot(sc, sc.CallRef(call), snapshot) })
		}
		if err == nil || sc.Ended() || !state.MayRepeat(err) {
			return err
		}
		sc.Logger.WarnContext(sc, "a rewind waits for the sandbox", "session", sc.Lease.Session, "error", err)
	}
}

// moveHead moves the conversation back, in one write with everything that depends on it.
func (k *Checkpoints) moveHead(sc state.Scope, c store.Command, to *target) error {
	write := store.Write{Consume: []int64{c.ID}, StepCommitted: true}
	sc.CutPath(&write, to.keep)
	write.Events = []*sessionv1.Event{{Body: &sessionv1.Event_SessionRewound{SessionRewound: &sessionv1.SessionRewound{
		VoidFirstSeq: to.void, VoidLastSeq: sc.Log.Seq(), Head: sc.Proto.Head, Checkpoint: to.checkpoint, BeforeTurn: to.turn, Rewind: c.CallID,
	}}}}
	if to.snapshot != "" {
		k.place.ExportRewound(sc, &write, "rewind."+c.CallID)
	}
	k.drop(sc, &write, func(c *sessionv1.Checkpoint) bool { return c.Seq > to.newest })
	return sc.Commit(write)
}

// rewindFailed tells the requester that the rewind failed.
func rewindFailed(sc state.Scope, c store.Command, checkpoint string, reason sessionv1.ErrorReason, message string) error {
	return sc.Append(store.Write{Consume: []int64{c.ID}, Events: []*sessionv1.Event{{Body: &sessionv1.Event_SessionRewindFailed{
		SessionRewindFailed: &sessionv1.SessionRewindFailed{Rewind: c.CallID, Checkpoint: checkpoint, Reason: state.ReasonName(reason), Message: message},
	}}}})
}
