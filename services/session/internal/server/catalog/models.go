package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/directory"
	"github.com/fairlead/fairlead/services/session/internal/model/catalog"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// ModelServer implements ModelService. A tenant's own entries are rows of the table of
// agents, in a collection of their own.
type ModelServer struct {
	sessionv1.UnimplementedModelServiceServer
	*Config
}

// shown returns a model of the server.
func (x *ModelServer) shown(e catalog.Entry) *sessionv1.Model {
	return &sessionv1.Model{
		Name: directory.ModelsFolder + e.Name, Provider: e.Provider, Kind: e.Kind,
		ContextTokens: e.ContextTokens, MaxOutputTokens: e.MaxOutputTokens, ThinkingTokens: e.ThinkingTokens,
		InputPrice: e.Input, OutputPrice: e.Output, CacheReadPrice: e.CacheRead, CacheWritePrice: e.CacheWrite,
		Modes: e.ModeNames(), Fallbacks: e.Fallbacks, Unusable: e.Unusable, Warning: x.Directory.Models.Warning(e),
	}
}

// own returns an own entry. One whose target is gone is shown with the reason.
func (x *ModelServer) own(row store.AgentRow) (*sessionv1.Model, error) {
	spec, err := directory.ModelOf(row)
	if err != nil {
		return nil, err
	}
	m := &sessionv1.Model{Name: row.Name}
	if e, err := x.Directory.Models.Narrow(strings.TrimPrefix(row.Name, directory.ModelsFolder), directory.OwnEntry(spec)); err != nil {
		m.Unusable = err.Error()
	} else {
		m = x.shown(e)
		m.Modes = nil // are named in the target
	}
	m.Spec, m.Version, m.CreateTime, m.UpdateTime = spec, row.Version, timestamppb.New(row.CreateTime), timestamppb.New(row.VersionTime)
	return m, nil
}

// CreateModel creates an own entry.
func (x *ModelServer) CreateModel(ctx context.Context, r *sessionv1.CreateModelRequest) (*sessionv1.CreateModelResponse, error) {
	name := r.ModelId
	if name == "" {
		name = "m" + id.New() // a name begins with a letter
	}
	w := store.AgentWrite{Most: directory.MostOwnModels, Request: request.Lasting("CreateModel", "", r)}
	m, err := x.write(ctx, directory.OwnModelsFolder+name, r.Spec, w)
	return &sessionv1.CreateModelResponse{Model: m}, err
}

// UpdateModel replaces the spec of an own entry.
func (x *ModelServer) UpdateModel(ctx context.Context, r *sessionv1.UpdateModelRequest) (*sessionv1.UpdateModelResponse, error) {
	m, err := x.write(ctx, r.Name, r.Spec, store.AgentWrite{Expected: r.ExpectedVersion, Request: request.Lasting("UpdateModel", r.Name, r)})
	return &sessionv1.UpdateModelResponse{Model: m}, err
}

func (x *ModelServer) write(ctx context.Context, name string, spec *sessionv1.ModelSpec, w store.AgentWrite) (*sessionv1.Model, error) {
	if _, err := x.Directory.Models.Narrow(name, directory.OwnEntry(spec)); err != nil {
		var f *catalog.Fault
		if errors.As(err, &f) {
			return nil, refusal.Input("spec."+f.Field, "spec."+f.Error())
		}
		return nil, err
	}
	body, err := protojson.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("marshal %s: %w", name, err)
	}
	sum := sha256.Sum256([]byte(spec.String()))
	w.AgentRevision = store.AgentRevision{Name: name, Revision: hex.EncodeToString(sum[:8]), Spec: body}
	row, err := x.Config.write(ctx, w, refusal.Model)
	if err != nil {
		return nil, err
	}
	return x.own(row)
}

func (x *ModelServer) read(ctx context.Context, name string, version int32) (*sessionv1.Model, error) {
	row, err := x.Store.GetAgent(ctx, principal.Tenant(ctx), name, version)
	if err != nil {
		return nil, refusal.Model(err, name, "")
	}
	return x.own(row)
}

// DeleteModel deletes an own entry.
func (x *ModelServer) DeleteModel(ctx context.Context, r *sessionv1.DeleteModelRequest) (*sessionv1.DeleteModelResponse, error) {
	_, err := x.Store.DeleteAgent(ctx, store.DeleteAgent{
		Tenant: principal.Tenant(ctx), Name: r.Name, Request: request.Lasting("DeleteModel", r.Name, r),
	})
	if err != nil {
		return nil, refusal.Model(err, r.Name, r.RequestId)
	}
	return &sessionv1.DeleteModelResponse{}, nil
}

// GetModel reads a model.
func (x *ModelServer) GetModel(ctx context.Context, r *sessionv1.GetModelRequest) (*sessionv1.GetModelResponse, error) {
	if strings.HasPrefix(r.Name, directory.OwnModelsFolder) {
		m, err := x.read(ctx, r.Name, 0)
		return &sessionv1.GetModelResponse{Model: m}, err
	}
	e, err := x.Directory.Models.Resolve(strings.TrimPrefix(r.Name, directory.ModelsFolder))
	if err != nil {
		return nil, refusal.ModelNotFound(r.Name)
	}
	return &sessionv1.GetModelResponse{Model: x.shown(e)}, nil
}

// ListModels lists a page of models.
func (x *ModelServer) ListModels(ctx context.Context, r *sessionv1.ListModelsRequest) (*sessionv1.ListModelsResponse, error) {
	tenant := principal.Tenant(ctx)
	scope := "ListModels\x00" + tenant
	all, next, err := request.List(scope, r, refusal.Subject{}, request.ByName, func(after string, n int) ([]*sessionv1.Model, error) {
		return x.behind(ctx, tenant, after, n)
	})
	return &sessionv1.ListModelsResponse{Models: all, NextPageToken: next}, err
}

// behind returns the first n models behind a name: those of the server and the tenant's
// own, in one order.
func (x *ModelServer) behind(ctx context.Context, tenant, after string, n int) ([]*sessionv1.Model, error) {
	rows, err := x.Store.ListAgents(ctx, tenant, "models", after, false, n)
	if err != nil {
		return nil, err
	}
	var all []*sessionv1.Model
	for _, row := range rows {
		m, err := x.own(row)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	for _, e := range x.Directory.Models.All() {
		if directory.ModelsFolder+e.Name > after {
			all = append(all, x.shown(e))
		}
	}
	slices.SortFunc(all, func(a, b *sessionv1.Model) int { return strings.Compare(a.Name, b.Name) })
	return all[:min(n, len(all))], nil
}
