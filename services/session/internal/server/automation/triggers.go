package automation

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/trigger"
)

// secretOverlap is how long the secret before a rotation is good.
const secretOverlap = 24 * time.Hour

// TriggerServer implements TriggerService.
type TriggerServer struct {
	sessionv1.UnimplementedTriggerServiceServer
	*Config
}

// CreateTrigger makes a trigger. A repeated request returns the same secret, because its caller has not seen the first
// answer.
func (x *TriggerServer) CreateTrigger(ctx context.Context, r *sessionv1.CreateTriggerRequest) (*sessionv1.CreateTriggerResponse, error) {
	if err := x.sendable(ctx, r.GetTrigger()); err != nil {
		return nil, err
	}
	n := store.NewTrigger{
		Owner: request.UserOf(ctx, "users/me"), ID: id.New(), Trigger: r.Trigger, Secret: trigger.NewSecret(),
		Request: request.Lasting("CreateTrigger", request.OwnScope(ctx), r),
	}
	answer, err := x.Store.CreateTrigger(ctx, n)
	switch {
	case errors.Is(err, store.ErrTooMany):
		return nil, refusal.Of(codes.ResourceExhausted, sessionv1.ErrorReason_ERROR_REASON_TOO_MANY,
			fmt.Sprintf("There are already %d triggers of users/%s, the most allowed. Delete one first.", store.MaxTriggers, n.User), apierr.Quota("users/"+n.User, "triggers"))
	case err != nil:
		return nil, refusal.Store(err, refusal.Subject{Session: r.Trigger.GetSession(), RequestID: r.RequestId})
	}
	row, err := x.seen(ctx, "triggers/"+answer.Value)
	if err != nil {
		return nil, err
	}
	secret, path := shown(row)
	return &sessionv1.CreateTriggerResponse{Trigger: row.Trigger, Secret: secret, Path: path}, nil
}

// sendable refuses a trigger whose turns would be refused, before its first delivery.
func (x *TriggerServer) sendable(ctx context.Context, t *sessionv1.Trigger) error {
	k := request.Key(ctx, t.GetSession())
	if t.GetSession() == "" {
		a, err := x.Directory.AgentForSession(ctx, k.Tenant, t.GetAgent(), "trigger.agent")
		if err != nil {
			return err
		}
		_, err = x.Submit.TurnLimits(k.Tenant, a.Spec, t.GetLimits())
		return err
	}
	session, err := x.Store.GetSession(ctx, k)
	if err != nil {
		return refusal.Store(err, refusal.Subject{Session: t.GetSession()})
	}
	if session.ParentCall != nil {
		return refusal.SubagentSession(session.Name)
	}
	spec, err := x.Directory.SpecOf(ctx, k.Tenant, session)
	if err != nil {
		return err
	}
	_, err = x.Submit.TurnLimits(k.Tenant, spec, t.GetLimits())
	return err
}

// shown returns a trigger's secret, and the path where deliveries are sent.
func shown(row *store.TriggerRow) (secret, path string) {
	secret, path = trigger.Show(row.Trigger.Proof, row.Secret), "/v1/"+row.Trigger.Name+":fire"
	if row.Trigger.Proof == sessionv1.TriggerProof_TRIGGER_PROOF_ADDRESS {
		path += "?secret=" + url.QueryEscape(secret)
	}
	return secret, path
}

// seen reads a trigger that the caller may see: its own, or any of the tenant for an operator.
func (x *TriggerServer) seen(ctx context.Context, name string) (*store.TriggerRow, error) {
	p := request.Caller(ctx)
	row, err := x.Store.FindTrigger(ctx, strings.TrimPrefix(name, "triggers/"))
	if err == nil && (row.Tenant != p.Tenant || !p.Sees(row.User)) {
		err = store.ErrNotFound
	}
	if err != nil {
		return nil, triggerError(err, name, "")
	}
	return row, nil
}

// triggerError is storeError for a request about one trigger.
func triggerError(err error, name, requestID string) error {
	if errors.Is(err, store.ErrNotFound) {
		return refusal.Of(codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_TRIGGER_NOT_FOUND,
			fmt.Sprintf("There is no trigger %s. List the triggers (GET /v1/triggers) to see which there are.", name),
			apierr.Resource("fairlead.dev/Trigger", name, "not found"))
	}
	return refusal.Store(err, refusal.Subject{RequestID: requestID})
}

