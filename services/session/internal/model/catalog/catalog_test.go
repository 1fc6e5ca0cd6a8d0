package catalog

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/config"

	"github.com/fairlead/fairlead/services/session/internal/model"
)

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestDefault(t *testing.T) {
	tests := []struct {
		name   string
		config Config
		env    []string
		want   string
	}{
		{"without a key it is scripted", Config{}, nil, "scripted:default"},
		{"a key of anthropic chooses anthropic", Config{}, []string{"ANTHROPIC_API_KEY", "k", "OPENAI_API_KEY", "k"}, defaultAnthropic},
		{"a key of openai chooses openai", Config{OpenAIKey: "k"}, nil, defaultOpenAI},
		{"the named model is stronger than keys", Config{Model: "scripted:demo", AnthropicKey: "k"}, nil, "scripted:demo"},
		{"an empty variable is no key", Config{}, []string{"ANTHROPIC_API_KEY", " "}, "scripted:default"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := New(tt.config, env(tt.env...))
			if err != nil {
				t.Fatal(err)
			}
			if got := c.Default(); got.Name != tt.want || got.Model == nil || got.MaxOutputTokens == 0 {
				t.Errorf("got %+v, want %s", got, tt.want)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken.yaml")
	if err := os.WriteFile(broken, []byte("name: x\nturns: 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		config Config
		want   []string
	}{
		{"a default model of an unknown provider, and says how to add it", Config{Model: "nowhere:xyz"}, []string{`"nowhere:xyz" is not known`, "anthropic:claude-sonnet-5-5", "models:\n  \"nowhere:xyz\":"}},
		{"a default model without a provider", Config{Model: "gpt"}, []string{`"gpt" is not of the form provider:model, and no route`}},
		{"a route to a provider that is not there", Config{Routes: map[string]string{"llama-*": "local"}}, []string{`model-routes: "llama-*": there is no provider "local"`}},
		{"no pattern", Config{Routes: map[string]string{"[": "openai"}}, []string{`model-routes: "["`}},
		{"a fallback of an unknown provider", Config{Models: map[string]Limits{"openai:a": {Fallbacks: []string{"local:b"}}}}, []string{`models: "openai:a": fallbacks:`, `"local:b" is not known`}},
		{"a model that takes its own place", Config{Models: map[string]Limits{"openai:a": {Fallbacks: []string{"openai:a"}}}}, []string{"cannot take its own place"}},
		{"a mode with more thinking than output", Config{Models: map[string]Limits{"anthropic:a": {MaxOutputTokens: 100, Modes: map[string]Mode{"deep": {ThinkingTokens: 100}}}}}, []string{`"anthropic:a": modes.deep: thinking-tokens`}},
		{"the name of tenants' own models", Config{Providers: map[string]Provider{Own: {Kind: "openai"}}}, []string{"tenants' own models"}},
		{
			"sampling in a version that refuses it", Config{Providers: map[string]Provider{"anthropic": {APIVersion: "2026-10-21"}}, Models: map[string]Limits{"anthropic:a": {Temperature: "0.5"}}},
			[]string{`models: "anthropic:a": temperature, top-p: version 2026-10-21 of the API refuses them`},
		},
		{"sampling together with thinking", Config{Models: map[string]Limits{"anthropic:a": {Temperature: "0.5", ThinkingTokens: 2000}}}, []string{"together with thinking"}},
		{"a model of a provider that is not there", Config{Models: map[string]Limits{"local:llama": {}}}, []string{`there is no provider "local"`}},
		{"a provider without a kind", Config{Providers: map[string]Provider{"local": {}}}, []string{"providers.local: kind is missing"}},
		{"a provider of an unknown kind", Config{Providers: map[string]Provider{"local": {Kind: "google"}}}, []string{`"google" is not one of`}},
		{"another kind for a built-in provider", Config{Providers: map[string]Provider{"openai": {Kind: "anthropic"}}}, []string{"cannot be changed"}},
		{"an invalid base URL", Config{OpenAIBaseURL: "localhost:80"}, []string{"openai-base-url: must be a URL"}},
		{"a password in a base URL", Config{Providers: map[string]Provider{"openai": {BaseURL: "http://a:hidden@b"}}}, []string{"must not hold a user name or password"}},
		{"a scenario that is not there", Config{Scenario: broken + "x"}, []string{"providers.scripted: open scenario"}},
		{"a broken scenario", Config{Scenario: broken}, []string{"broken.yaml: line 2"}},
		{"a scripted provider without a scenario", Config{Providers: map[string]Provider{"mine": {Kind: "scripted"}}}, []string{"providers.mine: scenario: name the YAML file"}},
		{"a scenario that a scripted model has not", Config{Models: map[string]Limits{"scripted:none": {}}}, []string{`there is no scenario "none"; there are default, demo`}},
		{"more thinking than output", Config{Models: map[string]Limits{"anthropic:a": {MaxOutputTokens: 100, ThinkingTokens: 100}}}, []string{"must be less than"}},
		{"an unknown version", Config{Providers: map[string]Provider{"anthropic": {APIVersion: "2024-01-01"}}}, []string{`providers.anthropic: api-version: "2024-01-01" is not one of 2023-06-01, 2026-10-21`}},
		{"a platform that there is not", Config{Providers: map[string]Provider{"a": {Kind: "anthropic", Platform: "azure"}}}, []string{`platform: "azure" is not one of vertex, bedrock`}},
		{"a platform without a region", Config{Providers: map[string]Provider{"a": {Kind: "anthropic", Platform: "bedrock"}}}, []string{"providers.a: region: is missing"}},
		{"vertex without a project", Config{Providers: map[string]Provider{"a": {Kind: "anthropic", Platform: "vertex", Region: "us"}}}, []string{"providers.a: project: is missing"}},
		{"a region without a platform", Config{Providers: map[string]Provider{"a": {Kind: "anthropic", Region: "us"}}}, []string{"providers.a: platform: is missing"}},
		{"a bearer token of another kind", Config{Providers: map[string]Provider{"a": {Kind: "openai", TokenEnv: "X"}}}, []string{"providers.a: auth-token-env: only providers of kind anthropic"}},
		{"several faults at once", Config{Models: map[string]Limits{"x": {}}, OpenAIBaseURL: "y"}, []string{`models: "x"`, "openai-base-url"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(tt.config, env())
			for _, want := range tt.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want it to say %q", err, want)
				}
			}
			if err != nil && strings.Contains(err.Error(), "hidden") {
				t.Errorf("the error tells a secret: %v", err)
			}
		})
	}
}

func TestResolve(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.yaml")
	if err := os.WriteFile(file, []byte("name: mine\nfallback:\n  steps: [{text: hi}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{
		Scenario: file,
		Providers: map[string]Provider{
			"local": {Kind: "openai", BaseURL: "http://127.0.0.1:1/v1", NoKey: true},
			"other": {Kind: "scripted", Scenario: file},
		},
		Models: map[string]Limits{
			"local:llama":                {ContextTokens: 8000},
			"anthropic:claude-haiku-4-5": {MaxOutputTokens: 10_000},
		},
	}, env())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"scripted:mine", "other:mine", "scripted:demo", "local:llama"} {
		if e, err := c.Resolve(name); err != nil || e.Name != name || e.Provider+":"+e.ModelName != name {
			t.Errorf("%s: got %+v, %v", name, e, err)
		}
	}
	haiku, err := c.Resolve("anthropic:claude-haiku-4-5")
	if err != nil {
		t.Fatal(err)
	}
	want := budget(200_000, 10_000, claude(1, 5))
	if diff := cmp.Diff(want, haiku.Limits); diff != "" {
		t.Error(diff)
	}
	if _, err := c.Resolve("nowhere:other"); err == nil || !strings.Contains(err.Error(), "local:llama") {
		t.Errorf("got %v", err)
	}
}

func TestProviderWithoutKeySaysWhatToSet(t *testing.T) {
	c, err := New(Config{
		Providers: map[string]Provider{"mine": {Kind: "openai", KeyEnv: "MY_KEY"}, "bare": {Kind: "openai"}},
		Models:    map[string]Limits{"mine:m": {}, "bare:m": {}},
	}, env())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{defaultAnthropic: "ANTHROPIC_API_KEY", defaultOpenAI: "OPENAI_API_KEY", "mine:m": "MY_KEY", "bare:m": "providers.bare.key-env"} {
		e, err := c.Resolve(name)
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.Model.Stream(t.Context(), model.Request{}, nil)
		var failure *model.Error
		if !errors.As(err, &failure) || failure.Kind != model.Authentication || !strings.Contains(failure.Message, want) {
			t.Errorf("%s: got %v, want it to say %s", name, err, want)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err = e.Model.Stream(ctx, model.Request{}, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: a cancelled stream gives %v", name, err)
		}
	}
}

func TestKnownModelsAreComplete(t *testing.T) {
	for name, l := range known {
		if err := l.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if l.ContextTokens == 0 || l.MaxOutputTokens == 0 || l.Input == 0 || l.Output == 0 || l.CacheRead == 0 {
			t.Errorf("%s lacks a limit or a price: %+v", name, l)
		}
	}
}

func TestCost(t *testing.T) {
	usage := &sessionv1.Usage{InputTokens: 1000, OutputTokens: 100, CacheReadTokens: 10_000, CacheWriteTokens: 400}
	tests := []struct {
		name   string
		prices Prices
		want   int64
	}{
		{"adds up the four kinds of tokens", Prices{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75}, 1000*3000 + 100*15000 + 10_000*300 + 400*3750},
		{"is zero without prices", Prices{}, 0},
		{"keeps fractions of a billionth until the end", Prices{CacheRead: 0.00005}, 500},
		{"is higher for long requests", Prices{Input: 1, Output: 1, LongAfter: 11_399, LongInput: 2, LongOutput: 3}, 1000*2000 + 100*3000},
		{"is not higher at the limit", Prices{Input: 1, Output: 1, LongAfter: 11_400, LongInput: 2, LongOutput: 3}, 1000*1000 + 100*1000},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.prices.Cost(usage); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

func TestNoCostOverflows(t *testing.T) {
	dear := Prices{Input: 999_999, Output: 999_999, CacheRead: 999_999, CacheWrite: 999_999, LongAfter: 1, LongInput: 999_999, LongOutput: 999_999}
	for _, n := range []int64{2_000_000_000_000_000, math.MaxInt64, -1, math.MinInt64} {
		u := &sessionv1.Usage{InputTokens: n, OutputTokens: n, CacheReadTokens: n, CacheWriteTokens: n}
		if got := dear.Cost(u); n > 0 && got != maxCost || n < 0 && got != 0 {
			t.Errorf("%d tokens cost %d", n, got)
		}
	}
}

func TestReasoningIsOneOfThree(t *testing.T) {
	for setting, ok := range map[string]bool{"": true, "auto": true, "always": true, "never": true, "send": false} {
		if err := (Provider{Kind: KindOpenAI, Reasoning: setting}).Validate(); (err == nil) != ok {
			t.Errorf("%q: %v", setting, err)
		}
	}
}

func TestConfigLoadsFromAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	text := `
model: local:llama
providers:
  local: {kind: openai, base-url: "http://127.0.0.1:1/v1", no-key: true, max-tokens-field: max_tokens}
models:
  "local:llama": {context-tokens: 8000, max-output-tokens: 1000, input-price: 0.5, output-price: 1}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := Defaults()
	err := config.Load(&c, config.Options{Name: "test", Prefix: "FAIRLEAD_SESSION_", File: file, Environ: []string{"OPENAI_API_KEY=k", "ANTHROPIC_BASE_URL=http://127.0.0.1:2"}})
	if err != nil {
		t.Fatal(err)
	}
	cat, err := New(c, env())
	if err != nil {
		t.Fatal(err)
	}
	e := cat.Default()
	if e.Name != "local:llama" || e.Input != 0.5 || c.OpenAIKey.Reveal() != "k" || c.AnthropicBaseURL == "" {
		t.Errorf("got %+v and %+v", e, c)
	}
}
