package workspace

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

func TestWhatIsToldOfALostNodeIsTrue(t *testing.T) {
	use := func(turn string) *sessionv1.Message {
		return &sessionv1.Message{Role: sessionv1.Role_ROLE_ASSISTANT, Turn: "sessions/s/turns/" + turn, Blocks: []*sessionv1.Block{
			{Kind: &sessionv1.Block_ToolUse{ToolUse: &sessionv1.ToolUse{CallId: "c", Tool: "Bash"}}},
		}}
	}
	const undone, nothing, all = "changes that were undone then may be there again", "has nothing", "everything up to your last answer"
	now := time.Now()
	for _, c := range []struct {
		name      string
		path      []*sessionv1.Message
		export    store.Export
		turn      string
		says, not string
	}{
		{"it has the last turn", []*sessionv1.Message{use("1"), use("2")}, store.Export{Turn: "2", Seq: 50, Snapshot: "x", Time: now}, "sessions/s/turns/2", all, undone},
		{"it may have a part of the next turn", []*sessionv1.Message{use("1"), use("2")}, store.Export{Turn: "1", Seq: 20, Snapshot: "x", Time: now}, "sessions/s/turns/1",
			"may have nothing, or only a part, of the last 1 turns", nothing},
		{"it is void", []*sessionv1.Message{use("1")}, store.Export{Seq: 60, Snapshot: "x"}, "", undone, "of the last"},
		{"it is void, and there is another one", []*sessionv1.Message{use("1")}, store.Export{Seq: 60, Snapshot: "y"}, "", undone, "of the last"},
		{"it is of a turn that was undone", []*sessionv1.Message{use("1")}, store.Export{Turn: "2", Seq: 50, Snapshot: "x", Time: now}, "", undone, "of the last"},
		{"it is of after everything was undone", nil, store.Export{Seq: 60, Snapshot: "x", Time: now}, "", "later changes", undone},
	} {
		t.Run(c.name, func(t *testing.T) {
			sc := state.Scope{Session: &state.Session{Lease: store.Lease{Key: store.Key{Session: "s"}}, Proto: &sessionv1.Session{Name: "sessions/s"}, Active: &state.Turn{Proto: &sessionv1.Turn{}}, Path: c.path}}
			m := movedBody(sc, store.Place{Node: "b", Left: store.Left{Node: "a", Why: store.NodeLost}, Export: c.export}, &sandboxv1.Snapshot{Id: "x", CreateTime: timestamppb.New(now)})
			if m.RestoredTurn != c.turn || !strings.Contains(m.Message, c.says) || strings.Contains(m.Message, c.not) {
				t.Errorf("it is of %q: %s", m.RestoredTurn, m.Message)
			}
		})
	}
}
