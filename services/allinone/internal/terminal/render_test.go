package terminal

import (
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// at makes an event of the range first to last.
func at(first, last int64, e *sessionv1.Event) *sessionv1.Event {
	e.FirstSeq, e.Seq = first, last
	e.Time = timestamppb.New(time.Unix(1000, 0).Add(time.Duration(last) * 100 * time.Millisecond))
	return e
}

func text(s string) *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_TextDelta{TextDelta: &sessionv1.TextDelta{Text: s}}}
}

func thought(s string) *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_ThinkingDelta{ThinkingDelta: &sessionv1.ThinkingDelta{Text: s}}}
}

func arguments(call, tool, json string) *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_ToolCallArguments{ToolCallArguments: &sessionv1.ToolCallArguments{CallId: call, Tool: tool, ArgumentsJson: json}}}
}

func finished(call, tool string, outcome sessionv1.ToolOutcome, result string) *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_ToolCallFinished{ToolCallFinished: &sessionv1.ToolCallFinished{
		CallId: call, Tool: tool, Outcome: outcome, DurationMs: 12,
		Content: []*commonv1.Content{{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: result}}}},
	}}}
}

func queued() *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_TurnQueued{TurnQueued: &sessionv1.TurnQueued{}}}
}

func ended(state sessionv1.TurnState, why *sessionv1.TurnError) *sessionv1.Event {
	return &sessionv1.Event{Body: &sessionv1.Event_TurnFinished{TurnFinished: &sessionv1.TurnFinished{
		State: state, Error: why, Steps: 2, Usage: &sessionv1.Usage{InputTokens: 1200, OutputTokens: 34, CostNanoUsd: 4_110_000},
	}}}
}

// started begins a block of text, or of thinking.
func started(thinking bool) *sessionv1.Event {
	if thinking {
		return &sessionv1.Event{Body: &sessionv1.Event_ThinkingStarted{ThinkingStarted: &sessionv1.ThinkingStarted{}}}
	}
	return &sessionv1.Event{Body: &sessionv1.Event_TextStarted{TextStarted: &sessionv1.TextStarted{}}}
}

