package builtin

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/filename"
	"github.com/fairlead/fairlead/services/internal/kit/node"
	"github.com/fairlead/fairlead/services/tools/internal/remote"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

// workspace is the path of the workspace for the model and its commands.
const workspace = "/workspace"

// maxPathBytes bounds the length of a path: the sandbox's own limit.
const maxPathBytes = 4096

// cancelledText is the model's text for a call that was stopped.
const cancelledText = "The call was cancelled. What it had done by then stays done."

// unknownText is the model's text for a call whose end is not known.
const unknownText = "The sandbox lost this call, and how it ended is not known. It may have taken effect: check before repeating it."

// ref returns the sandbox's reference of a call.
func ref(c tool.Call) *commonv1.CallRef {
	return &commonv1.CallRef{Session: c.Session, Holder: c.Holder, Epoch: c.Epoch, CallId: c.ID, Node: c.Node, WorkspaceGeneration: c.WorkspaceGeneration}
}

// to directs a request to the node of a call.
func to(ctx context.Context, c tool.Call) context.Context { return node.At(ctx, c.Node) }

// texts are the model's texts for refusals of a file.
type texts map[sandboxv1.ErrorReason]func(err error, file string) string

// common are the texts of all tools that have none of their own.
var common = texts{
	sandboxv1.ErrorReason_ERROR_REASON_FILE_NOT_FOUND: func(err error, file string) string {
		return fmt.Sprintf("File does not exist: %s. %s", filename.Show(file), elsewhere(err))
	},
	sandboxv1.ErrorReason_ERROR_REASON_PATH_ESCAPES: func(_ error, file string) string {
		return fmt.Sprintf("The path %s leads outside the workspace. Use a path below %s.", filename.Show(file), workspace)
	},
	sandboxv1.ErrorReason_ERROR_REASON_BAD_PATH: func(err error, _ string) string {
		return fmt.Sprintf("The path cannot be used: %s.", message(err))
	},
	sandboxv1.ErrorReason_ERROR_REASON_PATH_CHANGED: func(_ error, file string) string {
		return fmt.Sprintf("A symbolic link on the path %s changed while the call was made. Nothing was done. Make the call again.", filename.Show(file))
	},
}

// cannot returns the text for a file that is not what the tool needs.
func cannot(what string) func(error, string) string {
	return func(err error, file string) string {
		return fmt.Sprintf("%s cannot be %s: %s", filename.Show(file), what, message(err))
	}
}

// failure is texts.failure for tools without texts of their own.
func failure(ctx context.Context, err error, file string) (*tool.Result, error) {
	return common.failure(ctx, err, file)
}

// failure converts a sandbox's error into a result for the model, or into the
// error that says why the call could not be made.
func (own texts) failure(ctx context.Context, err error, file string) (*tool.Result, error) {
	reason := apierr.As[sandboxv1.ErrorReason](err)
	for _, t := range []texts{own, common} {
		if text := t[reason]; text != nil {
			return tool.Failed(text(err, file)), nil
		}
	}
	message := message(err)
	switch reason {
	case sandboxv1.ErrorReason_ERROR_REASON_CALL_CANCELLED:
		return tool.Ended(toolsv1.CallOutcome_CALL_OUTCOME_CANCELLED, cancelledText), nil
	case sandboxv1.ErrorReason_ERROR_REASON_OUTCOME_UNKNOWN:
		return tool.Ended(toolsv1.CallOutcome_CALL_OUTCOME_UNKNOWN, unknownText), nil
	case sandboxv1.ErrorReason_ERROR_REASON_STALE_EPOCH:
		return nil, fmt.Errorf("%w: %s", tool.ErrStaleEpoch, message)
	case sandboxv1.ErrorReason_ERROR_REASON_TOO_MANY_EXECS:
		return nil, fmt.Errorf("%w: %s", tool.ErrUnavailable, message)
	case sandboxv1.ErrorReason_ERROR_REASON_STALE_GENERATION, sandboxv1.ErrorReason_ERROR_REASON_WRONG_NODE,
		sandboxv1.ErrorReason_ERROR_REASON_WORKSPACE_NOT_FOUND, sandboxv1.ErrorReason_ERROR_REASON_CALL_ID_REUSED:
		return nil, fmt.Errorf("call the sandbox: %w", err)
	}
	switch {
	case errors.Is(err, remote.ErrUnavailable), errors.Is(err, remote.ErrInterrupted):
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if apierr.Reason(err) == node.ReasonNodeAway {
			return nil, fmt.Errorf("%w: %w", tool.ErrUnavailable, err)
		}
		return nil, fmt.Errorf("%w: %s", tool.ErrUnavailable, message)
	case errors.Is(err, remote.ErrNotServed):
		return nil, fmt.Errorf("call the sandbox: %w", err)
	default:
		return tool.Failed("The sandbox could not do this: " + message), nil
	}
}

// message returns the sandbox's text about a fault. It may contain the name of
// a file.
func message(err error) string { return filename.Show(apierr.Message(err)) }

// elsewhere says where a missing file may be.
func elsewhere(err error) string {
	info, _ := apierr.Detail[*errdetails.ErrorInfo](err)
	if similar := info.GetMetadata()["similar"]; similar != "" {
		return fmt.Sprintf("There is one whose name differs only in its Unicode form: %s opens it.", shownBytes(similar))
	}
	return fmt.Sprintf("Paths are relative to %s, or absolute below it.", workspace)
}

// badPath refuses a path that the sandbox's contract does not allow.
func badPath(p string) *tool.Result {
	switch {
	case strings.ContainsRune(p, 0):
		return tool.Failed("The path contains a NUL character.")
	case len(p) > maxPathBytes:
		return tool.Failed(fmt.Sprintf("The path is longer than %d bytes.", maxPathBytes))
	default:
		return nil
	}
}

// shown returns a path in the form that the model uses.
func shown(rel string) string { return filename.Show(absolute(rel)) }

// shownBytes is shown with each byte outside ASCII escaped.
func shownBytes(rel string) string { return filename.ShowBytes(absolute(rel)) }

func absolute(rel string) string {
	if path.IsAbs(rel) {
		return rel
	}
	return path.Join(workspace, rel)
}

// clip shortens a text for a message to a number of characters.
func clip(s string, limit int) string {
	r := []rune(s[:min(len(s), 4*limit+4)])
	if len(r) <= limit {
		return s
	}
	return string(r[:limit]) + "…"
}
