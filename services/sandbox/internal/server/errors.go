package server

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/filename"
	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/diskspace"
	"github.com/fairlead/fairlead/services/sandbox/internal/egress"
	"github.com/fairlead/fairlead/services/sandbox/internal/files"
	"github.com/fairlead/fairlead/services/sandbox/internal/repository"
	"github.com/fairlead/fairlead/services/sandbox/internal/snapshot"
	"github.com/fairlead/fairlead/services/sandbox/internal/tree"
)

const domain = "sandbox.fairlead.dev"

var errNoPrincipal = errors.New("the request has no principal")

// rule maps an error to a status.
type rule struct {
	err    error
	code   codes.Code
	reason sandboxv1.ErrorReason
}

// rules is the only table from errors to statuses.
var rules = []rule{
	{box.ErrNoWorkspace, codes.NotFound, sandboxv1.ErrorReason_ERROR_REASON_WORKSPACE_NOT_FOUND},
	{box.ErrWorkspaceExists, codes.AlreadyExists, sandboxv1.ErrorReason_ERROR_REASON_WORKSPACE_EXISTS},
	{files.ErrArchive, codes.InvalidArgument, sandboxv1.ErrorReason_ERROR_REASON_BAD_ARCHIVE},
	{box.ErrNoExec, codes.NotFound, sandboxv1.ErrorReason_ERROR_REASON_EXEC_NOT_FOUND},
	{box.ErrNotFinished, codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_EXEC_NOT_FOUND},
	{box.ErrCallIDReused, codes.AlreadyExists, sandboxv1.ErrorReason_ERROR_REASON_CALL_ID_REUSED},
	{box.ErrAcknowledged, codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_EXEC_ACKNOWLEDGED},
	{box.ErrOutcomeUnknown, codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_OUTCOME_UNKNOWN},
	{box.ErrCancelled, codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_CALL_CANCELLED},
	{box.ErrStaleEpoch, codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_STALE_EPOCH},
	{box.ErrStaleGeneration, codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_STALE_GENERATION},
	{box.ErrSealed, codes.Unavailable, sandboxv1.ErrorReason_ERROR_REASON_WORKSPACE_SEALED},
	{box.ErrWrongNode, codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_WRONG_NODE},
	{box.ErrWorkspaceFull, codes.ResourceExhausted, sandboxv1.ErrorReason_ERROR_REASON_WORKSPACE_FULL},
	{box.ErrTooManyExecs, codes.ResourceExhausted, sandboxv1.ErrorReason_ERROR_REASON_TOO_MANY_EXECS},
	{box.ErrTooManySandboxes, codes.ResourceExhausted, sandboxv1.ErrorReason_ERROR_REASON_TOO_MANY_SANDBOXES},
	{box.ErrLimitUnavailable, codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_LIMIT_UNAVAILABLE},
	{diskspace.ErrFull, codes.ResourceExhausted, sandboxv1.ErrorReason_ERROR_REASON_DISK_FULL},
	{box.ErrIsolation, codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_ISOLATION_FAILED},
	{box.ErrNoMount, codes.NotFound, sandboxv1.ErrorReason_ERROR_REASON_MOUNT_NOT_FOUND},
	{box.ErrMountRefused, codes.InvalidArgument, sandboxv1.ErrorReason_ERROR_REASON_MOUNT_REFUSED},
	{box.ErrNoTree, codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_TREE_NOT_FOUND},
	{box.ErrTrees, codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_TREES_UNAVAILABLE},
	{tree.ErrFull, codes.ResourceExhausted, sandboxv1.ErrorReason_ERROR_REASON_TREES_FULL},
	{tree.ErrDigest, codes.InvalidArgument, sandboxv1.ErrorReason_ERROR_REASON_BAD_ARCHIVE},
	{box.ErrMountPoint, codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_MOUNT_POINT},
	{box.ErrMountsInUse, codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_MOUNTS_IN_USE},
	{box.ErrStorageFull, codes.ResourceExhausted, sandboxv1.ErrorReason_ERROR_REASON_STORAGE_FULL},
	{files.ErrReadOnly, codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_READ_ONLY_MOUNT},
	{files.ErrMountPoint, codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_MOUNT_POINT},
	{files.ErrGone, codes.NotFound, sandboxv1.ErrorReason_ERROR_REASON_WORKSPACE_NOT_FOUND},
	{files.ErrNotFound, codes.NotFound, sandboxv1.ErrorReason_ERROR_REASON_FILE_NOT_FOUND},
	{files.ErrEscapes, codes.InvalidArgument, sandboxv1.ErrorReason_ERROR_REASON_PATH_ESCAPES},
	{files.ErrName, codes.InvalidArgument, sandboxv1.ErrorReason_ERROR_REASON_BAD_PATH},
	{files.ErrChanged, codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_PATH_CHANGED},
	{files.ErrNotText, codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_NOT_TEXT},
	{files.ErrWrongType, codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_WRONG_FILE_TYPE},
	{files.ErrExport, codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_WRONG_FILE_TYPE},
	{files.ErrExists, codes.AlreadyExists, sandboxv1.ErrorReason_ERROR_REASON_FILE_EXISTS},
	{files.ErrEtag, codes.Aborted, sandboxv1.ErrorReason_ERROR_REASON_ETAG_MISMATCH},
	{files.ErrPattern, codes.InvalidArgument, sandboxv1.ErrorReason_ERROR_REASON_BAD_PATTERN},
	{files.ErrTooLarge, codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_FILE_TOO_LARGE},
	{files.ErrNotEmpty, codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_DIRECTORY_NOT_EMPTY},
	{files.ErrNoRoom, codes.ResourceExhausted, sandboxv1.ErrorReason_ERROR_REASON_WORKSPACE_FULL},
	{files.ErrTooMany, codes.ResourceExhausted, sandboxv1.ErrorReason_ERROR_REASON_TOO_MANY_WATCHED},
	{snapshot.ErrNotFound, codes.NotFound, sandboxv1.ErrorReason_ERROR_REASON_SNAPSHOT_NOT_FOUND},
	{snapshot.ErrDamaged, codes.DataLoss, sandboxv1.ErrorReason_ERROR_REASON_SNAPSHOT_DAMAGED},
	{snapshot.ErrChanged, codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_WRONG_FILE_TYPE},
	{snapshot.ErrTooDeep, codes.ResourceExhausted, sandboxv1.ErrorReason_ERROR_REASON_WORKSPACE_FULL},
	{snapshot.ErrTooLarge, codes.ResourceExhausted, sandboxv1.ErrorReason_ERROR_REASON_TOO_MANY_SNAPSHOTS},
	{errTooManySnapshots, codes.ResourceExhausted, sandboxv1.ErrorReason_ERROR_REASON_TOO_MANY_SNAPSHOTS},
	{errNoObjects, codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_NO_OBJECT_STORE},
	{errObjects, codes.Unavailable, sandboxv1.ErrorReason_ERROR_REASON_OBJECT_STORE_FAILED},
	{egress.ErrPolicy, codes.InvalidArgument, sandboxv1.ErrorReason_ERROR_REASON_BAD_NETWORK_POLICY},
	{repository.ErrNotAllowed, codes.PermissionDenied, sandboxv1.ErrorReason_ERROR_REASON_REMOTE_NOT_ALLOWED},
	{repository.ErrInvalid, codes.InvalidArgument, sandboxv1.ErrorReason_ERROR_REASON_BAD_REPOSITORY},
	{errRepositoryExists, codes.AlreadyExists, sandboxv1.ErrorReason_ERROR_REASON_REPOSITORY_EXISTS},
	{errRepositoryNotFound, codes.NotFound, sandboxv1.ErrorReason_ERROR_REASON_REPOSITORY_NOT_FOUND},
	{errBranchExists, codes.AlreadyExists, sandboxv1.ErrorReason_ERROR_REASON_BRANCH_EXISTS},
	{errPushRejected, codes.Aborted, sandboxv1.ErrorReason_ERROR_REASON_PUSH_REJECTED},
	{errGit, codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_GIT_FAILED},
	{page.ErrBadToken, codes.InvalidArgument, sandboxv1.ErrorReason_ERROR_REASON_BAD_PAGE_TOKEN},
}

