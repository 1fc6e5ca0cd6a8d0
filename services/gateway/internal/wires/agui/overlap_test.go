package agui

import (
	"slices"
	"strings"
	"testing"
)

func TestTheLongestBeginningThatIsKnown(t *testing.T) {
	for _, c := range []struct {
		texts, said string
		want        int
	}{
		{"", "", 0}, {"", "abc", 0}, {"a", "", 0}, {"abc", "xyab", 2}, {"abc", "xyabc", 3}, {"abc", "abcx", 0}, {"aab", "aaa", 2}, {"aaa", "aa", 2}, {"aaa", "aaaaa", 3},
		{"abab", "ababab", 4}, {"abac", "ababa", 3}, {"ab", "a", 1}, {"abcd", "abcabcab", 2},
	} {
		m := newMatch(strings.Split(c.texts, "")[:len(c.texts)])
		for s := range strings.SplitSeq(c.said, "") {
			if c.said != "" {
				m.next(s)
			}
		}
		if m.have != c.want {
			t.Errorf("%q behind %q: %d, want %d", c.texts, c.said, m.have, c.want)
		}
	}
}

func FuzzMatch(f *testing.F) {
	f.Add("aab", "aaaab")
	f.Fuzz(func(t *testing.T, texts, said string) {
		m := newMatch(strings.Split(texts, ""))
		for s := range strings.SplitSeq(said, "") {
			m.next(s)
		}
		all, end := strings.Split(texts, ""), strings.Split(said, "")
		want := 0
		for n := range len(all) + 1 {
			if n <= len(end) && slices.Equal(all[:n], end[len(end)-n:]) {
				want = n
			}
		}
		if m.have != want {
			t.Errorf("%q behind %q: %d, want %d", texts, said, m.have, want)
		}
	})
}
