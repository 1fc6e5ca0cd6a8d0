package search

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "",
		"... --- !":                     "",
		"b a B":                         "a b",
		"don't STOP-it":                 "don it stop t",
		"Straße ﬁne":                    "fine strasse",
		"x2 1.5":                        "1 5 x2",
		strings.Repeat("ä", 100) + " b": "b " + strings.Repeat("ä", 64),
	} {
		if d := cmp.Diff(want, strings.Join(Words(text), " ")); d != "" {
			t.Errorf("%q: %s", text, d)
		}
	}
}

func TestQuery(t *testing.T) {
	for query, want := range map[string][]Word{
		"*":      nil,
		"a B* c": {{"a", false}, {"b", true}, {"c", false}},
		"a a a*": {{"a", false}, {"a", true}},
		"don't":  {{"don", false}, {"t", false}},
		"＊ ｆｏｏ＊": {{"foo", true}},
	} {
		if d := cmp.Diff(want, Query(query)); d != "" {
			t.Errorf("%q: %s", query, d)
		}
	}
}

func TestEveryWordOfATextFindsIt(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.String().Draw(r, "text")
		words := Words(text)
		for _, w := range Query(text) {
			if !slices.Contains(words, w.Text) {
				r.Fatalf("%q is not among %q", w.Text, words)
			}
		}
		s := Snippet(text, Query(text))
		if utf8.RuneCountInString(s) > MaxSnippet || utf8.ValidString(text) && !utf8.ValidString(s) {
			r.Fatalf("snippet %q", s)
		}
	})
}

func TestSnippet(t *testing.T) {
	long := strings.Repeat("ab ", 200)
	for _, c := range []struct {
		name, text, query, want string
	}{
		{"a short text is shown whole", "say hello\nto all", "hello", "say hello to all"},
		{"without a hit it is the beginning", "say hello", "none", "say hello"},
		{"around the first hit", long + "Hit" + " " + long, "hit", "…"},
		{"a prefix counts as a hit", long + "hitherto" + long, "hit*", "…"},
	} {
		got := Snippet(c.text, Query(c.query))
		if c.want != "…" && got != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
		if c.want == "…" && (!strings.HasPrefix(got, "…") || !strings.HasSuffix(got, "…") || !strings.Contains(strings.ToLower(got), "hit") || utf8.RuneCountInString(got) != MaxSnippet) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
