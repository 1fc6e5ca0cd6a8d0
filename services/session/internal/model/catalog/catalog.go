// Package catalog knows the models: their names, access, limits and prices.
// [New] finds every fault of a configuration, at start.
package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/services/internal/kit/config"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/anthropic"
	"github.com/fairlead/fairlead/services/session/internal/model/scripted"
)

// Entry is a model, ready to use.
type Entry struct {
	// Name is `provider:model`; ModelName goes into model.Request.Model, and
	// Provider into the provider data of blocks.
	Name, Provider, ModelName string
	// Kind of the provider, also the GenAI name of the system, except for
	// compatible servers.
	Kind     string
	Model    model.Model
	Endpoint Endpoint
	// The limits and prices. MaxOutputTokens is never 0.
	Limits
}

// Catalog has all models of a configuration. It does not change after New, so
// all methods are safe for concurrent use.
type Catalog struct {
	entries map[string]Entry
	dflt    string
	section string // of the configuration file, for hints
}

// provider is a Provider with everything that its models share.
type provider struct {
	Provider
	name      string
	key       config.Secret
	token     config.Secret
	tokenOnly bool // the configuration file names a token and no key
	anthropic *anthropic.Client
	scenarios map[string]*scripted.Scenario
}

// New checks the configuration and prepares every model in it. getenv reads the
// variables that `key-env` names, usually os.Getenv; an empty variable counts
// as a missing key. The error lists every fault.
func New(c Config, getenv func(string) string) (*Catalog, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("the configuration of models is wrong: %w", err)
	}
	providers, err := c.providers(getenv)
	if err != nil {
		return nil, fmt.Errorf("the configuration of models is wrong: %w", err)
	}
	cat := &Catalog{entries: map[string]Entry{}, section: c.Section}
	var faults []error
	for name, limits := range c.models(providers) {
		p, m, _ := strings.Cut(name, ":")
		entry, err := c.entry(providers[p], p, m, limits)
		if err != nil {
			faults = append(faults, c.at(err))
			continue
		}
		cat.entries[name] = entry
	}
	cat.dflt = c.choose(providers)
	if len(faults) == 0 {
		if _, err := cat.Resolve(cat.dflt); err != nil {
			faults = append(faults, err)
		}
	}
	if len(faults) > 0 {
		slices.SortFunc(faults, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
		return nil, fmt.Errorf("the configuration of models is wrong: %w", errors.Join(faults...))
	}
	return cat, nil
}

// Default returns the model of agents that name none.
func (c *Catalog) Default() Entry { return c.entries[c.dflt] }

// Names lists all models, as `provider:model`, sorted.
func (c *Catalog) Names() []string { return slices.Sorted(maps.Keys(c.entries)) }

// Resolve finds a model by its name, `provider:model`. The error lists the
// existing models and says how to add one. A model without a key is found; its
// streams fail with an Authentication error that says what to set.
func (c *Catalog) Resolve(name string) (Entry, error) {
	if e, ok := c.entries[name]; ok {
		return e, nil
	}
	if !wellFormed(name) {
		return Entry{}, fmt.Errorf("the model %q is not of the form provider:model; there are %s", name, strings.Join(c.Names(), ", "))
	}
	return Entry{}, fmt.Errorf("the model %q is not known%s", name, c.hint(name))
}

// choose returns the name of the default model.
func (c Config) choose(providers map[string]*provider) string {
	switch {
	case c.Model != "":
		return c.Model
	case providers[KindAnthropic].key != "", providers[KindAnthropic].token != "":
		return defaultAnthropic
	case providers[KindOpenAI].key != "":
		return defaultOpenAI
	}
	return defaultScripted
}

// models returns the known and the configured models, and those of scenarios.
func (c Config) models(providers map[string]*provider) map[string]Limits {
	all := maps.Clone(known)
	for _, p := range providers {
		for name := range p.scenarios {
			all[p.name+":"+name] = Limits{ContextTokens: 1_000_000, MaxOutputTokens: 1_000_000}
		}
	}
	for name, set := range c.Models {
		all[name] = all[name].with(set)
	}
	return all
}

// with returns l with the values that are set in set.
func (l Limits) with(set Limits) Limits {
	keep(&l.ContextTokens, set.ContextTokens)
	keep(&l.MaxOutputTokens, set.MaxOutputTokens)
	keep(&l.ThinkingTokens, set.ThinkingTokens)
	keep(&l.Thinking, set.Thinking)
	keep(&l.ReasoningEffort, set.ReasoningEffort)
	keep(&l.Guardrails, set.Guardrails)
	if set.Prices != (Prices{}) { // prices belong together
		l.Prices = set.Prices
	}
	return l
}

func keep[T comparable](dst *T, v T) {
	var zero T
	if v != zero {
		*dst = v
	}
}

// fallbackOutput is the longest answer of a model without a configured limit.
const fallbackOutput = 8_192

// entry prepares one model.
func (c Config) entry(p *provider, providerName, modelName string, l Limits) (Entry, error) {
	name := providerName + ":" + modelName
	if p == nil {
		return Entry{}, fmt.Errorf("models: %q: there is no provider %q; define it under providers", name, providerName)
	}
	if l.MaxOutputTokens == 0 {
		l.MaxOutputTokens = fallbackOutput
	}
	if p.Kind == KindAnthropic && l.ThinkingTokens > 0 && l.ThinkingTokens >= l.MaxOutputTokens {
		return Entry{}, fmt.Errorf("models: %q: thinking-tokens (%d) must be less than max-output-tokens (%d)", name, l.ThinkingTokens, l.MaxOutputTokens)
	}
	e := Entry{Name: name, Provider: providerName, ModelName: modelName, Kind: p.Kind, Endpoint: c.endpoint(p), Limits: l}
	var err error
	e.Model, err = c.model(p, modelName, l)
	if err != nil {
		return Entry{}, fmt.Errorf("models: %q: %w", name, err)
	}
	return e, nil
}

// keyless replaces a model whose provider has no key.
type keyless struct{ message string }

func (k keyless) Stream(ctx context.Context, _ model.Request, _ func(model.Delta) error) (*model.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return nil, &model.Error{Kind: model.Authentication, Message: k.message}
}
