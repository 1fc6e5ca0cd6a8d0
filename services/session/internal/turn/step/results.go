package step

import (
	"fmt"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/calls"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
	"github.com/fairlead/fairlead/services/session/internal/verdict"
)

// maxOutputAsks is how often an agent that ends without its required output is asked for it.
const maxOutputAsks = 2

// CommitResults ends a step whose calls all have a result, except those of finish, and gives the
// model the results in one message.
func (s *Stepper) CommitResults(sc state.Scope, m *sessionv1.Message) (state.Outcome, error) {
	write := store.Write{StepCommitted: true}
	found, err := s.answerFinish(sc, &write, m)
	if err != nil {
		return state.Outcome{}, err
	}
	if err := s.Calls.AddResults(sc, &write, m); err != nil {
		return state.Outcome{}, err
	}
	if found != nil {
		return endWith(sc.Active, write, *found), nil
	}
	if out := guard(sc, write); !out.GoesOn() {
		return out, nil
	}
	write.Turns = []*store.TurnRow{sc.Active.Row()}
	return state.Outcome{}, sc.Append(write)
}

// guard ends the turn, in the write with a step's results, when a guardrail of its model strikes.
// Half way to a guardrail, the model reads a warning beside the results.
func guard(sc state.Scope, write store.Write) state.Outcome {
	resolved, err := sc.ResolveModel()
	if err != nil {
		return state.Outcome{} // without a model there is no step to guard; the next one says so
	}
	turn := sc.TurnMessages()
	found := resolved.Guardrails.Check(turn)
	switch {
	case found == nil:
		results := write.Messages[len(write.Messages)-1]
		step := len(turn) - 1
		for step > 0 && turn[step].Role != sessionv1.Role_ROLE_ASSISTANT {
			step--
		}
		if hint := resolved.Guardrails.Hint(turn, step); hint != "" {
			results.Blocks = append(results.Blocks, state.TextBlock(hint))
		}
		return state.Outcome{}
	case found.Partial:
		return state.Partial(write, found.Reason, found.Message)
	default:
		return state.Failed(write, found.Reason, found.Message)
	}
}

// answerFinish gives a result to the finish calls of an assistant message whose other calls all
// have one. The first valid call is the verdict, unless a new message has come that the agent
// has not seen.
func (s *Stepper) answerFinish(sc state.Scope, write *store.Write, m *sessionv1.Message) (*verdict.Verdict, error) {
	var found *verdict.Verdict
	cut, err := calls.WasCut(sc.Active)
	if err != nil {
		return nil, err
	}
	for _, u := range state.ToolUses(m) {
		if !sc.IsFinish(u) || sc.Active.HasResult(u.CallId) {
			continue
		}
		outcome, text := sessionv1.ToolOutcome_TOOL_OUTCOME_OK, "The turn ends here."
		v, err := parseFinish(sc, u)
		switch {
		case found != nil:
			outcome, text = sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR, "The turn ends by another call of finish."
		case err != nil:
			outcome, text = sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR, "The turn continues: "+err.Error()+". Fix it and call finish again."
		case cut:
			outcome, text = sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR, "The turn continues: your answer was cut off after this call. Call finish again when all is done."
		default:
			joins, stops := s.Inbox.Waits(sc)
			switch {
			case stops:
				text = "The turn is stopped on request."
			case joins:
				text = "The turn continues: the user has sent another message meanwhile. Call finish again when that is done too."
			default:
				found = &v
			}
		}
		r := state.TextResult(u.CallId, outcome, text)
		if err := sc.Active.SetResult(u.CallId, r); err != nil {
			return nil, err
		}
		write.Events = append(write.Events, sc.FinishedCall(u.Tool, r, 0))
	}
	return found, nil
}

func parseFinish(sc state.Scope, u *sessionv1.ToolUse) (verdict.Verdict, error) {
	output, err := verdict.Compile(string(sc.Spec.OutputSchema))
	if err != nil {
		return verdict.Verdict{}, err
	}
	return verdict.Parse(u.ArgumentsJson, output)
}

// endWith ends the turn with the agent's verdict.
func endWith(t *state.Turn, write store.Write, v verdict.Verdict) state.Outcome {
	t.Summary, t.Proto.OutputJson = v.Summary, v.OutputJSON
	return state.Ended(write, v.State, v.Error())
}

// Conclude ends the turn after its final message, which is in the conversation: with the verdict
// in the message's header, or COMPLETE. An agent without its required output is asked for it.
func Conclude(sc state.Scope, write store.Write) (state.Outcome, error) {
	t := sc.Active
	switch {
	case sc.Spec.OwesOutput() && t.Run.OutputAsks < maxOutputAsks:
		t.Run.OutputAsks++
		sc.AddMessage(&write, sc.NewMessage(sessionv1.Role_ROLE_USER, t.Proto.Steps, []*sessionv1.Block{state.TextBlock(
			"Note by the session: you have ended without the requested output. Call the tool finish with it.")}))
		write.Turns = append(write.Turns, t.Row())
		return state.Outcome{}, sc.Commit(write)
	case sc.Spec.OwesOutput():
		return state.Failed(write, sessionv1.ErrorReason_ERROR_REASON_OUTPUT_MISSING, fmt.Sprintf(
			"The agent ended without the required structured output, although it was asked for it %d times. Its text is kept; send another message to ask for the output.", maxOutputAsks)), nil
	default:
		if v, _ := sc.Header(sc.Last()); v != nil {
			return endWith(t, write, *v), nil
		}
		return state.Ended(write, sessionv1.TurnState_TURN_STATE_COMPLETE, nil), nil
	}
}
