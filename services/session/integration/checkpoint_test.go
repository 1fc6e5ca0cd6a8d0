package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/internal/agent"
)

// building has turns with several steps that change something, and one between
// that only reads.
const building = `
turns:
  - when: build
    steps:
      - tools: [{name: Read, input: {file_path: a}}, {name: Bash, input: {command: one}}, {name: Bash, input: {command: two}}]
      - tools: [{name: Read, input: {file_path: b}}]
      - tools: [{name: Bash, input: {command: three}}]
      - text: [built]
  - when: block
    steps: [{tools: [{name: Bash, input: {command: block}}]}, {text: [never]}]
  - when: write
    steps: [{tools: [{name: Write, input: {file_path: a}}]}, {text: [written]}]
  - when: look
    steps: [{tools: [{name: Read, input: {file_path: a}}]}, {text: [looked]}]
fallback: {steps: [{text: [ok]}]}
`

const built = `
user: "build"
assistant: use Read, use Bash, use Bash
user: OK, OK, OK
assistant: use Read
user: OK
assistant: use Bash
user: OK
assistant: "built"`

func (f *fixture) points() sessionv1.CheckpointServiceClient {
	return sessionv1.NewCheckpointServiceClient(f.conn)
}

// checkpoints lists a session's checkpoints, the oldest first.
func (f *fixture) checkpoints(ctx context.Context, t *testing.T, s string) []*sessionv1.Checkpoint {
	t.Helper()
	resp, err := f.points().ListCheckpoints(ctx, &sessionv1.ListCheckpointsRequest{Parent: s})
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(resp.Checkpoints)
	return resp.Checkpoints
}

// wantCleared waits until so many snapshots were deleted.
func (f *fixture) wantCleared(ctx context.Context, t *testing.T, n int) {
	t.Helper()
	until(ctx, t, func() ([]string, error) {
		f.peers.mu.Lock()
		defer f.peers.mu.Unlock()
		return slices.Clone(f.peers.cleared), nil
	}, func(cleared []string) bool { return len(cleared) == n })
}