// GetTrigger reads a trigger.
func (x *TriggerServer) GetTrigger(ctx context.Context, r *sessionv1.GetTriggerRequest) (*sessionv1.GetTriggerResponse, error) {
	row, err := x.seen(ctx, r.Name)
	if err != nil {
		return nil, err
	}
	return &sessionv1.GetTriggerResponse{Trigger: row.Trigger}, nil
}

// ListTriggers lists a page of triggers.
func (x *TriggerServer) ListTriggers(ctx context.Context, r *sessionv1.ListTriggersRequest) (*sessionv1.ListTriggersResponse, error) {
	p := request.Caller(ctx)
	q := store.TriggerPage{Tenant: p.Tenant}
	if p.Role < principal.RoleOperator {
		q.User = p.User
	}
	scope := "ListTriggers\x00" + q.Tenant + "\x00" + q.User
	all, next, err := request.List(scope, r, refusal.Subject{}, request.ByID, func(after string, n int) ([]*sessionv1.Trigger, error) {
		q.After, q.Limit = after, n
		return x.Store.ListTriggers(ctx, q)
	})
	return &sessionv1.ListTriggersResponse{Triggers: all, NextPageToken: next}, err
}

// PauseTrigger stops a trigger, or lets it go on.
func (x *TriggerServer) PauseTrigger(ctx context.Context, r *sessionv1.PauseTriggerRequest) (*sessionv1.PauseTriggerResponse, error) {
	row, err := x.seen(ctx, r.Name)
	if err != nil {
		return nil, err
	}
	_, err = x.Store.PauseTrigger(ctx, row.Tenant, row.ID, r.Paused, request.Lasting("PauseTrigger", r.Name, r))
	if err != nil {
		return nil, triggerError(err, r.Name, r.RequestId)
	}
	if row, err = x.seen(ctx, r.Name); err != nil {
		return nil, err
	}
	return &sessionv1.PauseTriggerResponse{Trigger: row.Trigger}, nil
}

// RotateTriggerSecret makes a new secret. A repeated request returns the same one, unless another rotation followed.
func (x *TriggerServer) RotateTriggerSecret(
	ctx context.Context, r *sessionv1.RotateTriggerSecretRequest,
) (*sessionv1.RotateTriggerSecretResponse, error) {
	row, err := x.seen(ctx, r.Name)
	if err != nil {
		return nil, err
	}
	rotation := store.RotateTrigger{
		Tenant: row.Tenant, ID: row.ID, Secret: trigger.NewSecret(), Overlap: secretOverlap,
		Request: request.Lasting("RotateTriggerSecret", r.Name, r),
	}
	if r.RevokeOld {
		rotation.Overlap = 0
	}
	if _, err := x.Store.RotateTrigger(ctx, rotation); err != nil {
		return nil, triggerError(err, r.Name, r.RequestId)
	}
	if row, err = x.seen(ctx, r.Name); err != nil {
		return nil, err
	}
	secret, path := shown(row)
	return &sessionv1.RotateTriggerSecretResponse{Trigger: row.Trigger, Secret: secret, Path: path}, nil
}

// DeleteTrigger deletes a trigger.
func (x *TriggerServer) DeleteTrigger(ctx context.Context, r *sessionv1.DeleteTriggerRequest) (*sessionv1.DeleteTriggerResponse, error) {
	p, id := request.Caller(ctx), strings.TrimPrefix(r.Name, "triggers/")
	row, err := x.Store.FindTrigger(ctx, id)
	if err == nil && (row.Tenant != p.Tenant || !p.Sees(row.User)) {
		return nil, triggerError(store.ErrNotFound, r.Name, "")
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, refusal.Store(err, refusal.Subject{})
	}
	if _, err := x.Store.DeleteTrigger(ctx, p.Tenant, id, request.Lasting("DeleteTrigger", r.Name, r)); err != nil {
		return nil, triggerError(err, r.Name, r.RequestId)
	}
	return &sessionv1.DeleteTriggerResponse{}, nil
}
