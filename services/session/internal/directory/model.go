package directory

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/guardrail"
	"github.com/fairlead/fairlead/services/session/internal/model/catalog"
	"github.com/fairlead/fairlead/services/session/internal/modelview"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

const (
	// ModelsFolder begins the resource name of a model.
	ModelsFolder = "models/"
	// OwnModelsFolder begins the resource name of an entry of the tenant's own.
	OwnModelsFolder = ModelsFolder + catalog.Own + ":"
	// MostOwnModels bounds a tenant's own entries.
	MostOwnModels = 1000
)

// Model finds a model by the name that agents use; "" means the default one. A tenant's own entries are those of the
// caller's tenant.
func (d *Directory) Model(ctx context.Context, name string) (catalog.Entry, error) {
	switch {
	case name == "":
		return d.Models.Default(), nil
	case !strings.HasPrefix(name, catalog.Own+":"):
		return d.Models.Resolve(name)
	}
	row, err := d.Store.GetAgent(ctx, principal.Tenant(ctx), ModelsFolder+name, 0)
	if errors.Is(err, store.ErrNotFound) {
		return catalog.Entry{}, noOwnModelError(name)
	}
	if err != nil {
		return catalog.Entry{}, err
	}
	spec, err := ModelOf(row)
	if err != nil {
		return catalog.Entry{}, err
	}
	return d.Models.Narrow(name, OwnEntry(spec))
}

// noOwnModelError is the name of an entry that the tenant does not have.
type noOwnModelError string

func (n noOwnModelError) Error() string {
	return fmt.Sprintf("the tenant has no model %q; list the models (GET /v1/models) to see which there are", string(n))
}

// Is makes it a store.ErrNotFound.
func (noOwnModelError) Is(target error) bool { return target == store.ErrNotFound }

// OwnModels returns the usable own entries of the caller's tenant, by name.
func (d *Directory) OwnModels(ctx context.Context) ([]catalog.Entry, error) {
	rows, err := d.Store.ListAgents(ctx, principal.Tenant(ctx), "models", "", false, MostOwnModels)
	if err != nil {
		return nil, err
	}
	var all []catalog.Entry
	for _, row := range rows {
		spec, err := ModelOf(row)
		if err != nil {
			return nil, err
		}
		if e, err := d.Models.Narrow(strings.TrimPrefix(row.Name, ModelsFolder), OwnEntry(spec)); err == nil {
			all = append(all, e)
		}
	}
	return all, nil
}

// ModelOf reads the spec of a tenant's own entry.
func ModelOf(row store.AgentRow) (*sessionv1.ModelSpec, error) {
	spec := &sessionv1.ModelSpec{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(row.Spec, spec); err != nil {
		return nil, fmt.Errorf("version %d of %s: %w", row.Version, row.Name, err)
	}
	return spec, nil
}

// OwnEntry returns what a tenant's own entry makes of its target.
func OwnEntry(s *sessionv1.ModelSpec) catalog.OwnEntry {
	return catalog.OwnEntry{
		Target: s.Target, ContextTokens: s.ContextTokens, MaxOutputTokens: s.MaxOutputTokens, ThinkingTokens: s.ThinkingTokens,
		Temperature: s.Temperature, TopP: s.TopP,
	}
}

// DefaultModel returns the name of the model of agents that name none.
func (d *Directory) DefaultModel() string { return d.Models.Default().Name }

// Guarded finds a model as Model does, with the rules that bound it.
func (d *Directory) Guarded(ctx context.Context, name string) (catalog.Entry, guardrail.Rules, error) {
	e, err := d.Model(ctx, name)
	if err != nil {
		return catalog.Entry{}, guardrail.Rules{}, err
	}
	rules, err := d.Guardrails.Get(e.Guardrails)
	return e, rules, err
}

// ContextTokens returns the longest conversation of a model; 0 if it is not known, or there is no such model, which the
// turn reports.
func (d *Directory) ContextTokens(ctx context.Context, name string) int64 {
	e, _, err := d.Guarded(ctx, name)
	if err != nil {
		return 0
	}
	return e.ContextTokens
}

// ThinkingTokens returns the most tokens that a model may think in a step; 0 if there is no such model, which the turn
// reports.
func (d *Directory) ThinkingTokens(ctx context.Context, name string) int64 {
	e, _, err := d.Guarded(ctx, name)
	if err != nil {
		return 0
	}
	return e.ThinkingTokens
}

// ModelFaults returns what the models lack for an agent.
func (d *Directory) ModelFaults(ctx context.Context, spec agent.Spec) []agent.Fault {
	return modelFaults(ctx, spec, d.Model)
}

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

// Check refuses a configuration whose agents or models name what does not exist, or whose prompts are too long: an error at
// start, not at the first turn.
func Check(ctx context.Context, c Config) error {
	configured := func(_ context.Context, name string) (catalog.Entry, error) {
		if name == "" {
			return c.Models.Default(), nil
		}
		return c.Models.Configured(name)
	}
	var faults []error
	for _, a := range c.Agents.All() {
		for _, fault := range modelFaults(ctx, a.Spec, configured) {
			faults = append(faults, fmt.Errorf("agent %q: %s", a.ID, fault.Text))
		}
	}
	for _, name := range c.Models.Names() {
		e, err := c.Models.Resolve(name)
		if err == nil {
			_, err = c.Guardrails.Get(e.Guardrails)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("models: %q: %w", name, err))
		}
	}
	return errors.Join(faults...)
}
