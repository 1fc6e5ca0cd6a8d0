package workspace

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
	"github.com/fairlead/fairlead/services/session/internal/turn/toolset"
)

// A session's workspace has a place: a node and a generation (package placement). The
// worker assigns it, and assigns another one when the node is lost. First it commits
// the new place; from then on no request can change anything in the old place. Then
// the new node fetches the last export. Only when the files are there, the model
// learns what is lost, and the turn goes on. A worker that takes over in between
// finds Place.Restore set and does the same.

// Mover assigns the workspace to a node, and to another one when its node is lost or drained.
type Mover struct {
	nodes    *placement.Nodes
	sandbox  Sandbox
	export   bool
	tools    *toolset.Toolset
	maker    *maker
	copies   *copies
	endCalls EndCalls
}

// Ensure gives the workspace its place before the turn goes on, or a new one when its node is
// lost. It reports whether the workspace has moved.
func (m *Mover) Ensure(sc state.Scope) (moved bool, out state.Outcome, err error) {
	if !m.nodes.Managed() || len(sc.Spec.Tools) == 0 {
		return false, state.Outcome{}, nil
	}
	if sc.Ended() {
		return false, state.Stopped(), nil // the loop finds the cause
	}
	if sc.IsSubagent() {
		return m.join(sc)
	}
	if err := m.copies.unsealAgain(sc); err != nil {
		if sc.Ended() {
			return false, state.Stopped(), nil // the loop finds the cause
		}
		return false, state.Failed(store.Write{}, sessionv1.ErrorReason_ERROR_REASON_TOOLS_UNAVAILABLE,
			"The workspace could not move to another machine, and cannot be used again now: "+state.Explain(err)+" Send the message again later."), nil
	}
	p := sc.Place()
	switch {
	case p.Node == "":
		return false, state.Outcome{}, m.placeNew(sc, p)
	case m.nodes.Lost(p.Node): // perhaps before the files had arrived
		to := m.nodes.Choose(sc.Lease.Key, p.Node)
		if to == "" && !p.Restore {
			return false, state.Outcome{}, nil // there is no other node: the turn waits for this one, and fails as with a single node
		}
		if to != "" {
			if err := m.leave(sc, p, to, store.NodeLost); err != nil {
				return false, state.Outcome{}, err
			}
		}
	case unmade(p) && m.nodes.Replace(sc.Lease.Key, p.Node) != "":
		if left, err := m.leaveUnmade(sc, p, m.nodes.Replace(sc.Lease.Key, p.Node)); err != nil || !left {
			return false, state.Outcome{}, err
		}
		if !sc.Place().Restore {
			return true, state.Outcome{}, nil
		}
	case p.Restore:
	case m.maker.isLost(p):
		if err := m.leave(sc, p, m.replacementNode(sc, p.Node), store.DiskLost); err != nil {
			return false, state.Outcome{}, err
		}
	case m.nodes.Drained(p.Node):
		left, err := m.handOver(sc, p)
		if err == nil && !left && (m.nodes.Lost(p.Node) || m.maker.isLost(p)) { // found out meanwhile
			return m.Ensure(sc)
		}
		if err != nil || !left {
			return false, state.Outcome{}, err
		}
	default:
		return false, state.Outcome{}, nil
	}
	out, err = m.restore(sc)
	return true, out, err
}

// replacementNode returns the new node of a workspace that its node has lost: the same node,
// which answers, unless that one is drained.
func (m *Mover) replacementNode(sc state.Scope, name string) string {
	if !m.nodes.Drained(name) {
		return name
	}
	return cmp.Or(m.nodes.Choose(sc.Lease.Key, name), name)
}

// placeNew gives a workspace its first place. The place is durable before any call
// is: the assistant's message is committed after it.
func (m *Mover) placeNew(sc state.Scope, was store.Place) error {
	p := store.Place{Node: m.nodes.First(sc.Lease.Key), Generation: was.Generation + 1}
	if was.Generation == 0 && (sc.Proto.FinishedTurns > 0 || sc.Active != nil && sc.Active.Proto.Steps > 0) {
		p.Node = m.nodes.Names[0] // made when there was only one
	}
	sc.SetPlace(p)
	return sc.Append(store.Write{PlaceChange: store.PlaceChange{Place: &p}})
}

