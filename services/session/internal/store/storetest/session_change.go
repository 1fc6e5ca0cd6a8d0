package storetest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// listed returns the ids that a page selects.
func (f *fixture) listed(p store.SessionPage) (ids []string) {
	f.Helper()
	p.Tenant = "acme"
	sessions, err := f.ListSessions(f.ctx(), p)
	f.must(err)
	for _, s := range sessions {
		ids = append(ids, s.Name[len("sessions/"):])
	}
	return ids
}

// keyed creates a session with a caller's key.
func (f *fixture) keyed(session, callerKey string, replace bool) error {
	n := newSession(key(session))
	n.CallerKey, n.Replace = callerKey, replace
	_, err := f.CreateSession(f.ctx(), n)
	return err
}

func testSessionChanges(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("lists find sessions by their labels", func(t *testing.T) { testLabels(newFixture(t, open)) })
	t.Run("lists find sessions by their state", func(t *testing.T) { testSessionStates(newFixture(t, open)) })
	t.Run("an archived session takes no work and is not listed", func(t *testing.T) { testArchive(newFixture(t, open)) })
	t.Run("a caller's key belongs to one session", func(t *testing.T) { testCallerKeys(newFixture(t, open)) })
	t.Run("a session is created with its first turn", func(t *testing.T) { testFirstTurn(newFixture(t, open)) })
	t.Run("of creations with the same key one wins", func(t *testing.T) { testConcurrentKeys(newFixture(t, open)) })
}

func testLabels(f *fixture) {
	for id, labels := range map[string]map[string]string{"a": {"team": "x", "env": "prod"}, "b": {"team": "x"}, "c": {"team": "y"}} {
		n := newSession(key(id))
		n.Labels = labels
		_, err := f.CreateSession(f.ctx(), n)
		f.must(err)
	}
	has := func(labels map[string]string, want ...string) {
		f.Helper()
		got := f.listed(store.SessionPage{Labels: labels})
		slices.Sort(got)
		if d := cmp.Diff(want, got); d != "" {
			f.Errorf("%v: %s", labels, d)
		}
	}
	has(map[string]string{"team": "x"}, "a", "b")
	has(map[string]string{"team": "x", "env": "prod"}, "a")
	change := store.UpdateSession{Key: key("b"), Change: func(s *sessionv1.Session) error {
		s.Title, s.Labels = "new", map[string]string{"team": "y"}
		return nil
	}}
	_, err := f.UpdateSession(f.ctx(), change)
	f.must(err)
	has(map[string]string{"team": "x"}, "a")
	has(map[string]string{"team": "y"}, "b", "c")
	if s := f.session(key("b")); s.Title != "new" || s.Labels["team"] != "y" {
		f.Errorf("the session is %v", s)
	}
	refused := errors.New("refused")
	change.Change = func(s *sessionv1.Session) error { s.Title = "never"; return refused }
	if _, err := f.UpdateSession(f.ctx(), change); !errors.Is(err, refused) || f.session(key("b")).Title != "new" {
		f.Errorf("a refused change: %v", err)
	}
	change.Key = key("none")
	if _, err := f.UpdateSession(f.ctx(), change); !errors.Is(err, store.ErrNotFound) {
		f.Errorf("no session: %v", err)
	}
	_, err = f.DeleteSession(f.ctx(), key("b"), store.Request{})
	f.must(err)
	has(map[string]string{"team": "y"}, "c")
}

func testSessionStates(f *fixture) {
	for _, id := range []string{"idle", "queued"} {
		f.create(key(id))
	}
	_, err := f.Submit(f.ctx(), newTurn(key("queued"), "t"))
	f.must(err)
	for state, want := range map[sessionv1.SessionState][]string{
		sessionv1.SessionState_SESSION_STATE_IDLE: {"idle"}, sessionv1.SessionState_SESSION_STATE_RUNNING: {"queued"}, sessionv1.SessionState_SESSION_STATE_WAITING: nil,
	} {
		if d := cmp.Diff(want, f.listed(store.SessionPage{State: state})); d != "" {
			f.Errorf("%v: %s", state, d)
		}
	}
	if idle, queued := f.session(key("idle")).State, f.session(key("queued")).State; idle != sessionv1.SessionState_SESSION_STATE_IDLE || queued != sessionv1.SessionState_SESSION_STATE_RUNNING {
		f.Errorf("the states are %v and %v", idle, queued)
	}
	if d := cmp.Diff([][]string{{"idle", "queued"}, {"queued", "idle"}}, [][]string{f.listed(store.SessionPage{OldestFirst: true}), f.listed(store.SessionPage{})}); d != "" {
		f.Error(d)
	}
	first := f.session(key("idle"))
	after := store.SessionPage{OldestFirst: true, AfterTime: first.CreateTime.AsTime(), AfterID: "idle"}
	if d := cmp.Diff([]string{"queued"}, f.listed(after)); d != "" {
		f.Error(d)
	}
}

