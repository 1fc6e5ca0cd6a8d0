package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// InboxState is the state that decides about a command, read under the
// session's lock.
type InboxState struct {
	Session *Session
	Queued  int // turns in the state QUEUED
	// FirstQueued is the oldest of them: it becomes active next.
	FirstQueued string
	// Pending is the waiting call with the command's id, or nil. Answered says
	// that the inbox already has an answer to it.
	Pending  *store.PendingCall
	Answered bool
	// Last is the state of the turn that was accepted last, calls not counted; unspecified without one.
	Last sessionv1.TurnState
	// Commands is the inbox; see NeedsInbox.
	Commands []store.Command
	Now      time.Time
}

// Submission has the changes of a submitted command.
type Submission struct {
	Commands []store.Command // may be none
	Turn     *Turn           // to insert, if any
	Answered string          // the call that is answered now, if any
	Value    string          // the answer's value
}

// ForSubmit decides what a command changes, or why it is refused. It raises the
// numbers in st.Session.
func ForSubmit(s store.Submit, st InboxState) (*Submission, error) {
	if st.Session.ArchiveTime != nil && !s.Command.Kind.Settles() {
		return nil, store.ErrArchived
	}
	if st.Session.Root != "" && !s.FromParent && !s.Command.Kind.Settles() {
		return nil, store.ErrSubagent
	}
	switch s.Command.Kind {
	case store.CommandTurn, store.CommandCall:
		return planTurn(s, st)
	case store.CommandInterrupt:
		return planInterrupt(s, st), nil
	case store.CommandMode:
		return planMode(s, st)
	case store.CommandApproval, store.CommandToolResult, store.CommandAnswer:
		return planAnswer(s, st)
	case store.CommandExpire:
		return planExpiry(s, st), nil
	case store.CommandCheckpoint, store.CommandRewind, store.CommandFeedback:
		return planAwaited(s, st)
	case store.CommandCompact, store.CommandRepository, store.CommandOperation, store.CommandMove:
		out := &Submission{}
		out.put(st, s.Command)
		return out, nil
	}
	return nil, fmt.Errorf("no kind of command is named %q", s.Command.Kind)
}

func planTurn(s store.Submit, st InboxState) (*Submission, error) {
	switch {
	case s.Turn == nil:
		return nil, errors.New("a turn's command has no turn")
	case s.RejectIfActive && st.current() != "":
		return nil, store.ErrTurnActive
	case s.Resume && (st.Session.Head == "" || st.Last == sessionv1.TurnState_TURN_STATE_COMPLETE):
		return nil, store.ErrNothingToResume
	case st.Queued >= store.MaxQueuedTurns:
		return nil, store.ErrQueueFull
	}
	turn := proto.CloneOf(s.Turn.Turn)
	turn.State = sessionv1.TurnState_TURN_STATE_QUEUED
	turn.AfterSeq = st.Session.LastSeq
	turn.CreateTime = timestamppb.New(st.Now)
	row, err := turnRow(s.Key, &store.TurnRow{Turn: turn, ID: s.Turn.ID, Run: s.Turn.Run})
	if err != nil {
		return nil, err
	}
	row.Number = st.Session.NextTurn
	st.Session.NextTurn++
	out := &Submission{Turn: &row, Value: row.ID}
	stop := st.current()
	switch {
	case s.InterruptActive && stop != "" && !st.stopping(stop, false):
		out.put(st, store.Command{Kind: store.CommandInterrupt, TurnID: stop, User: s.Command.User})
	case s.RollbackActive && stop != "" && !st.undoing(stop):
		out.put(st, store.Command{Kind: store.CommandRollback, TurnID: stop, User: s.Command.User})
	}
	cmd := s.Command
	cmd.TurnID, cmd.Target = row.ID, ""
	if s.SteerActive {
		cmd.Target = stop
	}
	out.put(st, cmd)
	return out, nil
}

// current returns the turn that an interrupt stops: the active one, or the one
// that becomes active when a holder takes the session.
func (st InboxState) current() string {
	return cmp.Or(st.Session.ActiveTurn, st.FirstQueued)
}

