package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/guardrail"
	"github.com/fairlead/fairlead/services/session/internal/model/catalog"
	"github.com/fairlead/fairlead/services/session/internal/modelview"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// resolve finds a model; "" means the default one.
func (s *Service) resolve(ctx context.Context, name string) (state.Resolved, error) {
	e, err := s.server.FindModel(ctx, name)
	if err != nil {
		return state.Resolved{}, err
	}
	rules, err := s.guardrails.Get(e.Guardrails)
	if err != nil {
		return state.Resolved{}, err
	}
	temperature, topP := e.Sampling()
	return state.Resolved{
		Model: e.Model, Name: e.ModelName, Provider: e.Provider, MaxOutputTokens: e.MaxOutputTokens,
		ThinkingTokens: e.ThinkingTokens, Cost: e.Cost,
		ContextTokens: e.ContextTokens, Guardrails: rules,
		Dearest:   e.MaxTokenCost,
		Fallbacks: e.Fallbacks, Unpriced: e.Unlisted, Temperature: temperature, TopP: topP,
	}, nil
}

// contextTokens returns the context of a model; 0 if it is not known.
func (s *Service) contextTokens(ctx context.Context, name string) int64 {
	r, err := s.resolve(ctx, name)
	if err != nil {
		return 0 // the turn reports it
	}
	return r.ContextTokens
}

// thinkingTokens returns the most tokens that a model may think in a step.
func (s *Service) thinkingTokens(ctx context.Context, name string) int64 {
	r, err := s.resolve(ctx, name)
	if err != nil {
		return 0 // the turn reports it
	}
	return r.ThinkingTokens
}

// checkModels refuses agents whose model is not configured, or whose prompt is
// too long for it: an error at start, not at the first turn.
func checkModels(ctx context.Context, agents *agent.Set, models *catalog.Catalog) error {
	find := func(_ context.Context, name string) (catalog.Entry, error) {
		if name == "" {
			return models.Default(), nil
		}
		return models.Configured(name)
	}
	var faults []error
	for _, a := range agents.All() {
		for _, fault := range modelFaults(ctx, a.Spec, find) {
			faults = append(faults, fmt.Errorf("agent %q: %s", a.ID, fault.Text))
		}
	}
	return errors.Join(faults...)
}

// modelFaults returns what the models lack for an agent.
func modelFaults(ctx context.Context, spec agent.Spec, find func(context.Context, string) (catalog.Entry, error)) []agent.Fault {
	e, err := find(ctx, spec.Model)
	if err != nil {
		return []agent.Fault{{Field: "model", Text: err.Error()}}
	}
	for _, name := range spec.Models {
		if name == agent.Every {
			continue
		}
		if _, err := find(ctx, name); err != nil {
			return []agent.Fault{{Field: "models", Text: err.Error()}}
		}
	}
	for _, a := range spec.Subagents {
		if a.Model == "" {
			continue
		}
		if _, err := find(ctx, a.Model); err != nil {
			return []agent.Fault{{Field: "subagents", Text: fmt.Sprintf("subagent %q: %v", a.Name, err)}}
		}
	}
	n := modelview.TextTokens(spec.Prompt)
	if e.ContextTokens == 0 || n <= modelview.MostFixed(e.ContextTokens) {
		return nil
	}
	return []agent.Fault{{Field: "prompt", Text: fmt.Sprintf(
		"prompt: about %d tokens; the context of its model %s has %d: shorten it, or choose a model with a larger context", n, e.Name, e.ContextTokens)}}
}

// warnOfModels logs, once for each, what is odd about the models that agents name.
func warnOfModels(log *slog.Logger, agents *agent.Set, models *catalog.Catalog) {
	named := map[string]catalog.Entry{}
	see := func(name string) {
		if e, err := models.Resolve(name); err == nil { // checkModels has refused others
			named[e.Name] = e
		}
	}
	see(models.Default().Name)
	for _, a := range agents.All() {
		see(a.Spec.Model)
		for _, name := range a.Spec.Models {
			see(name)
		}
		for _, sub := range a.Spec.Subagents {
			if sub.Model != "" {
				see(sub.Model)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if warning := models.Warning(named[name]); warning != "" {
			log.Warn("a model is in no table", "model", name, "warning", warning)
		}
	}
}

// checkGuardrails refuses models whose profile of guardrails is not configured.
func checkGuardrails(models *catalog.Catalog, guardrails guardrail.Profiles) error {
	var faults []error
	for _, name := range models.Names() {
		e, err := models.Resolve(name)
		if err == nil {
			_, err = guardrails.Get(e.Guardrails)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("models: %q: %w", name, err))
		}
	}
	return errors.Join(faults...)
}
