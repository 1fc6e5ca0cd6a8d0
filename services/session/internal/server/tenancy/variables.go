package tenancy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/variable"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// variableOf returns the caller's variable that a request names. Its errors reveal
// nothing of the value.
func variableOf(ctx context.Context, resource string) (store.Owner, string, error) {
	parent, name, _ := strings.Cut(resource, "/variables/")
	o, err := ownVariables(ctx, parent)
	return o, name, err
}

// ownVariables refuses a user who is not the caller.
func ownVariables(ctx context.Context, parent string) (store.Owner, error) {
	o := store.Owner{Tenant: request.Key(ctx, "").Tenant, User: request.User(ctx)}
	if own := "users/" + o.User; parent != own && parent != "users/me" {
		return o, refusal.Of(codes.PermissionDenied, sessionv1.ErrorReason_ERROR_REASON_OTHER_USER,
			"You may see and set only your own variables, which are "+own+"/variables.", apierr.Resource("fairlead.dev/UserVariable", parent, "another user's"))
	}
	return o, nil
}

// SetUserVariable sets a variable of the caller's.
func (x *UserServer) SetUserVariable(ctx context.Context, r *sessionv1.SetUserVariableRequest) (*sessionv1.SetUserVariableResponse, error) {
	o, name, err := variableOf(ctx, r.Name)
	if err != nil {
		return nil, err
	}
	if err := variable.Check(name, r.Value); err != nil {
		return nil, apierr.New(codes.InvalidArgument, refusal.Domain, apierr.ReasonInvalidRequest, err.Error()+".", apierr.Field("name", err.Error()))
	}
	v, err := x.Store.SetVariable(ctx, o, store.Variable{Name: name, Value: r.Value}, request.Lasting("SetUserVariable", r.Name, r))
	switch {
	case errors.Is(err, store.ErrTooMany):
		return nil, refusal.Of(codes.ResourceExhausted, sessionv1.ErrorReason_ERROR_REASON_TOO_MANY,
			fmt.Sprintf("A user may have %d variables, and %d bytes of names and values together. Delete one first.", store.MaxVariables, store.MaxVariableBytes),
			apierr.Quota("users/"+o.User, "variables"))
	case err != nil:
		return nil, refusal.Store(err, refusal.Subject{RequestID: r.RequestId})
	}
	return &sessionv1.SetUserVariableResponse{Variable: variableToProto(o, v)}, nil
}

// variableToProto leaves the value out.
func variableToProto(o store.Owner, v store.Variable) *sessionv1.UserVariable {
	out := &sessionv1.UserVariable{Name: "users/" + o.User + "/variables/" + v.Name}
	if !v.Time.IsZero() { // otherwise it was deleted since
		out.UpdateTime = timestamppb.New(v.Time)
	}
	return out
}

// ListUserVariables lists a page of the caller's variables.
func (x *UserServer) ListUserVariables(
	ctx context.Context, r *sessionv1.ListUserVariablesRequest,
) (*sessionv1.ListUserVariablesResponse, error) {
	o, err := ownVariables(ctx, r.Parent)
	if err != nil {
		return nil, err
	}
	set, err := x.Store.Variables(ctx, o)
	if err != nil {
		return nil, refusal.Store(err, refusal.Subject{})
	}
	list := func(after string, n int) (some []*sessionv1.UserVariable, _ error) {
		for _, v := range set {
			if v.Name > after && len(some) < n {
				some = append(some, variableToProto(o, v))
			}
		}
		return some, nil
	}
	all, next, err := request.List("ListUserVariables\x00"+o.Tenant+"\x00"+o.User, r, refusal.Subject{}, request.ByID, list)
	return &sessionv1.ListUserVariablesResponse{Variables: all, NextPageToken: next}, err
}

// DeleteUserVariable deletes a variable of the caller's.
func (x *UserServer) DeleteUserVariable(
	ctx context.Context, r *sessionv1.DeleteUserVariableRequest,
) (*sessionv1.DeleteUserVariableResponse, error) {
	o, name, err := variableOf(ctx, r.Name)
	if err != nil {
		return nil, err
	}
	err = x.Store.DeleteVariable(ctx, o, name, request.Lasting("DeleteUserVariable", r.Name, r))
	if errors.Is(err, store.ErrNotFound) {
		return nil, refusal.Of(codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_VARIABLE_NOT_FOUND,
			"There is no variable "+r.Name+". List your variables to see which there are.", apierr.Resource("fairlead.dev/UserVariable", r.Name, "not found"))
	}
	if err != nil {
		return nil, refusal.Store(err, refusal.Subject{RequestID: r.RequestId})
	}
	return &sessionv1.DeleteUserVariableResponse{}, nil
}
