package files

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

func TestResolveFollowsEveryLink(t *testing.T) {
	t.Parallel()
	tree, _ := newTree(t, map[string]string{
		"secret/k": "1", "open": "->secret", "self": "->.", "d/up": "->../open/k", "d/d/chain": "->../up", "dangling": "->none/new", "d/file": "",
		"out": "->../secret", "absolute": "->/etc", "loop": "->loop2", "loop2": "->loop", "through": "->d/file/x", "back": "->none/../secret",
	})
	for name, want := range map[string]string{
		"": ".", "secret/k": "secret/k", "open": "secret", "open/k": "secret/k", "self/self/open/k": "secret/k", "d/up": "secret/k", "d/d/chain": "secret/k",
		"/workspace/open/new/x": "secret/new/x", "dangling": "none/new", "dangling/x": "none/new/x", "self": ".", "none/open": "none/open",
		"through": "d/file/x", "back": "secret", "open/../x": "x",
	} {
		if got, err := tree.Resolve(name); err != nil || got != want {
			t.Errorf("%q leads to %q, %v; want %q", name, got, err, want)
		}
	}
	for name, want := range map[string]error{"out": ErrEscapes, "absolute/passwd": ErrEscapes, "../x": ErrEscapes, "loop": ErrWrongType, "a\x00": ErrName} {
		if got, err := tree.Resolve(name); !errors.Is(err, want) {
			t.Errorf("%q leads to %q, %v; want %v", name, got, err, want)
		}
	}
}

