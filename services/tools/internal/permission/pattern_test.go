package permission

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzPattern compares the patterns of commands with regular expressions.
func FuzzPattern(f *testing.F) {
	for _, seed := range [][2]string{
		{"git *", "git log"}, {"git *", "git"}, {"git *", "gitk"}, {"a*b*c", "a-b-b-c"}, {"a*a", "a"}, {"a* b *", "a b x b c"}, {`a\*b`, "a*b"},
		{`a\\*`, `a\*`}, {"x:*", "x y"}, {"*", ""}, {"a*b *", "ab b"}, {"npm run test:*", "npm run test"}, {"* *", "a b"}, {"a\n*", "a\nb"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, spec, text string) {
		if strings.Contains(spec, "\x00") || !utf8.ValidString(spec) {
			return // no rule has it
		}
		p, err := commandPattern(spec)
		if err != nil {
			return
		}
		if want := reference(spec).MatchString(text); p.match(text) != want {
			t.Errorf("%q on %q: got %v", spec, text, !want)
		}
		exact, err := commandPattern(exactly(text))
		if err == nil && !exact.match(text) {
			t.Errorf("%q does not match itself", text)
		}
	})
}

func reference(spec string) *regexp.Regexp {
	end := `\z`
	if head, ok := strings.CutSuffix(spec, ":*"); ok {
		spec = head + " *"
	}
	if head, ok := strings.CutSuffix(spec, " *"); ok {
		spec, end = strings.TrimRight(head, " "), `(?: .*)?\z`
	}
	spec = strings.ReplaceAll(regexp.QuoteMeta(strings.ReplaceAll(spec, `\*`, "\x00")), `\*`, ".*")
	return regexp.MustCompile(`(?s)\A` + strings.ReplaceAll(spec, "\x00", `\*`) + end)
}
