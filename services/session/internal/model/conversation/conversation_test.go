package wire

import (
	"fmt"
	"strings"
	"testing"

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
		c := NewConversation(model.Request{Messages: messages}, func(*sessionv1.Block) bool { return false })
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
	c := NewConversation(model.Request{Messages: []*sessionv1.Message{
		streamtest.User(streamtest.Text("go")), streamtest.Assistant(thought), streamtest.User(streamtest.Text("go on")),
	}}, func(*sessionv1.Block) bool { return true })
	if len(c.Messages) != 1 || len(c.Messages[0].Blocks) != 2 {
		t.Errorf("got %v", c.Messages)
	}
}
