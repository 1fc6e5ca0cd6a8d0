package files

import (
	"context"
	"strings"
	"testing"
	"time"
)

func FuzzPath(f *testing.F) {
	for _, seed := range []string{"a/file", "../secret", "/workspace/a", "in/../../secret", "out", "d/d/d/file", "a\x00", "/", "", "./.", "abs/etc/passwd"} {
		f.Add(seed)
	}
	tree, _ := newTree(f, map[string]string{"a/file": "text", "in": "->a", "out": "->../secret", "abs": "->/", "up": "->..", "a/d": "->."})
	f.Fuzz(func(t *testing.T, name string) {
		clean, err := Clean(name)
		if err == nil && (clean == ".." || strings.HasPrefix(clean, "../") || strings.HasPrefix(clean, "/")) {
			t.Errorf("%q became %q", name, clean)
		}
		if got, err := contents(tree, name); err == nil && got != "text" {
			t.Errorf("%q read %q", name, got)
		}
		// Past Clean, only the kernel is left to refuse.
		if g, _, err := tree.regular(name); err == nil {
			defer func() { _ = g.Close() }()
			b := make([]byte, 8)
			if n, _ := g.Read(b); string(b[:n]) == "secret" || string(b[:n]) != "text" {
				t.Errorf("%q read %q without cleaning", name, b[:n])
			}
		}
	})
}

func FuzzGlob(f *testing.F) {
	for _, seed := range []string{"**/*", "*.{go,txt}", "[a-z]*", "/workspace/**", "{a,{b,c}}", "\\", "**/**/**/x", "{" + strings.Repeat("a,", 100) + "}"} {
		f.Add(seed)
	}
	tree, _ := newTree(f, map[string]string{"a/b/c/d/e/f": "x", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": "x", "out": "->../secret"})
	f.Fuzz(func(t *testing.T, pattern string) {
		if len(pattern) > 4096 {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		found, _, err := tree.Glob(ctx, pattern, "", 10)
		if ctx.Err() != nil {
			t.Errorf("%q takes too long", pattern)
		}
		for _, i := range found {
			if err == nil && strings.HasPrefix(i.Path, "..") {
				t.Errorf("%q found %s", pattern, i.Path)
			}
		}
	})
}

func FuzzGrep(f *testing.F) {
	f.Add("two", "*.txt", true, uint8(1))
	f.Add("(a*)*b", "**", false, uint8(0))
	f.Add("(?s).*", "", true, uint8(9))
	f.Add("$^", "", true, uint8(0))
	tree, _ := newTree(f, map[string]string{"a.txt": "one\ntwo\n\nthree", "b/c": strings.Repeat("a", 2000), "e": ""})
	f.Fuzz(func(t *testing.T, pattern, glob string, multiline bool, around uint8) {
		if len(pattern) > 4096 || len(glob) > 4096 {
			return
		}
		sent := 0
		q := GrepQuery{Pattern: pattern, Glob: glob, Multiline: multiline, Before: int(around % 4), After: int(around % 3), Max: 5}
		_, err := tree.Grep(t.Context(), q, func(m GrepMatch) error {
			sent++
			if m.Line < 1 || m.Path == "" || len(m.Text) > maxGrepText {
				t.Errorf("%q sent %+v", pattern, m)
			}
			return nil
		})
		if err == nil && sent > q.Max {
			t.Errorf("%q sent %d lines", pattern, sent)
		}
	})
}

// A resolved path leads, without links, to the file to which the kernel leads the path.
func FuzzResolve(f *testing.F) {
	for _, seed := range []string{"a/file", "in/file", "in/d/up/in/file", "chain/file", "loop", "dangling/x", "a/d/d/file", "out", "in/../in/file", "up/a", "abs/etc", "a/file/x"} {
		f.Add(seed)
	}
	links := map[string]string{
		"a/file": "text", "in": "->a", "out": "->../secret", "abs": "->/", "up": "->..", "a/d": "->.", "a/up": "->..", "chain": "->in/d/up/in", "loop": "->loop",
		"dangling": "->none", "twice": "->a/./d//file", "back": "->a/../in/file",
	}
	follows, _ := newTree(f, links)
	strict := *follows
	strict.Rules = &Rules{NoLinks: true}
	f.Fuzz(func(t *testing.T, name string) {
		to, fault := follows.Resolve(name)
		clean, err := Clean(name)
		if err != nil {
			return
		}
		want, err := follows.Mark(clean, true)
		if err != nil {
			return
		}
		if got, err := strict.Mark(to, true); fault != nil || err != nil || got != want {
			t.Errorf("%q leads to %q: %v, %v", name, to, fault, err)
		}
	})
}
