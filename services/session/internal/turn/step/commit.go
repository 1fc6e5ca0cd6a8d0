package step

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/schema"
	"github.com/fairlead/fairlead/services/session/internal/eventlog"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/calls"
	"github.com/fairlead/fairlead/services/session/internal/turn/spend"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// commitAnswer commits the assistant's message. A message without tool calls ends the turn in
// the same write.
func (s *Stepper) commitAnswer(sc state.Scope, r state.Resolved, next Next, resp *model.Response) (state.Outcome, error) {
	t, n := sc.Active, sc.Active.Step()
	t.Run.ResumePoint = nil
	if next.ResumePoint != nil {
		t.Run.ResumePoint = next.ResumePoint()
	}
	for i, u := range state.ToolUsesOf(resp.Blocks) {
		u.CallId, u.ArgumentsJson = state.CallID(t.ID, n, i), schema.Plain(u.ArgumentsJson)
	}
	usage := resp.Usage
	if usage == nil {
		usage = &sessionv1.Usage{}
	}
	usage.CostNanoUsd = r.Cost(usage)
	if t.Proto.Usage == nil {
		t.Proto.Usage = &sessionv1.Usage{}
	}
	eventlog.AddUsage(t.Proto.Usage, usage)
	write := store.Write{AddUsage: usage, StepCommitted: true}
	if next.Own != nil {
		s.Spend.SettleStated(t, &write, usage)
	} else {
		s.Spend.Settle(t, &write, plausibleUsage(sc, &write, resp))
	}
	if len(resp.Blocks) == 0 {
		// An assistant message must not be empty; an empty answer ends the turn.
		resp.Blocks = []*sessionv1.Block{state.TextBlock("(The model gave no answer.)")}
	}
	message := sc.NewMessage(sessionv1.Role_ROLE_ASSISTANT, n, resp.Blocks)
	sc.AddMessage(&write, message)
	s.Compactor.Count(t, message, usage)
	t.ClearStep()
	sc.RecordProgress()
	end := &sessionv1.StepFinished{StopReason: resp.StopReason, Usage: usage, Message: message.Name}
	if len(state.ToolUses(message)) > 0 {
		return state.Outcome{}, s.commitCalls(sc, write, message, resp, end)
	}
	write.Events = append(write.Events, sc.Event(n, &sessionv1.Event{Body: &sessionv1.Event_StepFinished{StepFinished: end}}))
	t.Proto.Steps = n
	return s.commitEnd(sc, write, resp.StopReason)
}

// commitCalls commits a message with calls. step.finished follows the calls; the message is
// synced before any of them starts.
func (s *Stepper) commitCalls(sc state.Scope, write store.Write, m *sessionv1.Message, resp *model.Response, end *sessionv1.StepFinished) error {
	var err error
	if sc.Active.Run.Finished, err = proto.Marshal(end); err != nil {
		return fmt.Errorf("marshal the end of step %d: %w", m.Step, err)
	}
	s.Calls.Committed(m.Name)
	if err := calls.RefuseCut(sc, &write, resp); err != nil {
		return err
	}
	write.Turns = []*store.TurnRow{sc.Active.Row()}
	return sc.Commit(write)
}

// commitEnd ends the turn with a message without calls.
func (s *Stepper) commitEnd(sc state.Scope, write store.Write, stopReason string) (state.Outcome, error) {
	joins, stops := s.Inbox.Waits(sc)
	if stops {
		return state.Outcome{}, commitWithoutEnd(sc, write) // the loop stops the turn, before any that is queued
	}
	switch stopReason {
	case "max_tokens":
		if d := s.Spend.Lowered(); d != nil {
			return spend.Exhausted(write, d), nil
		}
		return outputLimit(write), nil
	case "refusal":
		return state.Ended(write, sessionv1.TurnState_TURN_STATE_FAILED, state.TurnError(sessionv1.ErrorReason_ERROR_REASON_MODEL_REFUSAL,
			"The model refused to answer. Rephrase the message, or create a new session.")), nil
	default:
		if joins {
			return state.Outcome{}, commitWithoutEnd(sc, write) // the loop takes the message in, or ends the turn
		}
		return Conclude(sc, write)
	}
}

func commitWithoutEnd(sc state.Scope, write store.Write) error {
	write.Turns = []*store.TurnRow{sc.Active.Row()}
	return sc.Commit(write)
}

// plausibleUsage returns the usage that settles the reservation of an answer. If the provider's
// numbers are impossible it returns nil, so that the ledger counts what was reserved, and the
// write warns people.
func plausibleUsage(sc state.Scope, write *store.Write, resp *model.Response) *sessionv1.Usage {
	if resp.Warning == "" {
		return resp.Usage
	}
	write.Events = append(write.Events, sc.StepEvent(state.Warning("MODEL_ANSWER", resp.Warning)))
	return nil
}
