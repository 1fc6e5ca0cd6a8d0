package fold_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/clients/go/fold"
)

type event = sessionv1.Event

// text is a piece of text in step 1 of turn t.
func text(first, seq int64, s string) *event {
	return &event{FirstSeq: first, Seq: seq, Turn: "t", Step: 1, Body: &sessionv1.Event_TextDelta{TextDelta: &sessionv1.TextDelta{Text: s}}}
}

func restarted(seq, from, to int64) *event {
	return &event{FirstSeq: seq, Seq: seq, Turn: "t", Step: 1, Body: &sessionv1.Event_StepRestarted{StepRestarted: &sessionv1.StepRestarted{VoidFirstSeq: from, VoidLastSeq: to}}}
}

func rewound(seq, from, to int64) *event {
	return &event{FirstSeq: seq, Seq: seq, Body: &sessionv1.Event_SessionRewound{SessionRewound: &sessionv1.SessionRewound{VoidFirstSeq: from, VoidLastSeq: to, UndoneTurn: "t"}}}
}

// of makes an event another turn's.
func of(turn string, e *event) *event {
	e.Turn = turn
	return e
}

func steered(seq int64, turn, into string) *event {
	return of(turn, &event{FirstSeq: seq, Seq: seq, Body: &sessionv1.Event_TurnSteered{TurnSteered: &sessionv1.TurnSteered{Into: into}}})
}

func TestAdd(t *testing.T) {
	for _, c := range []struct {
		name   string
		before []*event
		add    *event
		want   error
		ranges string
	}{
		{"the first event", nil, text(1, 1, "a"), nil, "[1..1]"},
		{"a first event of several numbers", nil, text(1, 4, "a"), nil, "[1..4]"},
		{"a first event that does not begin the log", nil, text(2, 2, "a"), fold.ErrGap, "[]"},
		{"the next event", []*event{text(1, 2, "a")}, text(3, 5, "b"), nil, "[1..2 3..5]"},
		{"an event after a gap", []*event{text(1, 2, "a")}, text(4, 5, "b"), fold.ErrGap, "[1..2]"},
		{"an event that was there", []*event{text(1, 2, "a")}, text(1, 2, "a"), fold.ErrRepeated, "[1..2]"},
		{"an event that ends where another did", []*event{text(1, 1, "a"), text(2, 2, "b")}, text(1, 2, "ab"), fold.ErrRepeated, "[1..1 2..2]"},
		{"an event that takes the place of the last ones", []*event{text(1, 1, "a"), text(2, 2, "b"), text(3, 3, "c")}, text(2, 4, "bcd"), nil, "[1..1 2..4]"},
		{"an event that takes the place of all", []*event{text(1, 1, "a"), text(2, 2, "b")}, text(1, 3, "abc"), nil, "[1..3]"},
		{"an event that covers a part of another", []*event{text(1, 3, "abc")}, text(2, 5, "bcde"), fold.ErrOverlap, "[1..3]"},
		{"a range that ends before it begins", []*event{text(1, 1, "a")}, text(3, 2, "b"), fold.ErrRange, "[1..1]"},
		{"a range below 1", nil, text(0, 1, "a"), fold.ErrRange, "[]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := &fold.Log{}
			for _, e := range c.before {
				if err := l.Add(e); err != nil {
					t.Fatal(err)
				}
			}
			if err := l.Add(c.add); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			ranges := []string{}
			for _, e := range l.Events() {
				ranges = append(ranges, fmt.Sprintf("%d..%d", e.FirstSeq, e.Seq))
			}
			if got := fmt.Sprint(ranges); got != c.ranges {
				t.Errorf("the log is %s, want %s", got, c.ranges)
			}
		})
	}
}

// said is the text of step 1 that the events amount to.
func said(t *testing.T, events ...*event) string {
	t.Helper()
	l := &fold.Log{}
	for _, e := range events {
		if err := l.Add(e); err != nil {
			t.Fatal(err)
		}
		again := &fold.Log{}
		for _, e := range l.Events() {
			if err := again.Add(e); err != nil {
				t.Fatal(err)
			}
		}
		if d := cmp.Diff(again.State(), l.State()); d != "" {
			t.Errorf("the state that follows the log (-want +got):\n%s", d)
		}
	}
	var out strings.Builder
	for _, turn := range l.State().Turns {
		for _, s := range turn.Steps {
			for _, b := range s.Blocks {
				out.WriteString(b.Text())
			}
		}
	}
	return out.String()
}