func TestNoLinkIsOpenedOnAResolvedPath(t *testing.T) {
	t.Parallel()
	tree, dir := newTree(t, map[string]string{"secret/k": "1", "open": "->secret", "f": "->secret/k", "new": "->secret/new", "plain/k": "2"})
	tree.Rules = &Rules{NoLinks: true}
	for what, do := range map[string]func() error{
		"reading":             func() error { _, err := contents(tree, "open/k"); return err },
		"reading a link":      func() error { _, err := contents(tree, "f"); return err },
		"writing":             func() error { _, _, err := put(tree, "open/new", "x", Target{}); return err },
		"writing a link":      func() error { _, _, err := put(tree, "new", "x", Target{}); return err },
		"writing below":       func() error { _, _, err := put(tree, "open/a/b", "x", Target{}); return err },
		"editing":             func() error { return editFile(tree, "f", Edit{Old: "1", New: "2"}) },
		"creating by an edit": func() error { return editFile(tree, "new", Edit{New: "x"}) },
		"listing":             func() error { _, _, err := tree.List(t.Context(), "open", "", 9, nil); return err },
		"globbing":            func() error { _, _, err := tree.Glob(t.Context(), "*", "open", 9); return err },
		"searching": func() error {
			_, err := tree.Grep(t.Context(), GrepQuery{Pattern: "1", Path: "open", Max: 9}, func(GrepMatch) error { return nil })
			return err
		},
	} {
		if err := do(); !errors.Is(err, ErrChanged) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if names, err := os.ReadDir(filepath.Join(dir, "secret")); err != nil || len(names) != 1 {
		t.Errorf("%v, %v", names, err)
	}
	if got, err := contents(tree, "plain/k"); err != nil || got != "2" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestSearchesLeaveOutWhatIsDenied(t *testing.T) {
	t.Parallel()
	tree, _ := newTree(t, map[string]string{"secret/k": "needle", "secret/d/k": "needle", "a/open": "needle", "a/.env": "needle", "l": "->a"})
	for _, tc := range []struct {
		given, root string
		denied      []string
		want        string
		leftOut     bool
	}{
		{".", ".", []string{"secret", "secret/**"}, "a/.env a/open", true},
		{".", ".", []string{"**/.env", "**/.env/**"}, "a/open secret/d/k secret/k", true},
		{"a", "a", []string{"secret/**"}, "a/.env a/open", false},
		{"l", "a", []string{"l/.env"}, "a/open", true},
		{"l", "a", []string{"a/open"}, "a/.env", true},
		{"secret", "secret", []string{"secret/d/**"}, "secret/k", true},
	} {
		bind := func() {
			rules, err := NewRules(tc.given, true, tc.denied)
			must(t, err)
			tree.Rules = rules
		}
		check := func(what string, got []string) {
			slices.Sort(got)
			if s := strings.Join(got, " "); s != tc.want || tree.Rules.LeftOut != tc.leftOut {
				t.Errorf("%s %s without %s: %s, %v", what, tc.given, tc.denied, s, tree.Rules.LeftOut)
			}
		}
		var got []string
		bind()
		_, err := tree.Grep(t.Context(), GrepQuery{Pattern: "needle", Path: tc.root, Max: 9, Mode: GrepFiles}, func(m GrepMatch) error { got = append(got, m.Path); return nil })
		must(t, err)
		check("grep", got)
		bind()
		all, _, err := tree.Glob(t.Context(), "**/*", tc.root, 9)
		must(t, err)
		got = nil
		for _, i := range all {
			if i.Type == Regular {
				got = append(got, i.Path)
			}
		}
		check("glob", got)
	}
	rules, err := NewRules("l", true, []string{"l/.env"})
	must(t, err)
	tree.Rules = rules
	if all, _, err := tree.List(t.Context(), "a", "", 9, nil); err != nil || len(all) != 1 || all[0].Path != "a/open" || !rules.LeftOut {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := NewRules(".", false, []string{"["}); !errors.Is(err, ErrPattern) {
		t.Errorf("a rule that cannot be read: %v", err)
	}
}

// A link that turns all the time never makes a resolved path lead to another file.
func TestALinkThatTurnsDoesNotTurnADecision(t *testing.T) {
	t.Parallel()
	tree, dir := newTree(t, map[string]string{"secret/k": "secret", "public/k": "public", "link": "->public"})
	ctx, stop := context.WithCancel(t.Context())
	var turning errgroup.Group
	turning.Go(func() error {
		for i := 0; ctx.Err() == nil; i++ {
			next := filepath.Join(dir, "next")
			if err := errors.Join(unix.Symlink([]string{"secret", "public"}[i%2], next), unix.Rename(next, filepath.Join(dir, "link"))); err != nil {
				return err
			}
		}
		return nil
	})
	tree.Rules = &Rules{NoLinks: true}
	for range 300 {
		to, err := tree.Resolve("link/k")
		must(t, err)
		if to == "secret/k" {
			continue // denied
		}
		if got, err := contents(tree, to); err != nil || got != "public" {
			t.Fatalf("%s: %q, %v", to, got, err)
		}
	}
	stop()
	must(t, turning.Wait())
}

func TestNamesWithBracketsAreFound(t *testing.T) {
	t.Parallel()
	tree, _ := newTree(t, map[string]string{
		"app/[id]/(auth)/page.tsx": "needle", "app/i/page.tsx": "needle", "{a,b}.txt": "needle", "open[": "needle", `back\slash`: "needle", "sta*r/f": "needle", "a.txt": "",
	})
	for pattern, want := range map[string]string{
		"app/[id]/(auth)/page.tsx": "app/[id]/(auth)/page.tsx",
		"app/[id]/**":              "app/[id]/(auth)/page.tsx app/i/page.tsx",
		"app/[id]/*/page.tsx":      "app/[id]/(auth)/page.tsx",
		"**/[id]/**/*.tsx":         "app/[id]/(auth)/page.tsx app/i/page.tsx",
		`app/\[id\]/**`:            "app/[id]/(auth)/page.tsx",
		"{a,b}.txt":                "a.txt {a,b}.txt",
		"open[":                    "open[",
		`back\slash`:               `back\slash`,
		"sta*r/f":                  "sta*r/f",
	} {
		all, _, err := tree.Glob(t.Context(), pattern, "", 99)
		got := make([]string, 0, len(all))
		for _, i := range all {
			got = append(got, i.Path)
		}
		slices.Sort(got)
		if s := strings.Join(got, " "); err != nil || s != want {
			t.Errorf("%s finds %s, %v; want %s", pattern, s, err, want)
		}
		found := map[string]bool{}
		_, err = tree.Grep(t.Context(), GrepQuery{Pattern: "needle", Glob: pattern, Max: 99, Mode: GrepFiles}, func(m GrepMatch) error { found[m.Path] = true; return nil })
		for _, name := range got {
			if name != "a.txt" && !found[name] {
				t.Errorf("grep with glob %s finds %v, %v; not %s", pattern, found, err, name)
			}
		}
	}
	if all, more, err := tree.Glob(t.Context(), "{a,b}.txt", "", 1); err != nil || !more || all[0].Path != "{a,b}.txt" {
		t.Errorf("the file that a pattern names itself is not first: %v, %v", all, err)
	}
	for _, pattern := range []string{"none[", "{", `\`, strings.Repeat("{a,b}", 17)} {
		if _, _, err := tree.Glob(t.Context(), pattern, "", 9); !errors.Is(err, ErrPattern) {
			t.Errorf("%s: %v", pattern, err)
		}
		if _, err := tree.Grep(t.Context(), GrepQuery{Pattern: "x", Glob: pattern, Max: 9}, func(GrepMatch) error { return nil }); !errors.Is(err, ErrPattern) {
			t.Errorf("grep with glob %s: %v", pattern, err)
		}
	}
}

func TestANameThatIsTooLongIsNotOutside(t *testing.T) {
	t.Parallel()
	tree, _ := newTree(t, nil)
	for name, says := range map[string]string{
		strings.Repeat("n", 400):           "a name in it is too long, with 400 bytes: 255",
		strings.Repeat("d/", 2500) + "f":   "it is too long, with 5001 bytes: 4095",
		strings.Repeat("é", 200) + "/file": "with 400 bytes",
	} {
		_, err := contents(tree, name)
		_, _, written := put(tree, strings.Repeat("n", 400), "x", Target{})
		_, resolved := tree.Resolve(name)
		if !errors.Is(err, ErrName) || !strings.Contains(err.Error(), says) || !errors.Is(written, ErrName) || !errors.Is(resolved, ErrName) {
			t.Errorf("%.20s: %v; written: %v; resolved: %v", name, err, written, resolved)
		}
	}
}

func TestAnotherUnicodeFormOfANameIsNamed(t *testing.T) {
	t.Parallel()
	const composed, apart = "caf\u00e9", "cafe\u0301"
	tree, _ := newTree(t, map[string]string{apart + "/" + apart: "text", "both/" + composed: "1", "both/" + apart: "2"})
	var fault *SimilarError
	if _, err := contents(tree, composed+"/"+composed); !errors.As(err, &fault) || !errors.Is(err, ErrNotFound) || fault.Similar != apart+"/"+apart {
		t.Errorf("%v", err)
	}
	if _, err := tree.Edit(apart+"/"+composed, []Edit{{Old: "text", New: "x"}}); !errors.As(err, &fault) {
		t.Errorf("%v", err)
	}
	if _, _, err := tree.List(t.Context(), composed, "", 9, nil); !errors.As(err, &fault) || fault.Similar != apart {
		t.Errorf("%v", err)
	}
	if _, err := contents(tree, composed+"/other"); errors.As(err, &fault) || !errors.Is(err, ErrNotFound) {
		t.Errorf("%v", err)
	}
	if _, _, err := put(tree, composed, "x", Target{}); err != nil {
		t.Errorf("a new name: %v", err)
	}
	for _, pattern := range []string{"both/" + composed, "both/" + apart, "both/[" + composed + "]*"} {
		if all, _, err := tree.Glob(t.Context(), pattern, "", 9); err != nil || len(all) != 2 {
			t.Errorf("%q finds %v, %v", pattern, all, err)
		}
	}
}
