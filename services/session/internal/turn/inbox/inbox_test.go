package inbox

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
	"github.com/fairlead/fairlead/services/session/internal/turn/turntest"
)

func TestACommandIsTakenOnce(t *testing.T) {
	f := turntest.New(t, agent.Spec{})
	f.Store.Commands = []store.Command{{ID: 1}, {ID: 2}, {ID: 3}}
	b := New()
	var taken []int64
	var take func(store.Command) error
	take = func(c store.Command) error {
		taken = append(taken, c.ID)
		if c.ID == 1 {
			return b.Each(f.Scope, take) // as the end of a turn does
		}
		return nil
	}
	for range 2 {
		if err := b.Each(f.Scope, take); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(taken, []int64{1, 2, 3}) {
		t.Errorf("taken are %v", taken)
	}
}

func TestWhatWaitsForATurnThatIsAboutToEnd(t *testing.T) {
	for name, c := range map[string]struct {
		prepare      func(*turntest.Fixture, *Inbox)
		joins, stops bool
	}{
		"nothing":              {func(*turntest.Fixture, *Inbox) {}, false, false},
		"a message that joins": {inInbox(store.Command{ID: 1, Kind: store.CommandTurn, TurnID: "t2", Target: "t1"}), true, false},
		"one for another turn": {inInbox(store.Command{ID: 1, Kind: store.CommandTurn, TurnID: "t2", Target: "t0"}), false, false},
		"a queued message":     {inInbox(store.Command{ID: 1, Kind: store.CommandTurn, TurnID: "t2"}), false, false},
		"an interrupt":         {inInbox(store.Command{ID: 1, Kind: store.CommandInterrupt, TurnID: "t1"}), false, true},
		"a rollback":           {inInbox(store.Command{ID: 1, Kind: store.CommandRollback, TurnID: "t1"}), false, true},
		"a late interrupt":     {inInbox(store.Command{ID: 1, Kind: store.CommandInterrupt, TurnID: "t0"}), false, false},
		"both":                 {inInbox(store.Command{ID: 1, Target: "t1"}, store.Command{ID: 2, Kind: store.CommandInterrupt, TurnID: "t1"}), true, true},
		"taken": {func(f *turntest.Fixture, b *Inbox) {
			inInbox(store.Command{ID: 1, Target: "t1"})(f, b)
			b.taken[1] = true
		}, false, false},
		"behind the turn":      {func(f *turntest.Fixture, _ *Inbox) { f.Active.Run.Steer = []string{"t2"} }, true, false},
		"the limit is reached": {func(f *turntest.Fixture, _ *Inbox) { f.Active.Run.Steer, f.Active.Proto.Steps = []string{"t2"}, 10 }, false, false},
		"a stop, at the limit": {func(f *turntest.Fixture, b *Inbox) {
			inInbox(store.Command{ID: 1, Kind: store.CommandInterrupt, TurnID: "t1"})(f, b)
			f.Active.Proto.Steps = 10
		}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			f, b := turntest.New(t, agent.Spec{}), New()
			c.prepare(f, b)
			if joins, stops := b.Waits(f.Scope); joins != c.joins || stops != c.stops {
				t.Errorf("joins %v, stops %v", joins, stops)
			}
		})
	}
}

func inInbox(all ...store.Command) func(*turntest.Fixture, *Inbox) {
	return func(f *turntest.Fixture, _ *Inbox) { f.Store.Commands = all }
}

func TestAnInterruptIsSeenWhenTheInboxIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, b := turntest.New(t, agent.Spec{}), New()
		seen := make(chan bool, 10)
		turn := f.Active
		go b.Watch(t.Context(), f.Session, turn, func() { seen <- true })
		mode := func(id int64, turn string, mode commonv1.PermissionMode) store.Command {
			c := command(t, &sessionv1.SetPermissionModeRequest{PermissionMode: mode})
			c.ID, c.Kind, c.TurnID = id, store.CommandMode, turn
			return c
		}
		f.Store.Commands = []store.Command{
			{ID: 1, Kind: store.CommandTurn, TurnID: "t2"}, {ID: 2, Kind: store.CommandRollback, TurnID: "t2"},
			mode(3, "t1", edits), mode(4, "t1", plan), mode(5, "t2", edits),
		}
		synctest.Wait()
		if f.Mode() != 0 {
			t.Error("the mode changed before the inbox was woken")
		}
		b.Wake()
		synctest.Wait()
		if len(seen) != 0 || f.Mode() != plan {
			t.Errorf("%d interrupts, mode %s", len(seen), f.Mode())
		}
		for _, c := range slices.Clone(f.Store.Commands[2:]) {
			if err := TakeMode(f.Scope, c); err != nil {
				t.Fatal(err)
			}
		}
		b.Wake() // what was taken is in the inbox still
		synctest.Wait()
		f.Active.Run.Mode = edits // as after an approved plan
		if f.Mode() != edits {
			t.Errorf("a command that was taken counts again: the mode is %s", f.Mode())
		}
		var events []string
		for _, w := range f.Writes() {
			for _, e := range w.Events {
				events = append(events, fmt.Sprint(e.GetPermissionModeChanged().GetBefore(), " ", e.GetPermissionModeChanged().GetMode(), " ", e.GetPermissionModeChanged().GetUser()))
			}
		}
		if want := []string{"PERMISSION_MODE_DEFAULT PERMISSION_MODE_ACCEPT_EDITS ben", "PERMISSION_MODE_ACCEPT_EDITS PERMISSION_MODE_PLAN ben"}; !slices.Equal(events, want) {
			t.Errorf("the log has %q", events)
		}
		f.Store.Commands = []store.Command{{ID: 6, Kind: store.CommandInterrupt, TurnID: "t1"}}
		b.Wake()
		synctest.Wait()
		if len(seen) != 1 {
			t.Errorf("%d interrupts", len(seen))
		}
	})
}

