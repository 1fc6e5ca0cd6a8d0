package check

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/clients/go/fold"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
)

// WireStats count what followers of one protocol did.
type WireStats struct {
	Wire                          string
	Followers, Reconnects, Broken int
	Turns, Live                   int // turns that were compared: at the end, and as they happened
	Calls, Arguments, Results     int // that were compared
	Violations                    int
}

// wire returns the figures of a protocol.
func (c *checker) wire(name string) *WireStats {
	st := &c.report.Stats
	for i := range st.Wires {
		if st.Wires[i].Wire == name {
			return &st.Wires[i]
		}
	}
	st.Wires = append(st.Wires, WireStats{Wire: name})
	return &st.Wires[len(st.Wires)-1]
}

// wires checks that what followers of all protocols show is what the log says.
func (c *checker) wires(s *record.Session, log *fold.Log) {
	if len(s.Wires) == 0 {
		return
	}
	counting, told := log.State(), log.Told()
	for _, f := range s.Wires {
		st := c.wire(f.Wire)
		st.Followers++
		st.Reconnects += max(f.Connections-1, 0)
		st.Broken += f.Broken
		before := len(c.report.Violations)
		if f.Failed != "" {
			c.fault(Wires, s, "%s: %s", f.Wire, f.Failed)
		}
		kept := map[string]bool{}
		for _, shown := range f.Shown {
			state := counting
			if f.Told || shown.Live {
				state = told
			}
			if shown.Live {
				st.Live++
			} else {
				kept[shown.Turn] = true
			}
			c.shown(s, f.Wire, shown, state)
		}
		for _, t := range counting.Turns {
			if !kept[""] && !kept[lastPart(t.Name)] && len(piecesOf(t)) > 0 {
				c.fault(Wires, s, "%s shows nothing of the turn %s", f.Wire, t.Name)
			}
			st.Turns++
		}
		st.Violations += len(c.report.Violations) - before
	}
}

func lastPart(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// piece is what a step says. What was never committed may be missing, or be there in part.
type piece struct {
	text string
	open bool
}

// piecesOf returns what turns say, in the order of the log: an urgent message overtakes those that wait.
func piecesOf(turns ...*fold.Turn) []piece {
	var steps []*fold.Step
	for _, t := range turns {
		steps = append(steps, t.Steps...)
	}
	slices.SortStableFunc(steps, func(a, b *fold.Step) int { return cmp.Compare(a.Begun, b.Begun) })
	var all []piece
	for _, st := range steps {
		if text, _ := st.Text(); text != "" {
			all = append(all, piece{text, st.Finished == 0})
		}
	}
	return all
}

// says reports whether a text is that of the pieces, and what may follow them.
func says(text string, pieces []piece, more bool) bool {
	if len(pieces) == 0 {
		return text == "" || more
	}
	p := pieces[0]
	n := 0
	for n < len(text) && n < len(p.text) && text[n] == p.text[n] {
		n++
	}
	if n == len(p.text) && says(text[n:], pieces[1:], more) {
		return true
	}
	for ; p.open && n >= 0; n-- {
		if says(text[n:], pieces[1:], more) {
			return true
		}
	}
	return false
}

// shown checks what a client shows of a turn, or of all turns.
func (c *checker) shown(s *record.Session, wire string, got record.Shown, state *fold.State) {
	turns := state.Turns
	what := wire
	if got.Turn != "" {
		t := state.Turn(s.Name + "/turns/" + got.Turn)
		if t == nil {
			c.fault(Wires, s, "%s shows the turn %s, which is not in the log", wire, got.Turn)
			return
		}
		if t.Reason == "ROLLED_BACK" && got.Text == "" && len(got.Calls) == 0 {
			return // it was taken back
		}
		turns, what = []*fold.Turn{t}, wire+", turn "+got.Turn
	}
	want := piecesOf(turns...)
	if !says(got.Text, want, got.Turn != "" && endsWithCalls(turns[0])) {
		c.fault(Wires, s, "%s shows the text %q, the log has %v", what, got.Text, want)
	}
	known := map[string]*fold.Call{}
	for _, t := range turns {
		for _, st := range t.Steps {
			for _, call := range st.Calls {
				known[call.ID] = call
				if !got.Lacks && st.Finished > 0 && call.Finished > 0 && !shows(got, call.ID) {
					c.fault(Wires, s, "%s does not show the call %s, %s", what, call.ID, call.Tool)
				}
			}
		}
	}
	st := c.wire(wire)
	for _, call := range got.Calls {
		st.Calls++
		if call.Arguments != nil {
			st.Arguments++
		}
		if call.Result != nil {
			st.Results++
		}
		if d := unlike(call, known[call.ID]); d != "" {
			c.fault(Wires, s, "%s shows the call %s %s", what, call.ID, d)
		}
	}
}

// endsWithCalls reports whether a turn has no words at its end. A client may have some for it.
func endsWithCalls(t *fold.Turn) bool {
	return len(t.Steps) > 0 && len(t.Steps[len(t.Steps)-1].Calls) > 0
}

func shows(got record.Shown, id string) bool {
	for _, call := range got.Calls {
		if call.ID == id {
			return true
		}
	}
	return false
}

// unlike returns how a call that a client shows differs from that of the log; "" if it does not.
func unlike(got record.ShownCall, want *fold.Call) string {
	switch {
	case want == nil:
		return "which is not in the log"
	case want.Finished == 0:
		return "" // clients may end it in their own words
	case plainName(got.Tool) != plainName(want.Tool):
		return fmt.Sprintf("of the tool %q, the log has %q", got.Tool, want.Tool)
	case got.Arguments != nil && !sameJSON(*got.Arguments, want.Arguments, got.Some):
		return fmt.Sprintf("with the arguments %s, the log has %s", *got.Arguments, want.Arguments)
	case got.Result != nil && *got.Result != want.Result && (want.Result != "" || want.Outcome == outcomeOK): // clients have words for an error without any
		return fmt.Sprintf("with the result %q, the log has %q", *got.Result, want.Result)
	}
	return ""
}

// plainName returns the name of a tool without what a protocol changes in it.
func plainName(tool string) string { return strings.ToLower(strings.ReplaceAll(tool, "_", "")) }

// sameJSON reports whether two values are equal; with some, whether the members of the first are so in the second.
func sameJSON(a, b string, some bool) bool {
	read := func(s string) (v any) {
		if s == "" {
			s = "{}"
		}
		if json.Unmarshal([]byte(s), &v) != nil {
			return s
		}
		return v
	}
	got, want := read(a), read(b)
	part, ok := got.(map[string]any)
	if whole, both := want.(map[string]any); some && ok && both {
		for k, v := range part {
			if had, ok := whole[k]; !ok || !reflect.DeepEqual(v, had) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(got, want)
}
