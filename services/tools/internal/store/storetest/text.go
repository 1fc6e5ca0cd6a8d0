package storetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/tools/internal/store"
)

// strangeTexts records texts that not every database accepts: every backend stores the
// same text, and the rest of the row is recorded.
func strangeTexts(t *testing.T, s store.Store) {
	for i, c := range []struct{ text, want string }{
		{"Ba\x00sh", `Ba\x00sh`},
		{"\x00", `\x00`},
		{"a\xffb", `a\xffb`},
		{"a lone surrogate \xed\xa0\xbd", `a lone surrogate \xed\xa0\xbd`},
		{"\x1b[31mred\x7f", `\x1b[31mred\x7f`},
		{"line\n\tline — \u2028 é 😀 \" \\ '", "line\n\tline — \u2028 é 😀 \" \\ '"},
		{strings.Repeat("x", 1<<20), strings.Repeat("x", 1<<10) + "…"},
	} {
		r := ref(fmt.Sprint("c", i))
		begin := started(ann, long)
		begin.Tool = c.text
		must(t, s.Move(t.Context(), r, begin))
		expect(t, s, r, store.Record{Session: r.Session, State: store.Started, Tool: c.want, Digest: begin.Digest})
		end := handBack(1, long)
		end.Operation.Tool, end.Operation.Progress = c.text, c.text
		must(t, s.Move(t.Context(), r, end))
		if o, err := s.GetOperation(t.Context(), key(r.CallID)); err != nil || o.Tool != c.want || o.Progress != c.want {
			t.Errorf("%q: %q, %q, %v", c.text, o.Tool, o.Progress, err)
		}
	}
}
