package search

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
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

func TestTheWorkOfASnippetDoesNotGrowWithTheWordsOfItsText(t *testing.T) {
	var query []Word
	for c := 'a'; c <= 'z'; c++ {
		query = append(query, Word{Text: "q" + string(c)}, Word{Text: "w" + string(c), Prefix: true})
	}
	allocs := func(text string) float64 {
		return testing.AllocsPerRun(2, func() {
			if s := Snippet(text, query); !strings.Contains(s, "qz") {
				t.Errorf("snippet %q", s)
			}
		})
	}
	if short, long := allocs("other qz"), allocs(strings.Repeat("other ", 20_000)+"qz"); long > short+8 {
		t.Errorf("a long text costs %v allocations, a short one %v", long, short)
	}
}

func TestTextsWithoutAccentsFoldAsOthersDo(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := rapid.StringOf(rapid.RuneFrom(nil, &unicode.RangeTable{R16: []unicode.Range16{{Lo: 0, Hi: 127, Stride: 1}}})).Draw(r, "text")
		if got, want := fold(s), norm.NFKC.String(cases.Fold().String(norm.NFKC.String(s))); got != want {
			r.Fatalf("%q becomes %q, want %q", s, got, want)
		}
	})
}
