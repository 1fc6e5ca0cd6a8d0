package calls

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/tools"
)

func TestRulesHoldWhereAPathLeads(t *testing.T) {
	f := start(t, map[string]tools.Profile{
		"secret": {
			Allow: []string{"Read", "Write", "Edit", "MultiEdit", "Glob", "Grep", "LS"},
			Deny:  []string{"Read(./secret/**)", "Edit(./secret/**)"},
		},
		"source": {Allow: []string{"Read(./src/**)", "Edit(./src/**)"}},
		"asks":   {Allow: []string{"Read", "Grep"}, Ask: []string{"Read(./private/**)"}},
	})
	f.bash(`mkdir secret private src; echo needle > secret/k; echo needle > private/p; echo needle > plain; echo needle > src/s
		ln -s secret open; ln -s . self; ln -s secret/k direct; ln -s ../secret/k src/out; ln -s secret/new dangling; ln -s private way; ln -s src in`)
	for _, tc := range []struct {
		tool string
		args map[string]any
	}{
		{"Read", map[string]any{"file_path": "secret/k"}},
		{"Read", map[string]any{"file_path": "open/k"}},
		{"Read", map[string]any{"file_path": "self/secret/k"}},
		{"Read", map[string]any{"file_path": "/workspace/self/self/open/k"}},
		{"Read", map[string]any{"file_path": "direct"}},
		{"Write", map[string]any{"file_path": "open/new", "content": "x"}},
		{"Write", map[string]any{"file_path": "open/deep/new", "content": "x"}},
		{"Write", map[string]any{"file_path": "dangling", "content": "x"}},
		{"Edit", map[string]any{"file_path": "direct", "old_string": "needle", "new_string": "x"}},
		{"MultiEdit", map[string]any{"file_path": "open/k", "edits": []any{map[string]any{"old_string": "needle", "new_string": "x"}}}},
		{"Grep", map[string]any{"pattern": "needle", "path": "open"}},
		{"Grep", map[string]any{"pattern": "needle", "path": "direct", "output_mode": "content"}},
		{"Glob", map[string]any{"pattern": "*", "path": "self/open"}},
		{"LS", map[string]any{"path": "open"}},
	} {
		if a := f.call("secret", tc.tool, tc.args); a.outcome != "DENIED" || strings.Contains(a.text, "needle") {
			t.Errorf("%s %v: %s %s", tc.tool, tc.args, a.outcome, a.text)
		}
	}
	if got := f.bash("cat secret/*; ls secret"); got != "needle\nk\n" && got != "needle\nk" {
		t.Errorf("the secret is %q", got)
	}
	const left = "Files were left out: a rule"
	for tool, args := range map[string]map[string]any{
		"Grep": {"pattern": "needle", "output_mode": "content"}, "Glob": {"pattern": "**/*"}, "LS": {},
	} {
		a := f.call("secret", tool, args)
		if a.outcome != "OK" || strings.Contains(a.text, "secret/k:") || strings.Contains(a.text, "- k") || !strings.Contains(a.text, "plain") || !strings.Contains(a.text, left) {
			t.Errorf("%s: %s %s", tool, a.outcome, a.text)
		}
		if a := f.call("secret", tool, map[string]any{"pattern": "needle", "path": "in"}); tool == "Grep" && (a.outcome != "OK" || !strings.Contains(a.text, "/workspace/src/s") || strings.Contains(a.text, left)) {
			t.Errorf("%s through a link that is allowed: %s %s", tool, a.outcome, a.text)
		}
	}
	for path, want := range map[string]string{"src/s": "OK", "in/s": "DENIED", "src/out": "DENIED", "plain": "DENIED"} {
		if a := f.call("source", "Read", map[string]any{"file_path": path}); a.outcome != want {
			t.Errorf("reading %s where only src is allowed: %s %s", path, a.outcome, a.text)
		}
	}
	if a := f.call("asks", "Grep", map[string]any{"pattern": "needle"}); strings.Contains(a.text, "private") || !strings.Contains(a.text, left) || !strings.Contains(a.text, "plain") {
		t.Errorf("a search that was not asked about: %s %s", a.outcome, a.text)
	}
	q := f.request("asks", "Grep", map[string]any{"pattern": "needle", "path": "way"})
	asked := f.send(q)
	if asked.asked == nil || !strings.Contains(asked.asked.GetRule(), `leads to "private"`) {
		t.Fatalf("a link to what is asked about: %+v", asked)
	}
	q.Approval = &toolsv1.Approval{Approved: true, Digest: asked.asked.GetDigest(), User: "ann"}
	if a := f.send(q); a.outcome != "OK" || !strings.Contains(a.text, "/workspace/private/p") {
		t.Errorf("what was approved: %s %s", a.outcome, a.text)
	}
}