// AddsTurn reports whether a command makes a turn beside the others, which caps count: one that neither stops the
// current turn nor joins it. A user at a cap can thus still correct what runs.
func AddsTurn(s store.Submit, st InboxState) bool {
	return s.Turn != nil && (st.current() == "" || !s.InterruptActive && !s.RollbackActive && !s.SteerActive)
}

func planInterrupt(s store.Submit, st InboxState) *Submission {
	cmd := s.Command
	cmd.TurnID = cmp.Or(cmd.TurnID, st.current())
	out := &Submission{Value: cmd.TurnID}
	if cmd.TurnID != "" && !st.stopping(cmd.TurnID, s.CancelQueued) {
		out.put(st, cmd)
	}
	return out
}

// planMode changes the mode of the turn that is active, or that becomes active when a holder takes the session.
func planMode(s store.Submit, st InboxState) (*Submission, error) {
	cmd := s.Command
	cmd.TurnID = cmp.Or(cmd.TurnID, st.current())
	if cmd.TurnID == "" || cmd.TurnID != st.current() {
		return nil, store.ErrTurnNotActive
	}
	out := &Submission{Value: cmd.TurnID}
	out.put(st, cmd)
	return out, nil
}

// NeedsInbox reports whether ForSubmit must know the inbox. answered says that the
// inbox has an answer to the command's call.
func NeedsInbox(s store.Submit, answered bool) bool {
	return answered || s.Command.Kind == store.CommandInterrupt || s.InterruptActive || s.RollbackActive
}

// stopping reports whether the inbox already has what another interrupt of the
// turn would request. An interrupt that also ends the queued turns ends those
// that were accepted before it, so another one is needed if there are later
// ones.
func (st InboxState) stopping(turn string, cancelQueued bool) bool {
	is := false
	for _, c := range st.Commands {
		switch {
		case (c.Kind == store.CommandTurn || c.Kind == store.CommandCall) && cancelQueued:
			is = false
		case c.Kind == store.CommandRollback && c.TurnID == turn && !cancelQueued:
			is = true
		case c.Kind == store.CommandInterrupt && c.TurnID == turn:
			is = is || !cancelQueued || cancelsQueued(c)
		}
	}
	return is
}

func (st InboxState) undoing(turn string) bool {
	return slices.ContainsFunc(st.Commands, func(c store.Command) bool {
		return c.Kind == store.CommandRollback && c.TurnID == turn
	})
}

func cancelsQueued(c store.Command) bool {
	r := &sessionv1.InterruptSessionRequest{}
	return proto.Unmarshal(c.Body, r) == nil && r.CancelQueued
}

func planAnswer(s store.Submit, st InboxState) (*Submission, error) {
	p := st.Pending
	switch {
	case p == nil || p.Answer != s.Command.Kind:
		return nil, store.ErrCallNotWaiting
	case st.Answered:
		return nil, &store.AnsweredError{Command: st.answer(p.CallID)}
	}
	if s.Command.Kind != store.CommandToolResult && p.Digest != s.Digest {
		return nil, store.ErrDigestMismatch
	}
	out := &Submission{}
	out.answer(st, s.Command)
	return out, nil
}

// planExpiry ends the wait of a call without an answer.
func planExpiry(s store.Submit, st InboxState) *Submission {
	out := &Submission{}
	if st.Pending != nil && !st.Answered {
		out.answer(st, s.Command)
	}
	return out
}

// answer adds the answer to the waiting call.
func (s *Submission) answer(st InboxState, c store.Command) {
	s.Answered, s.Value = st.Pending.CallID, st.Pending.CallID
	c.TurnID = st.Pending.TurnID
	s.put(st, c)
}

// answer returns the answer to a call in the inbox.
func (st InboxState) answer(call string) store.Command {
	for _, c := range st.Commands {
		if c.CallID == call && (answers(c.Kind) || c.Kind == store.CommandExpire) {
			return c
		}
	}
	return store.Command{}
}

// answers reports whether commands of a kind answer a waiting call.
func answers(k store.CommandKind) bool {
	return k == store.CommandApproval || k == store.CommandToolResult || k == store.CommandAnswer
}

func (s *Submission) put(st InboxState, c store.Command) {
	c.ID, c.Time = st.Session.NextCommand, st.Now
	st.Session.NextCommand++
	s.Commands = append(s.Commands, c)
}
