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
	"sync"

	"github.com/fairlead/fairlead/services/internal/kit/config"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/anthropic"
	"github.com/fairlead/fairlead/services/session/internal/model/scripted"
)

// Entry is a model, ready to use.
type Entry struct {
	// Name is `provider:model`, with `:mode=MODE` for a mode; ModelName goes into
	// model.Request.Model, and Provider into the provider data of blocks.
	Name, Provider, ModelName string
	// Kind of the provider, also the GenAI name of the system, except for
	// compatible servers.
	Kind  string
	Model model.Model
	// Endpoint is where the provider serves its own wire.
	Endpoint Endpoint
	// Unlisted models are in no table: they have conservative limits and no price.
	Unlisted bool
	// Unusable says why the model cannot work now and what to do; empty when it can,
	// as far as is known.
	Unusable string
	// Own entries are those of a tenant.
	Own bool
	// The limits and prices. MaxOutputTokens is never 0.
	Limits

	mode string
}

// Catalog has all models of a configuration. All methods are safe for concurrent use.
type Catalog struct {
	config    Config
	providers map[string]*provider
	entries   map[string]Entry // does not change after New
	routes    []route
	dflt      string

	mu    sync.Mutex
	named map[string]Entry // models that are in no table, but in the rest of the configuration
	asked map[string]Entry // models and modes that are in no table, as requests name them
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
	cat := &Catalog{config: c, providers: providers, entries: map[string]Entry{}, routes: c.routes(), named: map[string]Entry{}, asked: map[string]Entry{}}
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
		if _, err := cat.Configured(cat.dflt); err != nil {
			faults = append(faults, err)
		}
		faults = append(faults, cat.checkNames()...)
	}
	if len(faults) > 0 {
		slices.SortFunc(faults, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
		return nil, fmt.Errorf("the configuration of models is wrong: %w", errors.Join(faults...))
	}
	return cat, nil
}

// checkNames finds modes, fallbacks and routes that lead to no model.
func (c *Catalog) checkNames() (faults []error) {
	for _, name := range slices.Sorted(maps.Keys(c.config.Models)) {
		set := c.config.Models[name]
		for mode := range set.Modes {
			if _, err := c.Resolve(name + modeMark + mode); err != nil {
				faults = append(faults, c.config.at(err))
			}
		}
		for _, next := range set.Fallbacks {
			e, err := c.Configured(next)
			if err == nil && e.Name == name {
				err = errors.New("a model cannot take its own place")
			}
			if err != nil {
				faults = append(faults, c.config.at(fmt.Errorf("models: %q: fallbacks: %w", name, err)))
			}
		}
	}
	for _, r := range c.routes {
		p, _, _ := strings.Cut(r.target, ":")
		if c.providers[p] == nil {
			faults = append(faults, c.config.at(fmt.Errorf("model-routes: %q: there is no provider %q; define it under providers", r.pattern, p)))
		}
	}
	return faults
}

// Default returns the model of agents that name none.
func (c *Catalog) Default() Entry {
	e, _ := c.Resolve(c.dflt) // New has tried it
	return e
}

// Names lists the models of the tables, as `provider:model`, sorted.
func (c *Catalog) Names() []string { return slices.Sorted(maps.Keys(c.entries)) }

// All returns the models of the tables and those that the rest of the configuration names, by name. A name of a request
// adds none: it may be wrong, and the list is everybody's.
func (c *Catalog) All() []Entry {
	all := slices.Collect(maps.Values(c.entries))
	c.mu.Lock()
	all = slices.AppendSeq(all, maps.Values(c.named))
	c.mu.Unlock()
	slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return all
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
	keep(&l.Temperature, set.Temperature)
	keep(&l.TopP, set.TopP)
	if len(set.Fallbacks) > 0 {
		l.Fallbacks = set.Fallbacks
	}
	if len(set.Modes) > 0 {
		l.Modes = set.Modes
	}
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

// keyless replaces a model whose provider has no key.
type keyless struct{ message string }

func (k keyless) Stream(ctx context.Context, _ model.Request, _ func(model.Delta) error) (*model.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return nil, &model.Error{Kind: model.Authentication, Message: k.message}
}
