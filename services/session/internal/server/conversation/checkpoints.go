package conversation

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// CheckpointServer implements CheckpointService.
type CheckpointServer struct {
	sessionv1.UnimplementedCheckpointServiceServer
	shared
}

// CreateCheckpoint puts the request into the inbox and waits for the result.
func (x *CheckpointServer) CreateCheckpoint(
	ctx context.Context, r *sessionv1.CreateCheckpointRequest,
) (*sessionv1.CreateCheckpointResponse, error) {
	answer, err := x.command(ctx, r.Parent, "CreateCheckpoint", r.RequestId, r, store.Submit{
		Command: store.Command{Kind: store.CommandCheckpoint, CallID: id.New()},
	})
	if err != nil {
		return nil, err
	}
	made, after, err := readAwaited(answer.Value)
	if err != nil {
		return nil, err
	}
	name := r.Parent + "/checkpoints/" + made
	var out *sessionv1.Checkpoint
	err = x.logs.Await(ctx, r.Parent, after, func(e *sessionv1.Event) (bool, error) {
		if f := e.GetCheckpointFailed(); f.GetCheckpoint() == name {
			return true, notMade(r.Parent, f)
		}
		c := e.GetCheckpointCreated()
		if c.GetCheckpoint() != name {
			return false, nil
		}
		out = &sessionv1.Checkpoint{
			Name: name, Description: c.Description, Automatic: c.Automatic, Turn: e.Turn, Step: e.Step, Head: c.Head,
			AfterSeq: c.AfterSeq, Seq: e.Seq, Snapshot: c.Snapshot, CreateTime: e.Time,
		}
		return true, nil
	})
	return &sessionv1.CreateCheckpointResponse{Checkpoint: out}, err
}

// notMade returns the error of a CheckpointFailed event.
func notMade(session string, f *sessionv1.CheckpointFailed) error {
	switch f.Reason {
	case "TOO_MANY":
		return refusal.Of(codes.ResourceExhausted, sessionv1.ErrorReason_ERROR_REASON_TOO_MANY, f.Message, apierr.Quota(session, "checkpoints"))
	case "TURN_ACTIVE":
		return refusal.Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_TURN_ACTIVE, f.Message, apierr.Precondition("TURN_ACTIVE", session, "a turn waits in the middle of a step"))
	default:
		return refusal.Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_CHECKPOINT_FAILED, f.Message, apierr.Precondition("WORKSPACE", session, "its files could not be kept"))
	}
}

// GetCheckpoint reads a checkpoint.
func (x *CheckpointServer) GetCheckpoint(ctx context.Context, r *sessionv1.GetCheckpointRequest) (*sessionv1.GetCheckpointResponse, error) {
	session, child, _ := strings.Cut(r.Name, "/checkpoints/")
	found, err := x.Store.GetCheckpoint(ctx, request.Key(ctx, session), child)
	if err != nil {
		return nil, checkpointError(err, r.Name)
	}
	return &sessionv1.GetCheckpointResponse{Checkpoint: found}, nil
}

func checkpointError(err error, name string) error {
	if !errors.Is(err, store.ErrNotFound) {
		return refusal.Store(err, refusal.Subject{})
	}
	return refusal.Of(codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_CHECKPOINT_NOT_FOUND,
		fmt.Sprintf("There is no checkpoint %s. A rewind to an earlier checkpoint may have cleared it, or newer checkpoints replaced it; forks and imports start without checkpoints. List the session's checkpoints to see which there are.", name),
		apierr.Resource("fairlead.dev/Checkpoint", name, "not found"))
}

