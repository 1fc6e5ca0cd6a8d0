// Package remote is the one place that talks to the sandbox and the tools service.
//
// It turns the codes and reasons of their errors into errors that callers compare with
// errors.Is. Such an error keeps the peer's status: its code, message and details.
package remote

import (
	"errors"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// Kinds of errors of either peer.
var (
	// ErrUnavailable means that the peer did not answer, or not in time.
	ErrUnavailable = errors.New("the peer is unavailable")
	// ErrAborted means that the peer began the work and gave it up.
	ErrAborted = errors.New("the peer gave up")
	// ErrUnsupported means that the peer does not have the RPC: it is of an older version.
	ErrUnsupported = errors.New("the peer does not support it")
	// ErrRefused means that the peer has refused the work and did nothing of it. The three after it say why, where that
	// matters.
	ErrRefused = errors.New("the peer refuses")
	// ErrInvalid means that the request asks for something that the peer does not have or allow.
	ErrInvalid = errors.New("the request is invalid")
	// ErrPrecondition means that the peer's state forbids it.
	ErrPrecondition = errors.New("the peer's state forbids it")
	// ErrExhausted means that there is no room.
	ErrExhausted = errors.New("there is no room")
)

// kinds are the kinds of errors by their code. Other codes say that the peer failed.
var kinds = map[codes.Code][]error{
	codes.Unavailable:        {ErrUnavailable},
	codes.DeadlineExceeded:   {ErrUnavailable},
	codes.Canceled:           {ErrAborted},
	codes.Aborted:            {ErrAborted},
	codes.Unimplemented:      {ErrUnsupported},
	codes.InvalidArgument:    {ErrRefused, ErrInvalid},
	codes.NotFound:           {ErrRefused, ErrInvalid},
	codes.FailedPrecondition: {ErrRefused, ErrPrecondition},
	codes.ResourceExhausted:  {ErrRefused, ErrExhausted},
	codes.AlreadyExists:      {ErrRefused},
	codes.PermissionDenied:   {ErrRefused},
	codes.Unauthenticated:    {ErrRefused},
}

// Refusals of either peer.
var (
	// ErrStaleEpoch means that another worker holds the session.
	ErrStaleEpoch = errors.New("the epoch is stale")
	// ErrCallIDReused means that the call id belongs to another call.
	ErrCallIDReused = errors.New("the call id is used")
	// ErrCallCancelled means that the call was cancelled before.
	ErrCallCancelled = errors.New("the call was cancelled")
)

// Refusals of the sandbox.
var (
	// ErrNoWorkspace means that the node does not have the session's workspace.
	ErrNoWorkspace = errors.New("there is no workspace")
	// ErrWorkspaceExists means that the session has a workspace already.
	ErrWorkspaceExists = errors.New("the workspace exists")
	// ErrStaleGeneration means that the workspace has moved to another place.
	ErrStaleGeneration = errors.New("the generation is stale")
	// ErrBadArchive means that the archive cannot become a workspace.
	ErrBadArchive = errors.New("the archive is bad")
	// ErrNoSnapshot means that there is no such snapshot.
	ErrNoSnapshot = errors.New("there is no such snapshot")
	// ErrTooManySnapshots means that there is no room for another snapshot.
	ErrTooManySnapshots = errors.New("there are too many snapshots")
	// ErrNoObjectStore means that the node has no object store.
	ErrNoObjectStore = errors.New("there is no object store")
	// ErrNoRepository means that the directory is not a repository.
	ErrNoRepository = errors.New("there is no repository")
	// ErrRepositoryExists means that the repository's directory is taken.
	ErrRepositoryExists = errors.New("the repository exists")
	// ErrNoTree means that the node does not have a tree.
	ErrNoTree = errors.New("there is no such tree")
	// ErrBranchExists means that the repository has the branch already.
	ErrBranchExists = errors.New("the branch exists")
)

// ErrNoOperation means that the tools service does not have the operation.
var ErrNoOperation = errors.New("there is no such operation")

var ofSandbox = map[sandboxv1.ErrorReason]error{
	sandboxv1.ErrorReason_ERROR_REASON_STALE_EPOCH:          ErrStaleEpoch,
	sandboxv1.ErrorReason_ERROR_REASON_CALL_ID_REUSED:       ErrCallIDReused,
	sandboxv1.ErrorReason_ERROR_REASON_CALL_CANCELLED:       ErrCallCancelled,
	sandboxv1.ErrorReason_ERROR_REASON_WORKSPACE_NOT_FOUND:  ErrNoWorkspace,
	sandboxv1.ErrorReason_ERROR_REASON_WORKSPACE_EXISTS:     ErrWorkspaceExists,
	sandboxv1.ErrorReason_ERROR_REASON_STALE_GENERATION:     ErrStaleGeneration,
	sandboxv1.ErrorReason_ERROR_REASON_BAD_ARCHIVE:          ErrBadArchive,
	sandboxv1.ErrorReason_ERROR_REASON_SNAPSHOT_NOT_FOUND:   ErrNoSnapshot,
	sandboxv1.ErrorReason_ERROR_REASON_TOO_MANY_SNAPSHOTS:   ErrTooManySnapshots,
	sandboxv1.ErrorReason_ERROR_REASON_NO_OBJECT_STORE:      ErrNoObjectStore,
	sandboxv1.ErrorReason_ERROR_REASON_REPOSITORY_NOT_FOUND: ErrNoRepository,
	sandboxv1.ErrorReason_ERROR_REASON_REPOSITORY_EXISTS:    ErrRepositoryExists,
	sandboxv1.ErrorReason_ERROR_REASON_BRANCH_EXISTS:        ErrBranchExists,
	sandboxv1.ErrorReason_ERROR_REASON_TREE_NOT_FOUND:       ErrNoTree,
}

var ofTools = map[toolsv1.ErrorReason]error{
	toolsv1.ErrorReason_ERROR_REASON_STALE_EPOCH:         ErrStaleEpoch,
	toolsv1.ErrorReason_ERROR_REASON_CALL_ID_REUSED:      ErrCallIDReused,
	toolsv1.ErrorReason_ERROR_REASON_CALL_CANCELLED:      ErrCallCancelled,
	toolsv1.ErrorReason_ERROR_REASON_OPERATION_NOT_FOUND: ErrNoOperation,
}

// Error adds to a peer's error what its code and its reason stand for, if anything.
func Error(err error) error {
	is := kinds[status.Code(err)]
	reason := ofSandbox[apierr.As[sandboxv1.ErrorReason](err)]
	if reason == nil {
		reason = ofTools[apierr.As[toolsv1.ErrorReason](err)]
	}
	if reason != nil {
		is = append(slices.Clip(is), reason)
	}
	if len(is) == 0 {
		return err
	}
	return apierr.Mark(err, is...)
}

// Unavailable returns the error of a part of this service that a turn waits for as for a peer. The message is for people.
func Unavailable(message string) error { return Error(status.Error(codes.Unavailable, message)) }

// Refused returns the error of a part of this service that a turn has asked as a peer. The message is for people.
func Refused(message string) error { return Error(status.Error(codes.FailedPrecondition, message)) }