func TestNamesAreShownSoThatTheyOpenTheFile(t *testing.T) {
	f := start(t, nil)
	f.bash(`mkdir d; cd d; echo one > $'a\nforged.txt:1:hello'; echo two > $'not text \xff'; echo three > 'back\slash'; echo four > 'like \x0a'
		echo five > $'\xe2\x80\xaegnp.exe'; mkdir -p 'app/[id]/(auth)'; echo six > 'app/[id]/(auth)/page.tsx'; ln -s $'to\nx' link`)
	want := map[string]string{
		`a\x0aforged.txt:1:hello`: "one", `not text \xff`: "two", `back\slash`: "three", `like \x5cx0a`: "four", `\xe2\x80\xaegnp.exe`: "five", "app/[id]/(auth)/page.tsx": "six",
	}
	glob := f.call("full", "Glob", map[string]any{"pattern": "d/**"}).text
	grep := f.call("full", "Grep", map[string]any{"pattern": ".", "path": "d"}).text
	list := f.call("full", "LS", map[string]any{"path": "d"}).text
	if lines := strings.Count(list, "\n"); lines != 10 || !strings.Contains(list, `link -> to\x0ax`) {
		t.Errorf("%d lines:\n%s", lines, list)
	}
	for name, text := range want {
		path := "/workspace/d/" + name
		if !strings.Contains(glob+"\n", path+"\n") || !strings.Contains(grep+"\n", path+"\n") || !strings.Contains(list, filepath.Base(name)) {
			t.Errorf("%s is not in\n%s\n%s\n%s", path, glob, grep, list)
		}
		if a := f.call("full", "Read", map[string]any{"file_path": path}); a.outcome != "OK" || !strings.HasSuffix(a.text, "\t"+text) {
			t.Errorf("Read of %s: %s %s", path, a.outcome, a.text)
		}
		if a := f.call("full", "Edit", map[string]any{"file_path": path, "old_string": text, "new_string": text + text}); a.outcome != "OK" || !strings.Contains(a.text, path) {
			t.Errorf("Edit of %s: %s %s", path, a.outcome, a.text)
		}
		if a := f.call("full", "Write", map[string]any{"file_path": path, "content": text}); a.outcome != "OK" || strings.Contains(a.text, "created") {
			t.Errorf("Write of %s: %s %s", path, a.outcome, a.text)
		}
		for tool, args := range map[string]map[string]any{"Glob": {"pattern": "d/" + name}, "Grep": {"pattern": text, "glob": "d/" + name}} {
			if a := f.call("full", tool, args); a.outcome != "OK" || !strings.Contains(a.text+"\n", path+"\n") {
				t.Errorf("%s of %s: %s %s", tool, path, a.outcome, a.text)
			}
		}
	}
	if a := f.call("full", "Grep", map[string]any{"pattern": "six", "path": "d", "glob": "app/[id]/**"}); !strings.Contains(a.text, "page.tsx") {
		t.Errorf("a search in a folder with brackets: %s", a.text)
	}
	if got, err := os.ReadDir(filepath.Join(f.workspace, "d")); err != nil || len(got) != 7 {
		t.Errorf("new files came to be: %v, %v", got, err)
	}
	for _, path := range []string{strings.Repeat("n", 400), "d/" + strings.Repeat("é", 200)} {
		for tool, args := range map[string]map[string]any{"Read": {"file_path": path}, "Write": {"file_path": path, "content": "x"}, "LS": {"path": path}} {
			if a := f.call("full", tool, args); a.outcome != "ERROR" || !strings.Contains(a.text, "too long, with 400 bytes") {
				t.Errorf("%s of a name that is too long: %s %s", tool, a.outcome, a.text)
			}
		}
	}
}

