package terminal

import (
	"strings"
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

func TestTheWorkOfASubagentIsShownBehindItsName(t *testing.T) {
	var out strings.Builder
	r := NewRenderer(&out, Options{})
	inner := func(e *sessionv1.Event) *sessionv1.Event {
		return &sessionv1.Event{Body: &sessionv1.Event_SubagentEvent{SubagentEvent: &sessionv1.SubagentEvent{CallId: "c", Event: e}}}
	}
	for _, e := range []*sessionv1.Event{
		{FirstSeq: 1, Seq: 1, Body: &sessionv1.Event_TextDelta{TextDelta: &sessionv1.TextDelta{Text: "I ask."}}},
		{Body: &sessionv1.Event_SubagentStarted{SubagentStarted: &sessionv1.SubagentStarted{CallId: "c", Subagent: "reader"}}},
		inner(&sessionv1.Event{Body: &sessionv1.Event_TextDelta{TextDelta: &sessionv1.TextDelta{Text: "I look.\nAnd see."}}}),
		inner(&sessionv1.Event{Body: &sessionv1.Event_ToolCallArguments{ToolCallArguments: &sessionv1.ToolCallArguments{CallId: "d", Tool: "Read", ArgumentsJson: `{"file_path":"a"}`}}}),
		{Body: &sessionv1.Event_SubagentFinished{SubagentFinished: &sessionv1.SubagentFinished{CallId: "c"}}},
		{FirstSeq: 2, Seq: 2, Body: &sessionv1.Event_TextDelta{TextDelta: &sessionv1.TextDelta{Text: "Done."}}},
	} {
		r.Event(e)
	}
	const want = "I ask.\n  [reader] I look.\n  [reader] And see.\n  [reader] > Read a\nDone."
	if out.String() != want {
		t.Errorf("shown is\n%s\nwant\n%s", out.String(), want)
	}
}
