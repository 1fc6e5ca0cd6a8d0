package integration

import (
	"context"
	"strings"
	"testing"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

func (p *peers) setKeeping(keeping bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keeping = keeping
}

func (p *peers) deletions() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.deleted, ", ")
}

func (f *fixture) sessionAs(ctx context.Context, t *testing.T, id string) string {
	t.Helper()
	resp, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{SessionId: id})
	if err != nil {
		t.Fatal(err)
	}
	return resp.Session.Name
}

// eventually asks again and again, for what another goroutine does in its time.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	end := time.After(time.Minute)
	for !ok() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("not in time: %s", what)
		}
	}
}

func TestADeletedSessionIsGoneFromThePeersTooAndItsIDIsFree(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	ctx := t.Context()
	for range 2 {
		if _, err := f.DeleteSession(ctx, &sessionv1.DeleteSessionRequest{Name: f.sessionAs(ctx, t, "mine")}); err != nil {
			t.Fatal(err)
		}
	}
	const once = "tools sessions/mine, sandbox sessions/mine"
	if got := f.peers.deletions(); got != once+", "+once {
		t.Errorf("the peers deleted %s", got)
	}
}

func TestADeletionSucceedsWhilePeersAreAwayAndReachesThemLater(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	ctx := t.Context()
	f.peers.setKeeping(true)
	s := f.sessionAs(ctx, t, "mine")
	for range 2 { // the repetition changes nothing
		if _, err := f.DeleteSession(ctx, &sessionv1.DeleteSessionRequest{Name: s, RequestId: "r"}); err != nil {
			t.Fatal(err)
		}
	}
	again := &sessionv1.CreateSessionRequest{SessionId: "mine"}
	if _, err := f.CreateSession(ctx, again); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_SESSION_DELETING) {
		t.Errorf("made again under its id: %v", err)
	}
	f.restart(t) // the job survives
	if _, err := f.CreateSession(ctx, again); !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_SESSION_DELETING) {
		t.Errorf("after a restart: %v", err)
	}
	f.peers.setKeeping(false)
	eventually(t, "the id is free", func() bool {
		_, err := f.CreateSession(ctx, again)
		return err == nil
	})
	// The peers may have come back between the two calls of an attempt, which then is made again.
	if got := f.peers.deletions(); !strings.HasSuffix(got, "tools sessions/mine, sandbox sessions/mine") {
		t.Errorf("the peers deleted %s", got)
	}
}

func TestIdleSessionsAreDeletedAfterTheRetention(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	ctx := t.Context()
	s := f.sessionAs(ctx, t, "idle")
	f.turn(ctx, t, s, "hi")
	f.stop()
	f.config.Retention = time.Millisecond
	f.run(t)
	eventually(t, "the session and its files are gone", func() bool {
		_, err := f.GetSession(ctx, &sessionv1.GetSessionRequest{Name: s})
		return apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_SESSION_NOT_FOUND) && f.peers.deletions() != ""
	})
}