const (
	edits = commonv1.PermissionMode_PERMISSION_MODE_ACCEPT_EDITS
	plan  = commonv1.PermissionMode_PERMISSION_MODE_PLAN
)

func command(t *testing.T, m proto.Message) store.Command {
	t.Helper()
	body, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return store.Command{ID: 5, CallID: "t1.1.0", User: "ben", Body: body}
}

func TestAnAnswerResumesATurnThatWaitsForIt(t *testing.T) {
	for name, c := range map[string]struct {
		take     func(state.Scope, store.Command) error
		body     proto.Message
		tool     string
		asked    string // the digest of the question; "": none
		resumed  bool
		outcome  sessionv1.ToolOutcome
		approved bool
	}{
		"an approval":                 {TakeApproval, &sessionv1.ResolveApprovalRequest{Digest: "d", Approved: true}, "Bash", "d", true, 0, true},
		"of another question":         {TakeApproval, &sessionv1.ResolveApprovalRequest{Digest: "e", Approved: true}, "Bash", "d", false, 0, false},
		"a result":                    {TakeToolResult, &sessionv1.SubmitToolResultRequest{}, "Pick", "", true, sessionv1.ToolOutcome_TOOL_OUTCOME_OK, false},
		"an error":                    {TakeToolResult, &sessionv1.SubmitToolResultRequest{IsError: true}, "Pick", "", true, sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR, false},
		"nothing, from a person":      {TakeExpiry, &sessionv1.SubmitToolResultRequest{}, "Bash", "d", true, sessionv1.ToolOutcome_TOOL_OUTCOME_EXPIRED, false},
		"nothing, from the client":    {TakeExpiry, &sessionv1.SubmitToolResultRequest{}, "Pick", "", true, sessionv1.ToolOutcome_TOOL_OUTCOME_EXPIRED, false},
		"too late, and not asked":     {TakeExpiry, &sessionv1.SubmitToolResultRequest{}, "Bash", "", false, 0, false},
		"nothing, about a soft limit": {TakeExpiry, &sessionv1.SubmitToolResultRequest{}, "", "d", true, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := turntest.New(t, agent.Spec{})
			f.Active.Client["Pick"] = &sessionv1.ClientTool{Name: "Pick"}
			if c.tool != "" {
				f.Call(&sessionv1.ToolUse{Tool: c.tool})
			}
			if c.asked != "" {
				f.Active.Run.Asked["t1.1.0"] = state.Question{Digest: c.asked}
			}
			f.Active.Run.WallUsed = time.Second
			f.Active.Proto.State = sessionv1.TurnState_TURN_STATE_WAITING
			if err := c.take(f.Scope, command(t, c.body)); err != nil {
				t.Fatal(err)
			}
			r, _, err := f.Active.Result("t1.1.0")
			if err != nil || f.Active.Waiting() == c.resumed || r.GetOutcome() != c.outcome || f.Active.Run.Approvals["t1.1.0"].Approved != c.approved {
				t.Errorf("waiting: %v, result %v (%v), approvals %v", f.Active.Waiting(), r, err, f.Active.Run.Approvals)
			}
			write := f.Writes()[0]
			if !slices.Equal(write.Consume, []int64{5}) || !slices.Equal(write.Waited, []string{"t1.1.0"}) || f.Active.WallUsed() > time.Minute {
				t.Errorf("written is %+v", write)
			}
		})
	}
}

func TestAnAnswerWithoutATurnIsDropped(t *testing.T) {
	for _, take := range []func(state.Scope, store.Command) error{TakeApproval, TakeToolResult, TakeExpiry} {
		f := turntest.New(t, agent.Spec{})
		f.Active = nil
		if err := take(f.Scope, command(t, &sessionv1.ResolveApprovalRequest{})); err != nil {
			t.Fatal(err)
		}
		if w := f.Writes()[0]; len(w.Events) != 0 || len(w.Consume) != 1 {
			t.Errorf("written is %+v", w)
		}
	}
}