// shown is what a renderer writes.
func shown(t *testing.T, o Options, events ...*sessionv1.Event) string {
	t.Helper()
	var b strings.Builder
	r := NewRenderer(&b, o)
	for i, e := range events {
		if e.GetSeq() == 0 {
			at(int64(i+1), int64(i+1), e)
		}
		r.Event(e)
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const (
	ok     = sessionv1.ToolOutcome_TOOL_OUTCOME_OK
	failed = sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR
)

func TestEventsAsText(t *testing.T) {
	approval := &sessionv1.Event{Body: &sessionv1.Event_ApprovalRequested{ApprovalRequested: &sessionv1.ApprovalRequested{
		Tool: "Bash", ArgumentsJson: "{\"command\":\"ls \u202egpj\"}", Rule: "writes ask",
	}}}
	warning := &sessionv1.Event{Body: &sessionv1.Event_Warning{Warning: &sessionv1.Warning{Reason: "MODEL_RETRY", Message: "the model is \x1b[2Joverloaded"}}}
	restarted := &sessionv1.Event{Body: &sessionv1.Event_StepRestarted{StepRestarted: &sessionv1.StepRestarted{Reason: "the stream broke"}}}
	for name, c := range map[string]struct {
		options Options
		events  []*sessionv1.Event
		want    []string // in this order
		never   string
	}{
		"text comes as it streams":               {events: []*sessionv1.Event{started(false), text("Hel"), text("lo.")}, want: []string{"Hello."}},
		"escape sequences of the model go":       {events: []*sessionv1.Event{started(false), text("a\x1b["), text("31mb\x1b]0;x\x07c")}, want: []string{"abc"}, never: "\x1b"},
		"thinking is not shown":                  {events: []*sessionv1.Event{started(true), thought("hmm"), started(false), text("yes")}, want: []string{"yes"}, never: "hmm"},
		"thinking is shown when asked for":       {options: Options{Thinking: true}, events: []*sessionv1.Event{started(true), thought("hmm")}, want: []string{"thinking:", "hmm"}},
		"a call shows its most telling argument": {events: []*sessionv1.Event{arguments("c", "Bash", `{"description":"d","command":"sh test.sh"}`)}, want: []string{"> Bash sh test.sh"}},
		"a call's end shows outcome and time":    {events: []*sessionv1.Event{finished("c", "Bash", ok, "secret output")}, want: []string{"ok, 12 ms", "Bash"}, never: "secret"},
		"a failed call shows why":                {events: []*sessionv1.Event{finished("c", "Edit", failed, "old_string\x1b[8m is not there")}, want: []string{"error, 12 ms", "old_string is not there"}, never: "\x1b"},
		"the end of a long result is shown":      {options: Options{Lines: 2}, events: []*sessionv1.Event{finished("c", "Bash", ok, "1\n2\n3\n4")}, want: []string{"2 lines before", "3\n", "4\n"}},
		"calls at the same time are told apart":  {events: []*sessionv1.Event{arguments("1", "Read", `{"file_path":"/a"}`), arguments("2", "Read", `{"file_path":"/b"}`), finished("2", "Read", ok, ""), finished("1", "Read", ok, "")}, want: []string{"Read /a", "Read /b", "ms: Read /b", "ms: Read /a"}},
		"a hostile tool name is one clean line":  {events: []*sessionv1.Event{arguments("c", "B\x1b[1mash\nok", `{}`)}, want: []string{"> Bash ok"}, never: "\x1b"},
		"an approval shows what would be hidden": {events: []*sessionv1.Event{approval}, want: []string{"Bash", "writes ask", `\u202e`}, never: "\u202e"},
		"a warning says its reason":              {events: []*sessionv1.Event{warning}, want: []string{"! the model is overloaded (MODEL_RETRY)"}, never: "\x1b"},
		"a restarted step is announced":          {events: []*sessionv1.Event{started(false), text("half"), restarted, started(false), text("whole")}, want: []string{"half\n", "starts again", "the stream broke", "\nwhole"}},
		"the end sums up": {
			events: []*sessionv1.Event{at(1, 1, queued()), at(21, 21, ended(sessionv1.TurnState_TURN_STATE_COMPLETE, nil))},
			want:   []string{"COMPLETE", "2 steps", "1200 tokens in", "34 out", "$0.0041", "2.0 s"},
		},
		"a failure says why": {
			events: []*sessionv1.Event{ended(sessionv1.TurnState_TURN_STATE_FAILED, &sessionv1.TurnError{Reason: "MODEL_AUTHENTICATION", Message: "The key was refused."})},
			want:   []string{"FAILED", "The key was refused. (MODEL_AUTHENTICATION)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := shown(t, c.options, c.events...)
			rest := got
			for _, want := range c.want {
				_, after, found := strings.Cut(rest, want)
				if !found {
					t.Fatalf("%q is missing, or out of order, in:\n%s", want, got)
				}
				rest = after
			}
			if c.never != "" && strings.Contains(got, c.never) {
				t.Errorf("%q is in:\n%q", c.never, got)
			}
		})
	}
}

func TestARepeatedDeltaShowsOnlyItsNewPart(t *testing.T) {
	got := shown(t, Options{}, at(1, 1, started(false)), at(2, 2, text("ab")), at(3, 3, text("cd")), at(3, 4, text("cdef")))
	if got != "abcdef" {
		t.Errorf("got %q, want %q", got, "abcdef")
	}
}

func TestColorsAreOursAlone(t *testing.T) {
	event := finished("c", "Bash", failed, "\x1b[31mred")
	plain := shown(t, Options{Lines: 1}, event)
	colored := shown(t, Options{Lines: 1, Colors: true}, event)
	if strings.Contains(plain, "\x1b") {
		t.Errorf("colors without being asked for: %q", plain)
	}
	if !strings.Contains(colored, "\x1b[") || Clean(colored) != plain {
		t.Errorf("got %q, which is not %q with colors", colored, plain)
	}
}

func TestColorsAreForTerminalsOnly(t *testing.T) {
	if Colors(&strings.Builder{}, func(string) string { return "" }) {
		t.Error("a buffer is no terminal")
	}
}

// broken is a writer whose other end has gone.
type broken struct{ writes int }

var errBroken = errors.New("gone")

func (b *broken) Write([]byte) (int, error) {
	b.writes++
	return 0, errBroken
}

func TestNothingIsWrittenAfterAFailure(t *testing.T) {
	w := &broken{}
	r := NewRenderer(w, Options{})
	for i := range int64(3) {
		r.Event(at(i+1, i+1, text("x")))
	}
	if !errors.Is(r.Err(), errBroken) || w.writes != 1 {
		t.Errorf("%d writes, then %v", w.writes, r.Err())
	}
}
