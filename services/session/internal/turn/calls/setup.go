package calls

import (
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
	setupTool    = "Bash"
	setupProfile = "full" // an operator made the environment: the agent's own profile does not decide
	// setupTime bounds a command, within the limits of the environment.
	setupTime = 10 * time.Minute
	// setupEnd is the part of a failed command's output that people and the model see, in bytes.
	setupEnd = 2 << 10
	// setupTries bounds how often a command begins that was stopped with its turn.
	setupTries = 10
	// setupFailed is the reason of the warning.
	setupFailed = "ENVIRONMENT_SETUP"
)

// Setup runs the commands of the session's environment, once in its workspace. Tools journals each under an id that is the
// same in every turn, so a command that has run is answered from there, also after a crash or a move. The notes tell the
// model of a failure; after a crash in m, perhaps twice. A fork has the files of its session, and sets up nothing.
func (c *Calls) Setup(sc state.Scope, m *sessionv1.Message) (notes string, err error) {
	if c.setUp || sc.Spec.Pinned == nil || len(sc.Spec.Pinned.Setup) == 0 || sc.Proto.ForkedFrom != "" {
		return "", nil
	}
	news := false // the last command ran now
	for i, command := range sc.Spec.Pinned.Setup {
		failure, fresh, err := c.setupOne(sc, i, command)
		news = fresh
		if err != nil || sc.Ended() {
			return "", err
		}
		if failure == "" {
			continue
		}
		c.setUp = true // the rest does not run
		if !fresh && !c.Inherited(m) {
			return "", nil // it failed in an earlier turn, which was told
		}
		text := fmt.Sprintf("The setup of the environment failed at command %d (%s), and the commands after it did not run: %s", i+1, firstLine(command), failure)
		return text, sc.Append(store.Write{Events: []*sessionv1.Event{setUpEvent(sc, i, failure), sc.StepEvent(state.Warning(setupFailed, text))}})
	}
	if c.setUp = true; !news {
		return "", nil
	}
	return "", sc.Append(store.Write{Events: []*sessionv1.Event{setUpEvent(sc, len(sc.Spec.Pinned.Setup), "")}})
}

// setUpEvent returns the event of a setup in which so many commands succeeded.
func setUpEvent(sc state.Scope, commands int, failure string) *sessionv1.Event {
	return sc.StepEvent(&sessionv1.Event{Body: &sessionv1.Event_EnvironmentSetUp{EnvironmentSetUp: &sessionv1.EnvironmentSetUp{
		Environment: sc.Proto.Environment, Version: sc.Spec.Pinned.Version, Commands: int32(commands), Failure: failure,
	}}})
}

// setupOne runs a command, unless it has run. It returns how it failed, and whether it was begun now.
func (c *Calls) setupOne(sc state.Scope, n int, command string) (failure string, fresh bool, err error) {
	arguments, err := json.Marshal(map[string]any{"command": command, "timeout": setupTime.Milliseconds()})
	if err != nil {
		return "", false, err
	}
	for try := range setupTries { // a command that was stopped with its turn has an id that is used up
		// A call's id is unique in its tenant, and a subagent finds the setup of its root.
		u := &sessionv1.ToolUse{CallId: fmt.Sprintf("setup.%s.%d.%d", sc.WorkspaceKey().Session, n, try), Tool: setupTool, ArgumentsJson: string(arguments)}
		var result *toolsv1.CallResult
		for repeats := 0; ; repeats++ {
			var began bool
			result, began, err = c.runSetup(sc, u)
			fresh = fresh || began
			if err == nil || !state.MayRepeat(err) || sc.Ended() {
				break
			}
			if err := pause(sc, u, err, repeats); err != nil {
				return "", fresh, err
			}
		}
		switch {
		case sc.Ended() && result == nil:
			c.cancel(sc.Outlasting(), u)
			return "", fresh, nil
		case err != nil:
			return state.Explain(err), true, nil
		case result.Outcome == toolsv1.CallOutcome_CALL_OUTCOME_OK:
			return "", fresh, nil
		case result.Outcome != toolsv1.CallOutcome_CALL_OUTCOME_CANCELLED:
			return lastOutput(result), fresh, nil
		}
	}
	return "it was stopped too often", fresh, nil
}

// runSetup makes the call, or attaches to it. began reports that it had not begun before.
func (c *Calls) runSetup(sc state.Scope, u *sessionv1.ToolUse) (_ *toolsv1.CallResult, began bool, err error) {
	next, err := c.Client.CallTool(sc, &toolsv1.CallToolRequest{
		Call: sc.CallRef(u.CallId), Tool: u.Tool, ArgumentsJson: u.ArgumentsJson, Profile: setupProfile, AllowedTools: []string{u.Tool},
	})
	if err != nil {
		return nil, false, err
	}
	for {
		r, err := next()
		switch {
		case errors.Is(err, io.EOF):
			return nil, began, errors.New("the tools service ended the call's stream early")
		case err != nil:
			return nil, began, err
		case r.GetDecision() != nil: // only for a call that begins
			began = true
		case r.GetResult() != nil:
			return r.GetResult(), began, nil
		}
	}
}

// lastOutput returns the end of what a failed command printed.
func lastOutput(r *toolsv1.CallResult) string {
	var out strings.Builder
	for _, c := range r.Content {
		out.WriteString(c.GetText().GetText())
	}
	text := strings.TrimSpace(out.String())
	if len(text) > setupEnd {
		text = "[…] " + strings.ToValidUTF8(text[len(text)-setupEnd:], "")
	}
	return text
}

func firstLine(command string) string {
	line, _, more := strings.Cut(strings.TrimSpace(command), "\n")
	if more || len(line) > 80 {
		return strings.ToValidUTF8(line[:min(len(line), 80)], "") + " …"
	}
	return line
}
