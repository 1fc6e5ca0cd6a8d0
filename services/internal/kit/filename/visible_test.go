package filename

import (
	"strings"
	"testing"
	"unicode"
)

func TestWhatCannotBeSeenInANameIsShownEscaped(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"plain/ä 日本 😀":           "plain/ä 日本 😀",
		"a\nforged.txt:1:hello":  `a\x0aforged.txt:1:hello`,
		"tab\there\x7f\x1b[31m":  `tab\x09here\x7f\x1b[31m`,
		"\u202egnp.exe":          `\xe2\x80\xaegnp.exe`,
		"a\u2028b\u0085c":        `a\xe2\x80\xa8b\xc2\x85c`,
		"zero\u200bwidth\ufeff":  `zero\xe2\x80\x8bwidth\xef\xbb\xbf`,
		"fill\u3164er\u2800":     `fill\xe3\x85\xa4er\xe2\xa0\x80`,
		"no\u00a0break":          `no\xc2\xa0break`,
		"tag\U000e0041":          `tag\xf3\xa0\x81\x81`,
		"not text \xff\x80":      `not text \xff\x80`,
		"private \uEF80":         `private \xee\xbe\x80`,
		`back\slash \n \x41 \\x`: `back\slash \n \x41 \\x`,
		`looks like \x0a`:        `looks like \x5cx0a`,
		`looks like \x5cx0a`:     `looks like \x5cx5cx0a`,
	} {
		text := Encode(name)
		if got := Show(text); got != want {
			t.Errorf("%q is shown %q, not %q", name, got, want)
		}
		if got := Decode(Parse(want)); got != name {
			t.Errorf("%q is read %q, not %q", want, got, name)
		}
	}
	if got := ShowBytes("caf\u00e9 cafe\u0301"); got != `caf\xc3\xa9 cafe\xcc\x81` || Parse(got) != "caf\u00e9 cafe\u0301" {
		t.Errorf("byte by byte: %s", got)
	}
	for shown, want := range map[string]string{`a\x0a*`: "a\n*", `a\\x0a`: `a\\x0a`, `\[x\]\x5cx0a`: `\[x\]\\x0a`, `\x80*`: "\uEF80*"} {
		if got := ParsePattern(shown); got != want {
			t.Errorf("the pattern %q is read %q, not %q", shown, got, want)
		}
	}
}

// What is shown is visible, and opens the file again.
func FuzzShow(f *testing.F) {
	for _, seed := range []string{"a\nb", `\x0a`, `\x5cx0a`, "\x80\uEF80", "\u202e", `\`, `\x`, `\\x5c`, "a\xe2\x80", "\uFFFD"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		text := Encode(name)
		for _, shown := range []string{Show(text), ShowBytes(text)} {
			if got := Parse(shown); got != text {
				t.Errorf("%q is shown %q and read %q", text, shown, got)
			}
			if strings.ContainsFunc(shown, func(r rune) bool { return hidden(r) || !unicode.IsPrint(r) }) {
				t.Errorf("%q is shown %q", name, shown)
			}
		}
		if strings.Count(Parse(name), "/") != strings.Count(name, "/") {
			t.Errorf("%q has other parts as it is read", name)
		}
	})
}
