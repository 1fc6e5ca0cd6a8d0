package attached

import (
	"fmt"
	"slices"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// checkAsk checks a question to the model.
func checkAsk(q *sessionv1.RuntimeAsk, request model.Request) error {
	for i, name := range q.Tools {
		if !slices.ContainsFunc(request.Tools, func(t model.Tool) bool { return t.Name == name }) {
			return &faultError{fmt.Sprintf("ask.tools[%d]", i), fmt.Sprintf("the agent has no tool %q", name)}
		}
	}
	var open []string // the calls of the message before, without a result yet
	for i, m := range q.Messages {
		field := fmt.Sprintf("ask.messages[%d]", i)
		switch {
		case i == 0 && m.GetRole() != sessionv1.Role_ROLE_USER:
			return &faultError{field + ".role", "the first message is a user's"}
		case m.GetRole() != sessionv1.Role_ROLE_USER && m.GetRole() != sessionv1.Role_ROLE_ASSISTANT:
			return &faultError{field + ".role", "it is neither ROLE_USER nor ROLE_ASSISTANT"}
		case len(m.GetBlocks()) == 0:
			return &faultError{field + ".blocks", "a message has at least one block"}
		}
		if err := checkBlocks(field, m, &open); err != nil {
			return err
		}
	}
	if n := len(q.Messages); n > 0 && q.Messages[n-1].GetRole() != sessionv1.Role_ROLE_USER {
		return &faultError{fmt.Sprintf("ask.messages[%d].role", n-1), "the last message is a user's"}
	}
	return nil
}

// checkBlocks checks the blocks of a message. open are the calls that need their results in it, and then its own calls.
func checkBlocks(field string, m *sessionv1.Message, open *[]string) error {
	for i, b := range m.GetBlocks() {
		at := fmt.Sprintf("%s.blocks[%d]", field, i)
		switch k := b.GetKind().(type) {
		case nil:
			return &faultError{at, "it has no kind"}
		case *sessionv1.Block_ToolResult:
			j := slices.Index(*open, k.ToolResult.GetCallId())
			if j < 0 || m.GetRole() != sessionv1.Role_ROLE_USER {
				return &faultError{at + ".tool_result.call_id", "the message before has no such call, or the call has a result already"}
			}
			*open = slices.Delete(*open, j, j+1)
			continue
		}
		if len(*open) > 0 {
			return &faultError{at, fmt.Sprintf("the result of the call %q has to come first", (*open)[0])}
		}
		if m.GetRole() == sessionv1.Role_ROLE_USER && b.GetContent() == nil {
			return &faultError{at, "a user's message has content and results of calls alone"}
		}
	}
	if len(*open) > 0 {
		return &faultError{field + ".blocks", fmt.Sprintf("the result of the call %q is missing", (*open)[0])}
	}
	for _, u := range state.ToolUses(m) {
		if u.GetCallId() == "" || u.GetTool() == "" {
			return &faultError{field + ".blocks", "a call needs its call_id and its tool"}
		}
		*open = append(*open, u.GetCallId())
	}
	return nil
}
