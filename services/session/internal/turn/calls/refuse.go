package calls

import (
	"cmp"
	"fmt"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/schema"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
	"github.com/fairlead/fairlead/services/session/internal/turn/toolset"
)

// cutTexts tell the model that its answer was cut off in a call, by stop reason.
var cutTexts = map[string]string{
	"max_tokens": "This call was not made: your answer reached the limit of output tokens and was cut off in it. Make the call again; if its arguments are long, divide the work into several shorter calls.",
	"refusal":    "This call was not made: a filter of the model's provider cut your answer off in it.",
}

// cutCall returns the call in which an answer was cut off, or nil. It is the last
// call. Its arguments may be complete JSON by chance and still not be what the model
// meant.
func cutCall(stopReason string, blocks []*sessionv1.Block) *sessionv1.ToolUse {
	uses := state.ToolUsesOf(blocks)
	if cutTexts[stopReason] == "" || len(uses) == 0 {
		return nil
	}
	return uses[len(uses)-1]
}

// RefuseCut gives a result to the call in which an answer was cut off. The same write commits the
// answer, so that a successor does not make the call either.
func RefuseCut(sc state.Scope, write *store.Write, resp *model.Response) error {
	u := cutCall(resp.StopReason, resp.Blocks)
	if u == nil {
		return nil
	}
	return refuse(sc, write, u, cutTexts[resp.StopReason])
}

// WasCut reports whether the answer of the current calls was cut off in one of them.
func WasCut(t *state.Turn) (bool, error) {
	end, err := t.Finishing()
	return cutTexts[end.GetStopReason()] != "", err
}

// refuseUnfit gives an error result to the calls of the client's tools whose arguments do not
// match the tool's schema. The client is not asked to run them; our own tools do not run with
// such arguments either.
func refuseUnfit(sc state.Scope, m *sessionv1.Message) error {
	var write store.Write
	for _, u := range state.ToolUses(m) {
		t := sc.Active.Client[u.Tool]
		if sc.Active.HasResult(u.CallId) || t == nil {
			continue
		}
		if fault := unfit(t, u.ArgumentsJson); fault != nil {
			text := fmt.Sprintf("The call of %s was not made: %s.", u.Tool, strings.TrimSuffix(fault.Error(), "."))
			if err := refuse(sc, &write, u, text); err != nil {
				return err
			}
		}
	}
	if len(write.Events) == 0 {
		return nil
	}
	write.Turns = []*store.TurnRow{sc.Active.Row()}
	return sc.Append(write)
}

// unfit reports what is wrong with the arguments of a call of the client's tool.
func unfit(t *sessionv1.ClientTool, arguments string) error {
	args, err := schema.ParseArguments(arguments)
	if err != nil {
		return err
	}
	s, err := schema.Compile(cmp.Or(t.InputSchemaJson, toolset.AnyObject))
	if err != nil {
		return fmt.Errorf("the tool's schema is %w", err)
	}
	return s.CheckArguments(args)
}

// refuse gives an error result to a call that is not made.
func refuse(sc state.Scope, write *store.Write, u *sessionv1.ToolUse, text string) error {
	r := state.TextResult(u.CallId, sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR, text)
	if err := sc.Active.SetResult(u.CallId, r); err != nil {
		return err
	}
	write.Events = append(write.Events, sc.FinishedCall(u.Tool, r, 0))
	return nil
}
