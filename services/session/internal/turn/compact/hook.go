package compact

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
	"github.com/fairlead/fairlead/services/session/internal/turn/calls"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
	"github.com/fairlead/fairlead/services/session/internal/turn/workspace"
)

const (
	// hookTime bounds the command that runs before a compaction.
	hookTime = time.Minute
	// maxHookOutput bounds the part of its output that goes into the summary,
	// in bytes.
	maxHookOutput = 16 << 10
	hookTool      = "Bash"
)

// Hook is an agent's command that runs before a compaction. Its output goes into the summary.
type Hook struct {
	Calls     *calls.Calls
	Workspace *workspace.Workspace

	// The commands that an earlier worker may have begun.
	automatic string // the call id of the current step's command; empty: none
	requested int64  // the first request to compact that was in the inbox; 0: none
}

// run runs the agent's command and returns what it printed. A command that fails is a warning,
// and the compaction goes on without it.
func (h *Hook) run(sc state.Scope, callID string) string {
	if sc.Spec.PreCompaction == "" {
		return ""
	}
	// A successor looks for the command where the log says that the turn is, so the log is flushed before the
	// command begins.
	if sc.Flush() != nil {
		return "" // the log has failed, and every write returns its error
	}
	ctx, cancel := context.WithTimeout(sc, hookTime+10*time.Second) // longer than the limit that tools enforces
	defer cancel()
	out, err := h.call(sc.With(ctx), callID)
	if err != nil && sc.Ended() && sc.WorkerErr() == nil {
		// The turn stops with all its work. A repeated request finds that the call was cancelled.
		h.cancel(sc.Outlasting(), callID)
	}
	if err == nil || sc.Ended() {
		return out
	}
	sc.Logger.WarnContext(sc, "the pre-compaction command failed", "session", sc.Lease.Session, "call", callID, "error", err)
	e := state.Warning("PRE_COMPACTION", fmt.Sprintf("The agent's pre-compaction command failed: %s The conversation is shortened without it.", state.Explain(err)))
	if sc.Active != nil {
		e = sc.StepEvent(e)
	}
	if err := sc.Append(store.Write{Events: []*sessionv1.Event{e}}); err != nil {
		sc.Logger.WarnContext(sc, "a warning was lost", "session", sc.Lease.Session, "error", err) // every write returns the log's failure
	}
	return ""
}

func (h *Hook) cancel(sc state.Scope, callID string) {
	h.Calls.Cancel(sc, &sessionv1.ToolUse{CallId: callID, Tool: hookTool})
}

// Inherit records which commands may run when a worker takes a turn over.
func (h *Hook) Inherit(s *state.Session, commands []store.Command) {
	if s.Spec.PreCompaction == "" || s.Active == nil {
		return
	}
	h.automatic = automaticCall(s.Active)
	for _, c := range commands {
		if c.Kind == store.CommandCompact {
			h.requested = c.ID
			return
		}
	}
}

// StopHook ends a command that an earlier worker may have begun before a compaction, because the
// turn ends. The command is not a call of a message, and no command of an undone turn may run
// when its files are restored. This worker's own command has ended by then.
func (c *Compactor) StopHook(sc state.Scope) {
	if last := sc.Last(); last.GetRole() == sessionv1.Role_ROLE_USER && automaticCall(sc.Active) == c.hook.automatic {
		c.hook.cancel(sc, c.hook.automatic)
	}
	if sc.Active.Undo && len(c.pending) > 0 && c.pending[0].ID == c.hook.requested { // otherwise the command may end after the turn
		c.hook.cancel(sc, requestedCall(sc, c.pending[0].ID))
	}
}

// call makes the call. The call is journaled by its id: repeated after a crash, it returns the
// existing result.
func (h *Hook) call(sc state.Scope, callID string) (string, error) {
	arguments, err := json.Marshal(map[string]any{"command": sc.Spec.PreCompaction, "timeout": hookTime.Milliseconds()})
	if err != nil {
		return "", err
	}
	if err := h.Workspace.Make(sc, sc.CallRef(callID+".workspace")); err != nil {
		return "", err
	}
	next, err := h.Calls.Client.CallTool(sc, &toolsv1.CallToolRequest{
		Call: sc.CallRef(callID), Tool: hookTool, ArgumentsJson: string(arguments), Profile: sc.Spec.Profile, AllowedTools: []string{hookTool},
		Filters: sc.Filters(),
	})
	if err != nil {
		return "", err
	}
	for {
		r, err := next()
		switch {
		case errors.Is(err, io.EOF):
			return "", errors.New("the tools service ended the call's stream early")
		case err != nil:
			return "", err
		case r.GetAsk() != nil:
			return "", errors.New("the permission profile asks a person to allow it, and this command cannot wait for an answer; allow it in the profile")
		case r.GetDelegated() != nil:
			return "", errors.New("the tool does not run commands")
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
