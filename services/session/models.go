package session

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/directory"
	"github.com/fairlead/fairlead/services/session/internal/model/catalog"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// resolver finds models for turns.
type resolver struct{ *directory.Directory }

// resolve finds a model; "" means the default one.
func (r resolver) resolve(ctx context.Context, name string) (state.Resolved, error) {
	e, rules, err := r.Guarded(ctx, name)
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
