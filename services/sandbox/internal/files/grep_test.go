package files

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// naive searches line by line.
func naive(pattern string, ignoreCase bool, before, after int, text string) (all []string) {
	flags := "(?m)"
	if ignoreCase {
		flags = "(?mi)"
	}
	re := regexp.MustCompile(flags + pattern)
	lines := strings.Split(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	for i, line := range lines {
		match, near := re.MatchString(line), false
		for k := max(0, i-after); k <= min(len(lines)-1, i+before); k++ {
			near = near || re.MatchString(lines[k])
		}
		switch {
		case match:
			all = append(all, fmt.Sprintf("%d:%s", i+1, line))
		case near:
			all = append(all, fmt.Sprintf("%d-%s", i+1, line))
		}
	}
	return all
}

func grepped(t *testing.T, tree *Tree, q GrepQuery) (all []string) {
	t.Helper()
	_, err := tree.Grep(t.Context(), q, func(m GrepMatch) error {
		mark := ":"
		if m.Context {
			mark = "-"
		}
		all = append(all, fmt.Sprintf("%d%s%s", m.Line, mark, m.Text))
		return nil
	})
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	return all
}

// TestGrepFindsWhatALineByLineSearchFinds compares the two on many texts.
func TestGrepFindsWhatALineByLineSearchFinds(t *testing.T) {
	patterns := []string{
		"one", "ONE", "one two", "^one", "one$", "^$", "$", "^", "", "o.e", "[^a]", `\s`, `\n`, "one\ntwo", `one\s+two`, "(one|two)", "one+", "(one){2}",
		`\bone\b`, `\Aone`, `one\z`, "(?s)one.*two", "x*", "k", "skin", "kiosk one", "[[:space:]]two", `(?i)One`, `(?-m)^one$`, "é", "ſ", "İx",
	}
	words := []string{"one", "two", "One", "TWO", "", " ", "oneone", "kiosk", "\u212Aiosk", "ſkin", "é", "one two", "\t", "x", "İx"}
	r := rand.New(rand.NewPCG(1, 2))
	dir := t.TempDir()
	tree, err := Open(dir, t.TempDir(), Owner{-1, -1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tree.Close() }()
	for round := range 60 {
		var text strings.Builder
		for range r.IntN(30) {
			text.WriteString(words[r.IntN(len(words))])
			text.WriteString([]string{"\n", " ", "\n\n"}[r.IntN(3)])
		}
		if err := os.WriteFile(filepath.Join(dir, "f"), []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, p := range patterns {
			q := GrepQuery{Pattern: p, IgnoreCase: round%2 == 0, Before: round % 3, After: round / 3 % 3, Max: 1000}
			if d := cmp.Diff(naive(p, q.IgnoreCase, q.Before, q.After, text.String()), grepped(t, tree, q)); d != "" {
				t.Fatalf("%+v on %q: %s", q, text.String(), d)
			}
		}
	}
}

// TestGrepKeepsTheOrderOfFiles has one that yields more than is handed on at once
// stand before many others.
func TestGrepKeepsTheOrderOfFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var want []string
	for i := range 300 {
		name, lines := fmt.Sprintf("f%03d", i), 1+i%7
		if i == 3 {
			lines = 2000
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Repeat("hit\n", lines)), 0o600); err != nil {
			t.Fatal(err)
		}
		for n := range lines {
			want = append(want, fmt.Sprintf("%s:%d", name, n+1))
		}
	}
	tree, err := Open(dir, t.TempDir(), Owner{-1, -1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tree.Close() }()
	for _, most := range []int{1, 64, 65, 2000, len(want), len(want) + 1} {
		var got []string
		more, err := tree.Grep(t.Context(), GrepQuery{Pattern: "hit", Max: most}, func(m GrepMatch) error {
			got = append(got, fmt.Sprintf("%s:%d", m.Path, m.Line))
			return nil
		})
		if err != nil || more != (most < len(want)) {
			t.Errorf("at most %d: more %v, %v", most, more, err)
		}
		if d := cmp.Diff(want[:min(most, len(want))], got); d != "" {
			t.Errorf("at most %d: %s", most, d)
		}
	}
	fault := errors.New("no listener")
	if _, err := tree.Grep(t.Context(), GrepQuery{Pattern: "hit", Max: 10_000}, func(GrepMatch) error { return fault }); !errors.Is(err, fault) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = tree.Grep(ctx, GrepQuery{Pattern: "hit", Max: 10_000}, func(GrepMatch) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