// status turns an error into what callers see. It returns an unknown error unchanged: the interceptor hides
// and logs it.
func status(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var ceiling *box.CeilingError
	var floor *box.FloorError
	var edit *files.EditError
	var similar *files.SimilarError
	var before *box.FailedBeforeError
	switch {
	case errors.As(err, &before):
		var was spb.Status
		if bad := proto.Unmarshal(before.Failure, &was); bad != nil {
			return fmt.Errorf("read what a change failed with: %w", bad)
		}
		return apierr.Forward(grpcstatus.ErrorProto(&was))
	case errors.As(err, &ceiling):
		return apierr.Of(codes.InvalidArgument, sandboxv1.ErrorReason_ERROR_REASON_LIMIT_ABOVE_CEILING,
			err.Error(), apierr.Field(ceiling.Field, err.Error()), apierr.Metadata(map[string]string{"asked": ceiling.Asked, "allowed": ceiling.Ceiling}))
	case errors.As(err, &floor):
		return invalid(floor.Field, "%s", strings.TrimPrefix(err.Error(), floor.Field+" "))
	case errors.As(err, &edit):
		return editStatus(edit)
	case errors.As(err, &similar):
		return apierr.Of(codes.NotFound, sandboxv1.ErrorReason_ERROR_REASON_FILE_NOT_FOUND, plain(err.Error()),
			apierr.Metadata(map[string]string{"similar": filename.Encode(similar.Similar)}))
	case errors.Is(err, errNoPrincipal):
		return apierr.New(codes.Unauthenticated, domain, apierr.ReasonInternalTokenMissing, err.Error())
	case errors.Is(err, box.ErrForgotten):
		return apierr.New(codes.Unavailable, domain, apierr.ReasonDraining, err.Error(), apierr.RetryAfter(time.Second))
	case errors.Is(err, box.ErrClosed):
		return apierr.New(codes.Unavailable, domain, apierr.ReasonDraining, err.Error(), apierr.RetryAfter(time.Second))
	}
	for _, r := range rules {
		if errors.Is(err, r.err) {
			text := plain(err.Error())
			return apierr.Of(r.code, r.reason, text, details(r, text)...)
		}
	}
	return err
}

