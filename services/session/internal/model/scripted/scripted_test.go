package scripted

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/testing/protocmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/streamtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func user(s string) *sessionv1.Message { return streamtest.User(streamtest.Text(s)) }

func result(s string) *sessionv1.Message {
	return streamtest.User(streamtest.Result("c", sessionv1.ToolOutcome_TOOL_OUTCOME_OK, s))
}

func assistant(blocks ...*sessionv1.Block) *sessionv1.Message { return streamtest.Assistant(blocks...) }

func load(t *testing.T, yaml string) *Model {
	t.Helper()
	s, err := Parse([]byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return New(s)
}

func play(t *testing.T, m *Model, r model.Request) (*model.Response, string, error) {
	t.Helper()
	return streamtest.Play(t.Context(), t, m, r)
}

const talk = `
name: talk
turns:
  - when: ^hello
    steps:
      - thinking: hm hm
        text: ["Hi, ", "you said {{ .UserText }}"]
        usage: {input_tokens: 7, output_tokens: 5, cache_read_tokens: 3, cache_write_tokens: 2, thinking_tokens: 1}
  - turn: 2
    steps:
      - text: second turn
  - tools: [Bash]
    steps:
      - tools:
          - {name: Bash, input: {command: "echo {{ .UserText }}"}}
          - {name: Bash, id: mine, raw: '{"command": '}
          - {name: LS}
      - text: "it said {{.LastToolResult}}"
fallback:
  steps:
    - text: fallback
`

func TestStreamPicksTheStep(t *testing.T) {
	bash := []model.Tool{{Name: "Bash"}}
	tests := []struct {
		name string
		req  model.Request
		want string
		stop string
	}{
		{"the first turn whose pattern matches is played", model.Request{Messages: []*sessionv1.Message{user("hello there")}, Tools: bash}, "Hi, you said hello there", "end_turn"},
		{"a turn is found by its number", model.Request{Messages: []*sessionv1.Message{user("a"), assistant(textBlock("b")), user("c")}}, "second turn", "end_turn"},
		{"a greeting is no turn", model.Request{Messages: []*sessionv1.Message{assistant(textBlock("welcome")), user("a")}}, "fallback", "end_turn"},
		{"a turn whose tools are not offered is passed over", model.Request{Messages: []*sessionv1.Message{user("a")}}, "fallback", "end_turn"},
		{"tool calls stop with tool_use", model.Request{Messages: []*sessionv1.Message{user("a")}, Tools: bash}, "", "tool_use"},
		{"the next step follows the results", model.Request{Messages: []*sessionv1.Message{user("a"), assistant(), result("x"), result("out")}, Tools: bash}, "it said out", "end_turn"},
		{
			"a script that is over says so",
			model.Request{Messages: []*sessionv1.Message{user("a"), assistant(), result("x"), assistant(), result("y")}, Tools: bash},
			`This is a scripted model, not an AI. The script of scenario "talk" has ended: it has no step 3 for this turn.`, "end_turn",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resp, text, err := play(t, load(t, talk), tt.req)
			if err != nil {
				t.Fatal(err)
			}
			if text != tt.want || resp.StopReason != tt.stop {
				t.Errorf("got %q and stop %q, want %q and %q", text, resp.StopReason, tt.want, tt.stop)
			}
		})
	}
}

func TestAStepNamesTheLastOperation(t *testing.T) {
	const look = "name: look\nfallback:\n  steps:\n    - text: first\n    - text: \"look at {{ .LastOperation }}.\"\n"
	runs := result("It runs in the background as the operation operations/a1.2.0. Look at it.")
	for _, tt := range []struct {
		name     string
		messages []*sessionv1.Message
		want     string
	}{
		{"that a result has named", []*sessionv1.Message{user("a"), assistant(), runs}, "look at operations/a1.2.0."},
		{"also when another result came after it", []*sessionv1.Message{user("a"), assistant(), streamtest.User(append(runs.Blocks, result("x").Blocks...)...)}, "look at operations/a1.2.0."},
		{"but none of another turn", []*sessionv1.Message{user("a"), assistant(), runs, assistant(), user("b"), assistant(), result("x")}, "look at ."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, text, err := play(t, load(t, look), model.Request{Messages: tt.messages}); err != nil || text != tt.want {
				t.Errorf("got %q, %v; want %q", text, err, tt.want)
			}
		})
	}
}

