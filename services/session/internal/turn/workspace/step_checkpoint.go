package workspace

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// BeforeCalls makes the checkpoint that the agent wants for a step. It precedes the first call of
// the step that may change something, even one that the agent's list does not name, because a
// rewind goes back to before all of them. uses are the calls of message m that are about to be
// made; inherited says that another worker committed the message. A successor asks with the same
// call id and gets the same snapshot, even if the calls have begun meanwhile. The returned
// errors end the worker.
func (k *Checkpoints) BeforeCalls(sc state.Scope, m *sessionv1.Message, uses []*sessionv1.ToolUse, inherited bool) error {
	if sc.IsSubagent() {
		return nil // the turn for which it works has made the checkpoint
	}
	k.noteArtifacts(sc, uses, inherited)
	t, n := sc.Active, sc.Active.Step()
	files := t.Run.Files
	if files != nil && (files.Step == n || files.Step == 0 && inherited) {
		return nil
	}
	changes, named := k.anyMayChange(t, uses), k.wantsOne(sc, uses)
	if wanted := named || changes && k.wantsOne(sc, state.ToolUses(m)); !wanted {
		if files == nil && changes {
			t.Run.Files = &state.Files{Step: -1} // written with the next result at the latest
		}
		return nil
	}
	snapshot, err := k.takeSnapshot(sc, fmt.Sprintf("%s.%d.files", t.ID, n), fmt.Sprintf("before step %d of turns/%s", n, t.ID))
	if sc.Ended() {
		return nil // the loop finds the cause
	}
	if sc.Log.Err() != nil {
		return sc.Log.Err()
	}
	if inherited && errors.Is(err, remote.ErrNoWorkspace) {
		return nil // the earlier worker began no call: the workspace is made before the first one
	}
	next := state.Files{Snapshot: snapshot}
	if files != nil {
		next = *files
	}
	next.Step = n
	t.Run.Files = &next
	if err != nil {
		return filesNotKept(sc, files == nil, err)
	}
	return k.addStep(sc, m, snapshot)
}

// filesNotKept stores that a step has no checkpoint. It is synced before the step's calls begin: a
// successor must not snapshot files that they have changed.
func filesNotKept(sc state.Scope, first bool, err error) error {
	write := store.Write{Turns: []*store.TurnRow{sc.Active.Row()}}
	if !errors.Is(err, remote.ErrUnsupported) { // otherwise the node has no snapshots at all
		sc.Logger.WarnContext(sc, "cannot keep the files of a turn", "session", sc.Lease.Session, "turn", sc.Active.ID, "step", sc.Active.Step(), "error", err)
		what, then := "step", "There is no checkpoint of this step to rewind to."
		if first {
			what, then = "turn", "There is no checkpoint to rewind to, and rolling the turn back will leave the files as they are."
		}
		write.Events = []*sessionv1.Event{sc.StepEvent(state.Warning("FILES_NOT_KEPT",
			"The state of the files before this "+what+" could not be kept: "+state.Explain(err)+" "+then))}
	}
	return sc.Commit(write)
}

// addStep adds the checkpoint of the current step: before its model call.
func (k *Checkpoints) addStep(sc state.Scope, m *sessionv1.Message, snapshot string) error {
	t, n := sc.Active, sc.Active.Step()
	var tools []string
	for _, u := range state.ToolUses(m) {
		if k.wants(sc, u.Tool) && !slices.Contains(tools, u.Tool) {
			tools = append(tools, u.Tool)
		}
	}
	what := fmt.Sprintf("Before step %d: %s", n, strings.Join(tools, ", "))
	if t.IsCall() {
		what = "Before a call of " + strings.Join(tools, ", ")
	}
	c := &sessionv1.Checkpoint{
		Name: sc.Name("checkpoints", fmt.Sprintf("%s-%d", t.ID, n)), Automatic: true, Description: cut(what, 1000),
		Turn: t.Proto.Name, Step: n, Head: m.Parent, AfterSeq: sc.Log.Seq(), Snapshot: snapshot,
	}
	if t.Run.Began > 0 { // not in a step that an older version began
		c.AfterSeq = t.Run.Began - 1
	}
	write := store.Write{Turns: []*store.TurnRow{t.Row()}}
	if err := k.add(sc.Outlasting(), &write, c); err != nil {
		return err
	}
	return sc.Append(write)
}

func cut(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most])
	}
	return text
}

// takeSnapshot makes the snapshot of a call, and makes room for it if necessary. A call's failure
// is its final answer, so the second attempt uses another id.
func (k *Checkpoints) takeSnapshot(sc state.Scope, call, description string) (string, error) {
	create := func(call string) (id string, err error) {
		err = sc.Patiently(sc.WarnAway("The files cannot be kept now"), func() (err error) {
			id, err = k.sandbox.CreateSnapshot(sc, sc.CallRef(call), description)
			return err
		})
		return id, err
	}
	id, err := create(call)
	if !errors.Is(err, remote.ErrTooManySnapshots) {
		return id, err
	}
	if err := k.makeRoom(sc, call+".room"); err != nil {
		return "", err
	}
	return create(call + ".again")
}

// RestoreTurn restores the files from before a turn and reports whether it succeeded. No call of
// the turn runs any more.
func (k *Checkpoints) RestoreTurn(sc state.Scope, t *state.Turn) bool {
	if t.Run.Files == nil {
		return true // no call was made that may have changed a file
	}
	if t.Run.Files.Snapshot == "" {
		return false
	}
	err := k.place.copies.unsealAgain(sc)
	if err == nil {
		err = sc.Patiently(sc.WarnAway("The files cannot be restored now"), func() error {
			return k.sandbox.RestoreSnapshot(sc, sc.CallRef(t.ID+".files.back"), t.Run.Files.Snapshot)
		})
	}
	if err != nil {
		sc.Logger.WarnContext(sc, "cannot restore the files of a turn", "session", sc.Lease.Session, "turn", t.ID, "error", err)
	}
	return err == nil
}

// anyMayChange reports whether one of several calls may change something.
func (k *Checkpoints) anyMayChange(t *state.Turn, uses []*sessionv1.ToolUse) bool {
	return slices.ContainsFunc(uses, func(u *sessionv1.ToolUse) bool { return k.tools.MayChange(t, u.Tool) })
}

// wantsOne reports whether a checkpoint is wanted before one of several calls. It skips the
// client's calls and finish, which are not made here.
func (k *Checkpoints) wantsOne(sc state.Scope, uses []*sessionv1.ToolUse) bool {
	return slices.ContainsFunc(uses, func(u *sessionv1.ToolUse) bool {
		return sc.Active.Client[u.Tool] == nil && !sc.IsFinish(u) && k.wants(sc, u.Tool)
	})
}

// wants reports whether a checkpoint is wanted before a tool's calls.
func (k *Checkpoints) wants(sc state.Scope, tool string) bool {
	patterns := sc.Spec.Checkpoints
	if patterns == nil {
		patterns = k.Tools
	}
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		if pattern == "*" || tool == agent.TaskTool { // a subagent may use the named tools
			return k.tools.MayChange(sc.Active, tool)
		}
		begin, open := strings.CutSuffix(pattern, "*")
		return tool == pattern || open && strings.HasPrefix(tool, begin)
	})
}
