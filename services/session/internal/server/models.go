package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/model/catalog"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

const (
	modelsFolder = "models/"
	ownPrefix    = modelsFolder + catalog.Own + ":"
	// mostOwnModels bounds a tenant's own entries.
	mostOwnModels = 1000
)

// ModelServer implements ModelService. A tenant's own entries are rows of the table of
// agents, in a collection of their own.
type ModelServer struct {
	sessionv1.UnimplementedModelServiceServer
	s *Server
}

// ModelService returns the server of ModelService.
func (s *Server) ModelService() *ModelServer { return &ModelServer{s: s} }

// FindModel finds a model by the name that agents use; "" means the default one. A
// tenant's own entries are those of the caller's tenant.
func (c *Config) FindModel(ctx context.Context, name string) (catalog.Entry, error) {
	switch {
	case name == "":
		return c.Catalog.Default(), nil
	case !strings.HasPrefix(name, catalog.Own+":"):
		return c.Catalog.Resolve(name)
	}
	row, err := c.Store.GetAgent(ctx, principal.Tenant(ctx), modelsFolder+name, 0)
	if errors.Is(err, store.ErrNotFound) {
		return catalog.Entry{}, noOwnModelError(name)
	}
	if err != nil {
		return catalog.Entry{}, err
	}
	spec, err := modelSpec(row)
	if err != nil {
		return catalog.Entry{}, err
	}
	return c.Catalog.Narrow(name, ownEntry(spec))
}

// noOwnModelError is the name of an entry that the tenant does not have.
type noOwnModelError string

func (n noOwnModelError) Error() string {
	return fmt.Sprintf("the tenant has no model %q; list the models (GET /v1/models) to see which there are", string(n))
}

// Is makes it a store.ErrNotFound.
func (noOwnModelError) Is(target error) bool { return target == store.ErrNotFound }

// OwnModels returns the usable own entries of the caller's tenant, by name.
func (s *Server) OwnModels(ctx context.Context) ([]catalog.Entry, error) {
	rows, err := s.Store.ListAgents(ctx, principal.Tenant(ctx), "models", "", false, mostOwnModels)
	if err != nil {
		return nil, err
	}
	var all []catalog.Entry
	for _, row := range rows {
		spec, err := modelSpec(row)
		if err != nil {
			return nil, err
		}
		if e, err := s.Catalog.Narrow(strings.TrimPrefix(row.Name, modelsFolder), ownEntry(spec)); err == nil {
			all = append(all, e)
		}
	}
	return all, nil
}

