package catalog

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/streamtest"
	"github.com/fairlead/fairlead/services/session/modeltest"
)

func TestAModelThatNoTableHasWorks(t *testing.T) {
	s := modeltest.Anthropic(t, modeltest.Sequence(modeltest.Step{Text: []string{"ok"}}))
	c, err := New(Config{AnthropicBaseURL: s.URL, AnthropicKey: modeltest.Key, Model: "anthropic:claude-sonet-5"}, env())
	if err != nil {
		t.Fatal(err)
	}
	e := c.Default()
	if !e.Unlisted || e.ContextTokens != fallbackContext || e.MaxOutputTokens != fallbackOutput || e.Prices != (Prices{}) || e.Unusable != "" {
		t.Errorf("got %+v", e)
	}
	for _, want := range []string{"no price", "did you mean anthropic:claude-sonnet-5?", "models:"} {
		if w := c.Warning(e); !strings.Contains(w, want) {
			t.Errorf("the warning is %q, want it to say %q", w, want)
		}
	}
	r := model.Request{Model: e.ModelName, Messages: []*sessionv1.Message{streamtest.User(streamtest.Text("hi"))}}
	if _, text, err := streamtest.Play(t.Context(), t, e.Model, r); err != nil || text != "ok" {
		t.Errorf("got %q, %v", text, err)
	}
	if s.Requests()[0].Model != "claude-sonet-5" {
		t.Errorf("asked for %q", s.Requests()[0].Model)
	}
	listed := 0
	for _, e := range c.All() {
		if e.Name == "anthropic:claude-sonet-5" {
			listed++
		}
	}
	if listed != 1 {
		t.Errorf("it is listed %d times", listed)
	}
	if e, err := c.Resolve("anthropic:claude-opus-5"); err != nil || c.Warning(e) != "" {
		t.Errorf("a model of the table has the warning %q (%v)", c.Warning(e), err)
	}
}

func TestARequestListsNoModel(t *testing.T) {
	c, err := New(Config{AnthropicKey: "k", OpenAIKey: "k", Models: map[string]Limits{"anthropic:mine": {Fallbacks: []string{"openai:spare:mode=thinking"}}}}, env())
	if err != nil {
		t.Fatal(err)
	}
	listed := func() (all []string) {
		for _, e := range c.All() {
			if e.Unlisted {
				all = append(all, e.Name)
			}
		}
		return all
	}
	agents, err := c.Configured("openai:of-an-agent")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"openai:made-up", "gpt-made-up", "claude-made-up", "anthropic:made-up:mode=thinking", "openai:spare"} {
		if _, err := c.Resolve(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := c.Narrow("tenant:own", OwnEntry{Target: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for n := range 2 * maxAsked {
		if _, err := c.Resolve("openai:made-up-" + strconv.Itoa(n)); err != nil {
			t.Fatal(err)
		}
	}
	if got := listed(); !slices.Equal(got, []string{"openai:of-an-agent", "openai:spare"}) {
		t.Errorf("the list has %v", got)
	}
	if e, err := c.Resolve("openai:of-an-agent"); err != nil || e.Model != agents.Model {
		t.Errorf("%v; a model of the configuration forgets what it has learned", err)
	}
	if len(c.asked) > maxAsked {
		t.Errorf("%d names of requests are remembered", len(c.asked))
	}
	if first, err := c.Resolve("openai:again"); err != nil {
		t.Error(err)
	} else if e, err := c.Resolve("openai:again"); err != nil || e.Model != first.Model {
		t.Errorf("%v; after many other names a model forgets what it has learned", err)
	}
	if _, err := c.Resolve("openai:" + strings.Repeat("x", maxName)); err == nil || len(err.Error()) > 200 {
		t.Errorf("a long name: %v", err)
	}
}

func TestRoutes(t *testing.T) {
	c, err := New(Config{
		Providers: map[string]Provider{"local": {Kind: "openai", BaseURL: "http://127.0.0.1:1/v1", NoKey: true}},
		Routes: map[string]string{
			"gpt-oss-*": "local", "gpt-oss-tiny": "openai", "fast": "anthropic:claude-haiku-5-5",
			"deep": "anthropic:claude-opus-5-5:mode=thinking", "meta/*": "local",
		},
	}, env())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"gpt-5.5": "openai:gpt-5.5", "claude-opus-5": "anthropic:claude-opus-5", "gpt-oss-120b": "local:gpt-oss-120b", "gpt-oss-tiny": "openai:gpt-oss-tiny",
		"fast": "anthropic:claude-haiku-5-5", "fast:mode=thinking": "anthropic:claude-haiku-5-5:mode=thinking", "deep": "anthropic:claude-opus-5-5:mode=thinking",
		"meta/llama-4": "local:meta/llama-4",
	} {
		if e, err := c.Resolve(name); err != nil || e.Name != want {
			t.Errorf("%s leads to %q (%v), want %q", name, e.Name, err, want)
		}
	}
	for _, name := range []string{"nothing", "", ":x", "x:", "nowhere:x", "scripted:x", "anthropic:claude-opus-5:mode=odd", "scripted:default:mode=thinking"} {
		if e, err := c.Resolve(name); err == nil {
			t.Errorf("%q leads to %q", name, e.Name)
		}
	}
}

func TestModes(t *testing.T) {
	c, err := New(Config{Models: map[string]Limits{
		"anthropic:plain": {MaxOutputTokens: 20_000, Temperature: "0.2", Modes: map[string]Mode{"wild": {Temperature: "1", TopP: "0.9"}}},
	}}, env())
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		thinking    int64
		effort      string
		temperature string
	}{
		"anthropic:plain":                    {0, "", "0.2"},
		"anthropic:plain:mode=wild":          {0, "", "1"},
		"anthropic:plain:mode=thinking":      {10_000, "", ""},
		"anthropic:claude-opus-5-5":          {defaultThinking, "", ""},
		"claude-opus-5-5:mode=thinking":      {modeThinking, "", ""},
		"openai:gpt-5.6-sol":                 {0, "none", ""},
		"openai:gpt-5.6-sol:mode=thinking":   {0, "high", ""},
		"anthropic:unheard-of:mode=thinking": {fallbackOutput / 2, "", ""},
	}
	for name, want := range tests {
		e, err := c.Resolve(name)
		if err != nil || e.ThinkingTokens != want.thinking || e.ReasoningEffort != want.effort || e.Temperature != want.temperature || strings.Contains(e.ModelName, ":") {
			t.Errorf("%s: got %+v, %v", name, e, err)
		}
	}
}