func testArchive(f *fixture) {
	k := f.create(key("a"))
	archive := func(session string, undo bool) error {
		_, err := f.ArchiveSession(f.ctx(), store.ArchiveSession{Key: key(session), Undo: undo})
		return err
	}
	f.must(archive("a", false))
	at := f.session(k).ArchiveTime
	f.must(archive("a", false))
	if again := f.session(k).ArchiveTime; at == nil || !at.AsTime().Equal(again.AsTime()) {
		f.Errorf("archived at %v, then at %v", at, again)
	}
	if _, err := f.Submit(f.ctx(), newTurn(k, "t")); !errors.Is(err, store.ErrArchived) {
		f.Errorf("a turn: %v", err)
	}
	for _, kind := range []store.CommandKind{store.CommandCompact, store.CommandCheckpoint, store.CommandRewind} {
		if _, err := f.Submit(f.ctx(), store.Submit{Key: k, Command: store.Command{Kind: kind, CallID: "c"}}); !errors.Is(err, store.ErrArchived) {
			f.Errorf("%s: %v", kind, err)
		}
	}
	if d := cmp.Diff([][]string{nil, {"a"}}, [][]string{f.listed(store.SessionPage{}), f.listed(store.SessionPage{Archived: true})}); d != "" {
		f.Error(d)
	}
	f.must(archive("a", true))
	_, err := f.Submit(f.ctx(), newTurn(k, "t"))
	f.must(err)
	if err := archive("a", false); !errors.Is(err, store.ErrTurnActive) {
		f.Errorf("with a queued turn: %v", err)
	}
	if err := archive("none", false); !errors.Is(err, store.ErrNotFound) {
		f.Errorf("no session: %v", err)
	}
}

func testCallerKeys(f *fixture) {
	f.must(f.keyed("a", "chat-7", false))
	var taken *store.KeyTakenError
	if err := f.keyed("b", "chat-7", false); !errors.As(err, &taken) || taken.Session != "a" {
		f.Errorf("a key that is taken: %v", err)
	}
	if d := cmp.Diff([]string{"a"}, f.listed(store.SessionPage{})); d != "" {
		f.Error(d)
	}
	_, err := f.Submit(f.ctx(), newTurn(key("a"), "t"))
	f.must(err)
	f.must(f.keyed("b", "chat-7", true))
	if d := cmp.Diff([][]string{{"b"}, {"a"}}, [][]string{f.listed(store.SessionPage{CallerKey: "chat-7"}), f.listed(store.SessionPage{Archived: true})}); d != "" {
		f.Error(d)
	}
	l := f.claim(key("a"))
	commands, err := f.Inbox(f.ctx(), l)
	f.must(err)
	if n := len(commands); n != 2 || commands[1].Kind != store.CommandInterrupt || commands[1].TurnID != "t" {
		f.Errorf("the inbox of the replaced session has %v", commands)
	}
	if _, err := f.ArchiveSession(f.ctx(), store.ArchiveSession{Key: key("a"), Undo: true}); !errors.As(err, &taken) || taken.Session != "b" {
		f.Errorf("bringing back a session whose key is taken: %v", err)
	}
	other := newSession(store.Key{Tenant: "globex", Session: "a"})
	other.CallerKey = "chat-7"
	_, err = f.CreateSession(f.ctx(), other)
	f.must(err)
}

func testFirstTurn(f *fixture) {
	n := newSession(key("a"))
	n.Request = store.Request{Method: "CreateSession", ID: "r", Digest: []byte("one"), KeepUntil: time.Now().Add(time.Hour)}
	first := newTurn(n.Key, "t1")
	n.First = &first
	for range 2 {
		_, err := f.CreateSession(f.ctx(), n)
		f.must(err)
	}
	turns, err := f.ListTurns(f.ctx(), n.Key, "", 0)
	f.must(err)
	if len(turns) != 1 || turns[0].AfterSeq != 1 {
		f.Errorf("the session has %v", turns)
	}
	l := f.claim(n.Key)
	commands, err := f.Inbox(f.ctx(), l)
	f.must(err)
	if len(commands) != 1 || commands[0].TurnID != "t1" {
		f.Errorf("the inbox has %v", commands)
	}
	bad := newSession(key("b"))
	bad.First = &store.Submit{Key: bad.Key, Command: store.Command{Kind: store.CommandTurn, TurnID: "t"}} // without its row
	if _, err := f.CreateSession(f.ctx(), bad); err == nil {
		f.Error("a turn without its row was taken")
	}
	if _, err := f.GetSession(f.ctx(), bad.Key); !errors.Is(err, store.ErrNotFound) {
		f.Errorf("the session is there without its turn: %v", err)
	}
}

func testConcurrentKeys(f *fixture) {
	const creators = 6
	errs := make(chan error, creators)
	for i := range creators {
		go func() { errs <- f.keyed(string(rune('a'+i)), "chat-7", false) }()
	}
	won := 0
	for range creators {
		var taken *store.KeyTakenError
		switch err := <-errs; {
		case err == nil:
			won++
		case !errors.As(err, &taken):
			f.Error(err)
		}
	}
	if won != 1 || len(f.listed(store.SessionPage{CallerKey: "chat-7"})) != 1 {
		f.Errorf("%d creations won", won)
	}
}
