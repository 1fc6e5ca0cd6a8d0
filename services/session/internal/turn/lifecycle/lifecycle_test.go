package lifecycle

import (
	"slices"
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/spend"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
	"github.com/fairlead/fairlead/services/session/internal/turn/toolset"
	"github.com/fairlead/fairlead/services/session/internal/turn/turntest"
	"github.com/fairlead/fairlead/services/session/internal/turn/workspace"
)

func newTurns(t *testing.T, f *turntest.Fixture) *Turns {
	t.Helper()
	tools := toolset.New(turntest.Lists())
	return &Turns{
		Telemetry: turntest.Telemetry(t), Tools: tools, Spend: spend.New(spend.Config{}), Workspace: workspace.New(workspace.Config{}, tools, nil),
	}
}

func TestTurnsRunInTheirOrder(t *testing.T) {
	f := turntest.New(t, agent.Spec{})
	l := newTurns(t, f)
	for i, c := range []struct {
		id     string
		on     sessionv1.OnActive
		target string
	}{
		{"t2", sessionv1.OnActive_ON_ACTIVE_QUEUE, ""},
		{"t3", sessionv1.OnActive_ON_ACTIVE_STEER, "t1"},
		{"t4", sessionv1.OnActive_ON_ACTIVE_INTERRUPT, ""},
		{"t5", sessionv1.OnActive_ON_ACTIVE_ROLLBACK, ""},
	} {
		f.Turn(c.id, &sessionv1.CreateTurnRequest{Text: c.id, OnActive: c.on})
		if err := l.Take(f.Scope, store.Command{ID: int64(i + 1), TurnID: c.id, Target: c.target}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.JoinSteering(f.Scope); err != nil {
		t.Fatal(err)
	}
	if got := f.Path[len(f.Path)-1]; got.Turn != "sessions/s/turns/t3" || !f.Active.Owns(got.Turn) {
		t.Errorf("the message belongs to %s", got.Turn)
	}
	var order []string
	for f.Active != nil {
		order = append(order, f.Active.ID)
		if err := l.Finish(f.Scope, store.Write{}, sessionv1.TurnState_TURN_STATE_COMPLETE, nil); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"t1", "t4", "t5", "t2"}; !slices.Equal(order, want) {
		t.Errorf("the turns ran in the order %v", order)
	}
	finished := map[string]int{}
	for _, e := range f.Events() {
		if e.GetTurnFinished() != nil {
			finished[state.LastSegment(e.Turn)]++
		}
	}
	for _, id := range []string{"t1", "t2", "t3", "t4", "t5"} {
		if finished[id] != 1 {
			t.Errorf("turn %s has ended %d times", id, finished[id])
		}
	}
}

func TestACancelledQueueEndsItsTurns(t *testing.T) {
	f := turntest.New(t, agent.Spec{})
	l := newTurns(t, f)
	f.Turn("t2", &sessionv1.CreateTurnRequest{Text: "more"})
	f.Active.Run.Queue, f.Active.Run.Steer = []string{"t2"}, []string{"t2"}
	for range 2 {
		if err := l.CancelQueue(f.Scope); err != nil {
			t.Fatal(err)
		}
	}
	writes := f.Writes()
	if len(writes) != 1 || writes[0].FinishedTurns != 1 || writes[0].Turns[0].Turn.State != sessionv1.TurnState_TURN_STATE_INTERRUPTED || len(f.Active.Run.Steer) != 0 {
		t.Errorf("written is %+v", writes)
	}
}

func TestARollbackUndoesTheTurn(t *testing.T) {
	f := turntest.New(t, agent.Spec{Tools: []string{"Bash"}})
	l := newTurns(t, f)
	f.Turn("t2", &sessionv1.CreateTurnRequest{Text: "instead"})
	f.Active.Run.Queue, f.Active.Run.StartSeq, f.Active.Undo, f.Active.Consume = []string{"t2"}, 8, true, []int64{4}
	f.Active.Run.Files = &state.Files{Step: -1} // nothing to restore
	f.Call(&sessionv1.ToolUse{Tool: "Bash"})
	f.Say(sessionv1.Role_ROLE_USER, &sessionv1.Block{Kind: &sessionv1.Block_ToolResult{ToolResult: state.TextResult("t1.1.0", sessionv1.ToolOutcome_TOOL_OUTCOME_OK, "")}})
	if err := l.Finish(f.Scope, store.Write{}, sessionv1.TurnState_TURN_STATE_COMPLETE, nil); err != nil {
		t.Fatal(err)
	}
	if len(f.Path) != 1 || f.Path[0].Turn != "sessions/s/turns/t2" || f.Active.ID != "t2" {
		t.Errorf("the conversation is %v", f.Path)
	}
	write := f.Writes()[0]
	ended := write.Turns[0].Turn
	if ended.State != sessionv1.TurnState_TURN_STATE_INTERRUPTED || ended.Error.Reason != "ROLLED_BACK" || !slices.Equal(write.Consume, []int64{4}) {
		t.Errorf("the turn ended as %v", ended)
	}
	if got := f.Warnings(); !slices.Equal(got, []string{"FILES_KEPT"}) {
		t.Errorf("the warnings are %v", got)
	}
}

func TestTheTextOfATurn(t *testing.T) {
	for name, c := range map[string]struct {
		texts []string
		want  string
	}{
		"the last answer":     {[]string{"first", "last"}, "last"},
		"the agent's verdict": {nil, "summary"},
		"an answer, no text":  {[]string{""}, "summary"},
	} {
		t.Run(name, func(t *testing.T) {
			f := turntest.New(t, agent.Spec{})
			for _, text := range c.texts {
				f.Say(sessionv1.Role_ROLE_ASSISTANT, state.TextBlock(text))
			}
			f.Active.Summary = "summary"
			if got := finalText(f.Scope); got != c.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestAResumedTurnOpensOnlyAfterAnAnswer(t *testing.T) {
	f := turntest.New(t, agent.Spec{})
	resume := f.Turn("t2", &sessionv1.CreateTurnRequest{Resume: true})
	if got := opening(f.Scope, resume); got != nil {
		t.Errorf("after a user's message comes %v", got)
	}
	f.Say(sessionv1.Role_ROLE_ASSISTANT, state.TextBlock("so far"))
	if got := opening(f.Scope, resume); len(got) != 1 {
		t.Errorf("after an answer comes %v", got)
	}
}

func TestAWaitingTurnIsStored(t *testing.T) {
	f := turntest.New(t, agent.Spec{})
	l := newTurns(t, f)
	if err := l.Wait(f.Scope, state.Wait{CallIDs: []string{"c"}}); err != nil {
		t.Fatal(err)
	}
	write := f.Writes()[0]
	if !f.Active.Waiting() || !write.StepCommitted || write.Turns[0].Turn.State != sessionv1.TurnState_TURN_STATE_WAITING {
		t.Errorf("written is %+v", write)
	}
}
