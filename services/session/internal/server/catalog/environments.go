package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/directory"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// EnvironmentServer implements EnvironmentService.
type EnvironmentServer struct {
	sessionv1.UnimplementedEnvironmentServiceServer
	*Config
}

// CreateEnvironment creates an environment.
func (x *EnvironmentServer) CreateEnvironment(
	ctx context.Context, r *sessionv1.CreateEnvironmentRequest,
) (*sessionv1.CreateEnvironmentResponse, error) {
	name := r.EnvironmentId
	if name == "" {
		name = "e" + id.New() // a name begins with a letter
	}
	out, err := x.write(ctx, "environments/"+name, r.Spec, store.AgentWrite{Request: request.Lasting("CreateEnvironment", "", r)})
	return &sessionv1.CreateEnvironmentResponse{Environment: out}, err
}

// UpdateEnvironment makes a new version.
func (x *EnvironmentServer) UpdateEnvironment(
	ctx context.Context, r *sessionv1.UpdateEnvironmentRequest,
) (*sessionv1.UpdateEnvironmentResponse, error) {
	out, err := x.write(ctx, r.Name, r.Spec, store.AgentWrite{
		Expected: r.ExpectedVersion, Request: request.Lasting("UpdateEnvironment", r.Name, r),
	})
	return &sessionv1.UpdateEnvironmentResponse{Environment: out}, err
}

// write checks a spec, writes it, and reads the environment at its new version.
func (x *EnvironmentServer) write(
	ctx context.Context, name string, spec *sessionv1.EnvironmentSpec, w store.AgentWrite,
) (*sessionv1.Environment, error) {
	e := agent.EnvironmentFrom(spec)
	if err := refusal.Spec(e.Faults()); err != nil {
		return nil, err
	}
	body, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("marshal %s: %w", name, err)
	}
	sum := sha256.Sum256(body)
	w.AgentRevision = store.AgentRevision{Name: name, Revision: hex.EncodeToString(sum[:8]), Spec: body}
	row, err := x.Config.write(ctx, w, refusal.Environment)
	if err != nil {
		return nil, err
	}
	return environmentProto(row)
}

func (x *EnvironmentServer) read(ctx context.Context, name string, version int32) (*sessionv1.Environment, error) {
	row, err := x.Store.GetAgent(ctx, principal.Tenant(ctx), name, version)
	if err != nil {
		return nil, refusal.Environment(err, name, "")
	}
	return environmentProto(row)
}

func environmentProto(row store.AgentRow) (*sessionv1.Environment, error) {
	e, err := directory.EnvironmentOf(row)
	if err != nil {
		return nil, err
	}
	out := &sessionv1.Environment{
		Name: row.Name, Version: row.Version, Spec: e.ToProto(), CreateTime: timestamppb.New(row.CreateTime), UpdateTime: timestamppb.New(row.VersionTime),
	}
	if row.ArchiveTime != nil {
		out.ArchiveTime = timestamppb.New(*row.ArchiveTime)
	}
	return out, nil
}

// ArchiveEnvironment archives an environment, or brings it back.
func (x *EnvironmentServer) ArchiveEnvironment(
	ctx context.Context, r *sessionv1.ArchiveEnvironmentRequest,
) (*sessionv1.ArchiveEnvironmentResponse, error) {
	_, err := x.Store.ArchiveAgent(ctx, store.ArchiveAgent{
		Tenant: principal.Tenant(ctx), Name: r.Name, Undo: r.Undo, Request: request.Lasting("ArchiveEnvironment", r.Name, r),
	})
	if err != nil {
		return nil, refusal.Environment(err, r.Name, r.RequestId)
	}
	out, err := x.read(ctx, r.Name, 0)
	return &sessionv1.ArchiveEnvironmentResponse{Environment: out}, err
}

// GetEnvironment reads an environment.
func (x *EnvironmentServer) GetEnvironment(
	ctx context.Context, r *sessionv1.GetEnvironmentRequest,
) (*sessionv1.GetEnvironmentResponse, error) {
	out, err := x.read(ctx, r.Name, 0)
	return &sessionv1.GetEnvironmentResponse{Environment: out}, err
}

// ListEnvironments lists a page of environments, without their variables.
func (x *EnvironmentServer) ListEnvironments(
	ctx context.Context, r *sessionv1.ListEnvironmentsRequest,
) (*sessionv1.ListEnvironmentsResponse, error) {
	tenant := principal.Tenant(ctx)
	scope := fmt.Sprintf("ListEnvironments\x00%s\x00%t", tenant, r.ShowArchived)
	list := func(after string, n int) (some []*sessionv1.Environment, _ error) {
		rows, err := x.Store.ListAgents(ctx, tenant, "environments", after, r.ShowArchived, n)
		for _, row := range rows {
			e, err := environmentProto(row)
			if err != nil {
				return nil, err
			}
			e.Spec.Variables = nil
			some = append(some, e)
		}
		return some, err
	}
	all, next, err := request.List(scope, r, refusal.Subject{}, request.ByName, list)
	return &sessionv1.ListEnvironmentsResponse{Environments: all, NextPageToken: next}, err
}
