package storetest

import (
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

func batches(all ...store.ImportBatch) iter.Seq2[store.ImportBatch, error] {
	return func(yield func(store.ImportBatch, error) bool) {
		for _, b := range all {
			if !yield(b, nil) {
				return
			}
		}
	}
}

// history returns a session with two turns. The second one was undone: its
// messages are a branch.
func history(k store.Key) store.Import {
	at := timestamppb.New(time.Unix(1_700_000_000, 0))
	node := func(id, parent, text string, depth int64) store.ImportMessage {
		m := message(k, id, parent, text)
		m.CreateTime = at
		return store.ImportMessage{Message: m, Depth: depth}
	}
	ended := func(id string, s sessionv1.TurnState) *sessionv1.Turn {
		return &sessionv1.Turn{Name: turnName(k, id), State: s, EndTime: at}
	}
	return store.Import{
		Key: k, User: "ann", Agent: "agents/coder", AgentRevision: "r1", Title: "title", Labels: map[string]string{"a": "b"},
		Mounts: []*commonv1.Mount{{Name: "books", Path: "a/b", Alias: "mnt/b", Mode: "ro"}, {Name: "drafts", Optional: true}}, Permissions: &commonv1.PermissionRules{Deny: []string{"Bash"}},
		Budget: &sessionv1.Budget{MaxTokens: 7}, Usage: &sessionv1.Usage{InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4, ThinkingTokens: 5, CostNanoUsd: 6},
		FinishedTurns: 2, Head: "a2", Request: request("r-" + k.Session),
		Batches: batches(
			store.ImportBatch{
				Turns:    []*sessionv1.Turn{ended("t2", sessionv1.TurnState_TURN_STATE_COMPLETE)},
				Messages: []store.ImportMessage{node("a2", "a1", "zebra", 2), node("b1", "", "left behind", 1)},
				Events:   []*sessionv1.Event{delta(1, 1, "a")},
			},
			store.ImportBatch{
				Turns:    []*sessionv1.Turn{ended("t1", sessionv1.TurnState_TURN_STATE_INTERRUPTED)},
				Messages: []store.ImportMessage{node("a1", "", "root", 1)},
				Events:   []*sessionv1.Event{delta(2, 9, "bcd"), delta(10, 10, "e")},
			},
		),
	}
}

func testImport(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("an imported session has what was brought, and goes on", func(t *testing.T) {
		f := newFixture(t, open)
		k := key("s1")
		in := history(k)
		answer, err := f.ImportSession(f.ctx(), in)
		f.must(err)
		if answer != (store.Answer{Value: "s1"}) {
			t.Errorf("answered %+v", answer)
		}
		wantImported(f, in)
		l := f.submitted(k, "t3")
		w := start(l, "t3", f.inbox(l)...)
		w.LastSeq, w.Events = 10, []*sessionv1.Event{delta(11, 11, "f")}
		w.Messages = []*sessionv1.Message{message(k, "a3", "a2", "more")}
		head := "a3"
		w.Head = &head
		f.commit(w)
		turns, err := f.ListTurns(f.ctx(), k, "t1", 0)
		f.must(err)
		if len(turns) != 1 || turns[0].Name != turnName(k, "t3") {
			t.Errorf("behind the imported turns come %v", turns)
		}
		path, err := f.ListMessages(f.ctx(), k, "", "", 0)
		f.must(err)
		if got := messageIDs(path); got != "a1 a2 a3" {
			t.Errorf("the path is %s", got)
		}
	})

	t.Run("imported messages are found once they were tended", func(t *testing.T) {
		f := newFixture(t, open)
		k := key("s1")
		_, err := f.ImportSession(f.ctx(), history(k))
		f.must(err)
		none := history(key("s2"))
		none.FinishedTurns, none.Head = 0, ""
		none.Batches = batches(store.ImportBatch{Events: []*sessionv1.Event{delta(1, 1, "a")}})
		_, err = f.ImportSession(f.ctx(), none)
		f.must(err)
		jobs, err := f.ClaimJobs(f.ctx(), store.JobClaim{Kinds: []store.JobKind{store.JobAfterTurn}, TTL: time.Minute})
		f.must(err)
		ids := map[string]bool{}
		for _, j := range jobs {
			ids[j.ID] = j.Session+"/" == j.ID[:3]
		}
		if d := cmp.Diff(map[string]bool{"s1/t1": true, "s1/t2": true, "s2/": true}, ids); d != "" {
			t.Error(d)
		}
		n, err := f.IndexMessages(f.ctx(), k, 0)
		f.must(err)
		if got := (library{f}).find(store.MessageSearch{}, "zebra"); n != 3 || got != "s1/a2" {
			t.Errorf("%d were indexed, found was %s", n, got)
		}
	})

	t.Run("an import is made once", func(t *testing.T) {
		f := newFixture(t, open)
		in := history(key("s1"))
		_, err := f.ImportSession(f.ctx(), in)
		f.must(err)
		unread := func(func(store.ImportBatch, error) bool) { t.Error("the batches were read again") }
		again := in
		again.Batches = unread
		answer, err := f.ImportSession(f.ctx(), again)
		if err != nil || !answer.Replayed || answer.Value != "s1" {
			t.Errorf("again: %+v, %v", answer, err)
		}
		again.Request.Digest = []byte("another")
		if _, err := f.ImportSession(f.ctx(), again); !errors.Is(err, store.ErrRequestIDReused) {
			t.Errorf("another one with the same request id: %v", err)
		}
		again.Request = request("new")
		if _, err := f.ImportSession(f.ctx(), again); !errors.Is(err, store.ErrExists) {
			t.Errorf("another one of the same id: %v", err)
		}
	})

	t.Run("an import that goes wrong makes nothing", func(t *testing.T) {
		broken := errors.New("the file ends")
		for name, spoil := range map[string]struct {
			change func(*store.Import)
			want   error
		}{
			"the batches end with an error": {func(i *store.Import) {
				first := i.Batches
				i.Batches = func(yield func(store.ImportBatch, error) bool) {
					for b, err := range first {
						if !yield(b, err) {
							return
						}
					}
					yield(store.ImportBatch{}, broken)
				}
			}, broken},
			"events leave a gap": {func(i *store.Import) {
				i.Batches = batches(store.ImportBatch{Events: []*sessionv1.Event{delta(1, 1, "a"), delta(3, 3, "b")}})
			}, store.ErrNotTiled},
			"there are no events":   {func(i *store.Import) { i.Batches = batches() }, store.ErrNotTiled},
			"the head is not there": {func(i *store.Import) { i.Head = "none" }, nil},
			"a turn has not ended": {func(i *store.Import) {
				i.Batches = batches(store.ImportBatch{Turns: []*sessionv1.Turn{{Name: turnName(i.Key, "t1"), State: sessionv1.TurnState_TURN_STATE_RUNNING}}})
			}, nil},
		} {
			t.Run(name, func(t *testing.T) {
				f := newFixture(t, open)
				in := history(key("s1"))
				spoil.change(&in)
				if _, err := f.ImportSession(f.ctx(), in); err == nil || spoil.want != nil && !errors.Is(err, spoil.want) {
					t.Errorf("got %v", err)
				}
				if _, err := f.GetSession(f.ctx(), in.Key); !errors.Is(err, store.ErrNotFound) {
					t.Errorf("the session: %v", err)
				}
				_, err := f.ImportSession(f.ctx(), history(key("s1"))) // with the same request id
				f.must(err)
			})
		}
	})

	t.Run("the tree is read in pages, of rows and of bytes", func(t *testing.T) {
		f := newFixture(t, open)
		k := key("s1")
		_, err := f.ImportSession(f.ctx(), history(k))
		f.must(err)
		for _, bound := range [][2]int{{0, 0}, {1, 0}, {2, 0}, {0, 1}, {2, 1 << 20}} {
			var got []*sessionv1.Message
			for after := ""; ; {
				some, err := f.ListTree(f.ctx(), k, after, bound[0], bound[1])
				f.must(err)
				if len(some) == 0 {
					break
				}
				if bound[0] > 0 && len(some) > bound[0] || bound[1] == 1 && len(some) > 1 {
					t.Errorf("%v: a page of %d", bound, len(some))
				}
				got = append(got, some...)
				after = messageIDs(some[len(some)-1:])
			}
			if ids := messageIDs(got); ids != "a1 a2 b1" {
				t.Errorf("%v: %s", bound, ids)
			}
		}
		if _, err := f.ListTree(f.ctx(), key("none"), "", 0, 0); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("of no session: %v", err)
		}
		if _, err := f.ListTree(f.ctx(), store.Key{Tenant: "other", Session: "s1"}, "", 0, 0); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("of another tenant: %v", err)
		}
	})
}

