package lifecycle

import (
	"fmt"
	"slices"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

func rolledBack() *sessionv1.TurnError {
	return state.TurnError(sessionv1.ErrorReason_ERROR_REASON_ROLLED_BACK,
		"Another message replaced this turn: the conversation continues from the point before it. To continue from this turn, fork the session from it.")
}

// undo moves the head to before the first message of a turn that has ended, drops the turn's
// checkpoints, and returns the messages that are no longer on the path.
func (l *Turns) undo(sc state.Scope, write *store.Write, t *state.Turn) ([]*sessionv1.Message, error) {
	changed := l.Workspace.Place.Changed(sc, t)
	cut := slices.IndexFunc(sc.Path, func(m *sessionv1.Message) bool { return t.Owns(m.Turn) })
	if cut < 0 {
		cut = len(sc.Path)
	}
	undone := sc.CutPath(write, cut)
	write.Events = append(write.Events, &sessionv1.Event{Body: &sessionv1.Event_SessionRewound{SessionRewound: &sessionv1.SessionRewound{
		VoidFirstSeq: t.Run.StartSeq, VoidLastSeq: sc.Log.Seq() + int64(len(write.Events)), Head: sc.Proto.Head, UndoneTurn: t.Proto.Name,
	}}})
	if changed {
		l.Workspace.Place.ExportRewound(sc, write, t.ID+".undone")
	}
	return undone, l.Workspace.Checkpoints.DropSince(sc, write, t.Run.StartSeq)
}

// warnOfEffects warns of effects that stay after the calls of a turn were undone.
func (l *Turns) warnOfEffects(sc state.Scope, write *store.Write, t *state.Turn, undone []*sessionv1.Message, restored bool) {
	calls := 0
	for _, m := range undone {
		for _, b := range m.Blocks {
			if l.mayHaveEffect(t, undone, b.GetToolResult()) {
				calls++
			}
		}
	}
	if calls == 0 {
		return
	}
	e := state.Warning("FILES_KEPT",
		fmt.Sprintf("The turn was undone only in the conversation: the effects of its calls (%d that may change something) on files and elsewhere remain.", calls))
	if restored {
		e = state.Warning("FILES_RESTORED",
			fmt.Sprintf("The turn was undone, and the workspace's files are as they were before its first change. The effects of its calls (%d that may change something) elsewhere remain.", calls))
	}
	if sc.Active != nil {
		e.Turn = sc.Active.Proto.Name
	}
	write.Events = append(write.Events, e)
}

// mayHaveEffect reports whether a result is of a call that may have changed something.
func (l *Turns) mayHaveEffect(t *state.Turn, undone []*sessionv1.Message, r *sessionv1.ToolResult) bool {
	switch r.GetOutcome() {
	case sessionv1.ToolOutcome_TOOL_OUTCOME_OK, sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR,
		sessionv1.ToolOutcome_TOOL_OUTCOME_INTERRUPTED, sessionv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN:
	default:
		return false
	}
	for _, m := range undone {
		for _, u := range state.ToolUses(m) {
			if u.CallId == r.CallId {
				return l.Tools.MayChange(t, u.Tool)
			}
		}
	}
	return false
}