func TestManualCheckpoints(t *testing.T) {
	t.Parallel()
	create := func(ctx context.Context, f *fixture, s, description, id string) (*sessionv1.Checkpoint, error) {
		resp, err := f.points().CreateCheckpoint(ctx, &sessionv1.CreateCheckpointRequest{
			Parent: s, Checkpoint: &sessionv1.Checkpoint{Description: description}, RequestId: id,
		})
		return resp.GetCheckpoint(), err
	}
	t.Run("one is made between turns, once a request, and rewound to", func(t *testing.T) {
		t.Parallel()
		ctx := deadline(t)
		f := start(t, building)
		s := f.session(ctx, t)
		f.turn(ctx, t, s, "look")
		made, err := create(ctx, f, s, "looked around", "r")
		if err != nil {
			t.Fatal(err)
		}
		again, err := create(ctx, f, s, "looked around", "r")
		if err != nil || again.Name != made.Name || again.Seq != made.Seq {
			t.Errorf("repeated it is %v, %v", again, err)
		}
		got, err := f.points().GetCheckpoint(ctx, &sessionv1.GetCheckpointRequest{Name: made.Name})
		if err != nil || got.Checkpoint.Description != "looked around" || got.Checkpoint.Automatic || got.Checkpoint.Snapshot == "" {
			t.Errorf("read: %v, %v", got, err)
		}
		f.turn(ctx, t, s, "build")
		f.rewind(ctx, t, &sessionv1.RewindSessionRequest{Name: s, Checkpoint: made.Name})
		f.wantAgreement(ctx, t, s, `
user: "look"
assistant: use Read
user: OK
assistant: "looked"`)
		if all := f.checkpoints(ctx, t, s); len(all) != 1 {
			t.Errorf("left are %v", all)
		}
	})
	t.Run("one of a session without anything leads back to nothing", func(t *testing.T) {
		t.Parallel()
		ctx := deadline(t)
		f := start(t, building)
		s := f.session(ctx, t)
		made, err := create(ctx, f, s, "", "")
		if err != nil {
			t.Fatal(err)
		}
		f.turn(ctx, t, s, "build")
		f.rewind(ctx, t, &sessionv1.RewindSessionRequest{Name: s, Checkpoint: made.Name})
		f.wantAgreement(ctx, t, s, "")
		f.turn(ctx, t, s, "look")
	})
	t.Run("one during a turn is made before the next step", func(t *testing.T) {
		t.Parallel()
		ctx := deadline(t)
		f := start(t, strings.ReplaceAll(building, "command: two", "command: block"))
		s := f.session(ctx, t)
		turn := f.create(ctx, t, s, "build")
		call := <-f.peers.blocked
		resp, err := f.GetSession(ctx, &sessionv1.GetSessionRequest{Name: s})
		if err != nil {
			t.Fatal(err)
		}
		quiet := resp.Session.UpdateTime.AsTime()
		done := make(chan *sessionv1.Checkpoint, 1)
		go func() {
			made, err := create(ctx, f, s, "in between", "")
			if err != nil {
				t.Error(err)
			}
			done <- made
		}()
		until(ctx, t, func() (time.Time, error) {
			got, err := f.GetSession(ctx, &sessionv1.GetSessionRequest{Name: s})
			return got.GetSession().GetUpdateTime().AsTime(), err
		}, func(at time.Time) bool { return at.After(quiet) })
		f.peers.release(call)
		made := <-done
		f.waitForEnd(ctx, t, turn.Name)
		if made.GetTurn() != turn.Name || made.GetStep() != 2 {
			t.Errorf("made is %v", made)
		}
		f.rewind(ctx, t, &sessionv1.RewindSessionRequest{Name: s, Checkpoint: made.GetName()})
		f.wantConversation(ctx, t, s, `
user: "build"
assistant: use Read, use Bash, use Bash
user: OK, OK, OK`)
	})
	t.Run("one is refused while a turn waits in the middle of a step", func(t *testing.T) {
		t.Parallel()
		ctx := deadline(t)
		f := start(t, building)
		s := f.session(ctx, t)
		f.create(ctx, t, s, "write")
		f.waitForAsk(ctx, t, s)
		if _, err := create(ctx, f, s, "", ""); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_TURN_ACTIVE) || status.Code(err) != codes.FailedPrecondition {
			t.Errorf("got %v", err)
		}
	})
	t.Run("there is a bound", func(t *testing.T) {
		t.Parallel()
		ctx := deadline(t)
		f := start(t, building, func(c *session.Config) { c.KeepCheckpoints = 2 })
		s := f.session(ctx, t)
		for range 2 {
			if _, err := create(ctx, f, s, "", ""); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := create(ctx, f, s, "", ""); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_TOO_MANY) || status.Code(err) != codes.ResourceExhausted {
			t.Errorf("got %v", err)
		}
	})
	t.Run("files that cannot be kept are told", func(t *testing.T) {
		t.Parallel()
		ctx := deadline(t)
		f := start(t, building)
		s := f.session(ctx, t)
		f.peers.full = true
		if _, err := create(ctx, f, s, "", ""); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_CHECKPOINT_FAILED) || status.Code(err) != codes.FailedPrecondition {
			t.Errorf("got %v", err)
		}
	})
}

