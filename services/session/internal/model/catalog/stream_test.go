package catalog

import (
	"testing"

	"go.uber.org/goleak"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/streamtest"
	"github.com/fairlead/fairlead/services/session/internal/model/transport"
	"github.com/fairlead/fairlead/services/session/modeltest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(int) { transport.CloseIdle() }))
}

func TestModelsOfTheCatalogStream(t *testing.T) {
	step := modeltest.Step{Thinking: "hm", Text: []string{"ok"}}
	messages, chat := modeltest.Anthropic(t, modeltest.Sequence(step)), modeltest.OpenAI(t, modeltest.Sequence(step))
	c := Defaults()
	c.AnthropicKey, c.AnthropicBaseURL = modeltest.Key, messages.URL
	c.OpenAIKey, c.OpenAIBaseURL = modeltest.Key, chat.URL
	c.Providers = map[string]Provider{
		"proxy": {Kind: KindAnthropic, BaseURL: messages.URL, KeyEnv: "PROXY_KEY"},
		"old":   {Kind: KindOpenAI, BaseURL: chat.URL, Key: modeltest.Key, MaxTokensField: "max_tokens"},
	}
	c.Models = map[string]Limits{"proxy:claude": {ThinkingTokens: 2000}, "old:llama": {}}
	cat, err := New(c, env("PROXY_KEY", modeltest.Key+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{defaultAnthropic, defaultOpenAI, "proxy:claude", "old:llama"} {
		t.Run(name, func(t *testing.T) {
			e, err := cat.Resolve(name)
			if err != nil {
				t.Fatal(err)
			}
			resp, text, err := streamtest.Play(t.Context(), t, e.Model, model.Request{
				Model: e.ModelName, ThinkingTokens: e.ThinkingTokens, Messages: []*sessionv1.Message{streamtest.User(streamtest.Text("hi"))},
			})
			if err != nil || text != "ok" {
				t.Fatalf("got %q, %v", text, err)
			}
			if d := resp.Blocks[0].GetProviderData(); e.Kind == KindAnthropic && d.GetProvider() != e.Provider {
				t.Errorf("thinking is kept for %q", d.GetProvider())
			}
		})
	}
	bodies := chat.Requests()
	if bodies[0].Body["reasoning_effort"] != "none" || bodies[1].Body["max_tokens"] != float64(fallbackOutput) {
		t.Errorf("sent %v and %v", bodies[0].Body, bodies[1].Body)
	}
	adaptive, _ := messages.Requests()[0].Body["thinking"].(map[string]any)
	budget, _ := messages.Requests()[1].Body["thinking"].(map[string]any)
	if adaptive["type"] != "adaptive" || budget["budget_tokens"] != 2000.0 {
		t.Errorf("asked for thinking by %v and %v", adaptive, budget)
	}
}
