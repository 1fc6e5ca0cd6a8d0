package filename

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNamesAreWrittenAsText(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"":                        "",
		"a/b c":                   "a/b c",
		`back\slash %80 \x80 =80`: `back\slash %80 \x80 =80`,
		"ä/日本/😀/\uFFFD/\uE000/\uEF7F/\uF000": "ä/日本/😀/\uFFFD/\uE000/\uEF7F/\uF000",
		"n\x80":        "n\uEF80",
		"n\xff/\xc3":   "n\uEFFF/\uEFC3",
		"\xed\xa0\x80": "\uEFED\uEFA0\uEF80", // half of a pair is no character
		"\xc0\xaf":     "\uEFC0\uEFAF",       // nor is a slash in two bytes
		"\xee\xbe":     "\uEFEE\uEFBE",
		"own \uEF80":   "own \uEFEE\uEFBE\uEF80",
		"own \uEFFF":   "own \uEFEE\uEFBF\uEFBF",
	} {
		if got := Encode(name); got != want {
			t.Errorf("%q is written %q, not %q", name, got, want)
		}
		if got := Decode(want); got != name {
			t.Errorf("%q is read %q, not %q", want, got, name)
		}
	}
}

func TestEveryByteHasACharacterOfItsOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for b := range 256 {
		text := Encode(string([]byte{'n', byte(b)}))
		if seen[text] || !utf8.ValidString(text) || (b < 0x80) != (len(text) == 2) {
			t.Errorf("%#x is written %q", b, text)
		}
		seen[text] = true
	}
}

func TestALetterHasNoSecondSpelling(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"gr\uEFC3\uEFB6\uEFC3\uEF9Fe.txt", "\uEFE6\uEF97\uEFA5", "\uEF80/\uEFC3\uEFB6"} {
		if got := Decode(text); got != text {
			t.Errorf("%q is read %q", text, got)
		}
	}
}

// What is read back is what was written, so no two names are written alike.
func FuzzNames(f *testing.F) {
	for _, seed := range []string{"", "a/b", "ä\x80\xff", "\uEF80\xee\xbe\x80", "\xee", "\xee\xbe", "\xf0\x9f\x98", "\uFFFD\x00", "\xef\xbf\xbd\xef"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		text := Encode(name)
		if !utf8.ValidString(text) {
			t.Errorf("%q is written %q, which is no text", name, text)
		}
		if got := Decode(text); got != name {
			t.Errorf("%q is written %q and read %q", name, text, got)
		}
		if utf8.ValidString(name) && !strings.ContainsFunc(name, Escapes) && text != name {
			t.Errorf("%q is written %q", name, text)
		}
		if strings.Count(text, "/") != strings.Count(name, "/") || strings.Contains(text, "\x00") != strings.Contains(name, "\x00") {
			t.Errorf("%q has other parts as %q", name, text)
		}
		if raw := Decode(name); raw != name && Encode(raw) != name {
			t.Errorf("%q is read %q, which is written %q", name, raw, Encode(raw))
		}
		// Whatever is read has the same parts, and names no more than its bytes do.
		if raw := Decode(name); strings.Count(raw, "/") != strings.Count(name, "/") || len(raw) > len(name) {
			t.Errorf("%q is read %q", name, raw)
		}
	})
}