func modelSpec(row store.AgentRow) (*sessionv1.ModelSpec, error) {
	spec := &sessionv1.ModelSpec{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(row.Spec, spec); err != nil {
		return nil, fmt.Errorf("version %d of %s: %w", row.Version, row.Name, err)
	}
	return spec, nil
}

func ownEntry(s *sessionv1.ModelSpec) catalog.OwnEntry {
	return catalog.OwnEntry{
		Target: s.Target, ContextTokens: s.ContextTokens, MaxOutputTokens: s.MaxOutputTokens, ThinkingTokens: s.ThinkingTokens,
		Temperature: s.Temperature, TopP: s.TopP,
	}
}

// shown returns a model of the server.
func (x *ModelServer) shown(e catalog.Entry) *sessionv1.Model {
	return &sessionv1.Model{
		Name: modelsFolder + e.Name, Provider: e.Provider, Kind: e.Kind,
		ContextTokens: e.ContextTokens, MaxOutputTokens: e.MaxOutputTokens, ThinkingTokens: e.ThinkingTokens,
		InputPrice: e.Input, OutputPrice: e.Output, CacheReadPrice: e.CacheRead, CacheWritePrice: e.CacheWrite,
		Modes: e.ModeNames(), Fallbacks: e.Fallbacks, Unusable: e.Unusable, Warning: x.s.Catalog.Warning(e),
	}
}

// own returns an own entry. One whose target is gone is shown with the reason.
func (x *ModelServer) own(row store.AgentRow) (*sessionv1.Model, error) {
	spec, err := modelSpec(row)
	if err != nil {
		return nil, err
	}
	m := &sessionv1.Model{Name: row.Name}
	if e, err := x.s.Catalog.Narrow(strings.TrimPrefix(row.Name, modelsFolder), ownEntry(spec)); err != nil {
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
	m, err := x.write(ctx, ownPrefix+name, r.Spec, store.AgentWrite{Most: mostOwnModels, Request: keepForADay(request("CreateModel", "", r.RequestId, r))})
	return &sessionv1.CreateModelResponse{Model: m}, err
}

// UpdateModel replaces the spec of an own entry.
func (x *ModelServer) UpdateModel(ctx context.Context, r *sessionv1.UpdateModelRequest) (*sessionv1.UpdateModelResponse, error) {
	m, err := x.write(ctx, r.Name, r.Spec, store.AgentWrite{Expected: r.ExpectedVersion, Request: keepForADay(request("UpdateModel", r.Name, r.RequestId, r))})
	return &sessionv1.UpdateModelResponse{Model: m}, err
}

func (x *ModelServer) write(ctx context.Context, name string, spec *sessionv1.ModelSpec, w store.AgentWrite) (*sessionv1.Model, error) {
	if _, err := x.s.Catalog.Narrow(name, ownEntry(spec)); err != nil {
		var f *catalog.Fault
		if errors.As(err, &f) {
			return nil, badInput("spec."+f.Field, "spec."+f.Error())
		}
		return nil, err
	}
	body, err := protojson.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("marshal %s: %w", name, err)
	}
	sum := sha256.Sum256([]byte(spec.String()))
	w.Tenant, w.User = principal.Tenant(ctx), user(ctx)
	w.AgentRevision = store.AgentRevision{Name: name, Revision: hex.EncodeToString(sum[:8]), Spec: body}
	answer, err := x.s.Store.WriteAgent(ctx, w)
	if errors.Is(err, store.ErrConflict) {
		return nil, versionConflict(ctx, x.s.Store, name, w.Expected, modelError)
	}
	if err != nil {
		return nil, modelError(err, name, w.Request.ID)
	}
	made, version, err := splitVersion(answer.Value)
	if err != nil {
		return nil, err
	}
	return x.read(ctx, made, version)
}

func (x *ModelServer) read(ctx context.Context, name string, version int32) (*sessionv1.Model, error) {
	row, err := x.s.Store.GetAgent(ctx, principal.Tenant(ctx), name, version)
	if err != nil {
		return nil, modelError(err, name, "")
	}
	return x.own(row)
}

// DeleteModel deletes an own entry.
func (x *ModelServer) DeleteModel(ctx context.Context, r *sessionv1.DeleteModelRequest) (*sessionv1.DeleteModelResponse, error) {
	_, err := x.s.Store.DeleteAgent(ctx, store.DeleteAgent{
		Tenant: principal.Tenant(ctx), Name: r.Name, Request: keepForADay(request("DeleteModel", r.Name, r.RequestId, r)),
	})
	if err != nil {
		return nil, modelError(err, r.Name, r.RequestId)
	}
	return &sessionv1.DeleteModelResponse{}, nil
}

// GetModel reads a model.
func (x *ModelServer) GetModel(ctx context.Context, r *sessionv1.GetModelRequest) (*sessionv1.GetModelResponse, error) {
	if strings.HasPrefix(r.Name, ownPrefix) {
		m, err := x.read(ctx, r.Name, 0)
		return &sessionv1.GetModelResponse{Model: m}, err
	}
	e, err := x.s.Catalog.Resolve(strings.TrimPrefix(r.Name, modelsFolder))
	if err != nil {
		return nil, noModel(r.Name)
	}
	return &sessionv1.GetModelResponse{Model: x.shown(e)}, nil
}

// ListModels lists a page of models.
func (x *ModelServer) ListModels(ctx context.Context, r *sessionv1.ListModelsRequest) (*sessionv1.ListModelsResponse, error) {
	tenant := principal.Tenant(ctx)
	scope := "ListModels\x00" + tenant
	after := ""
	if r.PageToken != "" {
		if err := page.Decode(r.PageToken, scope, &after); err != nil {
			return nil, storeError(err, subject{})
		}
	}
	all, more, err := page.Fill(page.Size(r.PageSize, 50, 1000), func(last *sessionv1.Model, n int) ([]*sessionv1.Model, error) {
		if last != nil {
			after = last.Name
		}
		return x.behind(ctx, tenant, after, n)
	})
	if err != nil {
		return nil, storeError(err, subject{})
	}
	resp := &sessionv1.ListModelsResponse{Models: all}
	if more {
		resp.NextPageToken = page.Encode(scope, all[len(all)-1].Name)
	}
	return resp, nil
}

// behind returns the first n models behind a name: those of the server and the tenant's
// own, in one order.
func (x *ModelServer) behind(ctx context.Context, tenant, after string, n int) ([]*sessionv1.Model, error) {
	rows, err := x.s.Store.ListAgents(ctx, tenant, "models", after, false, n)
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
	for _, e := range x.s.Catalog.All() {
		if modelsFolder+e.Name > after {
			all = append(all, x.shown(e))
		}
	}
	slices.SortFunc(all, func(a, b *sessionv1.Model) int { return strings.Compare(a.Name, b.Name) })
	return all[:min(n, len(all))], nil
}

// modelError is storeError for a request about one own entry.
func modelError(err error, name, requestID string) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return noModel(name)
	case errors.Is(err, store.ErrExists):
		return fail(codes.AlreadyExists, sessionv1.ErrorReason_ERROR_REASON_ALREADY_EXISTS,
			fmt.Sprintf("There is already a model %s. Choose another model_id, or leave it out to get a new one.", name),
			apierr.Resource("fairlead.dev/Model", name, "exists already"))
	}
	return agentError(err, name, requestID)
}

func noModel(name string) error {
	return fail(codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_MODEL_NOT_FOUND,
		fmt.Sprintf("There is no model %.300q. List the models (GET /v1/models) to see which there are.", name),
		apierr.Resource("fairlead.dev/Model", name, "not found"))
}
