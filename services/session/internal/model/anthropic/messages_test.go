package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/google/go-cmp/cmp"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/prompt"
	"github.com/fairlead/fairlead/services/session/internal/model/streamtest"
)

// oddTexts are texts whose JSON is not just the text in quotes.
var oddTexts = []string{
	"plain", `"quoted" and \back\`, "lines\nand\ttabs\r\n", "\x00\x01\x1f\x7f", "\b\f", "<b>&amp;</b>", "\u2028 and \u2029",
	"Привет, мир", "日本語", "👩‍👩‍👧 \U0001F600", "cut \xf0\x9f\x98", "\xff\xfe", "\xed\xa0\x80 a surrogate", "\ufffd itself", "e\u0301", "\ufeffbom",
}

// reference gives the messages of c in the SDK's own terms, all of them.
func reference(m *Model, c *prompt.Conversation) []sdk.MessageParam {
	messages := []sdk.MessageParam{}
	last := -1
	for i, msg := range c.Messages {
		if msg.Role != sessionv1.Role_ROLE_ASSISTANT {
			messages, last = append(messages, sdk.NewUserMessage(sdkUser(c, msg.Blocks)...)), i
			continue
		}
		var thoughts, rest []sdk.ContentBlockParamUnion
		for _, b := range msg.Blocks {
			o, _ := m.opaque(b)
			switch {
			case o.Type == "redacted_thinking":
				thoughts = append(thoughts, sdk.NewRedactedThinkingBlock(o.Data))
			case o.Type == "thinking":
				thoughts = append(thoughts, sdk.NewThinkingBlock(o.Signature, b.GetThinking().GetText()))
			case b.GetToolUse() != nil:
				u := b.GetToolUse()
				rest = append(rest, sdk.NewToolUseBlock(c.ID(u.GetCallId()), prompt.Arguments(u.GetArgumentsJson()), u.GetTool()))
			case b.GetContent().GetText() != nil:
				rest = append(rest, sdk.NewTextBlock(b.GetContent().GetText().GetText()))
			}
		}
		messages = append(messages, sdk.NewAssistantMessage(append(thoughts, rest...)...))
	}
	if last >= 0 {
		messages[last] = cached(messages[last])
	}
	return messages
}

// corpus is a conversation with everything that there is, in which each text is s.
func corpus(s string) []*sessionv1.Message {
	call := func(id, arguments string) *sessionv1.Block {
		return &sessionv1.Block{Kind: &sessionv1.Block_ToolUse{ToolUse: &sessionv1.ToolUse{CallId: id, ProviderCallId: "toolu_" + id, Tool: "Read", ArgumentsJson: arguments}}}
	}
	thought := func(data string) *sessionv1.Block {
		return &sessionv1.Block{
			Kind:         &sessionv1.Block_Thinking{Thinking: &sessionv1.Thinking{Text: s}},
			ProviderData: &sessionv1.ProviderData{Provider: "anthropic", Data: []byte(data)},
		}
	}
	result := func(id string, outcome sessionv1.ToolOutcome, content ...*commonv1.Content) *sessionv1.Block {
		return &sessionv1.Block{Kind: &sessionv1.Block_ToolResult{ToolResult: &sessionv1.ToolResult{CallId: id, Outcome: outcome, Content: content}}}
	}
	text := &commonv1.Content{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: s}}}
	blank := &commonv1.Content{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: " "}}}
	image := &commonv1.Content{Kind: &commonv1.Content_Image{Image: &commonv1.Media{MediaType: "image/png", Data: []byte(s)}}}
	document := func(kind string) *commonv1.Content {
		return &commonv1.Content{Kind: &commonv1.Content_Document{Document: &commonv1.Media{MediaType: kind, Title: s, Data: []byte(s)}}}
	}
	content := func(c *commonv1.Content) *sessionv1.Block {
		return &sessionv1.Block{Kind: &sessionv1.Block_Content{Content: c}}
	}
	signature, _ := json.Marshal(s)
	arguments, _ := json.Marshal(map[string]any{"path": s, "n": 1.5e300, "deep": []any{nil, true, map[string]any{}}})
	var all []*sessionv1.Message
	say := func(role sessionv1.Role, blocks ...*sessionv1.Block) {
		all = append(all, &sessionv1.Message{Role: role, Blocks: blocks})
	}
	say(sessionv1.Role_ROLE_USER, content(text), content(image), content(document("application/pdf")), content(document("text/plain")), content(document("application/zip")))
	say(sessionv1.Role_ROLE_ASSISTANT, content(text), thought(`{"type":"thinking","signature":`+string(signature)+`}`), thought(`{"type":"redacted_thinking","data":`+string(signature)+`}`),
		call("a", string(arguments)), call("b", " "), call("c", s), call("d.1", `{ "x" : "<>" }`), call("e", "null"))
	say(sessionv1.Role_ROLE_USER, content(text), result("a", ok, text, blank, text), result("b", ok), result("c", ok, blank),
		result("d.1", sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR, text, image, document("application/pdf")),
		result("e", sessionv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN))
	say(sessionv1.Role_ROLE_ASSISTANT, content(text))
	say(sessionv1.Role_ROLE_USER, content(text), content(blank), content(text))
	return all
}

// same compares our messages with the SDK's after parsing.
func same(t *testing.T, m *Model, r model.Request) {
	t.Helper()
	c := prompt.New(r, m.own(r.Model))
	ours, err := m.body(r, c)
	if err != nil {
		t.Fatal(err)
	}
	p := sdkParams(m, r, c)
	p.Messages = reference(m, c)
	theirs, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	want, got := parse(t, theirs), parse(t, ours)
	want["stream"] = true
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the SDK's (-) and ours (+):\n%s", diff)
	}
}

func parse(t *testing.T, b []byte) (v map[string]any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return v
}

func TestTheBodyIsTheSDKs(t *testing.T) {
	m := Connect(Access{Provider: "anthropic"}).Model(Limits{MaxOutputTokens: 8000})
	tools := []model.Tool{{Name: "Read", Description: "reads", InputSchema: json.RawMessage(`{"type":"object"}`)}, {Name: "LS"}}
	for i, s := range oddTexts {
		t.Run(fmt.Sprintf("with text %q everywhere", s), func(t *testing.T) {
			all := corpus(s)
			for n := range all { // each message is once the last one
				same(t, m, model.Request{Model: "claude", System: s, Messages: all[:n+1], Tools: tools[:i%3], ThinkingTokens: 2000})
			}
		})
	}
	t.Run("without messages", func(t *testing.T) { same(t, m, model.Request{Model: "claude"}) })
}

func BenchmarkBody(b *testing.B) {
	r := model.Request{Model: "claude", System: "be brief"}
	for range 5000 {
		r.Messages = append(r.Messages, streamtest.User(streamtest.Text("ten short words that stand for the text of messages")),
			&sessionv1.Message{Role: sessionv1.Role_ROLE_ASSISTANT, Blocks: []*sessionv1.Block{streamtest.Text("ten short words that stand for the text of messages")}})
	}
	r.Messages = append(r.Messages, streamtest.User(streamtest.Text("and now?")))
	m := Connect(Access{Provider: "anthropic"}).Model(Limits{MaxOutputTokens: 8000})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.body(r, prompt.New(r, m.own(r.Model))); err != nil {
			b.Fatal(err)
		}
	}
}
