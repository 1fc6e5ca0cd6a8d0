// Package remote is the one place that talks to the sandbox and the tools service.
//
// It turns the reasons of their refusals into errors that callers compare with errors.Is.
// Such an error keeps the peer's status: its code, message and details.
package remote

import (
	"errors"

	"google.golang.org/grpc/status"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

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

// refusal is a peer's error with the error that callers compare.
type refusal struct {
	error
	is error
}

func (r refusal) Unwrap() []error { return []error{r.error, r.is} }

// GRPCStatus returns the peer's status, without which the text of the status would change.
func (r refusal) GRPCStatus() *status.Status { return status.Convert(r.error) }

// Error adds to a peer's error the error that its reason stands for, if any.
func Error(err error) error {
	is := ofSandbox[apierr.As[sandboxv1.ErrorReason](err)]
	if is == nil {
		is = ofTools[apierr.As[toolsv1.ErrorReason](err)]
	}
	if is == nil {
		return err
	}
	return refusal{err, is}
}
