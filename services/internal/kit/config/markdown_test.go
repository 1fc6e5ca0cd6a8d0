package config

import (
	"strings"
	"testing"
)

func TestTheTableHasSections(t *testing.T) {
	rows := []Row{{Key: "http"}, {Key: "log.level"}, {Key: "s.data"}, {Key: "s.budgets.a"}, {Key: "s.budgets.b"}, {Key: "s.budgets.c"}, {Key: "s.budgets.d.e"}, {Key: "grace"}}
	for name, c := range map[string]struct {
		depth int
		want  string
	}{
		"a section of four keys has a table, a smaller one is with the keys around it": {2, "T http log.level grace s s.data s.budgets s.budgets.a s.budgets.b s.budgets.c s.budgets.d.e"},
		"a section deeper than the depth is with the keys around it":                   {1, "T http log.level grace s s.data s.budgets.a s.budgets.b s.budgets.c s.budgets.d.e"},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			if err := WriteTable(&b, "T", c.depth, rows); err != nil {
				t.Fatal(err)
			}
			var got []string
			for line := range strings.SplitSeq(b.String(), "\n") {
				if first := strings.Trim(strings.TrimLeft(strings.SplitN(strings.TrimPrefix(line, "| "), " |", 2)[0], "# "), "`"); first != "" && first != "key" && first != "---" {
					got = append(got, first)
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %s", strings.Join(got, " "))
			}
		})
	}
}