// leaveUnmade gives another place to a workspace without files in its place, whose node does not answer, and reports
// whether it did. A workspace that was never made has nothing to fetch or to report, unless a call may have begun there.
func (m *Mover) leaveUnmade(sc state.Scope, was store.Place, to string) (bool, error) {
	now, _, err := sc.Store.PlaceOf(sc.Outlasting(), sc.Lease.Key)
	if err != nil {
		return false, fmt.Errorf("read whether the workspace of session %s was made: %w", sc.Lease.Session, err)
	}
	if !was.Restore && now.Made { // a request of a client made it
		was.Made = true
		sc.SetPlace(was)
		return false, nil
	}
	if was.Restore || len(state.ToolUses(sc.Calling())) > 0 {
		return true, m.leave(sc, was, to, store.NodeLost)
	}
	p := store.Place{Node: to, Generation: was.Generation + 1}
	sc.Logger.InfoContext(sc, "a workspace that was never made gets another node", "session", sc.Lease.Session, "from", was.Node, "to", to, "generation", p.Generation)
	err = sc.Commit(store.Write{PlaceChange: store.PlaceChange{Place: &p}, Jobs: []store.Job{placement.VacateJob(sc.Lease.Key, was)}})
	if err == nil {
		sc.SetPlace(p)
	}
	return err == nil, err
}

// handOver exports the workspace and leaves a drained node, and reports whether it
// did. It does not leave between the calls of one message, nor when there is no other
// node.
func (m *Mover) handOver(sc state.Scope, p store.Place) (bool, error) {
	to := m.nodes.Choose(sc.Lease.Key, p.Node)
	if last := sc.Last(); to == "" || m.nodes.Stays(sc.Lease.Key) || last == nil || last.Role != sessionv1.Role_ROLE_USER {
		return false, nil
	}
	sc, stop := m.maker.untilLost(sc)
	defer stop()
	call := fmt.Sprintf("%s.leave.%d", sc.Lease.Session, p.Generation)
	err := m.maker.forCommands(sc, sc.CallRef(call), sc.WarnAway("The workspace cannot be made now")) // it may have been meant to be made just now
	if err == nil {
		err = m.copies.exportAndSeal(sc, p)
	}
	switch {
	case nodeLost(sc) && err != nil:
		return false, nil
	case sc.Ended() && !nodeLost(sc):
		_ = m.copies.unseal(sc) // else before the workspace is next used
		return false, nil
	case err != nil:
		m.nodes.Stay(sc.Lease.Key)
		sc.Logger.WarnContext(sc, "the workspace cannot leave its node, which is drained", "session", sc.Lease.Session, "node", p.Node, "error", err)
		return false, nil
	}
	return true, m.leave(sc, p, to, store.Planned)
}

// leave commits that the workspace has another place.
func (m *Mover) leave(sc state.Scope, was store.Place, to string, why store.Why) error {
	p := leaving(was, to, why)
	sc.Logger.WarnContext(sc, "the workspace moves to another node", "session", sc.Lease.Session, "from", was.Node, "to", to, "generation", p.Generation, "why", why)
	err := sc.Commit(store.Write{PlaceChange: store.PlaceChange{Place: &p}, Jobs: []store.Job{placement.VacateJob(sc.Lease.Key, was)}})
	if err == nil {
		sc.SetPlace(p)
	}
	return err
}

// leaving returns the place of a workspace that leaves another one. The worker that restores
// the files there, perhaps in another turn, learns from it which copy counts and what to
// report. A place that the files never reached passes on the Left of the place before it.
func leaving(was store.Place, to string, why store.Why) store.Place {
	left := store.Left{Node: was.Node, Why: why}
	if was.Restore {
		left = was.Left
	}
	return store.Place{Node: to, Generation: was.Generation + 1, Restore: true, Left: left, Export: was.Export}
}

// arrived returns the place after its files have arrived.
func arrived(p store.Place) store.Place {
	p.Restore, p.Made, p.Left = false, true, store.Left{}
	return p
}

