package catalog

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/config"

	"github.com/fairlead/fairlead/services/session/internal/model/anthropic"
	"github.com/fairlead/fairlead/services/session/internal/model/openai"
)

// Config configures providers and models. Its zero value, with a key in the
// environment, is a working configuration. Make one with [Defaults].
type Config struct {
	Model            string              `key:"model" env:"FAIRLEAD_MODEL" help:"the default agent's model, as provider:model; when empty, a model of the first of anthropic and openai that has a key, else scripted:default"`
	AnthropicKey     config.Secret       `key:"anthropic-api-key" env:"ANTHROPIC_API_KEY" flag:"-" help:"the key for the provider anthropic; without one, its bearer token is ANTHROPIC_AUTH_TOKEN"`
	AnthropicBaseURL string              `key:"anthropic-base-url" env:"ANTHROPIC_BASE_URL" help:"base URL of the provider anthropic; when empty, https://api.anthropic.com"`
	OpenAIKey        config.Secret       `key:"openai-api-key" env:"OPENAI_API_KEY" flag:"-" help:"the key for the provider openai"`
	OpenAIBaseURL    string              `key:"openai-base-url" env:"OPENAI_BASE_URL" help:"base URL of the provider openai, with its /v1; when empty, https://api.openai.com/v1"`
	Scenario         string              `key:"scenario" help:"a YAML file with a scenario, played by the model scripted:NAME, with the name that it gives itself"`
	IdleTimeout      time.Duration       `key:"model-idle-timeout" help:"how long a model's stream may be silent before it counts as broken"`
	Providers        map[string]Provider `key:"providers" help:"more providers of models, and settings of anthropic, openai and scripted, by name"`
	Models           map[string]Limits   `key:"models" help:"more models, and other limits and prices of known ones, by provider:model"`

	Routes map[string]string `key:"model-routes" help:"where names without a provider lead, by name or pattern such as gpt-*: a provider, or a model as provider:model; claude-* and gpt-* lead to anthropic and openai"`

	// Section is the section of the configuration file that holds these keys, for hints; empty when they are at its top.
	Section string
}

// Defaults returns the default configuration.
func Defaults() Config { return Config{IdleTimeout: 2 * time.Minute} }

// Own is the provider in the names of tenants' own models, `tenant:NAME`.
const Own = "tenant"

// Kinds of providers.
const (
	KindAnthropic = "anthropic"
	KindOpenAI    = "openai"
	KindScripted  = "scripted"
)

// Provider configures the access to a provider of models.
type Provider struct {
	Kind           string        `key:"kind" help:"anthropic (Messages API), openai (Responses API and Chat Completions API, any compatible server) or scripted"`
	BaseURL        string        `key:"base-url" help:"base URL of the API"`
	API            string        `key:"api" help:"for kind openai: responses (Responses API) or chat (Chat Completions API); when empty, responses for OpenAI's own hosts and chat for all others"`
	Key            config.Secret `key:"key" help:"the key; better given by key-env"`
	KeyEnv         string        `key:"key-env" help:"the environment variable that holds the key"`
	Token          config.Secret `key:"auth-token" help:"for kind anthropic: a bearer token in place of a key; better given by auth-token-env"`
	TokenEnv       string        `key:"auth-token-env" help:"for kind anthropic: the environment variable that holds the bearer token"`
	APIVersion     string        `key:"api-version" help:"for kind anthropic: 2023-06-01 or 2026-10-21, which refuses sampling; 2023-06-01 when empty"`
	Platform       string        `key:"platform" help:"for kind anthropic: vertex (Google Vertex AI) or bedrock (Amazon Bedrock) in place of Anthropic's own API; without a token, with the credentials of the environment"`
	Region         string        `key:"region" help:"the platform's region, such as us-east-1"`
	Project        string        `key:"project" help:"for platform vertex: the Google Cloud project"`
	NoKey          bool          `key:"no-key" help:"the server wants no key"`
	Scenario       string        `key:"scenario" help:"for kind scripted: a YAML file with a scenario, a model named as the scenario"`
	MaxTokensField string        `key:"max-tokens-field" help:"for kind openai with the Chat Completions API: max_completion_tokens, or max_tokens for older servers"`
	Reasoning      string        `key:"reasoning" help:"for kind openai: when reasoning goes back to the model that sent it: auto (with the messages of a tool loop, and as the server then wants it), always or never; auto when empty"`
}

