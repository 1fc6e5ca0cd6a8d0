package files

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newTree makes a workspace with files in it, beside a secret. A name that ends
// with a slash is a directory, a content that begins with -> a link.
func newTree(t testing.TB, content map[string]string) (*Tree, string) {
	t.Helper()
	base := t.TempDir()
	dir := filepath.Join(base, "workspace")
	for _, d := range []string{dir, filepath.Join(base, "staging")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(base, "secret"), []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, text := range content {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		switch target, link := strings.CutPrefix(text, "->"); {
		case strings.HasSuffix(name, "/"):
			err = errors.Join(err, os.MkdirAll(path, 0o755))
		case link:
			err = errors.Join(err, os.Symlink(target, path))
		default:
			err = errors.Join(err, os.WriteFile(path, []byte(text), 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	tree, err := Open(dir, filepath.Join(base, "staging"), Owner{UID: -1, GID: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tree.Close() })
	return tree, dir
}

func contents(t *Tree, name string) (string, error) {
	r, err := t.Read(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }()
	var b strings.Builder
	err = r.Bytes(0, 0, func(p []byte) error { b.Write(p); return nil })
	return b.String(), err
}

func put(t *Tree, name, text string, to Target) (Info, bool, error) {
	d, err := t.Draft()
	if err != nil {
		return Info{}, false, err
	}
	defer d.Discard()
	if _, err := d.Write([]byte(text)); err != nil {
		return Info{}, false, err
	}
	return t.Put(d, name, to)
}

func TestPathsStayInside(t *testing.T) {
	t.Parallel()
	tree, dir := newTree(t, map[string]string{
		"a/file": "text", "in": "->a/file", "a/up": "->../a/file", "a/back": "->../in", "out": "->../secret", "abs": "->/etc/passwd",
		"root": "->/", "parent": "->..", "self": "->self", "dangling": "->nothing", "proc": "->/proc/self/root/etc/passwd", "d": "->a",
		"workspace": "->/workspace/a/file",
	})
	if err := unix.Mkfifo(filepath.Join(dir, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		path string
		want error // nil: the file's text is read
	}{
		{"a/file", nil}, {"./a//file", nil}, {"/workspace/a/file", nil}, {"a/../a/file", nil}, {"in", nil}, {"a/up", nil}, {"a/back", nil}, {"d/file", nil},
		{"../secret", ErrEscapes}, {"a/../../secret", ErrEscapes}, {"/etc/passwd", ErrEscapes}, {"/workspace/../etc/passwd", ErrEscapes},
		{"/workspaces", ErrEscapes}, {"out", ErrEscapes}, {"abs", ErrEscapes}, {"root/etc/passwd", ErrEscapes}, {"parent/secret", ErrEscapes},
		{"proc", ErrEscapes}, {"workspace", ErrEscapes}, {"self", ErrWrongType}, {"dangling", ErrNotFound}, {"none", ErrNotFound}, {"a", ErrWrongType}, {"", ErrWrongType},
		{"a/file/x", ErrWrongType}, {"fifo", ErrWrongType}, {"a\x00b", ErrName}, {strings.Repeat("x", 300), ErrName},
	} {
		got, err := contents(tree, tc.path)
		if !errors.Is(err, tc.want) || tc.want == nil && got != "text" {
			t.Errorf("%q: %q, %v, want %v", tc.path, got, err, tc.want)
		}
	}
}

func TestWritesStayInside(t *testing.T) {
	t.Parallel()
	tree, dir := newTree(t, map[string]string{
		"out": "->../secret", "outdir": "->..", "dangling": "->../new", "in": "->sub/real", "sub/real": "old", "deep": "->sub/../sub/real", "dir/": "", "loop": "->loop",
	})
	for _, tc := range []struct {
		path string
		want error
	}{
		{"new/folder/file", nil}, {"in", nil}, {"deep", nil},
		{"out", ErrEscapes}, {"outdir/x", ErrEscapes}, {"dangling", ErrEscapes}, {"../x", ErrEscapes}, {"outdir/new/x", ErrEscapes},
		{"dir", ErrWrongType}, {".", ErrWrongType}, {"sub/real/x", ErrWrongType}, {"loop", ErrWrongType},
	} {
		_, _, err := put(tree, tc.path, "new", Target{})
		if !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", tc.path, err, tc.want)
		}
	}
	if got, err := os.ReadFile(filepath.Join(filepath.Dir(dir), "secret")); err != nil || string(got) != "secret" {
		t.Errorf("the secret is %q, %v", got, err)
	}
	if target, err := os.Readlink(filepath.Join(dir, "in")); err != nil || target != "sub/real" {
		t.Errorf("the link became %q, %v", target, err)
	}
	if got, err := contents(tree, "sub/real"); err != nil || got != "new" {
		t.Errorf("%q, %v", got, err)
	}
	if left, err := os.ReadDir(tree.staging); err != nil || len(left) != 0 {
		t.Errorf("drafts are left: %v, %v", left, err)
	}
}

func TestConditionsOfAWrite(t *testing.T) {
	t.Parallel()
	tree, _ := newTree(t, map[string]string{"f": "one"})
	i, err := tree.Stat("f")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := put(tree, "f", "two", Target{CreateOnly: true}); !errors.Is(err, ErrExists) {
		t.Errorf("create only: %v", err)
	}
	two, created, err := put(tree, "f", "two", Target{IfEtag: i.Etag})
	if err != nil || created || two.Etag == i.Etag {
		t.Errorf("%+v %v %v", two, created, err)
	}
	if _, _, err := put(tree, "f", "three", Target{IfEtag: i.Etag}); !errors.Is(err, ErrEtag) {
		t.Errorf("an old etag: %v", err)
	}
	if _, _, err := put(tree, "g", "x", Target{IfEtag: i.Etag}); !errors.Is(err, ErrEtag) {
		t.Errorf("an etag of nothing: %v", err)
	}
	if g, created, err := put(tree, "g", "x", Target{Mode: 0o755}); err != nil || !created || g.Mode != 0o755 {
		t.Errorf("%+v %v %v", g, created, err)
	}
	if g, _, err := put(tree, "g", "y", Target{Mode: 0o600}); err != nil || g.Mode != 0o755 {
		t.Errorf("the mode of a file that was there: %+v %v", g, err)
	}
}

// TestRacesStayInside swaps a directory and a link to outside as fast as it can,
// while files are read, written and removed through it.
func TestRacesStayInside(t *testing.T) {
	t.Parallel()
	tree, dir := newTree(t, map[string]string{"real/file": "inside", "swap": "->../outside"})
	outside := filepath.Join(filepath.Dir(dir), "outside")
	if err := errors.Join(os.Mkdir(outside, 0o755), os.WriteFile(outside+"/file", []byte("outside"), 0o644)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			_ = unix.Renameat2(unix.AT_FDCWD, dir+"/real", unix.AT_FDCWD, dir+"/swap", unix.RENAME_EXCHANGE)
		}
	})
	reads, refused := 0, 0
	for ctx.Err() == nil {
		got, err := contents(tree, "swap/file")
		switch {
		case got == "outside":
			t.Error("the file outside was read")
			stop()
		case err == nil:
			reads++
		default:
			refused++
		}
		_, _, _ = put(tree, "swap/new", "x", Target{})
		_, _, _ = put(tree, "swap/sub/new", "x", Target{})
		_ = tree.Remove("swap/sub", true, nil)
		_ = tree.Remove("swap/new", false, nil)
		if _, err := tree.Grep(ctx, GrepQuery{Pattern: "outside", Max: 10}, func(m GrepMatch) error {
			t.Errorf("the file outside was searched: %s", m.Path)
			return nil
		}); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	}
	wg.Wait()
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("outside holds %v, %v", entries, err)
	}
	if reads == 0 || refused == 0 {
		t.Errorf("no race: %d read, %d refused", reads, refused)
	}
}

func TestRemove(t *testing.T) {
	t.Parallel()
	tree, dir := newTree(t, map[string]string{"f": "x", "d/e/f": "x", "empty/": "", "out": "->../secret", "outdir": "->.."})
	for _, tc := range []struct {
		path      string
		recursive bool
		want      error
	}{
		{"f", false, nil}, {"f", false, ErrNotFound}, {"empty", false, nil}, {"d", false, ErrNotEmpty}, {"d", true, nil},
		{"out", false, nil}, {"outdir/secret", false, ErrEscapes}, {"outdir", true, nil}, {".", true, ErrWrongType}, {"..", true, ErrEscapes},
	} {
		if err := tree.Remove(tc.path, tc.recursive, nil); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", tc.path, err, tc.want)
		}
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(dir), "secret")); err != nil {
		t.Error(err)
	}
}

