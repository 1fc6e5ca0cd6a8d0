package files

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAnEditKeepsTheLineEndsOfItsPlace(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		content string
		edit    Edit
		want    string
	}{
		"CR LF":                              {"a\r\nb\r\nc\r\n", Edit{Old: "a\nb", New: "x\ny\nz"}, "x\r\ny\r\nz\r\nc\r\n"},
		"CR LF, one line becomes two":        {"a\r\nb\r\n", Edit{Old: "b", New: "x\ny"}, "a\r\nx\r\ny\r\n"},
		"CR LF, a whole line goes":           {"a\r\nb\r\nc\r\n", Edit{Old: "b\n", New: ""}, "a\r\nc\r\n"},
		"CR LF, begins with a line end":      {"a\r\nb\r\nc", Edit{Old: "\nb", New: "\nx\ny"}, "a\r\nx\r\ny\r\nc"},
		"CR LF, the last line has no end":    {"a\r\nb", Edit{Old: "b", New: "b\nc"}, "a\r\nb\r\nc"},
		"CR LF, every place":                 {"a\r\na\r\n", Edit{Old: "a\n", New: "b\nc\n", All: true}, "b\r\nc\r\nb\r\nc\r\n"},
		"CR LF, the edit says CR LF":         {"a\r\nb\r\n", Edit{Old: "a\r\nb", New: "x\ny"}, "x\r\ny\r\n"},
		"CR LF, the edit ends within one":    {"a\r\nb\r\n", Edit{Old: "a\r", New: "x"}, "x\r\nb\r\n"},
		"CR LF, it adds a line, too":         {"a\r\nb\r\n", Edit{Old: "a\r", New: "x\ny"}, "x\r\ny\r\nb\r\n"},
		"CR LF, it begins within one":        {"a\r\nb\r\nc", Edit{Old: "\nb\r", New: "\nx\ny"}, "a\r\nx\r\ny\r\nc"},
		"CR LF, it ends within each":         {"a\r\na\r\n", Edit{Old: "a\r", New: "x", All: true}, "x\r\nx\r\n"},
		"CR LF, it ends within, for no text": {"a\r\nb\r\n", Edit{Old: "a\r", New: ""}, "\r\nb\r\n"},
		"CR LF becomes LF":                   {"a\r\nb\r\n", Edit{Old: "\r\n", New: "\n", All: true}, "a\nb\n"},
		"CR LF loses its CR":                 {"a\r\nb\r\n", Edit{Old: "\r", New: "", All: true}, "a\nb\n"},
		"CR LF of one place becomes LF":      {"a\r\nb\r\n", Edit{Old: "a\r\n", New: "a\n"}, "a\nb\r\n"},
		"CR LF, and a CR that is no end":     {"a\rb\r\nc\r\n", Edit{Old: "a\r", New: "x\n"}, "x\nb\r\nc\r\n"},
		"CR, the edit says CR":               {"a\rb\rc", Edit{Old: "a\rb", New: "x\ny"}, "x\ry\rc"},
		"CR becomes LF":                      {"a\rb\rc", Edit{Old: "\r", New: "\n", All: true}, "a\nb\nc"},
		"mixed, the edit says CR LF":         {"a\nb\r\nc\r\n", Edit{Old: "b\r\nc", New: "x\ny"}, "a\nx\ny\r\n"},
		"CR LF, the new text says CR LF":     {"a\r\nb\r\n", Edit{Old: "a\nb", New: "x\r\ny"}, "x\r\ny\r\n"},
		"CR":                                 {"a\rb\rc", Edit{Old: "a\nb", New: "x\ny"}, "x\ry\rc"},
		"CR inside LF is no line end":        {"a\rb\nc\n", Edit{Old: "c\n", New: "d\ne\n"}, "a\rb\nd\ne\n"},
		"mixed, the place has CR LF":         {"a\nb\r\nc\r\nd\n", Edit{Old: "b\nc", New: "x\ny\nz"}, "a\nx\r\ny\r\nz\r\nd\n"},
		"mixed, the place has LF":            {"a\r\nb\nc\nd\r\n", Edit{Old: "b\nc", New: "x\ny\nz"}, "a\r\nx\ny\nz\nd\r\n"},
		"mixed, the place has both":          {"a\r\nb\nc\r\n", Edit{Old: "a\nb\nc", New: "a\nx\nc"}, "a\r\nx\nc\r\n"},
		"mixed, every line changes":          {"a\r\nb\nc\r\n", Edit{Old: "a\nb\nc", New: "A\nB\nC"}, "A\r\nB\nC\r\n"},
		"mixed, with the end of the last":    {"a\r\nb\nc\r\nd", Edit{Old: "a\nb\nc\n", New: "A\nB\nC\n"}, "A\r\nB\nC\r\nd"},
		"mixed, a line goes":                 {"a\r\nb\nc\r\nd\n", Edit{Old: "a\nb\nc\nd", New: "a\nc\nd"}, "a\r\nc\r\nd\n"},
		"mixed, a line goes and one changes": {"a\r\nb\nc\r\nd\n", Edit{Old: "a\nb\nc\nd", New: "b\nC\nd"}, "b\nC\r\nd\n"},
		"mixed, a line comes in between":     {"a\nb\r\nc\nd\n", Edit{Old: "a\nb\nc\nd", New: "a\nb\nx\nc\nd"}, "a\nb\r\nx\r\nc\nd\n"},
		"mixed, a line comes first":          {"a\r\nb\nc\n", Edit{Old: "a\nb", New: "x\na\nb"}, "x\r\na\r\nb\nc\n"},
		"mixed, lines come at both ends":     {"a\r\nb\nc\r\n", Edit{Old: "a\nb\nc", New: "x\na\nb\nc\ny"}, "x\r\na\r\nb\nc\r\ny\r\n"},
		"mixed, every place":                 {"a\r\nb\na\nb\r\n", Edit{Old: "a\nb", New: "A\nB", All: true}, "A\r\nB\nA\nB\r\n"},
		"mixed, the last line has no end":    {"a\r\nb\nc", Edit{Old: "a\nb\nc", New: "A\nB\nC\nD"}, "A\r\nB\nC\nD"},
		"mixed, equal lines":                 {"}\r\n}\n}\r\n", Edit{Old: "}\n}\n}", New: "x\n}\n}"}, "x\r\n}\n}\r\n"},
		"mixed, the place is in a line":      {"a\nb\r\nc\n", Edit{Old: "b", New: "x\ny"}, "a\nx\r\ny\r\nc\n"},
		"mixed, the place is the last line":  {"a\nb\r\nc", Edit{Old: "c", New: "x\ny"}, "a\nb\r\nx\r\ny"},
		"mixed, places with either":          {"a\nb\na\r\nb\r\n", Edit{Old: "a\nb\n", New: "x\ny\n", All: true}, "x\ny\nx\r\ny\r\n"},
		"no line end at the end":             {"a\nb", Edit{Old: "b", New: "c"}, "a\nc"},
		"a line alone":                       {"a", Edit{Old: "a", New: "x\ny"}, "x\ny"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, _, err := Apply("f", []byte(tc.content), []Edit{tc.edit}); err != nil || string(got) != tc.want {
				t.Errorf("%q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

func TestAnEditKeepsMarksAndBytesThatAreNotText(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		content string
		edit    Edit
		want    string
	}{
		"a byte order mark":               {"\ufeffone\ntwo\n", Edit{Old: "one", New: "1"}, "\ufeff1\ntwo\n"},
		"Latin-1 around the place":        {"caf\xe9 one \xe9t\xe9", Edit{Old: "one", New: "two"}, "caf\xe9 two \xe9t\xe9"},
		"one wrong byte in UTF-8":         {"é\xff one", Edit{Old: "one", New: "è"}, "é\xff è"},
		"NUL bytes":                       {"a\x00one\x00b", Edit{Old: "one", New: "two"}, "a\x00two\x00b"},
		"U+FFFD that the file has":        {"\uFFFD one \xff", Edit{Old: "\uFFFD one", New: "\uFFFD two"}, "\uFFFD two \xff"},
		"half a character at the end":     {"one\xe2\x82", Edit{Old: "one", New: "two"}, "two\xe2\x82"},
		"text that is like a wide letter": {"日本one語", Edit{Old: "one", New: "二"}, "日本二語"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, _, err := Apply("f", []byte(tc.content), []Edit{tc.edit}); err != nil || string(got) != tc.want {
				t.Errorf("%q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

func TestAnEditThatWouldBreakAnEncodingIsRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		content string
		edit    Edit
		says    string
	}{
		"UTF-16 LE":                            {"\xff\xfeo\x00n\x00e\x00", Edit{Old: "one", New: "two"}, "UTF-16"},
		"UTF-16 BE":                            {"\xfe\xff\x00o\x00n\x00e", Edit{Old: "one", New: "two"}, "UTF-16"},
		"the mark for a byte, in the old text": {"caf\xe9 one", Edit{Old: "caf\uFFFD one", New: "x"}, "U+FFFD"},
		"the mark for a byte, in the new text": {"caf\xe9 one", Edit{Old: "one", New: "caf\uFFFD"}, "U+FFFD"},
		"wide letters in Latin-1":              {"caf\xe9 one", Edit{Old: "one", New: "thé"}, "Latin-1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, _, err := Apply("f", []byte(tc.content), []Edit{tc.edit}); !errors.Is(err, ErrNotText) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v", err)
			}
		})
	}
	for content, says := range map[string]string{"o\x00n\x00e": "NUL", "cafe\u0301 one": "Unicode form"} {
		var fault *EditError
		if _, _, err := Apply("f", []byte(content), []Edit{{Old: "café one", New: "x"}}); !errors.As(err, &fault) || !strings.Contains(fault.Why, says) {
			t.Errorf("%q: %v", content, err)
		}
	}
}

func TestATextThatIsNearlyThereIsNamed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ content, old, says string }{
		"spaces for a tab":              {"a\nif x {\n\treturn y\n}\n", "    return y\n", `line 3 of the file has "\treturn y\n" where the text has "    return y\n"`},
		"a tab for spaces":              {"a\n  b: 1\n", "\tb: 1", `line 2 of the file has "  b: 1\n" where the text has "\tb: 1"`},
		"spaces for a tab, second line": {"if x {\n\treturn y\n}\n", "if x {\n    return y\n}", `line 2 of the file has "\treturn y\n" where the text has "    return y\n"`},
		"another depth":                 {"a:\n    b\n    c\n", "  b\n  c\n", `line 3`},
		"blanks at a line's end":        {"one  \ntwo\n", "one\ntwo", `line 1 of the file has "one  \n" where the text has "one\n"`},
		"no blanks at a line's end":     {"one\ntwo\n", "one \ntwo", `line 1 of the file has "one\n"`},
		"a blank line more":             {"one\n\n\ntwo\n", "one\n\ntwo", `line 3 of the file has "\n" where the text has "two"`},
		"no line end at the file's end": {"one\ntwo", "two\n", `has "two" where the text has "two\n"`},
		"a space that does not break":   {"a\u00a0b\n", "a b", `"a\u00a0b\n"`},
		"a character of no width":       {"a\u200bb\n", "ab", `"a\u200bb\n"`},
		"a wrapped line":                {"one two\nthree\n", "one\ntwo three", `line 1 of the file has "one two\n"`},
		"curly quotes":                  {"x\nsay “hi”\n", `say "hi"`, "similar characters differ: line 2"},
		"a long dash":                   {"a — b\n", "a - b", "similar characters differ: line 1"},
		"another case":                  {"x\nHello\n", "hello", "upper and lower case differ: line 2"},
		"the numbers of Read":           {"one\ntwo\n", "     1\tone\n     2\ttwo", "line numbers"},
		"escapes":                       {"one\ntwo\n", `one\ntwo`, "escapes"},
		"CR LF, spaces for a tab":       {"a\r\n\tb\r\nc\r\n", "    b\nc", `line 2 of the file has "\tb\n"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var fault *EditError
			if _, _, err := Apply("f", []byte(tc.content), []Edit{{Old: tc.old, New: "new"}}); !errors.As(err, &fault) || fault.Found != 0 || !strings.Contains(fault.Why, tc.says) {
				t.Errorf("%v, want %q", err, tc.says)
			}
		})
	}
	var fault *EditError
	if _, _, err := Apply("f", []byte("one\n"), []Edit{{Old: "two", New: "x"}}); !errors.As(err, &fault) || fault.Why != "" {
		t.Errorf("of a text that is nowhere: %v", err)
	}
	long := strings.Repeat("x", 30_000) + "\ty" + strings.Repeat("z", 30_000)
	if _, _, err := Apply("f", []byte(long), []Edit{{Old: "x yz", New: "x"}}); !errors.As(err, &fault) || !strings.Contains(fault.Why, `x\tyz`) || len(fault.Why) > 500 {
		t.Errorf("in a long line: %v", err)
	}
}

func TestPlacesThatOverlapAreNotUnique(t *testing.T) {
	t.Parallel()
	var fault *EditError
	for content, old := range map[string]string{"aaa": "aa", "a\r\na\r\na\r\n": "a\na\n", "abab ab": "ab"} {
		if _, _, err := Apply("f", []byte(content), []Edit{{Old: old, New: "x"}}); !errors.As(err, &fault) || fault.Found < 2 {
			t.Errorf("%q in %q: %v", old, content, err)
		}
	}
	if got, n, err := Apply("f", []byte("aaaaa"), []Edit{{Old: "aa", New: "b", All: true}}); err != nil || string(got) != "bba" || n[0] != 2 {
		t.Errorf("%q %d %v", got, n, err)
	}
}

// editFile edits as the server does.
func editFile(tree *Tree, name string, edits ...Edit) error {
	e, err := tree.Edit(name, edits)
	if err != nil {
		return err
	}
	_, _, err = put(tree, name, string(e.Content), Target{IfEtag: e.Etag, CreateOnly: e.Etag == ""})
	return err
}

func TestAnEditKeepsModesAndLinks(t *testing.T) {
	tree, dir := newTree(t, map[string]string{"plain": "one", "dir/real": "one", "link": "->dir/real", "chain": "->link", "hard": "one", "empty": ""})
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.Link(at("hard"), at("other")))
	for _, mode := range []uint32{0o755, 0o444, 0o600, 0o2755, 0o4755, 0o1644} {
		must(t, unix.Chmod(at("plain"), mode))
		must(t, os.WriteFile(at("written"), nil, 0o600))
		must(t, unix.Chmod(at("written"), mode))
		must(t, editFile(tree, "plain", Edit{Old: "one", New: "two"}, Edit{Old: "two", New: "one"}))
		_, _, err := put(tree, "written", "one", Target{})
		must(t, err)
		for _, name := range []string{"plain", "written"} {
			var st unix.Stat_t
			must(t, unix.Stat(at(name), &st))
			if st.Mode&0o7777 != mode {
				t.Errorf("%s of mode %o has %o", name, mode, st.Mode&0o7777)
			}
		}
	}
	must(t, editFile(tree, "chain", Edit{Old: "one", New: "two"}))
	for name, target := range map[string]string{"chain": "link", "link": "dir/real"} {
		if got, err := os.Readlink(at(name)); err != nil || got != target {
			t.Errorf("%s leads to %q, %v", name, got, err)
		}
	}
	if got, err := os.ReadFile(at("dir/real")); err != nil || string(got) != "two" {
		t.Errorf("%q, %v", got, err)
	}
	must(t, editFile(tree, "hard", Edit{Old: "one", New: "two"}))
	if got, err := os.ReadFile(at("other")); err != nil || string(got) != "one" {
		t.Errorf("the other name of a hard link has %q, %v: an edit makes a new file", got, err)
	}
	must(t, editFile(tree, "empty", Edit{New: "text"}))
	if err := editFile(tree, "plain", Edit{Old: "one", New: "two"}, Edit{Old: "none", New: "x"}); err == nil {
		t.Error("an edit that fails did not stop the others")
	}
	if got, err := contents(tree, "plain"); err != nil || got != "one" {
		t.Errorf("after a failed edit it has %q, %v", got, err)
	}
}

// FuzzEdit replays an edit token by token: outside the places that match, every byte is
// the same before and after.
func FuzzEdit(f *testing.F) {
	for _, seed := range []struct {
		text, old, replacement string
		all                    bool
	}{
		{"a\nb\nc", "b", "x", false},
		{"", "", "new", false},
		{"aaa", "a", "", true},
		{"a\r\nb\nc\r\n", "a\nb\n", "x\ny\n", false},
		{"\ufeffa\rb\r", "a\n", "\n\n", true},
		{"caf\xe9\r\n\x00\r\n", "\n", "\n\n", true},
		{"a\r\r\nb\n\r\n", "\n", "x\n", true},
		{"\xff\xfea\x00", "a", "b", false},
		{"a\r\nb\r\n", "a\r", "x", false},
		{"a\r\nb\r\n", "\nb\r", "x\ny", false},
		{"a\r\nb\r\n", "\r", "", true},
		{"a\rb\r", "a\rb", "x\ny", false},
	} {
		f.Add([]byte(seed.text), seed.old, seed.replacement, seed.all)
	}
	f.Fuzz(func(t *testing.T, text []byte, old, replacement string, all bool) {
		got, counts, err := Apply("f", text, []Edit{{Old: old, New: replacement, All: all}})
		if err != nil {
			return
		}
		if old != "" {
			ends := findLineEnds(text)
			e := ends.unify(text, Edit{Old: old, New: replacement})
			replay(t, text, got, e.Old, e.New, int(counts[0]))
		}
		if !all && counts[0] != 1 {
			t.Errorf("%d replacements", counts[0])
		}
		if part, first := snippet(text, got); first < 1 || len(part) > 3*snippetBytes {
			t.Errorf("a snippet of %d bytes from line %d", len(part), first)
		}
	})
}

func replay(t *testing.T, before, after []byte, old, replacement string, places int) {
	t.Helper()
	found, rest := 0, after
	for at := 0; at < len(before); {
		if n := matched(before, at, old); n > 0 {
			put := matched(rest, 0, replacement)
			if put < 0 {
				t.Fatalf("%q became %q: the new text %q is not at %q", before, after, replacement, rest)
			}
			found, at, rest = found+1, at+n, rest[put:]
			continue
		}
		n := token(before, at)
		if strings.Contains(old, "\r") { // such a text may begin within a line end
			n = 1
		}
		if !bytes.HasPrefix(rest, before[at:at+n]) {
			t.Fatalf("%q became %q by %q for %q: the bytes from %d on are not kept", before, after, replacement, old, at)
		}
		at, rest = at+n, rest[n:]
	}
	if len(rest) > 0 || found != places {
		t.Fatalf("%q became %q in %d places, not %d; %q is left", before, after, places, found, rest)
	}
}

// token is the length of a line end of two bytes, or of one byte.
func token(text []byte, at int) int {
	if bytes.HasPrefix(text[at:], []byte("\r\n")) {
		return 2
	}
	return 1
}

// matched is how long the place is at which a text stands, with any line ends; -1 if it
// does not stand there.
func matched(text []byte, at int, want string) int {
	if strings.Contains(want, "\r") {
		if bytes.HasPrefix(text[at:], []byte(want)) {
			return len(want)
		}
		return -1
	}
	from := at
	for _, b := range []byte(want) {
		switch {
		case at >= len(text):
			return -1
		case b == '\n' && token(text, at) == 2:
			at += 2
		case b == '\n' && text[at] == '\r' && !bytes.Contains(text, []byte("\n")), text[at] == b:
			at++
		default:
			return -1
		}
	}
	return at - from
}
