package workspace

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

func TestAStepHasACheckpointBeforeItsFirstChange(t *testing.T) {
	for name, c := range map[string]struct {
		wanted []string
		calls  []string
		made   int
		step   int32 // of the turn's files; 0: none
	}{
		"named":                  {[]string{"Bash"}, []string{"Bash"}, 1, 1},
		"by its beginning":       {[]string{"Ba*"}, []string{"Bash"}, 1, 1},
		"all that may change":    {[]string{"*"}, []string{"Write"}, 1, 1},
		"nothing changes":        {[]string{"*"}, []string{"Read"}, 0, 0},
		"another changes first":  {[]string{"Bash"}, []string{"Write", "Bash"}, 1, 1},
		"none is wanted":         {[]string{}, []string{"Bash"}, 0, -1},
		"another one is wanted":  {[]string{"Bash"}, []string{"Write"}, 0, -1},
		"read before the change": {[]string{"Bash"}, []string{"Read", "Bash"}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, agent.Spec{Tools: []string{"Bash", "Read", "Write"}, Checkpoints: c.wanted}, Config{})
			var uses []*sessionv1.ToolUse
			for _, tool := range c.calls {
				uses = append(uses, &sessionv1.ToolUse{Tool: tool})
			}
			m := f.Call(uses...)
			for _, u := range uses { // each is a wave
				if err := f.Checkpoints.BeforeCalls(f.Scope, m, []*sessionv1.ToolUse{u}, false); err != nil {
					t.Fatal(err)
				}
			}
			var step int32
			if files := f.Active.Run.Files; files != nil {
				step = files.Step
			}
			if len(f.Checkpoints.kept) != c.made || len(f.sandbox.snapshots) != c.made || step != c.step {
				t.Errorf("there are %d checkpoints, and the files are of step %d", len(f.Checkpoints.kept), step)
			}
		})
	}
}

func TestASuccessorGetsTheSnapshotOfItsPredecessor(t *testing.T) {
	f := start(t, spec, Config{})
	m := f.Call(&sessionv1.ToolUse{Tool: "Bash"})
	if err := f.Checkpoints.BeforeCalls(f.Scope, m, state.ToolUses(m), true); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(f.sandbox.requests, []string{"snapshot t1.1.files"}) {
		t.Errorf("requested %v", f.sandbox.requests)
	}
	f.Active.Run.Files = nil
	f.sandbox.errs["snapshot"] = []error{remote.ErrNoWorkspace}
	if err := f.Checkpoints.BeforeCalls(f.Scope, m, state.ToolUses(m), true); err != nil || f.Active.Run.Files != nil || len(f.Warnings()) != 0 {
		t.Errorf("the predecessor began no call, and the files are %v (%v)", f.Active.Run.Files, err)
	}
}

func TestASnapshotThatFailsIsAWarningAndNotRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		warns bool
	}{
		"refused":             {status.Error(codes.FailedPrecondition, "no"), true},
		"no snapshots at all": {status.Error(codes.Unimplemented, "no"), false},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, spec, Config{})
			f.sandbox.errs["snapshot"] = []error{c.err}
			m := f.Call(&sessionv1.ToolUse{Tool: "Bash"})
			for range 2 {
				if err := f.Checkpoints.BeforeCalls(f.Scope, m, state.ToolUses(m), false); err != nil {
					t.Fatal(err)
				}
			}
			if got := slices.Contains(f.Warnings(), "FILES_NOT_KEPT"); got != c.warns || len(f.sandbox.requests) != 1 || f.Checkpoints.RestoreTurn(f.Scope, f.Active) {
				t.Errorf("warned %v, requested %v", got, f.sandbox.requests)
			}
		})
	}
}

func TestTheOldestAutomaticCheckpointsMakeRoom(t *testing.T) {
	f := start(t, spec, Config{Checkpoints: CheckpointConfig{Keep: 20}})
	var write store.Write
	for i := range 25 {
		c := &sessionv1.Checkpoint{Name: fmt.Sprintf("sessions/s/checkpoints/c%d", i), Automatic: true, Snapshot: fmt.Sprintf("s%d", i)}
		if i == 0 {
			f.Active.Run.Files = &state.Files{Snapshot: c.Snapshot, Step: 1}
		}
		if err := f.Checkpoints.add(f.Scope, &write, c); err != nil {
			t.Fatal(err)
		}
	}
	if n := f.Checkpoints.count(true); n > 20 || slices.Contains(write.DropCheckpoints, "c0") || !slices.Contains(write.DropCheckpoints, "c1") {
		t.Errorf("%d are left, dropped are %v", n, write.DropCheckpoints)
	}
	if len(write.Jobs) == 0 {
		t.Error("no job deletes the snapshots")
	}
}

