package catalog

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/config"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/anthropic"
	"github.com/fairlead/fairlead/services/session/internal/model/openai"
	"github.com/fairlead/fairlead/services/session/internal/model/scripted"
)

// providers returns the built-in and the configured providers by name, after it
// has read their keys and scenarios.
func (c Config) providers(getenv func(string) string) (map[string]*provider, error) {
	all := map[string]*provider{
		KindAnthropic: {Provider: Provider{Kind: KindAnthropic, KeyEnv: "ANTHROPIC_API_KEY", TokenEnv: "ANTHROPIC_AUTH_TOKEN"}}, //nolint:gosec // names of variables
		KindOpenAI:    {Provider: Provider{Kind: KindOpenAI, KeyEnv: "OPENAI_API_KEY"}},
		KindScripted:  {Provider: Provider{Kind: KindScripted}},
	}
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		set := c.Providers[name]
		if err := set.Validate(); err != nil {
			faults = append(faults, fmt.Errorf("providers.%s: %w", name, err))
		}
		p, builtin := all[name]
		switch {
		case !builtin && set.Kind == "":
			faults = append(faults, fmt.Errorf("providers.%s: kind is missing: it is anthropic, openai or scripted", name))
		case builtin && set.Kind != "" && set.Kind != p.Kind:
			faults = append(faults, fmt.Errorf("providers.%s: the kind of a built-in provider cannot be changed to %s; choose another name", name, set.Kind))
		case !builtin:
			all[name] = &provider{Provider: set}
		default:
			p.merge(set)
		}
	}
	c.wellKnown(all)
	for name, p := range all {
		p.name = name
		if err := p.ready(c.IdleTimeout, getenv); err != nil {
			faults = append(faults, fmt.Errorf("providers.%s: %w", name, err))
		}
	}
	slices.SortFunc(faults, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	for i, fault := range faults {
		faults[i] = c.at(fault)
	}
	return all, errors.Join(faults...)
}

// merge takes over the values that are set in set.
func (p *provider) merge(set Provider) {
	keep(&p.BaseURL, set.BaseURL)
	keep(&p.API, set.API)
	keep(&p.Key, set.Key)
	keep(&p.KeyEnv, set.KeyEnv)
	p.tokenOnly = (set.Token != "" || set.TokenEnv != "") && set.Key == "" && set.KeyEnv == ""
	keep(&p.Token, set.Token)
	keep(&p.TokenEnv, set.TokenEnv)
	keep(&p.APIVersion, set.APIVersion)
	keep(&p.Platform, set.Platform)
	keep(&p.Region, set.Region)
	keep(&p.Project, set.Project)
	keep(&p.NoKey, set.NoKey)
	keep(&p.Scenario, set.Scenario)
	keep(&p.MaxTokensField, set.MaxTokensField)
	keep(&p.Reasoning, set.Reasoning)
}

// wellKnown applies the keys that have names of their own; the environment and
// flags override the file's providers.
func (c Config) wellKnown(all map[string]*provider) {
	keep(&all[KindAnthropic].Key, c.AnthropicKey) // not used where the file names a token
	keep(&all[KindAnthropic].BaseURL, c.AnthropicBaseURL)
	keep(&all[KindOpenAI].Key, c.OpenAIKey)
	keep(&all[KindOpenAI].BaseURL, c.OpenAIBaseURL)
	keep(&all[KindScripted].Scenario, c.Scenario)
}

// ready reads the provider's credentials or its scenarios.
func (p *provider) ready(idle time.Duration, getenv func(string) string) error {
	if p.Kind == KindScripted {
		return p.script()
	}
	if p.Scenario != "" {
		return errors.New("scenario: only providers of kind scripted have one")
	}
	read := func(value config.Secret, variable string) config.Secret {
		if value == "" && variable != "" {
			return config.Secret(strings.TrimSpace(getenv(variable)))
		}
		return value
	}
	p.token = read(p.Token, p.TokenEnv)
	if !p.tokenOnly {
		p.key = read(p.Key, p.KeyEnv)
	}
	if p.Kind == KindAnthropic {
		return p.connect(idle, getenv)
	}
	for key, value := range map[string]string{"auth-token": string(p.Token), "auth-token-env": p.TokenEnv, "api-version": p.APIVersion, "platform": p.Platform} {
		if value != "" {
			return fmt.Errorf("%s: only providers of kind anthropic have one", key)
		}
	}
	return nil
}

