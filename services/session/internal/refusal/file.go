package refusal

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session/internal/blob"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// NoFileStore refuses files of users on a server that has no store for them.
func NoFileStore() error {
	return Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_NO_FILE_STORE,
		"This server keeps no files: with Postgres it needs an object store that all replicas reach. Ask the operator to set session.files.store.",
		apierr.Precondition("FILE_STORE", "files", "no store is configured"))
}

// FileNotFound refuses a file that does not exist.
func FileNotFound(name string) error {
	return Of(codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_FILE_NOT_FOUND,
		fmt.Sprintf("There is no file %s. It was deleted, its time has come, or it never existed; list files to see which there are (GET /v1/files).", name),
		apierr.Resource("fairlead.dev/File", name, "not found"))
}

// FileNotComplete refuses a file whose upload has not ended.
func FileNotComplete(f *sessionv1.File) error {
	return Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_FILE_STATE,
		fmt.Sprintf("%s is not complete: %d bytes of it have arrived. Wait until its upload has ended.", f.Name, f.Received),
		apierr.Precondition("FILE_STATE", f.Name, "the upload has not ended"))
}

// ToBeRestored returns the error for requests that need the files of a workspace that has
// left its node and has not arrived at the next one: the files are only in the object
// store. Only the holder may make the workspace then: an empty one would replace those
// files.
func ToBeRestored(session string) error {
	return Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_NODE_LOST,
		"The machine that held the workspace of "+session+" is lost or drained, or has lost it, and its files are not on another machine yet. "+
			"Send a message: the workspace is restored from its last copy before the turn continues. Then try again.",
		apierr.Precondition("WORKSPACE_TO_BE_RESTORED", session, "its files are not on its new node yet"))
}

// NoWorkspaceYet refuses a file of a session without a workspace.
func NoWorkspaceYet(path string) error {
	return apierr.Of(codes.NotFound, sandboxv1.ErrorReason_ERROR_REASON_FILE_NOT_FOUND,
		fmt.Sprintf("There is no file %s: the session has no workspace yet. Write a file, or send a message.", path))
}

// File is Store for a request about one file of a user.
func File(err error, name, requestID string) error {
	switch {
	case errors.Is(err, blob.ErrNone):
		return NoFileStore()
	case errors.Is(err, store.ErrNotFound):
		return FileNotFound(name)
	case errors.Is(err, store.ErrReady):
		return Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_FILE_STATE,
			"The upload of "+name+" has ended. Create another file for other content.", apierr.Precondition("FILE_STATE", name, "the upload has ended"))
	case errors.Is(err, store.ErrFull):
		return Of(codes.ResourceExhausted, sessionv1.ErrorReason_ERROR_REASON_FILES_FULL,
			"The files of the user or the tenant would be larger than they may be. Delete files, or ask the operator for more.", apierr.Quota("files", "bytes of files"))
	case errors.Is(err, blob.ErrTooLong):
		return Of(codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_FILES_FULL,
			"The content of "+name+" is longer than the file's size, or than a file may be. What fits was kept.", apierr.Field("data", "is too long"))
	case errors.Is(err, blob.ErrChecksum):
		return Of(codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_WRONG_CHECKSUM,
			"The content of "+name+" does not have the SHA-256 that was promised, so the file was deleted. Upload it again.", apierr.Field("file.sha256", "is another one"))
	case errors.Is(err, blob.ErrRefused):
		return Of(codes.PermissionDenied, sessionv1.ErrorReason_ERROR_REASON_FILE_REFUSED,
			"The scanner of this server refuses the content of "+name+", so the file was deleted.")
	case errors.Is(err, blob.ErrScanner):
		return Of(codes.Unavailable, sessionv1.ErrorReason_ERROR_REASON_FILES_UNAVAILABLE,
			"The scanner of this server does not answer, so no upload can end. Try again: append nothing at the end.", apierr.RetryAfter(10*time.Second))
	case errors.Is(err, blob.ErrObjects):
		return Of(codes.Unavailable, sessionv1.ErrorReason_ERROR_REASON_FILES_UNAVAILABLE,
			"The store of files cannot be reached, or lacks content. Try again.", apierr.RetryAfter(time.Second))
	}
	return Store(err, Subject{RequestID: requestID})
}
