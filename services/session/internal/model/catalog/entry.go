package catalog

import (
	"fmt"
	"strconv"

	"github.com/fairlead/fairlead/services/session/internal/model/anthropic"
)

// fallbackOutput is the longest answer of a model without a configured limit, and
// fallbackContext the context of one that is in no table.
const (
	fallbackOutput  = 8_192
	fallbackContext = 128_000
)

// entry prepares one model.
func (c Config) entry(p *provider, providerName, modelName string, l Limits) (Entry, error) {
	name := providerName + ":" + modelName
	if p == nil {
		return Entry{}, fmt.Errorf("models: %q: there is no provider %q; define it under providers", name, providerName)
	}
	if l.MaxOutputTokens == 0 {
		l.MaxOutputTokens = fallbackOutput
	}
	if l.sampled() && p.Kind == KindAnthropic && c.Models[name].ThinkingTokens == 0 {
		l.ThinkingTokens, l.Thinking = 0, "" // the API takes sampling only without thinking
	}
	if err := l.fits(p); err != nil {
		return Entry{}, fmt.Errorf("models: %q: %w", name, err)
	}
	e := Entry{Name: name, Provider: providerName, ModelName: modelName, Kind: p.Kind, Limits: l, Endpoint: c.endpoint(p)}
	e.Unusable = e.Endpoint.Missing
	var err error
	e.Model, err = c.model(p, modelName, l)
	if err != nil {
		return Entry{}, fmt.Errorf("models: %q: %w", name, err)
	}
	return e, nil
}

// fits reports limits that the provider's API refuses.
func (l Limits) fits(p *provider) error {
	switch {
	case p.Kind != KindAnthropic:
		return nil
	case l.ThinkingTokens > 0 && l.ThinkingTokens >= l.MaxOutputTokens:
		return fmt.Errorf("thinking-tokens (%d) must be less than max-output-tokens (%d)", l.ThinkingTokens, l.MaxOutputTokens)
	case l.sampled() && p.APIVersion == anthropic.Version2026:
		return fmt.Errorf("temperature, top-p: version %s of the API refuses them; leave them out, or set api-version: %q for the provider %s", p.APIVersion, anthropic.Version2023, p.name)
	case l.sampled() && l.ThinkingTokens > 0:
		return fmt.Errorf("temperature, top-p: the API refuses them together with thinking; leave out one of both")
	}
	return nil
}

func (l Limits) sampled() bool { return l.Temperature != "" || l.TopP != "" }

// Sampling returns the model's temperature and top-p; nil: the provider's own.
func (l Limits) Sampling() (temperature, topP *float64) {
	return fraction(l.Temperature), fraction(l.TopP)
}

// fraction returns the number that a checked setting holds.
func fraction(s string) *float64 {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil
	}
	return &f
}

// between checks a setting that is a number.
func between(key, s string, most float64) error {
	if s == "" {
		return nil
	}
	if f := fraction(s); f == nil || !(*f >= 0 && *f <= most) {
		return fmt.Errorf("%s: %q is not a number from 0 to %v", key, s, most)
	}
	return nil
}

// ofMode returns the limits in a mode. Every model that can think has the mode
// `thinking`, also where the table has none.
func (l Limits) ofMode(kind, name string) (Limits, bool) {
	m, ok := l.Modes[name]
	if !ok && name != "thinking" {
		return l, false
	}
	if !ok && kind == KindAnthropic {
		m.ThinkingTokens = min(modeThinking, l.MaxOutputTokens/2)
		m.ThinkingTokens = max(m.ThinkingTokens, l.ThinkingTokens)
	} else if !ok {
		m.ReasoningEffort = "high"
	}
	if m.ThinkingTokens > 0 { // sampling and thinking exclude each other
		l.Temperature, l.TopP = "", ""
	}
	return l.with(Limits{
		MaxOutputTokens: m.MaxOutputTokens, ThinkingTokens: m.ThinkingTokens, Thinking: m.Thinking,
		ReasoningEffort: m.ReasoningEffort, Temperature: m.Temperature, TopP: m.TopP,
	}), true
}

// modeThinking bounds the thinking in the mode `thinking`.
const modeThinking = 16_000