// Limits are a model's limits and prices.
type Limits struct {
	ContextTokens   int64           `key:"context-tokens" help:"the longest conversation, in tokens; 0 when unknown"`
	MaxOutputTokens int64           `key:"max-output-tokens" help:"the longest answer, in tokens"`
	ThinkingTokens  int64           `key:"thinking-tokens" help:"the most thinking before an answer, in tokens; 0 for none"`
	Thinking        string          `key:"thinking" help:"for kind anthropic: budget (up to thinking-tokens), adaptive (the model decides) or empty for what thinking-tokens says"`
	ReasoningEffort string          `key:"reasoning-effort" help:"for kind openai: sent as reasoning_effort, or reasoning.effort in the Responses API; when empty, nothing is sent"`
	Temperature     string          `key:"temperature" help:"how much the model varies its answers, from 0 to 2; empty: the provider's own"`
	TopP            string          `key:"top-p" help:"the part of the likeliest tokens that the model chooses from, from 0 to 1; empty: the provider's own"`
	Guardrails      string          `key:"guardrails" help:"the guardrail profile, one of guardrails; empty: default"`
	Fallbacks       []string        `key:"fallbacks" help:"models that take its place, in this order, while it is overloaded or cannot be reached"`
	Modes           map[string]Mode `key:"modes" help:"other settings of the model, by the name that follows :mode= in the model's name"`
	Prices          `key:",inline"`
}

// Mode are settings of a model that are used under a name of their own.
type Mode struct {
	MaxOutputTokens int64  `key:"max-output-tokens" help:"the longest answer, in tokens"`
	ThinkingTokens  int64  `key:"thinking-tokens" help:"the most thinking before an answer, in tokens"`
	Thinking        string `key:"thinking" help:"for kind anthropic: budget or adaptive"`
	ReasoningEffort string `key:"reasoning-effort" help:"for kind openai: sent as reasoning_effort"`
	Temperature     string `key:"temperature" help:"from 0 to 2"`
	TopP            string `key:"top-p" help:"from 0 to 1"`
}

// Prices are in US dollars for a million tokens.
type Prices struct {
	Input      float64 `key:"input-price" help:"US dollars for a million input tokens"`
	Output     float64 `key:"output-price" help:"US dollars for a million output tokens"`
	CacheRead  float64 `key:"cache-read-price" help:"US dollars for a million input tokens read from the cache"`
	CacheWrite float64 `key:"cache-write-price" help:"US dollars for a million input tokens written to the cache"`
	LongAfter  int64   `key:"long-after-tokens" help:"requests with more input tokens than this cost more; 0 when there is no such limit"`
	LongInput  float64 `key:"long-input-factor" help:"factor for the input prices of such a request"`
	LongOutput float64 `key:"long-output-factor" help:"factor for the output price of such a request"`
}

// Validate finds faults that can be found without the environment.
func (c Config) Validate() error {
	var faults []error
	if c.IdleTimeout < 0 {
		faults = append(faults, fmt.Errorf("model-idle-timeout: %s is negative", c.IdleTimeout))
	}
	faults = append(faults, checkURL("anthropic-base-url", c.AnthropicBaseURL), checkURL("openai-base-url", c.OpenAIBaseURL))
	for pattern, target := range c.Routes {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" || target == "" || strings.Contains(pattern, ":") {
			faults = append(faults, fmt.Errorf("model-routes: %q: %q: the name is a pattern such as gpt-* without a colon, and it leads to a provider or a model", pattern, target))
		}
	}
	for name := range c.Models {
		if !wellFormed(name) || strings.Contains(name, modeMark) {
			faults = append(faults, fmt.Errorf("models: %q is not of the form provider:model", name))
		}
	}
	for name := range c.Providers {
		if name == Own {
			faults = append(faults, fmt.Errorf("providers: the name %q is that of tenants' own models; choose another", name))
		}
		if name == "" || strings.ContainsAny(name, ": \t\n") {
			faults = append(faults, fmt.Errorf("providers: the name %q must not be empty or hold a colon or white space", name))
		}
	}
	return errors.Join(faults...)
}

