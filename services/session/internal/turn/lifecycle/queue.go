// Package lifecycle begins a session's turns, queues those that wait, and ends each in one write.
package lifecycle

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/flag"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/spend"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
	"github.com/fairlead/fairlead/services/session/internal/turn/telemetry"
	"github.com/fairlead/fairlead/services/session/internal/turn/toolset"
	"github.com/fairlead/fairlead/services/session/internal/turn/workspace"
)

// Turns begins and ends the turns of one session.
type Turns struct {
	Telemetry telemetry.Telemetry
	Tools     *toolset.Toolset
	Spend     *spend.Spend
	Workspace *workspace.Workspace
	Flags     *flag.Flags // nil: the agents decide
}

// Take begins an accepted turn, or puts it behind the active one.
func (l *Turns) Take(sc state.Scope, c store.Command) error {
	t, err := sc.LoadTurn(sc, c.TurnID)
	if err != nil {
		return err
	}
	write := store.Write{Consume: []int64{c.ID}, Events: []*sessionv1.Event{{
		Turn: t.Proto.Name,
		Body: &sessionv1.Event_TurnQueued{TurnQueued: &sessionv1.TurnQueued{Content: content(t.Request), User: c.User, Resume: t.Request.Resume, Call: t.Proto.Call}},
	}}}
	if a := sc.Active; a != nil {
		a.Enqueue(t.ID, t.Request.OnActive)
		if c.Target == a.ID {
			a.Run.Steer = append(a.Run.Steer, t.ID)
		}
		write.Turns = []*store.TurnRow{a.Row()}
		return sc.Append(write)
	}
	if err := sc.LoadPath(sc); err != nil {
		return err
	}
	l.activate(sc, &write, t)
	return sc.Append(write)
}

// activate makes a turn the active one: the user's message, if it has one, becomes the head.
func (l *Turns) activate(sc state.Scope, write *store.Write, t *state.Turn) {
	sc.Active = t
	sc.RecordProgress()
	t.Run.StartSeq = sc.Log.Seq() + int64(len(write.Events)) + 1
	t.Since = state.Now().AsTime()
	t.Proto.State = sessionv1.TurnState_TURN_STATE_RUNNING
	t.Proto.StartTime = state.Now()
	if resolved, err := sc.ResolveModel(); err == nil && !t.IsCall() {
		t.Proto.Model = resolved.Provider + ":" + resolved.Name
	}
	if blocks := opening(sc, t); len(blocks) > 0 {
		sc.AddMessage(write, sc.NewMessage(sessionv1.Role_ROLE_USER, 0, blocks))
	}
	started := &sessionv1.TurnStarted{Model: t.Proto.Model, Limits: t.Proto.Limits, TraceId: t.Proto.TraceId, Options: t.Request.Options}
	if !t.IsCall() {
		decided := l.decide(sc, t)
		t.Run.Runtime, t.Run.Alone = decided.Runtime, decided.Alone
		started.Runtime, started.Flags = decided.Runtime, decided.Flags
	}
	write.Events = append(write.Events, sc.Event(0, &sessionv1.Event{Body: &sessionv1.Event_TurnStarted{TurnStarted: started}}))
	write.Turns = append(write.Turns, t.Row())
	write.ActiveTurn = &t.ID
}

// decide asks the flags about a turn. A session and its subagents are in the same share of the sessions.
func (l *Turns) decide(sc state.Scope, t *state.Turn) flag.Decision {
	return l.Flags.Decide(sc, flag.Subject{
		Tenant: sc.Lease.Tenant, User: t.Run.User, Agent: strings.TrimPrefix(sc.Proto.Agent, "agents/"),
		Session: sc.WorkspaceKey().Session, Runtime: sc.Spec.RuntimeName(),
	})
}

// CancelQueue ends the turns behind the active one.
func (l *Turns) CancelQueue(sc state.Scope) error {
	if len(sc.Active.Run.Queue) == 0 {
		return nil
	}
	var write store.Write
	queue, _ := sc.Active.TakeQueue()
	for _, id := range queue {
		if err := cancelTurn(sc, &write, id); err != nil {
			return err
		}
	}
	write.Turns = append(write.Turns, sc.Active.Row())
	return sc.Append(write)
}

// CancelOne ends the turn that an interrupt names, if it waits behind the active one.
func (l *Turns) CancelOne(sc state.Scope, c store.Command) error {
	write := store.Write{Consume: []int64{c.ID}}
	if sc.Active.Dequeue(c.TurnID) {
		if err := cancelTurn(sc, &write, c.TurnID); err != nil {
			return err
		}
		write.Turns = append(write.Turns, sc.Active.Row())
	}
	return sc.Append(write)
}