func TestNamesThatLookAlikeAreToldApart(t *testing.T) {
	f := start(t, nil)
	f.bash(`mkdir d; echo composed > $'d/caf\xc3\xa9'; echo apart > $'d/cafe\xcc\x81'; echo alone > $'cafe\xcc\x81'`)
	note := `/workspace/d/cafe\xcc\x81 and /workspace/d/caf\xc3\xa9`
	for tool, args := range map[string]map[string]any{"Glob": {"pattern": "d/caf\u00e9"}, "LS": {"path": "d"}, "Grep": {"pattern": ".", "path": "d"}} {
		if a := f.call("full", tool, args); !strings.Contains(a.text, note) {
			t.Errorf("%s: %s", tool, a.text)
		}
	}
	for path, text := range map[string]string{`d/caf\xc3\xa9`: "composed", `d/cafe\xcc\x81`: "apart", `/workspace/cafe\xcc\x81`: "alone"} {
		if a := f.call("full", "Read", map[string]any{"file_path": path}); !strings.HasSuffix(a.text, "\t"+text) {
			t.Errorf("%s: %s", path, a.text)
		}
	}
	if a := f.call("full", "Read", map[string]any{"file_path": "caf\u00e9"}); a.outcome != "ERROR" || !strings.Contains(a.text, `/workspace/cafe\xcc\x81 opens it`) {
		t.Errorf("%s %s", a.outcome, a.text)
	}
}

func TestEditKeepsAFileAsItIs(t *testing.T) {
	f := start(t, nil)
	f.bash(`printf '\xef\xbb\xbfone\r\ntwo\r\nthree' > crlf; printf 'caf\xe9\none\n' > latin; printf '\xff\xfeo\0n\0' > wide; echo one > tool; chmod 2755 tool; ln -s tool link`)
	read := f.call("full", "Read", map[string]any{"file_path": "crlf"}).text
	if want := "     1\tone\n     2\ttwo\n     3\tthree"; read != want {
		t.Errorf("Read shows %q", read)
	}
	for path, edits := range map[string][]any{
		"crlf":  {map[string]any{"old_string": "one\ntwo", "new_string": "one\nmore\ntwo"}, map[string]any{"old_string": "three", "new_string": "three\n"}},
		"latin": {map[string]any{"old_string": "one", "new_string": "two"}},
		"link":  {map[string]any{"old_string": "one", "new_string": "two"}},
	} {
		if a := f.call("full", "MultiEdit", map[string]any{"file_path": path, "edits": edits}); a.outcome != "OK" || strings.ContainsAny(a.text, "\r\ufeff") {
			t.Errorf("%s: %s %q", path, a.outcome, a.text)
		}
	}
	for name, want := range map[string]string{"crlf": "\ufeffone\r\nmore\r\ntwo\r\nthree\r\n", "latin": "caf\xe9\ntwo\n", "tool": "two\n"} {
		if got, err := os.ReadFile(filepath.Join(f.workspace, name)); err != nil || string(got) != want {
			t.Errorf("%s has %q, %v", name, got, err)
		}
	}
	if got := strings.TrimSpace(f.bash("stat -c '%a' tool; readlink link")); got != "2755\ntool" {
		t.Errorf("%q", got)
	}
	for path, edit := range map[string][3]string{
		"wide": {"on", "x", "UTF-16"}, "latin": {"caf\uFFFD", "x", "U+FFFD"}, "tool": {"two\r\n", "x", "not found"},
	} {
		a := f.call("full", "Edit", map[string]any{"file_path": path, "old_string": edit[0], "new_string": edit[1]})
		if a.outcome != "ERROR" || !strings.Contains(a.text, edit[2]) {
			t.Errorf("%s: %s %s", path, a.outcome, a.text)
		}
	}
	if a := f.call("full", "Read", map[string]any{"file_path": "wide"}); !strings.Contains(a.text, "UTF-16") {
		t.Errorf("%s", a.text)
	}
}
