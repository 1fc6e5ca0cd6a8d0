package turn

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/calls"
	"github.com/fairlead/fairlead/services/session/internal/turn/spend"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
	"github.com/fairlead/fairlead/services/session/internal/turn/turntest"
	"github.com/fairlead/fairlead/services/session/internal/turn/workspace"
)

type noTools struct{ calls.Tools }

func (noTools) ListSessionTools(context.Context, *toolsv1.ListSessionToolsRequest) ([]*toolsv1.Tool, []*commonv1.McpServerStatus, error) {
	return nil, nil, nil
}
func (noTools) FenceSession(context.Context, *commonv1.CallRef) error { return nil }

// start returns a worker of a session without an active turn, and its model.
func start(t *testing.T, answers ...any) (*turntest.Fixture, *Worker, *turntest.Answers) {
	t.Helper()
	f, m := turntest.New(t, agent.Spec{}), &turntest.Answers{Answers: answers}
	f.Store.Loaded = &store.Snapshot{Session: &sessionv1.Session{Name: "sessions/s"}}
	return f, New(&Deps{
		Store: f.Store, Committer: f.Committer, Tools: noTools{}, Workspace: workspace.Config{Checkpoints: workspace.CheckpointConfig{Keep: 10}},
		Resolve:   func(context.Context, string) (state.Resolved, error) { return turntest.Model(m), nil },
		Telemetry: turntest.Telemetry(t), Log: slog.New(slog.NewTextHandler(t.Output(), nil)), BudgetQueues: &spend.Queues{}, MaxClaims: 5, PeerPatience: time.Minute,
	}, f.Lease), m
}

// accept puts a message into the inbox.
func accept(f *turntest.Fixture, id string, command int64) {
	turn := f.Turn(id, &sessionv1.CreateTurnRequest{Text: "Hello."})
	turn.Proto.Limits.MaxWallTime = durationpb.New(time.Minute)
	f.Put(turn)
	f.Store.Commands = append(f.Store.Commands, store.Command{ID: command, Kind: store.CommandTurn, TurnID: id, User: "ann"})
}

// ended returns the turns that have ended, in their order, as `id STATE`.
func ended(f *turntest.Fixture) []string {
	var all []string
	for _, e := range f.Events() {
		if b := e.GetTurnFinished(); b != nil {
			all = append(all, state.LastSegment(e.Turn)+" "+strings.TrimPrefix(b.State.String(), "TURN_STATE_"))
		}
	}
	return all
}

func TestAWorkerRunsWhatTheInboxHas(t *testing.T) {
	f, w, m := start(t, "One.", "Two.")
	accept(f, "a", 1)
	accept(f, "b", 2)
	if err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := ended(f); !slices.Equal(got, []string{"a COMPLETE", "b COMPLETE"}) || len(m.Requests) != 2 || len(f.Store.Commands) != 0 {
		t.Errorf("ended are %v, left are %v", got, f.Store.Commands)
	}
	if second := m.Requests[1].Messages; len(second) != 3 {
		t.Errorf("the second request has %d messages", len(second))
	}
}

func TestAWorkerStopsBetweenTwoSteps(t *testing.T) {
	f, w, m := start(t)
	accept(f, "a", 1)
	w.Drain()
	if err := w.Run(t.Context()); !errors.Is(err, ErrHandOver) || len(m.Requests) != 0 || len(ended(f)) != 0 {
		t.Errorf("%v, ended are %v", err, ended(f))
	}
}

func TestACommandOfANewerVersionIsLeftToIt(t *testing.T) {
	f, w, _ := start(t)
	f.Store.Commands = []store.Command{{ID: 1, Kind: "newer"}}
	if err := w.Run(t.Context()); !errors.Is(err, ErrUnknownCommand) || len(f.Store.Commands) != 1 {
		t.Errorf("%v, left are %v", err, f.Store.Commands)
	}
}

func TestATurnThatCrashesItsHoldersEnds(t *testing.T) {
	f, w, m := start(t)
	turn := f.Turn("a", &sessionv1.CreateTurnRequest{Text: "Hello."})
	turn.Proto.State, turn.Proto.Limits.MaxWallTime = sessionv1.TurnState_TURN_STATE_RUNNING, durationpb.New(time.Minute)
	f.Store.Loaded.Active, f.Store.Loaded.Claims = turn.Row(), 6
	if err := w.Run(t.Context()); err != nil || !slices.Equal(ended(f), []string{"a FAILED"}) || len(m.Requests) != 0 {
		t.Errorf("%v, ended are %v", err, ended(f))
	}
}

func TestAnInterruptEndsAWaitingTurnAtOnce(t *testing.T) {
	f, w, _ := start(t, "Two.")
	turn := f.Turn("a", &sessionv1.CreateTurnRequest{Text: "Hello."})
	turn.Proto.State = sessionv1.TurnState_TURN_STATE_WAITING
	f.Store.Loaded.Active = turn.Row()
	accept(f, "b", 1)
	f.Store.Commands = append(f.Store.Commands, store.Command{ID: 2, Kind: store.CommandInterrupt, TurnID: "a"})
	if err := w.Run(t.Context()); err != nil || !slices.Equal(ended(f), []string{"a INTERRUPTED", "b COMPLETE"}) {
		t.Errorf("%v, ended are %v", err, ended(f))
	}
}

func TestASessionThatCannotBeWorkedOnIsEnded(t *testing.T) {
	f, w, _ := start(t)
	f.Store.Left = &store.Salvage{LastSeq: 10, Turns: []*sessionv1.Turn{{Name: "sessions/s/turns/a"}, {Name: "sessions/s/turns/b"}}, Commands: []int64{1}, Reservations: []string{"a.r1"}}
	if err := w.Abandon(t.Context()); err != nil {
		t.Fatal(err)
	}
	write := f.Writes()[0]
	if got := ended(f); !slices.Equal(got, []string{"a FAILED", "b FAILED"}) || write.Events[1].Seq != 12 || !write.Settle[0].Unknown || len(write.Consume) != 1 {
		t.Errorf("ended are %v, and written is %+v", got, write)
	}
}

func TestWhyATurnStops(t *testing.T) {
	a := &state.Turn{Proto: &sessionv1.Turn{Limits: &sessionv1.TurnLimits{MaxWallTime: durationpb.New(time.Minute)}}}
	for reason, cause := range map[string]error{
		"INTERRUPTED": errInterrupted, "MAX_WALL_TIME": errWallTime,
		"BUDGET_EXHAUSTED": &spend.TimeError{Denied: &store.Denial{Kind: store.LimitWallTime}},
	} {
		if e := stopped(a, state.End{Cause: cause}); e.Error.Reason != reason || e.Cause != nil {
			t.Errorf("%v: the turn ends as %+v", cause, e)
		}
	}
}
