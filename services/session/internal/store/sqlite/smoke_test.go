package sqlite_test

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/sqlite"
)

func TestSmoke(t *testing.T) {
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "session.db"), slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	k := store.Key{Tenant: "a", Session: "s"}
	_, err = s.CreateSession(t.Context(), store.NewSession{Key: k, Event: &sessionv1.Event{Body: &sessionv1.Event_SessionCreated{SessionCreated: &sessionv1.SessionCreated{}}}})
	if err != nil {
		t.Fatal(err)
	}
	a, err := s.Submit(t.Context(), store.Submit{Key: k, Command: store.Command{Kind: store.CommandTurn}, Turn: &store.TurnRow{ID: "t", Turn: &sessionv1.Turn{Name: "sessions/s/turns/t"}}})
	t.Log(a, err)
	ls, err := s.Claim(t.Context(), store.Claim{TTL: time.Second})
	t.Log(ls, err)
	snap, err := s.Load(t.Context(), ls[0])
	t.Log(snap, err)
	act := "t"
	errs, err := s.Commit(t.Context(), []store.Write{{Lease: ls[0], LastSeq: 1, Consume: []int64{1}, ActiveTurn: &act, Events: []*sessionv1.Event{{FirstSeq: 2, Seq: 3}}, Wait: []store.PendingCall{{CallID: "c", Answer: store.CommandApproval}},
		Messages: []*sessionv1.Message{{Name: "sessions/s/messages/m"}, {Name: "sessions/s/messages/n", Parent: "sessions/s/messages/m"}}}})
	t.Log(errs, err)
	ms, err := s.ListMessages(t.Context(), k, "n", "", 10)
	t.Log(ms, err)
	evs, err := s.ListEvents(t.Context(), k, 0, 10, 0)
	t.Log(evs, err)
	t.Log(s.ListTurns(t.Context(), k, "", 0))
	t.Log(s.ListSessions(t.Context(), store.SessionPage{Tenant: "a"}))
	t.Log(s.Renew(t.Context(), ls, time.Second))
	t.Log(s.ReleaseIdle(t.Context(), ls[0]))
	t.Log(s.Release(t.Context(), ls[0]))
}
