package permission

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// classEnd finds the end of the bracket expression at the beginning of a text as the shell does, member by member.
func classEnd(s string) int {
	i := 1
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		i++
	}
	for begin := i; i < len(s); i++ {
		switch {
		case s[i] == ']' && i > begin:
			return i + 1
		case s[i] == '[' && i+1 < len(s) && strings.IndexByte(":.=", s[i+1]) >= 0:
			if end := strings.Index(s[i+2:], s[i+1:i+2]+"]"); end >= 0 {
				i += end + 3
			}
		}
	}
	return 0
}

func TestBracketExpressionsEndWhereTheShellEndsThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOfN(rapid.SampledFrom([]rune("[]]:.=!^a")), 1, 24, -1).Draw(t, "text")
		ends := classEnds(s)
		for i := range len(s) {
			if got, want := classLength(s, i, ends), classEnd(s[i:]); s[i] == '[' && got != want {
				t.Fatalf("%q at %d: %d bytes, want %d", s, i, got, want)
			}
		}
	})
}