// restore has the node fetch the last export, and reports the loss to the model and in the log.
func (m *Mover) restore(sc state.Scope) (state.Outcome, error) {
	if err := m.learnExport(sc.Outlasting()); err != nil {
		return state.Outcome{}, err
	}
	p := sc.Place()
	var exported string // after a planned move the last copy counts, which was made for it
	if p.Left.Lost() {
		exported = p.Export.Snapshot
	}
	found, err := m.fetch(sc, p, exported)
	if sc.Ended() {
		return state.Stopped(), nil // the loop finds the cause
	}
	if err != nil {
		return state.Failed(store.Write{}, sessionv1.ErrorReason_ERROR_REASON_TOOLS_UNAVAILABLE,
			"The workspace could not be restored from its last copy ("+lossCause(p.Left)+"): "+state.Explain(err)+" Check the object store, then send the message again."), nil
	}
	body, left := movedBody(sc, p, found), p.Left
	p = arrived(p)
	write := store.Write{
		PlaceChange: store.PlaceChange{Place: &p}, StepCommitted: true,
		Events: []*sessionv1.Event{sc.StepEvent(&sessionv1.Event{Body: &sessionv1.Event_WorkspaceMoved{WorkspaceMoved: body}})},
	}
	if err := m.closeLost(sc, &write, left); err != nil {
		return state.Outcome{}, err
	}
	sc.AddMessage(&write, sc.NewMessage(sessionv1.Role_ROLE_USER, sc.Active.Proto.Steps, []*sessionv1.Block{state.TextBlock(body.Message)}))
	write.Turns = []*store.TurnRow{sc.Active.Row()}
	sc.SetPlace(p)
	if err := sc.Commit(write); err != nil {
		return state.Outcome{}, err
	}
	if left.Why == store.Planned {
		m.recordCopy(sc, found)
	}
	return state.Outcome{}, nil
}

// learnExport reads the last export, which jobs record while a worker holds the session. No
// export is recorded for a place after the workspace has left it.
func (m *Mover) learnExport(sc state.Scope) error {
	now, _, err := sc.Store.PlaceOf(sc, sc.Lease.Key)
	if err != nil {
		return fmt.Errorf("read which copy of the workspace of session %s is the last: %w", sc.Lease.Session, err)
	}
	p := sc.Place()
	if now.Generation != p.Generation {
		return fmt.Errorf("%w: its workspace is in place %d, not in %d", store.ErrStaleEpoch, now.Generation, p.Generation)
	}
	p.Export = now.Export
	sc.SetPlace(p)
	return nil
}

// fetch makes the workspace in its new place from the exported snapshot, or from the last
// one if that does not exist. Without any snapshot it makes an empty workspace and
// returns nil. Repeating it changes nothing.
func (m *Mover) fetch(sc state.Scope, p store.Place, exported string) (*sandboxv1.Snapshot, error) {
	ref := sc.CallRef(fmt.Sprintf("%s.place.%d", sc.Lease.Session, p.Generation))
	var made *sandboxv1.Snapshot
	err := sc.Patiently(sc.WarnAway("The workspace cannot be restored on its new node now"), func() (err error) {
		made, err = m.sandbox.ImportSnapshots(sc, ref, exported)
		return err
	})
	if errors.Is(err, remote.ErrNoSnapshot) || errors.Is(err, remote.ErrNoObjectStore) || errors.Is(err, remote.ErrWorkspaceExists) {
		return nil, m.maker.forCommands(sc, ref, nil) // an existing one was made empty by an earlier attempt
	}
	return made, err
}

// closeLost gives a result to every call of the last message that has none. None of these calls
// is made: the model requested them before the loss. Calls that had begun are lost.
func (m *Mover) closeLost(sc state.Scope, write *store.Write, left store.Left) error {
	if len(state.ToolUses(sc.Calling())) == 0 {
		return nil
	}
	return m.endCalls(sc, write, func(u *sessionv1.ToolUse) *sessionv1.ToolResult {
		return state.TextResult(u.CallId, sessionv1.ToolOutcome_TOOL_OUTCOME_UNAVAILABLE,
			"The call was not made: "+lossCause(left)+". Look at the current state of the workspace, then decide again.")
	})
}