// cancelTurn ends a turn that has not begun.
func cancelTurn(sc state.Scope, write *store.Write, id string) error {
	t, err := sc.LoadTurn(sc, id)
	if err != nil {
		return err
	}
	t.Proto.State = sessionv1.TurnState_TURN_STATE_INTERRUPTED
	t.Proto.EndTime = timestamppb.Now()
	t.Proto.Error = state.TurnError(sessionv1.ErrorReason_ERROR_REASON_INTERRUPTED, "The session was stopped on request before this turn began. Send the message again to get an answer.")
	write.Turns = append(write.Turns, t.Row())
	write.FinishedTurns++
	write.Events = append(write.Events, &sessionv1.Event{Turn: t.Proto.Name, Body: FinishedBody(t.Proto)})
	return nil
}

// JoinSteering puts the messages that steer the active turn into the conversation in one write.
// Their turns end with the active one.
func (l *Turns) JoinSteering(sc state.Scope) error {
	t := sc.Active
	var write store.Write
	for _, id := range t.Run.Steer {
		s, err := sc.LoadTurn(sc.Outlasting(), id)
		if err != nil {
			return err
		}
		s.Since = state.Now().AsTime()
		s.Proto.State, s.Proto.StartTime = sessionv1.TurnState_TURN_STATE_RUNNING, state.Now()
		s.Proto.Model, s.Proto.SteeredInto = t.Proto.Model, t.Proto.Name
		m := sc.NewMessage(sessionv1.Role_ROLE_USER, 0, userBlocks(s.Request))
		m.Turn = s.Proto.Name
		sc.AddMessage(&write, m)
		write.Turns = append(write.Turns, s.Row())
		write.Events = append(write.Events, &sessionv1.Event{
			Turn: s.Proto.Name, Body: &sessionv1.Event_TurnSteered{TurnSteered: &sessionv1.TurnSteered{Into: t.Proto.Name}},
		})
	}
	t.Run.Queue = slices.DeleteFunc(t.Run.Queue, func(id string) bool { return slices.Contains(t.Run.Steer, id) })
	t.Run.Steered, t.Run.Steer = append(t.Run.Steered, t.Run.Steer...), nil
	write.Turns = append(write.Turns, t.Row())
	return sc.Commit(write) // finishSteered reads the rows from the store
}

// Wait makes the turn wait: from here on it exists in the store only.
func (l *Turns) Wait(sc state.Scope, w state.Wait) error {
	t, write := sc.Active, w.Write
	t.Run.WallUsed = t.WallUsed()
	l.Spend.SettleTime(t, &write)
	t.Proto.State = sessionv1.TurnState_TURN_STATE_WAITING
	write.Events = append(write.Events, sc.StepEvent(&sessionv1.Event{Body: &sessionv1.Event_TurnWaiting{TurnWaiting: &sessionv1.TurnWaiting{CallIds: w.CallIDs}}}))
	write.Turns = []*store.TurnRow{t.Row()}
	write.StepCommitted = true
	return sc.Commit(write)
}

// opening returns the message that a turn begins with; none for a call. A turn that resumes needs one
// only if the model spoke last: models do not answer their own message.
func opening(sc state.Scope, t *state.Turn) []*sessionv1.Block {
	switch last := sc.Last(); {
	case t.IsCall():
		return nil
	case !t.Request.Resume:
		return userBlocks(t.Request)
	case last == nil || last.Role == sessionv1.Role_ROLE_ASSISTANT:
		return []*sessionv1.Block{state.TextBlock(goOn)}
	default:
		return nil
	}
}

// goOn is what the model reads when a turn resumes after an answer of its own.
const goOn = "Continue where you stopped."

// userBlocks returns the user's words as the blocks of a message.
func userBlocks(r *sessionv1.CreateTurnRequest) []*sessionv1.Block {
	var blocks []*sessionv1.Block
	for _, c := range content(r) {
		blocks = append(blocks, &sessionv1.Block{Kind: &sessionv1.Block_Content{Content: c}})
	}
	return blocks
}

// content returns the user's words.
func content(r *sessionv1.CreateTurnRequest) []*commonv1.Content {
	var all []*commonv1.Content
	if r.Text != "" {
		all = append(all, state.Text(r.Text))
	}
	return append(all, r.Content...)
}
