package lifecycle

import (
	"cmp"

	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// Finish ends the active turn in the same commit as write, and begins the next queued turn. A turn
// that was rolled back is undone.
func (l *Turns) Finish(sc state.Scope, write store.Write, s sessionv1.TurnState, why *sessionv1.TurnError) error {
	t := sc.Active
	restored := t.Undo && l.Workspace.Checkpoints.RestoreTurn(sc, t) // before the numbers of events are used: it may append a warning
	artifacts := l.Workspace.Checkpoints.ChangedArtifacts(sc, t)
	if t.Undo {
		s, why = sessionv1.TurnState_TURN_STATE_INTERRUPTED, rolledBack()
	}
	l.Spend.End(t, &write)
	t.Run.WallUsed = t.WallUsed()
	t.Proto.State, t.Proto.Error, t.Proto.EndTime = s, why, timestamppb.Now()
	t.Proto.FinalText, t.Proto.Head = finalText(sc), sc.Proto.Head
	var err error
	if t.IsCall() {
		if t.Proto.CallResult, _, err = t.Result(t.Proto.Call.CallId); err != nil {
			return err
		}
	}
	write.Events = append(write.Events, l.Workspace.News(sc)...)
	queue, urgent := t.TakeQueue()
	t.ClearStep()
	if artifacts != nil {
		write.Events = append(write.Events, sc.Event(0, artifacts))
	}
	body := FinishedBody(t.Proto)
	body.TurnFinished.DurationMs = t.Run.WallUsed.Milliseconds()
	write.Events = append(write.Events, sc.Event(0, &sessionv1.Event{Body: body}))
	if !t.Undo && !sc.IsSubagent() {
		l.Workspace.Place.ExportAfter(sc, &write, t)
	}
	write.Turns = append(write.Turns, t.Row())
	write.Consume = append(write.Consume, t.Consume...)
	for _, u := range state.ToolUses(sc.Calling()) { // those that wait for an answer
		write.Waited = append(write.Waited, u.CallId)
	}
	write.FinishedTurns++
	write.Jobs = append(write.Jobs, l.Workspace.Repositories.Pushes(sc, t)...)
	if err := finishSteered(sc, &write, t); err != nil {
		return err
	}
	var undone []*sessionv1.Message
	if t.Undo {
		if undone, err = l.undo(sc, &write, t); err != nil {
			return err
		}
	}
	none := ""
	write.ActiveTurn = &none
	sc.Active = nil
	l.Telemetry.Finished(sc, t)
	if len(queue) > 0 {
		if err := l.beginNext(sc, &write, queue, urgent); err != nil {
			return err
		}
	}
	l.warnOfEffects(sc, &write, t, undone, restored)
	return sc.Commit(write)
}

func (l *Turns) beginNext(sc state.Scope, write *store.Write, queue []string, urgent int) error {
	next, err := sc.LoadTurn(sc, queue[0])
	if err != nil {
		return err
	}
	next.Run.Queue, next.Run.Urgent = queue[1:], max(urgent-1, 0)
	l.activate(sc, write, next)
	write.StepCommitted = true
	return nil
}

// finishSteered ends the turns whose messages joined a turn that has ended, in the same state.
// Their use is counted with that turn.
func finishSteered(sc state.Scope, write *store.Write, t *state.Turn) error {
	for _, id := range t.Run.Steered {
		s, err := sc.LoadTurn(sc, id)
		if err != nil {
			return err
		}
		s.Proto.State, s.Proto.Error, s.Proto.EndTime = t.Proto.State, t.Proto.Error, t.Proto.EndTime
		s.Proto.FinalText, s.Proto.Head, s.Proto.OutputJson = t.Proto.FinalText, t.Proto.Head, t.Proto.OutputJson
		write.Events = append(write.Events, &sessionv1.Event{Turn: s.Proto.Name, Body: FinishedBody(s.Proto)})
		write.Turns = append(write.Turns, s.Row())
		write.FinishedTurns++
	}
	return nil
}

// finalText returns the text of the turn's last assistant message, or the summary of its verdict.
func finalText(sc state.Scope) string {
	for i := len(sc.Path) - 1; i >= 0 && sc.Active.Owns(sc.Path[i].Turn); i-- {
		if sc.Path[i].Role == sessionv1.Role_ROLE_ASSISTANT {
			_, text := sc.Header(sc.Path[i])
			return cmp.Or(text, sc.Active.Summary)
		}
	}
	return sc.Active.Summary
}

// FinishedBody returns the event of a turn's end. The log adds the session's totals.
func FinishedBody(t *sessionv1.Turn) *sessionv1.Event_TurnFinished {
	return &sessionv1.Event_TurnFinished{TurnFinished: &sessionv1.TurnFinished{
		State: t.State, Error: t.Error, Usage: t.Usage, Steps: t.Steps, FinalText: t.FinalText, OutputJson: t.OutputJson, CallResult: t.CallResult,
		Model: t.Model, ToolErrors: t.ToolErrors, SubagentUsage: t.SubagentUsage,
	}}
}
