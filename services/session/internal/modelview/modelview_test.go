package modelview

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

const (
	user      = sessionv1.Role_ROLE_USER
	assistant = sessionv1.Role_ROLE_ASSISTANT
)

func say(role sessionv1.Role, s string) *sessionv1.Message {
	return &sessionv1.Message{Role: role, Blocks: []*sessionv1.Block{{Kind: &sessionv1.Block_Content{Content: text(s)}}}}
}

func use(id, args string) *sessionv1.Message {
	return &sessionv1.Message{Role: assistant, Blocks: []*sessionv1.Block{
		{Kind: &sessionv1.Block_Thinking{Thinking: &sessionv1.Thinking{Text: "I think " + args}}, ProviderData: &sessionv1.ProviderData{Provider: "p", Data: []byte("signature " + id)}},
		{Kind: &sessionv1.Block_ToolUse{ToolUse: &sessionv1.ToolUse{CallId: id, Tool: "Bash", ArgumentsJson: args}}},
	}}
}

func result(id, s string) *sessionv1.Message {
	return &sessionv1.Message{Role: user, Blocks: []*sessionv1.Block{{Kind: &sessionv1.Block_ToolResult{ToolResult: &sessionv1.ToolResult{CallId: id, Outcome: sessionv1.ToolOutcome_TOOL_OUTCOME_OK, Content: []*commonv1.Content{text(s)}}}}}}
}

// named gives the messages of a path their names.
func named(ms ...*sessionv1.Message) []*sessionv1.Message {
	for i, m := range ms {
		m.Name = fmt.Sprint("m", i)
	}
	return ms
}

func names(ms []*sessionv1.Message) string {
	var all []string
	for _, m := range ms {
		all = append(all, m.Name)
	}
	return strings.Join(all, " ")
}

func summary(c *sessionv1.Compaction) *sessionv1.Message {
	m := say(user, "a summary")
	m.Compaction = c
	return m
}

func TestTheViewBeginsWithTheLastSummary(t *testing.T) {
	for name, tt := range map[string]struct {
		path []*sessionv1.Message
		want string
	}{
		"without a summary the view is the path":      {named(say(user, "a"), say(assistant, "b")), "m0 m1"},
		"a summary that keeps nothing":                {named(say(user, "a"), say(assistant, "b"), summary(&sessionv1.Compaction{}), say(user, "c")), "m2 m3"},
		"a summary that keeps the last messages":      {named(say(user, "a"), say(assistant, "b"), say(user, "c"), summary(&sessionv1.Compaction{KeptFrom: "m1"}), say(user, "d")), "m3 m1 m2 m4"},
		"a summary that keeps what an older one kept": {named(say(user, "a"), say(assistant, "b"), summary(&sessionv1.Compaction{KeptFrom: "m1"}), say(user, "c"), summary(&sessionv1.Compaction{KeptFrom: "m1"}), say(user, "d")), "m4 m1 m3 m5"},
		"a kept message that is not there":            {named(say(user, "a"), summary(&sessionv1.Compaction{KeptFrom: "x"}), say(user, "d")), "m1 m2"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := names(Of(tt.path, "p:m")); got != tt.want {
				t.Errorf("the view is %s, want %s", got, tt.want)
			}
		})
	}
}

func TestAViewIsShortenedStepByStep(t *testing.T) {
	long := strings.Repeat("word ", 400) // 500 tokens
	path := named(say(user, long), use("1", `{"a":1}`), result("1", long), use("2", `{"a":2}`), result("2", long), say(user, "now"))
	for name, tt := range map[string]struct {
		target                  int64
		from, until, first, end string
	}{
		"it fits":                         {5000, "m0", "", "m0", long},
		"old results are taken out first": {1200, "m0", "m2", "m0", "now"},
		"then all results":                {800, "m0", "m4", "m0", "now"},
		"then the oldest are dropped":     {100, "m3", "m4", "m3", "now"},
		"only the last remains":           {1, "m5", "", "m5", "now"},
	} {
		t.Run(name, func(t *testing.T) {
			c := Fit(path, tt.target)
			if c.KeptFrom != tt.from || c.ResultsUntil != tt.until {
				t.Errorf("got %v, want from %s, results until %q", c, tt.from, tt.until)
			}
			marker := summary(c)
			marker.Name = "s"
			v := Of(append(path[:len(path):len(path)], marker), "p:m")
			if v[1].Name != tt.first {
				t.Errorf("the view is %s", names(v))
			}
			if got := Tokens(v[1:]); got > tt.target && len(v) > 2 {
				t.Errorf("the view has %d tokens, want at most %d", got, tt.target)
			}
		})
	}
}

