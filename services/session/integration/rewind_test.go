package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

func (f *fixture) rewind(ctx context.Context, t *testing.T, r *sessionv1.RewindSessionRequest) *sessionv1.RewindSessionResponse {
	t.Helper()
	resp, err := f.points().RewindSession(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// agree checks that the files hold what the calls of the conversation did, and
// nothing else.
func agree(p *peers, conversation []*sessionv1.Message) error {
	var done []string
	for _, m := range conversation {
		for _, b := range m.Blocks {
			if u := b.GetToolUse(); u.GetTool() == "Bash" || u.GetTool() == "Write" {
				done = append(done, u.CallId)
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Equal(done, p.changes) {
		return fmt.Errorf("the files hold the calls %v, and the conversation has %v", p.changes, done)
	}
	return nil
}

// eventsAgree checks that the events that count are those of the conversation's calls.
func eventsAgree(log []*sessionv1.Event, conversation []*sessionv1.Message) error {
	var told, has []string
	for _, e := range valid(log) {
		if c := e.GetToolCallFinished(); c != nil {
			told = append(told, c.CallId)
		}
	}
	for _, m := range conversation {
		for _, b := range m.Blocks {
			if r := b.GetToolResult(); r != nil {
				has = append(has, r.CallId)
			}
		}
	}
	slices.Sort(told) // calls that run at the same time end in any order
	slices.Sort(has)
	if !slices.Equal(told, has) {
		return fmt.Errorf("the events that count tell of the calls %v, and the conversation has %v", told, has)
	}
	return nil
}

func (f *fixture) wantAgreement(ctx context.Context, t *testing.T, s, conversation string) {
	t.Helper()
	f.wantConversation(ctx, t, s, conversation)
	if err := agree(f.peers, f.messages(ctx, t, s)); err != nil {
		t.Error(err)
	}
}

func TestASessionIsRewoundToWhereItsStepsChangedSomething(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		to     func(all []*sessionv1.Checkpoint) *sessionv1.RewindSessionRequest
		want   string
		remain int
	}{
		"to the first": {func(all []*sessionv1.Checkpoint) *sessionv1.RewindSessionRequest {
			return &sessionv1.RewindSessionRequest{Checkpoint: all[0].Name}
		}, `user: "build"`, 1},
		"to the second": {func(all []*sessionv1.Checkpoint) *sessionv1.RewindSessionRequest {
			return &sessionv1.RewindSessionRequest{Checkpoint: all[1].Name}
		}, `
user: "build"
assistant: use Read, use Bash, use Bash
user: OK, OK, OK
assistant: use Read
user: OK`, 2},
		"to the last but one": {func([]*sessionv1.Checkpoint) *sessionv1.RewindSessionRequest {
			return &sessionv1.RewindSessionRequest{LatestButOne: true}
		}, `user: "build"`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := deadline(t)
			f := start(t, building)
			s := f.session(ctx, t)
			f.turn(ctx, t, s, "build")
			f.wantAgreement(ctx, t, s, built)
			all := f.checkpoints(ctx, t, s)
			if len(all) != 2 || !all[0].Automatic || all[0].Step != 1 || all[1].Step != 3 || all[0].Description != "Before step 1: Bash" {
				t.Fatalf("checkpoints %v; %s", all, names(f.log(ctx, t, s)))
			}
			if n := len(f.peers.snapshots); n != 2 {
				t.Errorf("the sandbox was asked for %d snapshots: %v", n, f.peers.snapshots)
			}
			r := c.to(all)
			r.Name, r.RequestId = s, "back"
			resp := f.rewind(ctx, t, r)
			f.wantAgreement(ctx, t, s, c.want)
			if resp.Session.Rewinding || resp.Session.Head != all[c.remain-1].Head || resp.Checkpoint != all[c.remain-1].Name {
				t.Errorf("it answered %v", resp)
			}
			if got := f.checkpoints(ctx, t, s); len(got) != c.remain {
				t.Errorf("checkpoints afterwards %v", got)
			}
			if err := eventsAgree(f.log(ctx, t, s), f.messages(ctx, t, s)); err != nil {
				t.Error(err)
			}
			again := f.rewind(ctx, t, r)
			if again.Checkpoint != resp.Checkpoint || len(f.peers.restored) != 1 {
				t.Errorf("repeated, it answered %v and restored %v", again, f.peers.restored)
			}
			f.wantCleared(ctx, t, 2-c.remain)
			f.turn(ctx, t, s, "look")
			f.wantAgreement(ctx, t, s, c.want+`
user: "look"
assistant: use Read
user: OK
assistant: "looked"`)
		})
	}
}

func TestASessionIsRewoundToBeforeATurn(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	f := start(t, building)
	s := f.session(ctx, t)
	looked := f.turn(ctx, t, s, "look")[0].Turn
	const before = `
user: "look"
assistant: use Read
user: OK
assistant: "looked"`
	for range 3 { // what was left behind does not count the next time
		first := f.turn(ctx, t, s, "build")[0].Turn
		f.turn(ctx, t, s, "build")
		r := &sessionv1.RewindSessionRequest{Name: s, BeforeTurn: first, RequestId: "back-" + strings.ReplaceAll(first, "/", "-")}
		if resp := f.rewind(ctx, t, r); resp.Checkpoint != "" || len(f.checkpoints(ctx, t, s)) != 0 {
			t.Errorf("it answered %v", resp)
		}
		f.wantAgreement(ctx, t, s, before)
		if err := eventsAgree(f.log(ctx, t, s), f.messages(ctx, t, s)); err != nil {
			t.Error(err)
		}
		_, err := f.points().RewindSession(ctx, &sessionv1.RewindSessionRequest{Name: s, BeforeTurn: first})
		if !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_TURN_NOT_FOUND) || status.Code(err) != codes.NotFound {
			t.Errorf("to a turn that was left behind: %v", err)
		}
	}
	restored := len(f.peers.restored)
	f.rewind(ctx, t, &sessionv1.RewindSessionRequest{Name: s, BeforeTurn: looked})
	f.wantAgreement(ctx, t, s, "")
	if len(f.peers.restored) != restored {
		t.Errorf("files were restored that nothing had changed: %v", f.peers.restored)
	}
	for _, name := range []string{"sessions/other/turns/t", s + "/checkpoints/c"} {
		if _, err := f.points().RewindSession(ctx, &sessionv1.RewindSessionRequest{Name: s, BeforeTurn: name}); status.Code(err) != codes.InvalidArgument {
			t.Errorf("to %s: %v", name, err)
		}
	}
}

func TestARewindIsRefusedDuringATurn(t *testing.T) {
	t.Parallel()
	f := start(t, building)
	ctx := deadline(t)
	s := f.session(ctx, t)
	f.turn(ctx, t, s, "build")
	first := f.checkpoints(ctx, t, s)[0].Name
	turn := f.create(ctx, t, s, "block")
	<-f.peers.blocked
	for _, r := range []*sessionv1.RewindSessionRequest{{Name: s, Checkpoint: first}, {Name: s, LatestButOne: true}} {
		_, err := f.points().RewindSession(ctx, r)
		if !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_TURN_ACTIVE) || status.Code(err) != codes.FailedPrecondition || !strings.Contains(apierr.Message(err), "Interrupt it") {
			t.Errorf("while a turn runs: %v", err)
		}
	}
	f.interrupt(ctx, t, &sessionv1.InterruptSessionRequest{Name: s})
	f.waitForEnd(ctx, t, turn.Name)
	f.rewind(ctx, t, &sessionv1.RewindSessionRequest{Name: s, Checkpoint: first})
	f.wantAgreement(ctx, t, s, `user: "build"`)
	waits := f.create(ctx, t, s, "write")
	f.waitForAsk(ctx, t, s)
	if _, err := f.points().RewindSession(ctx, &sessionv1.RewindSessionRequest{Name: s, Checkpoint: first}); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_TURN_ACTIVE) {
		t.Errorf("while turn %s waits: %v", waits.Name, err)
	}
}

