package files

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A short pattern may take thousands of steps for each byte.
func TestACostlySearchEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	costly := "(?:" + strings.Repeat("[ab]?", 8) + "){1000}[cd]"
	line := strings.Repeat("ab", 50)
	for what, text := range map[string]string{
		"lines": strings.Repeat(line+"\n", 10_000), "one line": strings.Repeat(line, 10_000),
	} {
		for _, pattern := range []string{costly, costly + "?b"} {
			tree, _ := newTree(t, map[string]string{"f": text + "\nlast d\n"})
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			_, err := tree.Grep(ctx, GrepQuery{Pattern: pattern + "[xy]", Max: 10}, func(GrepMatch) error { return nil })
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) { // To its end it would take hours.
				t.Errorf("%s: it ended: %v", what, err)
			}
		}
	}
}

func TestACostlySearchFindsWhatThereIs(t *testing.T) {
	t.Parallel()
	// Of more than one piece, and with a line that is longer than one.
	text := strings.Repeat("é\n\n", 20_000) + "x" + strings.Repeat("é", 40_000) + "yé\n" + strings.Repeat("\n", 70_000) + "xy\xff\n"
	tree, _ := newTree(t, map[string]string{"f": text})
	for _, pattern := range []string{"[xz].*[yz]", "[yz]é?$", "^[xz]", "[xz]y."} {
		for _, q := range []GrepQuery{{Pattern: pattern, Max: 10}, {Pattern: pattern + "|[^\\x00-\\x{10FFFF}]{1000}", Max: 10}} {
			var want, got []int64
			for i, l := range strings.Split(text, "\n") {
				if strings.HasPrefix(l, "x") && (pattern != "[xz]y." || len(l) < 10) && (pattern != "[yz]é?$" || len(l) > 10) {
					want = append(want, int64(i+1))
				}
			}
			_, err := tree.Grep(t.Context(), q, func(m GrepMatch) error { got = append(got, m.Line); return nil })
			if d := cmp.Diff(want, got); d != "" || err != nil {
				t.Errorf("%.20s: %v %s", q.Pattern, err, d)
			}
		}
	}
}

func TestAPatternThatIsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	tree, _ := newTree(t, nil)
	for _, p := range []string{"(" + strings.Repeat("(a|b)?", 500) + "){300}", "(?:(?:abcdef){30}){30}x{1000}(?:abc){1000}" + strings.Repeat("x{1000}", 40)} {
		if _, err := tree.Grep(t.Context(), GrepQuery{Pattern: p, Max: 1}, nil); !errors.Is(err, ErrPattern) {
			t.Errorf("%.20s: %v", p, err)
		}
	}
}
