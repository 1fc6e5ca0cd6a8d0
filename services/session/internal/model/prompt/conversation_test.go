package prompt

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/streamtest"
)

// TestIDsOfCallsAreUniqueAndStay has missing, equal, odd and long ids, and some
// that look like those that we make. A longer conversation keeps the ids of the
// shorter one.
func TestIDsOfCallsAreUniqueAndStay(t *testing.T) {
	const ours = "01jb2k3m4n5p6q7r8s9t0v1w2x"
	odd := []string{
		"", "", "call_0", "call_0", "toolu_1", "functions.Bash:0", "has space", "é", strings.Repeat("x", 41), strings.Repeat("x", 40),
		"call_" + ours + "_1_0", "call_" + ours + "_1_1", "call_" + ours + "_1_1_2", "\x00", "a/b", "a_b",
	}
	var messages []*sessionv1.Message
	before := map[string]string{}
	for n, id := range append(odd, odd...) {
		callID := fmt.Sprintf("%s.1.%d", ours, n)
		messages = append(messages, streamtest.User(streamtest.Text("go")), streamtest.Assistant(streamtest.Use(callID, id, "LS", "{}")),
			streamtest.User(streamtest.Result(callID, sessionv1.ToolOutcome_TOOL_OUTCOME_OK, "x")))
		c := New(model.Request{Messages: messages}, func(*sessionv1.Block) bool { return false })
		used := map[string]string{}
		for i := range n + 1 {
			call := fmt.Sprintf("%s.1.%d", ours, i)
			got := c.ID(call)
			if !goodID.MatchString(got) || used[got] != "" {
				t.Fatalf("the call %s has the id %q, as has %s", call, got, used[got])
			}
			if before[call] != "" && before[call] != got {
				t.Errorf("the id of %s was %q and is %q", call, before[call], got)
			}
			used[got], before[call] = call, got
		}
	}
}

func TestAMessageOfThinkingAloneIsLeftOut(t *testing.T) {
	thought := &sessionv1.Block{Kind: &sessionv1.Block_Thinking{Thinking: &sessionv1.Thinking{Text: "hm"}}}
	c := New(model.Request{Messages: []*sessionv1.Message{
		streamtest.User(streamtest.Text("go")), streamtest.Assistant(thought), streamtest.User(streamtest.Text("go on")),
	}}, func(*sessionv1.Block) bool { return true })
	if len(c.Messages) != 1 || len(c.Messages[0].Blocks) != 2 {
		t.Errorf("got %v", c.Messages)
	}
}

func TestArguments(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"an object", `{"a": 1}`, `{"a":1}`},
		{"nothing", " ", `{}`},
		{"half an object", `{"a":`, `{"_invalid_arguments":"{\"a\":"}`},
		{"a list", `[1]`, `{"_invalid_arguments":"[1]"}`},
		{"null", `null`, `{"_invalid_arguments":"null"}`},
		{"two objects", `{}{}`, `{"_invalid_arguments":"{}{}"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, string(Arguments(tt.in))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEveryOutcomeIsToldApart(t *testing.T) {
	seen := map[string]sessionv1.ToolOutcome{}
	for n := range sessionv1.ToolOutcome_name {
		o := sessionv1.ToolOutcome(n)
		switch o {
		case sessionv1.ToolOutcome_TOOL_OUTCOME_UNSPECIFIED, sessionv1.ToolOutcome_TOOL_OUTCOME_OK, sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR:
			if Explain(o) != "" {
				t.Errorf("%s is explained as %q", o, Explain(o))
			}
			continue
		}
		if before, ok := seen[Explain(o)]; ok || Explain(o) == "" || !IsError(o) {
			t.Errorf("%s is explained as %q, as is %s", o, Explain(o), before)
		}
		seen[Explain(o)] = o
	}
}
