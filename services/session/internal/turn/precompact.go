package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

const (
	// hookTime bounds the command that runs before a compaction.
	hookTime = time.Minute
	// maxHookOutput bounds the part of its output that goes into the summary,
	// in bytes.
	maxHookOutput = 16 << 10
	hookTool      = "Bash"
)

// preCompaction runs the agent's command and returns what it printed. A command
// that fails is a warning, and the compaction goes on without it.
func (w *Worker) preCompaction(ctx, parent context.Context, callID string) string {
	if w.Spec.PreCompaction == "" {
		return ""
	}
	// A successor looks for the command where the log says that the turn is, so the log is flushed before the
	// command begins.
	if w.Log.Flush(parent) != nil {
		return "" // the log has failed, and every write returns its error
	}
	hookCtx, cancel := context.WithTimeout(ctx, hookTime+10*time.Second) // longer than the limit that tools enforces
	defer cancel()
	out, err := w.runHook(hookCtx, callID)
	if err != nil && ctx.Err() != nil && parent.Err() == nil {
		// The turn stops with all its work. A repeated request finds that the call was cancelled.
		(&caller{w: w, parent: parent}).cancel(&sessionv1.ToolUse{CallId: callID, Tool: hookTool}) //nolint:contextcheck // ctx has ended; cancelling has a context of its own
	}
	if err == nil || ctx.Err() != nil {
		return out
	}
	w.Logger.WarnContext(ctx, "the pre-compaction command failed", "session", w.Lease.Session, "call", callID, "error", err)
	e := &sessionv1.Event{Body: &sessionv1.Event_Warning{Warning: &sessionv1.Warning{
		Reason: "PRE_COMPACTION", Message: fmt.Sprintf("The agent's pre-compaction command failed: %s The conversation is shortened without it.", state.Explain(err)),
	}}}
	if w.Active != nil {
		e = w.Event(w.Active.Step(), e)
	}
	if err := w.Log.Append(parent, store.Write{Events: []*sessionv1.Event{e}}); err != nil {
		w.Logger.WarnContext(ctx, "a warning was lost", "session", w.Lease.Session, "error", err) // the log has failed, and says so to all
	}
	return ""
}

// stopHook ends a command that an earlier worker may have begun before a compaction,
// because the turn ends. The command is not a call of a message, and no command of
// an undone turn may run when its files are restored. This worker's own command has
// ended by then.
func (w *Worker) stopHook(ctx context.Context) {
	var ids []string
	if last := w.Last(); last != nil && last.Role == sessionv1.Role_ROLE_USER && w.compactCallID() == w.inherited.automatic {
		ids = append(ids, w.inherited.automatic)
	}
	if w.Active.Undo && len(w.compacts) > 0 && w.compacts[0].ID == w.inherited.requested { // otherwise the command may end after the turn
		ids = append(ids, w.requestedCallID(w.compacts[0]))
	}
	for _, id := range ids {
		(&caller{w: w, parent: ctx}).cancel(&sessionv1.ToolUse{CallId: id, Tool: hookTool}) //nolint:contextcheck // the caller has the worker's
	}
}

// hooks are the commands that an earlier worker may have begun.
type hooks struct {
	automatic string // the call id of the current step's command; empty: none
	requested int64  // the first request to compact that was in the inbox; 0: none
}

// inherit notes which commands may run when a worker takes a turn over.
func (w *Worker) inherit(commands []store.Command) {
	if w.Spec.PreCompaction == "" || w.Active == nil {
		return
	}
	w.inherited.automatic = w.compactCallID()
	for _, c := range commands {
		if c.Kind == store.CommandCompact {
			w.inherited.requested = c.ID
			return
		}
	}
}

// runHook makes the call. The call is journaled by its id: repeated after a
// crash, it returns the existing result.
func (w *Worker) runHook(ctx context.Context, callID string) (string, error) {
	arguments, err := json.Marshal(map[string]any{"command": w.Spec.PreCompaction, "timeout": hookTime.Milliseconds()})
	if err != nil {
		return "", err
	}
	if err := w.ensureWorkspace(ctx, w.CallRef(callID+".workspace"), nil); err != nil {
		return "", err
	}
	stream, err := w.deps.Calls.CallTool(ctx, &toolsv1.CallToolRequest{
		Call: w.CallRef(callID), Tool: hookTool, ArgumentsJson: string(arguments), Profile: w.Spec.Profile, AllowedTools: []string{hookTool},
	})
	if err != nil {
		return "", err
	}
	for {
		r, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return "", errors.New("the tools service ended the call's stream early")
		case err != nil:
			return "", err
		case r.GetAsk() != nil:
			return "", errors.New("the permission profile asks a person for it, and nobody is there to be asked")
		case r.GetDelegated() != nil:
			return "", errors.New("the tool runs no command")
		case r.GetResult() != nil:
			return hookOutput(r.GetResult())
		}
	}
}

func hookOutput(r *toolsv1.CallResult) (string, error) {
	var out strings.Builder
	for _, c := range r.Content {
		out.WriteString(c.GetText().GetText())
	}
	text := strings.TrimSpace(out.String())
	if len(text) > maxHookOutput {
		text = strings.ToValidUTF8(text[:maxHookOutput], "") + "\n[…]"
	}
	if r.Outcome != toolsv1.CallOutcome_CALL_OUTCOME_OK {
		return "", fmt.Errorf("it ended with %s: %s", strings.TrimPrefix(r.Outcome.String(), "CALL_OUTCOME_"), text)
	}
	return text, nil
}
