package inbox

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// modeOf returns the permission mode that a command asks for.
func modeOf(c store.Command) (commonv1.PermissionMode, error) {
	r := &sessionv1.SetPermissionModeRequest{}
	if err := proto.Unmarshal(c.Body, r); err != nil {
		return 0, fmt.Errorf("read a permission mode: %w", err)
	}
	return r.PermissionMode, nil
}

// LearnMode reads which permission mode is asked for. It comes before each decision: Watch may learn of a command later
// than the client that has sent it goes on. It consumes nothing.
func LearnMode(sc state.Scope) error {
	commands, err := sc.Store.Inbox(sc.Outlasting(), sc.Lease)
	for _, c := range commands {
		announce(sc.Active, c)
	}
	return err
}

// announce tells a turn of the mode that a command asks for, if it does.
func announce(t *state.Turn, c store.Command) {
	if c.Kind != store.CommandMode || c.TurnID != t.ID {
		return
	}
	if mode, err := modeOf(c); err == nil { // the loop reports the error
		t.AnnounceMode(c.ID, mode)
	}
}

// TakeMode lets the active turn go on in another permission mode. A command for a turn that has ended is dropped. A
// waiting turn waits on: the answer is decided on in the new mode.
func TakeMode(sc state.Scope, c store.Command) error {
	mode, err := modeOf(c)
	if err != nil {
		return err
	}
	write := store.Write{Consume: []int64{c.ID}}
	if t := sc.Active; t != nil && t.ID == c.TurnID {
		if e := state.TakeMode(sc.Session, c.ID, mode, c.User); e != nil {
			write.Events, write.Turns = append(write.Events, e), []*store.TurnRow{t.Row()}
		}
	}
	return sc.Append(write)
}
