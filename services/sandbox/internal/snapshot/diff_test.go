package snapshot

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// told is what a test looks at of a change.
type told struct {
	Path      string
	Status    Status
	Unified   string
	Binary    bool
	Truncated bool
}

func (p *testPlace) diff(r DiffRequest) (all []told, more bool) {
	p.t.Helper()
	p.reopen()
	changes, more, err := p.store.Diff(p.t.Context(), p.tree, r)
	p.must(err)
	for _, c := range changes {
		all = append(all, told{c.Path, c.Status, c.Unified, c.Binary, c.Truncated})
	}
	return all, more
}

func TestADiffTellsEachFile(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("a/edited", "one\ntwo\nthree\n")
	p.write("a-b", "x\n")
	p.write("binary", "\x00\x01")
	p.write("gone", "last\n")
	p.write("huge", strings.Repeat("x\n", maxCompared))
	p.write("mode", "")
	p.must(os.Symlink("here", p.path("link")))
	p.write("same", "same\n")
	p.write("turned", "")
	p.create("one")
	p.write("a/edited", "one\n2\nthree\n")
	p.write("a/new/file", "new\n")
	p.write("binary", "\x00\x02")
	p.must(os.Remove(p.path("gone")))
	p.write("huge", strings.Repeat("y\n", maxCompared))
	p.must(os.Chmod(p.path("mode"), 0o755))
	p.must(os.Remove(p.path("link")))
	p.must(os.Symlink("there", p.path("link")))
	p.must(os.Remove(p.path("turned")))
	p.must(os.Mkdir(p.path("turned"), 0o755))
	want := []told{
		{Path: "a/edited", Status: Modified, Unified: "--- a/a/edited\n+++ b/a/edited\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"},
		{Path: "a/new", Status: Added},
		{Path: "a/new/file", Status: Added, Unified: "--- /dev/null\n+++ b/a/new/file\n@@ -0,0 +1 @@\n+new\n"},
		{Path: "binary", Status: Modified, Binary: true},
		{Path: "gone", Status: Deleted, Unified: "--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-last\n"},
		{Path: "huge", Status: Modified, Truncated: true},
		{Path: "link", Status: Modified, Unified: "--- a/link\n+++ b/link\n@@ -1 +1 @@\n-here\n\\ No newline at end of file\n+there\n\\ No newline at end of file\n"},
		{Path: "mode", Status: ModeChanged},
		{Path: "turned", Status: TypeChanged},
	}
	now, _ := p.diff(DiffRequest{From: "one", Unified: true, Most: 100})
	if diff := cmp.Diff(want, now); diff != "" {
		t.Errorf("against the workspace (-want +got):\n%s", diff)
	}
	p.create("two")
	p.must(os.RemoveAll(filepath.Join(p.dir, "a")))
	both, _ := p.diff(DiffRequest{From: "one", To: "two", Unified: true, Most: 100})
	if diff := cmp.Diff(want, both); diff != "" {
		t.Errorf("between two (-want +got):\n%s", diff)
	}
	var paged []told
	for after, more := "", true; more; after = paged[len(paged)-1].Path {
		var some []told
		some, more = p.diff(DiffRequest{From: "one", To: "two", Unified: true, Most: 2, After: after})
		paged = append(paged, some...)
	}
	if diff := cmp.Diff(want, paged); diff != "" {
		t.Errorf("in pages (-want +got):\n%s", diff)
	}
	if some, _ := p.diff(DiffRequest{From: "one", To: "two", Path: "a/new", Most: 100}); len(some) != 2 {
		t.Errorf("below a path: %+v", some)
	}
}

func TestACopiedStoreHoldsOneSnapshot(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("d/f", "one")
	p.create("one")
	want := p.capture()
	p.write("d/f", "two")
	p.create("two")
	q := newPlace(t)
	p.must(p.store.CopyTo(t.Context(), q.where, "one"))
	p.must(os.RemoveAll(p.where))
	q.restore("one")
	if diff := cmp.Diff(want, q.capture()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if all, err := q.store.List(10, 0); err != nil || len(all) != 1 {
		t.Errorf("listed %+v, %v", all, err)
	}
}

func TestADiffEndsWithWhoAskedForIt(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create("one")
	p.write("f", "x")
	p.create("two")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p.reopen()
	if _, _, err := p.store.Diff(ctx, p.tree, DiffRequest{From: "one", To: "two", Unified: true, Most: 10}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// What a file is called forges no line of a diff, and what is no file any more has no side in it.
func TestTheHeadersOfADiffAreTheirOwnLines(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("folder", "was a file\n")
	p.must(os.Mkdir(p.path("was"), 0o755))
	p.create("one")
	p.must(os.Remove(p.path("folder")))
	p.must(os.Mkdir(p.path("folder"), 0o755))
	p.must(os.Remove(p.path("was")))
	p.write("was", "now a file\n")
	quoted := map[string]string{
		"new\nline":                  `"b/new\nline"`,
		"\a\b\t\n\v\f\r\"\\\x01\x7f": `"b/\a\b\t\n\v\f\r\"\\\001\177"`,
		"a\n+++ b\n@@ -0,0 +1 @@":    `"b/a\n+++ b\n@@ -0,0 +1 @@"`,
		"next\u0085\u2028é":          `"b/next\302\205\342\200\250é"`,
		"plain é ☃":                  "b/plain é ☃",
		"'quoted'":                   "b/'quoted'",
	}
	want := map[string]string{
		"folder": "--- a/folder\n+++ /dev/null\n@@ -1 +0,0 @@\n-was a file\n",
		"was":    "--- /dev/null\n+++ b/was\n@@ -0,0 +1 @@\n+now a file\n",
	}
	for name, header := range quoted {
		p.write(name, "x\n")
		want[name] = "--- /dev/null\n+++ " + header + "\n@@ -0,0 +1 @@\n+x\n"
	}
	all, _ := p.diff(DiffRequest{From: "one", Unified: true, Most: 100})
	got := map[string]string{}
	for _, c := range all {
		got[c.Path] = c.Unified
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A difference of which nothing can be told is not looked for: it takes hundreds of times the
// files' size.
func TestAnAnswerThatIsFullCostsNoMore(t *testing.T) {
	p := newPlace(t)
	lines := func(seed uint64) string {
		r := rand.New(rand.NewPCG(seed, seed))
		var b strings.Builder
		for range 128 << 10 {
			b.WriteString(strconv.Itoa(r.IntN(10)) + "\n")
		}
		return b.String()
	}
	const files = 24 // the answer is full after eight
	older, newer := lines(1), lines(2)
	for n := range files {
		p.write(fmt.Sprintf("f%02d", n), older)
	}
	p.create("one")
	for n := range files {
		p.write(fmt.Sprintf("f%02d", n), newer)
	}
	p.create("two")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	changes, _, err := p.store.Diff(t.Context(), p.tree, DiffRequest{From: "one", To: "two", Unified: true, Most: 100})
	runtime.ReadMemStats(&after)
	p.must(err)
	told := 0
	for _, c := range changes {
		told += len(c.Unified)
		if !c.Truncated {
			t.Errorf("%s is not cut", c.Path)
		}
	}
	if len(changes) != files || told > maxAnswer || told < maxAnswer-maxDiff {
		t.Errorf("%d changes, of which %d bytes are told", len(changes), told)
	}
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 1500 { // some 100 for each that is told
		t.Errorf("it took %d MiB", took)
	}
}
