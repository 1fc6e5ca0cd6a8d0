package refusal

import (
	"fmt"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// AboveCeiling refuses a limit above the most that the operator or the agent allows.
func AboveCeiling(field, value, sets, most string) error {
	return Of(codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_LIMIT_ABOVE_CEILING,
		fmt.Sprintf("%s is %s; %s allows at most %s.", field, value, sets, most), apierr.Field(field, "above the operator's ceiling of "+most))
}

// ContextFull refuses a turn whose prompt and tools leave no room for a message, both in tokens.
func ContextFull(fixed, most int64) error {
	return Of(codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_CONTEXT_FULL,
		fmt.Sprintf("The agent's prompt and tools and the client's tools have about %d tokens; the model's context has %d. Use fewer or shorter tools, or an agent whose model has a larger context.", fixed, most),
		apierr.Field("client_tools", "too long for the model's context, with the agent's prompt and tools"))
}

// ToolNameTaken refuses a client's tool by its place in the request.
func ToolNameTaken(i int, name string) error {
	return Of(codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_TOOL_NAME_TAKEN,
		fmt.Sprintf("The agent has a tool %s already. Give the client's tool another name.", name),
		apierr.Field(fmt.Sprintf("client_tools[%d].name", i), "is taken"))
}

// BeyondScope refuses to read a file of a message with a credential that is limited to other scopes.
func BeyondScope(scope, field string) error {
	return Of(codes.PermissionDenied, sessionv1.ErrorReason_ERROR_REASON_BEYOND_ROLE,
		"The credential does not have the scope "+scope+", which reading this file needs.", apierr.Field(field, "needs the scope "+scope))
}

// BeyondLog refuses to follow a session from behind the end of its log.
func BeyondLog(session string, last, after int64) error {
	return Of(codes.OutOfRange, sessionv1.ErrorReason_ERROR_REASON_SEQ_OUT_OF_RANGE,
		fmt.Sprintf("after_seq is %d, but the log of %s ends at %d. Use the seq of an event that you received.", after, session, last),
		apierr.Metadata(map[string]string{"last_seq": strconv.FormatInt(last, 10)}))
}

// LimitReached refuses what a limit forbids now: whose it is, and its key with its value.
func LimitReached(whose, limit string, wait time.Duration) error {
	return Of(codes.ResourceExhausted, sessionv1.ErrorReason_ERROR_REASON_LIMIT_REACHED,
		fmt.Sprintf("%s has reached a limit (%s). Try again after the time in retry-after, or ask the operator for a higher limit.", whose, limit),
		apierr.RetryAfter(wait), apierr.Quota(whose, limit))
}

// CallNotFound refuses an answer to a call that does not exist.
func CallNotFound(session, call string) error {
	return Of(codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_CALL_NOT_FOUND,
		fmt.Sprintf("There is no call %s in %s. Take the call's id from the session's events.", call, session), apierr.Resource("fairlead.dev/Call", call, "not found"))
}

// CallAnswered refuses another answer to a call.
func CallAnswered(call, message string, metadata map[string]string) error {
	return Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_CALL_ANSWERED, "The call "+message+" One answer counts.",
		apierr.Metadata(metadata), apierr.Precondition("CALL", call, "has an answer"))
}

// CallEnded refuses an answer to a call that ended.
func CallEnded(call, why string) error {
	return Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_CALL_ENDED,
		fmt.Sprintf("The call %s no longer accepts an answer: %s.", call, why), apierr.Precondition("CALL", call, why))
}

// QuestionMismatch refuses the answer to a question that a call does not ask any more.
func QuestionMismatch(call string) error {
	return Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_QUESTION_MISMATCH,
		fmt.Sprintf("Call %s asks another question by now. Show the person the latest question.requested, and answer with its question's id.", call),
		apierr.Precondition("CALL", call, "asks another question"))
}