func TestListHasPages(t *testing.T) {
	t.Parallel()
	tree, _ := newTree(t, map[string]string{"a": "1", "b/": "", "c": "->a", "d.log": "x", "e": "x"})
	var got []string
	for after, more := "", true; more; {
		var page []Info
		var err error
		if page, more, err = tree.List(t.Context(), "", after, 2, []string{"*.log"}); err != nil {
			t.Fatal(err)
		}
		for _, i := range page {
			got = append(got, i.Path)
		}
		after = page[len(page)-1].Path
	}
	if d := cmp.Diff([]string{"a", "b", "c", "e"}, got); d != "" {
		t.Error(d)
	}
	if _, _, err := tree.List(t.Context(), "", "", 2, []string{"["}); !errors.Is(err, ErrPattern) {
		t.Errorf("%v", err)
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	tree, _ := newTree(t, map[string]string{"f": "one\ntwo\nthrée\nfour", "long": strings.Repeat("x", 200_000) + "\nend\n", "empty": ""})
	for _, tc := range []struct {
		name, file string
		part       Lines
		want       string
		end        End
	}{
		{"all", "f", Lines{}, "one\ntwo\nthrée\nfour", End{Lines: 4}},
		{"some", "f", Lines{First: 2, Count: 2}, "two\nthrée\n", End{Lines: 2, More: true}},
		{"the last", "f", Lines{First: 4, Count: 9}, "four", End{Lines: 1}},
		{"beyond the end", "f", Lines{First: 9}, "", End{}},
		{"cut before a character", "f", Lines{First: 3, Count: 1, MaxLine: 4}, "thr\n", End{Lines: 1, Cut: 1, More: true}},
		{"a long line", "long", Lines{MaxLine: 3}, "xxx\nend\n", End{Lines: 2, Cut: 1}},
		{"at most so many bytes", "f", Lines{Max: 6}, "one\ntw\n", End{Lines: 2, Cut: 1, More: true}},
		{"nothing", "empty", Lines{}, "", End{}},
	} {
		r, err := tree.Read(tc.file)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		end, err := r.Lines(tc.part, func(p []byte) error { b.Write(p); return nil })
		_ = r.Close()
		if err != nil || b.String() != tc.want || end != tc.end {
			t.Errorf("%s: %.40q %+v %v", tc.name, b.String(), end, err)
		}
	}
}

func TestGlob(t *testing.T) {
	t.Parallel()
	tree, dir := newTree(t, map[string]string{"a.go": "", "b/c.go": "", "b/d/e.go": "", "b/x.txt": "", ".hidden/h.go": "", "link.go": "->a.go", "out": "->/etc"})
	for i, name := range []string{"b/x.txt", "link.go", ".hidden/h.go", "b/d/e.go", "b/c.go", "a.go"} {
		when := unix.NsecToTimeval(int64(i+1) * 1e9)
		if err := unix.Lutimes(filepath.Join(dir, name), []unix.Timeval{when, when}); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		pattern, path string
		limit         int
		want          []string
		more          bool
	}{
		{"**/*.go", "", 9, []string{"a.go", "b/c.go", "b/d/e.go", ".hidden/h.go", "link.go"}, false},
		{"*.go", "", 1, []string{"a.go"}, true},
		{"**/*.{go,txt}", "b", 9, []string{"b/c.go", "b/d/e.go", "b/x.txt"}, false},
		{"/workspace/b/*.go", "", 9, []string{"b/c.go"}, false},
		{"./b/?.go", "", 9, []string{"b/c.go"}, false},
		{"none", "", 9, nil, false},
	} {
		got, more, err := tree.Glob(t.Context(), tc.pattern, tc.path, tc.limit)
		var names []string
		for _, i := range got {
			names = append(names, i.Path)
		}
		if d := cmp.Diff(tc.want, names); d != "" || more != tc.more || err != nil {
			t.Errorf("%s: %s %v %v", tc.pattern, d, more, err)
		}
	}
	for _, bad := range []string{"[", "{a", strings.Repeat("{a,b}", 12), strings.Repeat("{{a},a,a,a}", 6), strings.Repeat("{[}],a,a,a}", 6)} {
		if _, _, err := tree.Glob(t.Context(), bad, "", 1); !errors.Is(err, ErrPattern) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	for _, good := range []string{strings.Repeat("{a,b}", 10), "{" + strings.Repeat("a,", 1000) + "{b,c}}", `{[{,}],a}\{,,,,`, "{" + strings.Repeat("{a,b},", 16/2) + "c}"} {
		if _, _, err := tree.Glob(t.Context(), good, "", 1); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	if _, _, err := tree.Glob(t.Context(), "/etc/*", "", 1); !errors.Is(err, ErrEscapes) {
		t.Errorf("outside: %v", err)
	}
}

func TestGrep(t *testing.T) {
	t.Parallel()
	tree, _ := newTree(t, map[string]string{
		"a.txt": "one\ntwo\nthree\nfour\nTWO\n", "b/c.go": "two", "bin": "two\x00", ".git/config": "two", "out": "->/etc/passwd", "long": strings.Repeat("y", 5000) + "two",
	})
	for _, tc := range []struct {
		name string
		q    GrepQuery
		want []string
		more bool
	}{
		{"lines", GrepQuery{Pattern: "^two$", Max: 9}, []string{"a.txt:2:two", "b/c.go:1:two"}, false},
		{"both cases", GrepQuery{Pattern: "two", Path: "a.txt", IgnoreCase: true, Max: 9}, []string{"a.txt:2:two", "a.txt:5:TWO"}, false},
		{"around", GrepQuery{Pattern: "three", Before: 1, After: 1, Max: 9}, []string{"a.txt-2-two", "a.txt:3:three", "a.txt-4-four"}, false},
		{"over lines", GrepQuery{Pattern: "one.two", Multiline: true, Max: 9}, []string{"a.txt:1:one", "a.txt:2:two"}, false},
		{"a glob", GrepQuery{Pattern: "two", Glob: "*.go", Max: 9}, []string{"b/c.go:1:two"}, false},
		{"files", GrepQuery{Pattern: "t", Mode: GrepFiles, Max: 2}, []string{"a.txt", "b/c.go"}, true},
		{"counts", GrepQuery{Pattern: "t", Glob: "a*", Mode: GrepCount, Max: 9}, []string{"a.txt=2"}, false},
		{"enough", GrepQuery{Pattern: "o", Path: "a.txt", Max: 1}, []string{"a.txt:1:one"}, true},
	} {
		var got []string
		more, err := tree.Grep(t.Context(), tc.q, func(m GrepMatch) error {
			switch {
			case tc.q.Mode == GrepFiles:
				got = append(got, m.Path)
			case tc.q.Mode == GrepCount:
				got = append(got, m.Path+"="+string(rune('0'+m.Count)))
			case m.Context:
				got = append(got, m.Path+"-"+string(rune('0'+m.Line))+"-"+string(m.Text))
			default:
				got = append(got, m.Path+":"+string(rune('0'+m.Line))+":"+string(m.Text))
			}
			return nil
		})
		if d := cmp.Diff(tc.want, got); d != "" || more != tc.more || err != nil {
			t.Errorf("%s: %s %v %v", tc.name, d, more, err)
		}
	}
	if _, err := tree.Grep(t.Context(), GrepQuery{Pattern: "(", Max: 1}, nil); !errors.Is(err, ErrPattern) {
		t.Errorf("%v", err)
	}
	if _, err := tree.Grep(t.Context(), GrepQuery{Pattern: "x", Path: "../secret", Max: 1}, nil); !errors.Is(err, ErrEscapes) {
		t.Errorf("%v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tree.Grep(cancelled, GrepQuery{Pattern: "x", Max: 1}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestEdits(t *testing.T) {
	t.Parallel()
	tree, _ := newTree(t, map[string]string{"f": "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nb\n", "empty": "", "out": "->../secret"})
	e, err := tree.Edit("f", []Edit{{Old: "f\n", New: "F\nF2\n"}, {Old: "F2", New: "G2"}})
	if err != nil || e.Snippet != "b\nc\nd\ne\nF\nG2\ng\nh\ni\nj\n" || e.FirstLine != 2 {
		t.Errorf("%q from %d, %v", e.Snippet, e.FirstLine, err)
	}
	var fault *EditError
	if _, err := tree.Edit("f", []Edit{{Old: "a", New: "x"}, {Old: "b", New: "x"}}); !errors.As(err, &fault) || fault.Index != 1 || fault.Found != 2 {
		t.Errorf("%v", err)
	}
	if _, err := tree.Edit("f", []Edit{{Old: "zz"}}); !errors.As(err, &fault) || fault.Found != 0 {
		t.Errorf("%v", err)
	}
	if e, err := tree.Edit("f", []Edit{{Old: "b", New: "B", All: true}}); err != nil || e.Replacements[0] != 2 {
		t.Errorf("%v %v", e.Replacements, err)
	}
	for _, name := range []string{"new", "empty"} {
		if e, err := tree.Edit(name, []Edit{{New: "text"}}); err != nil || string(e.Content) != "text" {
			t.Errorf("%s: %q %v", name, e.Content, err)
		}
	}
	if _, err := tree.Edit("f", []Edit{{New: "text"}}); !errors.Is(err, ErrExists) {
		t.Errorf("%v", err)
	}
	if _, err := tree.Edit("none", []Edit{{Old: "x"}}); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v", err)
	}
	if _, err := tree.Edit("out", []Edit{{Old: "secret", New: "x"}}); !errors.Is(err, ErrEscapes) {
		t.Errorf("%v", err)
	}
}

func TestAFullDiskIsOneWordWhateverTheFileSystemSays(t *testing.T) {
	t.Parallel()
	for _, e := range []error{unix.EDQUOT, unix.ENOSPC} {
		if err := refine("f", e); !errors.Is(err, ErrNoRoom) {
			t.Errorf("%v is told as %v", e, err)
		}
	}
	// /dev/full refuses to be written to as a full disk does.
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	d := &Draft{file: full}
	defer func() { _ = full.Close() }()
	if _, err := d.Write([]byte("x")); !errors.Is(err, ErrNoRoom) {
		t.Errorf("writing is told as %v", err)
	}
}

func TestWhatIsNoDirectoryIsSaidToBeNone(t *testing.T) {
	tree, dir := newTree(t, map[string]string{"empty": "", "link": "->empty", "folder/inner": ""})
	must(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	uses := map[string]func(name string) error{
		"list":  func(name string) error { _, _, err := tree.List(t.Context(), name, "", 1, nil); return err },
		"glob":  func(name string) error { _, _, err := tree.Glob(t.Context(), "*", name, 1); return err },
		"watch": func(name string) error { return tree.Watch(t.Context(), name, nil) },
		"grep": func(name string) error {
			_, err := tree.Grep(t.Context(), GrepQuery{Pattern: "x", Path: name, Max: 1}, func(GrepMatch) error { return nil })
			return err
		},
	}
	for name, want := range map[string]string{
		"empty": "empty is not a directory", "link": "link is not a directory", "pipe": "pipe is not a directory",
		"empty/x": "a part of empty/x is not a directory", "folder/inner/x/y": "a part of folder/inner/x/y is not a directory",
	} {
		for use, do := range uses {
			want := want
			if use == "grep" {
				switch name {
				case "empty", "link":
					continue // it searches files, too
				case "pipe":
					want = "pipe is not a regular file"
				}
			}
			if err := do(name); !errors.Is(err, ErrWrongType) || !strings.HasSuffix(err.Error(), ": "+want) {
				t.Errorf("%s %s: %v", use, name, err)
			}
		}
	}
}
