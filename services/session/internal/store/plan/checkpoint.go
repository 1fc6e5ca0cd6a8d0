package plan

import (
	"fmt"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Checkpoint is a checkpoint's row.
type Checkpoint struct {
	ID
	Seq  int64
	Body []byte
}

// CheckpointID returns the id in a checkpoint's resource name.
func CheckpointID(session, name string) (string, error) {
	return childID(session, "checkpoints", name)
}

func checkpointRow(k store.Key, c *sessionv1.Checkpoint) (Checkpoint, error) {
	id, err := CheckpointID(k.Session, c.GetName())
	if err != nil || id == "" || c.Seq <= 0 {
		return Checkpoint{}, fmt.Errorf("checkpoint %q with the number %d does not belong to session %s", c.GetName(), c.GetSeq(), k.Session)
	}
	body, err := proto.Marshal(c)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("marshal checkpoint %s: %w", id, err)
	}
	return Checkpoint{ID: ID{k, id}, Seq: c.Seq, Body: body}, nil
}

// awaited returns the answer to a command whose result is an event: its id, and
// the sequence number that the event follows.
func awaited(s store.Submit, st InboxState) string {
	return s.Command.CallID + "." + strconv.FormatInt(st.Session.LastSeq, 10)
}

// planAwaited plans a command whose result is an event.
func planAwaited(s store.Submit, st InboxState) (*Submission, error) {
	if s.Command.CallID == "" {
		return nil, fmt.Errorf("a command of the kind %s has no id", s.Command.Kind)
	}
	if s.Command.Kind == store.CommandRewind && st.current() != "" {
		return nil, store.ErrTurnActive
	}
	out := &Submission{Value: awaited(s, st)}
	out.put(st, s.Command)
	return out, nil
}

// checkpoints plans the changes to checkpoints. A checkpoint that a later write
// of the same commit removes is not added.
func (p *planner) checkpoints(w store.Write, rows *writeRows) {
	for _, id := range w.DropCheckpoints {
		gone := ID{w.Key, id}
		p.out.DropCheckpoints = append(p.out.DropCheckpoints, gone)
		p.out.Checkpoints = slices.DeleteFunc(p.out.Checkpoints, func(c Checkpoint) bool { return c.ID == gone })
	}
	p.out.Checkpoints = append(p.out.Checkpoints, rows.checkpoints...)
}
