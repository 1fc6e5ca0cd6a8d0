package lifecycle

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/calls"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// Abandon ends everything that the session has to do and gives the lease back. It is for
// a session that no worker can work on, because its stored data cannot be read or every
// claim fails. It uses only what can be read: every turn that has not ended ends FAILED,
// since the order of the queue may be lost with the state, and the inbox is emptied. The
// conversation stays as it is. Calls without a result get one if the conversation can be
// read, so that the next turn finds it well-formed.
func Abandon(ctx context.Context, s *state.Session) error {
	left, err := s.Store.Salvage(ctx, s.Lease)
	if err != nil {
		return err
	}
	none := ""
	write := store.Write{
		Lease: s.Lease, LastSeq: left.LastSeq, ActiveTurn: &none, StepCommitted: true,
		Consume: left.Commands, Waited: left.Pending, FinishedTurns: len(left.Turns),
	}
	for _, id := range left.Reservations { // the state that says what was used of them may be lost
		write.Settle = append(write.Settle, store.Settle{ID: id, Unknown: true})
	}
	why := state.TurnError(sessionv1.ErrorReason_ERROR_REASON_CRASH_LOOP, fmt.Sprintf(
		"The session was claimed %d times, and its work failed each time: its stored state may be damaged. See the server's log for the cause.  "+
			"Send the message again; if that fails too, create a new session.", s.Claims))
	for _, t := range left.Turns {
		t.State, t.Error, t.EndTime = sessionv1.TurnState_TURN_STATE_FAILED, why, timestamppb.Now()
		n := left.LastSeq + int64(len(write.Events)) + 1
		write.Events = append(write.Events, &sessionv1.Event{FirstSeq: n, Seq: n, Turn: t.Name, Body: FinishedBody(t)})
		write.Turns = append(write.Turns, &store.TurnRow{ID: state.LastSegment(t.Name), Turn: t, Run: []byte("{}")})
	}
	answerDangling(ctx, s, &write)
	errs, err := s.Store.Commit(ctx, []store.Write{write})
	if err == nil {
		err = errs[0]
	}
	if err != nil {
		return fmt.Errorf("give up the work of session %s: %w", s.Lease.Session, err)
	}
	_, err = s.Store.ReleaseIdle(ctx, s.Lease)
	return err
}

// answerDangling gives the calls of the last message a result, if the message can be
// read and its turn is one that Abandon ends.
func answerDangling(ctx context.Context, s *state.Session, write *store.Write) {
	path, err := s.Store.ListMessages(ctx, s.Lease.Key, "", "", 0)
	if err != nil || len(path) == 0 {
		return // the messages cannot be read: the next turn reports it
	}
	last := path[len(path)-1]
	var blocks []*sessionv1.Block
	for _, u := range state.ToolUses(last) {
		blocks = append(blocks, &sessionv1.Block{Kind: &sessionv1.Block_ToolResult{ToolResult: calls.Unknown(u)}})
	}
	if len(blocks) == 0 {
		return
	}
	m := &sessionv1.Message{
		Name: s.Name("messages", id.New()), Parent: last.Name, Role: sessionv1.Role_ROLE_USER, Blocks: blocks,
		Turn: last.Turn, Step: last.Step, CreateTime: state.Now(),
	}
	head := state.LastSegment(m.Name)
	write.Messages, write.Head = []*sessionv1.Message{m}, &head
}
