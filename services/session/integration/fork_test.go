package integration

import (
	"errors"
	"io"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/faulty"
)

func (p *peers) ExportWorkspace(r *sandboxv1.ExportWorkspaceRequest, stream grpc.ServerStreamingServer[sandboxv1.ExportWorkspaceResponse]) error {
	p.mu.Lock()
	archive, ok := p.archives[r.Session]
	p.mu.Unlock()
	if !ok {
		return apierr.Of(codes.NotFound, sandboxv1.ErrorReason_ERROR_REASON_WORKSPACE_NOT_FOUND, "none")
	}
	for piece := range slices.Chunk(archive, 997) {
		if err := stream.Send(&sandboxv1.ExportWorkspaceResponse{Data: piece}); err != nil {
			return err
		}
	}
	return nil
}

func (p *peers) ImportWorkspace(stream grpc.ClientStreamingServer[sandboxv1.ImportWorkspaceRequest, sandboxv1.ImportWorkspaceResponse]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	var archive []byte
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		archive = append(archive, m.GetData()...)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	session := first.GetOpen().GetCall().GetSession()
	_, there := p.archives[session]
	p.archives[session] = archive
	return stream.SendAndClose(&sandboxv1.ImportWorkspaceResponse{Created: !there})
}

func (p *peers) files(session string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return string(p.archives[session])
}

func TestAForkGoesOnFromTheEndOrFromATurnWithTheFiles(t *testing.T) {
	t.Parallel()
	f := start(t, worked)
	ctx := t.Context()
	s := f.session(ctx, t)
	first := f.turn(ctx, t, s, "work")
	f.turn(ctx, t, s, "more")
	f.peers.mu.Lock()
	f.peers.archives[s] = []byte("files")
	f.peers.mu.Unlock()
	before := f.messages(ctx, t, s)
	for _, tc := range []struct {
		name, files, want string
		request           *sessionv1.ForkSessionRequest
	}{
		{"the end", "files", shape(before) + "\nuser: \"on\"\nassistant: \"ok\"", &sessionv1.ForkSessionRequest{Name: s, RequestId: "end"}},
		{"a turn, without files", "", workedShape + "\nuser: \"on\"\nassistant: \"ok\"", &sessionv1.ForkSessionRequest{Name: s, Turn: first[0].Turn, WithoutFiles: true, SessionId: "mine"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			resp, err := f.ForkSession(ctx, tc.request)
			if err != nil {
				t.Fatal(err)
			}
			fork := resp.Session.Name
			if got := f.peers.files(fork); got != tc.files {
				t.Errorf("the fork has the files %q", got)
			}
			if resp.Session.ForkedFrom != s {
				t.Errorf("the fork says that it was forked from %q", resp.Session.ForkedFrom)
			}
			if e := f.log(ctx, t, fork); len(e) != 1 || e[0].GetSessionCreated().GetForkedFrom() != s {
				t.Errorf("the fork's log is %v", e)
			}
			if end := finished(t, f.turn(ctx, t, fork, "on")); end.State != sessionv1.TurnState_TURN_STATE_COMPLETE {
				t.Errorf("the fork's turn ended %v", end)
			}
			f.wantConversation(ctx, t, fork, tc.want)
			again, err := f.ForkSession(ctx, tc.request)
			if tc.request.RequestId != "" && (err != nil || again.Session.Name != fork) {
				t.Errorf("the same request again: %v, %v", again, err)
			}
			if tc.request.RequestId == "" && !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_SESSION_EXISTS) {
				t.Errorf("another request for the same id: %v", err)
			}
		})
	}
	if got := f.messages(ctx, t, s); shape(got) != shape(before) {
		t.Errorf("the source has changed to\n%s", shape(got))
	}
}

func TestAForkIsRefusedWhereATurnHasNotEnded(t *testing.T) {
	t.Parallel()
	f := start(t, arrivals)
	ctx := t.Context()
	s := f.session(ctx, t)
	turn := f.create(ctx, t, s, "write")
	f.waitForAsk(ctx, t, s)
	queued := f.create(ctx, t, s, "later")
	for _, tc := range []struct {
		name, reason string
		request      *sessionv1.ForkSessionRequest
	}{
		{"the end of an active session", "SESSION_ACTIVE", &sessionv1.ForkSessionRequest{Name: s}},
		{"a turn that is active", "TURN_NOT_ENDED", &sessionv1.ForkSessionRequest{Name: s, Turn: turn.Name}},
		{"a turn of another session", "INVALID_REQUEST", &sessionv1.ForkSessionRequest{Name: s, Turn: "sessions/other/turns/x"}},
		{"a turn that is not there", "TURN_NOT_FOUND", &sessionv1.ForkSessionRequest{Name: s, Turn: s + "/turns/none"}},
		{"a session that is not there", "SESSION_NOT_FOUND", &sessionv1.ForkSessionRequest{Name: "sessions/none"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := f.ForkSession(ctx, tc.request); apierr.Reason(err) != tc.reason {
				t.Errorf("got %v", err)
			}
		})
	}
	f.interrupt(ctx, t, &sessionv1.InterruptSessionRequest{Name: s, CancelQueued: true})
	f.waitForEnd(ctx, t, turn.Name)
	if _, err := f.ForkSession(ctx, &sessionv1.ForkSessionRequest{Name: s, Turn: queued.Name}); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_TURN_NOT_ENDED) {
		t.Errorf("a turn that never began: %v", err)
	}
	// What was stopped can be resumed in a fork.
	resp, err := f.ForkSession(ctx, &sessionv1.ForkSessionRequest{Name: s, Turn: turn.Name})
	if err != nil {
		t.Fatal(err)
	}
	events := f.runTurn(ctx, t, &sessionv1.RunTurnRequest{Parent: resp.Session.Name, Resume: true}, nil)
	if end := finished(t, events); end.FinalText != "written" {
		t.Errorf("the fork ended %v", end)
	}
}