func TestASandboxWithTooManySnapshotsGetsRoom(t *testing.T) {
	f := start(t, spec, Config{})
	f.sandbox.snapshots = []string{"newest", "stray", "kept"}
	f.sandbox.errs["snapshot"] = []error{remote.ErrTooManySnapshots}
	f.Checkpoints.kept = []*sessionv1.Checkpoint{{Name: "sessions/s/checkpoints/a", Snapshot: "kept"}}
	id, err := f.Checkpoints.takeSnapshot(f.Scope, "c", "")
	if err != nil || !slices.Equal(f.sandbox.requests, []string{"snapshot c", "delete c.room", "snapshot c.again"}) {
		t.Fatalf("requested %v (%v)", f.sandbox.requests, err)
	}
	if !slices.Equal(f.sandbox.snapshots, []string{id, "newest", "kept"}) {
		t.Errorf("left are %v", f.sandbox.snapshots)
	}
}

func request(t *testing.T, m proto.Message) store.Command {
	t.Helper()
	body, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return store.Command{ID: 7, CallID: "r1", User: "ben", Body: body}
}

func TestARequestedCheckpointIsMadeWhereThereIsOne(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(*fixture)
		reason  string // of the failure
	}{
		"no turn runs":            {func(f *fixture) { f.Active = nil }, ""},
		"in the middle of a step": {func(f *fixture) { f.Call(&sessionv1.ToolUse{Tool: "Bash"}) }, "TURN_ACTIVE"},
		"as many as there may be": {func(f *fixture) {
			f.Checkpoints.Keep, f.Checkpoints.kept = 1, []*sessionv1.Checkpoint{{Name: "a"}}
		}, "TOO_MANY"},
		"the sandbox refuses": {func(f *fixture) { f.sandbox.errs["snapshot"] = []error{errors.New("full")} }, "CHECKPOINT_FAILED"},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, spec, Config{})
			c.prepare(f)
			f.Checkpoints.requested = []store.Command{request(t, &sessionv1.CreateCheckpointRequest{})}
			if err := f.Checkpoints.MakeRequested(f.Scope); err != nil {
				t.Fatal(err)
			}
			last := f.Writes()[len(f.Writes())-1]
			if got := last.Events[0].GetCheckpointFailed().GetReason(); got != c.reason || len(last.Consume) != 1 || f.Checkpoints.Requested() {
				t.Errorf("it failed with %q, and %v was written", got, last)
			}
		})
	}
}

func TestARewindGoesToACheckpointOfThePath(t *testing.T) {
	for name, c := range map[string]struct {
		to     *sessionv1.RewindSessionRequest
		active bool
		err    error  // of the sandbox
		reason string // of the failure
		left   int    // messages
	}{
		"to one":                 {&sessionv1.RewindSessionRequest{Checkpoint: "one"}, false, nil, "", 1},
		"the latest but one":     {&sessionv1.RewindSessionRequest{LatestButOne: true}, false, nil, "", 1},
		"an unknown one":         {&sessionv1.RewindSessionRequest{Checkpoint: "x"}, false, nil, "CHECKPOINT_NOT_FOUND", 3},
		"one of another path":    {&sessionv1.RewindSessionRequest{Checkpoint: "off"}, false, nil, "CHECKPOINT_NOT_FOUND", 3},
		"while a turn runs":      {&sessionv1.RewindSessionRequest{Checkpoint: "one"}, true, nil, "TURN_ACTIVE", 3},
		"the sandbox refuses":    {&sessionv1.RewindSessionRequest{Checkpoint: "one"}, false, status.Error(codes.NotFound, "no"), "REWIND_FAILED", 3},
		"the sandbox comes back": {&sessionv1.RewindSessionRequest{Checkpoint: "one"}, false, status.Error(codes.Unavailable, "away"), "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, spec, Config{})
			first := f.Path[0].Name
			f.Say(sessionv1.Role_ROLE_ASSISTANT, state.TextBlock("a"))
			f.Say(sessionv1.Role_ROLE_USER, state.TextBlock("b"))
			f.Checkpoints.kept = []*sessionv1.Checkpoint{
				{Name: "off", Head: "gone", Seq: 1, Snapshot: "s0"}, {Name: "one", Head: first, Seq: 2, AfterSeq: 4, Snapshot: "s1"}, {Name: "two", Head: f.Proto.Head, Seq: 3, Snapshot: "s2"},
			}
			if !c.active {
				f.Active = nil
			}
			if c.err != nil {
				f.sandbox.errs["restore-s1"] = []error{c.err}
			}
			rewound, err := f.Checkpoints.Rewind(state.Idle(t.Context(), f.Session), request(t, c.to))
			if err != nil {
				t.Fatal(err)
			}
			write := f.Writes()[len(f.Writes())-1]
			if got := write.Events[0].GetSessionRewindFailed().GetReason(); got != c.reason || rewound != (c.reason == "") || len(f.Path) != c.left {
				t.Fatalf("rewound %v, failed with %q, %d messages are left", rewound, got, len(f.Path))
			}
			if rewound && (f.Proto.Head != first || !slices.Equal(write.DropCheckpoints, []string{"two"}) || write.Events[0].GetSessionRewound().VoidFirstSeq != 5) {
				t.Errorf("the head is %s, and %v was written", f.Proto.Head, write)
			}
		})
	}
}