// Validate finds faults in a provider's settings. The kind may be left out for
// the built-in ones.
func (p Provider) Validate() error {
	var faults []error
	if kinds := []string{"", KindAnthropic, KindOpenAI, KindScripted}; !slices.Contains(kinds, p.Kind) {
		faults = append(faults, fmt.Errorf("kind: %q is not one of %s", p.Kind, strings.Join(kinds[1:], ", ")))
	}
	if apis := []string{"", openai.Responses, openai.Chat}; !slices.Contains(apis, p.API) {
		faults = append(faults, fmt.Errorf("api: %q is not one of %s", p.API, strings.Join(apis[1:], ", ")))
	}
	if fields := []string{"", "max_completion_tokens", "max_tokens"}; !slices.Contains(fields, p.MaxTokensField) {
		faults = append(faults, fmt.Errorf("max-tokens-field: %q is not one of %s", p.MaxTokensField, strings.Join(fields[1:], ", ")))
	}
	if values := []string{"", openai.Auto, openai.Always, openai.Never}; !slices.Contains(values, p.Reasoning) {
		faults = append(faults, fmt.Errorf("reasoning: %q is not one of %s", p.Reasoning, strings.Join(values[1:], ", ")))
	}
	if versions := []string{"", anthropic.Version2023, anthropic.Version2026}; !slices.Contains(versions, p.APIVersion) {
		faults = append(faults, fmt.Errorf("api-version: %q is not one of %s", p.APIVersion, strings.Join(versions[1:], ", ")))
	}
	if platforms := []string{"", anthropic.Vertex, anthropic.Bedrock}; !slices.Contains(platforms, p.Platform) {
		faults = append(faults, fmt.Errorf("platform: %q is not one of %s", p.Platform, strings.Join(platforms[1:], ", ")))
	}
	faults = append(faults, checkURL("base-url", p.BaseURL))
	return errors.Join(faults...)
}

// Validate finds impossible limits and prices.
func (l Limits) Validate() error {
	var faults []error
	for key, n := range map[string]int64{
		"context-tokens": l.ContextTokens, "max-output-tokens": l.MaxOutputTokens,
		"thinking-tokens": l.ThinkingTokens, "long-after-tokens": l.LongAfter,
	} {
		if n < 0 {
			faults = append(faults, fmt.Errorf("%s: %d is negative", key, n))
		}
	}
	for key, f := range map[string]float64{
		"input-price": l.Input, "output-price": l.Output, "cache-read-price": l.CacheRead,
		"cache-write-price": l.CacheWrite, "long-input-factor": l.LongInput, "long-output-factor": l.LongOutput,
	} {
		if !(f >= 0 && f < 1e6) || math.IsNaN(f) {
			faults = append(faults, fmt.Errorf("%s: %v is not between 0 and a million", key, f))
		}
	}
	if !slices.Contains([]string{"", "budget", "adaptive"}, l.Thinking) {
		faults = append(faults, fmt.Errorf("thinking: %q is not budget or adaptive", l.Thinking))
	}
	faults = append(faults, between("temperature", l.Temperature, 2), between("top-p", l.TopP, 1))
	for name, m := range l.Modes {
		err := Limits{MaxOutputTokens: m.MaxOutputTokens, ThinkingTokens: m.ThinkingTokens, Thinking: m.Thinking, Temperature: m.Temperature, TopP: m.TopP}.Validate()
		if err != nil {
			faults = append(faults, fmt.Errorf("modes.%s: %w", name, err))
		}
	}
	faults = slices.DeleteFunc(faults, func(err error) bool { return err == nil })
	slices.SortFunc(faults, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(faults...)
}

// wellFormed reports whether name has the form provider:model.
func wellFormed(name string) bool {
	p, m, ok := strings.Cut(name, ":")
	return ok && p != "" && m != ""
}

func checkURL(key, s string) error {
	if s == "" {
		return nil
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return fmt.Errorf("%s: must be a URL such as https://api.example.com", key)
	case u.User != nil:
		return fmt.Errorf("%s: must not hold a user name or password; give a key instead", key)
	}
	return nil
}