// lossCause says how a workspace left its node, for people and the model.
func lossCause(left store.Left) string {
	switch left.Why {
	case store.Planned:
		return "the workspace had to move to another machine"
	case store.DiskLost:
		return "the machine that held the workspace has lost it"
	case store.NodeLost:
	}
	return "the machine that held the workspace is lost"
}

// movedBody returns the event of a moved workspace.
func movedBody(sc state.Scope, p store.Place, found *sandboxv1.Snapshot) *sessionv1.WorkspaceMoved {
	m := &sessionv1.WorkspaceMoved{
		FromNode: p.Left.Node, ToNode: p.Node, Generation: p.Generation, Empty: found == nil,
		Cause: sessionv1.WorkspaceMoveCause_WORKSPACE_MOVE_CAUSE_NODE_LOST,
	}
	if p.Left.Why == store.Planned {
		m.Cause, m.RestoredTime = sessionv1.WorkspaceMoveCause_WORKSPACE_MOVE_CAUSE_PLANNED, found.GetCreateTime()
		m.Message = "Notice of the system, not of the user: the workspace is on another machine now, " + describeCopy(found) + "." +
			" Commands in the background have ended, and the home directory and /tmp are empty."
		return m
	}
	const end = " What ran in the workspace has ended, commands in the background as well, and the home directory and /tmp are empty." +
		" Commands that were running may have taken effect outside of the workspace: check before you repeat them."
	begin := "Notice of the system, not of the user: " + lossCause(p.Left) + ". "
	if found == nil {
		m.Message = begin + "There was no copy of the workspace: it is empty now, and all files that were in it are lost." + end
		return m
	}
	at, void := found.GetCreateTime(), p.Export.Void() || p.Export.Turn != "" && !onPath(sc, p.Export.Turn)
	if void || found.GetId() != p.Export.Snapshot {
		p.Export = store.Export{} // another snapshot: the turn of its files is unknown
	}
	if p.Export.Turn != "" {
		m.RestoredTurn, m.RestoredSeq = sc.Name("turns", p.Export.Turn), p.Export.Seq
	}
	if at == nil && !p.Export.Time.IsZero() {
		at = timestamppb.New(p.Export.Time)
	}
	m.RestoredTime = at
	missing := since(sc, p)
	if void {
		missing = ", and may be from before you were taken back to an earlier point: changes that were undone then may be there again, and files that were restored may be missing"
	}
	m.Message = begin + fmt.Sprintf("The workspace was restored from its last copy, of %s%s. All later changes to its files are lost.",
		at.AsTime().UTC().Format(time.RFC3339), missing) + end
	return m
}

// onPath reports whether the conversation has a message of a turn.
func onPath(sc state.Scope, turn string) bool {
	name := sc.Name("turns", turn)
	return slices.ContainsFunc(sc.Path, func(m *sessionv1.Message) bool { return m.Turn == name })
}

// since tells the model how many of its turns an export may lack. An export has the
// changes of its own turn, and those that later turns had made when it was taken.
func since(sc state.Scope, p store.Place) string {
	if p.Export.Turn == "" {
		return ""
	}
	name, later := sc.Name("turns", p.Export.Turn), map[string]bool{}
	for _, m := range slices.Backward(sc.Path) {
		if m.Turn == name {
			break
		}
		if m.Role == sessionv1.Role_ROLE_ASSISTANT && len(state.ToolUses(m)) > 0 {
			later[m.Turn] = true
		}
	}
	if len(later) == 0 {
		return ", which has everything up to your last answer"
	}
	return fmt.Sprintf(", which may have nothing, or only a part, of the last %d turns in which you used tools", len(later))
}

// Settle gives the workspace a place outside of a turn. A lost workspace is left to the next turn,
// which also tells the model.
func (m *Mover) Settle(sc state.Scope) error {
	if err := m.copies.unsealAgain(sc); err != nil {
		return err
	}
	p := sc.Place()
	switch {
	case !m.nodes.Managed():
		return nil
	case p.Node == "":
		if err := m.placeNew(sc, p); err != nil {
			return err
		}
		return sc.Log.Flush(sc)
	case p.Restore || m.nodes.Lost(p.Node):
		return refusal.ToBeRestored("sessions/" + sc.Lease.Session)
	}
	return nil
}
