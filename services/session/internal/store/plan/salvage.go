package plan

import (
	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// Open are the states of turns that have not ended, as in the columns.
var Open = []int32{
	int32(sessionv1.TurnState_TURN_STATE_QUEUED), int32(sessionv1.TurnState_TURN_STATE_RUNNING), int32(sessionv1.TurnState_TURN_STATE_WAITING),
}

// ReadableTurn returns the turn, or the part that is known without its body.
func ReadableTurn(session, id string, body []byte) *sessionv1.Turn {
	name := TurnName(session, id)
	t := &sessionv1.Turn{}
	if err := proto.Unmarshal(body, t); err != nil || t.GetName() != name {
		return &sessionv1.Turn{Name: name}
	}
	return t
}
