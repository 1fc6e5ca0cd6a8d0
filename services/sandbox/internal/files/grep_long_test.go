package files

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestGrepShowsALongLineAroundItsMatch searches for a word in the middle of a line of 30 KB.
func TestGrepShowsALongLineAroundItsMatch(t *testing.T) {
	t.Parallel()
	dir, staging := t.TempDir(), t.TempDir()
	tree, err := Open(dir, staging, Owner{-1, -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tree.Close() })
	side := strings.Repeat("é", 7500)
	for name, c := range map[string]struct {
		line, pattern, want string
		multiline           bool
	}{
		"a word":                     {side + " needle " + side, "needle", "needle", false},
		"a pattern":                  {side + " needle7 " + side, `need[le]+\d`, "needle7", false},
		"either case":                {side + " NEEDLE " + side, "(?i)needle", "NEEDLE", false},
		"at the end":                 {side + side + "needle", "needle$", "needle", false},
		"at the beginning":           {"needle" + side + side, "^needle", "needle", false},
		"over lines":                 {side + side + "needle\nthread" + side, `needle\nthread`, "needle", true},
		"over lines, begins earlier": {"needle" + side + "\nthread" + side, `thread`, "thread", true},
		"a match longer than shown":  {side + "<" + side + ">", "<.*>", "<", false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(dir, "f"), []byte(c.line+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			found := false
			_, err := tree.Grep(t.Context(), GrepQuery{Pattern: c.pattern, Multiline: c.multiline, Max: 10}, func(m GrepMatch) error {
				found = found || strings.Contains(string(m.Text), c.want)
				line := strings.Split(c.line, "\n")[m.Line-1]
				if whole := int64(len(line)); m.CutBefore+int64(len(m.Text))+m.CutAfter != whole {
					return errors.New("the parts are not the whole line")
				}
				if !utf8.Valid(m.Text) || len(m.Text) > maxGrepText || string(m.Text) != line[m.CutBefore:int(m.CutBefore)+len(m.Text)] {
					return errors.New("the text is another one")
				}
				return nil
			})
			if err != nil || !found {
				t.Errorf("found %v, %v", found, err)
			}
		})
	}
}
