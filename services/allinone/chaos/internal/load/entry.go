package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// errAgain says that the same request must be repeated.
var errAgain = errors.New("try again")

// errRefused says that the request does not fit the current state.
var errRefused = errors.New("refused")

// refusals are the reasons of such answers: a call has another answer, or is over; a session with active
// turns cannot be rewound; a checkpoint has made room for others; a turn never began.
var refusals = []sessionv1.ErrorReason{
	sessionv1.ErrorReason_ERROR_REASON_CALL_ANSWERED, sessionv1.ErrorReason_ERROR_REASON_CALL_ENDED,
	sessionv1.ErrorReason_ERROR_REASON_CALL_NOT_WAITING, sessionv1.ErrorReason_ERROR_REASON_TURN_ACTIVE,
	sessionv1.ErrorReason_ERROR_REASON_CHECKPOINT_NOT_FOUND, sessionv1.ErrorReason_ERROR_REASON_TURN_NOT_ENDED,
}

// rewinding is the reason of an answer that asks the client to wait.
const rewinding = sessionv1.ErrorReason_ERROR_REASON_SESSION_REWINDING

// entry is an entry to Fairlead: a session replica, or the gateway. Mutations may be repeated with the same
// key at any entry. Their errors are errAgain, or errors that no client should get.
type entry interface {
	name() string
	createSession(ctx context.Context, key string) (string, error)
	createTurn(ctx context.Context, session, text string, on sessionv1.OnActive, key string) (string, error)
	// runTurn accepts a turn and follows it until its first event.
	runTurn(ctx context.Context, session, text, key string) (string, error)
	// approve sends a person's decision about a call, and reply an answer to a question; errRefused.
	approve(ctx context.Context, session string, q question, v verdict, key string) error
	reply(ctx context.Context, session string, q question, content, key string) error
	// fork creates a session from the end of a turn, and returns its name;
	// errRefused.
	fork(ctx context.Context, session, turn, key string) (string, error)
	// checkpoints are the names of a session's checkpoints.
	checkpoints(ctx context.Context, session string) ([]string, error)
	// rewind returns to a checkpoint; errRefused.
	rewind(ctx context.Context, session, checkpoint, key string) error
	// compact requests a compaction.
	compact(ctx context.Context, session, key string) error
	createSchedule(ctx context.Context, session string, s *sessionv1.Schedule, key string) (*sessionv1.Schedule, error)
	pauseSchedule(ctx context.Context, name, key string) error
	// follow calls see with every event after a number, until see returns false or the stream ends.
	follow(ctx context.Context, session string, after int64, see func(*sessionv1.Event) bool) error
}

// replica is a session replica's public face.
type replica struct {
	address   string
	client    sessionv1.SessionServiceClient
	points    sessionv1.CheckpointServiceClient
	schedules sessionv1.ScheduleServiceClient
}

func newReplica(address string, conn grpc.ClientConnInterface) replica {
	return replica{
		address, sessionv1.NewSessionServiceClient(conn), sessionv1.NewCheckpointServiceClient(conn), sessionv1.NewScheduleServiceClient(conn),
	}
}

func (r replica) name() string { return r.address }

func (r replica) createSession(ctx context.Context, key string) (string, error) {
	resp, err := r.client.CreateSession(ctx, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{}, RequestId: key})
	return resp.GetSession().GetName(), judge("CreateSession", err)
}

func (r replica) createTurn(ctx context.Context, session, text string, on sessionv1.OnActive, key string) (string, error) {
	resp, err := r.client.CreateTurn(ctx, &sessionv1.CreateTurnRequest{Parent: session, Text: text, OnActive: on, RequestId: key})
	return resp.GetTurn().GetName(), judge("CreateTurn", err)
}

func (r replica) runTurn(ctx context.Context, session, text, key string) (string, error) {
	stream, err := r.client.RunTurn(ctx, &sessionv1.RunTurnRequest{Parent: session, Text: text, RequestId: key})
	for err == nil {
		var resp *sessionv1.RunTurnResponse
		if resp, err = stream.Recv(); err == nil && resp.GetEvent() != nil {
			return resp.GetEvent().GetTurn(), nil
		}
	}
	return "", judge("RunTurn", err)
}

func (r replica) follow(ctx context.Context, session string, after int64, see func(*sessionv1.Event) bool) error {
	stream, err := r.client.StreamEvents(ctx, &sessionv1.StreamEventsRequest{Parent: session, AfterSeq: after})
	for err == nil {
		var resp *sessionv1.StreamEventsResponse
		if resp, err = stream.Recv(); err == nil && resp.GetEvent() != nil && !see(resp.GetEvent()) {
			return nil
		}
	}
	return judge("StreamEvents", err)
}

// judge classifies an error of gRPC.
func judge(method string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: the stream ended", errAgain)
	}
	switch reason := apierr.As[sessionv1.ErrorReason](err); {
	case slices.Contains(refusals, reason):
		return fmt.Errorf("%w: %w", errRefused, err)
	case reason == rewinding:
		return fmt.Errorf("%w: %w", errAgain, err)
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.Aborted, codes.DeadlineExceeded, codes.Canceled:
		return fmt.Errorf("%w: %w", errAgain, err)
	default:
		return fmt.Errorf("%s: %w", method, err)
	}
}
