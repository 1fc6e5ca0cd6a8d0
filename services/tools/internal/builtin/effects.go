package builtin

import (
	"context"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

// effects are the tools that change something in the sandbox: commands and changes
// of files. A call may still start after its cancellation, from a process that was
// paused or a request that waits in the sandbox.
type effects struct{ *sandbox }

// Cancel kills the call's command with its children, waits for a running change of
// a file, and makes the sandbox refuse the call from then on.
func (e effects) Cancel(ctx context.Context, c tool.Call) error {
	_, err := e.execs.CancelExec(to(ctx, c), &sandboxv1.CancelExecRequest{Call: ref(c)})
	if err == nil || apierr.Is(err, sandboxv1.ErrorReason_ERROR_REASON_EXEC_NOT_FOUND) {
		return nil
	}
	_, err = failure(ctx, err, workspace)
	return err
}