func TestAHugeBlockIsCutInTheMiddle(t *testing.T) {
	path := named(say(user, "begin "+strings.Repeat("äöü", 100_000)+" end"))
	c := Fit(path, 1000)
	got := apply(path, c)[0].Blocks[0].GetContent().GetText().GetText()
	if c.MaxBlockBytes == 0 || !utf8.ValidString(got) || !strings.HasPrefix(got, "begin ") || !strings.HasSuffix(got, " end") || TextTokens(got) > 1000 {
		t.Errorf("%v leaves %d bytes: %.40q", c, len(got), got)
	}
	if len(path[0].Blocks[0].GetContent().GetText().GetText()) < 500_000 {
		t.Error("the conversation itself was changed")
	}
}

// drawPath makes a conversation as the loop does: what is said, calls with their
// results, and summaries wherever a step may begin.
func drawPath(t *rapid.T) []*sessionv1.Message {
	length := rapid.Custom(func(t *rapid.T) string {
		return strings.Repeat("x", rapid.SampledFrom([]int{1, 40, 400, 4000}).Draw(t, "bytes"))
	})
	path := named(say(user, length.Draw(t, "first")))
	add := func(ms ...*sessionv1.Message) {
		for _, m := range ms {
			m.Name = fmt.Sprint("m", len(path))
			path = append(path, m)
		}
	}
	for i := range rapid.IntRange(0, 12).Draw(t, "messages") {
		switch id := fmt.Sprint("c", i); rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			add(use(id, length.Draw(t, "args")), result(id, length.Draw(t, "result")))
		case 1:
			add(say(assistant, length.Draw(t, "answer")), say(user, length.Draw(t, "question")))
		case 2:
			_, keep := Split(path, "p:m", rapid.Int64Range(0, 3000).Draw(t, "keep"))
			add(summary(Fit(keep, rapid.Int64Range(1, 3000).Draw(t, "target"))))
		case 3: // shortened while a call waits for a person
			call := use(id, length.Draw(t, "args"))
			add(call)
			_, keep := Split(path, "p:m", rapid.Int64Range(0, 3000).Draw(t, "keep"))
			add(summary(Fit(keep, rapid.Int64Range(1, 3000).Draw(t, "target"))), result(id, length.Draw(t, "result")))
		}
	}
	return path
}

// TestEveryViewIsWellFormed: whatever was shortened when, results follow their
// calls, thinking is as the provider signed it, and the last unit is there.
func TestEveryViewIsWellFormed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := drawPath(t)
		whole := map[string]*sessionv1.Message{}
		for _, m := range path {
			whole[m.Name] = proto.CloneOf(m)
		}
		v := Of(path, "p:m")
		if v[0].Role != user {
			t.Fatalf("the view begins with %v", v[0].Role)
		}
		open := ""
		for i, m := range v {
			if m.Compaction != nil && i > 0 {
				t.Fatalf("there is an old summary in %s", names(v))
			}
			var results, uses strings.Builder
			for j, b := range m.Blocks {
				results.WriteString(b.GetToolResult().GetCallId())
				uses.WriteString(b.GetToolUse().GetCallId())
				if b.GetThinking() != nil && !proto.Equal(b, whole[m.Name].Blocks[j]) {
					t.Fatalf("thinking was changed in %s", m.Name)
				}
			}
			if results.String() != open {
				t.Fatalf("%s has the results %q, want those of %q (view %s)", m.Name, results.String(), open, names(v))
			}
			open = uses.String()
		}
		if open != "" {
			t.Fatalf("the view ends with the call %s", open)
		}
		for i, m := range path {
			if !proto.Equal(m, whole[fmt.Sprint("m", i)]) {
				t.Fatalf("the conversation was changed at %s", m.Name)
			}
		}
	})
}

// TestFitReachesItsTargetOrLeavesTheLastUnit on any conversation.
func TestFitReachesItsTargetOrLeavesTheLastUnit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		older, keep := Split(drawPath(t), "p:m", 1<<40)
		if len(older) > 1 {
			t.Fatalf("%d messages are too old to stay, though all may", len(older))
		}
		if len(keep) == 0 {
			return
		}
		target := rapid.Int64Range(1, 5000).Draw(t, "target")
		marker := summary(Fit(keep, target))
		left := Of(append(keep[:len(keep):len(keep)], marker), "p:m")[1:]
		if last, _ := Split(left, "p:m", 0); Tokens(left) > target && len(last) > 0 {
			t.Fatalf("%d tokens are left, more than %d, in more than one unit", Tokens(left), target)
		}
	})
}

func TestATranscriptTellsWhoSaidAndDidWhat(t *testing.T) {
	got := Transcript(named(summary(&sessionv1.Compaction{}), say(user, "go"), use("1", `{"command":"ls"}`), result("1", strings.Repeat("y", 10_000)), say(assistant, "done")))
	for _, want := range []string{"Summary of what came before: a summary", "User: go", `Agent calls Bash: {"command":"ls"}`, "Result of Bash (OK): yyy", "bytes left out", "Agent: done"} {
		if !strings.Contains(got, want) {
			t.Errorf("the transcript does not say %q:\n%.2000s", want, got)
		}
	}
	if strings.Contains(got, "I think") {
		t.Error("the transcript has thinking in it")
	}
}