func TestVoidRangesDoNotCount(t *testing.T) {
	for _, c := range []struct {
		name   string
		events []*event
		want   string
	}{
		{"nothing is void", []*event{text(1, 1, "a"), text(2, 2, "b")}, "ab"},
		{"a restarted step", []*event{text(1, 1, "a"), text(2, 2, "b"), restarted(3, 2, 2), text(4, 4, "c")}, "ac"},
		{"a merged event within a void range", []*event{text(1, 1, "a"), text(2, 5, "bcde"), restarted(6, 2, 5), text(7, 7, "f")}, "af"},
		{"a step that was restarted twice", []*event{text(1, 1, "a"), restarted(2, 1, 1), text(3, 3, "b"), restarted(4, 3, 3), text(5, 5, "c")}, "c"},
		{"a restart that voids nothing", []*event{text(1, 1, "a"), restarted(2, 0, 0), text(3, 3, "b")}, "ab"},
		{"a session that went back over a restart", []*event{text(1, 1, "a"), text(2, 2, "b"), restarted(3, 2, 2), text(4, 4, "c"), rewound(5, 2, 4), text(6, 6, "d")}, "ad"},
		{"what another turn did meanwhile", []*event{text(1, 1, "a"), of("u", text(2, 2, "b")), text(3, 3, "c"), restarted(4, 1, 3), text(5, 5, "d")}, "bd"},
		{"an undone turn with one that was steered into it", []*event{text(1, 1, "a"), steered(2, "u", "t"), of("u", text(3, 3, "b")), of("v", text(4, 4, "c")), rewound(5, 1, 4)}, "c"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := said(t, c.events...); got != c.want {
				t.Errorf("the text is %q, want %q", got, c.want)
			}
		})
	}
}

func TestWhatBecameOfATurnCountsAlsoWhenItWasUndone(t *testing.T) {
	l := &fold.Log{}
	waiting := &event{FirstSeq: 2, Seq: 2, Turn: "t", Step: 1, Body: &sessionv1.Event_TurnWaiting{TurnWaiting: &sessionv1.TurnWaiting{}}}
	finished := &event{FirstSeq: 3, Seq: 3, Turn: "t", Body: &sessionv1.Event_TurnFinished{TurnFinished: &sessionv1.TurnFinished{State: sessionv1.TurnState_TURN_STATE_INTERRUPTED}}}
	for _, e := range []*event{text(1, 1, "a"), waiting, finished, rewound(4, 1, 3)} {
		if err := l.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	if got := l.State().Turn("t"); got == nil || got.Finished != 1 || len(got.Steps) != 0 {
		t.Errorf("the turn is %+v", got)
	}
}

func TestMergingDoesNotChangeTheState(t *testing.T) {
	apart, merged := &fold.Log{}, &fold.Log{}
	for _, e := range []*event{text(1, 1, "a"), text(2, 2, "b"), text(3, 3, "c")} {
		if err := apart.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range []*event{text(1, 1, "a"), text(1, 2, "ab"), text(3, 3, "c")} {
		if err := merged.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(apart.State(), merged.State()); d != "" {
		t.Error(d)
	}
}

// TestALongLogIsReadInOneGo would take minutes if an event cost as much as those before it.
func TestALongLogIsReadInOneGo(t *testing.T) {
	const steps, deltas = 3_000, 100_000
	l, begun := &fold.Log{}, time.Now()
	l.State()
	for i := range int64(steps + deltas) {
		e := text(i+1, i+1, "a")
		if e.Step = int32(i + 1); i >= steps {
			e.Step = steps
			e.Body = &sessionv1.Event_ToolCallOutputDelta{ToolCallOutputDelta: &sessionv1.ToolCallOutputDelta{CallId: "c", Data: make([]byte, 50)}}
		}
		if err := l.Add(e); err != nil {
			t.Fatal(err)
		}
		if time.Since(begun) > 20*time.Second {
			t.Fatalf("%d events took %s", i, time.Since(begun))
		}
	}
	if s := l.State().Turn("t").Steps; len(s) != steps || len(s[steps-1].Calls[0].Output) != 50*deltas {
		t.Error(len(s))
	}
}