func TestAForkFromATurnThatWasUndoneTakesWhatItSaid(t *testing.T) {
	t.Parallel()
	f := start(t, arrivals)
	ctx := t.Context()
	s := f.session(ctx, t)
	turn := f.create(ctx, t, s, "write")
	f.waitForAsk(ctx, t, s)
	instead := f.arrive(ctx, t, s, "why?", sessionv1.OnActive_ON_ACTIVE_ROLLBACK)
	f.waitForEnd(ctx, t, instead.Name)
	resp, err := f.ForkSession(ctx, &sessionv1.ForkSessionRequest{Name: s, Turn: turn.Name})
	if err != nil {
		t.Fatal(err)
	}
	f.wantConversation(ctx, t, resp.Session.Name, `
user: "write"
assistant: use Bash, use Write
user: OK, INTERRUPTED`)
}

func TestAForkThatCannotBeWrittenLeavesNoFiles(t *testing.T) {
	t.Parallel()
	var db *faulty.Store
	f := startFaulty(t, hello, func(s *faulty.Store) { db = s })
	ctx := t.Context()
	s := f.session(ctx, t)
	f.peers.mu.Lock()
	f.peers.archives[s] = []byte("files")
	f.peers.mu.Unlock()
	db.Fail(faulty.CreateSession, 1, faulty.Before, errors.New("the disk is full"))
	if _, err := f.ForkSession(ctx, &sessionv1.ForkSessionRequest{Name: s, SessionId: "fork"}); err == nil {
		t.Error("the fork was made")
	}
	f.peers.mu.Lock()
	defer f.peers.mu.Unlock()
	if len(f.peers.deleted) != 1 || f.peers.deleted[0] != "sandbox sessions/fork" {
		t.Errorf("deleted were %q", f.peers.deleted)
	}
}

func TestTheIDOfAForkWhoseFilesCameFirstIsItsUsers(t *testing.T) {
	t.Parallel()
	var db *faulty.Store
	f := startFaulty(t, hello, func(s *faulty.Store) { db = s })
	s := f.session(t.Context(), t)
	f.peers.mu.Lock()
	f.peers.archives[s] = []byte("files")
	f.peers.mu.Unlock()
	db.Fail(faulty.CreateSession, 1, faulty.Before, store.ErrUnavailable) // so the files stay
	r := &sessionv1.ForkSessionRequest{Name: s, SessionId: "fork"}
	if _, err := f.ForkSession(t.Context(), r); err == nil {
		t.Fatal("the fork was made")
	}
	bob := as(t.Context(), "bob", principal.RoleUser)
	if got, err := f.CreateSession(bob, &sessionv1.CreateSessionRequest{SessionId: "fork"}); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_SESSION_EXISTS) {
		t.Errorf("another user's session over the files: %v, %v", got, err)
	}
	if _, err := f.ForkSession(t.Context(), r); err != nil {
		t.Errorf("the repeated fork: %v", err)
	}
}

func TestARepeatedForkOfADeletedForkBringsNoFilesBack(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	ctx := t.Context()
	s := f.session(ctx, t)
	f.peers.mu.Lock()
	f.peers.archives[s] = []byte("files")
	f.peers.mu.Unlock()
	r := &sessionv1.ForkSessionRequest{Name: s, RequestId: "once"}
	resp, err := f.ForkSession(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.DeleteSession(ctx, &sessionv1.DeleteSessionRequest{Name: resp.Session.Name}); err != nil {
		t.Fatal(err)
	}
	f.peers.mu.Lock()
	f.peers.deleted = nil
	delete(f.peers.archives, resp.Session.Name)
	f.peers.mu.Unlock()
	if _, err := f.ForkSession(ctx, r); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_SESSION_NOT_FOUND) {
		t.Errorf("the repeated fork: %v", err)
	}
	f.peers.mu.Lock()
	defer f.peers.mu.Unlock()
	if len(f.peers.deleted) != 1 || f.peers.deleted[0] != "sandbox "+resp.Session.Name {
		t.Errorf("deleted were %q", f.peers.deleted)
	}
}