func TestARewindThatCannotBeDoneLeavesTheConversation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		request *sessionv1.RewindSessionRequest
		before  func(*peers)
		code    codes.Code
		reason  string
	}{
		"to what never was":            {&sessionv1.RewindSessionRequest{Checkpoint: "/checkpoints/none"}, nil, codes.NotFound, "CHECKPOINT_NOT_FOUND"},
		"with a snapshot that is lost": {&sessionv1.RewindSessionRequest{LatestButOne: true}, func(p *peers) { p.broken["lost snapshot"] = 1 }, codes.FailedPrecondition, "REWIND_FAILED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, building)
			ctx := deadline(t)
			s := f.session(ctx, t)
			f.turn(ctx, t, s, "build")
			if c.before != nil {
				c.before(f.peers)
			}
			c.request.Name, c.request.RequestId = s, "r"
			if c.request.Checkpoint != "" {
				c.request.Checkpoint = s + "/checkpoints/none"
			}
			for range 2 {
				_, err := f.points().RewindSession(ctx, c.request)
				if apierr.Reason(err) != c.reason || status.Code(err) != c.code {
					t.Errorf("got %v", err)
				}
			}
			f.wantAgreement(ctx, t, s, built)
			if n := len(f.checkpoints(ctx, t, s)); n != 2 {
				t.Errorf("%d checkpoints are left", n)
			}
		})
	}
	t.Run("to the last but one of one", func(t *testing.T) {
		t.Parallel()
		f := start(t, building)
		ctx := deadline(t)
		s := f.session(ctx, t)
		if _, err := f.points().CreateCheckpoint(ctx, &sessionv1.CreateCheckpointRequest{Parent: s}); err != nil {
			t.Fatal(err)
		}
		_, err := f.points().RewindSession(ctx, &sessionv1.RewindSessionRequest{Name: s, LatestButOne: true})
		if !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_CHECKPOINT_NOT_FOUND) {
			t.Errorf("got %v", err)
		}
	})
}

