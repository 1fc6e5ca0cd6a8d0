package storetest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/search"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// library is a fixture for searches.
type library struct{ *fixture }

// addMessages adds messages to a session, one after another, a second apart, and
// indexes them.
func (f library) addMessages(k store.Key, texts ...string) {
	f.Helper()
	f.submitTurn(f.create(k), "t1")
	l := f.claim(k)
	parent := ""
	for i, text := range texts {
		m := message(k, string(rune('a'+i)), parent, text)
		if i%2 == 1 { // a tool's answer is found, too
			m.Blocks = []*sessionv1.Block{{Kind: &sessionv1.Block_ToolResult{ToolResult: &sessionv1.ToolResult{
				Content: []*commonv1.Content{{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: text}}}},
			}}}}
		}
		m.CreateTime = timestamppb.New(time.Unix(1_700_000_000+int64(i), 0))
		parent = string(rune('a' + i))
		f.commit(store.Write{Lease: l, Messages: []*sessionv1.Message{m}})
	}
	n, err := f.IndexMessages(f.ctx(), k, 0)
	f.must(err)
	if n != len(texts) {
		f.Errorf("%d were indexed of %d", n, len(texts))
	}
}

// find returns the found messages as session/message.
func (f library) find(s store.MessageSearch, query string) string {
	f.Helper()
	if s.Tenant == "" {
		s.Tenant = "acme"
	}
	s.Words = search.Query(query)
	messages, err := f.SearchMessages(f.ctx(), s)
	f.must(err)
	var out []string
	for _, m := range messages {
		out = append(out, strings.NewReplacer("sessions/", "", "/messages", "").Replace(m.Name))
	}
	return strings.Join(out, " ")
}

func testSearch(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("a user finds only what is in the user's sessions", func(t *testing.T) {
		f := library{newFixture(t, open)}
		for _, user := range []string{"ann", "bob"} {
			n := newSession(key("of-" + user))
			n.User, n.Messages = user, []*sessionv1.Message{message(n.Key, "m", "", "the same words")}
			_, err := f.CreateSession(f.ctx(), n)
			f.must(err)
			_, err = f.IndexMessages(f.ctx(), n.Key, 0)
			f.must(err)
		}
		for user, want := range map[string]string{"ann": "of-ann/m", "bob": "of-bob/m", "zoe": ""} {
			if got := f.find(store.MessageSearch{User: user}, "words"); got != want {
				t.Errorf("%s finds %q", user, got)
			}
		}
		if got := f.find(store.MessageSearch{User: "ann", Session: "of-bob"}, "words"); got != "" {
			t.Errorf("in another user's session: %q", got)
		}
	})

	t.Run("messages are found by their words, the newest first", func(t *testing.T) {
		f := library{newFixture(t, open)}
		f.addMessages(key("s1"), "The quick brown Fox", "jumps over the lazy dog", "Straße, café & ＦＵＬＬwidth", "C3PO it's 42 – naïve; foxes?", "日本語のテキスト हिन्दी", "quote ' and \" and \\ & | ! :* end")
		f.addMessages(key("s2"), "a fox again")
		for query, want := range map[string]string{
			"fox":           "s2/a s1/a",
			"FOX!":          "s2/a s1/a",
			"fox*":          "s1/d s2/a s1/a",
			"the":           "s1/b s1/a",
			"the fox":       "s1/a",
			"the the, THE":  "s1/b s1/a",
			"fox dog":       "",
			"qui* bro*":     "s1/a",
			"ox":            "",
			"strasse":       "s1/c",
			"cafe":          "",
			"CAFÉ":          "s1/c",
			"cafe\u0301":    "s1/c",
			"fullwidth":     "s1/c",
			"c3po 42":       "s1/d",
			"c3*":           "s1/d",
			"it s":          "s1/d",
			"naïve":         "s1/d",
			"日本*":           "s1/e",
			"日本":            "",
			"हिन्दी":        "s1/e",
			"quote' OR end": "",
			"quote' & end":  "s1/f",
			"not and near":  "",
		} {
			if d := cmp.Diff(want, f.find(store.MessageSearch{}, query)); d != "" {
				t.Errorf("%q: %s", query, d)
			}
		}
		if d := cmp.Diff("s1/a", f.find(store.MessageSearch{Session: "s1"}, "fox")); d != "" {
			t.Errorf("of one session: %s", d)
		}
	})

	t.Run("no tenant finds another one's messages", func(t *testing.T) {
		f := library{newFixture(t, open)}
		f.addMessages(key("s1"), "our secret plan")
		f.addMessages(store.Key{Tenant: "other", Session: "s1"}, "their secret hope")
		for tenant, want := range map[string]string{"acme": "s1/a", "other": "s1/a", "third": ""} {
			if d := cmp.Diff(want, f.find(store.MessageSearch{Tenant: tenant}, "secret")); d != "" {
				t.Errorf("%s: %s", tenant, d)
			}
		}
		if got := f.find(store.MessageSearch{Tenant: "other", Session: "s1"}, "plan"); got != "" {
			t.Errorf("the other tenant finds %s", got)
		}
	})

	t.Run("pages show each message once", func(t *testing.T) {
		f := library{newFixture(t, open)}
		f.addMessages(key("s1"), "w", "w", "w", "w")
		f.addMessages(key("s2"), "w", "w", "w")
		want := "s1/d s2/c s1/c s2/b s1/b s2/a s1/a"
		for _, size := range []int{1, 2, 3, 7, 10} {
			var got []string
			s := store.MessageSearch{Tenant: "acme", Limit: size, Words: search.Query("w")}
			for {
				messages, err := f.SearchMessages(f.ctx(), s)
				f.must(err)
				if len(messages) == 0 {
					break
				}
				for _, m := range messages {
					parts := strings.Split(m.Name, "/")
					s.AfterTime, s.AfterSession, s.AfterMessage = m.CreateTime.AsTime(), parts[1], parts[3]
					got = append(got, parts[1]+"/"+parts[3])
				}
			}
			if d := cmp.Diff(want, strings.Join(got, " ")); d != "" {
				t.Errorf("pages of %d: %s", size, d)
			}
		}
	})

	t.Run("a message is indexed once, and goes with its session", func(t *testing.T) {
		f := library{newFixture(t, open)}
		k := key("s1")
		f.addMessages(k, "gone", "soon")
		f.addMessages(key("s2"), "gone")
		n, err := f.IndexMessages(f.ctx(), k, 0)
		f.must(err)
		if n != 0 {
			t.Errorf("%d were indexed again", n)
		}
		f.commit(finish(store.Lease{Key: k, Epoch: 1}, "t1"))
		_, err = f.DeleteSession(f.ctx(), k, store.Request{})
		f.must(err)
		if d := cmp.Diff("s2/a", f.find(store.MessageSearch{}, "gone")); d != "" {
			t.Error(d)
		}
		if _, err := f.IndexMessages(f.ctx(), k, 0); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("index of what is gone: %v", err)
		}
	})
}