func TestCheckpointsAreMadeBeforeTheToolsThatTheConfigurationNames(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		server, agent []string
		want          string
	}{
		"every tool that may change something": {[]string{"*"}, nil, "1 3"},
		"the agent's list goes before":         {nil, []string{"*"}, "1 3"},
		"the agent's empty list switches off":  {[]string{"*"}, []string{}, ""},
		"the server's empty list does":         {[]string{}, nil, ""},
		"names":                                {[]string{"Write", "Read"}, nil, "1 2"},
		"beginnings":                           {[]string{"Ba*"}, nil, "1 3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := deadline(t)
			f := start(t, building, func(cfg *session.Config) {
				cfg.Checkpoints = c.server
				spec := cfg.Agents["tester"]
				spec.Checkpoints = c.agent
				cfg.Agents = map[string]agent.Spec{"tester": spec}
			})
			s := f.session(ctx, t)
			f.turn(ctx, t, s, "build")
			var steps []string
			for _, k := range f.checkpoints(ctx, t, s) {
				steps = append(steps, fmt.Sprint(k.Step))
			}
			if got := strings.Join(steps, " "); got != c.want || len(f.peers.snapshots) != len(steps) {
				t.Errorf("steps with a checkpoint: %q, snapshots %v", got, f.peers.snapshots)
			}
			want := c.server
			if c.agent != nil {
				want = c.agent
			}
			shown, err := f.agents.GetAgent(ctx, &sessionv1.GetAgentRequest{Name: "agents/tester"})
			if err != nil || !slices.Equal(shown.Agent.Checkpoints, want) {
				t.Errorf("the agent shows %v, %v", shown.GetAgent().GetCheckpoints(), err)
			}
		})
	}
}

func TestACheckpointIsBeforeAllChangesOfItsStep(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tools []string
		steps string
	}{
		"a change, then the tool that is named": {[]string{"Read"}, "Bash Read"},
		"a change between two of them":          {[]string{"Read"}, "Read Bash Read"},
		"a change, then another that is named":  {[]string{"Fail"}, "Bash Fail"},
		"the named tool in the second step":     {[]string{"Fail"}, "Read Bash, Bash Fail"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, callsOf(c.steps), func(cfg *session.Config) {
				spec := cfg.Agents["tester"]
				spec.Tools, spec.Checkpoints = append(slices.Clone(spec.Tools), "Fail"), c.tools
				cfg.Agents = map[string]agent.Spec{"tester": spec}
			})
			ctx := deadline(t)
			s := f.session(ctx, t)
			f.turn(ctx, t, s, "go")
			all := f.checkpoints(ctx, t, s)
			if len(all) != 1 || int(all[0].Step) != strings.Count(c.steps, ",")+1 {
				t.Fatalf("checkpoints %v", all)
			}
			f.rewind(ctx, t, &sessionv1.RewindSessionRequest{Name: s, Checkpoint: all[0].Name})
			if err := agree(f.peers, f.messages(ctx, t, s)); err != nil {
				t.Error(err)
			}
		})
	}
}

// callsOf is a turn whose steps call these tools: `A B, C` are two steps.
func callsOf(steps string) string {
	var turn strings.Builder
	turn.WriteString("turns:\n  - when: go\n    steps:\n")
	for step := range strings.SplitSeq(steps, ", ") {
		var calls []string
		for tool := range strings.FieldsSeq(step) {
			calls = append(calls, fmt.Sprintf("{name: %s, input: {command: x}}", tool))
		}
		fmt.Fprintf(&turn, "      - tools: [%s]\n", strings.Join(calls, ", "))
	}
	return turn.String() + "      - text: [done]\nfallback: {steps: [{text: [ok]}]}\n"
}

func TestEachStepWithoutItsCheckpointIsTold(t *testing.T) {
	t.Parallel()
	f := start(t, building)
	ctx := deadline(t)
	s := f.session(ctx, t)
	f.peers.refuseSnapshots = true
	var steps []string
	for _, e := range f.turn(ctx, t, s, "build") {
		if w := e.GetWarning(); w.GetReason() == "FILES_NOT_KEPT" {
			steps = append(steps, fmt.Sprint(e.Step))
		}
	}
	if got := strings.Join(steps, " "); got != "1 3" {
		t.Errorf("told of the steps %q", got)
	}
}