func TestARewindWaitsForASandboxThatIsAway(t *testing.T) {
	t.Parallel()
	f := start(t, building)
	ctx := deadline(t)
	s := f.session(ctx, t)
	f.turn(ctx, t, s, "build")
	f.peers.mu.Lock()
	f.peers.broken["RestoreSnapshot"], f.peers.broken["DeleteSnapshots"] = 2, 1
	f.peers.mu.Unlock()
	done := make(chan error, 1)
	go func() {
		_, err := f.points().RewindSession(ctx, &sessionv1.RewindSessionRequest{Name: s, LatestButOne: true})
		done <- err
	}()
	until(ctx, t, func() (bool, error) {
		got, err := f.GetSession(ctx, &sessionv1.GetSessionRequest{Name: s})
		return got.GetSession().GetRewinding(), err
	}, func(is bool) bool { return is })
	refused := func(what string, err error) {
		t.Helper()
		if !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_SESSION_REWINDING) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := f.ForkSession(ctx, &sessionv1.ForkSessionRequest{Name: s})
	refused("fork", err)
	_, err = f.tryExport(ctx, s, sessionv1.ExportFormat_EXPORT_FORMAT_JSONL)
	refused("export", err)
	later := f.create(ctx, t, s, "look") // comes after the rewind
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	f.waitForEnd(ctx, t, later.Name)
	f.wantAgreement(ctx, t, s, `
user: "build"
user: "look"
assistant: use Read
user: OK
assistant: "looked"`)
	f.wantCleared(ctx, t, 1)
}

// rewound goes back twice: in a session with two turns, to the first step's
// checkpoint of the second, and then to the last but one that is left.
func rewound(ctx context.Context, c *cluster) error {
	back := func(id string, r *sessionv1.RewindSessionRequest) error {
		return c.ask(ctx, "rewind "+id, func(f *fixture) error {
			r.Name, r.RequestId = c.session, id
			_, err := f.points().RewindSession(ctx, r)
			return err
		})
	}
	if err := errors.Join(c.send(ctx, "build"), c.ended(ctx, 1), c.send(ctx, "build-again"), c.ended(ctx, 2)); err != nil {
		return err
	}
	var third string
	err := c.ask(ctx, "list", func(f *fixture) error {
		all, err := f.points().ListCheckpoints(ctx, &sessionv1.ListCheckpointsRequest{Parent: c.session})
		if err == nil && len(all.Checkpoints) != 4 {
			return fmt.Errorf("there are %d checkpoints", len(all.Checkpoints))
		}
		if err == nil {
			third = all.Checkpoints[1].Name
		}
		return err
	})
	return errors.Join(err, back("one", &sessionv1.RewindSessionRequest{Checkpoint: third}), back("two", &sessionv1.RewindSessionRequest{LatestButOne: true}))
}

func isRewound(c *cluster, log []*sessionv1.Event, conversation []*sessionv1.Message) error {
	want := strings.TrimSpace(`
user: "build"
assistant: use Read, use Bash, use Bash
user: OK, OK, OK
assistant: use Read
user: OK`)
	if got := shape(conversation); got != want {
		return fmt.Errorf("the conversation is\n%s", got)
	}
	rewinds := 0
	for _, e := range log {
		if e.GetSessionRewound() != nil {
			rewinds++
		}
	}
	if rewinds != 2 {
		return fmt.Errorf("the log tells of %d rewinds", rewinds)
	}
	return errors.Join(agree(c.first.peers, conversation), eventsAgree(log, conversation), ends(log, complete, complete))
}
