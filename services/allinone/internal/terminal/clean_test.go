package terminal

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"plain text stays":                      {"a\tb\nÄ→🙂", "a\tb\nÄ→🙂"},
		"colors go":                             {"\x1b[31mred\x1b[0m", "red"},
		"a title goes":                          {"a\x1b]0;owned\x07b", "ab"},
		"a title ended by ST goes":              {"a\x1b]0;owned\x1b\\b", "ab"},
		"a link goes, its text stays":           {"\x1b]8;;http://x\x1b\\text\x1b]8;;\x1b\\", "text"},
		"a device control string goes":          {"a\x1bP1$r0m\x1b\\b", "ab"},
		"eight-bit controls go":                 {"a\u009b2Jb\u009d0;t\u009cc", "abc"},
		"a reset goes":                          {"a\x1bcb", "ab"},
		"a charset goes":                        {"a\x1b(0b", "ab"},
		"an incomplete sequence has no effect":  {"a\x1b[31", "a"},
		"an incomplete title hides one line":    {"a\x1b]0;x\nb", "a\nb"},
		"backspace, bell and return go":         {"a\b\a\rb\r\nc", "ab\nc"},
		"delete and null go":                    {"a\x7f\x00b", "ab"},
		"text cannot be turned around":          {"a\u202eb\u2066c\u200fd", "abcd"},
		"what is not UTF-8 is shown as such":    {"a\xffb", "a\ufffdb"},
		"a raw eight-bit control is not UTF-8":  {"a\x9b2Jb", "a\ufffd2Jb"},
		"a broken sequence hides no letters":    {"a\x1b[3é", "aé"},
		"a sequence after a string goes":        {"\x1b]0;x\x1b[31my", "y"},
		"a sequence inside a sequence goes too": {"\x1b\x1b[0m[31mx", "[31mx"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Clean(c.in); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestLineIsOneShortLine(t *testing.T) {
	if got := Line("a\n  b\x1b[31mc\td", 5); got != "a ..." {
		t.Errorf("got %q", got)
	}
	if got := Line("ab", 2); got != "ab" {
		t.Errorf("got %q", got)
	}
}

func TestSequencesAreKnownAcrossPieces(t *testing.T) {
	const text = "a\x1b[31mred\x1b[0m\x1b]0;title\x1b\\b\u009b2Jc\x1b(0d"
	for at := range len(text) {
		if !utf8.RuneStart(text[at]) {
			continue
		}
		var c Cleaner
		if got := c.Clean(text[:at]) + c.Clean(text[at:]); got != "aredbcd" {
			t.Errorf("cut at %d: got %q", at, got)
		}
	}
}

func TestExactHidesNothing(t *testing.T) {
	if got, want := Exact("rm \x1b[8m-rf\u202e\r /\n\t\xff"), `rm \u001b[8m-rf\u202e\u000d /`+"\n\t\ufffd"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzClean(f *testing.F) {
	f.Add("\x1b[31mred\x1b[0m \x1b]0;t\x07 \u202e \xff")
	f.Fuzz(func(t *testing.T, in string) {
		out := Clean(in)
		if strings.IndexFunc(out, hostile) >= 0 || !utf8.ValidString(out) {
			t.Errorf("%q became %q", in, out)
		}
		if Clean(out) != out {
			t.Errorf("cleaning %q again changes it", out)
		}
	})
}