func TestWithoutCheckpointsARollbackLeavesTheFilesAndSaysSo(t *testing.T) {
	t.Parallel()
	f := start(t, building, func(c *session.Config) { c.Checkpoints = []string{} })
	ctx := deadline(t)
	s := f.session(ctx, t)
	f.create(ctx, t, s, "block")
	<-f.peers.blocked
	events := f.runTurn(ctx, t, &sessionv1.RunTurnRequest{Parent: s, Text: "look", OnActive: sessionv1.OnActive_ON_ACTIVE_ROLLBACK}, nil)
	wantWarning(t, events, "FILES_KEPT")
}

func TestTheOldestAutomaticCheckpointsMakeRoom(t *testing.T) {
	t.Parallel()
	f := start(t, building, func(c *session.Config) { c.KeepCheckpoints = 3 })
	ctx := deadline(t)
	s := f.session(ctx, t)
	manual, err := f.points().CreateCheckpoint(ctx, &sessionv1.CreateCheckpointRequest{Parent: s})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		f.turn(ctx, t, s, "build")
	}
	all := f.checkpoints(ctx, t, s)
	if len(all) != 4 || all[0].Name != manual.Checkpoint.Name || all[3].Step != 3 {
		t.Errorf("left are %v", all)
	}
	f.wantCleared(ctx, t, 3)
	f.rewind(ctx, t, &sessionv1.RewindSessionRequest{Name: s, Checkpoint: manual.Checkpoint.Name})
	f.wantAgreement(ctx, t, s, "")
}

func TestARollbackClearsTheCheckpointsOfItsTurn(t *testing.T) {
	t.Parallel()
	f := start(t, building)
	ctx := deadline(t)
	s := f.session(ctx, t)
	f.turn(ctx, t, s, "build")
	before := f.checkpoints(ctx, t, s)
	f.create(ctx, t, s, "block")
	<-f.peers.blocked
	f.runTurn(ctx, t, &sessionv1.RunTurnRequest{Parent: s, Text: "look", OnActive: sessionv1.OnActive_ON_ACTIVE_ROLLBACK}, nil)
	after := f.checkpoints(ctx, t, s)
	if len(before) != 2 || len(after) != 2 || after[1].Name != before[1].Name {
		t.Errorf("before %v, after %v", before, after)
	}
	f.rewind(ctx, t, &sessionv1.RewindSessionRequest{Name: s, Checkpoint: before[1].Name})
	if err := agree(f.peers, f.messages(ctx, t, s)); err != nil {
		t.Error(err)
	}
}

func TestWhatIsMadeOfASessionHasNoCheckpoints(t *testing.T) {
	t.Parallel()
	f := start(t, building)
	ctx := deadline(t)
	s := f.session(ctx, t)
	f.turn(ctx, t, s, "build")
	f.rewind(ctx, t, &sessionv1.RewindSessionRequest{Name: s, LatestButOne: true})
	forked, err := f.ForkSession(ctx, &sessionv1.ForkSessionRequest{Name: s})
	if err != nil {
		t.Fatal(err)
	}
	imported, err := f.upload(ctx, &sessionv1.ImportOpen{SessionId: "again"}, f.export(ctx, t, s, sessionv1.ExportFormat_EXPORT_FORMAT_JSONL))
	if err != nil {
		t.Fatal(err)
	}
	for _, made := range []*sessionv1.Session{forked.Session, imported} {
		if all := f.checkpoints(ctx, t, made.Name); len(all) != 0 {
			t.Errorf("%s has %v", made.Name, all)
		}
	}
	name := imported.Name + "/checkpoints/" + lastPart(f.checkpoints(ctx, t, s)[0].Name)
	_, err = f.points().GetCheckpoint(ctx, &sessionv1.GetCheckpointRequest{Name: name})
	if !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_CHECKPOINT_NOT_FOUND) || !strings.Contains(apierr.Message(err), "imports start without checkpoints") {
		t.Errorf("got %v", err)
	}
	if shape(f.messages(ctx, t, imported.Name)) != shape(f.messages(ctx, t, s)) {
		t.Error("the conversation is another one")
	}
}
