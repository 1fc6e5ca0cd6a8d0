package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"google.golang.org/grpc"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/filename"
)

// root is the path of the workspace for the model and its commands.
const root = "/workspace"

// changeTimeout bounds a change of a file, which goes on when the call is ended: half of it is no outcome.
const changeTimeout = time.Minute

// sandbox has the services that make calls.
type sandbox struct {
	workspaces sandboxv1.WorkspaceServiceClient
	execs      sandboxv1.ExecServiceClient
	files      sandboxv1.FileServiceClient
	network    *sandboxv1.NetworkPolicy
}

func newSandbox(to grpc.ClientConnInterface, network *sandboxv1.NetworkPolicy) *sandbox {
	return &sandbox{sandboxv1.NewWorkspaceServiceClient(to), sandboxv1.NewExecServiceClient(to), sandboxv1.NewFileServiceClient(to), network}
}

// workspace is the workspace of a session of the server's.
type workspace struct {
	*sandbox
	session string // the sandbox's name of it
}

// workspace returns the workspace of a session. The ids of the server can have any form, the sandbox's cannot.
func (s *sandbox) workspace(environment, session string) *workspace {
	return &workspace{s, "sessions/w-" + digest(environment, session)}
}

func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:20])
}

// ref names a call by the id of its event. The data directory has one worker at a time, so there is one epoch.
func (w *workspace) ref(id string) *commonv1.CallRef {
	return &commonv1.CallRef{Session: w.session, Epoch: 1, CallId: "c-" + digest(w.session, id)}
}

// ensure makes the workspace, or finds it.
func (w *workspace) ensure(ctx context.Context) error {
	_, err := w.workspaces.EnsureWorkspace(ctx, &sandboxv1.EnsureWorkspaceRequest{Call: w.ref(""), Network: w.network, Warm: true})
	if err != nil {
		return fmt.Errorf("make the workspace: %s", apierr.Message(err))
	}
	return nil
}

// remove deletes the workspace.
func (w *workspace) remove(ctx context.Context) error {
	if _, err := w.workspaces.DeleteWorkspace(ctx, &sandboxv1.DeleteWorkspaceRequest{Session: w.session}); err != nil {
		return fmt.Errorf("delete the workspace: %s", apierr.Message(err))
	}
	return nil
}

// result is what a call returns to the model.
type result struct {
	text   string
	failed bool
}

func done(format string, args ...any) result { return result{text: fmt.Sprintf(format, args...)} }

func failed(format string, args ...any) result { return result{fmt.Sprintf(format, args...), true} }

// tools are the tools of the toolset, by their names on the wire.
var tools = map[string]func(w *workspace, ctx context.Context, c event) result{
	"bash": (*workspace).bash, "read": (*workspace).read, "write": (*workspace).write, "edit": (*workspace).edit,
	"glob": (*workspace).glob, "grep": (*workspace).grep,
}

func (w *workspace) knows(name string) bool { return tools[name] != nil }

// run makes a call.
func (w *workspace) run(ctx context.Context, c event) result { return tools[c.Name](w, ctx, c) }

// input reads the input of a call.
func input(c event, into any) (bad result, ok bool) {
	if err := json.Unmarshal(c.Input, into); err != nil {
		return failed("The input of %s is not of the right form: %s.", c.Name, strings.TrimPrefix(err.Error(), "json: ")), false
	}
	return result{}, true
}

const (
	lostText      = "The worker was lost while this call ran, and how the call ended is not known. It may have taken effect: check before you repeat it."
	cancelledText = "The call was stopped. What it had done by then stays done."
	stoppingText  = "The worker was shut down, and ended the call. What it had done by then stays done."
)

// refused returns the model's text for an error of the sandbox.
func refused(ctx context.Context, err error, file string) result {
	message := filename.Show(apierr.Message(err))
	switch apierr.As[sandboxv1.ErrorReason](err) {
	case sandboxv1.ErrorReason_ERROR_REASON_FILE_NOT_FOUND:
		return failed("File does not exist: %s. Paths are relative to %s, or absolute below it.", file, root)
	case sandboxv1.ErrorReason_ERROR_REASON_PATH_ESCAPES:
		return failed("The path %s leads outside the workspace. Use a path below %s.", file, root)
	case sandboxv1.ErrorReason_ERROR_REASON_EDIT_NO_MATCH:
		return failed("old_string was not found in %s. It must be there exactly, with its indentation and line breaks. Nothing was changed.", file)
	case sandboxv1.ErrorReason_ERROR_REASON_EDIT_NOT_UNIQUE:
		return failed("old_string occurs more than once in %s. Set replace_all, or add lines around it until it is unique. Nothing was changed.", file)
	case sandboxv1.ErrorReason_ERROR_REASON_OUTCOME_UNKNOWN, sandboxv1.ErrorReason_ERROR_REASON_EXEC_ACKNOWLEDGED:
		return failed(lostText)
	case sandboxv1.ErrorReason_ERROR_REASON_CALL_CANCELLED:
		return stopped(ctx)
	}
	return failed("The sandbox could not do this: %s", message)
}

// stopped returns the text for a call that was ended.
func stopped(ctx context.Context) result {
	if errors.Is(context.Cause(ctx), errStopping) {
		return failed(stoppingText)
	}
	return failed(cancelledText)
}

// shown returns a path of the workspace as the model knows it.
func shown(rel string) string {
	if path.IsAbs(rel) {
		return filename.Show(rel)
	}
	return filename.Show(root + "/" + rel)
}