func editStatus(e *files.EditError) error {
	r := sandboxv1.ErrorReason_ERROR_REASON_EDIT_NO_MATCH
	if e.Found > 0 {
		r = sandboxv1.ErrorReason_ERROR_REASON_EDIT_NOT_UNIQUE
	}
	return apierr.Of(codes.FailedPrecondition, r, e.Error(), apierr.Metadata(map[string]string{
		"index": strconv.Itoa(e.Index), "found": strconv.Itoa(e.Found), "why": e.Why,
	}))
}

// details returns the details for a code.
func details(r rule, text string) []apierr.Option {
	switch {
	case r.reason == sandboxv1.ErrorReason_ERROR_REASON_TOO_MANY_EXECS:
		return []apierr.Option{apierr.Quota("execs", text), apierr.RetryAfter(time.Second)}
	case r.reason == sandboxv1.ErrorReason_ERROR_REASON_TOO_MANY_SANDBOXES:
		return []apierr.Option{apierr.Quota("sandboxes", text), apierr.RetryAfter(time.Second)}
	case r.reason == sandboxv1.ErrorReason_ERROR_REASON_DISK_FULL:
		return []apierr.Option{apierr.Quota("disk", text), apierr.RetryAfter(10 * time.Second)}
	case r.code == codes.Unavailable:
		return []apierr.Option{apierr.RetryAfter(time.Second)}
	case r.code == codes.ResourceExhausted:
		return []apierr.Option{apierr.Quota("workspace", text)}
	case r.code == codes.FailedPrecondition:
		return []apierr.Option{apierr.Precondition(apierr.Name(r.reason), "workspace", text)}
	}
	return nil
}

// invalid returns an error for a wrong field of a request.
func invalid(field, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	return apierr.New(codes.InvalidArgument, domain, apierr.ReasonInvalidRequest, field+": "+text, apierr.Field(field, text))
}