// ListCheckpoints lists a page of a session's checkpoints.
func (x *CheckpointServer) ListCheckpoints(
	ctx context.Context, r *sessionv1.ListCheckpointsRequest,
) (*sessionv1.ListCheckpointsResponse, error) {
	k := request.Key(ctx, r.Parent)
	scope := "ListCheckpoints\x00" + k.Tenant + "\x00" + k.Session
	list := func(before int64, n int) ([]*sessionv1.Checkpoint, error) {
		return x.Store.ListCheckpoints(ctx, k, before, n)
	}
	all, next, err := request.List(scope, r, refusal.Subject{Session: r.Parent}, (*sessionv1.Checkpoint).GetSeq, list)
	return &sessionv1.ListCheckpointsResponse{Checkpoints: all, NextPageToken: next}, err
}

// RewindSession puts the rewind into the inbox and waits for the result.
func (x *CheckpointServer) RewindSession(ctx context.Context, r *sessionv1.RewindSessionRequest) (*sessionv1.RewindSessionResponse, error) {
	if r.Checkpoint != "" && !strings.HasPrefix(r.Checkpoint, r.Name+"/") {
		return nil, refusal.Input("checkpoint", fmt.Sprintf("%s is not a checkpoint of %s.", r.Checkpoint, r.Name))
	}
	if r.BeforeTurn != "" && !strings.HasPrefix(r.BeforeTurn, r.Name+"/") {
		return nil, refusal.Input("before_turn", fmt.Sprintf("%s is not a turn of %s.", r.BeforeTurn, r.Name))
	}
	answer, err := x.command(ctx, r.Name, "RewindSession", r.RequestId, r, store.Submit{
		Command: store.Command{Kind: store.CommandRewind, CallID: id.New()},
	})
	if apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_TURN_ACTIVE) {
		return nil, noRewindNow(r.Name)
	}
	if err != nil {
		return nil, err
	}
	rewind, after, err := readAwaited(answer.Value)
	if err != nil {
		return nil, err
	}
	resp := &sessionv1.RewindSessionResponse{}
	err = x.logs.Await(ctx, r.Name, after, func(e *sessionv1.Event) (bool, error) {
		if f := e.GetSessionRewindFailed(); f.GetRewind() == rewind {
			return true, notRewound(r.Name, f)
		}
		resp.Checkpoint = e.GetSessionRewound().GetCheckpoint()
		return e.GetSessionRewound().GetRewind() == rewind, nil
	})
	if err != nil {
		return nil, err
	}
	resp.Session, err = x.Store.GetSession(ctx, request.Key(ctx, r.Name))
	return resp, refusal.Store(err, refusal.Subject{Session: r.Name})
}

func noRewindNow(session string) error {
	return refusal.Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_TURN_ACTIVE,
		fmt.Sprintf("Session %s has an active or queued turn, and cannot be rewound meanwhile. Interrupt it with cancel_queued, wait until it has ended, then rewind; or undo just this turn by a message with on_active ROLLBACK.", session),
		apierr.Precondition("TURN_ACTIVE", session, "a turn is active"))
}

// notRewound returns the error of a SessionRewindFailed event.
func notRewound(session string, f *sessionv1.SessionRewindFailed) error {
	switch f.Reason {
	case "TURN_ACTIVE":
		return noRewindNow(session)
	case "TURN_NOT_FOUND":
		return refusal.Of(codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_TURN_NOT_FOUND, f.Message, apierr.Resource("fairlead.dev/Turn", session, "not part of the conversation"))
	case "CHECKPOINT_NOT_FOUND":
		return refusal.Of(codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_CHECKPOINT_NOT_FOUND, f.Message, apierr.Resource("fairlead.dev/Checkpoint", f.Checkpoint, "not found"))
	default:
		return refusal.Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_REWIND_FAILED, f.Message, apierr.Precondition("CHECKPOINT", f.Checkpoint, "its files could not be restored"))
	}
}

// readAwaited parses the store's answer to a command whose result is an event:
// the command's id, and the sequence number that the event follows.
func readAwaited(value string) (id string, after int64, err error) {
	id, number, _ := strings.Cut(value, ".")
	if after, err = strconv.ParseInt(number, 10, 64); err != nil {
		return "", 0, fmt.Errorf("the answer %q has no sequence number of the log: %w", value, err)
	}
	return id, after, nil
}
