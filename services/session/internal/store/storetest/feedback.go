package storetest

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

func feedback(k store.Key, id string) *sessionv1.Feedback {
	return &sessionv1.Feedback{Name: "sessions/" + k.Session + "/feedback/" + id, Comment: "of " + k.Tenant}
}

func judged(seq int64, x *sessionv1.Feedback) *sessionv1.Event {
	return &sessionv1.Event{FirstSeq: seq, Seq: seq, Body: &sessionv1.Event_FeedbackGiven{FeedbackGiven: &sessionv1.FeedbackGiven{Feedback: x}}}
}

func testFeedback(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("feedback is read as it was written, the last one first, and goes with its session", func(t *testing.T) {
		f := newFixture(t, open)
		k := key("s")
		f.create(k)
		f.submitTurn(k, "t1")
		l := f.claim(k)
		w := start(l, "t1", f.inbox(l)...)
		w.LastSeq, w.Events = 1, []*sessionv1.Event{judged(2, feedback(k, "a")), judged(3, feedback(k, "b")), judged(4, feedback(k, "c"))}
		f.commit(w)
		for _, c := range []struct {
			before string
			limit  int
			want   string
		}{{"", 0, "c b a"}, {"c", 0, "b a"}, {"c", 1, "b"}, {"a", 0, ""}} {
			all, err := f.ListFeedback(f.ctx(), k, c.before, c.limit)
			f.must(err)
			var ids []string
			for _, x := range all {
				_, id, _ := strings.Cut(x.Name, "/feedback/")
				ids = append(ids, id)
				if !proto.Equal(x, feedback(k, id)) {
					t.Errorf("read is %v", x)
				}
			}
			if got := strings.Join(ids, " "); got != c.want {
				t.Errorf("before %q, at most %d: %q, want %q", c.before, c.limit, got, c.want)
			}
		}
		if _, err := f.ListFeedback(f.ctx(), key("other"), "", 0); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("of a session that does not exist: %v", err)
		}
	})
	t.Run("feedback of another session is refused", func(t *testing.T) {
		f := newFixture(t, open)
		k := key("s")
		f.create(k)
		f.submitTurn(k, "t1")
		l := f.claim(k)
		w := start(l, "t1", f.inbox(l)...)
		w.LastSeq, w.Events = 1, []*sessionv1.Event{judged(2, feedback(key("elsewhere"), "a"))}
		errs, err := f.Commit(f.ctx(), []store.Write{w})
		f.must(err)
		if errs[0] == nil {
			t.Error("it was written")
		}
	})
}