func TestStreamBuildsTheAnswer(t *testing.T) {
	m := load(t, talk)
	resp, _, err := play(t, m, model.Request{Messages: []*sessionv1.Message{user("hello")}})
	if err != nil {
		t.Fatal(err)
	}
	want := &sessionv1.Usage{InputTokens: 7, OutputTokens: 5, CacheReadTokens: 3, CacheWriteTokens: 2, ThinkingTokens: 1}
	if diff := cmp.Diff(want, resp.Usage, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	if resp.Blocks[0].GetThinking().GetText() != "hm hm" {
		t.Errorf("thinking is %v", resp.Blocks[0])
	}
	resp, _, err = play(t, m, model.Request{Messages: []*sessionv1.Message{user("a\"b")}, Tools: []model.Tool{{Name: "Bash"}}})
	if err != nil {
		t.Fatal(err)
	}
	var got []*sessionv1.ToolUse
	for _, b := range resp.Blocks {
		got = append(got, b.GetToolUse())
	}
	calls := []*sessionv1.ToolUse{
		{ProviderCallId: "scripted_talk_1_1_1", Tool: "Bash", ArgumentsJson: `{"command":"echo a\"b"}`},
		{ProviderCallId: "mine", Tool: "Bash", ArgumentsJson: `{"command": `},
		{ProviderCallId: "scripted_talk_1_1_3", Tool: "LS", ArgumentsJson: `{}`},
	}
	if diff := cmp.Diff(calls, got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

func TestStreamFails(t *testing.T) {
	const head = "name: f\nfallback:\n  steps:\n    - text: [a, b, c]\n      error: "
	tests := []struct {
		name    string
		failure string
		attempt int
		text    string
		want    *model.Error
	}{
		{"before the first piece", "{status: 429, message: slow down, retry_after: 3s}", 1, "", &model.Error{Kind: model.Unavailable, Status: 429, Message: "slow down", RetryAfter: 3 * time.Second}},
		{"midway after two pieces", "{status: 529, message: m, midway: 2}", 1, "ab", &model.Error{Kind: model.Unavailable, Status: 529, Message: "m", Midway: true}},
		{"after the last piece when there are fewer", "{message: m, midway: 9}", 1, "abc", &model.Error{Kind: model.Unavailable, Message: "m", Midway: true}},
		{"still in the last failing attempt", "{status: 401, message: m, times: 2}", 2, "", &model.Error{Kind: model.Authentication, Status: 401, Message: "m"}},
		{"not in the attempt after it", "{status: 401, times: 2}", 3, "abc", nil},
		{"with the kind that is named", "{status: 400, message: m, kind: context_full}", 1, "", &model.Error{Kind: model.ContextFull, Status: 400, Message: "m"}},
		{"as billing for 402", "{status: 402, message: m}", 1, "", &model.Error{Kind: model.Billing, Status: 402, Message: "m"}},
		{"as refused for 404", "{status: 404, message: m}", 1, "", &model.Error{Kind: model.Refused, Status: 404, Message: "m"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, text, err := play(t, load(t, head+tt.failure), model.Request{Messages: []*sessionv1.Message{user("x")}, Attempt: tt.attempt})
			var got *model.Error
			errors.As(err, &got)
			if tt.want != nil {
				tt.want.ProviderText = tt.want.Message // A script's words are the provider's.
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if text != tt.text {
				t.Errorf("%q came out, want %q", text, tt.text)
			}
		})
	}
}

func TestStreamKeepsTime(t *testing.T) {
	tests := []struct {
		name string
		step string
		want time.Duration
	}{
		{"a delay before each piece", "{text: [a, b, c], delay: 200ms}", 600 * time.Millisecond},
		{"a pause before the first", "{text: [a], pause: 2s}", 2 * time.Second},
		{"a pace in tokens", "{text: [aaaa, bbbb, cccc], tokens_per_second: 2}", 1500 * time.Millisecond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := load(t, "name: p\nfallback:\n  steps:\n    - "+tt.step)
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				if _, _, err := play(t, m, model.Request{Messages: []*sessionv1.Message{user("x")}}); err != nil {
					t.Fatal(err)
				}
				if got := time.Since(start); got != tt.want {
					t.Errorf("took %s, want %s", got, tt.want)
				}
			})
		})
	}
}

func TestStreamEndsWithItsContext(t *testing.T) {
	m := load(t, "name: p\nfallback:\n  steps:\n    - {text: [a, b], delay: 10m}")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
		defer cancel()
		pieces := 0
		_, err := m.Stream(ctx, model.Request{}, func(d model.Delta) error {
			if d.Kind == model.TextDelta {
				pieces++
			}
			return nil
		})
		if !errors.Is(err, context.DeadlineExceeded) || pieces != 1 {
			t.Errorf("got error %v after %d pieces", err, pieces)
		}
	})
}