// wantImported compares the session with history's.
func wantImported(f *fixture, in store.Import) {
	f.Helper()
	k := in.Key
	want := &sessionv1.Session{
		User: "users/ann",
		Name: "sessions/" + k.Session, Agent: in.Agent, AgentRevision: in.AgentRevision, Title: in.Title, Labels: in.Labels, Budget: in.Budget, Mounts: in.Mounts, Permissions: in.Permissions,
		LastSeq: 10, Head: messageName(k, "a2"), Usage: in.Usage, FinishedTurns: in.FinishedTurns,
		State: sessionv1.SessionState_SESSION_STATE_IDLE,
	}
	if d := cmp.Diff(want, f.session(k), protocmp.Transform(), protocmp.IgnoreFields(&sessionv1.Session{}, "create_time", "update_time")); d != "" {
		f.Errorf("the session: %s", d)
	}
	turns, err := f.ListTurns(f.ctx(), k, "", 0)
	f.must(err)
	tree, err := f.ListTree(f.ctx(), k, "", 0, 0)
	f.must(err)
	events, err := f.ListEvents(f.ctx(), k, 0, 0, 0)
	f.must(err)
	var wantTurns []*sessionv1.Turn
	var wantEvents []*sessionv1.Event
	byName := map[string]*sessionv1.Message{}
	for b, err := range in.Batches {
		f.must(err)
		wantTurns, wantEvents = append(wantTurns, b.Turns...), append(wantEvents, b.Events...)
		for _, m := range b.Messages {
			byName[m.Name] = m.Message
		}
	}
	got := map[string]*sessionv1.Message{}
	for _, m := range tree {
		got[m.Name] = m
	}
	for what, d := range map[string]string{
		"turns": cmp.Diff(wantTurns, turns, protocmp.Transform()), "events": cmp.Diff(wantEvents, events, protocmp.Transform()),
		"messages": cmp.Diff(byName, got, protocmp.Transform()),
	} {
		if d != "" {
			f.Errorf("the %s: %s", what, d)
		}
	}
}

// submitted puts a turn into an existing session and claims it.
func (f *fixture) submitted(k store.Key, turn string) store.Lease {
	f.Helper()
	f.submitTurn(k, turn)
	return f.claim(k)
}

func messageIDs(all []*sessionv1.Message) string {
	ids := make([]string, 0, len(all))
	for _, m := range all {
		ids = append(ids, m.Name[len(m.Name)-2:])
	}
	return strings.Join(ids, " ")
}
