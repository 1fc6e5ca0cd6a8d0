package turn

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/calls"
	"github.com/fairlead/fairlead/services/session/internal/turn/inbox"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// takeCommands carries out the commands in the inbox.
func (w *Worker) takeCommands(sc state.Scope) error {
	return w.inbox.Each(sc, func(c store.Command) error { return w.takeCommand(sc, c) })
}

// takeCommand carries out one command.
func (w *Worker) takeCommand(sc state.Scope, c store.Command) error {
	switch c.Kind {
	case store.CommandTurn, store.CommandCall:
		return w.turns.Take(sc, c)
	case store.CommandInterrupt:
		return w.takeInterrupt(sc, c)
	case store.CommandRollback:
		return w.takeRollback(sc, c)
	case store.CommandMode:
		return inbox.TakeMode(sc, c)
	case store.CommandApproval:
		return inbox.TakeApproval(sc, c)
	case store.CommandAnswer:
		return inbox.TakeAnswer(sc, c)
	case store.CommandToolResult:
		return inbox.TakeToolResult(sc, c)
	case store.CommandExpire:
		return inbox.TakeExpiry(sc, c)
	case store.CommandRepository:
		return inbox.TakeEvent(sc, c)
	case store.CommandOperation:
		return calls.EndOperation(sc, c)
	case store.CommandMove:
		return w.workspace.Place.Move(sc, c, func() error { return w.compactFirst(sc) })
	case store.CommandCheckpoint:
		return w.workspace.Checkpoints.Request(sc, c)
	case store.CommandRewind:
		return w.takeRewind(sc, c)
	case store.CommandFeedback:
		return w.turns.TakeFeedback(sc, c)
	case store.CommandCompact:
		w.compactor.Request(c) // done between two steps, or when nothing runs
		return nil
	default:
		if err := sc.Flush(); err != nil { // giving the lease back loses what is not written
			return err
		}
		return fmt.Errorf("the inbox of session %s: %w: %q", sc.Lease.Session, ErrUnknownCommand, c.Kind)
	}
}

func (w *Worker) takeInterrupt(sc state.Scope, c store.Command) error {
	r := &sessionv1.InterruptSessionRequest{}
	if len(c.Body) > 0 {
		if err := proto.Unmarshal(c.Body, r); err != nil {
			return fmt.Errorf("read an interrupt: %w", err)
		}
	}
	if sc.Active != nil && r.CancelQueued {
		if err := w.turns.CancelQueue(sc); err != nil {
			return err
		}
	}
	if sc.Active != nil && r.Turn != "" && sc.Active.ID != c.TurnID {
		return w.turns.CancelOne(sc, c)
	}
	// With cancel_queued everything stops that was accepted before the interrupt,
	// including a turn that was queued then and runs now.
	if sc.Active == nil || sc.Active.ID != c.TurnID && !r.CancelQueued {
		return sc.Append(store.Write{Consume: []int64{c.ID}})
	}
	return w.stopActive(sc, c)
}

// takeRollback stops a turn. The end of the turn then undoes it.
func (w *Worker) takeRollback(sc state.Scope, c store.Command) error {
	if sc.Active == nil || sc.Active.ID != c.TurnID {
		return sc.Append(store.Write{Consume: []int64{c.ID}})
	}
	sc.Active.Undo = true
	return w.stopActive(sc, c)
}

// stopActive lets the loop stop the turn; a waiting turn is stopped at once. The end of the turn
// consumes the command.
func (w *Worker) stopActive(sc state.Scope, c store.Command) error {
	t := sc.Active
	stopping := t.Stopped
	t.Stopped = true
	t.Consume = append(t.Consume, c.ID)
	if stopping || !t.Waiting() {
		return nil // the loop stops the turn, or an earlier interrupt already has
	}
	if err := sc.LoadPath(sc); err != nil {
		return err
	}
	return w.endTurn(sc, state.End{Cause: errInterrupted})
}

// takeRewind goes back to a checkpoint. What is known of the conversation's end does not count then.
func (w *Worker) takeRewind(sc state.Scope, c store.Command) error {
	if sc.Active == nil {
		if err := w.compactFirst(sc); err != nil {
			return err
		}
	}
	rewound, err := w.workspace.Checkpoints.Rewind(sc, c)
	if err == nil && rewound {
		w.compactor.Forget()
		w.spend.Forget()
		w.calls.Forget()
	}
	return err
}

// compactFirst handles the requests to compact before the files are replaced or moved: an earlier
// worker may have begun the compaction, and its hook may still run in these files.
func (w *Worker) compactFirst(sc state.Scope) error {
	_, err := w.compactor.RunRequested(sc) // no turn runs that it could end
	return err
}