func TestStreamReturnsTheErrorOfEmit(t *testing.T) {
	boom := errors.New("boom")
	m := load(t, talk)
	_, err := m.Stream(t.Context(), model.Request{Messages: []*sessionv1.Message{user("hello")}}, func(model.Delta) error { return boom })
	if err != boom { //nolint:errorlint // the contract is the error itself
		t.Errorf("got %v", err)
	}
}

func TestStreamKeepsToTheOutputBound(t *testing.T) {
	m := load(t, "name: p\nfallback:\n  steps:\n    - {text: [\"abcd\"], repeat: 1000000, tools: [{name: Bash}]}")
	resp, text, err := play(t, m, model.Request{Messages: []*sessionv1.Message{user("x")}, MaxOutputTokens: 25})
	if err != nil {
		t.Fatal(err)
	}
	if len(text) != 100 || resp.StopReason != "max_tokens" || len(resp.Blocks) != 1 || resp.Usage.GetOutputTokens() != 25 {
		t.Errorf("got %d bytes, stop %q, %d blocks, usage %v", len(text), resp.StopReason, len(resp.Blocks), resp.Usage)
	}
}

func TestBuiltinScenarios(t *testing.T) {
	all, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	coder := []model.Tool{{Name: "Bash"}, {Name: "Read"}, {Name: "Edit"}, {Name: "LS"}}
	tests := []struct {
		name, scenario string
		tools          []model.Tool
		calls          []string
		end            string
	}{
		{"the default shows a coder's tools", "default", coder, []string{"LS", "Bash"}, "ANTHROPIC_API_KEY"},
		{"the default only reads for an assistant", "default", []model.Tool{{Name: "Read"}, {Name: "LS"}}, []string{"LS"}, "OPENAI_API_KEY"},
		{"the default works without tools", "default", nil, nil, "FAIRLEAD_MODEL"},
		{"the demo reads, fails, edits and passes", "demo", coder, []string{"Read", "Read", "Bash", "Edit", "Bash"}, "off-by-one"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls, said := drive(t, New(all[tt.scenario]), tt.tools)
				if diff := cmp.Diff(tt.calls, calls); diff != "" {
					t.Error(diff)
				}
				if tt.calls != nil && !strings.Contains(said, "the real result") {
					t.Errorf("does not quote the result: %s", said)
				}
				if !strings.Contains(said, "scripted model, not an AI") || !strings.Contains(said, tt.end) {
					t.Errorf("said: %s", said)
				}
			})
		})
	}
}

// drive plays a turn to its end, with made-up results, and gives its calls and words.
func drive(t *testing.T, m *Model, tools []model.Tool) (calls []string, said string) {
	t.Helper()
	messages := []*sessionv1.Message{user("do it")}
	for range 20 {
		resp, text, err := play(t, m, model.Request{Messages: messages, Tools: tools})
		if err != nil {
			t.Fatal(err)
		}
		said += text + "\n"
		messages = append(messages, assistant(resp.Blocks...))
		if resp.StopReason == "end_turn" {
			return calls, said
		}
		for _, b := range resp.Blocks {
			if u := b.GetToolUse(); u != nil {
				calls = append(calls, u.GetTool())
				if !json.Valid([]byte(u.GetArgumentsJson())) {
					t.Errorf("arguments of %s: %s", u.GetTool(), u.GetArgumentsJson())
				}
				messages = append(messages, result("the real result"))
			}
		}
	}
	t.Fatal("the turn does not end")
	return nil, ""
}