// connect prepares the access to the Messages API.
func (p *provider) connect(idle time.Duration, getenv func(string) string) error {
	const ambient = "AWS_BEARER_TOKEN_BEDROCK"
	switch {
	case p.Platform == "" && (p.Region != "" || p.Project != ""):
		return errors.New("platform: is missing: region and project are those of vertex or bedrock")
	case p.Platform != "" && p.Region == "":
		return fmt.Errorf("region: is missing, and platform %s needs one, such as us-east-1", p.Platform)
	case p.Platform == anthropic.Vertex && p.Project == "":
		return errors.New("project: is missing: it is the Google Cloud project that pays")
	case p.Platform == anthropic.Bedrock && p.token != "" && getenv(ambient) != "" && getenv(ambient) != p.token.Reveal():
		return fmt.Errorf("auth-token: %s in the environment of the server is stronger; unset it", ambient)
	}
	if p.key != "" { // where both are there, as in the environment of other clients
		p.token = ""
	}
	token := p.token.Reveal()
	if p.Platform == anthropic.Bedrock && token == "" {
		token = getenv(ambient)
	}
	p.anthropic = anthropic.Connect(anthropic.Access{
		Provider: p.name, BaseURL: p.BaseURL, Key: p.key.Reveal(), Token: token, Version: p.APIVersion,
		Platform: p.Platform, Region: p.Region, Project: p.Project, Idle: idle,
	})
	return nil
}

func (p *provider) script() error {
	p.scenarios = map[string]*scripted.Scenario{}
	if p.name == KindScripted {
		builtin, err := scripted.Builtin()
		if err != nil {
			return err
		}
		p.scenarios = builtin
	}
	if p.Scenario == "" {
		if p.name != KindScripted {
			return errors.New("scenario: name the YAML file to play")
		}
		return nil
	}
	s, err := scripted.Load(p.Scenario)
	if err != nil {
		return err
	}
	p.scenarios[s.Name] = s
	return nil
}

// model returns a model of a provider.
func (c Config) model(p *provider, name string, l Limits) (model.Model, error) {
	if p.Kind == KindScripted {
		s, ok := p.scenarios[name]
		if !ok {
			return nil, fmt.Errorf("there is no scenario %q; there are %s", name, strings.Join(slices.Sorted(maps.Keys(p.scenarios)), ", "))
		}
		return scripted.New(s), nil
	}
	if p.key == "" && p.token == "" && !p.NoKey && p.Platform == "" {
		return keyless{p.keyHint(c.Section)}, nil
	}
	if p.Kind == KindAnthropic {
		return p.anthropic.Model(anthropic.Limits{
			Adaptive: l.Thinking == "adaptive", MaxOutputTokens: l.MaxOutputTokens, ContextTokens: l.ContextTokens,
		}), nil
	}
	return openai.New(openai.Config{
		Provider: p.name, BaseURL: p.BaseURL, API: p.API, Key: p.key.Reveal(), Idle: c.IdleTimeout,
		LegacyMaxTokens: p.MaxTokensField == "max_tokens", ReasoningEffort: l.ReasoningEffort, Reasoning: p.Reasoning,
		MaxOutputTokens: l.MaxOutputTokens, ContextTokens: l.ContextTokens,
	}), nil
}

// keyHint says what to do about a missing key.
func (p *provider) keyHint(section string) string {
	if p.KeyEnv == "" {
		return fmt.Sprintf("the model provider %s has no key: set %s.key-env in the configuration file to the variable that holds it, or no-key: true if the server needs no key", p.name, keyPath(section, "providers."+p.name))
	}
	return fmt.Sprintf("the model provider %s has no key: set %s in the environment of the server and start it again", p.name, p.KeyEnv)
}
